package pebblestore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

func Example() {
	home, err := os.MkdirTemp("", "crawl")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(home)
	dir := filepath.Join(home, "store")

	ctx := context.Background()
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		log.Fatal(err)
	}
	urls := []string{"https://example.com/", "https://example.com/a", "https://example.org/"}
	err = db.Crawl().Update(ctx, crawldb.Batch{
		URLs: urls,
		Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
			if old != nil {
				return old, nil // known; leave it as it is
			}
			return &crawldb.Datum{Status: crawldb.Unfetched, Score: 1}, nil
		},
		Marks: crawldb.Mark("seeds", urls[2]),
	})
	if err != nil {
		log.Fatal(err)
	}

	// Only one handle may have the directory open.
	_, err = pebblestore.Open(dir, pebblestore.Options{})
	fmt.Println("locked:", errors.Is(err, pebblestore.ErrLocked))

	if err := db.Close(); err != nil {
		log.Fatal(err)
	}

	if db, err = pebblestore.Open(dir, pebblestore.Options{}); err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	for d, err := range db.Crawl().Scan(ctx, crawldb.DomainRange("example.com")) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(d.URL, d.Status)
	}
	cursor, err := db.Crawl().Mark(ctx, "seeds")
	fmt.Println("seeds are in up to", cursor, err)
	// Output:
	// locked: true
	// https://example.com/ db_unfetched
	// https://example.com/a db_unfetched
	// seeds are in up to https://example.org/ <nil>
}
