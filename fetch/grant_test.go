package fetch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/segment"
)

// inFlight returns how many requests overlapped at most, and the least time
// between a request and one that began before it: from beginning to beginning,
// and from an end to the next beginning.
func inFlight(asks []ask) (most int, begun, ended time.Duration) {
	begun, ended = time.Hour, time.Hour
	for i, a := range asks {
		under := 0
		for _, b := range asks[:i+1] {
			if b.end.After(a.begin) || b == a {
				under++
			} else if !b.end.Equal(a.begin) { // neither can know of the other
				ended = min(ended, a.begin.Sub(b.end))
			}
		}
		most = max(most, under)
		if i > 0 {
			begun = min(begun, a.begin.Sub(asks[i-1].begin))
		}
	}
	return most, begun, ended
}

func TestSeveralThreadsOfAHost(t *testing.T) {
	const sec, ms = time.Second, time.Millisecond
	for _, c := range []struct {
		name         string
		threads      int
		delay, min   time.Duration
		robots       string
		most         int
		begun, ended time.Duration
	}{
		{"one", 0, 0, 0, "", 1, 15300 * ms, 5 * sec},
		{"one has no MinDelay", 1, 2 * sec, sec, "", 1, 12300 * ms, 2 * sec},
		{"polite by default", 4, 0, 0, "", 3, 5 * sec, 5 * sec},
		{"MinDelay", 3, 5 * sec, 2 * sec, "", 3, 2 * sec, 2 * sec},
		{"no pause", 4, 5 * sec, -1, "", 4, 0, 0},
		{"a Crawl-delay is for one at a time", 4, sec, sec, "User-agent: *\nCrawl-delay: 3", 1, 13300 * ms, 3 * sec},
		{"a Crawl-delay below the delay", 4, 7 * sec, sec, "User-agent: *\nCrawl-delay: 3", 1, 17300 * ms, 7 * sec},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &site{latency: 10*sec + 300*time.Millisecond, robots: c.robots}
				r := newRig(t, s, pageURLs(host, 13)...)
				r.o.Politeness.ThreadsPerHost, r.o.Politeness.Delay, r.o.Politeness.MinDelay = c.threads, c.delay, c.min
				r.o.SpareThreads = -1
				rep := r.run(seg)
				asks := s.of(host)
				if n := len(asks); n != 14 || rep.Robots != 1 || rep.Visits[protocol.Success] != 13 {
					t.Errorf("%d requests, %+v", n, rep)
				}
				most, begun, ended := inFlight(asks)
				if most != c.most || begun < c.begun || ended < c.ended || begun > c.begun && ended > c.ended {
					t.Errorf("%d at once, %v between beginnings, %v after an end, want %d, %v and %v", most, begun, ended, c.most, c.begun, c.ended)
				}
				if h := hostOf(t, r, host); len(h.Grants) > 0 {
					t.Errorf("%+v", h)
				}
			})
		})
	}
}

// However many share a store, they share the grants of a host.
func TestGrantsAreSharedBetweenRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{latency: 10300 * time.Millisecond}
		r := newRig(t, s, pageURLs(host, 20)...)
		r.list("s2", pageURLs(host+"/b", 20)...)
		r.list("s3", pageURLs(host+"/c", 20)...)
		r.o.Politeness.ThreadsPerHost, r.o.Politeness.MinDelay = 3, 500*time.Millisecond
		var wg sync.WaitGroup
		for _, name := range []string{seg, "s2", "s3"} {
			wg.Go(func() { r.run(name) })
		}
		wg.Wait()
		most, begun, ended := inFlight(s.of(host))
		if most != 3 || begun < 500*time.Millisecond || ended < 500*time.Millisecond {
			t.Errorf("%d at once, %v between beginnings, %v after an end", most, begun, ended)
		}
	})
}

// A host that fails is asked for one page at a time, and its back-off is not
// undone by an answer that comes meanwhile.
func TestFailuresEndSeveralThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{slow: map[string]time.Duration{}}
		for i, u := range pageURLs(host, 12) {
			s.slow[u] = time.Duration(1+i) * time.Second
		}
		s.answer = func(url string) protocol.Response {
			if url == "http://"+host+"/0" {
				return code(protocol.Failed)
			}
			return body("text/html", "x")
		}
		r := newRig(t, s, pageURLs(host, 12)...)
		r.o.Politeness.ThreadsPerHost, r.o.Politeness.MinDelay, r.o.Politeness.FailureDelay = 3, 100*time.Millisecond, 40*time.Second
		r.run(seg)
		asks := s.of(host + "/")[1:]
		failed := s.of(host + "/0")[0].end
		for _, a := range asks {
			if a.begin.After(failed) && a.begin.Sub(failed) < 40*time.Second {
				t.Errorf("%s was asked for %v after the failure", a.url, a.begin.Sub(failed))
			}
		}
		if most, _, _ := inFlight(asks[4:]); most != 3 {
			t.Errorf("%d at once when all is well again", most)
		}
	})
}

