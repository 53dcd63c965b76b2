package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

const host = "a.example.test"

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
				r := newRig(t, s, urlSet(host, 4)...)
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

// A host db that was written under a clock a year ahead keeps no host from being visited,
// and pauses are kept.
func TestClockThatWasAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{}
		r := newRig(t, s, "http://"+host+"/1", "http://"+host+"/2")
		ahead := time.Now().AddDate(1, 0, 0)
		err := r.db.Hosts().Update(t.Context(), host, func(*hostdb.Host) (*hostdb.Host, error) {
			return &hostdb.Host{Name: host, LastFetch: ahead, NextFetch: ahead.Add(7 * time.Second)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		r.run(seg)
		visits := s.of(host)
		if len(visits) != 3 || visits[0].begin.Sub(began) != 7*time.Second {
			t.Fatalf("%v", visits)
		}
		for _, gap := range gaps(t, visits) {
			if gap < 5*time.Second {
				t.Errorf("pause of %v", gap)
			}
		}
	})
}

// jumping is a site during whose first answer the clock is set back by a year: what
// was written of the host before is then of the future.
type jumping struct {
	*site
	r    *rig
	once sync.Once
}

func (j *jumping) Fetch(ctx context.Context, req protocol.Request) (protocol.Response, error) {
	resp, err := j.site.Fetch(ctx, req)
	j.once.Do(func() { err = errors.Join(err, j.r.ahead(host)) })
	return resp, err
}

// ahead puts the record of a host a year into the future.
func (r *rig) ahead(name string) error {
	return r.db.Hosts().Update(context.Background(), name, func(old *hostdb.Host) (*hostdb.Host, error) {
		h := *old
		h.NextFetch = h.NextFetch.AddDate(1, 0, 0)
		h.Busy = slices.Clone(h.Busy)
		for i := range h.Busy {
			h.Busy[i] = h.Busy[i].AddDate(1, 0, 0)
		}
		return &h, nil
	})
}

// A clock that is set back during a request, or after a process that made one has died, keeps
// nobody from the host.
func TestClockThatIsSetBack(t *testing.T) {
	for _, threads := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{latency: time.Second}
			r := newRig(t, s, urlSet(host, 5)...)
			r.o.Protocol, r.o.Politeness.ThreadsPerHost = &jumping{site: s, r: r}, threads
			r.renew()
			if rep := r.run(seg); rep.Visits[protocol.Success] != 5 {
				t.Errorf("%d threads: %v", threads, rep.Visits)
			}
			polite(t, s, hostdb.ByHost, five)
		})
		synctest.Test(t, func(t *testing.T) {
			s := &site{latency: time.Second}
			r := newRig(t, s, urlSet(host, 5)...)
			r.o.Politeness.ThreadsPerHost = threads
			err := r.db.Hosts().Update(t.Context(), host, func(*hostdb.Host) (*hostdb.Host, error) {
				return &hostdb.Host{Name: host, NextFetch: time.Now(), Busy: []time.Time{time.Now().Add(hostdb.MaxGrant)}}, nil
			})
			if err := errors.Join(err, r.ahead(host)); err != nil {
				t.Fatal(err)
			}
			if rep := r.run(seg); rep.Visits[protocol.Success] != 5 {
				t.Errorf("%d threads: %v", threads, rep.Visits)
			}
		})
	}
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
				r := newRig(t, s, urlSet(host, 4)...)
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
		r := newRig(t, s, urlSet(host, 7)...)
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

func TestHostThatFails(t *testing.T) {
	for _, c := range []struct{ max, requests int }{{0, 5}, {2, 2}, {-1, 8}} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{answer: func(string) protocol.Response { return code(protocol.Failed) }}
			r := newRig(t, s, urlSet(host, 8)...)
			r.o.Politeness.MaxFailures, r.o.Politeness.MaxWait = c.max, 3*time.Hour
			var told int
			r.o.OnVisit = func(segment.Visit, fetch.Progress) { told++ }
			rep := r.run(seg)
			if n := len(s.of(host)) - 1; n != c.requests || rep.Visits[protocol.Failed] != n || rep.Visits[protocol.Skipped] != 8-n {
				t.Errorf("MaxFailures %d: %d requests, %v", c.max, n, rep.Visits)
			}
			if told != 8 {
				t.Errorf("OnVisit was told of %d visits of 8", told)
			}
			r.visits(seg)
			aligned(t, r.db.Segments(), seg)
		})
	}
}

func TestHostThatWasDownCostsOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := true
		s := &site{answer: func(string) protocol.Response {
			if down {
				return code(protocol.Failed)
			}
			return body("text/html", "x")
		}}
		r := newRig(t, s, urlSet(host, 10)...)
		r.run(seg)
		for round := range 3 {
			time.Sleep(12 * time.Hour) // robots.txt still holds, or no longer
			before := len(s.of(host)) - len(s.of("robots.txt"))
			name := fmt.Sprint("down", round)
			r.list(name, urlSet(host, 10)...)
			r.run(name)
			if n := len(s.of(host)) - len(s.of("robots.txt")) - before; n != 1 {
				t.Errorf("round %d: %d pages were asked for, want 1", round, n)
			}
			if n := r.codes(name)[protocol.Skipped]; n != 9 {
				t.Errorf("round %d: %d skipped", round, n)
			}
		}
		// When it is up again it is crawled again, whether robots.txt has to be
		// asked for first or not.
		time.Sleep(25 * time.Hour)
		down = false
		r.list("up", urlSet(host, 10)...)
		if rep := r.run("up"); rep.Visits[protocol.Success] != 10 || rep.Robots != 1 {
			t.Errorf("up again: %+v", rep)
		}
	})
}

func TestTwoRunsAreOnePoliteClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{latency: 700 * time.Millisecond}
		r := newRig(t, s, urlSet(host, 6)...)
		r.list("s2", "http://"+host+"/a", "http://"+host+"/b", "http://"+host+"/c")
		r.o.Politeness.Delay = 2 * time.Second
		var wg sync.WaitGroup
		for _, name := range []string{seg, "s2"} {
			wg.Go(func() { r.run(name) })
		}
		wg.Wait()
		asks := s.of(host)
		for _, gap := range gaps(t, asks) {
			if gap < 2*time.Second {
				t.Errorf("pause of %v", gap)
			}
		}
		if n := len(asks) - len(s.of("robots.txt")); n != 9 {
			t.Errorf("%d pages", n)
		}
		if took := asks[len(asks)-1].end.Sub(asks[0].begin); took > time.Minute {
			t.Errorf("it took %v", took)
		}
		if h := hostOf(t, r, host); len(h.Busy) > 0 || h.Stats.Fetched != 9 {
			t.Errorf("%+v", h)
		}
	})
}

func TestSlowHostCostsTheOthersNothing(t *testing.T) {
	took := func(slow time.Duration) (others, all time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			var urls []string
			for h := range 20 {
				urls = append(urls, urlSet(fmt.Sprintf("h%d.example.test", h), 5)...)
			}
			s := &site{latency: 100 * time.Millisecond, slow: map[string]time.Duration{}}
			for _, u := range urlSet("slow.example.test", 5) {
				urls = append(urls, u)
				s.slow[u] = slow
			}
			r := newRig(t, s, urls...)
			began := time.Now()
			r.run(seg)
			all = time.Since(began)
			for _, a := range s.of("http://h") {
				others = max(others, a.end.Sub(began))
			}
		})
		return others, all
	}
	fast, _ := took(100 * time.Millisecond)
	slow, all := took(5 * time.Minute)
	if fast != slow || all < 25*time.Minute {
		t.Errorf("the others took %v, and %v beside a slow host, which took %v", fast, slow, all)
	}
}

