// Watch crawls a small site every day for a week and prints the pages that have
// changed since the day before. The site and its clock are simulated; to watch real
// sites, leave out Protocol, Now and Delay, set Wait, and inject their URLs.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/stores/memstore"
)

const day = 24 * time.Hour

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	today := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return today }
	web := &webtest.Web{Hosts: 1, PagesPerHost: 6, Calm: true, Start: today, Now: clock, Periods: []time.Duration{2 * day, 5 * day, 0}}
	crawler, err := recrawl.New(recrawl.Stores{Crawl: new(memstore.Crawl)}, recrawl.Options{
		Agent: "watch", Protocol: web.Protocol(), Now: clock, Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
		Schedule: &schedule.Default{DefaultInterval: day}, // visit every page daily
		OnPage: func(ctx context.Context, e recrawl.PageEvent) error {
			if e.Kind != recrawl.PageChanged {
				return nil
			}
			parsed, err := e.Parsed(ctx)
			fmt.Fprintf(out, "%s  %s  %s\n", today.Format(time.DateOnly), e.URL, parsed.Title)
			return err
		},
	})
	if err != nil {
		return err
	}
	defer crawler.Close()
	_, err = crawler.Inject(ctx, web.Seeds()...)
	for i := 0; i < 7 && err == nil; i++ {
		_, err = crawler.Run(ctx)
		today = today.Add(day)
	}
	return err
}
