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

func TestDates(t *testing.T) {
	for date, want := range map[string]string{
		"25 Jun 2010 15:00:00 PST":        "2010-06-25t23:00:00z",
		"25 Jun 2010 15:00 EST":           "2010-06-25t20:00:00z",
		"5 jun 2010":                      "2010-06-05t00:00:00z",
		"05 Jun 10":                       "2010-06-05t00:00:00z",
		"5 Jun 10 9:00:00":                "2010-06-05t09:00:00z",
		"5 June 2010 09:00":               "2010-06-05t09:00:00z",
		"25 May 2010":                     "2010-05-25t00:00:00z",
		"25-Jun-2010":                     "2010-06-25t00:00:00z",
		"5-Jun-10":                        "2010-06-05t00:00:00z",
		"Friday, 25-Jun-10 15:00:00 GMT":  "2010-06-25t15:00:00z",
		"Fri, 25-Jun-2010 15:00 GMT":      "2010-06-25t15:00:00z",
		"2010-06-25":                      "2010-06-25t00:00:00z",
		"2010-06-25T15:00:00+02:00":       "2010-06-25t13:00:00z",
		"2010-06-25t15:00:00.5z":          "2010-06-25t15:00:00.5z",
		"2010-06-25 15:00 -0700":          "2010-06-25t22:00:00z",
		"Jun 25, 2010":                    "2010-06-25t00:00:00z",
		"June 25, 2010  15:00":            "2010-06-25t15:00:00z",
		"Jun 25, 2010 15:00:00 PDT":       "2010-06-25t22:00:00z",
		"Fri Jun 25 15:00:00 2010":        "2010-06-25t15:00:00z",
		"Fri, 25 Jun 2010 15:00:00 +0000": "2010-06-25t15:00:00z",
		// Not dates.
		"1": "", "soon": "", "25 Jun": "", "2010": "", "Jun 2010": "", "2010-06": "", "31 Jun 2010": "", "25 Jun 2010 25:00": "",
		"25 Jun 2010 15:00:00:00": "", "25-06-2010": "", "Jun 25 2010": "", "06/25/2010": "", "0000-01-01": "", "2010-06-25 15": "",
	} {
		got := directives.Text([]string{"unavailable_after: " + date})
		d := directives.List("unavailable_after: " + date)
		if want != "" && got != "unavailable_after: "+want || want == "" && !d.UnavailableAfter.IsZero() || want != "" && d.UnavailableAfter.IsZero() {
			t.Errorf("%q: %s, %v", date, got, d.UnavailableAfter)
		}
	}
}

// A list may hold a hundred thousand invalid dates: each of the first costs a few attempts,
// which allocate an error each, and the others cost next to nothing.
func TestInvalidDates(t *testing.T) {
	const n = 64
	for date, most := range map[string]float64{"1": 20, "1 JAN 2020 11:11:1a": 50, "1-JAN-2020 11:11:1a": 40, "JAN 1, 2020 1:1a": 40, "2020-01-1a": 30} {
		list := strings.Repeat("unavailable_after:"+date+",", n)
		if got := testing.AllocsPerRun(10, func() { directives.List(list) }) / n; got > most {
			t.Errorf("%s: %v allocations, want %v at most", date, got, most)
		}
		few := testing.AllocsPerRun(10, func() { directives.List(list) })
		if got := testing.AllocsPerRun(10, func() { directives.List(strings.Repeat(list, 10)) }); got > few+100 {
			t.Errorf("%s: %v allocations for %d, but %v for %d", date, got, 10*n, few, n)
		}
	}
}

// After too many dates, other directives still count.
func TestBehindTooManyDates(t *testing.T) {
	list := "unavailable_after: 2030-01-01," + strings.Repeat("unavailable_after: x,", 100) + "unavailable_after: 2029-01-01, noindex"
	if got := directives.List(list); !got.NoIndex || got.UnavailableAfter.Year() != 2030 {
		t.Errorf("%+v", got)
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
		// The stored value means the same as the header.
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
