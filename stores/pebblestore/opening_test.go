package pebblestore

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Open waits for no compaction, though there is one to do, after a crash and after an
// orderly end; it is done when the store is open.
func TestOpeningWaitsForNoCompaction(t *testing.T) {
	for _, crashed := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "store")
		db, err := Open(dir, small())
		if err != nil {
			t.Fatal(err)
		}
		// More stacked tables than trigger a compaction, which does not run yet; the last is in
		// the log of a store that crashes, and is made by closing the other.
		db.pacer.hold(true)
		for n := range compactL0 {
			if n > 0 {
				if err := db.flush(); err != nil {
					t.Fatal(err)
				}
			}
			if err := db.Crawl().Update(t.Context(), countingBatch(n, 0, countEach)); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Crawl().Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if crashed {
			db.fs.Fail(errCrash)
		}
		if err := db.Close(); err != nil && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		o := small()
		o.opening = func(engine *pebble.DB) {
			if m := engine.Metrics(); m.Compact.Count > 0 || m.Compact.NumInProgress > 0 || m.Levels[0].Sublevels < compactL0 {
				t.Errorf("crashed %t: while it is opened %d compactions were done and %d are, %d tables lie above one another", crashed, m.Compact.Count, m.Compact.NumInProgress, m.Levels[0].Sublevels)
			}
		}
		if db, err = Open(dir, o); err != nil {
			t.Fatal(err)
		}
		for db.db.Metrics().Compact.Count == 0 {
			time.Sleep(time.Millisecond)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
