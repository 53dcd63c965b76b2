// Operate keeps watch over some sites while an operator pauses one, has a page
// fetched at once, and removes a site for good (watch.go). The sites and their
// clock are simulated.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/stores/memstore"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "operate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	sites := filepath.Join(dir, "sites.txt")
	clock := webtest.NewClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	web := &webtest.Web{Hosts: 3, PagesPerHost: 6, Calm: true, Start: clock.Now(), Now: clock.Now}
	var db memstore.DB
	defer db.Close()
	stores := recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}
	if err := os.WriteFile(sites, []byte(web.Host(0)+"\n"+web.Host(1)+"\n"), 0o644); err != nil {
		return err
	}
	w, err := open(stores, sites, recrawl.Options{
		Agent: "operate", Protocol: web.Protocol(), Now: clock.Now, Retention: recrawl.Retention{Segments: 3}, Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
		Schedule: schedule.Learned{Budget: 24}, // visits a day, of all sites
		Hooks: recrawl.Hooks{Round: func(r recrawl.Report) { // where a service would set its metrics
			fmt.Fprintf(out, "  round: %d visits, %d skipped\n", r.Visited()-r.Visits[protocol.Skipped], r.Visits[protocol.Skipped])
		}},
	})
	if err != nil {
		return err
	}
	defer w.crawler.Close()
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"two sites", func() error { return nil }},
		{"a page at once", func() error { return w.fetchNow(ctx, "http://"+web.Host(1)+"/pages/2.html") }},
		{"a pause, and a day later", func() error { w.pause(web.Host(1), true); clock.Advance(24 * time.Hour); return nil }},
		{"no pause, and a day later", func() error { w.pause(web.Host(1), false); clock.Advance(24 * time.Hour); return nil }},
		{"another site for the first", func() error { return os.WriteFile(sites, []byte(web.Host(1)+"\n"+web.Host(2)+"\n"), 0o644) }},
	} {
		fmt.Fprintln(out, step.what)
		if err := step.do(); err != nil {
			return err
		}
		if err := w.reload(ctx); err != nil {
			return err
		}
		if _, err := w.crawler.Run(ctx); err != nil { // a service has one Run, with Wait
			return err
		}
		fmt.Fprintf(out, "  %d pages in the index\n", len(w.index))
	}
	return nil
}
