package signature

import (
	"crypto/md5"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/recrawl/recrawl/page"
)

// MD5 is the MD5 of the bytes of the content, or of its URL if it has none.
// (Nutch: MD5Signature.)
type MD5 struct{}

// Name returns "MD5".
func (MD5) Name() string { return "MD5" }

// Sum returns 16 bytes.
func (MD5) Sum(c *page.Content, _ *page.Parsed) []byte {
	b := c.Body
	if len(b) == 0 {
		b = []byte(c.URL)
	}
	sum := md5.Sum(b)
	return sum[:]
}

// TextMD5 is the MD5 of the text of the page as it stands, in UTF-8, or [MD5] of a
// page without text. (Nutch: TextMD5Signature.)
type TextMD5 struct {
	// NutchCompat encodes the text as Nutch does, in CESU-8. The sum differs
	// only for text with characters beyond the basic plane, or that is not valid
	// UTF-8.
	NutchCompat bool
}

// Name returns "TextMD5", or "TextMD5(nutch)" with NutchCompat.
func (s TextMD5) Name() string {
	if s.NutchCompat {
		return "TextMD5(nutch)"
	}
	return "TextMD5"
}

// Sum returns 16 bytes.
func (s TextMD5) Sum(c *page.Content, p *page.Parsed) []byte {
	if p == nil || p.Text == "" {
		return MD5{}.Sum(c, p)
	}
	h := md5.New()
	if s.NutchCompat && !plain(p.Text) {
		h.Write(cesu8(p.Text))
	} else {
		// Piece by piece: a copy of the whole would be as long as the page.
		var piece [1024]byte
		for rest := p.Text; rest != ""; {
			n := copy(piece[:], rest)
			h.Write(piece[:n])
			rest = rest[n:]
		}
	}
	return h.Sum(nil)
}

// cesu8 encodes each UTF-16 unit of a text separately, so characters beyond the
// basic plane take six bytes instead of four.
func cesu8(s string) []byte {
	b := make([]byte, 0, len(s)+len(s)/2)
	for _, r := range s {
		if r < 0x10000 {
			b = append(b, string(r)...)
			continue
		}
		hi, lo := utf16.EncodeRune(r)
		for _, u := range [...]rune{hi, lo} {
			b = append(b, 0xe0|byte(u>>12), 0x80|byte(u>>6)&0x3f, 0x80|byte(u)&0x3f)
		}
	}
	return b
}

// plain reports whether a text is the same in UTF-8.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] >= 0xf0 {
			return false
		}
	}
	return utf8.ValidString(s)
}
