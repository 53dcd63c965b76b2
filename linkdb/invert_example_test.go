package linkdb_test

import (
	"context"
	"fmt"
	"log"

	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

// The links of a segment become the inlinks of the pages they lead to.
func ExampleInvert() {
	ctx := context.Background()
	var db memstore.DB
	defer db.Close()

	w, err := segment.NewWriter[segment.Data](ctx, db.Segments(), "20260102030405-000", 0)
	if err != nil {
		log.Fatal(err)
	}
	err = w.Append(ctx, []segment.Data{
		{URL: "http://example.com/", Parsed: page.Parsed{Outlinks: []page.Outlink{
			{URL: "http://example.com/about", Anchor: "About us"},
			{URL: "http://example.org/", Anchor: "Our friends"},
		}}},
		{URL: "http://example.com/news", Parsed: page.Parsed{Outlinks: []page.Outlink{
			{URL: "http://example.com/about", Anchor: "Who we are"},
		}}},
	})
	if err == nil {
		err = w.Commit(ctx)
	}
	if err != nil {
		log.Fatal(err)
	}

	report, err := linkdb.Invert(ctx, db.Links(), db.Segments(), []string{"20260102030405-000"}, linkdb.InvertOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Inlinks, "links to", report.Targets, "pages")
	inlinks, err := db.Links().Get(ctx, "http://example.com/about")
	if err != nil {
		log.Fatal(err)
	}
	for _, in := range inlinks {
		fmt.Printf("%s: %q\n", in.From, in.Anchor)
	}
	// Output:
	// 3 links to 2 pages
	// http://example.com/: "About us"
	// http://example.com/news: "Who we are"
}
