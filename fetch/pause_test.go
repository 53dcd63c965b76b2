package fetch_test

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"

	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/robots"
)

// broken is an answer that is an error of the server.
func broken() protocol.Response {
	r := code(protocol.Failed)
	r.Outcome.Status = 503
	return r
}

// The pause of a host that is down follows from how often it has failed and what it says;
// its pages wait with it.
func TestPauseOfAHostThatIsDown(t *testing.T) {
	const most = 720 * time.Hour
	for _, c := range []struct {
		name     string
		failures int64 // before the one visit
		answer   protocol.Response
		set      func(*rig)
		pause    time.Duration
		after    int64 // failures then
		wait     time.Duration
	}{
		{name: "as often as a round bears", failures: 4, pause: 5 * time.Second, after: 5},
		{name: "once more", failures: 5, pause: time.Hour, after: 6},
		{name: "seven times", failures: 11, pause: 18 * time.Hour, after: 12},
		{name: "eight times", failures: 12, pause: 27 * time.Hour, after: 13, wait: 27 * time.Hour},
		{name: "for ever", failures: 1 << 62, pause: most, after: 1<<62 + 1, wait: most},
		{name: "with errors for answers", failures: 90, answer: broken(), pause: 18 * time.Hour, after: 12},
		{name: "with a first error", failures: 7, answer: broken(), pause: 3 * time.Hour, after: 8},
		{name: "and its address others'", failures: 90, set: func(r *rig) { r.o.Politeness.By = hostdb.ByDomain }, pause: 18 * time.Hour, after: 12},
		{name: "within a bound", failures: 90, set: func(r *rig) { r.o.Politeness.MaxPause = 50 * time.Hour }, pause: 50 * time.Hour, after: 91, wait: 50 * time.Hour},
		{name: "beyond the bound", failures: 90, set: func(r *rig) { r.o.Politeness.MaxPause = 5000 * time.Hour }, pause: most, after: 91, wait: most},
		{name: "without", failures: 90, set: func(r *rig) { r.o.Politeness.MaxPause = -1 }, pause: 5 * time.Second, after: 91},
		{name: "as Nutch", failures: 90, set: func(r *rig) { r.o.NutchCompat = true }, pause: 5 * time.Second, after: 91},
		{name: "by no limit", failures: 90, set: func(r *rig) { r.o.Politeness.MaxFailures, r.o.Limits.TimeLimit = -1, time.Second }, pause: 5 * time.Second, after: 91},
		{name: "and then up", failures: 90, answer: code(protocol.NotFound), set: func(r *rig) { r.o.Limits.TimeLimit = time.Second }, pause: 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.answer.Outcome.Code == 0 {
					c.answer = code(protocol.Failed)
				}
				s := &site{answer: func(string) protocol.Response { return c.answer }}
				name := "www.example.com"
				r := newRig(t, s, pageURLs(name, 3)...)
				r.o.Politeness.NoRobots = true
				if c.set != nil {
					c.set(r)
				}
				key := r.o.Politeness.By.Key("http://" + name + "/")
				err := r.db.Hosts().Update(t.Context(), key, func(*hostdb.Host) (*hostdb.Host, error) {
					return &hostdb.Host{Stats: hostdb.Stats{Failures: c.failures}, LastFetch: time.Now().Add(-time.Hour), NextFetch: time.Now()}, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				r.run(seg)
				h := hostOf(t, r, key)
				if pause := h.NextFetch.Sub(h.LastFetch); pause != c.pause || h.Stats.Failures != c.after || len(s.of(name)) != 1 {
					t.Errorf("%d requests, then a pause of %v, %d failures; want %v, %d", len(s.of(name)), pause, h.Stats.Failures, c.pause, c.after)
				}
				for url, v := range r.visits(seg) {
					if o := v.Outcome; o.Code == protocol.Skipped && o.RetryAfter != c.wait {
						t.Errorf("%s waits %v, want %v", url, o.RetryAfter, c.wait)
					}
				}
			})
		})
	}
}

