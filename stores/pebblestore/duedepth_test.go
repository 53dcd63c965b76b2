package pebblestore

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// trimmed is a tour store of which so many entries are kept.
func trimmed(t *testing.T, n int, keep int64) *DB {
	t.Helper()
	db, _ := tourStore(t, n)
	db.crawl.due.least = keep
	trimTo(t, db)
	return db
}

// trimTo trims the index of a store, and fails if that does nothing.
func trimTo(t *testing.T, db *DB) {
	t.Helper()
	if err := db.crawl.prepare(t.Context(), dueEpoch.UnixMilli()); err != nil {
		t.Fatal(err)
	}
	was := tableSize(t, db, codec.ReadyTable)
	if err := db.crawl.tryTrim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if is := tableSize(t, db, codec.ReadyTable); is == 0 || 2*is > was {
		t.Fatalf("%d of %d entries are kept", is, was)
	}
	if err := db.CheckIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// forget makes a store forget what selections have asked for.
func forget(db *DB) {
	state := *db.crawl.due.state.Load()
	state.least = 0
	db.crawl.due.state.Store(&state)
}

// oneStep completes an index by one step.
func oneStep(t *testing.T, db *DB, level uint16) {
	t.Helper()
	s := &db.crawl
	if err := s.db.take(t.Context(), &s.view, s.turn); err != nil {
		t.Fatal(err)
	}
	err := s.deepenStep(t.Context(), level)
	s.db.give(s.turn)
	if err != nil {
		t.Fatal(err)
	}
}

// A trimmed index shows what a whole one shows, in the same order, whether it is completed
// on the way or not.
func TestTrimmedShowsWhatIsThere(t *testing.T) {
	db, _ := tourStore(t, 6000)
	mosts := []int{1, 2, 7, 50, math.MaxInt}
	var want [][]crawldb.Candidate
	for _, most := range mosts {
		want = append(want, withoutTokens(limited(t, db, math.MaxInt, most, nil)))
	}
	db.crawl.due.least = 1000
	for _, test := range []struct {
		tails, side int
	}{{math.MaxInt, math.MaxInt}, {math.MaxInt, 3}, {100, 20}, {0, math.MaxInt}} {
		db.crawl.due.tails, db.crawl.due.side = test.tails, test.side
		for i, most := range mosts {
			for _, from := range []int{1, 100, math.MaxInt} {
				// As if no selection had asked for more.
				forget(db)
				trimTo(t, db)
				if got := withoutTokens(limited(t, db, from, most, nil)); !slices.Equal(got, want[i]) {
					t.Errorf("%+v, limit %d, a tour from %d on: %d candidates, want %d", test, most, from, len(got), len(want[i]))
				}
				out := db.crawl.due.state.Load().out
				if test.tails == math.MaxInt && out == 0 || test.tails == 0 && most == math.MaxInt && out > 0 {
					t.Errorf("%+v, limit %d: %d levels are left out", test, most, out)
				}
				if err := db.CheckIndex(t.Context()); err != nil {
					t.Error(err)
				}
				// The next trim must have something to do.
				if err := db.crawl.deepen(t.Context(), lastLevel); err != nil {
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

// An update of a trimmed index writes nothing for what lies below, and the best come up.
func TestUpdateOfTrimmed(t *testing.T) {
	db := trimmed(t, 3000, 500)
	all := limited(t, db, math.MaxInt, math.MaxInt, nil)
	db = trimmed(t, 3000, 500)
	last := all[len(all)-1].URL
	kept := tableSize(t, db, codec.ReadyTable)
	for _, p := range []float32{1e-3, 1e3, 1e-3} {
		put(t, db, last, func(d *crawldb.Datum) *crawldb.Datum {
			is := *d
			is.Priority = p
			return &is
		})
		want := kept
		if p > 1 {
			want++
		}
		if n := tableSize(t, db, codec.ReadyTable); n != want {
			t.Errorf("priority %v: %d entries, want %d", p, n, want)
		}
		if err := db.CheckIndex(t.Context()); err != nil {
			t.Error(err)
		}
		if p > 1 {
			for c, err := range db.crawl.Due(t.Context(), crawldb.DueQuery{Now: dueEpoch, Limit: 1}) {
				if err != nil || c.URL != last {
					t.Errorf("%q, %v", c.URL, err)
				}
			}
		}
	}
}

// Behind an UpdateAll of several steps, and behind what becomes due in several, the index
// is trimmed; not again while a selection has asked for most of it.
func TestWhenTrimmed(t *testing.T) {
	db := leaseStore(t)
	s := &db.crawl
	const each = 1000
	s.due.least, s.bulkLeast = 100, 1
	puts := func(n, from int) {
		step := s.bulkStep
		s.bulkStep = 1 // each batch is a step
		defer func() { s.bulkStep = step }()
		err := s.UpdateAll(t.Context(), func(yield func(crawldb.Batch, error) bool) {
			for i := range n {
				b := crawldb.Batch{Next: func(k int, _ *crawldb.Datum) (*crawldb.Datum, error) {
					return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: dueEpoch, Priority: float32(k + 1)}, nil
				}}
				for k := range each {
					b.URLs = append(b.URLs, fmt.Sprintf("http://h%03d.example/%03d", from+i, k))
				}
				if !yield(b, nil) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	out := func() uint16 { return s.due.state.Load().out }
	later := dueEpoch.AddDate(0, 0, 1).UnixMilli()
	put(t, db, "http://a.example/", func(*crawldb.Datum) *crawldb.Datum {
		return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: dueEpoch.AddDate(0, 0, -2)} // where the wheel begins
	})
	puts(tidySteps, 0)
	if out() != 0 {
		t.Fatal("trimmed before anything was due")
	}
	s.due.most = each
	if err := s.prepare(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	if out() == 0 {
		t.Fatal("not trimmed behind what became due")
	}
	if err := s.deepen(t.Context(), lastLevel); err != nil {
		t.Fatal(err)
	}
	if n := tableSize(t, db, codec.ReadyTable); out() != 0 || n != each*tidySteps+1 {
		t.Fatalf("%d levels left out, %d entries", out(), n)
	}
	puts(tidySteps, 100)
	if out() != 0 {
		t.Fatal("trimmed though a selection has asked for all")
	}
	puts(tidySteps-1, 200)
	if out() != 0 {
		t.Fatal("trimmed behind a few steps")
	}
	puts(3*tidySteps, 300)
	if out() == 0 {
		t.Fatal("not trimmed when there was much more than a selection had asked for")
	}
	if err := db.CheckIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Levels of which one has most are not trimmed: that would keep too much, or too little.
func TestNotTrimmed(t *testing.T) {
	db := leaseStore(t)
	s := &db.crawl
	s.due.least = 10
	putDue(t, db, 1000, func(int) time.Time { return dueEpoch.Add(-time.Hour) })
	b := crawldb.Batch{Next: func(_ int, d *crawldb.Datum) (*crawldb.Datum, error) {
		is := *d
		is.Priority = 1
		return &is, nil
	}}
	for i := range 1000 {
		b.URLs = append(b.URLs, fmt.Sprintf("http://h%03d.example/%06d", i/100, i))
	}
	if err := db.Crawl().Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := s.prepare(t.Context(), dueEpoch.UnixMilli()); err != nil {
		t.Fatal(err)
	}
	if err := s.tryTrim(t.Context()); err != nil || s.due.state.Load().out != 0 {
		t.Errorf("%d levels left out, %v", s.due.state.Load().out, err)
	}
}

// Completing the index goes on where it was interrupted, also after a crash, and what is
// changed meanwhile is in it or not as the record says.
func TestDeepenInSteps(t *testing.T) {
	rg := newRig(t)
	h, err := rg.open()
	if err != nil {
		t.Fatal(err)
	}
	urls := putDue(t, h.DB, 2000, func(int) time.Time { return dueEpoch.Add(-time.Hour) })
	h.crawl.due.least = 200
	trimTo(t, h.DB)
	steps := 0
	for i := 0; h.crawl.due.state.Load().out > 0; i++ {
		s := &h.crawl
		s.bulkStep, s.bulkLeast = 4<<10, []int{1, 1 << 30}[i%2]
		oneStep(t, h.DB, lastLevel)
		if steps++; steps > 1000 {
			t.Fatal("no end")
		}
		for _, p := range []float32{1, 1e6} {
			put(t, h.DB, urls[(i*7919)%len(urls)], func(d *crawldb.Datum) *crawldb.Datum {
				is := *d
				is.Priority = p
				return &is
			})
			if err := h.CheckIndex(t.Context()); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
		}
		if i%5 == 4 {
			if err := h.Crawl().Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			if h, err = h.crash(); err != nil {
				t.Fatal(err)
			}
			if err := h.CheckIndex(t.Context()); err != nil {
				t.Fatalf("after a crash behind step %d: %v", i, err)
			}
		}
	}
	if n := tableSize(t, h.DB, codec.ReadyTable); steps < 10 || n != len(urls) {
		t.Errorf("%d steps, %d entries", steps, n)
	}
	if err := h.DB.Close(); err != nil {
		t.Error(err)
	}
}

// Tours that read again and again what lies below complete the index; an UpdateAll, which
// gains from what is left out, begins the count anew.
func TestDeepenWhenReadOften(t *testing.T) {
	db := trimmed(t, 2000, 300)
	s := &db.crawl
	if limited(t, db, 1, 1, nil); s.due.tailed.Load() == 0 {
		t.Fatal("nothing was read")
	}
	s.due.tailed.Store(readTails)
	depth := s.due.state.Load().depth()
	if err := s.tryTrim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if limited(t, db, 1, 1, nil); s.due.state.Load().depth() != depth {
		t.Error("completed behind an UpdateAll")
	}
	s.due.tailed.Store(readTails)
	limited(t, db, 1, 1, nil)
	if limited(t, db, 1, 1, nil); s.due.state.Load().depth() == depth {
		t.Error("not completed")
	}
}

// What an update changes below the last level is not written to the index at all.
func TestUpdateBelowWritesNothing(t *testing.T) {
	for out, want := range map[uint16]bool{0: true, lastLevel - level(1): false} {
		var st step
		m := mover{state: &dueState{mark: markOf(5), whole: true, out: out}}
		from, to := entry{from: 1, priority: .5}, entry{from: 1, priority: .25}
		if err := errors.Join(m.move(&st, []byte("com,example)http:/"), &from, &to, dueEpoch), m.end(&st)); err != nil {
			t.Fatal(err)
		}
		if len(st.few) != 1 { // the tally
			t.Errorf("%d tallies", len(st.few))
		}
		if is := len(st.entries) > 0; is != want {
			t.Errorf("%d levels left out: entries are written: %t", out, is)
		}
	}
}

// A selection that is under way when a whole index is trimmed misses nothing.
func TestTrimmedUnderWay(t *testing.T) {
	for _, from := range []int{1, math.MaxInt} {
		db, urls := tourStore(t, 3000)
		want := len(limited(t, db, math.MaxInt, math.MaxInt, nil))
		db.crawl.due.least = 300
		got, n := map[string]bool{}, 0
		for _, c := range limited(t, db, from, math.MaxInt, func() {
			if n++; n == 100 {
				trimTo(t, db)
			}
		}) {
			got[c.URL] = true
		}
		if len(got) != want || want == len(urls) {
			t.Errorf("a tour from %d on: %d of %d", from, len(got), want)
		}
	}
}

// A selection that is under way when the index is completed, and then trimmed, misses nothing.
func TestTrimmedMeanwhile(t *testing.T) {
	for _, from := range []int{1, math.MaxInt} {
		db := trimmed(t, 3000, 300)
		want := map[string]bool{}
		for _, c := range limited(t, db, math.MaxInt, math.MaxInt, nil) {
			want[c.URL] = true
		}
		forget(db)
		n := 0
		got := limited(t, db, from, math.MaxInt, func() {
			switch n++; n {
			case 100:
				if err := db.crawl.deepen(t.Context(), lastLevel); err != nil {
					t.Fatal(err)
				}
				forget(db)
			case 1500:
				trimTo(t, db)
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

// A store that is open for reading only shows what lies below without completing the index.
func TestTrimmedAndReadOnly(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, small())
	if err != nil {
		t.Fatal(err)
	}
	urls := putDue(t, db, 2000, func(int) time.Time { return dueEpoch.Add(-time.Hour) })
	db.crawl.due.least = 200
	trimTo(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	o := small()
	o.ReadOnly = true
	if db, err = Open(dir, o); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.crawl.due.tails = 10
	if got := limited(t, db, math.MaxInt, math.MaxInt, nil); len(got) != len(urls) {
		t.Errorf("%d of %d", len(got), len(urls))
	}
	if n := countDue(t, db, crawldb.DueQuery{Now: dueEpoch}); n != len(urls) {
		t.Errorf("%d of %d without a limit", n, len(urls))
	}
}

// The check of a trimmed index finds what should not be there, and what should.
func TestCheckIndexOfTrimmed(t *testing.T) {
	for name, spoil := range map[string]func(*DB, *dueState) error{
		"an entry that is left out": func(db *DB, s *dueState) error {
			e := entry{from: dueEpoch.UnixMilli(), priority: 1e-9}
			return db.db.Set(e.appendReady(nil, []byte("example,h1)http:/1")), e.appendValue(nil), pebble.NoSync)
		},
		"no entry": func(db *DB, s *dueState) error {
			it, err := db.db.NewIter(&pebble.IterOptions{LowerBound: []byte{byte(codec.ReadyTable)}, UpperBound: belowKey(s.depth())})
			if err != nil {
				return err
			}
			it.First()
			key := bytes.Clone(it.Key())
			return errors.Join(it.Close(), db.db.Delete(key, pebble.NoSync))
		},
		"a tally of what is left out": func(db *DB, s *dueState) error {
			return db.db.Merge(codec.TallyTable.Key("example,h1)"), tally{{s.depth() + 1, 1}}.append(nil), pebble.NoSync)
		},
		"a state that says less": func(db *DB, s *dueState) error {
			is := *s
			is.out = lastLevel // all but the first
			return db.db.Set(dueKey, is.append(nil), pebble.NoSync)
		},
	} {
		db := trimmed(t, 2000, 300)
		if err := spoil(db, db.crawl.due.state.Load()); err != nil {
			t.Fatal(err)
		}
		if err := db.CheckIndex(t.Context()); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is stored of a trimmed index is what it was, and what is no state is an error.
func TestTrimmedState(t *testing.T) {
	for _, test := range []struct {
		s    dueState
		want string
	}{
		{dueState{mark: markOf(5), whole: true}, "05 01 04 00000006"},
		{dueState{mark: markOf(5), whole: true, out: 0x0123, least: 300}, "06 01 04 00000006 0123 0000 ac02"},
		{dueState{mark: markOf(5), whole: true, out: 0x0123, goal: lastLevel, filled: []byte("a"), least: 1}, "06 01 04 00000006 0123 1000 01 61"},
		{dueState{mark: markOf(5), whole: true, least: 1}, "06 01 04 00000006 0000 0000 01"},
		{dueState{mark: markOf(5), whole: true, long: true}, "07 01 04 00000006 0000 0000 00"},
		{dueState{mark: markOf(5), whole: true, long: true, out: 0x0123, goal: lastLevel, filled: []byte("a"), least: 1}, "07 01 04 00000006 0123 1000 01 61"},
		{dueState{mark: markOf(5), whole: true, stale: true}, "08 01 04 00000006 0000 0000 00"},
		{dueState{mark: markOf(5), whole: true, long: true, stale: true, out: 0x0123, least: 300}, "08 03 04 00000006 0123 0000 ac02"},
	} {
		b := test.s.append(nil)
		if got := fmt.Sprintf("%x", b); got != strings.ReplaceAll(test.want, " ", "") {
			t.Errorf("%+v: %s, want %s", test.s, got, test.want)
		}
		s, ok, err := parseState(b)
		if err != nil || !ok || s.out != test.s.out || s.goal != test.s.goal || s.least != test.s.least || s.long != test.s.long || s.stale != test.s.stale || !bytes.Equal(s.filled, test.s.filled) || !s.whole {
			t.Errorf("%+v: %+v, %v, %v", test.s, s, ok, err)
		}
	}
	for _, bad := range []string{
		"06 01 04 00000006",                                // no more
		"07 03 04 00000006 0123 0000 01",                   // a flag of a later version
		"08 04 04 00000006 0123 0000 01",                   // a flag that is none
		"08 02 04 00000006 0123 0000 01",                   // stale before it was whole
		"06 00 04 00000006 0123 0000 01",                   // trimmed before it was whole
		"06 01 04 00000006 1001 0000 01",                   // more levels than there are
		"06 01 04 00000006 0123 1001 01",                   // a goal that is none
		"06 01 04 00000006 0123 0100 01",                   // a goal that is reached
		"06 01 04 00000006 0123 0000 01 61",                // filled for no goal
		"06 01 04 00000006 0123 0000 ff",                   // half a number
		"06 01 04 00000006 0123 0000 ffffffffffffffffff01", // too many
	} {
		b, err := hex.DecodeString(strings.ReplaceAll(bad, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if s, ok, err := parseState(b); err == nil {
			t.Errorf("%s: %+v, %v", bad, s, ok)
		}
	}
}

// When what was kept has been visited, a part of what is left is added; and if most of that
// is visited before it is complete, too, the index is trimmed again.
func TestDeepenAPart(t *testing.T) {
	db := leaseStore(t)
	s := &db.crawl
	urls := putDue(t, db, 3000, func(int) time.Time { return dueEpoch.Add(-time.Hour) })
	s.due.least = 100
	trimTo(t, db)
	// visit makes records wait, of a priority from lo to hi.
	visit := func(lo, hi float32) {
		err := db.Crawl().Update(t.Context(), crawldb.Batch{URLs: urls, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
			if old.Priority < lo || old.Priority >= hi {
				return old, nil
			}
			is := *old
			is.FetchTime = dueEpoch.AddDate(1, 0, 0)
			return &is, nil
		}})
		if err == nil {
			err = db.CheckIndex(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	visit(1800, math.MaxFloat32)
	if n := tableSize(t, db, codec.ReadyTable); n != 0 {
		t.Fatalf("%d entries are left", n)
	}
	depth := s.due.state.Load().depth()
	if err := s.deepen(t.Context(), depth+1); err != nil {
		t.Fatal(err)
	}
	if n := tableSize(t, db, codec.ReadyTable); n < 1800/trimShare || n > 1800*2/3 {
		t.Errorf("%d of 1800 entries were added", n)
	}
	if err := db.CheckIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	// One step of the next part.
	s.bulkStep = 8 << 10
	oneStep(t, db, s.due.state.Load().depth()+1)
	state := *s.due.state.Load()
	if state.goal == 0 || len(state.filled) == 0 {
		t.Fatalf("%+v", state)
	}
	visit(-1, 1100)
	visit(1700, math.MaxFloat32)
	forget(db)
	trimTo(t, db)
	if is := s.due.state.Load(); is.goal != 0 || is.filled != nil || is.out <= state.out {
		t.Errorf("%+v, then %+v", state, is)
	}
	if got := limited(t, db, 1, math.MaxInt, nil); len(got) != 600 {
		t.Errorf("%d candidates", len(got))
	}
}
