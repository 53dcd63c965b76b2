package robots_test

import (
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol/robots"
)

// asks spells what directives ask for: i, f and a, and the time if there is one.
func asks(d page.Directives) string {
	s := ""
	if d.NoIndex {
		s += "i"
	}
	if d.NoFollow {
		s += "f"
	}
	if d.NoArchive {
		s += "a"
	}
	if !d.UnavailableAfter.IsZero() {
		s += d.UnavailableAfter.UTC().Format(" 2006-01-02 15:04:05")
	}
	return s
}

func TestParseHeader(t *testing.T) {
	for _, tt := range []struct{ values, want string }{
		{"", ""},
		{"noindex", "i"},
		{"NoIndex , NOFOLLOW", "if"},
		{"none", "if"},
		{"none,noarchive", "ifa"},
		{"nocache", "a"},
		{"all", ""},
		{"index, follow", ""},
		{"all, noindex", "i"}, // the stricter holds
		{"noindex, index", "i"},
		{"noindex nofollow", "if"},
		{"noindex;nofollow", "if"},
		{",,;noindex,", "i"},
		{"noindexes, no-index, nofollow=1", ""},
		{"nosnippet, notranslate, noimageindex, indexifembedded", ""},
		{"max-snippet: 0, max-image-preview:large, max-video-preview: -1, nofollow", "f"},

		// Several headers, and names of crawlers in them.
		{"noindex|nofollow", "if"},
		{"bot: noindex", "i"},
		{"BOT : noindex", "i"},
		{"*: noindex", "i"},
		{"otherbot: noindex", ""},
		{"otherbot: noindex, nofollow", ""},
		{"otherbot: noindex|nofollow", "f"},
		{"noindex, otherbot: nofollow", "i"},
		{"BadBot: noindex, nofollow, bot: nofollow", "f"},
		{"bot: nofollow, BadBot: noindex", "f"},
		{"BadBot: noindex, *: nofollow", "f"},
		{"bot: nofollow|otherbot: none|noarchive", "fa"},
		{"bot/2.0: noindex", "i"},
		{"bot: otherbot: noindex", ""},
		{"otherbot: bot: noindex", "i"},
		{"robot: noindex", ""},
		{"bo: noindex", ""},
		{"other bot: noindex, nofollow", ""},
		{": noindex, nofollow", "f"}, // nobody's name, not everybody's
		{"otherbot:, noindex", ""},

		// Dates hold commas, colons and hyphens.
		{"unavailable_after: 25 Jun 2010 15:00:00 PST", " 2010-06-25 23:00:00"},
		{"unavailable_after: 25 Jun 2010 15:00:00 PST, noindex", "i 2010-06-25 23:00:00"},
		{"unavailable_after: Wed, 03 Oct 2029 10:00:00 GMT", " 2029-10-03 10:00:00"},
		{"unavailable_after: Wed, 03 Oct 2029 10:00:00 GMT, nofollow", "f 2029-10-03 10:00:00"},
		{"unavailable_after: Sunday, 06-Nov-94 08:49:37 GMT, noindex", "i 1994-11-06 08:49:37"},
		{"unavailable_after: Sun Nov  6 08:49:37 1994", " 1994-11-06 08:49:37"},
		{"unavailable_after: 06-nov-1994", " 1994-11-06 00:00:00"},
		{"unavailable_after: 2 Jan 06 15:04 -0700", " 2006-01-02 22:04:00"},
		{"unavailable_after: 2029-07-14", " 2029-07-14 00:00:00"},
		{"unavailable_after: 2029-07-14 07:15, nofollow", "f 2029-07-14 07:15:00"},
		{"unavailable_after: 2029-07-14T07:15:30Z", " 2029-07-14 07:15:30"},
		{"unavailable_after: 2029-07-14T07:15:30.5+02:00", " 2029-07-14 05:15:30"},
		{"unavailable_after: 2029-07-14t07:15:30z", " 2029-07-14 07:15:30"},
		{"unavailable_after: July 14, 2029, none", "if 2029-07-14 00:00:00"},
		{"Unavailable_After : 14 july 2029 07:15 cet", " 2029-07-14 07:15:00"},
		{"unavailable_after: 2029-07-14, unavailable_after: 2028-07-14", " 2028-07-14 00:00:00"}, // the earlier
		{"bot: unavailable_after: 2029-07-14, nofollow", "f 2029-07-14 00:00:00"},
		{"otherbot: unavailable_after: 2029-07-14, nofollow", ""},
		{"unavailable_after:", ""},
		{"unavailable_after", ""},
		{"unavailable_after: soon, noindex", "i"},
		{"unavailable_after: Wed, 99 Oct 2029 10:00:00 GMT, noindex", "i"},
		{"unavailable_after: 2029-13-14, noindex", "i"},
		{"unavailable_after: " + strings.Repeat("9", 100) + ", noindex", "i"},
	} {
		if got := asks(robots.ParseHeader(strings.Split(tt.values, "|"), "Bot/1.0")); got != tt.want {
			t.Errorf("%q asks for %q, want %q", tt.values, got, tt.want)
		}
	}
	if got := asks(robots.ParseHeader([]string{"bot: noindex, *: nofollow"}, "")); got != "f" {
		t.Errorf("a crawler without a name: %q", got)
	}
	if got := asks(robots.ParseHeader(nil, "bot")); got != "" {
		t.Errorf("no header: %q", got)
	}
}

