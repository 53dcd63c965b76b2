package sitemap

import (
	"bytes"
	"io"
	"strconv"
	"unicode/utf8"
)

// scanner splits possibly broken markup into tags, in a buffer of fixed size:
// what does not fit is not needed.
type scanner struct {
	in     io.Reader
	buf    []byte
	r, w   int   // what is read but not yet used is buf[r:w]
	err    error // of in, once what came before is used up
	faults int

	// The tag that next found. Its parts are overwritten by the next read.
	prefix, local []byte // of its name, in lower case
	attrs         []byte
	empty         bool // <tag/>
}

type token uint8

const (
	endOfInput token = iota
	startTag
	endTag
)

// bufLen limits the length of a tag whose attributes are seen.
const bufLen = 64 << 10

func (s *scanner) init(in io.Reader) {
	s.in, s.r, s.w, s.err = in, 0, 0, nil
	if s.buf == nil {
		s.buf = make([]byte, bufLen)
	}
}

func (s *scanner) window() []byte { return s.buf[s.r:s.w] }

func (s *scanner) skip(n int) { s.r = min(s.r+n, s.w) }

// fill reads until the window has n bytes, and reports whether it has.
func (s *scanner) fill(n int) bool {
	for s.w-s.r < n {
		if s.err != nil || n > len(s.buf) {
			return false
		}
		if s.r > 0 && s.r+n > len(s.buf) || s.r == s.w {
			s.w = copy(s.buf, s.buf[s.r:s.w])
			s.r = 0
		}
		var got int
		for range 100 {
			if got, s.err = s.in.Read(s.buf[s.w:]); got > 0 || s.err != nil {
				break
			}
		}
		if got == 0 && s.err == nil {
			s.err = io.ErrNoProgress
		}
		s.w += got
	}
	return true
}

// more reads at least one more byte into the window, and reports whether it
// did.
func (s *scanner) more() bool { return s.fill(s.w - s.r + 1) }

// next advances to the next tag. The characters before it, decoded, are added
// to v.
func (s *scanner) next(v *value) token {
	v.mark()
	for {
		i := bytes.IndexByte(s.window(), '<')
		if i < 0 {
			v.add(s.window())
			s.r = s.w
			if !s.fill(1) {
				return endOfInput
			}
			continue
		}
		v.add(s.window()[:i])
		s.r += i
		if !s.fill(2) {
			return endOfInput
		}
		switch c := s.buf[s.r+1]; {
		case nameStart(c):
			v.decode()
			return s.tag(1, startTag)
		case c == '/':
			v.decode()
			return s.tag(2, endTag)
		case c == '?':
			v.decode()
			s.instruction()
		case c == '!':
			v.decode()
			s.declaration(v)
		default:
			s.faults++
			v.add(s.window()[:1])
			s.r++
		}
	}
}

// declaration skips a comment, a document type, or a CDATA section, whose
// characters are added to v.
func (s *scanner) declaration(v *value) {
	s.fill(9)
	switch b := s.window(); {
	case bytes.HasPrefix(b, []byte("<!--")):
		s.r += 4
		s.until("-->", nil)
	case bytes.HasPrefix(b, []byte("<![CDATA[")):
		s.r += 9
		s.until("]]>", v)
		v.mark()
	default:
		s.doctype()
	}
}

// doctype skips a document type with everything declared in it.
func (s *scanner) doctype() {
	depth := 0
	for s.fill(1) {
		switch c := s.buf[s.r]; c {
		case '<':
			if s.fill(4) && string(s.buf[s.r:s.r+4]) == "<!--" {
				s.r += 4
				s.until("-->", nil)
				continue
			}
			depth++
		case '>':
			depth--
		case '"', '\'':
			s.r++
			s.until(string(c), nil)
			continue
		}
		s.r++
		if depth == 0 {
			return
		}
	}
}

// instruction skips a processing instruction. That of XML itself, which often
// lacks the second question mark, ends at the first ">".
func (s *scanner) instruction() {
	s.fill(5)
	if bytes.HasPrefix(s.window(), []byte("<?xml")) {
		s.until(">", nil)
	} else {
		s.until("?>", nil)
	}
}

// until skips everything up to and including the end, and adds it to v.
func (s *scanner) until(end string, v *value) {
	for {
		b := s.window()
		if i := bytes.Index(b, []byte(end)); i >= 0 {
			v.add(b[:i])
			s.r += i + len(end)
			return
		}
		// The end may begin in the window.
		n := max(len(b)-len(end)+1, 0)
		v.add(b[:n])
		s.r += n
		if !s.more() {
			s.r = s.w
			return
		}
	}
}

// tag reads a tag, whose name begins at the given index of the window.
func (s *scanner) tag(at int, t token) token {
	n, end := s.tagLen()
	if n == 0 {
		s.r = s.w
		return endOfInput
	}
	s.prefix, s.local, s.attrs, s.empty = nil, nil, nil, true
	if end == 0 {
		// Skip all of it, or it would be searched again and again.
		s.faults++
		s.r = s.w
		s.until(">", nil)
		return t
	}
	b := s.buf[s.r+at : s.r+n]
	s.r += n
	if end == '>' {
		b = b[:len(b)-1]
	}
	if k := len(b) - 1; k >= 0 && b[k] == '/' {
		b = b[:k]
	} else {
		s.empty = false
	}
	i := 0
	for i < len(b) && !isSpace(b[i]) && b[i] != '/' {
		b[i] = lower(b[i])
		i++
	}
	s.local, s.attrs = b[:i], b[i:]
	if j := bytes.IndexByte(s.local, ':'); j >= 0 {
		s.prefix, s.local = s.local[:j], s.local[j+1:]
	}
	return t
}