// The pages of a host that is down for good are gone one by one, those that were visited lately excepted, and cost
// no more requests than others that wait.
func TestPagesOfAHostThatStaysDownAreGone(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		name     string
		failures int64 // with that of the one visit
		answer   protocol.Response
		set      func(*rig)
		gone     bool
		wait     time.Duration
	}{
		{name: "88 days", failures: 5 + 17, wait: 30 * day},
		{name: "118 days", failures: 5 + 18, gone: true, wait: 30 * day},
		{name: "for ever", failures: 1 << 62, gone: true, wait: 30 * day},
		{name: "118 days of 119", failures: 5 + 18, set: func(r *rig) { r.o.Politeness.GoneAfter = 119 * day }, wait: 30 * day},
		{name: "118 days of 118", failures: 5 + 18, set: func(r *rig) { r.o.Politeness.GoneAfter = 118 * day }, gone: true, wait: 30 * day},
		{name: "never", failures: 1 << 62, set: func(r *rig) { r.o.Politeness.GoneAfter = -1 }, wait: 30 * day},
		{name: "two days of one hour", failures: 5 + 8, set: func(r *rig) { r.o.Politeness.GoneAfter = time.Hour }, gone: true, wait: 27 * time.Hour},
		{name: "31 hours of one", failures: 5 + 7, set: func(r *rig) { r.o.Politeness.GoneAfter = time.Hour }},
		{name: "with errors for answers", failures: 5 + 7, answer: broken(), set: func(r *rig) { r.o.Politeness.GoneAfter = time.Hour }},
		{name: "with others in its queue", failures: 5 + 7, set: func(r *rig) { r.o.Politeness.By, r.o.Politeness.GoneAfter = hostdb.ByDomain, time.Hour }},
		{name: "with short pauses", failures: 5 + 1000, set: func(r *rig) { r.o.Politeness.MaxPause = time.Hour }},
		{name: "with more of them", failures: 5 + 2200, set: func(r *rig) { r.o.Politeness.MaxPause = time.Hour }, gone: true},
		{name: "without pauses", failures: 1 << 62, set: func(r *rig) { r.o.Politeness.MaxPause = -1 }},
		{name: "as Nutch", failures: 1 << 62, set: func(r *rig) { r.o.NutchCompat = true }},
		{name: "and then up", failures: 1 << 62, answer: code(protocol.NotFound), set: func(r *rig) { r.o.Limits.TimeLimit = time.Second }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.answer.Outcome.Code == 0 {
					c.answer = code(protocol.Failed)
				}
				s := &site{answer: func(string) protocol.Response { return c.answer }}
				name := "www.example.com"
				r := newRig(t, s)
				r.o.Politeness.NoRobots = true
				if c.set != nil {
					c.set(r)
				}
				now, urls := time.Now(), pageURLs(name, 5)
				after := cmp.Or(max(r.o.Politeness.GoneAfter, 0), 90*day)
				list := []crawldb.Datum{
					{URL: urls[0]}, // is asked for
					{URL: urls[1]},
					{URL: urls[2], LastFetch: now.Add(time.Minute - after)},
					{URL: urls[3], LastFetch: now.Add(-after)},
					{URL: urls[4], LastFetch: now.AddDate(-1, 0, 0)},
				}
				r.records("s2", list...)
				key := r.o.Politeness.By.Key(urls[0])
				err := r.db.Hosts().Update(t.Context(), key, func(*hostdb.Host) (*hostdb.Host, error) {
					return &hostdb.Host{Stats: hostdb.Stats{Failures: c.failures - 1}, LastFetch: now.Add(-time.Hour), NextFetch: now}, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				r.run("s2")
				if n := len(s.of(name)); n != 1 {
					t.Errorf("%d requests", n)
				}
				visits := r.visits("s2")
				for i, d := range list[1:] {
					v, ok := visits[d.URL]
					want := protocol.Skipped
					if c.gone && i != 1 {
						want = protocol.Refused
					}
					if up := c.answer.Outcome.Code == protocol.NotFound; up != !ok || ok && (v.Outcome.Code != want || v.Outcome.RetryAfter != c.wait || v.Outcome.Reason == "") {
						t.Errorf("%s, visited %v: %+v, want %v, %v", d.URL, d.LastFetch, v.Outcome, want, c.wait)
					}
				}
			})
		})
	}
}

