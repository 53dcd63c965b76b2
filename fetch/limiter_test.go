package fetch_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol"
)

// hosts returns n URLs, each of a host of its own.
func hosts(n int, path string) []string {
	var urls []string
	for i := range n {
		urls = append(urls, fmt.Sprintf("http://h%d.example.test/%s", i, path))
	}
	return urls
}

// Requests begin at the rate and no sooner, whichever worker makes them.
func TestLimiterOfRequests(t *testing.T) {
	for _, c := range []struct {
		rate   float64
		robots bool
		least  time.Duration // between two
		n      int
	}{
		{10, false, 100 * time.Millisecond, 300},
		{10, true, 100 * time.Millisecond, 600},
		{0.5, false, 2 * time.Second, 300},
		{1000, false, time.Millisecond, 300},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{latency: 300 * time.Millisecond}
			r := newRig(t, s, hosts(150, "a")...)
			r.list("s2", hosts(150, "b")...)
			r.o.Politeness.Limiter, r.o.Politeness.NoRobots = &fetch.Limiter{Requests: c.rate}, !c.robots
			began := time.Now()
			var wg sync.WaitGroup
			for _, name := range []string{seg, "s2"} {
				wg.Go(func() { r.run(name) })
			}
			wg.Wait()
			asks := s.of("")
			if len(asks) < 300 || len(asks) > c.n {
				t.Errorf("%d requests", len(asks))
			}
			for i := 1; i < len(asks); i++ {
				if gap := asks[i].begin.Sub(asks[i-1].begin); gap < c.least {
					t.Fatalf("%v between two requests, want %v", gap, c.least)
				}
			}
			if took, want := time.Since(began).Seconds(), float64(len(asks))/c.rate; took > 1.1*want+6 {
				t.Errorf("%d requests took %.1f s, want %.1f", len(asks), took, want)
			}
		})
	}
}

// What needs no request is not held up.
func TestLimiterCountsOnlyRequestsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{robots: "User-agent: *\nDisallow: /\n"}
		r := newRig(t, s, pageURLs(host, 500)...)
		r.o.Politeness.Limiter = &fetch.Limiter{Requests: 1, Bytes: 1}
		began := time.Now()
		if rep := r.run(seg); rep.Visits[protocol.RobotsDenied] != 500 || time.Since(began) > 10*time.Second {
			t.Errorf("%v in %v", rep.Visits, time.Since(began))
		}
	})
}

func TestLimiterOfBytes(t *testing.T) {
	for _, size := range []int{100, 10_000, 1_000_000} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{latency: 300 * time.Millisecond}
			s.answer = func(string) protocol.Response { return body("text/html", strings.Repeat("x", size)) }
			r := newRig(t, s, hosts(400, "a")...)
			r.o.Politeness.NoRobots, r.o.Parser = true, nil
			r.o.Politeness.Limiter = &fetch.Limiter{Bytes: 100_000}
			began := time.Now()
			r.run(seg)
			asks := s.of("")
			// Beside what was under way when nothing was known yet, never ahead.
			for i, a := range asks {
				if came, may := float64((i-50)*size), a.begin.Sub(began).Seconds()*100_000; came > may+16*float64(size) {
					t.Fatalf("%d bytes: %.0f bytes after %v", size, came, a.begin.Sub(began))
				}
			}
			if took, want := time.Since(began).Seconds(), float64(400*size)/100_000; took > 1.05*want+5 {
				t.Errorf("%d bytes: it took %.0f s, want %.0f", size, took, want)
			}
		})
	}
}

// A limit and a slow host at once: neither holds up the other for ever.
func TestLimiterBesideASlowHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		urls := slices.Concat(pageURLs(host, 5), hosts(20, ""))
		s := &site{slow: map[string]time.Duration{"http://" + host + "/2": 3 * time.Minute}}
		r := newRig(t, s, urls...)
		r.o.Politeness.Limiter = &fetch.Limiter{Requests: 2, Bytes: 1000}
		if rep := r.run(seg); rep.Visits[protocol.Success] != 25 {
			t.Errorf("%v", rep.Visits)
		}
	})
}

// Who is allowed a request while no host may be asked does not use the permission up.
func TestLimiterOfHostsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{}
		r := newRig(t, s, pageURLs(host, 3)...)
		r.o.Politeness.Limiter, r.o.Politeness.NoRobots, r.o.Politeness.Delay = &fetch.Limiter{Requests: 0.25}, true, 5*time.Second
		r.run(seg)
		asks := s.of("")
		for i := 1; i < len(asks); i++ {
			if gap := asks[i].begin.Sub(asks[i-1].begin); gap != 5*time.Second {
				t.Errorf("%v between two requests", gap)
			}
		}
		if len(asks) != 3 {
			t.Errorf("%d requests", len(asks))
		}
	})
}
