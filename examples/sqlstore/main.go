// Sqlstore keeps a crawl db in SQLite: a crawldb.Store over database/sql (store.go), which can
// be queried while the crawl runs. Its test runs the conformance kit, which shows that a crawl
// can rely on the store. It is a module of its own because the driver is large.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol/webtest"
)

func main() {
	if err := run(context.Background(), os.Stdout, filepath.Join(os.TempDir(), "sqlstore.db")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, file string) (err error) {
	store, err := Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	web := &webtest.Web{Hosts: 2, PagesPerHost: 5, Calm: true}
	crawler, err := recrawl.New(recrawl.Stores{Crawl: store}, recrawl.Options{
		Agent: "sqlstore", Protocol: web.Protocol(), Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
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
	var records, due int
	err = store.db.QueryRowContext(ctx, "SELECT count(*), count(*) FILTER (WHERE due <= unixepoch()) FROM records").Scan(&records, &due)
	fmt.Fprintf(out, "%d pages visited; %d records, %d due\n", report.Visited(), records, due)
	return err
}
