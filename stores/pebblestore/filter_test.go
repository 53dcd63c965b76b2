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

// TestTablesAboveOthersHaveFilters: a table that UpdateAll puts above others has a filter, so
// that reading a few records that it does not have reads none of its blocks.
func TestTablesAboveOthersHaveFilters(t *testing.T) {
	db, err := Open(t.TempDir(), small())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	shortSteps(db, 1)
	for pass := range 2 {
		if err := crawldb.UpdateAll(t.Context(), db.Crawl(), counting(pass*countBatches, pass+1, nil)); err != nil {
			t.Fatal(err)
		}
		levels, err := db.db.SSTables(pebble.WithProperties())
		if err != nil {
			t.Fatal(err)
		}
		filtered := 0
		for _, level := range levels {
			for _, table := range level {
				if table.Properties.FilterSize == 0 {
					continue
				}
				if filtered++; table.Smallest.UserKey[0] != byte(crawlTable) {
					t.Errorf("a table from %q on has a filter that nobody asks", table.Smallest.UserKey)
				}
			}
		}
		if (filtered > 0) != (pass > 0) {
			t.Errorf("pass %d: %d tables have filters", pass, filtered)
		}
	}
	// Between the others, and not there.
	b := crawldb.Batch{Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) { return old, nil }}
	for _, u := range countingBatch(1, 0, countBatches*countEach).URLs {
		if hash(u)%30 == 0 {
			b.URLs = append(b.URLs, u+"x")
		}
	}
	before := db.db.Metrics().Filter
	if err := db.Crawl().Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if m := db.db.Metrics().Filter; m.Hits-before.Hits < int64(len(b.URLs)/2) {
		t.Errorf("of %d records that are not there filters told of %d", len(b.URLs), m.Hits-before.Hits)
	}
}
