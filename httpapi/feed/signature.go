package feed

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Signatures are those of https://github.com/standard-webhooks/standard-webhooks, version 1: HMAC-SHA256
// of the id, the time and the body.

// The headers of a webhook.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"

	secretPrefix = "whsec_"
	version      = "v1,"
)

// ErrSignature says that a webhook is not signed with a secret of the receiver, or too old or new.
var ErrSignature = errors.New("webhook has no valid signature")

// Secret is a key that a sender and a receiver share.
type Secret []byte

// ParseSecrets reads secrets, one a line: "whsec_" and 24 to 64 bytes in base64. Empty lines and those that
// begin with '#' do not count. A sender signs with all of them, so that a secret can be replaced while
// receivers know either.
func ParseSecrets(text []byte) (secrets []Secret, err error) {
	for i, line := range bytes.Split(text, []byte("\n")) {
		line := string(bytes.TrimSpace(line))
		if line == "" || line[0] == '#' {
			continue
		}
		encoded, ok := strings.CutPrefix(line, secretPrefix)
		secret, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil || len(secret) < 24 || len(secret) > 64 {
			return nil, fmt.Errorf("feed: line %d is no secret: %s and 24 to 64 bytes in base64", i+1, secretPrefix)
		}
		secrets = append(secrets, secret)
	}
	if len(secrets) == 0 {
		return nil, errors.New("feed: there is no secret")
	}
	return secrets, nil
}

func (s Secret) sign(id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, s)
	fmt.Fprintf(mac, "%s.%s.", id, timestamp)
	mac.Write(body)
	return version + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// sign sets the headers of a webhook.
func sign(h http.Header, secrets []Secret, id string, now time.Time, body []byte) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	signatures := make([]string, len(secrets))
	for i, s := range secrets {
		signatures[i] = s.sign(id, timestamp, body)
	}
	h.Set(headerID, id)
	h.Set(headerTimestamp, timestamp)
	h.Set(headerSignature, strings.Join(signatures, " "))
}

// tolerance is how far the time of a webhook may be from that of the receiver.
const tolerance = 5 * time.Minute

// Verify is for receivers: it returns [ErrSignature] unless a request with this header and body was signed
// with one of the secrets, at most five minutes before or after now. A receiver should answer 2xx to an id
// that it has seen before, and do nothing.
func Verify(secrets []Secret, h http.Header, body []byte, now time.Time) error {
	seconds, err := strconv.ParseInt(h.Get(headerTimestamp), 10, 64)
	if err != nil {
		return fmt.Errorf("feed: %w: %s is %q", ErrSignature, headerTimestamp, h.Get(headerTimestamp))
	}
	if d := now.Sub(time.Unix(seconds, 0)); d > tolerance || d < -tolerance {
		return fmt.Errorf("feed: %w: it is %v old", ErrSignature, d.Round(time.Second))
	}
	for signature := range strings.FieldsSeq(h.Get(headerSignature)) {
		for _, s := range secrets {
			if hmac.Equal([]byte(signature), []byte(s.sign(h.Get(headerID), h.Get(headerTimestamp), body))) {
				return nil
			}
		}
	}
	return fmt.Errorf("feed: %w", ErrSignature)
}
