package htmlparse

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
)

// FuzzFolder compares folded text with its definition.
func FuzzFolder(f *testing.F) {
	for _, s := range []string{
		"one two three  four five", "1234567 8901234567 ", "exactly8 exactly8 exactly8", "       !a       !b", "a !b !c !d !e !f !g !h", "tab\tand\nline\rfeed\x0bx\x00y\x7fz",
		"één twee drie  vier vijf zes zeven", "日本語　の 文章。\u2028次", "a\u00a0b\u00a0\u00a0c d", "abcdefg\xffhijk\xc2", " ! ! ! ! ! ! ! ! ! ! !", "12345678 !2345678",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.ToValidUTF8(b, []byte("?"))
		words := strings.FieldsFunc(string(b), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
		want := strings.Join(words, " ")
		got := folder{max: none}
		got.add(b)
		if string(got.buf) != want {
			t.Errorf("%q: %q, want %q", b, got.buf, want)
		}
	})
}
