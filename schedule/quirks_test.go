package schedule

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

func TestNutchHost(t *testing.T) {
	for url, want := range map[string]string{
		"http://www.example.com/":        "www.example.com",
		"http://WWW.Example.com/":        "WWW.Example.com", // and so is not found
		"http://www.example.com:8080/":   "www.example.com",
		"http://www.example.com:8o/":     "",
		"http://u:p@www.example.com?q":   "www.example.com",
		"http://my_host.example.com/":    "",
		"http://bücher.example/":         "",
		"http://example.123/":            "",
		"http://-a.example/":             "",
		"http://a-.example/":             "",
		"http://a..example/":             "",
		"http://a.example./":             "a.example.",
		"http://127.0.0.1/":              "127.0.0.1",
		"http://127.0.0.256/":            "",
		"http://[::1]:80/":               "[::1]",
		"http://[::1":                    "",
		"http://www.example.com/a b":     "",
		"http://www.example.com/a|b":     "",
		"http://www.example.com/%zz":     "",
		"http://www.example.com/%20":     "www.example.com",
		"http://www.example.com/bücher/": "www.example.com",
		"mailto:a@example.com":           "",
		"http:///":                       "",
		"":                               "",
	} {
		if got := nutchHost(url); got != want {
			t.Errorf("%q: %q, want %q", url, got, want)
		}
	}
}

