package fetch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
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
	"github.com/recrawl/recrawl/robots"
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
				r := newRig(t, s, urlSet(host, 13)...)
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
				if h := hostOf(t, r, host); len(h.Busy) > 0 {
					t.Errorf("%+v", h)
				}
			})
		})
	}
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
			r := newRig(t, s, urlSet(host, 60)...)
			r.o.Politeness.ThreadsPerHost, r.o.Politeness.Delay, r.o.Politeness.MinDelay = c.threads, c.delay, c.min
			r.o.SpareThreads = -1
			r.run(seg)
			h := hostOf(t, r, host)
			asks := s.of(host)[1:] // robots.txt
			got := asks[len(asks)-1].begin.Sub(asks[0].begin).Hours() / 24 * r.o.PerDay(&h) / float64(len(asks)-1)
			if want := 24 * float64(time.Hour) / float64(c.want); math.Abs(r.o.PerDay(&h)/want-1) > 0.02 || got < 0.7 || got > 1.1 {
				t.Errorf("%+v: %.0f a day, want %.0f, %.2f times what was", c, r.o.PerDay(&h), want, got)
			}
		})
	}
	o := fetch.Options{Politeness: fetch.Politeness{HostRule: rules(t, "a.example requests=100\nb.example window=22:00-06:00\n* closed").Rule}}
	for name, want := range map[string]float64{"a.example": 100, "b.example": 86400 / 5.2 / 3, "c.example": 86400 / 5.2} {
		if got := o.PerDay(&hostdb.Host{Name: name}); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("%s: %v a day, want %v", name, got, want)
		}
	}
}

// However many share a store, they have the turns of a host together.
func TestTurnsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{latency: 10300 * time.Millisecond}
		r := newRig(t, s, urlSet(host, 20)...)
		r.list("s2", urlSet(host+"/b", 20)...)
		r.list("s3", urlSet(host+"/c", 20)...)
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
		for i, u := range urlSet(host, 12) {
			s.slow[u] = time.Duration(1+i) * time.Second
		}
		s.answer = func(url string) protocol.Response {
			if url == "http://"+host+"/0" {
				return code(protocol.Failed)
			}
			return body("text/html", "x")
		}
		r := newRig(t, s, urlSet(host, 12)...)
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
			r := newRig(t, s, urlSet(host, 4)...)
			r.o.Politeness.MaxFailures, r.o.Politeness.MaxWait, r.o.Politeness.ForgetAfter, r.o.Politeness.NoRobots = -1, 3*time.Hour, c.forget, true
			r.run(seg)
			h := hostOf(t, r, host)
			if h.Backoff != 4 || h.NextFetch.Sub(h.LastFetch) != 40*time.Second {
				t.Fatalf("%+v", h)
			}
			time.Sleep(time.Until(h.NextFetch) + c.away)
			r.list("s2", urlSet(host, 1)...)
			r.run("s2")
			if h := hostOf(t, r, host); h.Backoff != c.want {
				t.Errorf("forgotten after %v, away for %v: Backoff is %d, want %d", c.forget, c.away, h.Backoff, c.want)
			}
		})
	}
}

// MaxWait is about waits beyond the usual pause, which are logged.
func TestMaxWait(t *testing.T) {
	for _, c := range []struct {
		wait, after time.Duration
		skipped     int
		told        string
	}{
		{time.Second, 0, 0, ""},
		{time.Second, 20 * time.Second, 0, ""}, // it is what the host is due anyway
		{time.Second, 21 * time.Second, 3, "skipped for this round"},
		{25 * time.Second, 25 * time.Second, 0, "waiting for host"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{robots: "User-agent: *\nCrawl-delay: 20"}
			s.answer = func(string) protocol.Response {
				r := body("text/html", "x")
				if len(s.of(host)) == 2 {
					r.Outcome.RetryAfter = c.after
				}
				return r
			}
			var log bytes.Buffer
			r := newRig(t, s, urlSet(host, 4)...)
			r.o.Politeness.MaxWait, r.o.Logger = c.wait, slog.New(slog.NewTextHandler(&log, nil))
			if rep := r.run(seg); rep.Visits[protocol.Skipped] != c.skipped {
				t.Errorf("%v, %v: %v", c.wait, c.after, rep.Visits)
			}
			told := log.String()
			if (told == "") != (c.told == "") || !strings.Contains(told, c.told) || strings.Count(told, "\n") > 1 {
				t.Errorf("%v, %v: the Logger heard %q, want %q", c.wait, c.after, told, c.told)
			}
		})
	}
}

