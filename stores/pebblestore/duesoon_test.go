package pebblestore

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

// soonStore has n fetched pages, of which each tenth is due soon, page i after i minutes.
func soonStore(t *testing.T, n int) (db *DB, urls []string) {
	t.Helper()
	db, err := Open(t.TempDir(), small())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db, fillSoon(t, db, n)
}

// fillSoon is soonStore for a store that is open.
func fillSoon(t *testing.T, db *DB, n int) (urls []string) {
	t.Helper()
	b := crawldb.Batch{Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
		d := fetchedPage(i)
		return &d, nil
	}}
	for i := range n {
		b.URLs = append(b.URLs, fmt.Sprintf("http://h%03d.example/%05d", i/100, i))
	}
	put(t, db, "http://a.example/", func(*crawldb.Datum) *crawldb.Datum {
		return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: dueEpoch.Add(-time.Hour)} // where the wheel begins
	})
	if err := db.Crawl().Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return b.URLs
}

func fetchedPage(i int) crawldb.Datum {
	d := crawldb.Datum{Status: crawldb.Fetched, LastFetch: dueEpoch.AddDate(0, -1, 0), FetchTime: dueEpoch.Add(time.Duration(i) * time.Minute), Interval: 30 * 24 * time.Hour,
		Score: float32(i), Priority: float32(i), Signature: bytes.Repeat([]byte{byte(i)}, 16), ETag: fmt.Sprintf(`"the tag of entity %06d"`, i)}
	if i%10 > 0 {
		d.FetchTime = d.FetchTime.AddDate(0, 2, 0)
	}
	return d
}

