//go:build unix

package otel_test

import (
	"slices"
	"syscall"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/metrics/otel"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/stores/memstore"
)

// BenchmarkCost crawls 1,000 pages of about 10 KB with and without telemetry, in turns, and reports the
// median of the processor time of each. With it the SDK records all rounds, a hundredth of the visits, and
// collects the metrics at the end.
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
	reader := sdkmetric.NewManualReader()
	telemetry, err := otel.New(otel.Options{
		Meters:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
		Tracers: sdktrace.NewTracerProvider(sdktrace.WithBatcher(tracetest.NewNoopExporter())),
	})
	if err != nil {
		b.Fatal(err)
	}
	if measured {
		telemetry.Observe(&o)
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
	if r, err := c.Run(b.Context()); err != nil || r.Visited() != 1000 {
		b.Fatal(r, err)
	}
	if measured {
		_, stop, err := telemetry.Watch(c, nil)
		if err != nil {
			b.Fatal(err)
		}
		var all metricdata.ResourceMetrics
		if err := reader.Collect(b.Context(), &all); err != nil {
			b.Fatal(err)
		}
		if err := stop(); err != nil {
			b.Fatal(err)
		}
	}
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
