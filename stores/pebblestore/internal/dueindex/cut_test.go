package dueindex

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/changeset"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// cutStore is a tour store whose index keeps so many entries.
func cutStore(t *testing.T, n int, keep int64) *testStore {
	t.Helper()
	db, _ := tourStore(t, n)
	db.LeastReady = keep
	cutTo(t, db)
	return db
}

// cutTo cuts the index of a store, and fails if that does nothing.
func cutTo(t *testing.T, db *testStore) {
	t.Helper()
	if err := db.Prepare(t.Context(), epoch); err != nil {
		t.Fatal(err)
	}
	was := db.size(t, codec.ReadyTable)
	if err := db.TryCut(t.Context()); err != nil {
		t.Fatal(err)
	}
	if is := db.size(t, codec.ReadyTable); is == 0 || 2*is > was {
		t.Fatalf("%d of %d entries are kept", is, was)
	}
	if err := db.checkError(t); err != nil {
		t.Fatal(err)
	}
}

// forget makes a store forget what selections have asked for.
func forget(db *testStore) {
	state := *db.state.Load()
	state.wanted = 0
	db.state.Store(&state)
}

// oneStep adds levels, as many as one step has.
func oneStep(t *testing.T, db *testStore, level uint16) {
	t.Helper()
	s := db
	s.lock.Lock()
	err := s.addLevelsStep(t.Context(), level)
	s.lock.Unlock()
	if err != nil {
		t.Fatal(err)
	}
}

