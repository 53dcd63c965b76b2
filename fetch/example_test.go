package fetch_test

import (
	"context"
	"fmt"
	"log"

	"github.com/recrawl/recrawl/crawldb/inject"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/parse/htmlparse"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

// A fetch list is visited and parsed, and the results are in the segment.
func Example() {
	ctx := context.Background()
	web := &webtest.Web{Calm: true}
	var db memstore.DB
	defer db.Close()
	_, err := inject.Run(ctx, db.Crawl(), inject.URLs("http://docs.example.test/", "http://docs.example.test/missing"), inject.Options{})
	if err != nil {
		log.Fatal(err)
	}
	list, err := generate.Run(ctx, db.Crawl(), db.Segments(), generate.Options{})
	if err != nil {
		log.Fatal(err)
	}

	name := list.Segments[0]
	report, err := fetch.Run(ctx, db.Segments(), name, fetch.Options{
		Protocol:   web.Protocol(),
		Hosts:      db.Hosts(),
		Robots:     &robots.Cache{Protocol: web.Protocol(), Hosts: db.Hosts(), Product: "example"},
		Parser:     htmlparse.Mux(nil),
		Politeness: fetch.Politeness{Delay: -1}, // the web is ours
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Visits, "links:", report.Links, "requests for robots.txt:", report.Robots)
	for d, err := range segment.Records[segment.Data](ctx, db.Segments(), name) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(d.URL, d.Parsed.Title)
	}
	// Output:
	// map[success:1 not_found:1] links: 9 requests for robots.txt: 1
	// http://docs.example.test/ Home of docs.example.test
}
