package recrawl_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/stores/memstore"
)

// A crawl of a small web, in memory. For one that lasts, take the stores of
// stores/pebblestore; for the real web, leave out Protocol and Delay.
func Example() {
	ctx := context.Background()
	web := &webtest.Web{Hosts: 1, PagesPerHost: 4, Calm: true}
	var db memstore.DB
	defer db.Close()

	crawler, err := recrawl.New(recrawl.Stores{
		Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments(),
	}, recrawl.Options{
		Agent:    "example",
		Protocol: web.Protocol(),
		Fetch:    fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer crawler.Close()

	if _, err := crawler.Inject(ctx, "http://news.example.test/"); err != nil {
		log.Fatal(err)
	}
	report, err := crawler.Run(ctx) // until nothing is due
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Rounds, "rounds:", report.Visits)
	for d, err := range db.Crawl().Scan(ctx, crawldb.Range{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(d.Status, d.URL, "again in", d.Interval)
	}
	// Output:
	// 2 rounds: map[success:4]
	// db_fetched http://news.example.test/ again in 720h0m0s
	// db_fetched http://news.example.test/pages/1.html again in 720h0m0s
	// db_fetched http://news.example.test/pages/2.html again in 720h0m0s
	// db_fetched http://news.example.test/pages/3.html again in 720h0m0s
}

// OnPage gets every page, with what became of it since the last visit.
// Here 31 days pass between two runs.
func ExampleOptions_onPage() {
	ctx := context.Background()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	web := &webtest.Web{Hosts: 1, PagesPerHost: 4, Calm: true, Start: now, Now: clock, Periods: []time.Duration{0, 20 * 24 * time.Hour}}
	var db memstore.DB
	defer db.Close()

	crawler, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Segments: db.Segments()}, recrawl.Options{
		Agent: "example", Protocol: web.Protocol(), Now: clock, Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
		OnPage: func(ctx context.Context, e recrawl.PageEvent) error {
			parsed, err := e.Parsed(ctx) // nothing if it was not sent again, has moved or is gone
			fmt.Printf("%s %s %s %q\n", now.Format(time.DateOnly), e.Kind, e.URL, parsed.Title)
			return err
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer crawler.Close()
	if _, err := crawler.Inject(ctx, web.Seeds()...); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		if _, err := crawler.Run(ctx); err != nil {
			log.Fatal(err)
		}
		now = now.AddDate(0, 0, 31)
	}
	// Unordered output:
	// 2026-01-01 new http://news.example.test/ "Home of news.example.test"
	// 2026-01-01 new http://news.example.test/pages/1.html "Continue dry along 1"
	// 2026-01-01 new http://news.example.test/pages/2.html "Column edge last 2"
	// 2026-01-01 new http://news.example.test/pages/3.html "Hurry dark loud 3"
	// 2026-02-01 changed http://news.example.test/ "Home of news.example.test"
	// 2026-02-01 changed http://news.example.test/pages/2.html "Column edge last 2"
	// 2026-02-01 changed http://news.example.test/pages/1.html "Continue dry along 1"
}

// Explain says what keeps a page from being fetched.
func ExampleCrawler_Explain() {
	ctx := context.Background()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	web := &webtest.Web{Hosts: 1, PagesPerHost: 4, Calm: true, Start: now}
	var db memstore.DB
	defer db.Close()
	crawler, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Segments: db.Segments()}, recrawl.Options{
		Agent: "example", Protocol: web.Protocol(), Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
		Now: func() time.Time { return now },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer crawler.Close()
	if _, err := crawler.Inject(ctx, web.Seeds()...); err != nil {
		log.Fatal(err)
	}
	if _, err := crawler.Run(ctx); err != nil {
		log.Fatal(err)
	}
	for _, url := range []string{
		"HTTP://News.Example.test:80/#top",
		"http://news.example.test/logo.png",
		"http://elsewhere.example.test/",
	} {
		e, err := crawler.Explain(ctx, url)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Verdict)
	}
	// Output:
	// Not yet: the next visit is due at 2026-01-31T00:00:00Z.
	// Never fetched: the rules of the crawl reject it (urlfilter: rejected by suffix filter of 20 entries).
	// Not fetched: the crawl has not heard of it; inject it, or wait for a page that links to it.
}

// A feed, or its author, says that a page has changed. A schedule that learns
// has it visited sooner; what the visit finds tells how far such signals are true.
func ExampleCrawler_Signal() {
	ctx := context.Background()
	web := &webtest.Web{Hosts: 1, PagesPerHost: 2, Calm: true}
	var db memstore.DB
	defer db.Close()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	crawler, err := recrawl.New(recrawl.Stores{
		Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments(),
	}, recrawl.Options{
		Agent:    "example",
		Protocol: web.Protocol(),
		Fetch:    fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
		Schedule: schedule.Learned{},
		Now:      func() time.Time { return now },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer crawler.Close()
	const url = "http://news.example.test/"
	if _, err := crawler.Inject(ctx, url); err != nil {
		log.Fatal(err)
	}
	if _, err := crawler.Run(ctx); err != nil {
		log.Fatal(err)
	}

	now = now.AddDate(0, 0, 1)
	before, err := crawler.Explain(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	if err := crawler.Signal(ctx, url, now); err != nil {
		log.Fatal(err)
	}
	after, err := crawler.Explain(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("sooner:", after.Record.FetchTime.Before(before.Record.FetchTime))
	fmt.Println("of a page that is not known:", errors.Is(crawler.Signal(ctx, "http://unknown.example.test/", now), crawldb.ErrNotFound))
	// Output:
	// sooner: true
	// of a page that is not known: true
}

// How up to date the copies are: 40 days with a budget of two visits a day, for eight
// pages that change from every day to never.
func ExampleCrawler_Freshness() {
	ctx := context.Background()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	web := &webtest.Web{Hosts: 1, PagesPerHost: 8, Calm: true, Start: now, Now: clock}
	var db memstore.DB
	defer db.Close()
	crawler, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Segments: db.Segments()}, recrawl.Options{
		Agent: "example", Protocol: web.Protocol(), Now: clock, Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
		Schedule: schedule.Learned{Budget: 2},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer crawler.Close()
	if _, err := crawler.Inject(ctx, web.Seeds()...); err != nil {
		log.Fatal(err)
	}
	for day := range 40 {
		now = web.Start.AddDate(0, 0, day)
		if _, err := crawler.Run(ctx); err != nil {
			log.Fatal(err)
		}
	}
	f, err := crawler.Freshness(ctx, 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d copies of %d pages, %d of which have shown how often they change\n", f.Copies, f.Pages, f.Learned)
	fmt.Println("more than half are fresh:", f.Freshness > 0.5)
	if more, ok := f.Lacks(0.8); ok {
		fmt.Println("too few visits for four fifths:", more > 0)
	}
	// Output:
	// 8 copies of 8 pages, 8 of which have shown how often they change
	// more than half are fresh: true
	// too few visits for four fifths: true
}
