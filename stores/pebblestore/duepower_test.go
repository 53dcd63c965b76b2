package pebblestore

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/recrawl/recrawl/crawldb"
)

// TestIndexSurvivesPowerLoss makes the machine crash at any write of updates that bring what is
// due soon and leave old priorities, of selections that move what has become due or build the
// index anew, and of trims: what the disk holds has an index that says what its records say.
func TestIndexSurvivesPowerLoss(t *testing.T) {
	trials := uint64(60)
	if *long {
		trials = 2000
	}
	var cut, stale, rests, trimmed, part int
	for trial := range trials {
		r := rand.New(rand.NewPCG(trial, 417))
		mem := vfs.NewCrashableMem()
		var left *vfs.MemFS
		w := &onWrite{at: r.Int64N(150)}
		w.do = func() { left = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r}) }
		db, err := Open(memPath, inMemory(small(), errorfs.Wrap(mem, w)))
		if err != nil {
			t.Fatal(err)
		}
		shortSteps(db, []int{1, 1 << 30}[r.IntN(2)])
		s := &db.crawl
		s.farKeys, s.due.least, s.due.step, s.due.anew = 50, int64(r.IntN(100)), 100, []uint64{0, anewBytes}[r.IntN(2)]
		urls := fillSoon(t, db, 300)
		w.armed.Store(true)
		clock := dueEpoch.Add(-time.Hour)
		for left == nil {
			switch n := r.IntN(10); {
			case n < 6:
				next := []func(int, *crawldb.Datum) *crawldb.Datum{doubled, later}[min(n/4, 1)]
				visitOthers(t, db, urls, next)
			case n < 9:
				clock = clock.Add(time.Duration(r.IntN(90*24)) * time.Hour)
				if err := s.prepare(t.Context(), clock.UnixMilli()); err != nil {
					t.Fatal(err)
				}
			default:
				if err := s.tryTrim(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		db.fs.Fail(errCrash) // it leaves no seal
		db.Close()

		if db, err = Open(memPath, inMemory(small(), left)); err != nil {
			t.Fatalf("trial %d: %v", trial, err)
		}
		state := db.crawl.due.state.Load()
		count := func(n *int, is bool) {
			if is {
				*n++
			}
		}
		count(&cut, true)
		count(&stale, state.stale)
		count(&rests, state.long)
		count(&trimmed, state.out > 0)
		count(&part, !state.whole)
		if err := db.CheckIndex(t.Context()); err != nil {
			t.Errorf("trial %d: %+v: %v", trial, state, err)
		}
		sameAsScan(t, db, crawldb.DueQuery{Now: clock, AheadOfClock: time.Duration(r.IntN(60*24)) * time.Hour})
		sameAsScan(t, db, crawldb.DueQuery{Now: clock.AddDate(0, r.IntN(6), 0)})
		if err := db.CheckIndex(t.Context()); err != nil {
			t.Errorf("trial %d, then: %v", trial, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.Fatalf("trial %d", trial)
		}
	}
	if t.Logf("%d crashes; %d left old priorities, %d long rests, %d a trimmed table, %d part of an index", cut, stale, rests, trimmed, part); stale < 5 || rests < 5 || *long && (trimmed < 5 || part < 1) {
		t.Error("some hardly happen")
	}
}
