package pebblestore

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// file is a table of the engine, without the table.
func file(first, last string, size uint64) (f pebble.SSTableInfo) {
	f.Smallest.UserKey, f.Largest.UserKey, f.Size = []byte(first), []byte(last), size
	return f
}

func TestStretchesOfTables(t *testing.T) {
	low := []pebble.SSTableInfo{file("c1", "c9", 100), file("c95", "d2", 100), file("d3", "d5", 100), file("d6", "l1", 100), file("l2", "l3", 100)}
	for _, test := range []struct {
		name      string
		zero, mid []pebble.SSTableInfo
		below     []pebble.SSTableInfo
		want      string
	}{
		{name: "nothing in the last level", zero: []pebble.SSTableInfo{file("d1", "d2", 7)}, want: "[d:0+7]"},
		{name: "others only", below: []pebble.SSTableInfo{file("c", "cz", 9), file("e", "ez", 9)}, want: "[d:0+0]"},
		{name: "nothing above", below: low, mid: []pebble.SSTableInfo{file("c1", "c2", 7), file("e", "h", 7)}, want: "[d:100+0 d3:100+0 d6:100+0]"},
		{name: "in front, between and behind", below: low, mid: []pebble.SSTableInfo{file("d1", "d12", 10), file("d21", "d22", 4), file("d51", "d52", 5), file("d7", "d8", 3)}, want: "[d:100+14 d3:100+5 d6:100+3]"},
		{name: "across", below: low, mid: []pebble.SSTableInfo{file("d4", "d7", 10)}, want: "[d:100+0 d3:100+5 d6:100+5]"},
		{name: "from the first key of one", below: low, mid: []pebble.SSTableInfo{file("d3", "d6", 10)}, want: "[d:100+0 d3:100+5 d6:100+5]"},
		{name: "level 0, too", below: low, zero: []pebble.SSTableInfo{file("d4", "d5", 10), file("d31", "d41", 1)}, mid: []pebble.SSTableInfo{file("d4", "d41", 20)}, want: "[d:100+0 d3:100+31 d6:100+0]"},
		{name: "one that begins in another table", below: low, zero: []pebble.SSTableInfo{file("c1", "d4", 10)}, want: "[d:100+5! d3:100+5! d6:100+0]"},
		{name: "one that hangs on one that ends in another", below: low, zero: []pebble.SSTableInfo{file("d8", "m", 10), file("d4", "d81", 10)}, want: "[d:100+0 d3:100+5! d6:100+15!]"},
		{name: "one that only touches", below: low, zero: []pebble.SSTableInfo{file("d8", "m", 10), file("d4", "d5", 10)}, want: "[d:100+0 d3:100+10 d6:100+10!]"},
		{name: "below level 0 nothing hangs together", below: low, mid: []pebble.SSTableInfo{file("c96", "d31", 10)}, want: "[d:100+5 d3:100+5 d6:100+0]"},
	} {
		levels := make([][]pebble.SSTableInfo, 7)
		levels[0], levels[5], levels[6] = test.zero, test.mid, test.below
		var got []string
		for _, s := range stretches(levels, codec.ReadyTable) {
			stuck := ""
			if s.stuck {
				stuck = "!"
			}
			got = append(got, fmt.Sprintf("%s:%d+%d%s", s.start, s.below, s.above, stuck))
		}
		if fmt.Sprint(got) != test.want {
			t.Errorf("%s: %v, want %s", test.name, got, test.want)
		}
	}
}

