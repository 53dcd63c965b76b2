package directives_test

import (
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
		{[]string{"unavailable_after: 25 Jun 2010 15:00:00 PST"}, "unavailable_after: 25 jun 2010 15:00:00 pst"},
		{[]string{"otherbot: unavailable_after: 25 Jun 2010 15:00:00 PST, noindex"}, ""},
		{[]string{"max-snippet: 50, max-image-preview: large"}, "max-snippet: 50,max-image-preview: large"},
		{[]string{"bot: max-snippet:0"}, "max-snippet: 0"},
		{[]string{",, ,noindex,"}, "noindex"},
		{[]string{"no\x00index", "caf\xe9", strings.Repeat("x", 1000)}, ""},
		{[]string{":noindex", ":"}, ""},
		{[]string{"other bot: noindex, nofollow"}, ""},
		{[]string{"noindex nofollow; noai"}, "noindex,nofollow,noai"},
		{[]string{"unavailable_after: Wed, 03 Oct 2029 10:00:00 GMT", "unavailable_after: Thu, 03 Oct 2029 10:00:00 GMT"}, "unavailable_after: wed, 03 oct 2029 10:00:00 gmt,unavailable_after: thu, 03 oct 2029 10:00:00 gmt"},
		{[]string{strings.Repeat("x,", 100_000) + "noindex"}, "x,noindex"},
		{[]string{"other: noindex, *: nofollow"}, "nofollow"},
		{[]string{"unavailable_after: Wed, 03 Oct 2029 10:00:00 GMT, noindex"}, "unavailable_after: wed, 03 oct 2029 10:00:00 gmt,noindex"},
		{[]string{"unavailable_after: Wednesday, 03-Oct-29 10:00:00 GMT", "none"}, "unavailable_after: wednesday, 03-oct-29 10:00:00 gmt,none"},
	} {
		if got := directives.Text(c.values, "bot"); got != c.want {
			t.Errorf("%q: got %q, want %q", c.values, got, c.want)
		}
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
		if short := strings.Count(got, ",") < 60 && len(v) < 100; short && directives.Header([]string{got}) != want {
			t.Errorf("%q asks for %+v, but as %q for %+v", v, want, got, directives.Header([]string{got}))
		}
		if short := strings.Count(got, ",") < 60 && len(v) < 100; short && directives.List(got) != want {
			t.Errorf("%q asks for %+v, but as %q in a meta element for %+v", v, want, got, directives.List(got))
		}
		if again := directives.Text([]string{got}); again != got {
			t.Errorf("%q is kept as %q and then as %q", v, got, again)
		}
	})
}
