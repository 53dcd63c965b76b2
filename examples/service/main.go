// Service is an HTTP service with an endless crawl inside: it waits for pages to
// become due, and for seeds.
//
//	go run ./service                       a small simulated web, in memory
//	go run ./service https://example.org/  the pages of a site
//	curl http://localhost:8080/status
//	curl http://localhost:8080/metrics      for Prometheus: see package metrics/prom
//	curl -d url=https://example.org/new http://localhost:8080/seeds
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/metrics/prom"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/stores/memstore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", "localhost:8080")
	if err == nil {
		err = run(ctx, os.Stdout, listener, os.Args[1:])
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, listener net.Listener, urls []string) error {
	defer listener.Close()
	options := recrawl.Options{
		Agent: "recrawl-service", Run: recrawl.RunOptions{Wait: true}, Retention: recrawl.Retention{Segments: 3},
		Fetch: fetch.Options{Links: fetch.Links{IgnoreExternal: true}},
		OnPage: func(_ context.Context, e recrawl.PageEvent) error {
			_, err := fmt.Fprintln(out, e.Kind, e.URL)
			return err
		},
	}
	if len(urls) == 0 {
		web := &webtest.Web{Hosts: 2, PagesPerHost: 5, Calm: true}
		options.Protocol, options.Fetch.Politeness.Delay, urls = web.Protocol(), -1, web.Seeds()
	}
	metrics := prom.New()
	metrics.Observe(&options)
	var db memstore.DB // or pebblestore.Open, for a crawl that survives the service
	defer db.Close()
	crawler, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Segments: db.Segments()}, options)
	if err != nil {
		return err
	}
	defer crawler.Close()
	source := metrics.Watch(crawler, nil) // pebblestore would say how much room it takes

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{Handler: handler(crawler, metrics), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener); cancel() }() // no crawl without the service
	var census sync.WaitGroup
	census.Go(func() { _ = source.KeepCensus(ctx) }) // counts pages and backlog
	if _, err = crawler.Inject(ctx, urls...); err == nil {
		_, err = crawler.Run(ctx) // until the context ends
	}
	if errors.Is(err, context.Canceled) {
		err = nil // as it is meant to end
	}
	patience, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	err = errors.Join(err, server.Shutdown(patience))
	cancel()
	census.Wait()
	if e := <-served; e != http.ErrServerClosed {
		err = errors.Join(err, e)
	}
	return err
}

func handler(crawler *recrawl.Crawler, metrics *prom.Metrics) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(crawler.Status())
	})
	mux.Handle("GET /metrics", metrics.Handler())
	mux.HandleFunc("POST /seeds", func(w http.ResponseWriter, r *http.Request) {
		report, err := crawler.Inject(r.Context(), r.FormValue("url"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		for _, bad := range report.Bad { // no URL, or the rules reject it
			http.Error(w, bad.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, "%d new\n", report.New)
	})
	return mux
}
