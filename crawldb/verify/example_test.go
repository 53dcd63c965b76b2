package verify_test

import (
	"context"
	"fmt"
	"log"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/stores/memstore"
)

func ExampleRun() {
	ctx := context.Background()
	var db memstore.DB
	err := db.Crawl().Update(ctx, crawldb.Batch{URLs: []string{"http://example.org/"}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) {
		return &crawldb.Datum{Status: 77}, nil
	}})
	if err != nil {
		log.Fatal(err)
	}
	stores := verify.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}
	report, err := verify.Run(ctx, stores, verify.Options{Found: func(f verify.Finding) { fmt.Println(f) }})
	fmt.Println(report.Records, report.Findings, err)
	// Output:
	// "http://example.org/": unknown status: 77
	// 1 1 <nil>
}