func TestStretchIsWorthCompacting(t *testing.T) {
	const least, large = 5, tidyMost/2 + 1
	at := func(start string, below, above uint64) stretch {
		return stretch{start: []byte(start), below: below, above: above}
	}
	stuck := at("d3", 30, 30)
	stuck.stuck = true
	for _, test := range []struct {
		name string
		s    []stretch
		want string
	}{
		{"nothing", nil, "[]"},
		{"little above each", []stretch{at("d", 31, 10), at("d3", 301, 100)}, "[]"},
		{"little above all", []stretch{at("d", 3, 1), at("d3", 3, 3)}, "[]"},
		{"a third", []stretch{at("d", 30, 10)}, "[d-e]"},
		{"neighbours", []stretch{at("d", 30, 10), at("d3", 30, 40), at("d6", 30, 9)}, "[d-d6]"},
		{"not neighbours", []stretch{at("d", 30, 10), at("d3", 30, 9), at("d6", 30, 10)}, "[d-d3 d6-e]"},
		{"one that is stuck", []stretch{at("d", 30, 10), stuck, at("d6", 30, 10)}, "[d-d3 d6-e]"},
		{"large", []stretch{at("d", large, large), at("d3", large, large), at("d6", 30, 10), at("d7", 30, 10)}, "[d-d3 d3-d6 d6-e]"},
	} {
		var got []string
		for _, r := range worthwhile(test.s, codec.ReadyTable, least) {
			got = append(got, fmt.Sprintf("%s-%s", r.Start, r.End))
		}
		if fmt.Sprint(got) != test.want {
			t.Errorf("%s: %v, want %s", test.name, got, test.want)
		}
	}
}

// wornURLs is how many URLs each of the two UpdateAlls of a worn store adds.
const wornURLs = 600

// worn returns a store with what one UpdateAll has put in the index all over what another
// one had put there: too little, and without a deletion, for the engine to compact it. The
// other function returns how much of it there is.
func worn(t *testing.T) (*DB, func() uint64) {
	db, err := Open(memPath, inMemory(small(), vfs.NewMem()))
	if err != nil {
		t.Fatal(err)
	}
	db.tidyLeast = math.MaxUint64
	db.crawl.bulkLeast = 1
	for pass := range 2 {
		// What becomes due is moved by small changes, which lie across all tables.
		if err := db.crawl.index.Prepare(t.Context(), dueEpoch); err != nil {
			t.Fatal(err)
		}
		if err := db.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		b := crawldb.Batch{Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
			return &crawldb.Datum{FetchTime: dueEpoch.Add(-time.Hour), Priority: float32(i % 50)}, nil
		}}
		for i := range wornURLs {
			b.URLs = append(b.URLs, fmt.Sprintf("http://h%02d.example/%05d-%d", i/100, i, pass))
		}
		if err := crawldb.UpdateAll(t.Context(), db.Crawl(), func(yield func(crawldb.Batch, error) bool) { yield(b, nil) }); err != nil {
			t.Fatal(err)
		}
	}
	db.tidyLeast = 1
	return db, func() uint64 { return aboveOf(t, db) }
}

// aboveOf returns how many bytes of the ready table and of the tallies lie above the last
// level.
func aboveOf(t *testing.T, db *DB) (above uint64) {
	t.Helper()
	levels, err := db.db.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	for _, t := range [...]codec.Table{codec.ReadyTable, codec.TallyTable} {
		for _, s := range stretches(levels, t) {
			above += s.above
		}
	}
	return above
}

// checkWorn checks that a worn store has all.
func checkWorn(t *testing.T, db *DB) {
	t.Helper()
	if n := countDue(t, db, crawldb.DueQuery{Now: dueEpoch}); n != 2*wornURLs {
		t.Errorf("%d candidates, want %d", n, 2*wornURLs)
	}
	if err := db.CheckIndex(t.Context()); err != nil {
		t.Error(err)
	}
}