// tagLen returns the length of the tag at the start of the window and what ends
// it: ">"; "<", which is not part of it, if it is not closed; nothing if it is
// longer than the buffer. The length is zero if the input ends within the tag.
func (s *scanner) tagLen() (n int, end byte) {
	var quote byte
	equals, closed := false, 0
	for i := 1; ; i++ {
		if s.r+i >= s.w {
			if i >= len(s.buf) {
				return i, 0
			}
			if !s.fill(i + 1) {
				return 0, 0
			}
		}
		c := s.buf[s.r+i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0 && c == '>' && closed == 0:
			closed = i + 1
		case quote != 0 && c == '<' && closed > 0:
			// The quote is not closed, and this is the next tag.
			s.faults++
			return closed, '>'
		case quote != 0:
		case c == '>':
			return i + 1, '>'
		case c == '<':
			s.faults++
			return i, '<'
		case equals && (c == '"' || c == '\''):
			quote, closed = c, 0
		}
		equals = quote == 0 && (c == '=' || equals && isSpace(c))
	}
}

// attr returns the next attribute of the tag, its name in lower case, its value
// not decoded.
func (s *scanner) attr() (name, val []byte, ok bool) {
	b := s.attrs
	for len(b) > 0 && (isSpace(b[0]) || b[0] == '/' || b[0] == '=') {
		b = b[1:]
	}
	if len(b) == 0 {
		return nil, nil, false
	}
	i := 0
	for i < len(b) && !isSpace(b[i]) && b[i] != '=' {
		b[i] = lower(b[i])
		i++
	}
	name, b = b[:i], bytes.TrimLeft(b[i:], spaces)
	if len(b) == 0 || b[0] != '=' {
		s.attrs = b
		return name, nil, true
	}
	b = bytes.TrimLeft(b[1:], spaces)
	switch {
	case len(b) > 0 && (b[0] == '"' || b[0] == '\''):
		val, b, _ = bytes.Cut(b[1:], b[:1])
	default:
		i := 0
		for i < len(b) && !isSpace(b[i]) {
			i++
		}
		val, b = b[:i], b[i:]
	}
	s.attrs = b
	return name, val, true
}

func nameStart(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c == ':' || c >= utf8.RuneSelf
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// value collects the characters of an element. A nil value collects nothing.
type value struct {
	buf  []byte
	from int // what is not decoded yet begins here
	max  int
	over bool // there were more than max bytes
}

func (v *value) reset(max int) { *v = value{buf: v.buf[:0], max: max} }

func (v *value) add(b []byte) {
	if v == nil || len(b) == 0 {
		return
	}
	if len(v.buf) == 0 {
		b = bytes.TrimLeft(b, spaces)
	}
	if room := v.max - len(v.buf); len(b) > room {
		v.over = v.over || len(bytes.TrimRight(b, spaces)) > room
		b = b[:room]
	}
	v.buf = append(v.buf, b...)
}

func (v *value) mark() {
	if v != nil {
		v.from = len(v.buf)
	}
}

// decode replaces the references among the characters after the mark.
func (v *value) decode() {
	if v != nil {
		v.buf = append(v.buf[:v.from], unescape(v.buf[v.from:])...)
		v.from = len(v.buf)
	}
}

// unescape replaces, in place, numeric references and those to the five
// entities of XML. All others stay as they are.
func unescape(b []byte) []byte {
	i := bytes.IndexByte(b, '&')
	if i < 0 {
		return b
	}
	out := b[:i]
	for b = b[i:]; len(b) > 0; {
		if b[0] != '&' {
			n := bytes.IndexByte(b, '&')
			if n < 0 {
				n = len(b)
			}
			out, b = append(out, b[:n]...), b[n:]
			continue
		}
		n := bytes.IndexByte(b[:min(len(b), 12)], ';')
		c := rune(-1)
		if n > 0 {
			c = reference(string(b[1:n]))
		}
		if c < 0 {
			out, b = append(out, '&'), b[1:]
			continue
		}
		out, b = utf8.AppendRune(out, c), b[n+1:]
	}
	return out
}

// reference returns the character that a name stands for, or -1.
func reference(name string) rune {
	switch name {
	case "amp":
		return '&'
	case "lt":
		return '<'
	case "gt":
		return '>'
	case "quot":
		return '"'
	case "apos":
		return '\''
	}
	if len(name) < 2 || name[0] != '#' {
		return -1
	}
	digits, base := name[1:], 10
	if digits[0]|0x20 == 'x' {
		digits, base = digits[1:], 16
	}
	n, err := strconv.ParseUint(digits, base, 32)
	if err != nil || n == 0 || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
		return -1
	}
	return rune(n)
}
