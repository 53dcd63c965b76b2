// Customprotocol crawls something that is not the web: a wiki in memory, through
// its own protocol (wiki.go) and parser. Its test runs the conformance kits of
// both.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/urlfilter"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	pages := wiki{
		"Home":       {Text: "Read about [[Crawling]] and [[Politeness]]."},
		"Crawling":   {Text: "A crawler follows links; see [[Politeness]] and [[Robots]]."},
		"Politeness": {Text: "One request at a time. Back to [[Home]]."},
		"Robots":     {MovedTo: "Crawling"},
	}
	var db memstore.DB
	defer db.Close()
	crawler, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}, recrawl.Options{
		Protocol: pages,
		Parser:   parse.Mux{wikiType: wikiParser{}},
		// The stock normalizer handles any URL of the form scheme://host/path, but
		// needs the list of schemes to crawl.
		Rules: &urlfilter.Rules{Normalizers: []urlfilter.Normalizer{urlfilter.Basic{Schemes: []string{"wiki"}}}},
		Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}}, // no pause: these pages have no server
		OnPage: func(ctx context.Context, e recrawl.PageEvent) error {
			switch e.Kind {
			case recrawl.PageMoved:
				fmt.Fprintf(out, "%s to %s\n", e.URL, e.Visit.Outcome.Location)
			case recrawl.PageNew, recrawl.PageChanged:
				text, err := e.Text(ctx)
				fmt.Fprintf(out, "%s: %s\n", e.URL, text)
				return err
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	defer crawler.Close()
	if _, err := crawler.Inject(ctx, "wiki://handbook/Home"); err != nil {
		return err
	}
	if _, err := crawler.Run(ctx); err != nil {
		return err
	}
	for page, err := range db.Links().Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s has %d inlinks\n", page.URL, len(page.Inlinks))
	}
	return nil
}
