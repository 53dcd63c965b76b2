package verbs

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/metrics"
	"github.com/recrawl/recrawl/metrics/prom"
)

func metricsFlag() cli.Flag {
	return &cli.StringFlag{Name: "metrics-listen", Category: flags.OutputGroup, Usage: "serve metrics for Prometheus at http://`ADDRESS`/metrics, such as 127.0.0.1:9100"}
}

// metricsServer serves the metrics of a run. A nil one serves none.
type metricsServer struct {
	metrics *prom.Metrics
	server  *http.Server
}

// serveMetrics listens if -metrics-listen says so.
func (a *app) serveMetrics(c *cli.Command) (*metricsServer, error) {
	address := c.String("metrics-listen")
	if address == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("-metrics-listen: %w", err)
	}
	m := &metricsServer{metrics: prom.New()}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.metrics.Handler())
	m.server = &http.Server{Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	go func() { _ = m.server.Serve(l) }()
	fmt.Fprintf(a.err, "recrawl: metrics at http://%v/metrics\n", l.Addr())
	return m, nil
}

// observe adds the hooks of the metrics.
func (m *metricsServer) observe(o *recrawl.Options) {
	if m != nil {
		m.metrics.Observe(o)
	}
}

// watch makes the metrics those of a session, until stop is called.
func (m *metricsServer) watch(ctx context.Context, s *session) (stop func()) {
	if m == nil {
		return func() {}
	}
	store, _ := crawls.Engine(s.db).(metrics.Store)
	source := m.metrics.Watch(s.crawler, store)
	ctx, cancel := context.WithCancel(ctx)
	var census sync.WaitGroup
	census.Go(func() { _ = source.KeepCensus(ctx) })
	return func() {
		cancel()
		census.Wait()
		m.metrics.Unwatch()
	}
}

func (m *metricsServer) close() {
	if m != nil {
		_ = m.server.Close()
	}
}
