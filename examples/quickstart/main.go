// Quickstart crawls a web, keeps what it finds in a directory, and prints how much
// that was. Run it twice: the second run has nothing to do, since no page is due
// yet.
//
//	go run ./quickstart                            a small simulated web, on loopback
//	go run ./quickstart https://example.org/       a site, two rounds of at most 20 pages
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

func main() {
	dir := flag.String("dir", filepath.Join(os.TempDir(), "quickstart-crawl"), "where to keep the crawl")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *dir, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, dir string, urls []string) error {
	options := recrawl.Options{
		Agent:    "recrawl-quickstart", // give yours a name of its own
		Generate: generate.Options{TopN: 20},
		Fetch:    fetch.Options{Links: fetch.Links{IgnoreExternal: true}}, // stay on the hosts of the seeds
		Rounds:   2,
	}
	if len(urls) == 0 {
		web := &webtest.Web{Hosts: 3, PagesPerHost: 10, Calm: true}
		server, err := webtest.Serve(web)
		if err != nil {
			return err
		}
		defer server.Close()
		// Connect to our own server for every host name, and do not pause between
		// requests.
		to, err := httpproto.ParseConnectTo(server.ConnectTo())
		if err != nil {
			return err
		}
		client, err := httpproto.New(httpproto.Options{Agent: options.Agent, ConnectTo: []httpproto.ConnectTo{to}})
		if err != nil {
			return err
		}
		defer client.Close()
		options.Protocol, options.Fetch.Politeness.Delay, options.Rounds = client, -1, 0
		urls = web.Seeds()
	}

	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	crawler, err := recrawl.New(recrawl.Stores{
		Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments(),
	}, options)
	if err != nil {
		return err
	}
	defer crawler.Close()

	seeds, err := crawler.Inject(ctx, urls...)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d seeds, %d of them new\n", seeds.Seeds, seeds.New)
	report, err := crawler.Run(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d rounds, %d pages visited: %v\n", report.Rounds, report.Visited(), report.Visits)
	return nil
}
