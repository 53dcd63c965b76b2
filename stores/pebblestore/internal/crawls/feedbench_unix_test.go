//go:build unix

package crawls

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// BenchmarkFeed reads the change feed of a crawl of new pages, acknowledges every batch of 1,000
// events, and reports events a second of one goroutine; and a snapshot.
func BenchmarkFeed(b *testing.B) {
	db, err := pebblestore.Open(b.TempDir(), pebblestore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	web := &webtest.Web{Hosts: 20, PagesPerHost: 500, Calm: true}
	c, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}, recrawl.Options{
		Agent: "bench", Protocol: web.Protocol(), Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Inject(b.Context(), web.Seeds()...); err != nil {
		b.Fatal(err)
	}
	began := cpuTime()
	r, err := c.Run(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	fmt.Fprintf(os.Stderr, "%v, %v of CPU a page\n", r, (cpuTime()-began)/time.Duration(r.Visited()))
	for _, read := range []struct {
		name  string
		start recrawl.ConsumerStart
		text  bool
	}{{"events", recrawl.StartAtBeginning, false}, {"events with text", recrawl.StartAtBeginning, true}, {"snapshot", recrawl.StartWithSnapshot, false}} {
		b.Run(read.name, func(b *testing.B) {
			n, cpu := 0, cpuTime()
			for i := 0; b.Loop(); i++ {
				name := fmt.Sprintf("consumer-%d-%d", b.N, i)
				k, err := c.AddConsumer(b.Context(), name, recrawl.ConsumerOptions{Start: read.start})
				if err != nil {
					b.Fatal(err)
				}
				last := ""
				for e, err := range k.Events(b.Context()) {
					if err != nil {
						b.Fatal(err)
					}
					if read.text {
						if _, err := e.Text(b.Context()); err != nil {
							b.Fatal(err)
						}
					}
					if last, n = e.Position, n+1; n%1000 == 0 {
						if err := k.Ack(b.Context(), last); err != nil {
							b.Fatal(err)
						}
					}
				}
				if err := k.Ack(b.Context(), last); err != nil {
					b.Fatal(err)
				}
				if err := c.DropConsumer(b.Context(), name); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(n)/(cpuTime()-cpu).Seconds(), "events/CPU-s")
		})
	}
}

// cpuTime returns the CPU time of the process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
