package merge_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/merge"
	"github.com/recrawl/recrawl/stores/memstore"
)

// Two crawls become one: of a page that both know, the later visit counts.
func ExampleCrawlDBs() {
	ctx := context.Background()
	crawl := func(records ...crawldb.Datum) crawldb.Store {
		s := new(memstore.Crawl)
		var urls []string
		for _, d := range records {
			urls = append(urls, d.URL)
		}
		err := s.Update(ctx, crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &records[i], nil }})
		if err != nil {
			log.Fatal(err)
		}
		return s
	}
	day := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	one := crawl(
		crawldb.Datum{URL: "http://example.com/", Status: crawldb.Fetched, LastFetch: day},
		crawldb.Datum{URL: "http://example.com/about", Status: crawldb.Fetched, LastFetch: day})
	two := crawl(crawldb.Datum{URL: "http://example.com/", Status: crawldb.Gone, LastFetch: day.AddDate(0, 0, 1)})

	both := new(memstore.Crawl)
	if _, err := merge.CrawlDBs(ctx, both, []crawldb.Store{one, two}, merge.CrawlDBOptions{}); err != nil {
		log.Fatal(err)
	}
	for d, err := range both.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(d.Status, d.URL)
	}
	// Output:
	// db_gone http://example.com/
	// db_fetched http://example.com/about
}
