package memstore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/memstore"
)

// The zero value of a DB is ready: give its parts to a crawl, or use one alone.
func Example() {
	ctx := context.Background()
	var db memstore.DB
	defer db.Close()

	store := db.Crawl()
	err := store.Update(ctx, crawldb.Batch{
		URLs: []string{"http://example.com/", "http://www.example.com/"},
		Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
			return &crawldb.Datum{Status: crawldb.Unfetched, Score: 1}, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	for d, err := range store.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(d.URL, d.Status)
	}
	// Output:
	// http://example.com/ db_unfetched
	// http://www.example.com/ db_unfetched
}
