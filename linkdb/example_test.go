package linkdb_test

import (
	"context"
	"fmt"
	"log"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/stores/memstore"
)

// Merging the same links again, or in another order, changes nothing.
func ExampleStore() {
	ctx := context.Background()
	var store linkdb.Store = new(memstore.Links)

	links := []linkdb.Entry{{
		URL: "http://example.com/",
		Inlinks: []linkdb.Inlink{
			{From: "http://b.example.org/", Anchor: "an example"},
			{From: "http://a.example.org/", Anchor: "for instance"},
		},
	}}
	for range 2 {
		if err := store.Merge(ctx, links, 10_000); err != nil {
			log.Fatal(err)
		}
	}
	for page, err := range store.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(page.URL)
		for _, in := range page.Inlinks {
			fmt.Printf("\t%s %q\n", in.From, in.Anchor)
		}
	}
	// Output:
	// http://example.com/
	// 	http://a.example.org/ "for instance"
	// 	http://b.example.org/ "an example"
}

func ExampleUnion() {
	a := []linkdb.Inlink{{From: "http://example.com/c"}, {From: "http://example.com/a"}}
	b := []linkdb.Inlink{{From: "http://example.com/b"}, {From: "http://example.com/a"}}
	for _, in := range linkdb.Union(a, b, 2) {
		fmt.Println(in.From)
	}
	// Output:
	// http://example.com/a
	// http://example.com/b
}
