package pebblestore

import (
	"bytes"
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

// TestFilesEndWithTheirSpan: flushed and compacted files have rows of one table, and of
// one octave of the ready table.
func TestFilesEndWithTheirSpan(t *testing.T) {
	db, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for pass := range 2 {
		for b, err := range counting(pass*countBatches, pass+1, nil) {
			if err == nil {
				err = db.Crawl().Update(t.Context(), b)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		write := db.flush
		if pass > 0 {
			write = func() error { return db.Compact(t.Context()) }
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
		levels, err := db.db.SSTables()
		if err != nil {
			t.Fatal(err)
		}
		octaves := 0
		for _, level := range levels {
			for _, file := range level {
				first, last := file.Smallest.UserKey, file.Largest.UserKey
				if bytes.Compare(last, spanEnd(first)) > 0 {
					t.Errorf("pass %d: a file from %q to %q", pass, first, last)
				}
				if table(first[0]) == readyTable {
					octaves++
				}
			}
		}
		if octaves < 2 {
			t.Errorf("pass %d: %d files of the ready table", pass, octaves)
		}
	}
	for _, c := range [][2]string{{"c", "d"}, {"cexample", "d"}, {"d\x00\x07x", "d\x00\x08"}, {"d\x00\x08", "d\x00\x10"}, {"d\x01", "e"}, {"d\xff\xff", "e"}} {
		if end := spanEnd([]byte(c[0])); string(end) != c[1] {
			t.Errorf("what begins with %q ends before %q, want %q", c[0], end, c[1])
		}
	}
}