// A visit that does not end by itself is cut off before others take its turn for
// abandoned.
func TestVisitWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{slow: map[string]time.Duration{"http://" + host + "/0": 100 * time.Hour}}
		r := newRig(t, s, urlSet(host, 2)...)
		r.run(seg)
		v := r.visits(seg)["http://"+host+"/0"]
		if v.Outcome.Code != protocol.Failed || !strings.Contains(v.Outcome.Reason, "took longer than") {
			t.Errorf("%+v", v.Outcome)
		}
		gaps(t, s.of(host))
	})
}

// Neither does a robots.txt: during its request nobody else asks the host.
func TestRobotsWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{slow: map[string]time.Duration{"http://" + host + "/robots.txt": 100 * time.Hour}}
		r := newRig(t, s, urlSet(host, 2)...)
		r.list("s2", urlSet(host+"/b", 2)...)
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

// Hosts that answer late or never cost those that do answer nothing, however many
// they are.
func TestSlowHostsCostTheOthersNothing(t *testing.T) {
	const quick, each = 12, 20
	for _, c := range []struct {
		slow  int // hosts
		takes time.Duration
		first bool // on the list
	}{{1, 30 * time.Second, true}, {8, 30 * time.Second, true}, {11, 8 * time.Minute, true}, {500, 8 * time.Minute, false}} {
		var rates [2]float64
		for run := range rates {
			synctest.Test(t, func(t *testing.T) {
				s := &site{latency: 100 * time.Millisecond, slow: map[string]time.Duration{}}
				var slow, all []string
				for i := range each {
					for h := range quick {
						all = append(all, fmt.Sprintf("http://h%d.example.test/%d", h, i))
					}
				}
				for i := range 4 {
					for h := range c.slow {
						u := fmt.Sprintf("http://slow%d.example.test/%d", h, i)
						slow = append(slow, u)
						s.slow[u], s.slow[fmt.Sprintf("http://slow%d.example.test/robots.txt", h)] = c.takes, c.takes
					}
				}
				if run == 1 && c.first {
					all = slices.Concat(slow, all)
				} else if run == 1 {
					all = slices.Concat(all, slow)
				}
				r := newRig(t, s, all...)
				r.o.Threads = 8
				began := time.Now()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				n := 0
				r.o.OnVisit = func(v segment.Visit, p fetch.Progress) {
					if p.InFlight > 3*8 {
						t.Errorf("%d visits at once", p.InFlight)
					}
					if strings.Contains(v.URL, "//h") {
						if n++; n == quick*each {
							rates[run] = float64(n) / time.Since(began).Seconds()
							cancel()
						}
					}
				}
				fetch.Run(ctx, r.db.Segments(), seg, r.o)
			})
		}
		// Hosts that come after many unknown slow ones wait for these.
		if rates[1] < 0.9*rates[0] {
			t.Errorf("%d hosts that take %v: %.2f pages a second, and %.2f without them", c.slow, c.takes, rates[1], rates[0])
		}
	}
}

// Once a host is known to be quick there are always workers for it.
func TestQuickHostsHaveWorkersOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{latency: 100 * time.Millisecond, slow: map[string]time.Duration{}}
		urls := urlSet(host, 40)
		for h := range 300 {
			for _, u := range urlSet(fmt.Sprintf("slow%d.example.test", h), 3) {
				urls = append(urls, u)
				s.slow[u] = 9 * time.Minute
			}
		}
		r := newRig(t, s, urls...)
		r.o.Threads = 4
		r.run(seg)
		for i, gap := range gaps(t, s.of(host)) {
			if gap != 5*time.Second && i > 0 { // three hundred robots.txt come first
				t.Errorf("pause %d is %v", i, gap)
			}
		}
	})
}

func TestSlowHostIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{latency: 20 * time.Second}
		r := newRig(t, s, urlSet(host, 3)...)
		r.run(seg)
		if h := hostOf(t, r, host); h.Elapsed != 4*time.Second {
			t.Errorf("%v", h.Elapsed)
		}
		s.latency = 0
		r.list("s2", urlSet(host, 8)...)
		r.run("s2")
		if h := hostOf(t, r, host); h.Elapsed > time.Second || h.Elapsed == 0 {
			t.Errorf("%v", h.Elapsed)
		}
	})
}

