package pebblestore

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
)

// TestDenseDeletions: of a level of the due index what has little but deletions is
// compacted because of them, and what an update leaves, that deletes as many entries as it
// sets, is not.
func TestDenseDeletions(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name  string
		every int // how many deletions lie between two entries that are set, and one more
		score float32
		dense bool
	}{
		{"all", 1 << 30, 1, true},
		{"nineteen of twenty", 20, 1, true},
		{"each second, with the record", 2, 1, false},
		{"each second, without a score", 2, 0, false},
	} {
		db, err := Open(t.TempDir(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		name := db.under.PathJoin(db.path, bulkPrefix+"test")
		err = db.writeTable(name, func(yield func(key, value []byte) bool) {
			for i := range 20_000 {
				d := crawldb.Datum{
					URL:    fmt.Sprintf("https://www.site%06d.example/section-%04d/%010d-of-a-site.html", i/500, i/100, i*7919),
					Status: crawldb.Unfetched, FetchTime: at.Add(time.Duration(i*7919%86_400) * time.Second), Interval: 30 * 24 * time.Hour, Score: c.score, Priority: 1,
				}
				e := entryOf(&d)
				key, value := e.appendReady(nil, []byte(crawldb.Key(d.URL))), e.appendValue(nil)
				if (i+1)%c.every != 0 {
					value = nil
				}
				if !yield(key, value) {
					return
				}
			}
		}, false)
		if err == nil {
			err = ingestTables(db.db, []string{name})
		}
		if err != nil {
			t.Fatal(err)
		}
		levels, err := db.db.SSTables(pebble.WithProperties())
		if err != nil {
			t.Fatal(err)
		}
		var blocks, dense uint64
		for _, level := range levels {
			for _, table := range level {
				blocks += table.Properties.NumDataBlocks
				dense += table.Properties.NumTombstoneDenseBlocks
			}
		}
		if c.dense && dense*10 < blocks*9 || !c.dense && dense > 0 || blocks == 0 {
			t.Errorf("%s: %d of %d blocks are dense", c.name, dense, blocks)
		}
	}
}
