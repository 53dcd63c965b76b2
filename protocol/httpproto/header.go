package httpproto

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/protocol"
)

// field returns the first value of a header, or nothing if it is too long or
// has control bytes: values that are kept are sent back, logged and stored.
func field(h http.Header, name string) string {
	v := strings.TrimSpace(h.Get(name))
	if !safe(v) {
		return ""
	}
	return v
}

func safe(v string) bool {
	return len(v) <= maxField && strings.IndexFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0
}

// validator returns an Etag or Last-Modified that can be sent back.
func validator(h http.Header, name string) string {
	if v := field(h, name); conditional(v) {
		return v
	}
	return ""
}

// conditional reports whether a validator can be sent: "*" would match any content, and one
// stored by somebody else may be anything.
func conditional(validator string) bool {
	return validator != "" && validator != "*" && safe(validator)
}

// dateLayouts are formats that servers use besides the three of HTTP.
var dateLayouts = [...]string{
	time.RFC1123Z,
	"Mon, 2 Jan 2006 15:04:05 MST",
	"Mon, 2 Jan 2006 15:04:05 -0700",
	"Mon, 2 Jan 2006 15:04:05",
	"Monday, 2 Jan 2006 15:04:05 MST",
	"Monday, 2-Jan-2006 15:04:05 MST",
	"Mon, 2-Jan-2006 15:04:05 MST",
	"2 Jan 2006 15:04:05 MST",
	"Mon Jan 2 15:04:05 MST 2006",
	time.RFC3339,
	"2006-01-02 15:04:05",
	"2006-01-02",
}

// date parses a date as servers write it; zero if it is invalid or before 1970.
// A zone that is only a name counts as UTC.
func date(s string) time.Time {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > 64 {
		return time.Time{}
	}
	t, err := http.ParseTime(s)
	for i := 0; err != nil && i < len(dateLayouts); i++ {
		t, err = time.Parse(dateLayouts[i], s)
	}
	if err != nil || t.Unix() <= 0 {
		return time.Time{}
	}
	return t.UTC()
}

// retryAfter parses a Retry-After header: seconds, or a date by the server's
// own clock if it gives it. It is at most a day.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	if digits, _, _ := strings.Cut(v, "."); strings.Trim(digits, "0123456789") == "" && digits != "" {
		s, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || s > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter
		}
		return time.Duration(s) * time.Second
	}
	t := date(v)
	if t.IsZero() {
		return 0
	}
	if d := date(h.Get("Date")); !d.IsZero() {
		now = d
	}
	return min(max(t.Sub(now), 0), maxRetryAfter)
}

// keepAlive returns the timeout of a Keep-Alive header (RFC 2068, section 19.7.1.1), after
// which the server closes an idle connection.
func keepAlive(h http.Header) (time.Duration, bool) {
	for part := range strings.SplitSeq(strings.Join(h["Keep-Alive"], ","), ",") {
		name, value, _ := strings.Cut(part, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "timeout") {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 16)
		return time.Duration(n) * time.Second, err == nil
	}
	return 0, false
}

func (c *Client) header(u *url.URL, req protocol.Request) http.Header {
	h := http.Header{
		"User-Agent":      {c.userAgent},
		"Accept":          {c.o.Accept},
		"Accept-Language": {c.o.AcceptLanguage},
		"Accept-Encoding": {acceptEncoding},
	}
	if c.o.Limits.MaxIdle > 0 {
		// It is the default of HTTP/1.1, and HTTP/2 does not send it. But some servers, such as
		// Apache, say only then how long they keep an idle connection.
		h["Connection"] = []string{"keep-alive"}
	}
	if c.o.From != "" {
		h["From"] = []string{c.o.From}
	}
	if login := c.logins[origin(u)]; login != "" {
		h["Authorization"] = []string{login}
	}
	if v := c.cookies(u); v != "" {
		h["Cookie"] = []string{v}
	}
	if req.Accept != "" {
		h["Accept"] = []string{req.Accept}
	}
	if conditional(req.ETag) {
		h["If-None-Match"] = []string{req.ETag}
	}
	if conditional(req.LastModified) {
		h["If-Modified-Since"] = []string{req.LastModified}
	}
	return h
}

// userAgent returns "name/version (+url; email)" with the parts there are.
func userAgent(o Options) (string, error) {
	for _, f := range []struct{ name, v string }{
		{"Agent", o.Agent}, {"Version", o.Version}, {"AgentURL", o.AgentURL}, {"AgentEmail", o.AgentEmail}, {"UserAgent", o.UserAgent},
	} {
		if !printable(f.v) {
			return "", fmt.Errorf("httpproto: option %s is not printable ASCII: %q", f.name, f.v)
		}
	}
	if o.Agent == "" {
		return "", errors.New("httpproto: option Agent is required: servers must be able to tell who is asking")
	}
	if o.UserAgent != "" {
		return o.UserAgent, nil
	}
	ua := o.Agent
	if o.Version != "" {
		ua += "/" + o.Version
	}
	switch {
	case o.AgentURL != "" && o.AgentEmail != "":
		ua += " (+" + o.AgentURL + "; " + o.AgentEmail + ")"
	case o.AgentURL != "":
		ua += " (+" + o.AgentURL + ")"
	case o.AgentEmail != "":
		ua += " (" + o.AgentEmail + ")"
	}
	return ua, nil
}
