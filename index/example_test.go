package index_test

import (
	"context"
	"fmt"
	"log"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/stores/memstore"
)

// titles is a Writer that prints what would be sent to a search engine.
type titles struct{}

func (titles) Write(_ context.Context, d *index.Document) error {
	fmt.Printf("add %s %q, %d anchors\n", d.URL, d.Title, len(d.Anchors))
	return nil
}

func (titles) Delete(_ context.Context, url string) error {
	fmt.Println("delete", url)
	return nil
}

func (titles) Commit(context.Context) error {
	fmt.Println("commit")
	return nil
}

// After a crawl, everything it found goes into an index.
func ExampleRun() {
	ctx := context.Background()
	web := &webtest.Web{Hosts: 1, PagesPerHost: 3, Calm: true}
	var db memstore.DB
	defer db.Close()
	crawler, err := recrawl.New(recrawl.Stores{
		Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments(),
	}, recrawl.Options{Agent: "example", Protocol: web.Protocol(), Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}}})
	if err != nil {
		log.Fatal(err)
	}
	defer crawler.Close()
	if _, err := crawler.Inject(ctx, "http://news.example.test/", "http://news.example.test/missing"); err != nil {
		log.Fatal(err)
	}
	if _, err := crawler.Run(ctx); err != nil {
		log.Fatal(err)
	}

	report, err := index.Run(ctx, db.Crawl(), db.Links(), db.Segments(), titles{}, index.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Documents, "documents from", report.Segments, "segments")
	// Unordered output:
	// add http://news.example.test/pages/1.html "Continue dry along 1", 1 anchors
	// add http://news.example.test/pages/2.html "Column edge last 2", 1 anchors
	// add http://news.example.test/ "Home of news.example.test", 1 anchors
	// delete http://news.example.test/missing
	// commit
	// 3 documents from 2 segments
}
