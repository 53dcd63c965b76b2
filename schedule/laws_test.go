package schedule

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// boundsInWords are the bounds of a page as the comments promise them.
func boundsInWords(s Adaptive, host string) (least, most time.Duration) {
	least, most = s.MinInterval, s.AdaptiveMax
	switch {
	case least == 0:
		least = time.Minute
	case least < 0:
		least = time.Second
	}
	if most <= 0 {
		most = 365 * day
	}
	if s.MaxInterval > 0 {
		most = min(most, s.MaxInterval)
	} else {
		most = min(most, 90*day)
	}
	most = min(most, math.MaxInt32*time.Second)
	least = min(least, most)
	b := s.HostIntervals[host]
	lo, hi := least, most
	if b.Min > 0 {
		lo = max(least, min(b.Min, most))
	}
	if b.Max > 0 {
		hi = max(least, min(b.Max, most))
	}
	return min(lo, hi), hi
}

// The laws of Adaptive at the edges of what its options can be, on records and
// visits that make no sense: intervals of nothing or of centuries, content from
// the future or from before the web, clocks that go backwards.
func TestAdaptiveLawsAtTheEdges(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 12))
	one := func(of ...float64) float64 { return of[rnd.IntN(len(of))] }
	span := func() time.Duration {
		const ages = math.MaxInt32 * time.Second // the longest there can be in a record
		of := []time.Duration{0, -time.Hour, 1, time.Second, 90 * time.Second, time.Hour, day, 7 * day, 90 * day, 400 * day, ages, math.MaxInt64}
		d := of[rnd.IntN(len(of))]
		if d > 1 && d < ages && rnd.IntN(2) == 0 {
			d = time.Duration(rnd.Int64N(int64(d))).Truncate(time.Second)
		}
		return d
	}
	for life := range 20000 {
		s := Adaptive{
			Default:       Default{DefaultInterval: span(), MaxInterval: span(), RetryDelay: span()},
			IncRate:       one(0, -1, 0.001, 0.4, 1, 50, math.Inf(1), math.NaN()),
			DecRate:       one(0, -1, 0.001, 0.2, 0.99, 1, 3, math.NaN()),
			SyncRate:      one(0, -1, 0.3, 0.9, 1, 7, math.NaN()),
			MinInterval:   span(),
			AdaptiveMax:   span(),
			HostIntervals: map[string]Bounds{"a.example": {Min: max(span(), 0), Max: max(span(), 0)}},
		}
		host := []string{"a.example", "b.example"}[rnd.IntN(2)]
		least, most := boundsInWords(s, host)
		least, most = max(least, time.Second), max(most, time.Second)

		d := s.Init(crawldb.Datum{URL: "http://" + host + "/", Interval: span()}, t0)
		at := t0
		gap := time.Duration(0) // to this visit, as it was set; zero if that does not count
		for visit := range 12 {
			v := Visit{Time: at, Change: Change(rnd.IntN(3)), PrevFetch: d.LastFetch, PrevModified: d.Modified}
			switch rnd.IntN(6) {
			case 0:
				v.Modified = at.Add(span())
			case 1:
				v.Modified = at.Add(-span())
			case 2:
				v.PrevModified = at.Add(span())
			case 3:
				v.PrevModified = at.Add(-span())
			}
			call := s.Fetched
			what := v.Change.String()
			switch rnd.IntN(8) {
			case 0:
				call, what = s.Gone, "gone"
			case 1:
				call, what = s.Retry, "retry"
			}
			before := max(least, min(d.Interval, most))
			after := call(d, v)
			next := after.FetchTime.Sub(at)
			fail := func(law string) {
				t.Helper()
				t.Fatalf("life %d, visit %d (%s): %s: interval %v after %v, next after %v, gap before %v, bounds %v to %v\n%+v", life, visit, what, law, after.Interval, before, next, gap, least, most, s)
			}
			switch {
			case next < least:
				fail("the next fetch is no sooner than the least interval")
			case what != "retry" && next > most:
				fail("the next fetch is no later than the greatest interval")
			case what != "retry" && next > after.Interval:
				fail("the next fetch is no later than the interval")
			case what != "retry" && (after.Interval < least || after.Interval > most):
				fail("the interval keeps within its bounds")
			case after.Interval%time.Second != 0 || after.Interval <= 0 || after.Interval > math.MaxInt32*time.Second:
				fail("an interval is whole seconds, as many as a record can have")
			case what == "unchanged" && (next < gap || after.Interval < before.Truncate(time.Second)):
				fail("unchanged never shortens the gap")
			case what == "changed" && (gap > 0 && next > gap || after.Interval > max(before.Round(time.Second), least)):
				fail("changed never lengthens the gap")
			case what != "retry" && what != "gone" && after.Modified.After(at):
				fail("content is not from the future")
			}
			w := v
			w.PrevModified, w.Modified = at.Add(-9999*day), at.Add(-span())
			if call(d, w).Interval != after.Interval {
				fail("the age of the content does not replace the interval")
			}
			if gap = next; what == "retry" {
				gap = 0
			}
			d = after
			d.LastFetch = at
			if at = d.FetchTime; rnd.IntN(10) == 0 { // the clock is set back, or the crawl is late
				at = at.Add(time.Duration(rnd.Int64N(int64(200*day))) - 100*day)
			}
		}
	}
}

