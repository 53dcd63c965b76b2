//go:build unix

package prom_test

import (
	"io"
	"net/http/httptest"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/metrics/prom"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/stores/memstore"
)

// BenchmarkCost crawls 1,000 pages of about 10 KB with and without metrics, in turns, and reports the
// median of the processor time of each: with metrics there is a scrape a second, and a crawl takes a few seconds.
func BenchmarkCost(b *testing.B) {
	var without, with []float64
	for b.Loop() {
		without = append(without, crawlCPU(b, false))
		with = append(with, crawlCPU(b, true))
	}
	slices.Sort(without)
	slices.Sort(with)
	base, measured := without[len(without)/2], with[len(with)/2]
	b.ReportMetric(base*1000, "µs/page-without") // of 1,000 pages, in ms
	b.ReportMetric(measured*1000, "µs/page-with")
	b.ReportMetric((measured/base-1)*100, "%more")
}

// crawlCPU returns the seconds of processor time for a crawl.
func crawlCPU(b *testing.B, measured bool) float64 {
	web := &webtest.Web{Hosts: 10, PagesPerHost: 100, WordsPerPage: 1500, Calm: true}
	o := recrawl.Options{Agent: "test", Protocol: web.Protocol(), Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}}}
	m := prom.New()
	if measured {
		m.Observe(&o)
	}
	var db memstore.DB
	defer db.Close()
	c, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}, o)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Inject(b.Context(), web.Seeds()...); err != nil {
		b.Fatal(err)
	}
	began := cpu()
	done := make(chan struct{})
	scraped := make(chan struct{})
	go func() {
		defer close(scraped)
		if !measured {
			return
		}
		m.Watch(c, nil)
		h := m.Handler()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
			_, _ = io.Copy(io.Discard, w.Body)
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	}()
	if r, err := c.Run(b.Context()); err != nil || r.Visited() != 1000 {
		b.Fatal(r, err)
	}
	close(done)
	<-scraped
	return cpu() - began
}

// cpu is the processor time that the process has used, in seconds.
func cpu() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