// A visit that does not end by itself is cut off before others take its grant for
// abandoned.
func TestVisitThatNeverEndsIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{slow: map[string]time.Duration{"http://" + host + "/0": 100 * time.Hour}}
		r := newRig(t, s, pageURLs(host, 2)...)
		r.run(seg)
		v := r.visits(seg)["http://"+host+"/0"]
		if v.Outcome.Code != protocol.Failed || !strings.Contains(v.Outcome.Reason, "took longer than") {
			t.Errorf("%+v", v.Outcome)
		}
		gaps(t, s.of(host))
	})
}

// Neither does a robots.txt: no other request is made to the host meanwhile.
func TestRobotsTxtThatNeverEndsIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{slow: map[string]time.Duration{"http://" + host + "/robots.txt": 100 * time.Hour}}
		r := newRig(t, s, pageURLs(host, 2)...)
		r.list("s2", pageURLs(host+"/b", 2)...)
		began := time.Now()
		var wg sync.WaitGroup
		for _, name := range []string{seg, "s2"} {
			o := r.o
			o.Robots = &robots.Cache{Protocol: s, Hosts: r.o.Hosts}
			wg.Go(func() {
				if _, err := fetch.Run(t.Context(), r.db.Segments(), name, o); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); took > hostdb.MaxGrant {
			t.Errorf("it took %v", took)
		}
		for _, name := range []string{seg, "s2"} {
			for url, v := range r.visits(name) {
				if v.Outcome.Code != protocol.RobotsFailed {
					t.Errorf("%s: %+v", url, v.Outcome)
				}
			}
		}
		gaps(t, s.of(host))
	})
}

// queued is a host db in which updates wait for each other, and which others write, too.
type queued struct {
	hostdb.Store
	mu      sync.Mutex
	calls   int
	wait    time.Duration // up to four times of it
	earlier time.Duration // by which others, whose clock is behind, correct grants
}

func (q *queued) Update(ctx context.Context, name string, next func(*hostdb.Host) (*hostdb.Host, error)) error {
	q.mu.Lock()
	q.calls++
	wait := time.Duration(q.calls*7%5) * q.wait
	q.mu.Unlock()
	time.Sleep(wait)
	err := q.Store.Update(ctx, name, next)
	if err != nil || q.earlier == 0 {
		return err
	}
	return q.Store.Update(ctx, name, func(old *hostdb.Host) (*hostdb.Host, error) {
		h := *old
		h.Grants = slices.Clone(h.Grants)
		for i := range h.Grants {
			h.Grants[i] = h.Grants[i].Add(-q.earlier)
		}
		return &h, nil
	})
}

// Every grant is released, although some workers that read the clock first come second, and
// although others, whose clocks are behind, take the grants for those of the future. A host
// with a grant that is not released would not be asked for ten minutes.
func TestGrantsAreReleased(t *testing.T) {
	for name, q := range map[string]*queued{
		"some wait for the store":    {wait: 5 * time.Millisecond},
		"a clock is behind":          {earlier: 700 * time.Millisecond},
		"a clock is behind and wait": {earlier: 3 * time.Millisecond, wait: 2 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, &site{latency: 7 * time.Millisecond}, pageURLs(host, 60)...)
				r.o.Politeness.ThreadsPerHost, r.o.Politeness.Delay, r.o.SpareThreads = 4, -1, -1
				q.Store = r.o.Hosts
				r.o.Hosts = q
				began := time.Now()
				if rep := r.run(seg); rep.Visits[protocol.Success] != 60 {
					t.Errorf("%+v", rep)
				}
				if took := time.Since(began); took > time.Minute {
					t.Errorf("took %v", took)
				}
				if h := hostOf(t, r, host); len(h.Grants) > 0 {
					t.Errorf("%d turns are kept", len(h.Grants))
				}
			})
		})
	}
}

// failing is a host db that fails after some calls.
type failing struct {
	hostdb.Store
	left atomic.Int64
}

func (f *failing) Update(ctx context.Context, name string, next func(*hostdb.Host) (*hostdb.Host, error)) error {
	if f.left.Add(-1) < 0 && ctx.Done() != nil { // grants can be released
		return hostdb.ErrClosed
	}
	return f.Store.Update(ctx, name, next)
}

