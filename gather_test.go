package recrawl_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/segment"
)

// endless is a Run that waits, with a record of its rounds and visits.
type endless struct {
	*setup
	rounds int
	visits map[string][]time.Time
}

func newEndless(w *webtest.Web, pause, interval time.Duration) *endless {
	e := &endless{setup: newSetup(w), visits: map[string][]time.Time{}}
	e.opts.Run.Wait, e.opts.Now, w.Now = true, nil, nil
	e.opts.Fetch.Politeness.Delay = pause
	e.opts.Fetch.Sitemaps.NoDiscovery = true
	e.opts.Schedule = schedule.Default{DefaultInterval: interval}
	e.opts.Hooks.Round = func(r recrawl.Report) { e.rounds += r.Rounds }
	e.opts.Fetch.OnVisit = func(v segment.Visit, _ fetch.Progress) {
		e.visits[v.URL] = append(e.visits[v.URL], v.Time)
	}
	return e
}

// runFor injects seeds and lets a Run go on for a time, which during may use. The rounds are those
// of this time.
func (e *endless) runFor(t *testing.T, d time.Duration, seeds []string, during func(*recrawl.Crawler)) {
	t.Helper()
	c := e.crawler(t)
	defer c.Close()
	if _, err := c.Inject(t.Context(), seeds...); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	ended := make(chan error, 1)
	e.rounds = 0
	go func() { _, err := c.Run(ctx); ended <- err }()
	if during != nil {
		during(c)
	}
	if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

// checkGaps checks the times between two visits to a page.
func (e *endless) checkGaps(t *testing.T, least, most time.Duration) {
	t.Helper()
	for url, at := range e.visits {
		for i := 1; i < len(at); i++ {
			if gap := at[i].Sub(at[i-1]); gap < least || gap > most {
				t.Errorf("%s: visited after %v, want %v to %v", url, gap, least, most)
				break
			}
		}
	}
}

// Pages of a host fall due one pause apart. They share rounds, in which the pauses put each visit
// where it is due.
func TestPagesOfOneHostShareRounds(t *testing.T) {
	const day = 24 * time.Hour
	for _, test := range []struct {
		name                       string
		pages                      int
		pause, interval, roundTime time.Duration
		mostRounds                 int // in an interval
		early, late                time.Duration
	}{
		{"seconds", 12, 600 * time.Millisecond, 15 * time.Second, 0, 2, 15 * time.Second / 4, time.Second},
		{"minutes", 12, 5 * time.Second, 10 * time.Minute, 0, 1, time.Second, time.Second},
		{"a day", 30, 5 * time.Second, day, 0, 1, time.Second, 6 * time.Second}, // robots.txt takes a pause, too
		{"spread over hours", 60, 2 * time.Minute, day, 0, 9, time.Second, 2*time.Minute + time.Second},
		{"spread over more than RoundTime", 60, 2 * time.Minute, day, 6 * time.Minute, 21, time.Second, 2*time.Minute + time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEndless(&webtest.Web{Hosts: 1, PagesPerHost: test.pages, LinksPerPage: test.pages, Calm: true}, test.pause, test.interval)
				e.opts.Run.RoundTime = test.roundTime
				e.runFor(t, test.interval-time.Second, e.web.Seeds(), nil)
				const cycles = 3
				e.runFor(t, cycles*test.interval, nil, nil)
				if most := cycles*test.mostRounds + 1; e.rounds > most || len(e.visits) < test.pages*9/10 {
					t.Errorf("%d rounds, want at most %d; %d pages", e.rounds, most, len(e.visits))
				}
				e.checkGaps(t, test.interval-test.early, test.interval+test.late)
			})
		})
	}
}

// A page that is visited often is visited on time beside a slow host, whose pages are due one pause
// apart and could share a round of hours.
func TestGatheredRoundDelaysNoOtherPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEndless(&webtest.Web{Hosts: 2, PagesPerHost: 40, LinksPerPage: 40, Calm: true}, time.Second, 24*time.Hour)
		e.opts.Schedule = perHost{schedule.Default{DefaultInterval: 24 * time.Hour}, "http://news.example.test/", 20 * time.Minute}
		e.opts.Generate.HostDelay = func(h *hostdb.Host) (float64, error) {
			if h.Name == "news.example.test" {
				return 1000, nil
			}
			return 60_000, nil
		}
		e.runFor(t, 23*time.Hour, e.web.Seeds(), nil)
		clear(e.visits)
		e.runFor(t, 26*time.Hour, nil, nil)
		fast := 0
		for url, at := range e.visits {
			least, most := 24*time.Hour-15*time.Minute, 24*time.Hour+3*time.Minute
			if strings.HasPrefix(url, "http://news.example.test/") {
				fast++
				least, most = 19*time.Minute, 23*time.Minute
			}
			for i := 1; i < len(at); i++ {
				if gap := at[i].Sub(at[i-1]); gap < least || gap > most {
					t.Errorf("%s: visited after %v, want %v to %v", url, gap, least, most)
				}
			}
		}
		if fast < 30 || len(e.visits) < 60 || e.rounds > 200 {
			t.Errorf("%d pages, %d of them often, in %d rounds", len(e.visits), fast, e.rounds)
		}
	})
}