// A crawl that runs every few hours asks a dead host less and less often, but never waits longer
// than half the time it has been dead, and asks for all pages at once when it answers.
func TestDeadHostGetsFewRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const year = 365 * 24 * time.Hour
		up := false
		s := &site{answer: func(string) protocol.Response {
			if up {
				return body("text/html", "x")
			}
			return code(protocol.Failed)
		}}
		r := newRig(t, s)
		r.o.Politeness.NoRobots = true
		began, last := time.Now(), time.Now()
		round := func(n int) (asked bool) {
			before, name := len(s.of(host)), fmt.Sprint("round", n)
			r.list(name, pageURLs(host, 4)...)
			r.run(name)
			return len(s.of(host)) > before
		}
		n := 0
		for ; time.Since(began) < year; time.Sleep(6 * time.Hour) {
			n++
			if round(n) {
				if gap, down := time.Since(last), time.Since(began); gap > 30*24*time.Hour+6*time.Hour || gap > down/3+12*time.Hour {
					t.Errorf("asked %v after the last time, having been down for %v", gap, down)
				}
				last = time.Now()
			}
		}
		if asked := len(s.of(host)); asked > 40 {
			t.Errorf("%d requests in a year", asked)
		}
		if h := hostOf(t, r, host); len(h.Grants) > 0 || time.Until(h.NextFetch) > 30*24*time.Hour {
			t.Errorf("%+v", h)
		}
		time.Sleep(31 * 24 * time.Hour)
		up = true
		r.list("up", pageURLs(host, 4)...)
		if rep := r.run("up"); rep.Visits[protocol.Success] != 4 {
			t.Errorf("up again: %v", rep.Visits)
		}
		if h := hostOf(t, r, host); h.Stats.Failures != 0 || h.NextFetch.Sub(h.LastFetch) > time.Minute {
			t.Errorf("up again: %+v", h)
		}
	})
}

// Requests that were under way at the same time say of a host what one of them says, and one
// that was given up is asked for one page, however many may be asked for at once.
func TestSimultaneousFailuresCountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{latency: time.Second, answer: func(string) protocol.Response { return code(protocol.Failed) }}
		r := newRig(t, s, pageURLs(host, 60)...)
		r.o.Politeness.NoRobots, r.o.Politeness.ThreadsPerHost, r.o.Politeness.MinDelay = true, 40, -1
		r.run(seg)
		if h := hostOf(t, r, host); h.Stats.Failed != 40 || h.Stats.Failures != 5 || h.NextFetch.Sub(h.LastFetch) > time.Hour {
			t.Errorf("%+v", h)
		}
		time.Sleep(24 * time.Hour) // what makes requests one at a time is forgotten
		r.list("later", pageURLs(host, 60)...)
		r.run("later")
		if h := hostOf(t, r, host); h.Stats.Failed != 41 || h.Stats.Failures != 6 || h.NextFetch.Sub(h.LastFetch) != time.Hour {
			t.Errorf("%+v", h)
		}
	})
}

// A clock that was ahead does not keep anybody from a host for longer than a day.
func TestClockAheadDoesNotProlongTheDownPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{answer: func(string) protocol.Response { return body("text/html", "x") }}
		r := newRig(t, s, pageURLs(host, 3)...)
		r.o.Politeness.NoRobots = true
		ahead := time.Now().Add(10 * 365 * 24 * time.Hour)
		err := r.db.Hosts().Update(t.Context(), host, func(*hostdb.Host) (*hostdb.Host, error) {
			return &hostdb.Host{Stats: hostdb.Stats{Failures: 90}, LastFetch: ahead, NextFetch: ahead.Add(720 * time.Hour)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		r.run(seg)
		time.Sleep(24*time.Hour + time.Second)
		r.list("later", pageURLs(host, 3)...)
		if rep := r.run("later"); rep.Visits[protocol.Success] != 3 {
			t.Errorf("%v, %+v", rep.Visits, hostOf(t, r, host))
		}
	})
}

