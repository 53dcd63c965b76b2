package pebblestore

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
)

// TestLastLevelHasNoFilters: they are a twentieth of what a URL takes, and answer
// only for what is not there.
func TestLastLevelHasNoFilters(t *testing.T) {
	db, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	// A table that is alone is moved to the last level as it is; the second is merged
	// with it.
	for score := range 2 {
		err := db.Crawl().Update(t.Context(), crawldb.Batch{URLs: []string{"http://a.test/"}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) {
			return &crawldb.Datum{Status: crawldb.Unfetched, Score: float32(score)}, nil
		}})
		if err == nil {
			err = db.Compact(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	levels, err := db.db.SSTables(pebble.WithProperties())
	if err != nil {
		t.Fatal(err)
	}
	last := levels[len(levels)-1]
	if len(last) == 0 {
		t.Fatal("the last level is empty")
	}
	for _, table := range last {
		if table.Properties.FilterSize > 0 {
			t.Errorf("a table of the last level has a filter of %d bytes", table.Properties.FilterSize)
		}
	}
}
