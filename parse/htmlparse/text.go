package htmlparse

import (
	"context"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/recrawl/recrawl/internal/directives"
	"github.com/recrawl/recrawl/page"
)

// A gap is what separates the next word from the last one.
type gap uint8

const (
	noGap gap = iota
	space
	newline
)

// folder collects text and folds its white space: one space between words, one
// newline between blocks, none at either end.
type folder struct {
	buf []byte
	gap gap
	max int
	cut bool // more came than max allows
}

func (f *folder) reset() { f.buf, f.gap, f.cut = f.buf[:0], noGap, false }

// brk separates what comes next from what came before.
func (f *folder) brk(g gap) { f.gap = max(f.gap, g) }

func (f *folder) add(s []byte) {
	if f.cut {
		return
	}
	for i := 0; i < len(s); {
		if w := spaceLen(s[i:]); w > 0 {
			f.gap = max(f.gap, space)
			i += w
			continue
		}
		start := i
		for i++; i < len(s); i++ {
			c := s[i]
			if plain[c] {
				continue
			}
			if c == ' ' && i+1 < len(s) && plain[s[i+1]] {
				i++ // one space between words stays as it is
				continue
			}
			if c < 0x80 || spaceLen(s[i:]) > 0 {
				break
			}
		}
		if len(f.buf) > 0 && f.gap != noGap {
			if f.gap == newline {
				f.buf = append(f.buf, '\n')
			} else {
				f.buf = append(f.buf, ' ')
			}
		}
		f.gap = noGap
		f.buf = append(f.buf, s[start:i]...)
		if len(f.buf) > f.max {
			f.buf, f.cut = clip(f.buf, f.max), true
			return
		}
	}
}

// clip returns the longest prefix of b of at most n bytes that ends with a
// whole character, without trailing white space.
func clip(b []byte, n int) []byte {
	if len(b) > n {
		for n > 0 && !utf8.RuneStart(b[n]) {
			n--
		}
		b = b[:n]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\n') {
		b = b[:len(b)-1]
	}
	return b
}

// plain marks the bytes that are part of a word whatever follows them:
// printable ASCII, and non-ASCII that begins no white space.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c > 0x20 && c != 0x7f && c != 0xc2 && c != 0xe1 && c != 0xe2 && c != 0xe3
	}
	return t
}()

// spaceLen returns the length of the white space that s begins with, or 0.
// Control characters count as white space: none belongs in a text, and some do
// harm later.
func spaceLen(s []byte) int {
	c := s[0]
	if plain[c] {
		return 0
	}
	if c < 0x80 {
		return 1
	}
	r, n := utf8.DecodeRune(s)
	if unicode.IsSpace(r) || unicode.IsControl(r) {
		return n
	}
	return 0
}

// Text reads plain text: the text is the body in UTF-8, there is no title and
// no link. The zero value is ready to use.
type Text struct {
	// MaxText is as in [Parser].
	MaxText int
}

// Parse decodes the body. Line ends become "\n", and control characters other
// than tabs become spaces. The charset is determined as for HTML, without
// searching for declarations.
func (t *Text) Parse(ctx context.Context, c *page.Content) (page.Parsed, error) {
	if err := ctx.Err(); err != nil {
		return page.Parsed{}, fmt.Errorf("htmlparse: %s: %w", c.URL, err)
	}
	var out page.Parsed
	body, enc, name := decode(c.Body, c.Type, false)
	out.Charset = name
	maxText := limit(t.MaxText, defaultMaxText)
	stop := &stopper{ctx: ctx}
	// Reading one byte more than is kept shows whether there was more. These
	// readers do not fail, and what one has read before it did would be text.
	b, _ := io.ReadAll(io.LimitReader(newReader(body, enc, stop), int64(maxText)+1))
	out.Truncated = len(b) > maxText || stop.stopped
	out.Text = string(clip(clean(b), maxText))
	out.Directives = directives.Header([]string{c.Robots}).At(c.Time)
	return out, nil
}

// clean normalizes line ends and removes control characters, in place.
func clean(b []byte) []byte {
	w := 0
	for i, c := range b {
		switch {
		case c == '\r':
			if i+1 < len(b) && b[i+1] == '\n' {
				continue
			}
			c = '\n'
		case c < 0x20 && c != '\n' && c != '\t' || c == 0x7f:
			c = ' '
		}
		b[w] = c
		w++
	}
	return b[:w]
}