// A host that has the head of the list does not keep later hosts waiting, and nothing is lost
// or visited twice.
func TestListThatIsNotMixed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		urls := urlSet("big.example.test", 3000)
		const others = 150
		for h := range others {
			urls = append(urls, urlSet(fmt.Sprintf("h%d.example.test", h), 30)...)
		}
		s := &site{}
		r := newRig(t, s, urls...)
		r.o.Limits.QueueDepth, r.o.Threads, r.o.Politeness.NoRobots = 40, 50, true // 2,000 in memory
		r.o.Politeness.Delay = time.Second
		waits := 0
		r.o.OnVisit = func(_ segment.Visit, p fetch.Progress) { waits = max(waits, p.Listed-p.Done) }
		began := time.Now()
		rep := r.run(seg)
		if rep.Listed != len(urls) || rep.Visits[protocol.Success] != len(urls) || len(s.of("")) != len(urls) {
			t.Errorf("%d requests, %+v", len(s.of("")), rep)
		}
		last := s.of("//h")
		if took := last[len(last)-1].end.Sub(began); took > 5*time.Minute {
			t.Errorf("the others took %v", took)
		}
		if took := time.Since(began); took > 3001*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// What was passed over is given up with its host, and counted when a limit is hit.
func TestPassedOver(t *testing.T) {
	for _, limited := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			urls := urlSet("big.example.test", 3000)
			for h := range 100 {
				urls = append(urls, urlSet(fmt.Sprintf("h%d.example.test", h), 3)...)
			}
			s := &site{answer: func(u string) protocol.Response {
				if strings.Contains(u, "big") {
					return code(protocol.Failed)
				}
				return body("text/html", "x")
			}}
			r := newRig(t, s, urls...)
			r.o.Limits.QueueDepth, r.o.Threads = 10, 40
			if limited {
				r.o.Limits.TimeLimit = 8 * time.Second
			}
			rep := r.run(seg)
			if n := rep.Visited() + rep.TimedOut; rep.Listed != len(urls) || n != len(urls) || limited != (rep.TimedOut > 0) {
				t.Errorf("%d of %d, %+v", n, len(urls), rep)
			}
			if n := len(s.of("big.example.test/")); !limited && n != 6 {
				t.Errorf("%d requests to the host that fails", n)
			}
		})
	}
}

// queued is a host db in which updates wait for each other, and which others write, too.
type queued struct {
	hostdb.Store
	mu      sync.Mutex
	calls   int
	wait    time.Duration // up to four times of it
	earlier time.Duration // by which others, whose clock is behind, set turns right
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
		h.Busy = slices.Clone(h.Busy)
		for i := range h.Busy {
			h.Busy[i] = h.Busy[i].Add(-q.earlier)
		}
		return &h, nil
	})
}

// Every turn is given back, although some workers that read the clock first come second, and
// although others, whose clocks are behind, take the turns for those of the future. A host
// with a turn that is not given back would not be asked for ten minutes.
func TestTurnsAreGivenBack(t *testing.T) {
	for name, q := range map[string]*queued{
		"some wait for the store":    {wait: 5 * time.Millisecond},
		"a clock is behind":          {earlier: 700 * time.Millisecond},
		"a clock is behind and wait": {earlier: 3 * time.Millisecond, wait: 2 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, &site{latency: 7 * time.Millisecond}, urlSet(host, 60)...)
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
				if h := hostOf(t, r, host); len(h.Busy) > 0 {
					t.Errorf("%d turns are kept", len(h.Busy))
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
	if f.left.Add(-1) < 0 && ctx.Done() != nil { // turns can be given back
		return hostdb.ErrClosed
	}
	return f.Store.Update(ctx, name, next)
}

// When the host db fails, visits under way are stopped: nobody waits for a slow page.
func TestAStoreThatFailsEndsTheVisits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{slow: map[string]time.Duration{"http://slow.test/": time.Minute}}
		r := newRig(t, s, append(urlSet(host, 20), "http://slow.test/")...)
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
		r := newRig(t, &site{latency: time.Second}, urlSet(host, 20)...)
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

// A turn in which nothing was asked is given back to the day on which it was taken.
func TestTurnGivenBackAfterMidnight(t *testing.T) {
	for _, c := range []struct {
		name  string
		began time.Duration // before midnight
		want  int64         // requests of the day at the end: one of this run and three of others
	}{{"the same day", 10 * time.Minute, 3}, {"the next day", time.Second, 3}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(24*time.Hour - c.began)
				s := &site{latency: 2 * time.Second, answer: func(string) protocol.Response { return code(protocol.Refused) }}
				r := newRig(t, s, urlSet(host, 1)...)
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
