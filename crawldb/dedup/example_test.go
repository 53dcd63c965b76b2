package dedup_test

import (
	"context"
	"fmt"
	"log"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/dedup"
	"github.com/recrawl/recrawl/stores/memstore"
)

// Of two pages with the same content the one with the higher score stays.
func ExampleRun() {
	ctx := context.Background()
	var crawl memstore.Crawl
	records := []crawldb.Datum{
		{URL: "http://example.com/", Status: crawldb.Fetched, Score: 2, Signature: []byte("content")},
		{URL: "http://example.com/index.html", Status: crawldb.Fetched, Score: 1, Signature: []byte("content")},
	}
	err := crawl.Update(ctx, crawldb.Batch{
		URLs: []string{records[0].URL, records[1].URL},
		Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &records[i], nil },
	})
	if err != nil {
		log.Fatal(err)
	}

	order, err := dedup.ParseOrder("score,urlLength")
	if err != nil {
		log.Fatal(err)
	}
	report, err := dedup.Run(ctx, &crawl, dedup.Options{Order: order})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Duplicates, "duplicate")
	for d, err := range crawl.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(d.Status, d.URL)
	}
	// Output:
	// 1 duplicate
	// db_fetched http://example.com/
	// db_duplicate http://example.com/index.html
}
