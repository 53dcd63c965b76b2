package sitemap

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/transform"

	"github.com/recrawl/recrawl/internal/charset"
	"github.com/recrawl/recrawl/internal/unpack"
)

const (
	// sniffLen is how much of a document is examined to determine its charset
	// and form.
	sniffLen = 4096

	// ratioFloor is how much may be decompressed before the ratio counts.
	ratioFloor = 1 << 20
)

// errLimit ends a document that is too long. It is never returned.
var errLimit = errors.New("too long")

// source reads its input until the context ends, and keeps its own failures
// apart from those of readers built on it.
type source struct {
	r    io.Reader
	ctx  context.Context
	n    int64 // bytes read
	max  int64
	over bool  // there are more
	err  error // of the io.Reader or the context
}

func (s *source) Read(b []byte) (int, error) {
	if s.err == nil {
		s.err = s.ctx.Err()
	}
	if s.err != nil {
		return 0, s.err
	}
	if s.over {
		return 0, errLimit
	}
	// One byte more distinguishes a document that is too long from one that
	// just fits.
	b = b[:min(int64(len(b)), s.max-s.n+1)]
	n, err := s.r.Read(b)
	for i := 0; n == 0 && err == nil && len(b) > 0; i++ {
		if i == 100 {
			err = io.ErrNoProgress
			break
		}
		n, err = s.r.Read(b)
	}
	s.n += int64(n)
	if s.n > s.max {
		s.n, s.over = s.max, true
		return n - 1, errLimit
	}
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// limited is a document without compression, as far as it is read.
type limited struct {
	r      io.Reader
	src    *source
	gzip   bool
	n      int64
	max    int64
	ratio  int64
	reason string // why it ended early
}

func (l *limited) Read(b []byte) (int, error) {
	if l.reason != "" {
		return 0, errLimit
	}
	if l.src.ctx.Err() != nil {
		// A few bytes may hold very many, none of which need the source.
		l.src.err = l.src.ctx.Err()
		return 0, l.src.err
	}
	b = b[:min(int64(len(b)), l.max-l.n+1)]
	n, err := l.r.Read(b)
	l.n += int64(n)
	switch {
	case l.n > l.max:
		n, l.n = n-1, l.max
		l.reason, err = fmt.Sprintf("more than %d bytes", l.max), errLimit
	case l.gzip && l.n > ratioFloor && l.n/l.ratio > l.src.n:
		l.reason, err = fmt.Sprintf("more than %d times as long as compressed", l.ratio), errLimit
	case err == nil || err == io.EOF:
	case err == errLimit:
		l.reason = fmt.Sprintf("more than %d bytes", l.max)
	case l.gzip && l.src.err == nil:
		l.reason = "gzip: " + strings.TrimPrefix(err.Error(), "gzip: ")
	}
	return n, err
}

// open determines what the document is, and sets parse or err.
func (r *Reader) open() {
	in := bufio.NewReaderSize(&r.src, 32<<10)
	r.src.max = r.opts.MaxBytes
	r.text = limited{r: in, src: &r.src, max: r.opts.MaxBytes, ratio: int64(r.opts.MaxRatio)}
	// An error comes again with the next read.
	if magic, _ := in.Peek(3); string(magic) == "\x1f\x8b\x08" {
		r.report.Gzip, r.text.gzip = true, true
		z := new(unpack.Gzip)
		r.text.r = z
		if err := z.Reset(in); err != nil {
			r.text.r = failing{err}
		}
	}
	r.scan.init(&r.text)
	r.scan.fill(sniffLen)
	r.decode()
	r.sniff()
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// decode makes the scanner read UTF-8. Sources are trusted in the order of
// browsers: byte order mark, Content-Type, declaration; then the bytes.
func (r *Reader) decode() {
	b := r.scan.window()
	name, mark := charset.Mark(b)
	switch {
	case mark > 0:
	case len(b) >= 4 && b[0] == 0 && b[1] != 0 && b[2] == 0 && b[3] != 0:
		name = "utf-16be"
	case len(b) >= 4 && b[0] != 0 && b[1] == 0 && b[2] != 0 && b[3] == 0:
		name = "utf-16le"
	default:
		name = charset.Lookup(charset.Param([]byte(r.opts.ContentType)))
		if name == "" {
			name = charset.XML(bytes.TrimLeft(b, spaces))
		}
		if strings.HasPrefix(name, "utf-16") {
			name = "" // The bytes say otherwise.
		}
	}
	r.scan.skip(mark)
	if name == "" || name == "utf-8" {
		return
	}
	enc, err := htmlindex.Get(name)
	if err != nil || enc == encoding.Replacement {
		return
	}
	r.scan.recode(enc)
}

// recode makes the scanner read the rest in another charset.
func (s *scanner) recode(enc encoding.Encoding) {
	rest := s.in
	if s.err != nil {
		rest = failing{s.err}
	}
	rest = io.MultiReader(bytes.NewReader(bytes.Clone(s.window())), rest)
	s.init(transform.NewReader(rest, enc.NewDecoder()))
	s.fill(sniffLen)
}

// sniff determines the form of the document from its beginning.
func (r *Reader) sniff() {
	s := &r.scan
	for s.fill(1); s.r < s.w && (isSpace(s.buf[s.r]) || s.buf[s.r] == 0); s.fill(1) {
		s.skip(1)
	}
	if bytes.HasPrefix(s.window(), []byte("\xef\xbb\xbf")) { // a second mark, or one after blanks
		s.skip(3)
	}
	s.fill(sniffLen)
	b := s.window()
	switch {
	case len(b) == 0:
		r.end()
	case b[0] == '<':
		r.markup()
	case r.isText(b):
		r.lines()
	case bytes.IndexByte(b, '<') >= 0:
		// Maybe messages of the program that made the document.
		r.markup()
	default:
		r.end()
	}
}

// isText reports whether a document consists of lines, each of them a URL.
func (r *Reader) isText(b []byte) bool {
	plain := strings.HasPrefix(strings.ToLower(strings.TrimSpace(r.opts.ContentType)), "text/plain")
	for line := range bytes.Lines(b) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0 || line[0] == '#':
		case absolute(line):
			return true
		case !plain || bytes.IndexByte(line, '<') >= 0 || bytes.IndexByte(line, 0) >= 0:
			return false
		}
	}
	return false
}

