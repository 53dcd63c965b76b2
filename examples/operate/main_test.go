package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/stores/memstore"
)

func TestOperate(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if want := `two sites
  round: 2 visits, 0 skipped
  round: 10 visits, 0 skipped
  12 pages in the index
a page at once
  round: 1 visits, 0 skipped
  12 pages in the index
a pause, and a day later
  round: 6 visits, 6 skipped
  12 pages in the index
no pause, and a day later
  round: 12 visits, 0 skipped
  12 pages in the index
another site for the first
  round: 1 visits, 0 skipped
  round: 5 visits, 0 skipped
  12 pages in the index
`; out.String() != want {
		t.Errorf("got %s\nwant %s", &out, want)
	}
}

// A site is removed for good during a Run, at any moment of it.
func TestRemoval(t *testing.T) {
	for _, moment := range []time.Duration{0, time.Second, 17 * time.Second, 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			web := &webtest.Web{Hosts: 2, PagesPerHost: 20, Calm: true, Now: time.Now, Latency: 100 * time.Millisecond}
			sites := filepath.Join(t.TempDir(), "sites.txt")
			write := func(hosts string) {
				if err := os.WriteFile(sites, []byte(hosts+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			write(web.Host(0) + "\n" + web.Host(1))
			var db memstore.DB
			defer db.Close()
			stores := recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}
			w, err := open(stores, sites, recrawl.Options{Agent: "operate", Protocol: web.Protocol(), Run: recrawl.RunOptions{Wait: true}, Schedule: &schedule.Default{DefaultInterval: 6 * time.Hour}, Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: time.Second}}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { _, err := w.crawler.Run(ctx); done <- err }()
			reload := func() {
				if err := w.reload(t.Context()); err != nil {
					t.Error(err)
				}
			}
			reload()
			time.Sleep(moment)
			write(web.Host(0))
			reload()
			time.Sleep(time.Hour) // for the round that was under way
			reload()
			asked := web.HostLog(web.Host(1)).Requests
			time.Sleep(24 * time.Hour)
			w.mu.Lock()
			for url := range w.index {
				if crawldb.Host(url) == web.Host(1) {
					t.Errorf("after %v: %s is in the index", moment, url)
				}
			}
			if len(w.index) != 20 {
				t.Errorf("after %v: %d pages in the index", moment, len(w.index))
			}
			w.mu.Unlock()
			for d, err := range stores.Crawl.Scan(t.Context(), crawldb.HostRange(web.Host(1))) {
				t.Errorf("after %v: there is a record of %s, %v", moment, d.URL, err)
			}
			if h, err := stores.Hosts.Get(t.Context(), web.Host(1)); err == nil {
				t.Errorf("after %v: there is a record of the host, %+v", moment, h)
			}
			if n := web.HostLog(web.Host(1)).Requests; n != asked {
				t.Errorf("after %v: %d requests since", moment, n-asked)
			}
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if err := w.crawler.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