func TestParseMeta(t *testing.T) {
	for _, tt := range []struct{ name, content, want string }{
		{"robots", "noindex, nofollow", "if"},
		{" ROBOTS ", "NOARCHIVE", "a"},
		{"bot", "none", "if"},
		{"BOT", "noindex", "i"},
		{"otherbot", "none", ""},
		{"", "none", ""},
		{"*", "none", ""},
		{"description", "noindex", ""},
		{"robots", "unavailable_after: 2029-07-14", " 2029-07-14 00:00:00"},
		{"robots", "otherbot: noindex, nofollow", "f"}, // no names in here
		{"robots", "noindex,follow,max-snippet:5", "i"},
	} {
		if got := asks(robots.ParseMeta(tt.name, tt.content, "bot")); got != tt.want {
			t.Errorf("%s=%q asks for %q, want %q", tt.name, tt.content, got, tt.want)
		}
	}
}

func TestIndexable(t *testing.T) {
	at := time.Date(2029, 7, 14, 0, 0, 0, 0, time.UTC)
	d := page.Directives{UnavailableAfter: at}
	for _, tt := range []struct {
		d    page.Directives
		now  time.Time
		want bool
	}{
		{page.Directives{}, at, true},
		{page.Directives{NoIndex: true}, at, false},
		{d, at.Add(-1), true},
		{d, at, false},
		{d.And(page.Directives{UnavailableAfter: at.Add(1)}), at, false},
		{page.Directives{UnavailableAfter: at.Add(1)}.And(d), at, false},
		{d.And(page.Directives{NoFollow: true}), at.Add(-1), true},
	} {
		if got := tt.d.Indexable(tt.now); got != tt.want {
			t.Errorf("%+v at %v: %v", tt.d, tt.now, got)
		}
	}
}

func FuzzParseHeader(f *testing.F) {
	f.Add("noindex, otherbot: nofollow", "unavailable_after: Wed, 03 Oct 2029 10:00:00 GMT", "bot")
	f.Add("unavailable_after: 2029-07-14T07:15:30+02:00,none", "*:none", "a/1")
	f.Fuzz(func(t *testing.T, a, b, product string) {
		one, two := robots.ParseHeader([]string{a}, product), robots.ParseHeader([]string{b}, product)
		if both := robots.ParseHeader([]string{a, b}, product); asks(both) != asks(one.And(two)) {
			t.Errorf("%q and %q ask for %q, not %q and %q", a, b, asks(both), asks(one), asks(two))
		}
		if got := asks(robots.ParseHeader([]string{"none", a}, product)); !strings.HasPrefix(got, "if") {
			t.Errorf("%q takes back what another header asks for: %q", a, got)
		}
	})
}
