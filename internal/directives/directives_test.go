package directives_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/internal/directives"
)

func TestText(t *testing.T) {
	for _, c := range []struct {
		values []string
		want   string
	}{
		{nil, ""},
		{[]string{"noindex"}, "noindex"},
		{[]string{" NoIndex , NOFOLLOW "}, "noindex,nofollow"},
		{[]string{"noindex", "nofollow, noindex"}, "noindex,nofollow"},
		{[]string{"otherbot: noindex"}, ""},
		{[]string{"Bot: noindex, nofollow"}, "noindex,nofollow"},
		{[]string{"otherbot: noindex, nofollow", "noarchive"}, "noarchive"},
		{[]string{"otherbot: noindex, bot: nofollow"}, "nofollow"},
		{[]string{"noarchive, otherbot: noindex, nofollow"}, "noarchive"},
		{[]string{"*: noindex"}, "noindex"},
		{[]string{"bot:noindex"}, "noindex"},
		{[]string{"bottle: noindex"}, ""},
		{[]string{"unavailable_after: 25 Jun 2010 15:00:00 PST"}, "unavailable_after: 2010-06-25t23:00:00z"},
		{[]string{"otherbot: unavailable_after: 25 Jun 2010 15:00:00 PST, noindex"}, ""},
		{[]string{"max-snippet: 50, max-image-preview: large"}, "max-snippet: 50,max-image-preview: large"},
		{[]string{"bot: max-snippet:0"}, "max-snippet: 0"},
		{[]string{",, ,noindex,"}, "noindex"},
		{[]string{"no\x00index", "caf\xe9", strings.Repeat("x", 1000)}, ""},
		{[]string{":noindex", ":"}, ""},
		{[]string{"other bot: noindex, nofollow"}, ""},
		{[]string{"noindex nofollow; noai"}, "noindex,nofollow,noai"},
		{[]string{"unavailable_after: Wed, 03 Oct 2029 10:00:00 GMT", "unavailable_after: Thu, 03 Oct 2029 10:00:00 GMT"}, "unavailable_after: 2029-10-03t10:00:00z"},
		{[]string{strings.Repeat("x,", 100_000) + "noindex"}, "noindex,x"},
		{[]string{"other: noindex, *: nofollow"}, "nofollow"},
		{[]string{"unavailable_after: Wed, 03 Oct 2029 10:00:00 GMT, noindex"}, "noindex,unavailable_after: 2029-10-03t10:00:00z"},
		{[]string{"unavailable_after: Wednesday, 03-Oct-29 10:00:00 GMT", "none"}, "noindex,nofollow,unavailable_after: 2029-10-03t10:00:00z"},
		{[]string{"index, follow, all"}, ""},
		{[]string{"unavailable_after: Soon"}, "unavailable_after: soon"},
		{[]string{"nosnippet, max-snippet:\xff, none", "nocache"}, "noindex,nofollow,noarchive,nosnippet"},
	} {
		if got := directives.Text(c.values, "bot"); got != c.want {
			t.Errorf("%.200q: got %.200q, want %q", c.values, got, c.want)
		}
	}
}

// What is understood is kept, however much stands before it that is not.
func TestTextKeepsWhatCounts(t *testing.T) {
	var all []string
	for i := range 1000 {
		all = append(all, fmt.Sprintf("unknown%d", i))
	}
	got := directives.Text(append(all, "noindex", "unavailable_after: 2029-07-14"), "bot")
	if want := "noindex,unavailable_after: 2029-07-14t00:00:00z,unknown0,unknown1"; !strings.HasPrefix(got, want) || strings.Count(got, ",") != 63 {
		t.Errorf("%d directives are kept: %.200s", strings.Count(got, ",")+1, got)
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"noindex", "bot: noindex, nofollow", "a:b:c,,:", "unavailable_after: x, y", "\xff\x00,\n"} {
		f.Add(s, "bot")
	}
	f.Fuzz(func(t *testing.T, v, agent string) {
		got := directives.Text([]string{v, v}, agent)
		if len(got) > 64*129 || strings.ToLower(got) != got || strings.IndexFunc(got, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
			t.Errorf("%q: unsafe %q", v, got)
		}
		// What is kept asks for what was sent, whoever reads it.
		want := directives.Header([]string{v}, agent)
		if directives.Header([]string{got}) != want {
			t.Errorf("%q asks for %+v, but as %q for %+v", v, want, got, directives.Header([]string{got}))
		}
		if directives.List(got) != want {
			t.Errorf("%q asks for %+v, but as %q in a meta element for %+v", v, want, got, directives.List(got))
		}
		if again := directives.Text([]string{got}); again != got {
			t.Errorf("%q is kept as %q and then as %q", v, got, again)
		}
	})
}
