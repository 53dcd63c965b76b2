package inject_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/inject"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/urlfilter"
)

// Read seeds from a file in Nutch's format, some of which cannot be used.
func Example() {
	ctx := context.Background()
	store := new(memstore.Crawl)
	defer store.Close()

	seeds := inject.Read(strings.NewReader(`# where to begin
HTTP://Example.org
http://example.org/news	nutch.score=5	nutch.fetchInterval=3600	section=news
http://example.org/
mailto:info@example.org
http://example.org/logo.png
`))
	report, err := inject.Run(ctx, store, seeds, inject.Options{Rules: urlfilter.Default()})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("new:", report.New, "duplicate:", report.Duplicate)
	for _, bad := range report.Bad {
		fmt.Println(bad)
	}
	for d, err := range store.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			log.Fatal(err)
		}
		section, _ := d.Meta.Get("section")
		fmt.Printf("%s score %g every %v %q\n", d.URL, d.Score, d.Interval, section)
	}
	// Output:
	// new: 2 duplicate: 1
	// inject: line 5: "mailto:info@example.org": urlfilter: not a URL to crawl: scheme is not crawled
	// inject: line 6: "http://example.org/logo.png": urlfilter: rejected by suffix filter of 20 entries
	// http://example.org/ score 1 every 720h0m0s ""
	// http://example.org/news score 5 every 1h0m0s "news"
}