// What an UpdateAll leaves above the last level of the index is compacted after it, and
// nothing is lost.
func TestTidy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, above := worn(t)
		defer db.Close()
		synctest.Wait()
		if above() == 0 {
			t.Fatal("there is nothing to tidy")
		}
		db.crawl.bulkStep = 1 // each batch is a step
		for _, steps := range []int{tidySteps - 1, tidySteps} {
			err := db.crawl.UpdateAll(t.Context(), func(yield func(crawldb.Batch, error) bool) {
				later := func(int, *crawldb.Datum) (*crawldb.Datum, error) {
					return &crawldb.Datum{FetchTime: dueEpoch.AddDate(0, 1, 0)}, nil
				}
				for i := range steps {
					if !yield(crawldb.Batch{URLs: []string{fmt.Sprintf("http://z%d.example/%d", i, steps)}, Next: later}, nil) {
						return
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n := above(); n > 0 != (steps < tidySteps) {
				t.Errorf("%d bytes lie above the last level behind %d steps", n, steps)
			}
		}
		checkWorn(t, db)
	})
}

// One tidies at a time, and none when the store is closed.
func TestTidyEndsWithTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, above := worn(t)
		db.pacer.hold(true)
		for range 3 {
			db.tidy(t.Context(), &db.crawl.view)
			synctest.Wait()
		}
		if db.tidying.TryLock() {
			t.Error("tidied while the engine was held")
		}
		if above() == 0 {
			t.Error("there is nothing to tidy")
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		if !db.tidying.TryLock() {
			t.Error("tidies behind Close")
		}
		db.tidy(t.Context(), &db.crawl.view)
		db, err := Open(memPath, inMemory(small(), db.under))
		if err != nil {
			t.Fatal(err)
		}
		checkWorn(t, db)
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Entries that become due in several steps lie in tables above one another, which are compacted
// after the last step; those of fewer steps are not.
func TestTablesOfDueEntriesAreCompacted(t *testing.T) {
	for most, want := range map[int]bool{wornURLs: false, wornURLs / (tidyHours - 1): false, wornURLs / tidyHours: true} {
		synctest.Test(t, func(t *testing.T) {
			db, err := Open(memPath, inMemory(small(), vfs.NewMem()))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			b := crawldb.Batch{Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
				return &crawldb.Datum{FetchTime: dueEpoch.Add(time.Duration(i%7) * time.Hour), LastFetch: dueEpoch.AddDate(0, -1, 0), Priority: float32(i % 50)}, nil
			}}
			for i := range wornURLs {
				b.URLs = append(b.URLs, fmt.Sprintf("http://h%02d.example/%05d", i/100, i))
			}
			if err := db.Crawl().Update(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if err := db.Compact(t.Context()); err != nil { // or the update lies across all tables
				t.Fatal(err)
			}
			db.tidyLeast, db.crawl.bulkLeast, db.crawl.index.LeastTables, db.crawl.index.MoveStep = 1, 1, 1, most
			if err := db.crawl.index.Prepare(t.Context(), dueEpoch.AddDate(0, 0, 1)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if above := aboveOf(t, db); (above == 0) != want {
				t.Errorf("at most %d at a time: %d bytes above the last level", most, above)
			}
			if err := db.CheckIndex(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Behind tables that were ingested a file has rows of one table, and only there.
func TestFilesOfOneTable(t *testing.T) {
	mixed := func(db *DB) (n int) {
		t.Helper()
		levels, err := db.db.SSTables()
		if err != nil {
			t.Fatal(err)
		}
		for _, level := range levels {
			for _, file := range level {
				if file.Smallest.UserKey[0] != file.Largest.UserKey[0] {
					n++
				}
			}
		}
		return n
	}
	db, err := Open(t.TempDir(), small())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	urls := putPages(t, db, 3000) // by batches, which filled memtables
	if err := db.flush(); err != nil {
		t.Fatal(err)
	}
	if mixed(db) == 0 {
		t.Error("what fills memtables is cut")
	}
	db.crawl.bulkLeast = 1
	later := func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
		d := *old
		d.FetchTime = d.FetchTime.AddDate(0, 1, 0)
		return &d, nil
	}
	if err := crawldb.UpdateAll(t.Context(), db.Crawl(), func(yield func(crawldb.Batch, error) bool) {
		yield(crawldb.Batch{URLs: urls[1:], Next: later}, nil)
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Crawl().Update(t.Context(), crawldb.Batch{URLs: urls[:1], Next: later}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.flush(), db.Compact(t.Context())); err != nil {
		t.Fatal(err)
	}
	if n := mixed(db); n > 0 {
		t.Errorf("%d files have rows of several tables behind an UpdateAll", n)
	}
}