// end sets err, and says in the report whether the document was cut.
func (r *Reader) end() {
	r.err = io.EOF
	switch {
	case r.src.err != nil:
		r.err = r.src.err
		r.cut(r.src.err.Error())
	case r.text.reason != "":
		r.cut(r.text.reason)
	case r.scan.err != nil && r.scan.err != io.EOF:
		r.cut(r.scan.err.Error())
	case r.unfinished != "":
		r.cut(r.unfinished)
	case r.opts.Truncated:
		r.cut("the document was cut before")
	}
	if r.report.Format != NoFormat || r.src.err != nil {
		return
	}
	switch {
	case r.text.reason != "":
		r.err = fmt.Errorf("%s: %w", r.text.reason, ErrFormat)
	case r.text.n == 0:
		r.err = fmt.Errorf("empty: %w", ErrFormat)
	default:
		r.err = ErrFormat
	}
}

// whole reports whether the end of the input is the end of the document.
func (r *Reader) whole() bool { return r.scan.err == io.EOF && !r.opts.Truncated }

const spaces = " \t\r\n"

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// valid returns b as UTF-8. An invalid byte, in a document declared as UTF-8 or
// not at all, was most likely written as windows-1252.
func valid(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	s := make([]rune, 0, len(b))
	for len(b) > 0 {
		c, n := utf8.DecodeRune(b)
		if c == utf8.RuneError && n == 1 {
			c = charmap.Windows1252.DecodeByte(b[0])
		}
		s, b = append(s, c), b[n:]
	}
	return string(s)
}
