package update_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/inject"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/parse/htmlparse"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/update"
)

// A fetched segment goes into the crawl db, once.
func ExampleRun() {
	ctx := context.Background()
	web := &webtest.Web{Hosts: 1, PagesPerHost: 3, Calm: true}
	var db memstore.DB
	defer db.Close()
	if _, err := inject.Run(ctx, db.Crawl(), inject.URLs(web.Seeds()...), inject.Options{}); err != nil {
		log.Fatal(err)
	}
	list, err := generate.Run(ctx, db.Crawl(), db.Segments(), generate.Options{})
	if err != nil {
		log.Fatal(err)
	}
	name := list.Segments[0]
	_, err = fetch.Run(ctx, db.Segments(), name, fetch.Options{
		Protocol: web.Protocol(), Hosts: db.Hosts(), Parser: htmlparse.Mux(nil), Politeness: fetch.Politeness{Delay: -1},
	})
	if err != nil {
		log.Fatal(err)
	}

	for range 2 {
		report, err := update.Run(ctx, db.Crawl(), db.Segments(), name, update.Options{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d visits, %d links to %d pages, already: %v\n", report.Visits, report.Links, report.Targets, report.Already)
	}
	for d, err := range db.Crawl().Scan(ctx, crawldb.Range{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(d.Status, d.URL)
	}
	// Output:
	// 1 visits, 2 links to 2 pages, already: false
	// 0 visits, 0 links to 0 pages, already: true
	// db_fetched http://news.example.test/
	// db_unfetched http://news.example.test/pages/1.html
	// db_unfetched http://news.example.test/pages/2.html
}

// Next is what update does to one record: here a page that answers "not
// modified" and, a day later, one that has changed.
func ExampleNext() {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	o := update.Options{Schedule: &schedule.Adaptive{}}
	d := &crawldb.Datum{
		URL: "http://example.org/", Status: crawldb.Fetched, Interval: 10 * time.Hour,
		LastFetch: noon.Add(-10 * time.Hour), FetchTime: noon, Signature: []byte("one"),
	}
	for _, in := range []update.Input{
		{Visit: &segment.Visit{Time: noon, Outcome: protocol.Outcome{Code: protocol.NotModified}}},
		{Visit: &segment.Visit{Time: noon.Add(24 * time.Hour), Outcome: protocol.Outcome{Code: protocol.Success}}, Parse: &segment.Parse{Signature: []byte("two")}},
	} {
		d = update.Next(d, in, o)
		fmt.Println(d.Status, d.Interval, d.FetchTime.Format(time.DateTime))
	}
	// Output:
	// db_notmodified 14h0m0s 2026-01-02 02:00:00
	// db_fetched 11h12m0s 2026-01-02 23:12:00
}
