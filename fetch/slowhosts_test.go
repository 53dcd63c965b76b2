package fetch_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// census is a web that counts goroutines whenever a request to it begins or ends.
type census struct {
	*site

	mu    sync.Mutex
	under int // requests
	// The most there were at once.
	asked, goroutines int
}

func (c *census) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	c.count(1)
	defer c.count(-1)
	return c.site.Fetch(ctx, r)
}

func (c *census) count(more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.under += more
	c.asked = max(c.asked, c.under)
	if runtime.NumGoroutine() > c.goroutines { // which costs less
		c.goroutines = max(c.goroutines, goroutines())
	}
}

// goroutines returns how many there are. The profile, which has no room for them, counts them
// while the world is stopped; runtime.NumGoroutine counts those that have just ended, too.
func goroutines() int {
	n, _ := runtime.GoroutineProfile(make([]runtime.StackRecord, 1))
	return n
}

// A fetch has a goroutine for each worker, one that writes and, while the list is read, one
// that reads it, however many hosts and pages wait; none is left when it returns.
func TestGoroutinesAreThoseOfTheWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct{ hosts, each, threads int }{
			{300, 3, 4},
			{300, 30, 4},
			{3000, 3, 4},
			{300, 3, 16},
		} {
			if testlevel.Race {
				c.hosts /= 3
			}
			var urls []string
			for i := range c.each {
				for h := range c.hosts {
					urls = append(urls, fmt.Sprintf("http://h%d.test/%d", h, i))
				}
			}
			web := &census{site: &site{latency: 100 * time.Millisecond}}
			r := newRig(t, web.site, urls...)
			r.o.Protocol = web
			r.renew()
			// The pause is longer than the first visits to all hosts take together, so that
			// these wait for the next ones at the same time.
			r.o.Threads, r.o.SpareThreads, r.o.Politeness.Delay = c.threads, -1, 10*time.Minute
			waiting := 0
			r.o.OnVisit = func(_ segment.Visit, p fetch.Progress) { waiting = max(waiting, p.Hosts) }
			before := goroutines() // or more: those of the test before may be ending
			rep := r.run(seg)
			synctest.Wait() // for what is just ending
			after := goroutines()
			if rep.Visits[protocol.Success] != len(urls) || waiting != c.hosts || web.asked != c.threads {
				t.Errorf("%+v: visits %v, of %d hosts at once, %d requests at once", c, rep.Visits, waiting, web.asked)
			}
			n := web.goroutines - before - c.threads
			t.Logf("%+v: %d goroutines before, %d besides the workers, %d after", c, before, n, after)
			if n > 2 {
				t.Errorf("%+v: %d goroutines besides the workers, want 2 at the most", c, n)
			}
			if after > before {
				t.Errorf("%+v: %d goroutines after the fetch, %d before", c, after, before)
			}
		}
	})
}

// Any number of threads can be asked for.
func TestMaximumOfThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, n := range []int{math.MaxInt, math.MaxInt / 4} {
			r := newRig(t, &site{latency: time.Second}, pageURLs(host, 3)...)
			r.o.Threads, r.o.SpareThreads = n, n
			if rep := r.run(seg); rep.Visits[protocol.Success] != 3 {
				t.Errorf("%d threads: %+v", n, rep)
			}
		}
	})
}

func TestSlowHostDoesNotDelayOthers(t *testing.T) {
	took := func(slow time.Duration) (others, all time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			var urls []string
			for h := range 20 {
				urls = append(urls, pageURLs(fmt.Sprintf("h%d.example.test", h), 5)...)
			}
			s := &site{latency: 100 * time.Millisecond, slow: map[string]time.Duration{}}
			for _, u := range pageURLs("slow.example.test", 5) {
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

func TestParserDoesNotHoldTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{latency: time.Second}
		r := newRig(t, s, pageURLs(host, 4)...)
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

// Hosts that answer late or never cost those that do answer nothing, however many
// they are.
func TestManySlowHostsDoNotDelayOthers(t *testing.T) {
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
		urls := pageURLs(host, 40)
		for h := range 300 {
			for _, u := range pageURLs(fmt.Sprintf("slow%d.example.test", h), 3) {
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
		r := newRig(t, s, pageURLs(host, 3)...)
		r.run(seg)
		if h := hostOf(t, r, host); h.Elapsed != 4*time.Second {
			t.Errorf("%v", h.Elapsed)
		}
		s.latency = 0
		r.list("s2", pageURLs(host, 8)...)
		r.run("s2")
		if h := hostOf(t, r, host); h.Elapsed > time.Second || h.Elapsed == 0 {
			t.Errorf("%v", h.Elapsed)
		}
	})
}
