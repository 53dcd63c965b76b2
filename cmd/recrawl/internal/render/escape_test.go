package render

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// Whatever the pieces in which a text is written, control characters and invalid bytes are
// escaped, and everything else stays.
func TestEscaper(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "",
		"a\tb\nc — ü 日本\n":           "a\tb\nc — ü 日本\n",
		"\x1b[2J\x1b]0;title\x07":    `\u001b[2J\u001b]0;title\u0007`,
		"a\rb\x00\x7f":               `a\u000db\u0000\u007f`,
		"\u009b31m":                  `\u009b31m`,
		"\xff\xfeü\xc3":              `\xff\xfeü\xc3`,
		"\xe6\x97":                   `\xe6\x97`,
		"\xed\xa0\x80":               `\xed\xa0\x80`,
		"\xf0\x9f\x98\x80\xf0\x9f\n": "\U0001f600" + `\xf0\x9f` + "\n",
		"\ufffd":                     "\ufffd",
	} {
		for size := 1; size <= len(text)+1; size++ {
			var b bytes.Buffer
			e := &Escaper{W: &b}
			for rest := []byte(text); len(rest) > 0; {
				n := min(size, len(rest))
				if got, err := e.Write(rest[:n]); got != n || err != nil {
					t.Fatal(got, err)
				}
				rest = rest[n:]
			}
			if err := e.Flush(); err != nil || b.String() != want {
				t.Errorf("%q in pieces of %d: got %q, %v, want %q", text, size, b.String(), err, want)
			}
		}
	}
}

func TestEscaperKeepsTheMeaningOfJSON(t *testing.T) {
	var want []string
	for r := range rune(0x300) {
		want = append(want, string(r))
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&Escaper{W: &b}).Encode(want); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || strings.Join(got, "") != strings.Join(want, "") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestExactWriterPassesOnEachByte(t *testing.T) {
	var b bytes.Buffer
	w := &CheckedWriter{W: &Escaper{W: &b}}
	Exact(w)
	if w.Write([]byte("\x1b\xff")); b.String() != "\x1b\xff" {
		t.Errorf("%q", b.String())
	}
}