// wholeEntries returns how many entries of the wheel and of the ready table have long rests.
func wholeEntries(t *testing.T, db *DB) (wheel, ready int) {
	t.Helper()
	for _, of := range [...]codec.Table{codec.WheelTable, codec.ReadyTable} {
		err := db.crawl.rows(t.Context(), db.db, of, func(key, value []byte) error {
			var e entry
			if err := e.decode(value); err != nil || len(e.rest) <= restMost {
				return err
			}
			if of == codec.WheelTable {
				wheel++
			} else {
				ready++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return wheel, ready
}

// visitOthers changes each page but the first of ten, in one UpdateAll, as an update does
// that passes through nearly all blocks.
func visitOthers(t *testing.T, db *DB, urls []string, next func(i int, old *crawldb.Datum) *crawldb.Datum) {
	t.Helper()
	var b crawldb.Batch
	for i, u := range urls {
		if i%10 > 0 {
			b.URLs = append(b.URLs, u)
		}
	}
	b.Next = func(i int, old *crawldb.Datum) (*crawldb.Datum, error) { return next(i, old), nil }
	updateAll(t, db, b)
	if err := db.CheckIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func updateAll(t *testing.T, db *DB, b crawldb.Batch) {
	t.Helper()
	if err := crawldb.UpdateAll(t.Context(), db.Crawl(), func(yield func(crawldb.Batch, error) bool) { yield(b, nil) }); err != nil {
		t.Fatal(err)
	}
}

func later(_ int, old *crawldb.Datum) *crawldb.Datum {
	d := *old
	d.FetchTime = d.FetchTime.AddDate(0, 1, 0)
	return &d
}

// A page that is due soon is leased without its record being read.
func TestWhatIsDueSoonIsBrought(t *testing.T) {
	const n = 3000 // two days
	db, urls := soonStore(t, n)
	if wheel, ready := wholeEntries(t, db); wheel != 0 || ready != 0 {
		t.Fatalf("%d and %d entries have all of a record before anything is brought", wheel, ready)
	}
	visitOthers(t, db, urls, later)
	// Of those that were passed, which the first was not, what is due within the day behind the mark.
	inDay := 0
	for i := 10; i < n; i += 10 {
		if hours := int64(bucket(fetchedPage(i).FetchTime.UnixMilli())) - int64(bucket(dueEpoch.Add(-time.Hour).UnixMilli())+1); hours < soonHours {
			inDay++
		}
	}
	wheel, ready := wholeEntries(t, db)
	if wheel != inDay || ready != 0 {
		t.Fatalf("%d entries of the wheel and %d that are ready have all of a record, want %d", wheel, ready, inDay)
	}
	// They move as they are.
	told := 0
	for c, err := range db.crawl.Due(t.Context(), crawldb.DueQuery{Now: dueEpoch.AddDate(0, 0, 3)}) {
		if err != nil {
			t.Fatal(err)
		}
		want, err := db.Crawl().Get(t.Context(), c.URL)
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := db.crawl.told(c.Token, c.URL); ok {
			if told++; !bytes.Equal(encoded(t, d), encoded(t, want)) {
				t.Errorf("told %+v, stored %+v", d, want)
			}
		}
	}
	if told != inDay+1 {
		t.Errorf("%d pages are told, want %d and one that was never fetched", told, inDay)
	}
	if wheel, ready := wholeEntries(t, db); wheel != 0 || ready != inDay {
		t.Errorf("%d entries of the wheel and %d that are ready have all of a record", wheel, ready)
	}
	if err := db.CheckIndex(t.Context()); err != nil {
		t.Error(err)
	}
}

// What is brought is what an update passes near, and no more than it is worth.
func TestNotBrought(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(db *DB)
		change  func(b *crawldb.Batch)
		update  func(t *testing.T, db *DB, b crawldb.Batch)
		most    int
	}{
		"as many as may be": {most: soonHours * 6},
		"an eighth":         {change: func(b *crawldb.Batch) { b.URLs = append(b.URLs[:500:500], b.URLs[1499]) }, prepare: func(db *DB) { db.crawl.farKeys = 500 }, most: 501 / bringOne},
		"a small batch":     {change: func(b *crawldb.Batch) { b.URLs = b.URLs[:farKeys-1] }},
		"a selection":       {change: func(b *crawldb.Batch) { b.Tokens = make([]string, len(b.URLs)) }},
		"Update": {update: func(t *testing.T, db *DB, b crawldb.Batch) {
			if err := db.Crawl().Update(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}},
		"what lies far apart": {prepare: func(db *DB) { db.crawl.farBytes = 0 }},
		"an index that is being built": {prepare: func(db *DB) {
			state := *db.crawl.due.state.Load()
			state.whole, state.built = false, []byte("example,h005)")
			db.crawl.due.state.Store(&state)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			db, urls := soonStore(t, 3000)
			if err := db.Compact(t.Context()); err != nil { // so that there are tables to be far apart in
				t.Fatal(err)
			}
			if test.prepare != nil {
				test.prepare(db)
			}
			b := crawldb.Batch{Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) { return old, nil }}
			for i := 1; i < len(urls); i += 2 {
				b.URLs = append(b.URLs, urls[i])
			}
			if test.change != nil {
				test.change(&b)
			}
			if test.update == nil {
				test.update = updateAll
			}
			test.update(t, db, b)
			wheel, _ := wholeEntries(t, db)
			if wheel > test.most || wheel < test.most/2 {
				t.Errorf("%d entries have all of their records, want %d", wheel, test.most)
			}
		})
	}
}

// An entry that has all of a record follows it.
func TestWhatWasBroughtFollowsItsRecord(t *testing.T) {
	changes := map[string]func(d *crawldb.Datum) *crawldb.Datum{
		"the signature":    func(d *crawldb.Datum) *crawldb.Datum { d.Signature = []byte("0123456789abcdef"); return d },
		"the ETag":         func(d *crawldb.Datum) *crawldb.Datum { d.ETag = `"another"`; return d },
		"the score":        func(d *crawldb.Datum) *crawldb.Datum { d.Score++; d.Priority++; return d },
		"the time":         func(d *crawldb.Datum) *crawldb.Datum { d.FetchTime = d.FetchTime.AddDate(0, 2, 0); return d },
		"what is too long": func(d *crawldb.Datum) *crawldb.Datum { d.ETag = strings.Repeat("e", wholeMost); return d },
		"what is short":    func(d *crawldb.Datum) *crawldb.Datum { d.Signature, d.ETag = nil, ""; return d },
		"a lease":          func(d *crawldb.Datum) *crawldb.Datum { d.LeasedBy, d.LeasedUntil = "s", dueEpoch; return d },
		"nothing":          func(d *crawldb.Datum) *crawldb.Datum { return d },
		"all of it":        func(*crawldb.Datum) *crawldb.Datum { return nil },
	}
	for name, change := range changes {
		for _, matured := range []bool{false, true} {
			db, urls := soonStore(t, 2000)
			visitOthers(t, db, urls, later)
			if before, _ := wholeEntries(t, db); before == 0 {
				t.Fatal("nothing was brought")
			}
			if matured {
				if err := db.crawl.prepare(t.Context(), dueEpoch.AddDate(0, 0, 2).UnixMilli()); err != nil {
					t.Fatal(err)
				}
			}
			b := crawldb.Batch{URLs: []string{urls[0], urls[100], urls[1990]}, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
				d := *old
				return change(&d), nil
			}}
			if err := db.Crawl().Update(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if err := db.CheckIndex(t.Context()); err != nil {
				t.Errorf("%s changes (matured: %t): %v", name, matured, err)
			}
		}
	}
}

// Damage of what was brought is found, and an index of before is one without.
func TestCheckWhatWasBrought(t *testing.T) {
	db, urls := soonStore(t, 2000)
	visitOthers(t, db, urls, later)
	if b, err := rows.Get(db.db, dueKey); err != nil || b[0] != longState {
		t.Fatalf("the state is % x: %v", b, err)
	}
	s := &db.crawl
	d, err := db.Crawl().Get(t.Context(), urls[100])
	if err != nil {
		t.Fatal(err)
	}
	write := func(of crawldb.Datum) {
		t.Helper()
		e := entryOf(&of)
		e.whole = true
		if err := db.db.Set(e.appendKey(nil, s.due.state.Load().mark, []byte(crawldb.Key(of.URL))), e.appendValue(nil), pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	for name, of := range map[string]func(d *crawldb.Datum){
		"another signature": func(d *crawldb.Datum) { d.Signature = []byte("0123456789abcdef") },
		"another ETag":      func(d *crawldb.Datum) { d.ETag += "x" },
		"no record":         func(d *crawldb.Datum) { d.URL = "http://none.example/" },
	} {
		bad := d
		of(&bad)
		write(bad)
		if err := db.CheckIndex(t.Context()); err == nil || !strings.Contains(err.Error(), bad.URL) {
			t.Errorf("%s: %v", name, err)
		}
		if bad.URL != d.URL {
			e := entryOf(&bad)
			if err := db.db.Delete(e.appendKey(nil, s.due.state.Load().mark, []byte(crawldb.Key(bad.URL))), pebble.NoSync); err != nil {
				t.Fatal(err)
			}
		}
		write(d)
		if err := db.CheckIndex(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// A state that says that there are no long rests.
	state := *s.due.state.Load()
	state.long = false
	if err := s.commitState(t.Context(), &state); err != nil {
		t.Fatal(err)
	}
	if err := db.CheckIndex(t.Context()); err == nil {
		t.Error("a long rest that there may not be is none")
	}
}

// Damage of what an update would bring does not fail the update.
func TestBringPassesDamage(t *testing.T) {
	for name, key := range map[string]func(db *DB, url string) []byte{
		"a record": func(_ *DB, url string) []byte { return codec.CrawlTable.Key(crawldb.Key(url)) },
		"an entry": func(db *DB, url string) []byte {
			e := entry{from: fetchedPage(100).FetchTime.UnixMilli()}
			return e.appendKey(nil, db.crawl.due.state.Load().mark, []byte(crawldb.Key(url)))
		},
	} {
		db, urls := soonStore(t, 2000)
		if err := db.db.Set(key(db, urls[100]), []byte{255}, pebble.NoSync); err != nil {
			t.Fatal(err)
		}
		b := crawldb.Batch{Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) { return later(i, old), nil }}
		for i, u := range urls {
			if i%10 > 0 {
				b.URLs = append(b.URLs, u)
			}
		}
		if err := crawldb.UpdateAll(t.Context(), db.Crawl(), func(yield func(crawldb.Batch, error) bool) { yield(b, nil) }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := db.CheckIndex(t.Context()); err == nil {
			t.Errorf("%s: nobody says so", name)
		}
	}
}

// commitState writes a state as nobody does.
func (s *crawlStore) commitState(ctx context.Context, state *dueState) error {
	b := s.db.db.NewBatch()
	defer b.Close()
	return s.commitDue(ctx, b, state)
}
