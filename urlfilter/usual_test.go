package urlfilter

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/internal/javaregex"
)

// TestUsualURLs demands that what is read at a glance, because most URLs are so, is
// what a closer look says.
func TestUsualURLs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	parts := []string{"a", "b", "ab", "1", "/", "/", "/", ".", "?", "#", ":", "@", "]", "A", "é", "É", "a/b/", "www.a", ".gz", ".JPG", "&sid=0123456789abcdefghij", ";jsessionid=01234567"}
	for range 50_000 {
		var b strings.Builder
		for range r.IntN(14) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		rest := "://" + b.String()
		usual, other := "http"+rest, "gopher"+rest
		if a, b := hostOf(usual), hostOf(other); a != b {
			t.Fatalf("%q: host %q, want %q", usual, a, b)
		}
		path, ok := pathOf(usual)
		if b, is := pathOf(other); path != b || ok != is {
			t.Fatalf("%q: path %q, %v, want %q, %v", usual, path, ok, b, is)
		}
		if _, start, _, _ := pathAt(usual); !mayRepeat(usual[start:]) && (repeats(path, 1) || javaregex.RepeatsSegment(usual)) {
			t.Fatalf("%q: segments that are repeated were not seen", usual)
		}
		if out, _ := (SessionIDs{}).Normalize(Inject, usual); out != usual && !mayHaveSession(usual) {
			t.Fatalf("%q: a session id was not seen", usual)
		}
		for _, ignore := range []bool{false, true} {
			f := NewSuffix(SuffixOptions{IgnoreCase: ignore}, ".gz", ".jpg", "É", "b")
			want := false
			for _, s := range []string{".gz", ".jpg", "É", "b"} {
				text := usual
				if ignore {
					text, s = strings.ToLower(text), strings.ToLower(s)
				}
				want = want || strings.HasSuffix(text, s)
			}
			if f.Accept(usual) != want {
				t.Fatalf("%q: accepted %v, want %v", usual, !want, want)
			}
		}
	}
}
