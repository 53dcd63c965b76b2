package warc

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The types of records (WARC-Type) that this package writes.
const (
	TypeInfo     = "warcinfo"
	TypeRequest  = "request"
	TypeResponse = "response"
	TypeResource = "resource"
	TypeRevisit  = "revisit"
	TypeMetadata = "metadata"
)

// The profiles of a revisit record.
const (
	profileNotModified = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
	profileIdentical   = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
)

// A Field is a named field of a record, or of a block of type application/warc-fields.
type Field struct{ Name, Value string }

// Fields are named fields in the order of the file.
type Fields []Field

// Get returns the value of the first field of a name, whatever its case; empty if there
// is none.
func (f Fields) Get(name string) string {
	for _, field := range f {
		if strings.EqualFold(field.Name, name) {
			return field.Value
		}
	}
	return ""
}

// append appends the fields as they are written, without the empty line after them.
// A control character, which would end the field, becomes a space.
func (f Fields) append(b []byte) []byte {
	for _, field := range f {
		b = append(b, field.Name...)
		b = append(b, ": "...)
		b = append(b, oneLine(field.Value)...)
		b = append(b, "\r\n"...)
	}
	return b
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// timeLayout is that of WARC-Date, with the precision that version 1.1 allows.
const timeLayout = "2006-01-02T15:04:05.000Z"

func formatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

// parseTime reads a WARC-Date of any precision.
func parseTime(s string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z", "2006-01-02", "2006-01", "2006"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("WARC-Date %q is no time", s)
}

// newID returns a WARC-Record-ID: a random UUID (RFC 9562, version 4).
func newID() string {
	var u [16]byte
	rand.Read(u[:]) // never fails
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return fmt.Sprintf("<urn:uuid:%x-%x-%x-%x-%x>", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// digest returns the value of WARC-Block-Digest and WARC-Payload-Digest. Base32 is the
// encoding that all readers know; SHA-256 is used since SHA-1 can be made to collide, by
// which one page would be archived as a copy of another.
func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + base32.StdEncoding.EncodeToString(sum[:])
}

// appendRecord appends a record: version, fields with Content-Length, and block.
func appendRecord(b []byte, fields Fields, block []byte) []byte {
	b = append(b, "WARC/1.1\r\n"...)
	b = fields.append(b)
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, int64(len(block)), 10)
	b = append(b, "\r\n\r\n"...)
	b = append(b, block...)
	return append(b, "\r\n\r\n"...)
}
