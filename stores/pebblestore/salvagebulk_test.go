package pebblestore_test

import (
	"fmt"
	"iter"
	"path/filepath"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// Tables that were ingested have their number in the manifest alone: the newest
// version of a record is found, whichever way it was written.
func TestSalvageAfterBulkUpdates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	batch := func(from, to int, score float32) crawldb.Batch {
		var urls []string
		for i := from; i < to; i++ {
			urls = append(urls, fmt.Sprintf("http://h.example/%06d", i))
		}
		return crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
			return &crawldb.Datum{URL: urls[i], Status: crawldb.Unfetched, FetchTime: soundTime(), Score: score, Priority: score}, nil
		}}
	}
	one := func(b crawldb.Batch) iter.Seq2[crawldb.Batch, error] {
		return func(yield func(crawldb.Batch, error) bool) { yield(b, nil) }
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(db.Crawl().Update(t.Context(), batch(0, 3000, 1)))
	must(crawldb.UpdateAll(t.Context(), db.Crawl(), one(batch(1000, 5000, 2))))
	must(db.Crawl().Update(t.Context(), batch(2000, 2500, 3)))
	must(db.Crawl().Sync(t.Context()))
	must(db.Close())
	src := openSound(t, dir)
	want := crawlOf(t, src)
	must(src.Close())
	salvagedDB, losses, _ := salvaged(t, dir)
	got := crawlOf(t, salvagedDB)
	if len(losses) > 0 || len(got) != len(want) {
		t.Errorf("%d records of %d, %v", len(got), len(want), losses)
	}
	for url := range want {
		if got[url] != want[url] {
			t.Fatalf("%s is %s and was %s", url, got[url], want[url])
		}
	}
}
