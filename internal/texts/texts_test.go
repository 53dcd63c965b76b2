package texts

import (
	"fmt"
	"strings"
	"testing"
)

// A text stays what it was when others are added, and its bytes change.
func TestStringsDoNotChange(t *testing.T) {
	var text Pieces
	var got, want []string
	var b []byte
	for i := range 5000 {
		b = fmt.Appendf(b[:0], "text %d", i)
		if i%1000 == 999 {
			b = append(b, strings.Repeat("long", Most/3)...)
		}
		want = append(want, string(b))
		got = append(got, text.Add(b))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("text %d is %.40q, want %.40q", i, got[i], want[i])
		}
	}
	if got := text.Add(nil); got != "" {
		t.Errorf("no bytes are %q", got)
	}
}
