package hoststat_test

import (
	"context"
	"fmt"
	"log"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/hostdb/hoststat"
	"github.com/recrawl/recrawl/stores/memstore"
)

// A processor makes a figure of one's own, here the share of pages that are gone.
func ExampleRun() {
	ctx := context.Background()
	crawl, hosts := new(memstore.Crawl), new(memstore.Hosts)
	records := []crawldb.Datum{
		{URL: "http://example.com/", Status: crawldb.Fetched, Meta: crawldb.MetaOf("_rs_", "120", "Content-Type", "text/html")},
		{URL: "http://example.com/old", Status: crawldb.Gone},
	}
	err := crawl.Update(ctx, crawldb.Batch{
		URLs: []string{records[0].URL, records[1].URL},
		Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &records[i], nil },
	})
	if err != nil {
		log.Fatal(err)
	}

	gone := func(string) (func(*crawldb.Datum), func(*hostdb.Host)) {
		return nil, func(h *hostdb.Host) { h.Fields["gone"] = float64(h.Pages.Gone) / float64(h.Pages.Total()) }
	}
	if _, err := hoststat.Run(ctx, crawl, hosts, hoststat.Options{Processors: []hoststat.Processor{gone}}); err != nil {
		log.Fatal(err)
	}
	h, err := hosts.Get(ctx, "example.com")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(h.Pages.Fetched, h.Homepage, h.Fields["pct95._rs_"], h.Fields["Content-Type.text/html"], h.Fields["gone"])
	// Output: 1 http://example.com/ 120 1 0.5
}
