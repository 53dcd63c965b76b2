package generate_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/inject"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

// Select the best due pages, at most two per host. They are leased, so a second
// run takes what is left.
func Example() {
	ctx := context.Background()
	clock := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	var db memstore.DB
	defer db.Close()
	_, err := inject.Run(ctx, db.Crawl(), inject.URLs(
		"http://example.org/1", "http://example.org/2", "http://example.org/3", "http://example.net/",
	), inject.Options{Now: clock})
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		report, err := generate.Run(ctx, db.Crawl(), db.Segments(), generate.Options{TopN: 10, MaxPerHost: 2, Now: clock})
		if err != nil {
			log.Fatal(err)
		}
		if report.Selected == 0 {
			fmt.Println("nothing is due before", report.NextDue.Format(time.DateOnly), "when the leases end")
		}
		for _, name := range report.Segments {
			for d, err := range segment.Records[crawldb.Datum](ctx, db.Segments(), name) {
				if err != nil {
					log.Fatal(err)
				}
				fmt.Println(name, d.URL)
			}
		}
	}
	// Output:
	// 20260102030405-000 http://example.net/
	// 20260102030405-000 http://example.org/1
	// 20260102030405-000 http://example.org/2
	// 20260102030405-001 http://example.org/3
	// nothing is due before 2026-01-09 when the leases end
}
