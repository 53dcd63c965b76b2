package htmlparse

import (
	"bytes"
	"context"
	"io"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/transform"

	"github.com/recrawl/recrawl/internal/charset"
	"github.com/recrawl/recrawl/page"
)

// How far to search for a declaration of the charset: as far as browsers do
// before they begin, and as far as we do in a body without one there that is
// not UTF-8.
const (
	prescanLen = 1024
	rescanLen  = 64 << 10
)

const (
	utf8Name        = "utf-8"
	windows1252Name = "windows-1252"
)

// Decode returns the body of a page of HTML as [Parser] reads it: in UTF-8, without a byte order mark. It is the body
// itself if that is UTF-8, and must not be changed.
func Decode(c *page.Content) []byte {
	body, enc, _ := decode(c.Body, c.Type, true)
	return readAll(body, enc, &stopper{ctx: context.Background()})
}

// readAll returns the body as UTF-8, as far as there is time.
func readAll(body []byte, enc encoding.Encoding, stop *stopper) []byte {
	if enc == nil {
		return body
	}
	utf8, _ := io.ReadAll(newReader(body, enc, stop)) // these readers do not fail
	return utf8
}

// decode determines the encoding of a body, in the order of the WHATWG encoding
// sniffing algorithm (HTML, section 13.2.3.2). It returns the body without its
// byte order mark, and a nil encoding if the body is already valid UTF-8.
func decode(body []byte, contentType string, markup bool) ([]byte, encoding.Encoding, string) {
	if name, mark := charset.Mark(body); mark > 0 {
		return known(body[mark:], name)
	}
	if name := charset.Lookup(charset.Param([]byte(contentType))); name != "" {
		return known(body, name)
	}
	if markup {
		if name := prescan(body[:min(len(body), prescanLen)]); name != "" {
			return known(body, name)
		}
	}
	if likelyUTF8(body) {
		return known(body, utf8Name)
	}
	if markup && len(body) > prescanLen {
		if name := prescan(body[:min(len(body), rescanLen)]); name != "" {
			return known(body, name)
		}
	}
	return known(body, windows1252Name)
}

// likelyUTF8 reports whether b is UTF-8, or was before it was cut in the middle
// of a character.
func likelyUTF8(b []byte) bool {
	if utf8.Valid(b) {
		return true
	}
	for i := len(b) - 1; i >= 0 && i > len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			whole := b[:i]
			return !utf8.FullRune(b[i:]) && utf8.Valid(whole) && utf8.RuneCount(whole) < len(whole)
		}
	}
	return false
}

func known(body []byte, name string) ([]byte, encoding.Encoding, string) {
	if name == utf8Name && utf8.Valid(body) {
		return body, nil, name
	}
	enc, err := htmlindex.Get(name)
	if err != nil {
		return body, encoding.Replacement, name
	}
	return body, enc, name
}

const spaces = " \t\n\f\r"

// prescan searches markup for a declaration of its charset.
func prescan(b []byte) string {
	if name := readable(charset.XML(b)); name != "" {
		return name
	}
	z := tokens{page: b}
	for {
		switch z.next() {
		case pageEnd:
			return ""
		case startTag, closedTag:
			switch z.elem {
			case metaElem:
				if name := metaCharset(&z); name != "" {
					return name
				}
			case noscriptElem, noframesElem:
				z.raw = nil
			}
		}
	}
}

func metaCharset(z *tokens) string {
	var label, content, pragma []byte
	first := func(v *[]byte, a *attribute) {
		if *v == nil {
			*v = z.value(a.value)
		}
	}
	for i := range z.attr {
		switch a := &z.attr[i]; {
		case equalFold(a.name, "charset"):
			first(&label, a)
		case equalFold(a.name, "content"):
			first(&content, a)
		case equalFold(a.name, "http-equiv"):
			first(&pragma, a)
		}
	}
	label = bytes.TrimSpace(label)
	if label == nil && equalFold(pragma, "content-type") {
		label = charset.Param(content)
	}
	name := charset.Lookup(label)
	if name == "x-user-defined" {
		return windows1252Name
	}
	return readable(name)
}

// readable returns the encoding of a declaration that was readable as ASCII, so that UTF-16
// cannot be true.
func readable(name string) string {
	if name == "utf-16be" || name == "utf-16le" {
		return utf8Name
	}
	return name
}

// newReader returns the body as UTF-8.
func newReader(body []byte, enc encoding.Encoding, stop *stopper) io.Reader {
	r := &bodyReader{body: body, stop: stop}
	if enc == nil {
		return r
	}
	return transform.NewReader(r, enc.NewDecoder())
}

// stopper says when to stop: at the end of the context or of the time.
type stopper struct {
	ctx      context.Context
	deadline time.Time
	stopped  bool
}

func (s *stopper) stop() bool {
	if !s.stopped {
		s.stopped = s.ctx.Err() != nil || !s.deadline.IsZero() && !time.Now().Before(s.deadline)
	}
	return s.stopped
}

// bodyReader reads a body in pieces and ends early when time is up. The clock
// is checked here and not at each token, because one token may be as long as
// the body.
type bodyReader struct {
	body []byte
	stop *stopper
}

// piece is how much is read between two checks of the clock.
const piece = 16 << 10

func (r *bodyReader) Read(b []byte) (int, error) {
	if len(r.body) == 0 || r.stop.stop() {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), piece)], r.body)
	r.body = r.body[n:]
	return n, nil
}
