// Customstore keeps a crawl db in a single file: a crawldb.Store that is a map
// (store.go). Its test runs the conformance kit, which shows that a crawl can rely on
// the store.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol/webtest"
)

func main() {
	if err := run(context.Background(), os.Stdout, filepath.Join(os.TempDir(), "customstore.gob")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, file string) (err error) {
	store, err := Open(file)
	if err != nil {
		return err
	}
	defer func() {
		if e := store.Close(); err == nil {
			err = e
		}
	}()
	web := &webtest.Web{Hosts: 2, PagesPerHost: 5, Calm: true}
	crawler, err := recrawl.New(recrawl.Stores{Crawl: store}, recrawl.Options{
		Agent: "customstore", Protocol: web.Protocol(), Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
	})
	if err != nil {
		return err
	}
	defer crawler.Close()
	if _, err := crawler.Inject(ctx, web.Seeds()...); err != nil {
		return err
	}
	report, err := crawler.Run(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d pages visited\n", report.Visited())
	for d, err := range store.Scan(ctx, crawldb.HostRange("docs.example.test")) {
		if err != nil {
			return err
		}
		fmt.Fprintln(out, d.Status, d.URL)
	}
	return nil
}