func TestRobotsBeforePages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{latency: time.Second, robots: "User-agent: test\nDisallow: /private\nUser-agent: *\nDisallow: /\n"}
		var urls []string
		for _, origin := range []string{"http://a.example.test", "https://a.example.test", "http://a.example.test:8080", "http://b.example.test"} {
			urls = append(urls, origin+"/", origin+"/private", origin+"/private/x", origin+"/public")
		}
		r := newRig(t, s, urls...)
		rep := r.run(seg)
		if rep.Robots != 4 || rep.Visits[protocol.RobotsDenied] != 8 || rep.Visits[protocol.Success] != 8 {
			t.Errorf("%+v", rep)
		}
		if asks := s.of("/private"); len(asks) > 0 {
			t.Errorf("forbidden pages were asked for: %v", asks)
		}
		known := map[string]time.Time{}
		for _, a := range s.of("") {
			origin := a.url[:strings.Index(a.url[8:], "/")+8]
			if strings.HasSuffix(a.url, "/robots.txt") {
				if _, again := known[origin]; again {
					t.Errorf("%s was asked for twice", a.url)
				}
				known[origin] = a.end
			} else if at, ok := known[origin]; !ok || at.After(a.begin) {
				t.Errorf("%s was asked for before robots.txt was known", a.url)
			}
		}
		gaps(t, s.of("a.example.test")) // the origins of a host share its turn
	})
}

func TestUnavailableRobots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{}
		r := newRig(t, s, urlSet(host, 30)...)
		r.o.Protocol = protocolFunc(func(ctx context.Context, q protocol.Request) (protocol.Response, error) {
			s.Fetch(ctx, q)
			return code(protocol.Failed), nil
		})
		r.renew()
		rep := r.run(seg)
		if n := len(s.of(host)); n != 1 || rep.Visits[protocol.RobotsFailed] != 30 {
			t.Errorf("%d requests, %v", n, rep.Visits)
		}
		if h := hostOf(t, r, host); h.Stats.Failures != 0 || len(h.Busy) > 0 {
			t.Errorf("%+v", h)
		}
	})
}

type protocolFunc func(context.Context, protocol.Request) (protocol.Response, error)

func (f protocolFunc) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	return f(ctx, r)
}

func TestByDomain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{latency: 300 * time.Millisecond}
		urls := slices.Concat(urlSet("a.shop.com", 3), urlSet("b.shop.com", 3), urlSet("c.shop.co.uk", 3))
		r := newRig(t, s, urls...)
		r.o.Politeness.By = hostdb.ByDomain
		r.run(seg)
		for _, domain := range []string{"shop.com", "shop.co.uk"} {
			asks := s.of(domain)
			if want := map[string]int{"shop.com": 8, "shop.co.uk": 4}[domain]; len(asks) != want {
				t.Errorf("%s: %d requests, want %d", domain, len(asks), want)
			}
			for _, gap := range gaps(t, asks) {
				if gap != 5*time.Second {
					t.Errorf("%s: pause of %v", domain, gap)
				}
			}
		}
	})
}

func TestParserDoesNotHoldTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{latency: time.Second}
		r := newRig(t, s, urlSet(host, 4)...)
		inner := r.o.Parser
		r.o.Parser = slowParser(inner, 3*time.Second)
		r.run(seg)
		for _, gap := range gaps(t, s.of(host)) {
			if gap != 5*time.Second {
				t.Errorf("pause of %v", gap)
			}
		}
	})
}

func TestRefusedIsNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{answer: func(string) protocol.Response { return code(protocol.Refused) }}
		r := newRig(t, s, urlSet(host, 50)...)
		began := time.Now()
		rep := r.run(seg)
		if rep.Visits[protocol.Refused] != 50 || time.Since(began) > 10*time.Second {
			t.Errorf("%v in %v", rep.Visits, time.Since(began))
		}
		if h := hostOf(t, r, host); h.Stats.Gone != 0 {
			t.Errorf("%+v", h.Stats)
		}
	})
}

func TestHostlessPagesNeedNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{}
		r := newRig(t, s, "file:///a", "file:///b", "file:///c")
		began := time.Now()
		if rep := r.run(seg); rep.Visits[protocol.Success] != 3 || time.Since(began) > 0 {
			t.Errorf("%v in %v", rep.Visits, time.Since(began))
		}
		for h := range r.db.Hosts().Scan(t.Context()) {
			t.Errorf("a record was made: %+v", h.Name)
		}
	})
}
