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

// decode determines the encoding of a body, in the order of the WHATWG encoding
// sniffing algorithm (HTML, section 13.2.3.2). It returns the body without its
// byte order mark, and a nil encoding if the body is already valid UTF-8.
func decode(body []byte, contentType string, markup bool) ([]byte, encoding.Encoding, string) {
	for _, bom := range [...]struct{ mark, name string }{
		{"\xef\xbb\xbf", utf8Name},
		{"\xfe\xff", "utf-16be"},
		{"\xff\xfe", "utf-16le"},
	} {
		if len(body) >= len(bom.mark) && string(body[:len(bom.mark)]) == bom.mark {
			return known(body[len(bom.mark):], bom.name)
		}
	}
	if name := lookup(charsetParam([]byte(contentType))); name != "" {
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

// lookup returns the WHATWG name of an encoding, or nothing for a label unknown
// to the standard.
func lookup(label []byte) string {
	if len(label) == 0 || len(label) > 64 {
		return ""
	}
	enc, err := htmlindex.Get(string(label))
	if err != nil {
		return ""
	}
	name, err := htmlindex.Name(enc)
	if err != nil {
		return ""
	}
	return name
}

// charsetParam returns what follows "charset=" in a Content-Type or a pragma,
// by the lenient rules for meta elements (HTML, section 2.5.2).
func charsetParam(s []byte) []byte {
	const word = "charset"
	for i := 0; i+len(word) <= len(s); i++ {
		if !equalFold(s[i:i+len(word)], word) {
			continue
		}
		rest := bytes.TrimLeft(s[i+len(word):], spaces)
		if len(rest) == 0 || rest[0] != '=' {
			continue
		}
		rest = bytes.TrimLeft(rest[1:], spaces)
		if len(rest) == 0 {
			return nil
		}
		if q := rest[0]; q == '"' || q == '\'' {
			rest = rest[1:]
			if end := bytes.IndexByte(rest, q); end >= 0 {
				return rest[:end]
			}
			return nil
		}
		if end := bytes.IndexAny(rest, "; \t\n\f\r"); end >= 0 {
			rest = rest[:end]
		}
		return rest
	}
	return nil
}

const spaces = " \t\n\f\r"

// prescan searches markup for a declaration of its charset.
func prescan(b []byte) string {
	if name := xmlEncoding(b); name != "" {
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
	var charset, content, pragma []byte
	first := func(v *[]byte, a *attribute) {
		if *v == nil {
			*v = z.value(a.value)
		}
	}
	for i := range z.attr {
		switch a := &z.attr[i]; {
		case equalFold(a.name, "charset"):
			first(&charset, a)
		case equalFold(a.name, "content"):
			first(&content, a)
		case equalFold(a.name, "http-equiv"):
			first(&pragma, a)
		}
	}
	charset = bytes.TrimSpace(charset)
	if charset == nil && equalFold(pragma, "content-type") {
		charset = charsetParam(content)
	}
	switch name := lookup(charset); name {
	case "utf-16be", "utf-16le":
		// The declaration was readable as ASCII, so it cannot be true.
		return utf8Name
	case "x-user-defined":
		return windows1252Name
	default:
		return name
	}
}

// xmlEncoding reads the encoding of an XML declaration.
func xmlEncoding(b []byte) string {
	const start = "<?xml"
	if len(b) < len(start) || string(b[:len(start)]) != start {
		return ""
	}
	end := bytes.IndexByte(b, '>')
	if end < 0 {
		return ""
	}
	_, rest, ok := bytes.Cut(b[:end], []byte("encoding"))
	rest = bytes.TrimLeft(rest, spaces)
	if !ok || len(rest) == 0 || rest[0] != '=' {
		return ""
	}
	rest = bytes.TrimLeft(rest[1:], spaces)
	if len(rest) == 0 || rest[0] != '"' && rest[0] != '\'' {
		return ""
	}
	label, _, ok := bytes.Cut(rest[1:], rest[:1])
	if !ok {
		return ""
	}
	switch name := lookup(label); name {
	case "utf-16be", "utf-16le":
		return utf8Name
	default:
		return name
	}
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
