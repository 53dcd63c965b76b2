package pebblestore

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/sstables"
)

// doubled is what links to a page do to its record.
func doubled(_ int, old *crawldb.Datum) *crawldb.Datum {
	d := *old
	d.Score, d.Priority = 2*d.Score+1, 2*d.Priority+1
	return &d
}

// staleStore is a soonStore in which the priority of each page that is not due soon has
// changed since its entry was written.
func staleStore(t *testing.T, n int) (db *DB, urls []string) {
	t.Helper()
	db, urls = soonStore(t, n)
	before := wheelRows(t, db)
	visitOthers(t, db, urls, doubled)
	if !db.crawl.due.state.Load().stale {
		t.Fatal("the state does not say that there are old priorities")
	}
	changed := 0
	for key, value := range wheelRows(t, db) {
		if before[key] != value {
			changed++
		}
	}
	if whole, _ := wholeEntries(t, db); changed != whole {
		t.Fatalf("%d entries of the wheel were written, want the %d that were brought", changed, whole)
	}
	return db, urls
}

func wheelRows(t *testing.T, db *DB) map[string]string {
	t.Helper()
	rows := map[string]string{}
	err := db.crawl.rows(t.Context(), db.db, codec.WheelTable, func(key, value []byte) error {
		rows[string(key)] = string(value)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// sameAsScan compares what the index yields with a scan: the same candidates with the
// priorities of their records, best level first.
func sameAsScan(t *testing.T, db *DB, q crawldb.DueQuery) (n int) {
	t.Helper()
	all := func(byScan bool) (all []crawldb.Candidate) {
		seq := crawldb.Due(t.Context(), db.Crawl(), q)
		if byScan {
			seq = crawldb.DueByScan(t.Context(), db.Crawl(), q, nil)
		}
		for c, err := range seq {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, crawldb.Candidate{URL: c.URL, Priority: c.Priority})
		}
		return all
	}
	want, got := all(true), all(false)
	byLevel := func(a, b crawldb.Candidate) int { return cmp.Compare(level(a.Priority), level(b.Priority)) }
	if !slices.IsSortedFunc(got, byLevel) {
		t.Errorf("%+v: a better level comes later", q)
	}
	byURL := func(a, b crawldb.Candidate) int { return crawldb.Compare(a.URL, b.URL) }
	slices.SortFunc(want, byURL)
	slices.SortFunc(got, byURL)
	if !slices.Equal(got, want) {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		t.Errorf("%+v: the index yields %d candidates and a scan %d, then %+v and %+v", q, len(got), len(want), got[i:min(i+2, len(got))], want[i:min(i+2, len(want))])
	}
	return len(got)
}

// A priority that was not kept while it did not matter is that of the record once it does.
func TestOldPrioritiesAreNotYielded(t *testing.T) {
	const n = 3000
	for name, q := range map[string]crawldb.DueQuery{
		"once they are due":        {Now: dueEpoch.AddDate(0, 3, 0)},
		"when some are":            {Now: dueEpoch.AddDate(0, 2, 1)},
		"the next hours":           {Now: dueEpoch.AddDate(0, 2, 1), AheadOfClock: 20 * time.Hour},
		"months ahead":             {Now: dueEpoch.AddDate(0, 2, 1), AheadOfClock: 40 * 24 * time.Hour},
		"the better ones":          {Now: dueEpoch.AddDate(0, 2, 1), AheadOfClock: 40 * 24 * time.Hour, MinPriority: 2000},
		"the better ones of hours": {Now: dueEpoch.AddDate(0, 2, 1), AheadOfClock: 20 * time.Hour, MinPriority: 2000},
		"of some hosts":            {Now: dueEpoch.AddDate(0, 2, 1), AheadOfClock: 40 * 24 * time.Hour, WantHost: func(host string) bool { return host < "h015" }},
		"of some hosts, hours":     {Now: dueEpoch.AddDate(0, 2, 1), AheadOfClock: 20 * time.Hour, WantHost: func(host string) bool { return host < "h015" }},
		"what a clock cannot mean": {Now: dueEpoch.AddDate(0, 0, 1), DueBeyond: dueEpoch.AddDate(0, 1, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			db, urls := staleStore(t, n)
			if name == "the better ones" || name == "months ahead" {
				db.crawl.due.side = 100 // the list is read more than once
			}
			lease := crawldb.Batch{URLs: urls[1:20], Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
				d := *old
				d.LeasedBy, d.LeasedUntil = "s", dueEpoch.AddDate(1, 0, 0)
				return &d, nil
			}}
			if err := db.Crawl().Update(t.Context(), lease); err != nil {
				t.Fatal(err)
			}
			if got := sameAsScan(t, db, q); got < n/10 {
				t.Errorf("only %d candidates", got)
			}
			if err := db.CheckIndex(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// What has become due within a day and was not brought has all of its record from then on;
// what was due before has the priority alone.
func TestWhatBecomesDueIsCompleted(t *testing.T) {
	db, urls := staleStore(t, 3000)
	now := dueEpoch.AddDate(0, 2, 2)
	if err := db.crawl.prepare(t.Context(), now.UnixMilli()); err != nil {
		t.Fatal(err)
	}
	mark := int64(binary.BigEndian.Uint32(db.crawl.due.state.Load().mark))
	rows := map[string]entry{}
	err := db.crawl.rows(t.Context(), db.db, codec.ReadyTable, func(key, value []byte) error {
		e, err := db.crawl.readyEntry(key, value)
		e.rest = bytes.Clone(e.rest)
		rows[crawldb.URLOf(string(key[readyPrefix:]))] = e
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	day, old := 0, 0
	for i, u := range urls {
		d, err := db.Crawl().Get(t.Context(), u)
		if err != nil {
			t.Fatal(err)
		}
		if !d.FetchTime.Before(now) || i%10 == 0 {
			continue
		}
		e, within := rows[u], mark-int64(bucket(d.FetchTime.UnixMilli())) <= soonHours
		if e.priority != d.Priority || (len(e.rest) > restMost) != within {
			t.Fatalf("%s, due at %v: priority %v, not %v; a rest of %d bytes", u, d.FetchTime, e.priority, d.Priority, len(e.rest))
		}
		if within {
			day++
		} else {
			old++
		}
	}
	if day < 100 || old < 100 {
		t.Errorf("%d pages became due within a day and %d before", day, old)
	}
	if err := db.CheckIndex(t.Context()); err != nil {
		t.Error(err)
	}
	if state, err := db.crawl.storedState(db.db); err != nil || !state.long || !state.stale {
		t.Errorf("the state is %+v: %v", state, err)
	}
}

// Only walks that bring what is due soon leave priorities as they are.
func TestPrioritiesAreKept(t *testing.T) {
	for name, update := range map[string]func(t *testing.T, db *DB, b crawldb.Batch){
		"Update": func(t *testing.T, db *DB, b crawldb.Batch) {
			if err := db.Crawl().Update(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		},
		"a small batch": func(t *testing.T, db *DB, b crawldb.Batch) {
			b.URLs = b.URLs[:farKeys-1]
			updateAll(t, db, b)
		},
		"what lies far apart": func(t *testing.T, db *DB, b crawldb.Batch) {
			db.crawl.farBytes = 0
			updateAll(t, db, b)
		},
		"a selection": func(t *testing.T, db *DB, b crawldb.Batch) {
			b.Tokens = make([]string, len(b.URLs))
			updateAll(t, db, b)
		},
		"an index that is being built": func(t *testing.T, db *DB, b crawldb.Batch) {
			state := *db.crawl.due.state.Load()
			state.whole, state.built = false, []byte("example,h010)")
			if err := db.crawl.commitState(t.Context(), &state); err != nil {
				t.Fatal(err)
			}
			updateAll(t, db, b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, urls := soonStore(t, 3000)
			if err := db.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
			b := crawldb.Batch{URLs: urls, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) { return doubled(i, old), nil }}
			update(t, db, b)
			state, err := db.crawl.storedState(db.db)
			if err != nil || state.stale {
				t.Fatalf("the state is %+v: %v", state, err)
			}
			for key, value := range wheelRows(t, db) {
				e, err := db.crawl.wheelEntry([]byte(key), []byte(value))
				if err != nil {
					t.Fatal(err)
				}
				d, err := db.Crawl().Get(t.Context(), crawldb.URLOf(key[wheelPrefix:]))
				if err != nil || state.has([]byte(key[wheelPrefix:])) && e.priority != d.Priority {
					t.Fatalf("%s has priority %v in the index and %v: %v", d.URL, e.priority, d.Priority, err)
				}
			}
			if name != "an index that is being built" { // whose other entries should not be there
				if err := db.CheckIndex(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A record is written with its entry if more than the priority changes, or if the entry has
// a rest.
func TestOldPrioritiesFollowTheRest(t *testing.T) {
	db, urls := staleStore(t, 3000)
	visitOthers(t, db, urls, func(i int, old *crawldb.Datum) *crawldb.Datum {
		d := doubled(i, old)
		switch i % 4 {
		case 0:
			d.FetchTime = d.FetchTime.Add(time.Minute)
		case 1:
			d.Signature, d.ETag = nil, "" // the rest is short now
		case 2:
			return nil
		}
		return d
	})
	visitOthers(t, db, urls, func(i int, old *crawldb.Datum) *crawldb.Datum {
		if old == nil {
			return nil
		}
		return doubled(i, old)
	})
	sameAsScan(t, db, crawldb.DueQuery{Now: dueEpoch.AddDate(0, 3, 0)})
	if err := db.CheckIndex(t.Context()); err != nil {
		t.Error(err)
	}
}

// CheckIndex passes over an old priority, and over nothing else.
func TestCheckOldPriorities(t *testing.T) {
	for name, test := range map[string]struct {
		entry  func(e *entry)
		state  func(s *dueState)
		record func(d *crawldb.Datum)
		bad    bool
	}{
		"another priority":                   {entry: func(e *entry) { e.priority = 7 }},
		"of which the state says nothing":    {state: func(s *dueState) { s.stale = false }, bad: true},
		"another time in the same hour":      {entry: func(e *entry) { e.from++ }, bad: true},
		"a rest that there should not be":    {entry: func(e *entry) { e.of, e.rest = nil, []byte("rest") }, bad: true},
		"a long rest of another record":      {entry: func(e *entry) { e.whole, e.of.ETag = true, e.of.ETag+"x" }, bad: true},
		"a priority, with a long rest":       {entry: func(e *entry) { e.whole, e.priority = true, 7 }, bad: true},
		"a priority, with a short rest":      {record: func(d *crawldb.Datum) { d.Signature, d.ETag = nil, "" }, entry: func(e *entry) { e.priority = 7 }, bad: true},
		"a priority of what is ready":        {record: func(d *crawldb.Datum) { d.FetchTime = dueEpoch.AddDate(0, -2, 0) }, entry: func(e *entry) { e.priority++ }, bad: true},
		"an entry of a record that is ready": {state: func(s *dueState) { s.mark = markOf(bucket(dueEpoch.AddDate(0, 3, 0).UnixMilli())) }, bad: true},
	} {
		db, urls := staleStore(t, 2000)
		d, err := db.Crawl().Get(t.Context(), urls[1999])
		if err != nil {
			t.Fatal(err)
		}
		if test.record != nil {
			test.record(&d)
			put(t, db, d.URL, func(*crawldb.Datum) *crawldb.Datum { return &d })
			if err := db.CheckIndex(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		state := *db.crawl.due.state.Load()
		e := entryOf(&d)
		if test.entry != nil {
			test.entry(&e)
			if err := db.db.Set(e.appendKey(nil, state.mark, []byte(crawldb.Key(d.URL))), e.appendValue(nil), pebble.NoSync); err != nil {
				t.Fatal(err)
			}
		}
		if test.state != nil {
			test.state(&state)
			if err := db.crawl.commitState(t.Context(), &state); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.CheckIndex(t.Context()); (err != nil) != test.bad {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Damage of a record does not keep others from becoming due, and is told by who needs it.
func TestMaturePassesDamage(t *testing.T) {
	for name, damage := range map[string]func(db *DB, key []byte) error{
		"what is no record":      func(db *DB, key []byte) error { return db.db.Set(key, []byte{255}, pebble.NoSync) },
		"a record that is lost":  func(db *DB, key []byte) error { return db.db.Delete(key, pebble.NoSync) },
		"a record of other time": func(db *DB, key []byte) error { return db.db.Set(key, encodedAt(t, dueEpoch), pebble.NoSync) },
	} {
		db, urls := staleStore(t, 2000)
		if err := damage(db, codec.CrawlTable.Key(crawldb.Key(urls[11]))); err != nil {
			t.Fatal(err)
		}
		n := 0
		for c, err := range crawldb.Due(t.Context(), db.Crawl(), crawldb.DueQuery{Now: dueEpoch.AddDate(0, 3, 0)}) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if n++; math.IsNaN(float64(c.Priority)) {
				t.Errorf("%s has no priority", c.URL)
			}
		}
		if n != len(urls)+1 {
			t.Errorf("%s: %d of %d candidates", name, n, len(urls)+1)
		}
		told := false
		err := db.crawl.checkDue(t.Context(), func(err error) { told = told || strings.Contains(err.Error(), urls[11]) })
		if !told || err != nil {
			t.Errorf("%s: nobody says so: %v", name, err)
		}
	}
}

// spoil damages a block of records, and returns the store opened again and the URLs whose
// records cannot be read any more.
func spoil(t *testing.T, db *DB, urls []string) (again *DB, lost []string) {
	t.Helper()
	if err := db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	levels, err := db.db.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	var file pebble.SSTableInfo
	for _, tables := range levels {
		for _, f := range tables {
			if codec.Table(f.Smallest.UserKey[0]) == codec.CrawlTable && f.Size > file.Size {
				file = f
			}
		}
	}
	dir, path := db.dir, filepath.Join(db.path, sstables.FileName(uint64(file.FileNum)))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/24] ^= 1 // records come first, and those before have what is due soon
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err = Open(dir, small()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { again.Close() })
	for _, u := range urls {
		if _, err := again.Crawl().Get(t.Context(), u); errors.Is(err, ErrDamaged) {
			lost = append(lost, u)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if len(lost) < 10 || len(lost) > len(urls)/20 {
		t.Fatalf("%d of %d records cannot be read", len(lost), len(urls))
	}
	return again, lost
}

// A block of records that cannot be read costs the pages whose records are in it their new
// priorities, and no other page anything.
func TestMaturePassesDamagedBlocks(t *testing.T) {
	for _, anew := range []uint64{math.MaxUint64, 0} {
		db, urls := staleStore(t, 12_000)
		now := dueEpoch.AddDate(0, 3, 0)
		want := map[string]float32{}
		for c, err := range crawldb.DueByScan(t.Context(), db.Crawl(), crawldb.DueQuery{Now: now}, nil) {
			if err != nil {
				t.Fatal(err)
			}
			want[c.URL] = c.Priority
		}
		db, lost := spoil(t, db, urls)
		db.crawl.due.anew = anew
		got := map[string]bool{}
		for c, err := range crawldb.Due(t.Context(), db.Crawl(), crawldb.DueQuery{Now: now}) {
			if err != nil {
				t.Fatal(err)
			}
			if _, found := slices.BinarySearchFunc(lost, c.URL, crawldb.Compare); !found && c.Priority != want[c.URL] {
				t.Fatalf("%s has priority %g, want %g", c.URL, c.Priority, want[c.URL])
			}
			if got[c.URL] {
				t.Fatalf("%s is yielded twice", c.URL)
			}
			got[c.URL] = true
		}
		if len(got) != len(want) {
			t.Errorf("%d of %d candidates", len(got), len(want))
		}
		if _, err := db.crawl.countLevels(t.Context()); err != nil {
			t.Error(err)
		}
		told := 0
		err := db.crawl.checkDue(t.Context(), func(error) { told++ })
		if told == 0 && err == nil {
			t.Error("nobody says so")
		}
	}
}

// So do queries about what is not due yet.
func TestQueriesPassDamagedBlocks(t *testing.T) {
	for name, q := range map[string]crawldb.DueQuery{
		"the next hours": {Now: dueEpoch.AddDate(0, 2, 2), AheadOfClock: 20 * time.Hour},
		"months ahead":   {Now: dueEpoch.AddDate(0, 2, -1), AheadOfClock: 40 * 24 * time.Hour},
		"of some hosts":  {Now: dueEpoch.AddDate(0, 2, -1), AheadOfClock: 40 * 24 * time.Hour, WantHost: func(host string) bool { return host < "h015" }},
		"beyond":         {Now: dueEpoch.AddDate(0, 0, 1), DueBeyond: dueEpoch.AddDate(0, 1, 0)},
	} {
		db, urls := staleStore(t, 12_000)
		q.Now = q.Now.Add(11 * time.Hour)
		want := map[string]float32{}
		for c, err := range crawldb.DueByScan(t.Context(), db.Crawl(), q, nil) {
			if err != nil {
				t.Fatal(err)
			}
			want[c.URL] = c.Priority
		}
		db, lost := spoil(t, db, urls)
		n, old := 0, 0
		for c, err := range crawldb.Due(t.Context(), db.Crawl(), q) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			n++
			if priority, found := want[c.URL]; !found {
				t.Fatalf("%s: %s is yielded", name, c.URL)
			} else if priority != c.Priority {
				old++
			}
		}
		if n != len(want) || old > len(lost) {
			t.Errorf("%s: %d of %d candidates, %d of them with an old priority", name, n, len(want), old)
		}
	}
}

// An update passes records that cannot be read, and fails if it changes one of them.
func TestUpdatesPassDamagedBlocks(t *testing.T) {
	db, urls := soonStore(t, 12_000)
	db, lost := spoil(t, db, urls)
	b := crawldb.Batch{Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) { return later(i, old), nil }}
	for i, u := range urls {
		if _, found := slices.BinarySearchFunc(lost, u, crawldb.Compare); i%10 > 0 && !found {
			b.URLs = append(b.URLs, u)
		}
	}
	updateAll(t, db, b)
	soon := 0
	for i, u := range urls[:soonHours*60] {
		if _, found := slices.BinarySearchFunc(lost, u, crawldb.Compare); i%10 == 0 && !found {
			soon++
		}
	}
	if whole, _ := wholeEntries(t, db); whole < soon-1 || soon == soonHours*6 {
		t.Errorf("%d entries were brought of %d that are due soon and can be read", whole, soon)
	}
	at, _ := slices.BinarySearchFunc(b.URLs, lost[1], crawldb.Compare)
	b.URLs = slices.Insert(b.URLs, at, lost[1])
	err := crawldb.UpdateAll(t.Context(), db.Crawl(), func(yield func(crawldb.Batch, error) bool) { yield(b, nil) })
	if !errors.Is(err, ErrDamaged) {
		t.Errorf("an update of a record that cannot be read: %v", err)
	}
}

// If much becomes due at once the index is built anew, without old priorities, and otherwise not.
func TestMuchThatBecomesDueIsBuiltAnew(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(db *DB)
		to      time.Time
		anew    bool
	}{
		"all of it":          {to: dueEpoch.AddDate(0, 3, 0), anew: true},
		"a few hours":        {to: dueEpoch.AddDate(0, 2, 0).Add(5 * time.Hour)},
		"more than half":     {to: dueEpoch.AddDate(0, 2, 0).Add(120 * time.Hour), anew: true},
		"more than a fourth": {to: dueEpoch.AddDate(0, 2, 0).Add(60 * time.Hour)},
		"little beside what is due": {prepare: func(db *DB) {
			backlog := crawldb.Batch{Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) {
				return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: dueEpoch}, nil
			}}
			for i := range 30_000 {
				backlog.URLs = append(backlog.URLs, fmt.Sprintf("http://new.example/%d", 1e6+i))
			}
			if err := errors.Join(db.Crawl().Update(t.Context(), backlog), db.Compact(t.Context())); err != nil {
				t.Fatal(err)
			}
		}, to: dueEpoch.AddDate(0, 2, 0).Add(120 * time.Hour)},
		"with a record that cannot be read": {prepare: func(db *DB) {
			if err := db.db.Set(codec.CrawlTable.Key(crawldb.Key("http://h050.example/05003")), []byte{255}, pebble.NoSync); err != nil {
				t.Fatal(err)
			}
		}, to: dueEpoch.AddDate(0, 3, 0)},
		"little, all of it":                {prepare: func(db *DB) { db.crawl.due.anew = 1 << 20 }, to: dueEpoch.AddDate(0, 3, 0)},
		"an index that has all priorities": {prepare: func(db *DB) { setState(db, func(s *dueState) { s.stale = false }) }, to: dueEpoch.AddDate(0, 3, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			db, _ := staleStore(t, 12_000) // 200 hours
			if err := db.crawl.prepare(t.Context(), dueEpoch.AddDate(0, 2, 0).Add(-time.Hour).UnixMilli()); err != nil {
				t.Fatal(err)
			}
			if err := db.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
			db.crawl.due.anew = 0
			if test.prepare != nil {
				test.prepare(db)
			}
			if err := db.crawl.prepare(t.Context(), test.to.UnixMilli()); err != nil {
				t.Fatal(err)
			}
			state := db.crawl.due.state.Load()
			if anew := !state.long && !state.stale; anew != test.anew || db.crawl.due.late.Load() {
				t.Errorf("the state is %+v, late: %t", state, db.crawl.due.late.Load())
			}
			switch name {
			case "an index that has all priorities":
				return // which it has not
			case "with a record that cannot be read":
				n := 0
				for _, err := range crawldb.Due(t.Context(), db.Crawl(), crawldb.DueQuery{Now: test.to}) {
					if n++; err != nil {
						t.Fatal(err)
					}
				}
				if n != 12_001 {
					t.Errorf("%d candidates", n)
				}
				return
			}
			sameAsScan(t, db, crawldb.DueQuery{Now: test.to})
			if err := db.CheckIndex(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Once the index is built anew it is trimmed and tidied, as behind much that has matured.
func TestBuiltAnewIsMuch(t *testing.T) {
	db, _ := staleStore(t, 12_000)
	if err := db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	db.crawl.due.anew, db.crawl.due.step = 0, 5000
	clock := dueEpoch.AddDate(0, 3, 0).UnixMilli()
	anew, err := db.crawl.ripeAnew(t.Context(), markOf(bucket(clock)))
	if err != nil || !anew {
		t.Fatal(anew, err)
	}
	var tables []int
	for s := &db.crawl; len(tables) == 0 || !s.due.state.Load().whole; {
		if err := db.take(t.Context(), &s.view, s.turn); err != nil {
			t.Fatal(err)
		}
		n, err := s.step(t.Context(), clock, anew)
		db.give(s.turn)
		if err != nil {
			t.Fatal(err)
		}
		tables = append(tables, n)
	}
	if want := []int{0, 0, 0, tidyHours}; !slices.Equal(tables, want) {
		t.Errorf("the steps count %d, want %d", tables, want)
	}
}

// A store that cannot be written answers about what is due as it did before it was asked
// about what it cannot move.
func TestReadOnlyIsNotBuiltAnew(t *testing.T) {
	db, _ := staleStore(t, 2000)
	dir := db.dir
	if err := errors.Join(db.Compact(t.Context()), db.Close()); err != nil {
		t.Fatal(err)
	}
	o := small()
	o.ReadOnly = true
	db, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.crawl.due.anew = 0
	ask := func(now time.Time) (n int, err error) {
		for _, err := range crawldb.Due(t.Context(), db.Crawl(), crawldb.DueQuery{Now: now}) {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	soon := dueEpoch.Add(-time.Hour)
	if n, err := ask(soon); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if _, err := ask(dueEpoch.AddDate(0, 3, 0)); !errors.Is(err, ErrReadOnly) {
		t.Errorf("what cannot be moved: %v", err)
	}
	if n, err := ask(soon); n != 1 || err != nil {
		t.Errorf("then %d candidates, %v", n, err)
	}
}

// An update of a store whose index is of another version leaves one that nobody takes for
// whole, the package of that version included.
func TestUpdatesOfForeignIndexes(t *testing.T) {
	for name, change := range map[string]func(db *DB, b crawldb.Batch) error{
		"a batch": func(db *DB, b crawldb.Batch) error { return db.Crawl().Update(t.Context(), b) },
		"a bulk": func(db *DB, b crawldb.Batch) error {
			return crawldb.UpdateAll(t.Context(), db.Crawl(), func(yield func(crawldb.Batch, error) bool) { yield(b, nil) })
		},
		"none": func(*DB, crawldb.Batch) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			db, urls := staleStore(t, 2000)
			known, err := rows.Get(db.db, dueKey)
			if err != nil {
				t.Fatal(err)
			}
			foreign := append([]byte{staleState + 1}, known[1:]...)
			if err := db.db.Set(dueKey, foreign, pebble.Sync); err != nil {
				t.Fatal(err)
			}
			db = reopened(t, db)
			new := crawldb.Batch{URLs: []string{"http://new.example/"}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) {
				return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: dueEpoch}, nil
			}}
			if err := change(db, new); err != nil {
				t.Fatal(err)
			}
			left, err := rows.Get(db.db, dueKey)
			if err != nil {
				t.Fatal(err)
			}
			n := len(urls) + 2
			if name == "none" {
				n--
				if !bytes.Equal(left, foreign) {
					t.Errorf("a state % x became % x", foreign, left)
				}
			} else if _, ok, err := parseState(left); ok || err != nil || left[0] >= stateVersion {
				t.Errorf("a state % x of another version became % x", foreign, left)
			}
			db = reopened(t, db)
			if got := sameAsScan(t, db, crawldb.DueQuery{Now: dueEpoch.AddDate(0, 3, 0)}); got != n {
				t.Errorf("%d candidates, want %d", got, n)
			}
			if err := db.CheckIndex(t.Context()); err != nil {
				t.Error(err)
			}
			if state := db.crawl.due.state.Load(); !state.whole || state.foreign {
				t.Errorf("the state is %+v", state)
			}
		})
	}
}

// reopened closes a store and opens it again.
func reopened(t *testing.T, db *DB) *DB {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(db.dir, small())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { again.Close() })
	return again
}

// setState changes the state in memory.
func setState(db *DB, change func(*dueState)) {
	state := *db.crawl.due.state.Load()
	change(&state)
	db.crawl.due.state.Store(&state)
}

func encodedAt(t *testing.T, at time.Time) []byte {
	t.Helper()
	b, err := codec.AppendRecord(nil, &crawldb.Datum{Status: crawldb.Fetched, FetchTime: at})
	if err != nil {
		t.Fatal(err)
	}
	return b
}
