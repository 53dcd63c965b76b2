package dueindex

import (
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// A query about the future leaves entries where the clock needs them.
func TestLookingAheadMovesNothing(t *testing.T) {
	db := newStore(t)
	db.putDue(t, 2000, func(i int) time.Time { return epoch.Add(time.Duration(i) * time.Hour) })
	for _, days := range []int{0, 1, 30, 1000} {
		ahead := time.Duration(days) * 24 * time.Hour
		if n, want := len(db.due(t, crawldb.DueQuery{Now: epoch.Add(ahead), AheadOfClock: ahead})), min(days*24+1, 2000); n != want {
			t.Errorf("%d days ahead %d are due, want %d", days, n, want)
		}
		if n := db.size(t, codec.ReadyTable); n != 1 {
			t.Errorf("%d entries are ready", n)
		}
	}
	if n := len(db.due(t, crawldb.DueQuery{Now: epoch.Add(99 * time.Hour)})); n != 100 || db.size(t, codec.ReadyTable) != 100 {
		t.Errorf("%d are due, %d entries are ready", n, db.size(t, codec.ReadyTable))
	}
}

// A clock that is years ahead makes everything ready. When it goes back, entries that are not due
// are passed over once, and then the index is built anew.
func TestRebuildAfterClockWentBack(t *testing.T) {
	db := newStore(t)
	const n = 5000
	db.MaxPassed = n - 1000
	db.putDue(t, n, func(i int) time.Time { return epoch.Add(time.Duration(i) * time.Minute) })
	if got := len(db.due(t, crawldb.DueQuery{Now: epoch.AddDate(10, 0, 0), Limit: 5})); got != 5 || db.size(t, codec.ReadyTable) != n {
		t.Fatalf("%d are due, %d are ready", got, db.size(t, codec.ReadyTable))
	}
	for round, ready := range []int{n, 60} {
		if got := len(db.due(t, crawldb.DueQuery{Now: epoch.Add(59 * time.Minute)})); got != 60 || db.size(t, codec.ReadyTable) != ready {
			t.Errorf("round %d: %d are due, %d are ready, want 60 and %d", round, got, db.size(t, codec.ReadyTable), ready)
		}
		if err := db.checkError(t); err != nil {
			t.Error(err)
		}
	}
}

// More records beyond the horizon than are held at a time are yielded all the same.
func TestManyRecordsBeyondHorizon(t *testing.T) {
	db := newStore(t)
	const n = 4100
	db.SideList = 2000
	db.putDue(t, n, func(i int) time.Time {
		if i == 0 {
			return epoch
		}
		return epoch.AddDate(3, 0, 0)
	})
	// The first record is due, and the mark is where it is.
	got, least := map[string]bool{}, uint16(0)
	for c, err := range db.Due(t.Context(), crawldb.DueQuery{Now: epoch, DueBeyond: epoch.AddDate(1, 0, 0)}) {
		if err != nil {
			t.Fatal(err)
		}
		if l := levelOf(c.Priority); l < least {
			t.Fatalf("level %d after %d", l, least)
		} else {
			least = l
		}
		got[c.URL] = true
	}
	if len(got) != n {
		t.Errorf("%d of %d", len(got), n)
	}
}

// A selection misses nothing when another one, by another clock, moves the entries that it has
// not come to.
func TestEntriesMoveDuringSelection(t *testing.T) {
	db := newStore(t)
	urls := db.putDue(t, 3000, func(i int) time.Time {
		if i < 2000 {
			return epoch
		}
		return epoch.Add(50 * time.Hour)
	})
	got := map[string]bool{}
	for c, err := range db.Due(t.Context(), crawldb.DueQuery{Now: epoch.Add(100 * time.Hour)}) {
		if err != nil {
			t.Fatal(err)
		}
		if got[c.URL] = true; len(got) == 10 {
			db.Rebuild()
			if n := len(db.due(t, crawldb.DueQuery{Now: epoch})); n != 2000 {
				t.Errorf("%d are due before", n)
			}
		}
	}
	if len(got) != len(urls) {
		t.Errorf("%d of %d", len(got), len(urls))
	}
	// The same with more than one list of those that are not due by the clock.
	db.SideList = 1000
	urls = db.putDue(t, 5000, func(int) time.Time { return epoch.Add(50 * time.Hour) })
	db.Rebuild()
	db.due(t, crawldb.DueQuery{Now: epoch})
	clear(got)
	for c, err := range db.Due(t.Context(), crawldb.DueQuery{Now: epoch.Add(100 * time.Hour), AheadOfClock: 100 * time.Hour}) {
		if err != nil {
			t.Fatal(err)
		}
		if got[c.URL] = true; len(got) == 10 {
			db.due(t, crawldb.DueQuery{Now: epoch.Add(50 * time.Hour), Limit: 1})
		}
	}
	if len(got) != len(urls) {
		t.Errorf("%d of %d", len(got), len(urls))
	}
}

// The check finds an index that is damaged in any way.
func TestCheckFindsDamage(t *testing.T) {
	for name, damage := range map[string]func(b *pebble.Batch, key, value []byte) error{
		"missing":   func(b *pebble.Batch, key, _ []byte) error { return b.Delete(key, nil) },
		"surplus":   func(b *pebble.Batch, key, value []byte) error { return b.Set(append(key, 'x'), value, nil) },
		"value":     func(b *pebble.Batch, key, value []byte) error { return b.Set(key, value[:4], nil) },
		"misplaced": func(b *pebble.Batch, key, value []byte) error { key[2]++; return b.Set(key, value, nil) },
		"no value":  func(b *pebble.Batch, key, _ []byte) error { return b.Set(key, nil, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			db := newStore(t)
			db.putDue(t, 50, func(int) time.Time { return epoch })
			if err := db.checkError(t); err != nil {
				t.Fatal(err)
			}
			e := entry{dueFrom: epoch.UnixMilli(), priority: 7}
			key := e.appendReadyKey(nil, []byte(crawldb.Key("http://h000.example/000007")))
			batch := db.db.NewBatch()
			if err := damage(batch, key, e.appendHead(nil)); err != nil {
				t.Fatal(err)
			}
			if err := batch.Commit(pebble.NoSync); err != nil {
				t.Fatal(err)
			}
			if err := db.checkError(t); !errors.Is(err, errTestDamage) {
				t.Errorf("%v", err)
			}
		})
	}
}
