package crawldb_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/memstore"
)

// Records are read and changed in one atomic step. Next gets the stored record and returns
// the new one; the mark says how far the job has come.
func ExampleStore() {
	ctx := context.Background()
	var store crawldb.Store = new(memstore.Crawl)

	seeds := []string{"https://example.com/", "https://example.com/news"} // in key order
	err := store.Update(ctx, crawldb.Batch{
		URLs: seeds,
		Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
			if old != nil {
				return old, nil // known already: leave it as it is
			}
			return &crawldb.Datum{Status: crawldb.Unfetched, Score: 1, Priority: 1}, nil
		},
		Marks: crawldb.Mark("inject", seeds[1]),
	})
	if err != nil {
		log.Fatal(err)
	}

	d, err := store.Get(ctx, "https://example.com/news")
	fmt.Println(d.URL, d.Status, d.Score, err)
	_, err = store.Get(ctx, "https://example.org/")
	fmt.Println(errors.Is(err, crawldb.ErrNotFound))
	cursor, _ := store.Mark(ctx, "inject")
	fmt.Println(cursor)
	// Output:
	// https://example.com/news db_unfetched 1 <nil>
	// true
	// https://example.com/news
}

// A host is a range of keys.
func ExampleHostRange() {
	ctx := context.Background()
	store := new(memstore.Crawl)
	urls := []string{"http://a.example.com/", "http://www.example.com/", "https://www.example.com/x", "http://example.org/"}
	err := store.Update(ctx, crawldb.Batch{URLs: urls, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) {
		return &crawldb.Datum{Status: crawldb.Unfetched}, nil
	}})
	if err != nil {
		log.Fatal(err)
	}
	for d, err := range store.Scan(ctx, crawldb.HostRange("www.example.com")) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(d.URL)
	}
	// Output:
	// http://www.example.com/
	// https://www.example.com/x
}

// Due yields hints, best first; only the record decides.
func ExampleDue() {
	ctx := context.Background()
	store := new(memstore.Crawl)
	now := time.Date(2024, 6, 1, 0, 0, 0, 0, time.UTC)
	records := []crawldb.Datum{
		{URL: "http://example.com/a", FetchTime: now.Add(-time.Hour), Priority: 1},
		{URL: "http://example.com/b", FetchTime: now.Add(time.Hour), Priority: 9},
		{URL: "http://example.com/c", FetchTime: now, Priority: 2},
	}
	err := store.Update(ctx, crawldb.Batch{
		URLs: []string{records[0].URL, records[1].URL, records[2].URL},
		Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &records[i], nil },
	})
	if err != nil {
		log.Fatal(err)
	}
	for c, err := range crawldb.Due(ctx, store, crawldb.DueQuery{Now: now}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(c.URL, c.Priority)
	}
	// Output:
	// http://example.com/c 2
	// http://example.com/a 1
}

func ExampleKey() {
	fmt.Println(crawldb.Key("http://www.example.com/a?b"))
	fmt.Println(crawldb.Key("https://www.example.com:8443/"))
	fmt.Println(crawldb.URLOf("com,example)https:/"))
	// Output:
	// com,example,www)http:/a?b
	// com,example,www)https:8443/
	// https://example.com/
}

func ExampleMeta() {
	m := crawldb.MetaOf("seed.source", "editors", "opic.cash", "0.25")
	m.Set("opic.cash", "0.5")
	for name, value := range m.All() {
		fmt.Println(name, value)
	}
	// Output:
	// opic.cash 0.5
	// seed.source editors
}
