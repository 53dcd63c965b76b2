package otel_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/metrics"
	"github.com/recrawl/recrawl/metrics/otel"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/stores/memstore"
)

// crawl makes a crawl of 2 × 5 pages with telemetry.
func crawl(t *testing.T, o otel.Options, change func(*recrawl.Options)) (*otel.Telemetry, *recrawl.Crawler) {
	t.Helper()
	telemetry, err := otel.New(o)
	if err != nil {
		t.Fatal(err)
	}
	web := &webtest.Web{Hosts: 2, PagesPerHost: 5, Calm: true}
	options := recrawl.Options{Agent: "test", Protocol: web.Protocol(), Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}}}
	if change != nil {
		change(&options)
	}
	telemetry.Observe(&options)
	var db memstore.DB
	c, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Segments: db.Segments()}, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); db.Close() })
	if _, err := c.Inject(t.Context(), web.Seeds()...); err != nil {
		t.Fatal(err)
	}
	return telemetry, c
}

// Each round has a span, the spans of its stages are its children, and those of visits are children of
// the fetch.
func TestSpansOfRoundsStagesAndVisits(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	_, c := crawl(t, otel.Options{Tracers: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), VisitSpans: 1}, nil)
	if _, err := c.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	names := map[trace.SpanID]string{}
	for _, s := range spans.Ended() {
		names[s.SpanContext().SpanID()] = s.Name()
	}
	var tree []string
	for _, s := range spans.Ended() {
		tree = append(tree, names[s.Parent().SpanID()]+" > "+s.Name())
		if s.Status().Code == codes.Error || s.EndTime().Before(s.StartTime()) {
			t.Errorf("%s: %v, from %v to %v", s.Name(), s.Status(), s.StartTime(), s.EndTime())
		}
		if s.Name() != "GET" {
			continue
		}
		attributes := map[string]string{}
		for _, a := range s.Attributes() {
			attributes[string(a.Key)] = a.Value.String()
		}
		if attributes["http.request.method"] != "GET" || attributes["http.response.status_code"] != "200" || attributes["server.port"] != "80" ||
			attributes["url.full"] != "http://"+attributes["server.address"]+"/" || s.SpanKind() != trace.SpanKindClient {
			t.Errorf("attributes of a visit: %v", attributes)
		}
	}
	slices.Sort(tree)
	want := []string{" > recrawl inject", " > recrawl round", "recrawl fetch > GET", "recrawl fetch > GET",
		"recrawl round > recrawl fetch", "recrawl round > recrawl generate", "recrawl round > recrawl pages", "recrawl round > recrawl update"}
	if !slices.Equal(tree, want) {
		t.Errorf("spans:\n%s", strings.Join(tree, "\n"))
	}
}

// The share of visits with a span is that of the options, none if the round is not sampled.
func TestVisitSpansAreSampled(t *testing.T) {
	for _, test := range []struct {
		share   float64
		sampler sdktrace.Sampler
		want    int
	}{
		{0, sdktrace.AlwaysSample(), 0}, {-1, sdktrace.AlwaysSample(), 0}, {0.5, sdktrace.AlwaysSample(), 5}, {1, sdktrace.AlwaysSample(), 10}, {1, sdktrace.NeverSample(), 0},
	} {
		spans := tracetest.NewSpanRecorder()
		_, c := crawl(t, otel.Options{Tracers: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans), sdktrace.WithSampler(test.sampler)), VisitSpans: test.share}, nil)
		if _, err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, s := range spans.Ended() {
			if s.Name() == "GET" {
				n++
			}
		}
		if n != test.want {
			t.Errorf("share %v: %d spans of 10 visits, want %d", test.share, n, test.want)
		}
	}
}

// A round that fails has spans with the error.
func TestSpanOfFailedStage(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	full := errors.New("the index is full")
	_, c := crawl(t, otel.Options{Tracers: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))}, func(o *recrawl.Options) {
		o.OnPage = func(context.Context, recrawl.PageEvent) error { return full }
	})
	if _, err := c.Round(t.Context()); !errors.Is(err, full) {
		t.Fatal(err)
	}
	var failed []string
	for _, s := range spans.Ended() {
		if s.Status().Code == codes.Error {
			failed = append(failed, s.Name())
		}
	}
	if !slices.Equal(failed, []string{"recrawl pages", "recrawl round"}) {
		t.Errorf("failed spans: %v", failed)
	}
}

// Every instrument that has a value in such a crawl is exported, and no attribute is a host or a URL.
func TestMetricsAreExported(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	telemetry, c := crawl(t, otel.Options{Meters: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))}, nil)
	source, stop, err := telemetry.Watch(c, fixedStore{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.AddConsumer(t.Context(), "index", recrawl.ConsumerOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	kept := make(chan error, 1)
	go func() { kept <- source.KeepCensus(ctx) }()
	var values map[string]float64
	for values["recrawl.pages state=copies"] != 10 { // until the census is there
		values = collect(t, reader)
	}
	cancel()
	if err := <-kept; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for name, want := range map[string]float64{
		"recrawl.visits outcome=success": 10, "recrawl.visit.duration": 10, "recrawl.visit.size": 10, "recrawl.backlog kind=never": 0,
		"recrawl.consumer.lag.events consumer=index": 10, "recrawl.store.size part=db": 100, "recrawl.disk.free": 1000, "recrawl.read.errors": 0,
	} {
		if got, ok := values[name]; !ok || got != want {
			t.Errorf("%s is %v, %v; want %v", name, got, ok, want)
		}
	}
	exported := map[string]bool{}
	for name := range values {
		if exported[strings.Fields(name)[0]] = true; strings.Contains(name, "example") || strings.Contains(name, "/") {
			t.Errorf("a host or a URL in %q", name)
		}
	}
	for _, in := range metrics.Instruments() {
		switch in.Name {
		case "recrawl.stage", "recrawl.stage.errors", "recrawl.freshness", "recrawl.copy.age", "recrawl.budget", "recrawl.budget.used", "recrawl.next.due.time":
			continue // the run is over, nothing failed, and the schedule does not learn
		}
		if !exported[in.Name] {
			t.Errorf("%s is not exported, but %v", in.Name, slices.Sorted(maps.Keys(exported)))
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if left := collect(t, reader); left["recrawl.rounds"] != 0 {
		t.Errorf("still exported: %v", left)
	}
}

type fixedStore struct{}

func (fixedStore) Usage(context.Context) (map[string]int64, int64, error) {
	return map[string]int64{"db": 100}, 1000, nil
}

// collect returns all values by name and attribute, of histograms the count.
func collect(t *testing.T, reader sdkmetric.Reader) map[string]float64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			add := func(p metricdata.DataPoint[float64]) {
				name := m.Name
				for _, a := range p.Attributes.ToSlice() {
					name += fmt.Sprintf(" %s=%s", a.Key, a.Value.String())
				}
				values[name] = p.Value
			}
			switch d := m.Data.(type) {
			case metricdata.Gauge[float64]:
				for _, p := range d.DataPoints {
					add(p)
				}
			case metricdata.Sum[float64]:
				for _, p := range d.DataPoints {
					add(p)
				}
			case metricdata.Histogram[float64]:
				values[m.Name] = float64(d.DataPoints[0].Count)
			}
		}
	}
	return values
}