// perHost is a schedule with an interval of its own for some pages.
type perHost struct {
	schedule.Default
	prefix   string
	interval time.Duration
}

func (s perHost) Init(d crawldb.Datum, now time.Time) crawldb.Datum {
	if strings.HasPrefix(d.URL, s.prefix) {
		d.Interval = s.interval
	}
	return s.Default.Init(d, now)
}

// A Run that takes up the work of another makes no more rounds than one that went on.
func TestRoundsAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEndless(&webtest.Web{Hosts: 1, PagesPerHost: 12, LinksPerPage: 12, Calm: true}, 600*time.Millisecond, 15*time.Second)
		e.runFor(t, 40*time.Second, e.web.Seeds(), nil)
		for i := range 30 {
			time.Sleep(time.Duration(i%5) * 3 * time.Second)
			lasts := 5*time.Second + time.Duration(i)*700*time.Millisecond
			e.runFor(t, lasts, nil, nil)
			if most := 3 + int(lasts/(5*time.Second)); e.rounds > most {
				t.Errorf("%d rounds in %v", e.rounds, lasts)
			}
		}
	})
}

// Visits that are made early are part of the budget.
func TestGatheredVisitsKeepToTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEndless(&webtest.Web{Hosts: 3, PagesPerHost: 20, LinksPerPage: 20, Calm: true}, time.Second, 0)
		const budget = 48
		e.opts.Schedule = schedule.Learned{Budget: budget}
		e.runFor(t, 60*time.Hour, e.web.Seeds(), nil)
		visits := 0
		for _, at := range e.visits {
			visits += len(at)
		}
		// A day's worth at the beginning, and then as much as accrues.
		if most := budget + budget*60/24; visits > most || visits < most*8/10 {
			t.Errorf("%d visits in 60 hours, want up to %d", visits, most)
		}
	})
}

// With a negative Gather no page is visited before it is due.
func TestGatherIsAnOption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, change := range map[string]func(*recrawl.Options){
			"negative":    func(o *recrawl.Options) { o.Run.Gather = -1 },
			"NutchCompat": func(o *recrawl.Options) { o.Generate.NutchCompat = true },
		} {
			e := newEndless(&webtest.Web{Hosts: 2, PagesPerHost: 6, LinksPerPage: 6, Calm: true}, time.Second, 2*time.Minute)
			change(&e.opts)
			e.runFor(t, time.Minute, e.web.Seeds(), nil)
			e.runFor(t, 5*time.Minute, nil, nil)
			e.checkGaps(t, 2*time.Minute, 2*time.Minute+10*time.Second)
			if e.rounds < 8 {
				t.Errorf("%s: %d rounds", name, e.rounds)
			}
		}
	})
}

// A wall clock that is set back or ahead makes no rounds of single pages.
func TestGatheredRoundsWhenTheClockSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, step := range []time.Duration{-time.Hour, -4 * time.Second, 4 * time.Second, time.Hour} {
			e := newEndless(&webtest.Web{Hosts: 1, PagesPerHost: 12, LinksPerPage: 12, Calm: true}, 600*time.Millisecond, 15*time.Second)
			var set atomic.Int64
			e.opts.Now = func() time.Time { return time.Now().Add(time.Duration(set.Load())) }
			e.web.Now = e.opts.Now
			e.runFor(t, 40*time.Second, e.web.Seeds(), nil)
			e.runFor(t, 60*time.Second, nil, func(*recrawl.Crawler) {
				time.Sleep(20 * time.Second)
				set.Store(int64(step))
			})
			if e.rounds > 12 {
				t.Errorf("step of %v: %d rounds in a minute", step, e.rounds)
			}
		}
	})
}

// Explain says how much sooner than it is due a page may be visited.
func TestExplainNamesTheEarliestVisit(t *testing.T) {
	s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 2, Calm: true})
	seed := s.web.Seeds()[0]
	s.run(t, seed)
	for wait, want := range map[bool]string{true: "or up to 7h12m0s sooner in a round of other pages.", false: "the next visit is due at 2026-02-04T08:00:00Z."} {
		s.opts.Run.Wait = wait
		s.opts.Schedule = schedule.Default{}
		c := s.crawler(t)
		defer c.Close()
		if e, err := c.Explain(t.Context(), seed); err != nil || !strings.HasSuffix(e.Verdict, want) {
			t.Errorf("%q, want %q; %v", e.Verdict, want, err)
		}
	}
}
