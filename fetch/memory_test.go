package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
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
