package prom_test

import (
	"context"
	"io"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/metrics/prom"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/stores/memstore"
)

// A simulation is a crawl of a simulated web, with a schedule that learns.
type simulation struct {
	metrics *prom.Metrics
	crawler *recrawl.Crawler
	clock   *webtest.Clock
}

func simulate(t *testing.T) simulation {
	t.Helper()
	clock := webtest.NewClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	web := &webtest.Web{Hosts: 3, PagesPerHost: 10, Start: clock.Now(), Now: clock.Now, Calm: true}
	m := prom.New()
	options := recrawl.Options{
		Agent: "test", Protocol: web.Protocol(), Now: clock.Now, Schedule: schedule.Learned{Budget: 60},
		Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
	}
	m.Observe(&options)
	var db memstore.DB
	c, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Segments: db.Segments()}, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); db.Close() })
	m.Watch(c, fixedStore{})
	if _, err := c.Inject(t.Context(), web.Seeds()...); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AddConsumer(t.Context(), "index", recrawl.ConsumerOptions{}); err != nil {
		t.Fatal(err)
	}
	return simulation{m, c, clock}
}

type fixedStore struct{}

func (fixedStore) Usage(context.Context) (map[string]int64, int64, error) {
	return map[string]int64{"db": 100, "segments": 200}, 1000, nil
}

// day makes the rounds of a day.
func (s simulation) day(t *testing.T) {
	t.Helper()
	s.clock.Advance(24 * time.Hour)
	if _, err := s.crawler.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.crawler.Fetch(t.Context(), "20250101000000-000"); err == nil { // for the count of errors
		t.Fatal("a segment that does not exist was fetched")
	}
}

// The handler serves the figures of the crawl, with well-formed names, and no label is a host or URL.
func TestHandlerServesTheFigures(t *testing.T) {
	s := simulate(t)
	for range 8 {
		s.day(t)
	}
	w := httptest.NewRecorder()
	s.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text, _ := io.ReadAll(w.Body)
	for _, want := range []string{
		`recrawl_visits_total{outcome="success"} [1-9]`, `recrawl_visit_duration_seconds_count [1-9]`, `recrawl_visit_size_bytes_sum [1-9]`,
		`recrawl_stage_duration_seconds_count{stage="round"} [1-9]`, `recrawl_stage_errors_total{stage="fetch"} 8`, `recrawl_freshness_ratio{by="importance"} 0\.[0-9]`,
		`recrawl_pages{state="copies"} 30`, `recrawl_backlog{kind="overdue"} `, `recrawl_budget_per_day 60`, `recrawl_budget_used_per_day [1-9]`,
		`recrawl_consumer_lag_events{consumer="index"} [1-9]`, `recrawl_store_size_bytes{part="segments"} 200`, `recrawl_disk_free_bytes 1000`, `recrawl_read_errors_total 0`,
		`recrawl_received_bytes_total [1-9]`, `recrawl_queue_pages 0`, `recrawl_estimate_time_seconds [1-9]`, `go_goroutines [1-9]`,
	} {
		if !regexp.MustCompile("(?m)^" + want).Match(text) {
			t.Errorf("no %s", want)
		}
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "recrawl_") && (strings.Contains(line, ".test") || strings.Contains(line, ".example") || strings.Contains(line, "://")) {
			t.Errorf("a host or a URL: %s", line)
		}
	}
	if t.Failed() {
		t.Logf("%s", text)
	}
	problems, err := promlint.New(strings.NewReader(string(text))).Lint()
	if err != nil {
		t.Error(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "recrawl_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// Several crawlers of one process have a label, and before a crawler is watched there are only its
// histograms.
func TestSeveralCrawlersInOneRegistry(t *testing.T) {
	r := prometheus.NewRegistry()
	s := simulate(t)
	for name, m := range map[string]*prom.Metrics{"a": s.metrics, "b": prom.New()} {
		if err := prometheus.WrapRegistererWith(prometheus.Labels{"crawl": name}, r).Register(m); err != nil {
			t.Fatal(err)
		}
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "recrawl_rounds_total" && len(f.GetMetric()) != 1 || f.GetName() == "recrawl_visit_duration_seconds" && len(f.GetMetric()) != 2 {
			t.Errorf("%v", f)
		}
	}
}
