package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/dirstore"
	"github.com/recrawl/recrawl/stores/memstore"
)

// notFound is a web without pages.
type notFound struct{}

func (notFound) Fetch(context.Context, protocol.Request) (protocol.Response, error) {
	return protocol.Response{Outcome: protocol.Outcome{Code: protocol.NotFound}}, nil
}

// BenchmarkMemoryOfALongList measures the memory of a list of a million pages: when half of
// them are visited, and when an interrupted fetch resumes then. The hosts are in memory, too,
// with everything known about them. Run it with -benchtime 1x.
func BenchmarkMemoryOfALongList(b *testing.B) {
	for _, hosts := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("hosts=%d", hosts), func(b *testing.B) {
			const urls = 1_000_000
			for b.Loop() {
				benchLongList(b, urls, hosts)
			}
		})
	}
}

func benchLongList(b *testing.B, urls, hosts int) {
	s, err := dirstore.Open(b.TempDir(), dirstore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	w, err := segment.NewWriter[crawldb.Datum](b.Context(), s, seg, 0)
	if err != nil {
		b.Fatal(err)
	}
	var block []crawldb.Datum
	for n := range urls {
		d := crawldb.Datum{
			URL:    fmt.Sprintf("http://h%06d.example.test/section-%02d/2026/an-article-of-usual-length-%07d.html", n%hosts, n%50, n),
			Status: crawldb.Unfetched, Interval: 30 * 24 * time.Hour, Score: 0.01,
		}
		d.Meta.Set("opic.cash", "12345678")
		if block = append(block, d); len(block) == 10_000 || n == urls-1 {
			if err := w.Append(b.Context(), block); err != nil {
				b.Fatal(err)
			}
			block = block[:0]
		}
	}
	if err := w.Commit(b.Context()); err != nil {
		b.Fatal(err)
	}
	block = nil

	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	var known memstore.Hosts
	before := heap()
	o := fetch.Options{Protocol: notFound{}, Hosts: &known, Politeness: fetch.Politeness{Delay: -1}}
	run := func(at int, tell func(heap float64)) {
		ctx, stop := context.WithCancel(b.Context())
		defer stop()
		n := 0
		o.OnVisit = func(segment.Visit, fetch.Progress) {
			if n++; n == at {
				tell(heap() - before)
				stop()
			}
		}
		if _, err := fetch.Run(ctx, s, seg, o); !errors.Is(err, context.Canceled) {
			b.Fatal(err)
		}
	}
	run(urls/2, func(h float64) {
		b.ReportMetric(h/float64(urls), "B/url")
		b.ReportMetric(h/float64(hosts), "B/host")
		b.ReportMetric(float64(runtime.NumGoroutine()), "goroutines")
	})
	run(1, func(h float64) { b.ReportMetric(h/float64(urls), "B/url-resumed") })
	runtime.KeepAlive(&known)
}

// A list that is not mixed keeps no host waiting, however little of it is in
// memory: what is passed over is read again.
func TestQueueDepth(t *testing.T) {
	urls := append(pageURLs(host, 30), pageURLs("b.example.test", 10)...)
	for _, c := range []struct {
		depth int
		want  time.Duration // when the second host is asked first
	}{{0, 0}, {20, 0}, {10, 0}, {1, 0}, {math.MaxInt, 0}} {
		t.Run(fmt.Sprint(c.depth), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &site{latency: time.Second}
				r := newRig(t, s, urls...)
				r.o.Threads, r.o.Limits.QueueDepth = 2, c.depth
				began := time.Now()
				rep := r.run(seg)
				if got := s.of("b.example.test")[0].begin.Sub(began); got != c.want {
					t.Errorf("asked after %v, want %v", got, c.want)
				}
				if rep.Visited() != 40 || rep.Visits[protocol.Success] != 40 {
					t.Errorf("%+v", rep)
				}
			})
		})
	}
}

// A host that has the head of the list does not keep later hosts waiting, and nothing is lost
// or visited twice.
func TestUnmixedListDoesNotDelayOtherHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		urls := pageURLs("big.example.test", 3000)
		const others = 150
		for h := range others {
			urls = append(urls, pageURLs(fmt.Sprintf("h%d.example.test", h), 30)...)
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
func TestRecordsPassedOverAreReadAgain(t *testing.T) {
	for _, limited := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			urls := pageURLs("big.example.test", 3000)
			for h := range 100 {
				urls = append(urls, pageURLs(fmt.Sprintf("h%d.example.test", h), 3)...)
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
