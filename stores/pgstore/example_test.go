package pgstore_test

import (
	"context"
	"log"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/stores/pgstore"
)

// A crawler whose crawl is in a database.
func Example() {
	ctx := context.Background()
	db, err := pgstore.Open(ctx, "postgres://crawler@db.example/web?crawl=news", pgstore.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	crawler, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}, recrawl.Options{Agent: "mybot"})
	if err != nil {
		log.Fatal(err)
	}
	defer crawler.Close()
	if _, err := crawler.Inject(ctx, "https://example.com/"); err != nil {
		log.Fatal(err)
	}
	report, err := crawler.Run(ctx)
	log.Print(report, err)
}
