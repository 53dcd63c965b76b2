// Customscoring crawls with two custom policies: a scoring filter that puts pages near
// the seeds first, and a URL filter that leaves out a host.
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
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/urlfilter"
)

// near scores a page by its distance from the nearest seed: 1 for a seed, a half
// for what it links to, a quarter for what that links to. The rest of a filter is
// in Base: seeds keep their score, new pages start with none, and due pages are
// ordered by score.
type near struct{ scoring.Base }

func (near) Distribute(from scoring.Page, links []scoring.Link) (gave float64) {
	for i := range links {
		links[i].Score = float64(from.Datum.Score) / 2
	}
	return 0 // a page loses nothing by it
}

func (near) Updated(_, d *crawldb.Datum, f scoring.Flow) {
	for _, link := range f.In {
		d.Score = max(d.Score, float32(link.Score))
	}
}

// ban rejects the pages of a host. String is for messages.
type ban string

func (host ban) Accept(url string) bool { return crawldb.Host(url) != string(host) }
func (host ban) String() string         { return "the ban on " + string(host) }

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	web := &webtest.Web{Hosts: 3, PagesPerHost: 10, LinksPerPage: 3, Calm: true}

	// The stock rules, followed by our own filter.
	rules := urlfilter.Default()
	rules.Filters = append(rules.Filters, ban(web.Host(1)))

	var db memstore.DB
	defer db.Close()
	crawler, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Segments: db.Segments()}, recrawl.Options{
		Agent: "customscoring", Protocol: web.Protocol(), Rules: rules,
		Scoring:  near{},
		Generate: generate.Options{TopN: 6}, // so that the order shows
		Fetch:    fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
	})
	if err != nil {
		return err
	}
	defer crawler.Close()
	seeds, err := crawler.Inject(ctx, web.Seeds()...)
	if err != nil {
		return err
	}
	for _, bad := range seeds.Bad {
		fmt.Fprintln(out, bad)
	}
	for {
		report, err := crawler.Round(ctx)
		if err != nil {
			return err
		}
		if report.Rounds == 0 {
			return nil
		}
		fmt.Fprintln(out, "round")
		for d, err := range segment.Records[crawldb.Datum](ctx, db.Segments(), report.Segments[0]) {
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "  %-6g %s\n", d.Priority, d.URL)
		}
	}
}
