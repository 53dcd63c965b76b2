// Stages runs two rounds of a crawl by calling the stages directly, without package
// recrawl, as a service with its own scheduler might.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/recrawl/recrawl/crawldb/inject"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/parse/htmlparse"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/signature"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/update"
	"github.com/recrawl/recrawl/urlfilter"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	web := &webtest.Web{Hosts: 2, PagesPerHost: 8, Calm: true}
	var db memstore.DB
	defer db.Close()
	crawl, hosts, links, segments := db.Crawl(), db.Hosts(), db.Links(), db.Segments()

	// The policies, which must be the same in every stage.
	rules, when, order := urlfilter.Default(), &schedule.Adaptive{}, &scoring.OPIC{}
	const agent = "stages"

	in, err := inject.Run(ctx, crawl, inject.URLs(web.Seeds()...), inject.Options{Rules: rules, Schedule: when, Scoring: order})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "inject: %d new\n", in.New)

	// A process that died in generate may have left leases behind.
	if _, err := generate.Recover(ctx, crawl, segments); err != nil {
		return err
	}
	for range 2 {
		selected, err := generate.Run(ctx, crawl, segments, generate.Options{TopN: 100, Rules: rules, Schedule: when})
		if err != nil {
			return err
		}
		for _, name := range selected.Segments { // none if nothing is due
			fetched, err := fetch.Run(ctx, segments, name, fetch.Options{
				Protocol: web.Protocol(), Hosts: hosts, Politeness: fetch.Politeness{Delay: -1},
				Robots:    &robots.Cache{Protocol: web.Protocol(), Hosts: hosts, Product: agent},
				Parser:    htmlparse.Mux(&htmlparse.Parser{Agent: agent}),
				Signature: signature.TextMD5{}, Rules: rules, Scoring: order,
			})
			if err != nil {
				return err
			}
			if _, err := update.Run(ctx, crawl, segments, name, update.Options{Schedule: when, Scoring: order}); err != nil {
				return err
			}
			inverted, err := linkdb.Invert(ctx, links, segments, []string{name}, linkdb.InvertOptions{})
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "generate %d, fetch %v, invert %d links to %d pages\n",
				selected.Selected, fetched.Visits, inverted.Inlinks, inverted.Targets)
		}
	}

	lines := index.NewJSONL(io.Discard) // or a file, or a Writer for your search engine
	indexed, err := index.Run(ctx, crawl, links, segments, lines, index.Options{})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "index: %d documents from %d segments\n", indexed.Documents, indexed.Segments)
	return nil
}
