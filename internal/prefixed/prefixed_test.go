package prefixed

import (
	"strings"
	"testing"
)

func TestCutReturnsWhatAppendWrote(t *testing.T) {
	texts := []string{"", "a", strings.Repeat("b", 127), strings.Repeat("c", 128), strings.Repeat("d", 1<<14), "e"}
	var b []byte
	for _, text := range texts {
		b = Append(b, text)
	}
	rest := string(b)
	for _, want := range texts {
		var got string
		var ok bool
		if got, rest, ok = Cut(rest); !ok || got != want {
			t.Fatalf("Cut returned %q, %t, want %q", got, ok, want)
		}
	}
	if rest != "" {
		t.Errorf("%q is left", rest)
	}
}

func TestDamagedTextsAreRefused(t *testing.T) {
	for _, s := range []string{"", "\x01", "\x80", "\x81\x00a", "\x02a", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01a", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02a", strings.Repeat("\x80", 11)} {
		if text, rest, ok := Cut(s); ok || text != "" || rest != "" {
			t.Errorf("Cut(%q) returned %q, %q, %t", s, text, rest, ok)
		}
	}
}