func TestPauseCountsFromTheEndOfTheLastRequest(t *testing.T) {
	for _, c := range []struct {
		name       string
		delay      time.Duration
		robots     string
		maxDelay   time.Duration
		want       time.Duration
		denied     bool
		wholeRound time.Duration
	}{
		{name: "default", want: 5 * time.Second},
		{name: "option", delay: 2 * time.Second, want: 2 * time.Second},
		{name: "none", delay: -1, want: 0},
		{name: "Crawl-delay is larger", robots: "User-agent: *\nCrawl-delay: 12", want: 12 * time.Second},
		{name: "option is larger", robots: "User-agent: *\nCrawl-delay: 3", want: 5 * time.Second},
		{name: "Crawl-delay at the bound", robots: "User-agent: *\nCrawl-delay: 30", want: 30 * time.Second},
		{name: "Crawl-delay beyond the bound", robots: "User-agent: *\nCrawl-delay: 31", denied: true},
		{name: "Crawl-delay far beyond the bound", robots: "User-agent: *\nCrawl-delay: 4000", denied: true},
		{name: "own bound", robots: "User-agent: *\nCrawl-delay: 4", maxDelay: 3 * time.Second, denied: true},
		{name: "no bound", robots: "User-agent: *\nCrawl-delay: 70", maxDelay: -1, want: 70 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &site{latency: 1300 * time.Millisecond, robots: c.robots}
				r := newRig(t, s, pageURLs(host, 4)...)
				r.o.Politeness.Delay, r.o.Politeness.MaxCrawlDelay = c.delay, c.maxDelay
				began := time.Now()
				rep := r.run(seg)
				asks := s.of(host)
				if len(asks) == 0 || asks[0].url != "http://"+host+"/robots.txt" || !asks[0].begin.Equal(began) {
					t.Fatalf("asked first: %+v", asks)
				}
				if c.denied {
					if len(asks) != 1 || rep.Visits[protocol.RobotsDenied] != 4 {
						t.Errorf("%d requests, %v", len(asks), rep.Visits)
					}
					if took := time.Since(began); took > time.Minute {
						t.Errorf("it took %v to ask nothing", took)
					}
					return
				}
				if len(asks) != 5 || rep.Visits[protocol.Success] != 4 || rep.Robots != 1 {
					t.Errorf("%d requests, %+v", len(asks), rep)
				}
				for i, gap := range gaps(t, asks) {
					if gap != c.want {
						t.Errorf("pause %d is %v, want %v", i, gap, c.want)
					}
				}
			})
		})
	}
}

func TestPauseIsKeptBetweenRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{latency: time.Second}
		r := newRig(t, s, "http://"+host+"/1")
		r.list("s2", "http://"+host+"/2", "http://b.example.test/")
		r.run(seg)
		r.renew()
		r.run("s2")
		for _, gap := range gaps(t, s.of(host)) {
			if gap != 5*time.Second {
				t.Errorf("pause of %v", gap)
			}
		}
		if n := len(s.of(host + "/robots.txt")); n != 1 {
			t.Errorf("robots.txt was asked for %d times", n)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		after, want time.Duration
		skipped     int
	}{
		{2 * time.Second, 5 * time.Second, 0}, // the delay is longer
		{90 * time.Second, 90 * time.Second, 0},
		{10 * time.Minute, 0, 3}, // longer than a round waits
		{10000 * time.Hour, 0, 3},
	} {
		t.Run(c.after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &site{}
				s.answer = func(url string) protocol.Response {
					if len(s.of(host)) == 2 { // the first page
						r := code(protocol.Busy)
						r.Outcome.RetryAfter = c.after
						return r
					}
					return body("text/html", "x")
				}
				r := newRig(t, s, pageURLs(host, 4)...)
				began := time.Now()
				rep := r.run(seg)
				if rep.Visits[protocol.Skipped] != c.skipped || rep.Visits[protocol.Busy] != 1 {
					t.Errorf("%v", rep.Visits)
				}
				g := gaps(t, s.of(host))
				if c.skipped > 0 {
					if len(g) != 1 || time.Since(began) > time.Minute {
						t.Errorf("%d requests in %v", len(g)+1, time.Since(began))
					}
					if h := hostOf(t, r, host); h.NextFetch.Sub(h.LastFetch) != min(c.after, 24*time.Hour) {
						t.Errorf("the host is left alone for %v", h.NextFetch.Sub(h.LastFetch))
					}
					return
				}
				if want := []time.Duration{5 * time.Second, c.want, 5 * time.Second, 5 * time.Second}; !slices.Equal(g, want) {
					t.Errorf("pauses %v, want %v", g, want)
				}
			})
		})
	}
}

func TestBackoffGrowsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{}
		s.answer = func(url string) protocol.Response {
			if n := len(s.of(host)) - 1; n <= 3 || n == 6 { // pages 1 to 3, and 6
				return code(protocol.Failed)
			}
			return code(protocol.NotFound) // an answer, if not a nice one
		}
		r := newRig(t, s, pageURLs(host, 7)...)
		rep := r.run(seg)
		if rep.Visits[protocol.Failed] != 4 || rep.Visits[protocol.NotFound] != 3 {
			t.Errorf("%v", rep.Visits)
		}
		sec := time.Second
		want := []time.Duration{5 * sec, 5 * sec, 10 * sec, 20 * sec, 10 * sec, 5 * sec, 10 * sec}
		if g := gaps(t, s.of(host)); !slices.Equal(g, want) {
			t.Errorf("pauses %v, want %v", g, want)
		}
	})
}

// PerDay is about how many visits a host gets, and rather too few than too many.
func TestPerDay(t *testing.T) {
	const sec = time.Second
	for _, c := range []struct {
		threads          int
		took, delay, min time.Duration
		robots           string
		want             time.Duration // from one visit to the next, on average
	}{
		{0, sec / 5, 0, 0, "", 5200 * time.Millisecond},
		{4, sec / 5, 0, 0, "", 5200 * time.Millisecond}, // an answer is there before the second may begin
		{4, sec / 5, 0, -1, "", sec / 20},
		{4, 4 * sec, 5 * sec, sec, "", 2 * sec},
		{20, 2900 * time.Millisecond, 5 * sec, sec, "", sec + 2900*time.Millisecond/3},
		{4, sec / 5, 5 * sec, -1, "User-agent: *\nCrawl-delay: 10", 10200 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{latency: c.took, robots: c.robots}
			r := newRig(t, s, pageURLs(host, 60)...)
			r.o.Politeness.ThreadsPerHost, r.o.Politeness.Delay, r.o.Politeness.MinDelay = c.threads, c.delay, c.min
			r.o.SpareThreads = -1
			r.run(seg)
			h := hostOf(t, r, host)
			asks := s.of(host)[1:] // robots.txt
			got := asks[len(asks)-1].begin.Sub(asks[0].begin).Hours() / 24 * r.o.Politeness.PerDay(&h) / float64(len(asks)-1)
			if want := 24 * float64(time.Hour) / float64(c.want); math.Abs(r.o.Politeness.PerDay(&h)/want-1) > 0.02 || got < 0.7 || got > 1.1 {
				t.Errorf("%+v: %.0f a day, want %.0f, %.2f times what was", c, r.o.Politeness.PerDay(&h), want, got)
			}
		})
	}
	o := fetch.Options{Politeness: fetch.Politeness{HostRule: rules(t, "a.example requests=100\nb.example window=22:00-06:00\n* closed").Rule}}
	for name, want := range map[string]float64{"a.example": 100, "b.example": 86400 / 5.2 / 3, "c.example": 86400 / 5.2} {
		if got := o.Politeness.PerDay(&hostdb.Host{Name: name}); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("%s: %v a day, want %v", name, got, want)
		}
	}
}

func TestBackoffIsForgotten(t *testing.T) {
	for _, c := range []struct {
		forget, away time.Duration
		want         int // of Backoff after another failure
	}{
		{0, 29 * time.Minute, 5},
		{0, 31 * time.Minute, 1},
		{time.Minute, 59 * time.Second, 5},
		{time.Minute, 61 * time.Second, 1},
		{-1, 90 * 24 * time.Hour, 5},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{answer: func(string) protocol.Response { return code(protocol.Failed) }}
			r := newRig(t, s, pageURLs(host, 4)...)
			r.o.Politeness.MaxFailures, r.o.Politeness.MaxWait, r.o.Politeness.ForgetAfter, r.o.Politeness.NoRobots = -1, 3*time.Hour, c.forget, true
			r.run(seg)
			h := hostOf(t, r, host)
			if h.Backoff != 4 || h.NextFetch.Sub(h.LastFetch) != 40*time.Second {
				t.Fatalf("%+v", h)
			}
			time.Sleep(time.Until(h.NextFetch) + c.away)
			r.list("s2", pageURLs(host, 1)...)
			r.run("s2")
			if h := hostOf(t, r, host); h.Backoff != c.want {
				t.Errorf("forgotten after %v, away for %v: Backoff is %d, want %d", c.forget, c.away, h.Backoff, c.want)
			}
		})
	}
}