// A page that has changed at every visit is visited ever sooner, one that has not
// ever later, whatever the rates: the gaps themselves, with sync at any rate and a
// server that says when the content changed.
func TestGapsAreMonotone(t *testing.T) {
	for _, sync := range []float64{-1, 0.3, 0.9, 1} {
		for _, lag := range []float64{0, 0.1, 0.5, 0.99} { // at which part of the gap before the visit it changed
			for _, change := range []Change{Changed, Unchanged} {
				s := Adaptive{SyncRate: sync, DecRate: 0.01, IncRate: 0.01}
				d := s.Init(crawldb.Datum{}, t0)
				d = s.Fetched(d, Visit{Time: t0})
				gap, prev := d.FetchTime.Sub(t0), t0
				for visit := range 200 {
					at := d.FetchTime
					v := Visit{Time: at, Change: change, PrevFetch: prev, PrevModified: d.Modified}
					if visit%3 != 0 { // and now and then it has just changed
						v.Modified = at.Add(-time.Duration(lag * float64(gap)))
					}
					d = s.Fetched(d, v)
					next := d.FetchTime.Sub(at)
					if change == Changed && next > gap || change == Unchanged && next < gap || next < time.Minute {
						t.Fatalf("sync %g, lag %g, visit %d, %v: %v after %v", sync, lag, visit, change, next, gap)
					}
					gap, prev = next, at
				}
			}
		}
	}
}

// What shortened the gap before does not count if it was not the schedule: after
// a retry or a change by hand the interval alone does.
func TestGapThatWasNotScheduled(t *testing.T) {
	for name, c := range map[string]struct {
		due     time.Duration // after the visit before
		retries int
		want    time.Duration
	}{
		"scheduled":        {10 * day, 0, 8 * day},
		"moved by sync":    {7 * day, 0, 7 * day},
		"after a retry":    {7 * day, 1, 8 * day},
		"forced by hand":   {day, 0, 8 * day},
		"put off":          {20 * day, 0, 8 * day},
		"clock set back":   {-day, 0, 8 * day},
		"above the bounds": {1000 * day, 0, 8 * day},
	} {
		d := crawldb.Datum{Interval: 10 * day, Retries: c.retries, FetchTime: t0.Add(c.due)}
		d = Adaptive{}.Fetched(d, Visit{Time: t0.Add(10 * day), Change: Changed, PrevFetch: t0})
		if got := d.FetchTime.Sub(t0.Add(10 * day)); got != c.want || d.Interval != 8*day {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Pages that fail or are gone keep to the bounds, too: a host that may be visited
// every ten days is not asked for a missing page every day and a half.
func TestFailuresKeepTheBounds(t *testing.T) {
	s := Adaptive{MinInterval: time.Hour, AdaptiveMax: 20 * day, HostIntervals: map[string]Bounds{"slow.example": {Min: 10 * day}, "fast.example": {Max: 2 * time.Hour}, "hasty.example": {Max: time.Second}}}
	for _, c := range []struct {
		host              string
		interval          time.Duration
		gone, goneIn, try time.Duration
	}{
		{"slow.example", day, 10 * day, 10 * day, 10 * day},
		{"fast.example", day, 2 * time.Hour, 2 * time.Hour, day},
		{"hasty.example", day, time.Hour, time.Hour, day},
		{"other.example", time.Second, time.Hour, time.Hour, day},
		{"other.example", 19 * day, 20 * day, 20 * day, day},
		{"other.example", 10 * day, 15 * day, 15 * day, day},
	} {
		d := crawldb.Datum{URL: "http://" + c.host + "/", Interval: c.interval}
		if g := s.Gone(d, Visit{Time: t0}); g.Interval != c.gone || g.FetchTime.Sub(t0) != c.goneIn {
			t.Errorf("%s, gone: %v, next after %v", c.host, g.Interval, g.FetchTime.Sub(t0))
		}
		if r := s.Retry(d, Visit{Time: t0}); r.Retries != 1 || r.FetchTime.Sub(t0) != c.try {
			t.Errorf("%s, retry: %+v", c.host, r)
		}
		if r := s.Retry(d, Visit{Time: t0, Skipped: true}); r.FetchTime.Sub(t0) != day {
			t.Errorf("%s, skipped: %+v", c.host, r)
		}
		s := MimeAdaptive{Adaptive: s}
		s.NutchCompat = true // there they do not
		if g := s.Gone(d, Visit{Time: t0}); g.Interval != c.interval+c.interval/2 && c.interval > time.Second {
			t.Errorf("%s, gone, NutchCompat: %v", c.host, g.Interval)
		}
		if r := s.Retry(d, Visit{Time: t0}); r.FetchTime.Sub(t0) != day {
			t.Errorf("%s, retry, NutchCompat: %+v", c.host, r)
		}
	}
}

// Bounds of a host only narrow those of all, also where they lie beyond them.
func TestBoundsOfHosts(t *testing.T) {
	for _, c := range []struct{ min, max, least, most time.Duration }{
		{0, 0, time.Hour, 30 * day},
		{day, 2 * day, day, 2 * day},
		{time.Minute, 40 * day, time.Hour, 30 * day},
		{0, time.Minute, time.Hour, time.Hour}, // a host is not visited every minute for that
		{60 * day, 0, 30 * day, 30 * day},
		{60 * day, 50 * day, 30 * day, 30 * day},
		{5 * day, 2 * day, 2 * day, 2 * day},
		{90*time.Minute + 1, 2*time.Hour - 1, 90*time.Minute + time.Second, 2*time.Hour - time.Second},
	} {
		s := Adaptive{MinInterval: time.Hour, AdaptiveMax: 30 * day, HostIntervals: map[string]Bounds{"a.example": {c.min, c.max}}}
		if least, most := s.bounds("http://a.example/"); least != c.least || most != c.most {
			t.Errorf("%v to %v: %v to %v, want %v to %v", c.min, c.max, least, most, c.least, c.most)
		}
		if least, most := s.bounds("https://u@A.example.:8443/x"); least != c.least || most != c.most {
			t.Errorf("%v to %v: another spelling has other bounds", c.min, c.max)
		}
	}
}
