// Package prom exports the figures of a crawl to Prometheus, without hosts or URLs in labels. It keeps
// no history and sends nothing: a Prometheus server scrapes it. Start with New; the files recrawl.rules.yml
// and recrawl.dashboard.json beside this package are alert rules and a dashboard for Grafana.
package prom

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/metrics"
)

// Metrics are the metrics of a crawler, a [prometheus.Collector]. For several crawlers in one
// process, make one for each and register it with [prometheus.WrapRegistererWith] and a label for the
// crawl. Its methods may be called from many goroutines at once.
type Metrics struct {
	instruments []metrics.Instrument
	descs       []*prometheus.Desc // of those that a source provides
	recorded    []recorded

	mu     sync.RWMutex // held for reading while the source is read
	source *metrics.Source
}

// recorded is an instrument whose values are recorded one by one; one field is set.
type recorded struct {
	histogram *prometheus.HistogramVec
	counter   *prometheus.CounterVec
}

// New returns the metrics of a crawler that is yet to be made: call Observe with its options, then
// recrawl.New, then Watch.
func New() *Metrics {
	all := metrics.Instruments()
	m := &Metrics{instruments: all, descs: make([]*prometheus.Desc, len(all)), recorded: make([]recorded, len(all))}
	for i := range all {
		in := &all[i]
		var labels []string
		if in.Label != "" {
			labels = []string{in.Label}
		}
		switch {
		case in.Kind == metrics.Histogram:
			m.recorded[i].histogram = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name(in), Help: in.Help, Buckets: in.Buckets}, labels)
			if labels == nil {
				m.recorded[i].histogram.WithLabelValues()
			}
		case in.Recorded:
			m.recorded[i].counter = prometheus.NewCounterVec(prometheus.CounterOpts{Name: name(in), Help: in.Help}, labels)
		default:
			m.descs[i] = prometheus.NewDesc(name(in), in.Help, labels, nil)
		}
	}
	return m
}

// name returns the name of an instrument for Prometheus: that which an OpenTelemetry collector would
// give it.
func name(in *metrics.Instrument) string {
	n := strings.ReplaceAll(in.Name, ".", "_")
	unit, per, _ := strings.Cut(in.Unit, "/")
	switch {
	case unit == "s":
		n += "_seconds"
	case unit == "By":
		n += "_bytes"
	case unit == "1" && in.Kind == metrics.Gauge:
		n += "_ratio"
	case per == "d":
		n += "_per_day"
	}
	if in.Kind == metrics.Counter {
		n += "_total"
	}
	return n
}

// Observe adds hooks to the options of a crawler that is yet to be made, for the histograms of visits
// and stages. Hooks that are set already are called, too.
func (m *Metrics) Observe(o *recrawl.Options) { metrics.Observe(o, m.record) }

func (m *Metrics) record(instrument int, label string, value float64) {
	var labels []string
	if m.instruments[instrument].Label != "" {
		labels = []string{label}
	}
	if r := m.recorded[instrument]; r.histogram != nil {
		r.histogram.WithLabelValues(labels...).Observe(value)
	} else {
		r.counter.WithLabelValues(labels...).Add(value)
	}
}

// Watch makes all other figures those of a crawler, which must stay open until Unwatch. The
// store, such as a pebblestore.DB, may be nil. See [metrics.Source.KeepCensus] for exact figures of
// pages and backlog.
func (m *Metrics) Watch(crawler *recrawl.Crawler, store metrics.Store) *metrics.Source {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.source = metrics.NewSource(crawler, store)
	return m.source
}

// Unwatch ends what Watch began: only histograms and counts of errors are collected then. It waits for
// a scrape under way; the crawler and the store may be closed after it.
func (m *Metrics) Unwatch() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.source = nil
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range m.descs {
		if d != nil {
			descs <- d
		}
	}
	for _, r := range m.recorded {
		switch {
		case r.histogram != nil:
			r.histogram.Describe(descs)
		case r.counter != nil:
			r.counter.Describe(descs)
		}
	}
}

// collectPatience is how long a scrape waits for the marks of the store. Prometheus waits for 10
// seconds by default.
const collectPatience = 5 * time.Second

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(values chan<- prometheus.Metric) {
	for _, r := range m.recorded {
		switch {
		case r.histogram != nil:
			r.histogram.Collect(values)
		case r.counter != nil:
			r.counter.Collect(values)
		}
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.source == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), collectPatience)
	defer cancel()
	m.source.Read(ctx, func(i int, label string, value float64) {
		kind := prometheus.GaugeValue
		if m.instruments[i].Kind == metrics.Counter {
			kind = prometheus.CounterValue
		}
		var labels []string
		if m.instruments[i].Label != "" {
			labels = []string{label}
		}
		values <- prometheus.MustNewConstMetric(m.descs[i], kind, value, labels...)
	})
}

// maxScrapes is how many scrapes Handler answers at a time; it refuses the others with 503.
const maxScrapes = 3

// Handler returns a handler that serves these metrics and those of the process and the Go runtime, for
// a service that has no registry of its own. It collects them at most once a second.
func (m *Metrics) Handler() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(m, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(&gatheredOnce{from: r}, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, DisableCompression: true})
}

// gatheredOnce is a gatherer that gathers at most once a second, so that a client that asks in a loop
// costs the crawl little.
type gatheredOnce struct {
	from prometheus.Gatherer

	mu       sync.Mutex
	at       time.Time
	families []*dto.MetricFamily
}

// Gather implements [prometheus.Gatherer].
func (g *gatheredOnce) Gather() ([]*dto.MetricFamily, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.at) < time.Second {
		return g.families, nil
	}
	families, err := g.from.Gather()
	if err != nil {
		return families, err
	}
	g.families, g.at = families, time.Now()
	return families, nil
}
