package fetch_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/update"
)

// Pages take a second and 5 of pause: those of a host begin at 6, 12, 18, ... after
// its robots.txt.
func TestTimeLimit(t *testing.T) {
	for _, c := range []struct {
		limit  time.Duration
		visits int
		took   time.Duration
	}{
		{0, 9, 55 * time.Second},
		{-1, 9, 55 * time.Second},
		{20 * time.Second, 3, 20 * time.Second},
		{18500 * time.Millisecond, 3, 19 * time.Second}, // the visit under way ends as it would
		{time.Nanosecond, 0, time.Second},               // robots.txt, at least
		{time.Hour, 9, 55 * time.Second},
	} {
		t.Run(c.limit.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &site{latency: time.Second}
				r := newRig(t, s, pageURLs(host, 9)...)
				r.o.Limits.TimeLimit = c.limit
				began := time.Now()
				rep := r.run(seg)
				if took := time.Since(began); took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
				if len(r.visits(seg)) != c.visits || rep.Visited() != c.visits || rep.TimedOut != 9-c.visits || rep.Listed != 9 {
					t.Errorf("%d visits, %+v", len(r.visits(seg)), rep)
				}
				for _, a := range s.of(host) {
					if a.cut {
						t.Errorf("%s was cut short", a.url)
					}
				}
				// The segment is complete: the rest is for another.
				if again := r.run(seg); !again.Already {
					t.Errorf("%+v", again)
				}
				aligned(t, r.db.Segments(), seg)
			})
		})
	}
}

// End ends a run as a time limit does, once: the visit under way ends as it would.
func TestEndOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{latency: time.Second}
		r := newRig(t, s, pageURLs(host, 9)...)
		end := make(chan struct{})
		r.o.Limits.End = end
		began := time.Now()
		time.AfterFunc(18500*time.Millisecond, func() { close(end) })
		rep := r.run(seg)
		if took := time.Since(began); took != 19*time.Second || rep.Visited() != 3 || rep.Ended != 6 || rep.TimedOut != 0 {
			t.Errorf("it took %v: %+v", took, rep)
		}
		if again := r.run(seg); !again.Already {
			t.Errorf("%+v", again)
		}
		aligned(t, r.db.Segments(), seg)
	})
}

// Pages left by a limit are not lost: their leases end with the update, and their due time
// stays.
func TestTimeLimitLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &site{latency: time.Second})
		urls := pageURLs(host, 9)
		due := time.Now().Add(-time.Hour).UTC().Truncate(time.Millisecond)
		r.lease("s2", due, urls...)
		r.o.Limits.TimeLimit = 20 * time.Second
		r.run("s2")
		rep, err := update.Run(t.Context(), r.db.Crawl(), r.db.Segments(), "s2", update.Options{})
		if err != nil || rep.Visits != 3 || rep.Unvisited != 6 {
			t.Errorf("%+v, %v", rep, err)
		}
		left := 0
		for d, err := range r.db.Crawl().Scan(t.Context(), crawldb.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			if d.LeasedBy != "" || !d.LeasedUntil.IsZero() {
				t.Errorf("%s is leased by %q", d.URL, d.LeasedBy)
			}
			if d.FetchTime.Equal(due) && d.Status == crawldb.Unfetched {
				left++
			}
		}
		if left != 6 {
			t.Errorf("%d pages are due as they were", left)
		}
	})
}

// A run that resumes has the full time again.
func TestTimeLimitBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{latency: time.Second}
		r := newRig(t, s, pageURLs(host, 9)...)
		r.o.Limits.TimeLimit = 20 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), 14*time.Second)
		defer cancel()
		if _, err := fetch.Run(ctx, r.db.Segments(), seg, r.o); err == nil {
			t.Fatal("nothing interrupted it")
		}
		time.Sleep(time.Minute)
		rep := r.run(seg)
		if rep.Resumed != 2 || rep.Visited() != 4 || rep.TimedOut != 3 {
			t.Errorf("%+v", rep)
		}
	})
}

// With two thousand hosts there is a lot to empty.
func TestTimeLimitEmptiesAllQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var urls []string
		for i := range 2000 {
			urls = append(urls, pageURLs(fmt.Sprintf("h%d.example.test", i), 3)...)
		}
		s := &site{latency: time.Second}
		r := newRig(t, s, urls...)
		r.o.Threads, r.o.Limits.TimeLimit, r.o.Limits.QueueDepth = 10, 30*time.Second, 5
		rep := r.run(seg)
		if rep.Listed != len(urls) || rep.Visited()+rep.TimedOut != len(urls) || rep.Visited() == 0 || rep.Robots == 0 {
			t.Errorf("%d listed, %d visits, %d robots.txt, %d left", rep.Listed, rep.Visited(), rep.Robots, rep.TimedOut)
		}
	})
}

func TestMinRate(t *testing.T) {
	urls := pageURLs(host, 100)
	for i := range 40 {
		urls = append(urls, fmt.Sprintf("http://h%d.example.test/", i))
	}
	for _, c := range []struct {
		name    string
		rate    float64
		seconds int
		after   time.Duration
		took    time.Duration
		left    int
	}{
		// Forty hosts bring a page each in the seventh second, and one a page in 6
		// seconds, at 7.5, 13.5 and so on to 601.5 s. So five seconds in a row are
		// without one, and six are not.
		{name: "off", took: 601500 * time.Millisecond},
		{name: "in a row", rate: 0.1, seconds: 6, after: 10 * time.Second, took: 601500 * time.Millisecond},
		{name: "defaults", rate: 1, took: 307500 * time.Millisecond, left: 49},
		{name: "at once", rate: 1, after: -1, seconds: 3, took: 3 * time.Second, left: 140},
		{name: "later", rate: 1, after: 60 * time.Second, seconds: 5, took: 67500 * time.Millisecond, left: 89},
		{name: "more than one", rate: 42, seconds: 1, after: 6500 * time.Millisecond, took: 7500 * time.Millisecond, left: 99},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &site{latency: time.Second, slow: map[string]time.Duration{"http://" + host + "/robots.txt": 1500 * time.Millisecond}}
				r := newRig(t, s, urls...)
				r.o.Limits.MinRate, r.o.Limits.MinRateSeconds, r.o.Limits.MinRateAfter = c.rate, c.seconds, c.after
				began := time.Now()
				rep := r.run(seg)
				if took := time.Since(began); took != c.took || rep.TooSlow != c.left || rep.Visited() != 140-c.left {
					t.Errorf("it took %v and left %d of %d+%d", took, rep.TooSlow, rep.Listed, rep.Visited())
				}
			})
		})
	}
}