// What robots.txt asks for may be longer than robots.txt holds.
func TestCrawlDelayOfADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{robots: "User-agent: *\nCrawl-delay: 100000", latency: time.Second}
		r := newRig(t, s, pageURLs(host, 3)...)
		r.o.Politeness.MaxCrawlDelay, r.o.Limits.TimeLimit = -1, 10*24*time.Hour
		if rep := r.run(seg); rep.Visits[protocol.Success] != 3 {
			t.Errorf("%+v", rep)
		}
	})
}

// A hostile mix of 10,000 requests, by two fetches that share a host db and are
// interrupted three times: no host, domain or address is asked sooner than its
// delay, its Crawl-delay, its failures or its Retry-After allow, counted from the
// end of the last request to it, and never twice at once.
func TestNoGapIsShorterThanTheRule(t *testing.T) {
	for _, by := range []hostdb.By{hostdb.ByHost, hostdb.ByDomain, hostdb.ByIP} {
		t.Run(by.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { proveGaps(t, by) })
		})
	}
}

func proveGaps(t *testing.T, by hostdb.By) {
	const hosts = 40
	requests := 3400    // times three
	if testlevel.Race { // which cannot bear so many events
		requests = 600
	}
	rnd := rand.New(rand.NewPCG(4, 2))
	w := &witness{t: t, name: map[string]string{}}
	addr := func(host string) string { return fmt.Sprintf("192.0.2.%d", hashOf(host)%20) }
	var lists [2][]string
	for i := range requests {
		h := rnd.IntN(hosts)
		host := fmt.Sprintf("h%d.d%d.example.com", h, h%8)
		spelled := host
		switch rnd.IntN(6) {
		case 0:
			spelled = strings.ToUpper(host)
		case 1:
			spelled = host + "."
		case 2:
			spelled = strings.Replace(host, "example", "ｅｘａｍｐｌｅ", 1)
		case 3:
			if by == hostdb.ByIP {
				host, spelled = addr(host), "[::ffff:"+addr(host)+"]"
			}
		}
		spelled += []string{"", ":80", ":8080"}[rnd.IntN(3)]
		w.name[spelled], w.name[strings.ToLower(spelled)] = host, host
		w.name[strings.TrimSuffix(strings.ToLower(spelled), ":80")] = host
		lists[i%2] = append(lists[i%2], fmt.Sprintf("%s://%s/%d", []string{"http", "https"}[rnd.IntN(2)], spelled, i))
	}
	w.name["h9.d1.example.com"], w.name["h0.d0.example.com"] = "h9.d1.example.com", "h0.d0.example.com"
	queue := func(host string) string {
		switch {
		case by == hostdb.ByDomain:
			return "example.com"
		case by == hostdb.ByIP && strings.HasPrefix(host, "h"):
			return addr(host)
		}
		return host
	}

	r := newRig(t, &site{})
	for i, l := range lists {
		r.list(fmt.Sprint("list", i), l...)
	}
	r.o.Protocol, r.o.Parser, r.o.Politeness.By = w, nil, by
	r.o.Politeness.MaxFailures, r.o.Politeness.MaxWait, r.o.Threads = -1, 100*time.Hour, 20
	r.o.Politeness.Lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("::ffff:" + addr(host))}, nil
	}
	const delay = 2 * time.Second
	r.o.Politeness.Delay = delay
	for life := range 4 {
		ctx, cancel := context.WithCancel(t.Context())
		if life < 3 {
			ctx, cancel = context.WithTimeout(t.Context(), time.Duration(2+life)*time.Minute)
		}
		var wg sync.WaitGroup
		for i := range lists {
			o := r.o
			o.Robots = &robots.Cache{Protocol: w, Hosts: o.Hosts, Product: "test"}
			wg.Go(func() {
				if _, err := fetch.Run(ctx, r.db.Segments(), fmt.Sprint("list", i), o); err != nil && (life == 3 || !errors.Is(err, context.DeadlineExceeded)) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		cancel()
	}

	slices.SortStableFunc(w.seen, func(a, b seen) int { return a.begin.Compare(b.begin) })
	type state struct {
		next, end time.Time
		last      string
		failed    int // what is left of it
	}
	of := map[string]*state{}
	longest := time.Duration(0)
	for _, s := range w.seen {
		q := of[queue(s.host)]
		if q == nil {
			q = &state{}
			of[queue(s.host)] = q
		}
		if s.begin.Before(q.next) {
			t.Errorf("%s was asked %v after %s had ended, and %v too early", s.url, s.begin.Sub(q.end), q.last, q.next.Sub(s.begin))
		}
		longest = max(longest, q.next.Sub(q.end))
		pause := max(delay, delayOf(s.host))
		if s.code == 0 || strings.HasSuffix(s.url, "/robots.txt") {
			if delayOf(s.host) > 0 && s.code == 0 {
				pause = delay // it is not known yet, perhaps
			}
		} else {
			if s.begin.After(q.next.Add(30 * time.Minute)) {
				q.failed = 0
			}
			if s.code == protocol.Failed || s.code == protocol.Busy {
				q.failed = min(q.failed+1, 13)
			} else {
				q.failed = max(q.failed-1, 0)
			}
			if q.failed > 0 {
				pause = max(pause, min(time.Hour, pause<<(q.failed-1)))
			}
			pause = max(pause, s.after)
		}
		q.next, q.end, q.last = s.end.Add(pause), s.end, s.url
		if s.end.Before(s.begin) {
			t.Fatal(s)
		}
	}
	if want := map[hostdb.By]int{hostdb.ByHost: hosts, hostdb.ByDomain: 1, hostdb.ByIP: 20}[by]; len(of) > want || len(of) < want*3/4 || len(w.seen) < requests {
		t.Errorf("%d requests to %d queues", len(w.seen), len(of))
	}
	t.Logf("%d requests to %d queues, the longest pause that was due %v, over %v", len(w.seen), len(of), longest, w.seen[len(w.seen)-1].end.Sub(w.seen[0].begin))
}

// witness is a web that notes which host was asked when, under one name for all spellings of
// a host.
type witness struct {
	t    *testing.T
	name map[string]string // of a host as it is spelled
	mu   sync.Mutex
	seen []seen
}

func (w *witness) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	_, rest, _ := strings.Cut(r.URL, "://")
	spelled, path, _ := strings.Cut(rest, "/")
	s := seen{url: r.URL, host: w.name[spelled], begin: time.Now()}
	if s.host == "" {
		w.t.Errorf("%s: an unknown host", r.URL)
	}
	n := hashOf(r.URL)
	resp := body("text/html", "<p>x")
	takes := time.Duration(n%1500) * time.Millisecond
	if n%211 == 0 {
		takes = 30 * time.Second
	}
	switch {
	case path == "robots.txt" && delayOf(s.host) > 0:
		resp = body("text/plain", "User-agent: *\nCrawl-delay: 7\n")
	case path == "robots.txt" && hashOf(s.host)%7 == 1:
		resp = code(protocol.MovedTemp)
		resp.Outcome.Location = "http://h9.d1.example.com/robots.txt"
	case path == "robots.txt":
		resp = code(protocol.NotFound)
	case n%13 == 0:
		resp = code(protocol.Failed)
	case n%29 == 0:
		resp = code(protocol.Busy)
		resp.Outcome.RetryAfter = time.Duration(n%40) * time.Second
	case n%17 == 0:
		resp = code(protocol.MovedPerm)
		resp.Outcome.Location = "http://h0.d0.example.com/to"
	case n%19 == 0:
		resp = code(protocol.NotFound)
	}
	select {
	case <-time.After(takes):
		s.code, s.after = resp.Outcome.Code, resp.Outcome.RetryAfter
	case <-ctx.Done():
	}
	s.end = time.Now()
	w.mu.Lock()
	w.seen = append(w.seen, s)
	w.mu.Unlock()
	if s.code == 0 {
		return protocol.Response{}, ctx.Err()
	}
	return resp, nil
}

type seen struct {
	url, host  string
	begin, end time.Time
	code       protocol.Code // zero if it was cut off
	after      time.Duration
}

func hashOf(s string) int {
	h := fnv.New32a()
	h.Write([]byte(s))
	return int(h.Sum32() >> 1)
}

// delayOf is the Crawl-delay of a host.
func delayOf(host string) time.Duration {
	if hashOf(host)%5 == 0 {
		return 7 * time.Second
	}
	return 0
}