// Bounds of hosts as in Nutch's sample file, and some that Nutch ignores.
func TestNutchHostBounds(t *testing.T) {
	hosts, err := ParseHostIntervals(strings.NewReader(
		"www.example.com default 1728000\nwww.apache.org 1296000 0\nnutch.apache.org 864000 2160000\n" +
			"low.example 10 100\nhigh.example 100 99999999\nempty.example 0 0\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := Adaptive{Default: Default{NutchCompat: true}, HostIntervals: hosts}
	for url, want := range map[string][2]float32{
		"http://www.example.com/":  {60, 1728000},
		"http://www.apache.org/x":  {1296000, 31536000},
		"http://nutch.apache.org/": {864000, 2160000},
		"http://Nutch.apache.org/": {60, 31536000},
		"http://low.example/":      {60, 31536000},
		"http://high.example/":     {60, 31536000},
		"http://empty.example/":    {60, 31536000},
		"http://other.example/":    {60, 31536000},
	} {
		if least, most := s.nutchBounds(url); least != want[0] || most != want[1] {
			t.Errorf("%s: %g to %g, want %g to %g", url, least, most, want[0], want[1])
		}
	}
}

func TestNutchContentType(t *testing.T) {
	s := MimeAdaptive{Adaptive: Adaptive{Default: Default{NutchCompat: true}}, Types: map[string]AdaptiveRates{"text/html": {1, 0.5}}}
	for _, c := range []struct {
		visit, meta string
		want        time.Duration
	}{
		{"text/html", "", 200 * time.Second},
		{"", "text/html; charset=utf-8", 200 * time.Second},
		{"", "text/html ;charset=utf-8", 140 * time.Second}, // not trimmed
		{"", "Text/HTML", 140 * time.Second},                // nor in lower case
		{"text/plain", "text/html", 140 * time.Second},
		{"", "", 140 * time.Second},
	} {
		d := crawldb.Datum{Interval: 100 * time.Second}
		if c.meta != "" {
			d.Meta.Set("Content-Type", c.meta)
		}
		if d = s.Fetched(d, Visit{Time: t0, Change: Unchanged, ContentType: c.visit}); d.Interval != c.want {
			t.Errorf("%q, %q: %v, want %v", c.visit, c.meta, d.Interval, c.want)
		}
	}
	if d := s.Fetched(crawldb.Datum{Interval: 100 * time.Second}, Visit{Time: t0, Change: Changed, ContentType: "text/html"}); d.Interval != time.Minute { // the least
		t.Errorf("changed: %v", d.Interval)
	}
}

// TestSelected corrects only the copy on the fetch list.
func TestSelected(t *testing.T) {
	most := 7776000 * time.Second
	for _, c := range []struct {
		ahead, interval time.Duration
		nutch           bool
		due             bool
		at, becomes     time.Duration
	}{
		{most, 2 * most, true, false, most, 2 * most},
		{most + time.Millisecond, most, true, true, 0, most},
		{most + time.Millisecond, most + time.Second, true, true, 0, 6998400 * time.Second},
		{most + time.Millisecond, most + time.Second, false, true, most + time.Millisecond, most + time.Second},
		{-time.Second, 2 * most, true, true, -time.Second, 2 * most},
	} {
		for _, s := range []FetchSchedule{Default{NutchCompat: c.nutch}, Adaptive{Default: Default{NutchCompat: c.nutch}}} {
			d := crawldb.Datum{FetchTime: t0.Add(c.ahead), Interval: c.interval}
			due := s.Due(&d, t0)
			if got := Selected(s, d, t0); due != c.due || got.FetchTime.Sub(t0) != c.at || got.Interval != c.becomes {
				t.Errorf("%+v: due is %v, %+v", c, due, got)
			}
		}
	}
	d := crawldb.Datum{FetchTime: t0.Add(2 * most)}
	if got := Selected(struct{ FetchSchedule }{Default{NutchCompat: true}}, d, t0); !got.FetchTime.Equal(d.FetchTime) {
		t.Errorf("a schedule without the method: %+v", got)
	}
}

// The time of the last visit is in the record, and no schedule derives it from the due time,
// which may have been moved.
func TestLastFetch(t *testing.T) {
	at := t0.Add(-time.Hour)
	d := crawldb.Datum{URL: "http://a.example/", Status: crawldb.Fetched, FetchTime: t0.Add(-time.Minute), Interval: day, LastFetch: at}
	v := Visit{Time: t0, PrevFetch: at, Change: Changed}
	for _, s := range []FetchSchedule{Default{}, Adaptive{}, MimeAdaptive{}, Learned{}, Default{NutchCompat: true}} {
		for i, got := range []crawldb.Datum{s.Init(d, t0), s.Fetched(d, v), s.Retry(d, v), s.Gone(d, v), s.Force(d, t0), Selected(s, d, t0)} {
			if !got.LastFetch.Equal(at) {
				t.Errorf("%T, method %d: last visited at %v", s, i, got.LastFetch)
			}
		}
	}
}

func TestNutchRetriesAreAByte(t *testing.T) {
	d := crawldb.Datum{Retries: 254}
	for _, want := range []int{255, 0, 1} {
		if d = (Default{NutchCompat: true}).Retry(d, Visit{Time: t0}); d.Retries != want {
			t.Errorf("%d, want %d", d.Retries, want)
		}
	}
}

// never visits a page that never changes whenever it is due, looked at every hour,
// and returns the gaps between the visits.
func never(s FetchSchedule, span time.Duration) (gaps []time.Duration) {
	d := s.Init(crawldb.Datum{}, t0)
	last := t0
	for at := t0; at.Before(t0.Add(span)); at = at.Add(time.Hour) {
		if !s.Due(&d, at) {
			continue
		}
		v := Visit{Time: at, PrevFetch: d.LastFetch, PrevModified: d.Modified}
		if at != t0 {
			gaps = append(gaps, at.Sub(last))
			v.Change = Unchanged
		}
		mod := d.Modified
		if d = s.Fetched(d, v); v.Change == Unchanged {
			d.Modified = mod
		}
		d.LastFetch, last = at, at
	}
	return gaps
}

// What is left of NUTCH-1564: a page that never changes, over 42 days with at most
// 7 days between visits, and over six years with at most a year. Nutch comes ever
// sooner as the page ages, down to the hour at which it is looked at, until 0.3 of
// the age exceed the maximum. Ours never comes sooner than before.
func TestSyncDelta(t *testing.T) {
	for _, c := range []struct {
		name        string
		most, span  time.Duration
		nutch, ours int
	}{
		{"42 days", 7 * day, 42 * day, 21, 9},
		{"six years", 365 * day, 6 * 365 * day, 40, 21},
	} {
		s := Adaptive{Default: Default{DefaultInterval: day, MaxInterval: c.most}, AdaptiveMax: c.most}
		ours := never(s, c.span)
		s.NutchCompat = true
		nutch := never(s, c.span)
		if len(nutch) != c.nutch || slices.Min(nutch) != time.Hour {
			t.Errorf("%s: Nutch has gaps of %v, want %d and an hour among them", c.name, nutch, c.nutch)
		}
		if len(ours) != c.ours || !slices.IsSorted(ours) {
			t.Errorf("%s: gaps of %v, want %d, each as long as the one before", c.name, ours, c.ours)
		}
	}
}

// What was learned of a page lasts when the page rests and when it stirs: the
// laws of Adaptive, on random lives of pages of hosts with bounds.
func TestAdaptiveLaws(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	span := func(most time.Duration) time.Duration { return time.Duration(rnd.Int64N(int64(most))) }
	for life := range 2000 {
		s := Adaptive{
			IncRate: rnd.Float64() * 2, DecRate: rnd.Float64(), SyncRate: rnd.Float64()*2 - 0.3,
			MinInterval: span(day), AdaptiveMax: day + span(200*day),
		}
		s.MaxInterval = day + span(200*day)
		s.HostIntervals = map[string]Bounds{"a.example": {Min: span(2 * day), Max: span(300 * day)}}
		url := []string{"http://a.example/", "http://b.example/"}[rnd.IntN(2)]
		least, most := s.bounds(url)
		d := s.Init(crawldb.Datum{URL: url, Interval: span(100 * day)}, t0)
		at := t0
		for visit := range 50 {
			v := Visit{Time: at, Change: Change(rnd.IntN(3)), PrevFetch: d.LastFetch, PrevModified: d.Modified}
			if rnd.IntN(2) == 0 {
				v.Modified = at.Add(-span(1000 * day))
			}
			before := min(max(d.Interval.Round(time.Second), least), most)
			after := s.Fetched(d, v)
			gap := after.FetchTime.Sub(at)
			fail := func(law string) {
				t.Fatalf("life %d, visit %d (%v): %s: interval %v after %v, next after %v, bounds %v to %v, %+v", life, visit, v.Change, law, after.Interval, before, gap, least, most, s)
			}
			switch {
			case gap < least || gap > most:
				fail("the gap keeps within the bounds")
			case after.Interval < least || after.Interval > most:
				fail("the interval keeps within the bounds")
			case gap > after.Interval:
				fail("nothing waits longer than its interval")
			case v.Change == Unchanged && (after.Interval < before || gap < before):
				fail("unchanged never shortens")
			case v.Change == Changed && (after.Interval > before || gap > before):
				fail("changed never lengthens")
			case v.Change == Unknown && after.Interval != before:
				fail("unknown leaves the interval")
			}
			// However old the content is, the interval is the same.
			w := v
			w.PrevModified = at.Add(-span(10000 * day))
			if s.Fetched(d, w).Interval != after.Interval {
				fail("the age does not replace the interval")
			}
			// The later in the interval the page changed, the later the next visit.
			if v.Change == Changed {
				w := v
				w.Modified = at.Add(-after.Interval / 4)
				v.Modified = at.Add(-after.Interval / 2)
				if w.Modified.After(v.PrevFetch) && v.Modified.After(v.PrevFetch) && s.Fetched(d, w).FetchTime.Before(s.Fetched(d, v).FetchTime) {
					fail("sync moves towards the change")
				}
			}
			d, at = after, after.FetchTime.Add(span(time.Hour))
			d.LastFetch = v.Time
		}
	}
}