// When the host db fails, visits under way are stopped: the error does not wait for a slow page.
func TestAStoreThatFailsEndsTheVisits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{slow: map[string]time.Duration{"http://slow.test/": time.Minute}}
		r := newRig(t, s, append(pageURLs(host, 20), "http://slow.test/")...)
		f := &failing{Store: r.o.Hosts}
		f.left.Store(14)
		r.o.Hosts, r.o.Politeness.NoRobots = f, true
		began := time.Now()
		_, err := fetch.Run(t.Context(), r.db.Segments(), seg, r.o)
		if !errors.Is(err, hostdb.ErrClosed) {
			t.Errorf("%v", err)
		}
		if asks := s.of("slow.test"); len(asks) != 1 || !asks[0].cut || time.Since(began) > 50*time.Second {
			t.Errorf("%+v after %v", asks, time.Since(began))
		}
	})
}

// unreadable segments cannot be read from some moment on.
type unreadable struct {
	segment.Store
	cancel func()
}

func (u unreadable) Append(ctx context.Context, name, part string, keep int) (segment.BlockWriter, error) {
	w, err := u.Store.Append(ctx, name, part, keep)
	if part == segment.FetchPart { // the last to be opened
		u.cancel()
	}
	return w, err
}

// A resumed fetch that is cancelled after it has opened its parts, and before it has begun,
// leaves none of them open.
func TestCancelledAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &site{latency: time.Second}, pageURLs(host, 20)...)
		r.o.Following.MaxRedirects = 3 // so that what was visited is read again
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, err := fetch.Run(ctx, r.db.Segments(), seg, r.o)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		if _, err := fetch.Run(ctx, unreadable{r.db.Segments(), cancel}, seg, r.o); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if rep := r.run(seg); rep.Resumed == 0 || rep.Resumed+rep.Visited() != 20 {
			t.Errorf("%+v", rep)
		}
	})
}

// A grant without a request is released on the day on which it was taken.
func TestGrantReleasedAfterMidnight(t *testing.T) {
	for _, c := range []struct {
		name  string
		began time.Duration // before midnight
		want  int64         // requests of the day at the end: one of this run and three of others
	}{{"the same day", 10 * time.Minute, 3}, {"the next day", time.Second, 3}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(24*time.Hour - c.began)
				s := &site{latency: 2 * time.Second, answer: func(string) protocol.Response { return code(protocol.Refused) }}
				r := newRig(t, s, pageURLs(host, 1)...)
				r.o.Politeness.NoRobots = true
				go func() { // others, while the visit is under way
					time.Sleep(1500 * time.Millisecond)
					err := r.o.Hosts.Update(t.Context(), host, func(old *hostdb.Host) (*hostdb.Host, error) {
						h := *old
						h.Spent = h.Spent.On(time.Now())
						h.Spent.Requests += 3
						return &h, nil
					})
					if err != nil {
						t.Error(err)
					}
				}()
				r.run(seg)
				if h := hostOf(t, r, host); h.Spent.Requests != c.want {
					t.Errorf("%+v, want %d requests", h.Spent, c.want)
				}
			})
		})
	}
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
		h.Grants = slices.Clone(h.Grants)
		for i := range h.Grants {
			h.Grants[i] = h.Grants[i].AddDate(1, 0, 0)
		}
		return &h, nil
	})
}

// A clock that is set back during a request, or after a process that made one has died, keeps
// no worker from the host.
func TestClockThatIsSetBack(t *testing.T) {
	for _, threads := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{latency: time.Second}
			r := newRig(t, s, pageURLs(host, 5)...)
			r.o.Protocol, r.o.Politeness.ThreadsPerHost = &jumping{site: s, r: r}, threads
			r.renew()
			if rep := r.run(seg); rep.Visits[protocol.Success] != 5 {
				t.Errorf("%d threads: %v", threads, rep.Visits)
			}
			polite(t, s, hostdb.ByHost, five)
		})
		synctest.Test(t, func(t *testing.T) {
			s := &site{latency: time.Second}
			r := newRig(t, s, pageURLs(host, 5)...)
			r.o.Politeness.ThreadsPerHost = threads
			err := r.db.Hosts().Update(t.Context(), host, func(*hostdb.Host) (*hostdb.Host, error) {
				return &hostdb.Host{Name: host, NextFetch: time.Now(), Grants: []time.Time{time.Now().Add(hostdb.MaxGrant)}}, nil
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

func TestTwoRunsAreOnePoliteClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{latency: 700 * time.Millisecond}
		r := newRig(t, s, pageURLs(host, 6)...)
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
		if h := hostOf(t, r, host); len(h.Grants) > 0 || h.Stats.Fetched != 9 {
			t.Errorf("%+v", h)
		}
	})
}

func TestByDomain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{latency: 300 * time.Millisecond}
		urls := slices.Concat(pageURLs("a.shop.com", 3), pageURLs("b.shop.com", 3), pageURLs("c.shop.co.uk", 3))
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

func TestRefusedIsNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{answer: func(string) protocol.Response { return code(protocol.Refused) }}
		r := newRig(t, s, pageURLs(host, 50)...)
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

func TestPagesWithoutHostNeedNoGrant(t *testing.T) {
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
