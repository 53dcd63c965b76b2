package kit

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLongWordsAreShortened(t *testing.T) {
	for _, s := range []string{"", " \tUpdate: a  b\n\tc ", strings.Repeat("short ", 999), strings.Repeat("x", 1000)} {
		if got := shortenWords(s); got != s {
			t.Errorf("%q: got %q", s, got)
		}
	}
	long := `Get: "http://example.com/` + strings.Repeat("é", 30000) + "end\":\n too"
	got := shortenWords(long)
	if !strings.HasPrefix(got, `Get: "http://example.com/é`) || !strings.HasSuffix(got, "éend\":\n too") || !strings.Contains(got, "…(59") || len(got) > 400 || !utf8.ValidString(got) {
		t.Errorf("got %q", got)
	}
}