// A cut index yields what a whole one yields, in the same order, whether levels are
// added on the way or not.
func TestCutIndexYieldsTheSame(t *testing.T) {
	testlevel.SkipInRace(t)
	db, _ := tourStore(t, 6000)
	mosts := testlevel.Pick([]int{1, 7, math.MaxInt}, []int{1, 2, 7, 50, math.MaxInt})
	var want [][]crawldb.Candidate
	for _, most := range mosts {
		want = append(want, withoutTokens(limited(t, db, math.MaxInt, most, nil)))
	}
	db.LeastReady = 1000
	for _, test := range []struct {
		held, side int
	}{{math.MaxInt, math.MaxInt}, {math.MaxInt, 3}, {100, 20}, {0, math.MaxInt}} {
		db.HeldBelowCut, db.SideList = test.held, test.side
		for i, most := range mosts {
			for _, from := range []int{1, 100, math.MaxInt} {
				// As if no selection had asked for more.
				forget(db)
				cutTo(t, db)
				if got := withoutTokens(limited(t, db, from, most, nil)); !slices.Equal(got, want[i]) {
					t.Errorf("%+v, limit %d, a tour from %d on: %d candidates, want %d", test, most, from, len(got), len(want[i]))
				}
				cut := db.state.Load().cut
				if test.held == math.MaxInt && cut == 0 || test.held == 0 && most == math.MaxInt && cut > 0 {
					t.Errorf("%+v, limit %d: %d levels are cut", test, most, cut)
				}
				if err := db.checkError(t); err != nil {
					t.Error(err)
				}
				// The next cut must have something to do.
				if err := db.addLevels(t.Context(), lastLevel); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func withoutTokens(all []crawldb.Candidate) []crawldb.Candidate {
	for i := range all {
		all[i].Token = ""
	}
	return all
}

// An update of a cut index writes nothing for what lies below, and the best come up.
func TestUpdateOfCutIndex(t *testing.T) {
	db := cutStore(t, 3000, 500)
	all := limited(t, db, math.MaxInt, math.MaxInt, nil)
	db = cutStore(t, 3000, 500)
	last := all[len(all)-1].URL
	kept := db.size(t, codec.ReadyTable)
	for _, p := range []float32{1e-3, 1e3, 1e-3} {
		db.put(t, last, func(d *crawldb.Datum) *crawldb.Datum {
			is := *d
			is.Priority = p
			return &is
		})
		want := kept
		if p > 1 {
			want++
		}
		if n := db.size(t, codec.ReadyTable); n != want {
			t.Errorf("priority %v: %d entries, want %d", p, n, want)
		}
		if err := db.checkError(t); err != nil {
			t.Error(err)
		}
		if p > 1 {
			for c, err := range db.Due(t.Context(), crawldb.DueQuery{Now: epoch, Limit: 1}) {
				if err != nil || c.URL != last {
					t.Errorf("%q, %v", c.URL, err)
				}
			}
		}
	}
}

// Levels are not cut if one of them has most entries: that would keep too much, or too little.
func TestLevelWithMostEntriesIsNotCut(t *testing.T) {
	db := newStore(t)
	s := db
	s.LeastReady = 10
	db.putDue(t, 1000, func(int) time.Time { return epoch.Add(-time.Hour) })
	b := crawldb.Batch{Next: func(_ int, d *crawldb.Datum) (*crawldb.Datum, error) {
		is := *d
		is.Priority = 1
		return &is, nil
	}}
	for i := range 1000 {
		b.URLs = append(b.URLs, fmt.Sprintf("http://h%03d.example/%06d", i/100, i))
	}
	if err := db.tryUpdate(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := db.Prepare(t.Context(), epoch); err != nil {
		t.Fatal(err)
	}
	if err := db.TryCut(t.Context()); err != nil || s.state.Load().cut != 0 {
		t.Errorf("%d levels cut, %v", s.state.Load().cut, err)
	}
}

// Adding levels goes on where it was interrupted, also after a crash, and what is
// changed meanwhile is in it or not as the record says.
func TestAddLevelsInSteps(t *testing.T) {
	db := newStore(t)
	urls := db.putDue(t, 2000, func(int) time.Time { return epoch.Add(-time.Hour) })
	db.LeastReady = 200
	cutTo(t, db)
	steps := 0
	for i := 0; db.state.Load().cut > 0; i++ {
		s := db
		s.StepBytes, s.LeastTables = 4<<10, []int{1, 1 << 30}[i%2]
		oneStep(t, db, lastLevel)
		if steps++; steps > 1000 {
			t.Fatal("no end")
		}
		for _, p := range []float32{1, 1e6} {
			db.put(t, urls[(i*7919)%len(urls)], func(d *crawldb.Datum) *crawldb.Datum {
				is := *d
				is.Priority = p
				return &is
			})
			if err := db.checkError(t); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
		}
		if i%5 == 4 {
			db.sync(t)
			db.crash(t)
			if err := db.checkError(t); err != nil {
				t.Fatalf("after a crash behind step %d: %v", i, err)
			}
		}
	}
	if n := db.size(t, codec.ReadyTable); steps < 10 || n != len(urls) {
		t.Errorf("%d steps, %d entries", steps, n)
	}
}

// Tours that read again and again what was cut add it; a large update, which
// gains from what is cut, begins the count anew.
func TestLevelsAreAddedWhenReadOften(t *testing.T) {
	db := cutStore(t, 2000, 300)
	s := db
	if limited(t, db, 1, 1, nil); s.readBelowCut.Load() == 0 {
		t.Fatal("nothing was read")
	}
	s.readBelowCut.Store(maxReadBelowCut)
	depth := s.state.Load().lastReady()
	if err := db.TryCut(t.Context()); err != nil {
		t.Fatal(err)
	}
	if limited(t, db, 1, 1, nil); s.state.Load().lastReady() != depth {
		t.Error("added behind a large update")
	}
	s.readBelowCut.Store(maxReadBelowCut)
	limited(t, db, 1, 1, nil)
	if limited(t, db, 1, 1, nil); s.state.Load().lastReady() == depth {
		t.Error("not added")
	}
}

// What an update changes below the last level is not written to the index at all.
func TestUpdateBelowCutWritesNothing(t *testing.T) {
	for cut, want := range map[uint16]bool{0: true, lastLevel - levelOf(1): false} {
		s := newStore(t)
		s.state.Store(&state{mark: markAfter(5), complete: true, cut: cut})
		u := s.Update()
		from, to := RecordOf(&crawldb.Datum{FetchTime: time.UnixMilli(1), Priority: .5}), RecordOf(&crawldb.Datum{FetchTime: time.UnixMilli(1), Priority: .25})
		var c changeset.Changes
		if err := errors.Join(u.Change(&c, []byte("com,example)http:/"), &from, &to), u.End(&c)); err != nil {
			t.Fatal(err)
		}
		entries, tallies := 0, 0
		for _, table := range c.Tables(1) {
			for key := range table {
				switch codec.Table(key[0]) {
				case codec.ReadyTable:
					entries++
				case codec.TallyTable:
					tallies++
				}
			}
		}
		if tallies != 1 || entries > 0 != want {
			t.Errorf("%d levels cut: %d tallies and %d entries are written", cut, tallies, entries)
		}
	}
}

// A selection that is under way when a whole index is cut misses nothing.
func TestCutDuringSelection(t *testing.T) {
	for _, from := range []int{1, math.MaxInt} {
		db, urls := tourStore(t, 3000)
		want := len(limited(t, db, math.MaxInt, math.MaxInt, nil))
		db.LeastReady = 300
		got, n := map[string]bool{}, 0
		for _, c := range limited(t, db, from, math.MaxInt, func() {
			if n++; n == 100 {
				cutTo(t, db)
			}
		}) {
			got[c.URL] = true
		}
		if len(got) != want || want == len(urls) {
			t.Errorf("a tour from %d on: %d of %d", from, len(got), want)
		}
	}
}

// A selection that is under way when levels are added, and then cut again, misses nothing.
func TestLevelsAddedAndCutDuringSelection(t *testing.T) {
	for _, from := range []int{1, math.MaxInt} {
		db := cutStore(t, 3000, 300)
		want := map[string]bool{}
		for _, c := range limited(t, db, math.MaxInt, math.MaxInt, nil) {
			want[c.URL] = true
		}
		forget(db)
		n := 0
		got := limited(t, db, from, math.MaxInt, func() {
			switch n++; n {
			case 100:
				if err := db.addLevels(t.Context(), lastLevel); err != nil {
					t.Fatal(err)
				}
				forget(db)
			case 1500:
				cutTo(t, db)
			}
		})
		for _, c := range got {
			delete(want, c.URL)
		}
		if len(want) > 0 {
			t.Errorf("a tour from %d on: %d of %d were missed", from, len(want), len(got))
		}
	}
}

// A store that is open for reading only yields what was cut without adding levels.
func TestCutAndReadOnly(t *testing.T) {
	s := newStore(t)
	urls := s.putDue(t, 2000, func(int) time.Time { return epoch.Add(-time.Hour) })
	s.LeastReady = 200
	cutTo(t, s)
	s.readOnly = true
	s.reopen(t)
	s.HeldBelowCut = 10
	if got := limited(t, s, math.MaxInt, math.MaxInt, nil); len(got) != len(urls) {
		t.Errorf("%d of %d", len(got), len(urls))
	}
	if n := len(s.due(t, crawldb.DueQuery{Now: epoch})); n != len(urls) {
		t.Errorf("%d of %d without a limit", n, len(urls))
	}
}

// The check of a cut index finds what should not be there, and what should.
func TestCheckOfCutIndex(t *testing.T) {
	for name, spoil := range map[string]func(*testStore, *state) error{
		"an entry of a level that is cut": func(db *testStore, s *state) error {
			e := entry{dueFrom: epoch.UnixMilli(), priority: 1e-9}
			return db.db.Set(e.appendReadyKey(nil, []byte("example,h1)http:/1")), e.appendHead(nil), pebble.NoSync)
		},
		"no entry": func(db *testStore, s *state) error {
			it, err := db.db.NewIter(&pebble.IterOptions{LowerBound: []byte{byte(codec.ReadyTable)}, UpperBound: belowKey(s.lastReady())})
			if err != nil {
				return err
			}
			it.First()
			key := bytes.Clone(it.Key())
			return errors.Join(it.Close(), db.db.Delete(key, pebble.NoSync))
		},
		"a tally of a level that is cut": func(db *testStore, s *state) error {
			return db.db.Merge(codec.TallyTable.Key("example,h1)"), codec.Tally{{Level: s.lastReady() + 1, N: 1}}.Append(nil), pebble.NoSync)
		},
		"a state that says less": func(db *testStore, s *state) error {
			is := *s
			is.cut = lastLevel // all but the first
			return db.db.Set(stateKey, is.append(nil), pebble.NoSync)
		},
	} {
		db := cutStore(t, 2000, 300)
		if err := spoil(db, db.state.Load()); err != nil {
			t.Fatal(err)
		}
		if err := db.checkError(t); !errors.Is(err, errTestDamage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// When what was kept has been visited, a part of what is left is added; and if most of that
// is visited before it is complete, too, the index is cut again.
func TestSomeLevelsAreAdded(t *testing.T) {
	db := newStore(t)
	s := db
	urls := db.putDue(t, 3000, func(int) time.Time { return epoch.Add(-time.Hour) })
	s.LeastReady = 100
	cutTo(t, db)
	// visit makes records wait, of a priority from lo to hi.
	visit := func(lo, hi float32) {
		err := db.tryUpdate(t.Context(), crawldb.Batch{URLs: urls, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
			if old.Priority < lo || old.Priority >= hi {
				return old, nil
			}
			is := *old
			is.FetchTime = epoch.AddDate(1, 0, 0)
			return &is, nil
		}})
		if err == nil {
			err = db.checkError(t)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	visit(1800, math.MaxFloat32)
	if n := db.size(t, codec.ReadyTable); n != 0 {
		t.Fatalf("%d entries are left", n)
	}
	depth := s.state.Load().lastReady()
	if err := s.addLevels(t.Context(), depth+1); err != nil {
		t.Fatal(err)
	}
	if n := db.size(t, codec.ReadyTable); n < 1800/cutShare || n > 1800*2/3 {
		t.Errorf("%d of 1800 entries were added", n)
	}
	if err := db.checkError(t); err != nil {
		t.Fatal(err)
	}
	// One step of the next part.
	s.StepBytes = 8 << 10
	oneStep(t, db, s.state.Load().lastReady()+1)
	state := *s.state.Load()
	if state.goal == 0 || len(state.filled) == 0 {
		t.Fatalf("%+v", state)
	}
	visit(-1, 1100)
	visit(1700, math.MaxFloat32)
	forget(db)
	cutTo(t, db)
	if is := s.state.Load(); is.goal != 0 || is.filled != nil || is.cut <= state.cut {
		t.Errorf("%+v, then %+v", state, is)
	}
	if got := limited(t, db, 1, math.MaxInt, nil); len(got) != 600 {
		t.Errorf("%d candidates", len(got))
	}
}
