package dueindex

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

// waitingStore has n fetched pages that are due one minute after the other, from epoch on, and one
// page that is due already.
func waitingStore(t *testing.T, n int) (s *testStore, urls []string) {
	t.Helper()
	s = newStore(t)
	b := crawldb.Batch{Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
		return &crawldb.Datum{Status: crawldb.Fetched, LastFetch: epoch.AddDate(0, -1, 0), FetchTime: epoch.Add(time.Duration(i) * time.Minute), Interval: 30 * 24 * time.Hour,
			Score: float32(i), Priority: float32(i), Signature: bytes.Repeat([]byte{byte(i)}, 16), ETag: fmt.Sprintf(`"the tag of entity %06d"`, i)}, nil
	}}
	for i := range n {
		b.URLs = append(b.URLs, fmt.Sprintf("http://h%03d.example/%05d", i/100, i))
	}
	s.put(t, "http://a.example/", func(*crawldb.Datum) *crawldb.Datum {
		return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: epoch.Add(-time.Hour)} // where the wheel begins
	})
	s.update(t, b, false)
	return s, b.URLs
}

// doublePriorities does to records what links to their pages do.
func (s *testStore) doublePriorities(t *testing.T, urls []string, large bool) {
	t.Helper()
	s.update(t, crawldb.Batch{URLs: urls, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
		d := *old
		d.Score, d.Priority = 2*d.Score+1, 2*d.Priority+1
		return &d, nil
	}}, large)
}

// sameAsScan compares what the index yields with a scan: the same candidates with the priorities
// of their records, best level first.
func sameAsScan(t *testing.T, s *testStore, q crawldb.DueQuery) (n int) {
	t.Helper()
	plain := func(all []crawldb.Candidate) []crawldb.Candidate {
		for i := range all {
			all[i].Token, all[i].Due = "", false
		}
		return all
	}
	got := plain(s.due(t, q))
	var want []crawldb.Candidate
	for c, err := range crawldb.DueByScan(t.Context(), scanned{s: s}, q, nil) {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, c)
	}
	want = plain(want)
	if !slices.IsSortedFunc(got, func(a, b crawldb.Candidate) int { return cmp.Compare(levelOf(a.Priority), levelOf(b.Priority)) }) {
		t.Errorf("%+v: a better level comes later", q)
	}
	byURL := func(a, b crawldb.Candidate) int { return crawldb.Compare(a.URL, b.URL) }
	slices.SortFunc(want, byURL)
	slices.SortFunc(got, byURL)
	if !slices.Equal(got, want) {
		t.Errorf("%+v: the index yields %d candidates and a scan %d", q, len(got), len(want))
	}
	return len(got)
}

// wheelRows returns the entries of the wheel.
func wheelRows(t *testing.T, s *testStore) map[string]string {
	t.Helper()
	all := map[string]string{}
	if err := s.rows(t.Context(), s.db, codec.WheelTable, func(key, value []byte) error { all[string(key)] = string(value); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

// A change of anything but the time writes no entry of a page that is not due.
func TestUpdateOfWaitingPagesLeavesTheWheel(t *testing.T) {
	s, urls := waitingStore(t, 500)
	before := wheelRows(t, s)
	var c changesOfWheel
	u := s.Update()
	for _, url := range urls {
		d, err := s.get(url)
		if err != nil {
			t.Fatal(err)
		}
		changed := d
		changed.Priority, changed.ETag, changed.Signature = d.Priority*2+1, "another", nil
		from, to := RecordOf(&d), RecordOf(&changed)
		if err := u.Change(&c, []byte(crawldb.Key(url)), &from, &to); err != nil {
			t.Fatal(err)
		}
	}
	if err := u.End(&c); err != nil || c.n != 0 {
		t.Errorf("%d rows are written, %v", c.n, err)
	}
	u.Done(errors.New("not written"))
	s.doublePriorities(t, urls, true)
	if !reflect.DeepEqual(before, wheelRows(t, s)) {
		t.Error("the wheel has changed")
	}
	s.check(t)
}

// changesOfWheel counts what is written.
type changesOfWheel struct{ n int }

func (c *changesOfWheel) Set(_, _ []byte, _ *pebble.WriteOptions) error   { c.n++; return nil }
func (c *changesOfWheel) Delete(_ []byte, _ *pebble.WriteOptions) error   { c.n++; return nil }
func (c *changesOfWheel) Merge(_, _ []byte, _ *pebble.WriteOptions) error { c.n++; return nil }
func (c *changesOfWheel) Len() int                                        { return c.n }

// Candidates that are still in the wheel have the priorities of their records.
func TestCandidatesOfWheelHavePrioritiesOfRecords(t *testing.T) {
	testlevel.SkipInRace(t)
	const n = 3000 // 50 hours
	for name, q := range map[string]crawldb.DueQuery{
		"once they are due":        {Now: epoch.AddDate(0, 0, 5)},
		"when some are":            {Now: epoch.Add(20 * time.Hour)},
		"the next hours":           {Now: epoch.Add(40 * time.Hour), AheadOfClock: 20 * time.Hour},
		"days ahead":               {Now: epoch.AddDate(0, 0, 5), AheadOfClock: 4 * 24 * time.Hour},
		"the better ones":          {Now: epoch.AddDate(0, 0, 5), AheadOfClock: 5 * 24 * time.Hour, MinPriority: 2000},
		"the better ones of hours": {Now: epoch.Add(40 * time.Hour), AheadOfClock: 20 * time.Hour, MinPriority: 2000},
		"of some hosts":            {Now: epoch.AddDate(0, 0, 5), AheadOfClock: 5 * 24 * time.Hour, WantHost: func(host string) bool { return host < "h015" }},
		"of some hosts, hours":     {Now: epoch.Add(30 * time.Hour), AheadOfClock: 20 * time.Hour, WantHost: func(host string) bool { return host < "h020" }},
		"beyond the horizon":       {Now: epoch, DueBeyond: epoch.Add(30 * time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			s, urls := waitingStore(t, n)
			s.doublePriorities(t, urls, false)
			if name == "the better ones" || name == "days ahead" {
				s.SideList = 100 // the list is read more than once
			}
			s.update(t, crawldb.Batch{URLs: urls[1:20], Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
				d := *old
				d.LeasedBy, d.LeasedUntil = "s", epoch.AddDate(1, 0, 0)
				return &d, nil
			}}, false)
			if got := sameAsScan(t, s, q); got < n/10 {
				t.Errorf("only %d candidates", got)
			}
			s.check(t)
		})
	}
}

// What has become due within a day has all of its record in the entry, so that a lease reads
// nothing; what was due before has the priority alone.
func TestRecentlyDueEntriesHaveTheWholeRecord(t *testing.T) {
	s, urls := waitingStore(t, 6000) // 100 hours
	s.doublePriorities(t, urls, false)
	if err := s.Prepare(t.Context(), epoch.AddDate(0, 0, 5)); err != nil {
		t.Fatal(err)
	}
	mark, _ := markHour(s.state.Load().mark)
	whole, short := 0, 0
	s.RebuildBytes = 1 << 40
	for c, err := range s.Due(t.Context(), crawldb.DueQuery{Now: epoch.AddDate(0, 0, 5)}) {
		if err != nil {
			t.Fatal(err)
		}
		d, err := s.get(c.URL)
		if err != nil {
			t.Fatal(err)
		}
		of, ok := s.RecordOfToken(c.Token, c.URL)
		if recent := int64(mark)-int64(hourOf(d.FetchTime.UnixMilli())) <= recentHours; ok != recent && d.Status == crawldb.Fetched {
			t.Fatalf("%s, due at %v: the token has the record: %t", c.URL, d.FetchTime, ok)
		}
		if !ok {
			short++
		} else if whole++; !reflect.DeepEqual(of, d) {
			t.Fatalf("%+v, want %+v", of, d)
		}
	}
	if short < 100 || whole+short != len(urls)+1 {
		t.Errorf("%d entries with all of the record, and %d without", whole, short)
	}
	s.check(t)
}

// An entry that has all of its record follows it.
func TestWholeEntriesFollowTheirRecords(t *testing.T) {
	testlevel.SkipInRace(t)
	for name, change := range map[string]func(d *crawldb.Datum) *crawldb.Datum{
		"the signature":    func(d *crawldb.Datum) *crawldb.Datum { d.Signature = []byte("0123456789abcdef"); return d },
		"the ETag":         func(d *crawldb.Datum) *crawldb.Datum { d.ETag = `"another"`; return d },
		"the score":        func(d *crawldb.Datum) *crawldb.Datum { d.Score++; d.Priority++; return d },
		"the score alone":  func(d *crawldb.Datum) *crawldb.Datum { d.Score += 1e-3; return d },
		"the time":         func(d *crawldb.Datum) *crawldb.Datum { d.FetchTime = d.FetchTime.AddDate(0, 2, 0); return d },
		"what is too long": func(d *crawldb.Datum) *crawldb.Datum { d.ETag = strings.Repeat("e", maxWholeRest); return d },
		"what is short":    func(d *crawldb.Datum) *crawldb.Datum { d.Signature, d.ETag = nil, ""; return d },
		"a lease":          func(d *crawldb.Datum) *crawldb.Datum { d.LeasedBy, d.LeasedUntil = "s", epoch; return d },
		"nothing":          func(d *crawldb.Datum) *crawldb.Datum { return d },
		"all of it":        func(*crawldb.Datum) *crawldb.Datum { return nil },
	} {
		s, urls := waitingStore(t, 1000)
		now := epoch.AddDate(0, 0, 1)
		if err := s.Prepare(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second change finds what the first has written
			s.update(t, crawldb.Batch{URLs: []string{urls[0], urls[100], urls[990]}, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
				if old == nil {
					return nil, nil
				}
				d := *old
				return change(&d), nil
			}}, false)
			if err := s.checkError(t); err != nil {
				t.Errorf("%s changes: %v", name, err)
			}
			for _, c := range s.due(t, crawldb.DueQuery{Now: now}) {
				d, err := s.get(c.URL)
				if of, ok := s.RecordOfToken(c.Token, c.URL); err != nil || ok && !reflect.DeepEqual(of, d) {
					t.Errorf("%s changes: %+v, want %+v: %v", name, of, d, err)
				}
			}
		}
	}
}

// The check finds entries that say what their records do not.
func TestCheckFindsWrongEntries(t *testing.T) {
	for name, test := range map[string]struct {
		entry func(e *entry, d *crawldb.Datum) []byte // the value that is written
		ready bool                                    // once the page is due
		bad   bool
	}{
		"the same in the wheel":       {entry: func(e *entry, _ *crawldb.Datum) []byte { return e.appendTime(nil) }},
		"a priority in the wheel":     {entry: func(e *entry, _ *crawldb.Datum) []byte { return e.appendHead(nil) }, bad: true},
		"another time in the hour":    {entry: func(e *entry, _ *crawldb.Datum) []byte { e.dueFrom++; return e.appendTime(nil) }, bad: true},
		"a rest in the wheel":         {entry: func(e *entry, _ *crawldb.Datum) []byte { return append(e.appendTime(nil), "rest"...) }, bad: true},
		"the same in the ready table": {entry: func(e *entry, d *crawldb.Datum) []byte { return e.appendReady(nil, d, true) }, ready: true},
		"no rest":                     {entry: func(e *entry, d *crawldb.Datum) []byte { return e.appendReady(nil, d, false) }, ready: true},
		"another priority":            {entry: func(e *entry, d *crawldb.Datum) []byte { e.priority += 1e-3; return e.appendReady(nil, d, false) }, ready: true, bad: true},
		"the rest of another":         {entry: func(e *entry, d *crawldb.Datum) []byte { d.ETag += "x"; return e.appendReady(nil, d, true) }, ready: true, bad: true},
		"what is no rest":             {entry: func(e *entry, d *crawldb.Datum) []byte { return append(e.appendReady(nil, d, false), "rest"...) }, ready: true, bad: true},
	} {
		s, urls := waitingStore(t, 500)
		if test.ready {
			if err := s.Prepare(t.Context(), epoch.AddDate(0, 0, 1)); err != nil {
				t.Fatal(err)
			}
		}
		d, err := s.get(urls[499])
		if err != nil {
			t.Fatal(err)
		}
		e := entryOf(&d)
		if err := s.db.Set(e.appendKey(nil, s.state.Load().mark, []byte(crawldb.Key(d.URL))), test.entry(&e, &d), pebble.NoSync); err != nil {
			t.Fatal(err)
		}
		if err := s.checkError(t); (err != nil) != test.bad {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, _ := waitingStore(t, 500)
	state := *s.state.Load()
	state.mark = markAfter(hourOf(epoch.AddDate(0, 3, 0).UnixMilli()))
	if err := s.db.Set(stateKey, state.append(nil), pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	if s.checkError(t) == nil {
		t.Error("a state by which all that waits is ready")
	}
}

// A record that cannot be read becomes due all the same, keeps no other from it, and is found by
// the check.
func TestDamagedRecordsBecomeDue(t *testing.T) {
	at, err := codec.AppendRecord(nil, &crawldb.Datum{Status: crawldb.Fetched, FetchTime: epoch.AddDate(0, -1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(s *testStore, key []byte) error{
		"what is no record":        func(s *testStore, key []byte) error { return s.db.Set(key, []byte{255}, pebble.NoSync) },
		"a record that is lost":    func(s *testStore, key []byte) error { return s.db.Delete(key, pebble.NoSync) },
		"a record of another time": func(s *testStore, key []byte) error { return s.db.Set(key, at, pebble.NoSync) },
	} {
		for _, q := range []crawldb.DueQuery{{Now: epoch.AddDate(0, 3, 0)}, {Now: epoch.Add(20 * time.Hour), AheadOfClock: 20 * time.Hour}} {
			s, urls := waitingStore(t, 500)
			if err := damage(s, codec.CrawlTable.Key(crawldb.Key(urls[11]))); err != nil {
				t.Fatal(err)
			}
			all := s.due(t, q)
			if lost := name == "a record that is lost" && q.AheadOfClock > 0; len(all) != len(urls)+1 && !(lost && len(all) == len(urls)) {
				t.Errorf("%s: %d of %d candidates", name, len(all), len(urls)+1)
			}
			told := false
			it, err := s.db.NewIter(nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Check(t.Context(), rows.NewSnapshot(it), func(err error) { told = told || strings.Contains(err.Error(), urls[11]) }); err != nil || !told {
				t.Errorf("%s: the check does not name it: %v", name, err)
			}
			if err := it.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A record that is in the wheel twice is damage.
func TestTwoEntriesOfARecord(t *testing.T) {
	s, _ := waitingStore(t, 10)
	for hour := range int64(2) {
		e := entry{dueFrom: epoch.Add(time.Duration(hour) * time.Hour).UnixMilli()}
		if err := s.db.Set(e.appendKey(nil, s.state.Load().mark, []byte(crawldb.Key("http://b.example/"))), e.appendTime(nil), pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Prepare(t.Context(), epoch.Add(9*time.Hour)); !errors.Is(err, errTestDamage) {
		t.Errorf("%v, want %v", err, errTestDamage)
	}
}

// If most of all entries become due at once the index is built anew, and otherwise they are moved.
func TestRebuildIfMostBecomesDue(t *testing.T) {
	testlevel.SkipInRace(t)
	for name, test := range map[string]struct {
		before func(s *testStore)
		to     time.Time
		want   bool
	}{
		"all of it":          {to: epoch.AddDate(0, 3, 0), want: true},
		"a few hours":        {to: epoch.Add(5 * time.Hour)},
		"more than half":     {to: epoch.Add(140 * time.Hour), want: true},
		"more than a fourth": {to: epoch.Add(60 * time.Hour)},
		"little beside what is due": {before: func(s *testStore) {
			s.update(t, crawldb.Batch{URLs: manyURLs(30_000), Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) {
				return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: epoch.AddDate(0, 0, -1)}, nil
			}}, false)
		}, to: epoch.Add(140 * time.Hour)},
		"with a record that cannot be read": {before: func(s *testStore) {
			if err := s.db.Set(codec.CrawlTable.Key(crawldb.Key("http://h050.example/05003")), []byte{255}, pebble.NoSync); err != nil {
				t.Fatal(err)
			}
		}, to: epoch.AddDate(0, 3, 0)},
		"little, all of it": {before: func(s *testStore) { s.RebuildBytes = 1 << 20 }, to: epoch.AddDate(0, 3, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := waitingStore(t, 12_000) // 200 hours
			s.RebuildBytes = 0
			if test.before != nil {
				test.before(s)
			}
			if err := s.db.Flush(); err != nil { // sizes are those of files
				t.Fatal(err)
			}
			if err := s.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false); err != nil {
				t.Fatal(err)
			}
			if got, err := s.movesTooMuch(t.Context(), markAfter(hourOf(test.to.UnixMilli()))); err != nil || got != test.want {
				t.Errorf("built anew: %t, %v", got, err)
			}
			if name == "with a record that cannot be read" {
				if n := len(s.due(t, crawldb.DueQuery{Now: test.to})); n != 12_001 {
					t.Errorf("%d candidates", n)
				}
				return
			}
			sameAsScan(t, s, crawldb.DueQuery{Now: test.to})
			s.check(t)
		})
	}
}

func manyURLs(n int) (urls []string) {
	for i := range n {
		urls = append(urls, fmt.Sprintf("http://new.example/%d", 1_000_000+i))
	}
	return urls
}

// A store that cannot be written answers about what is due as it did before it was asked
// about what it cannot move.
func TestReadOnlyIndexIsNotRebuilt(t *testing.T) {
	s, _ := waitingStore(t, 2000)
	s.readOnly = true
	s.reopen(t)
	s.RebuildBytes = 0
	ask := func(now time.Time) (n int, err error) {
		for _, err := range s.Due(t.Context(), crawldb.DueQuery{Now: now}) {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	before := epoch.Add(-time.Hour)
	if n, err := ask(before); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if _, err := ask(epoch.AddDate(0, 3, 0)); err == nil {
		t.Error("a read-only store has moved what is due")
	}
	if n, err := ask(before); n != 1 || err != nil {
		t.Errorf("then %d candidates, %v", n, err)
	}
}

// An update of a store whose index is of another version leaves one that no package takes for
// complete, that of the version included.
func TestUpdateOfForeignIndex(t *testing.T) {
	for name, change := range map[string]func(s *testStore, b crawldb.Batch){
		"a batch": func(s *testStore, b crawldb.Batch) { s.update(t, b, false) },
		"a step":  func(s *testStore, b crawldb.Batch) { s.update(t, b, true) },
		"none":    func(*testStore, crawldb.Batch) {},
	} {
		for _, version := range []byte{5, 8, stateVersion + 1} {
			s, urls := waitingStore(t, 500)
			known, err := rows.Get(s.db, stateKey)
			if err != nil {
				t.Fatal(err)
			}
			foreign := append([]byte{version}, known[1:]...)
			if err := s.db.Set(stateKey, foreign, pebble.Sync); err != nil {
				t.Fatal(err)
			}
			s.reopen(t)
			change(s, crawldb.Batch{URLs: []string{"http://new.example/"}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) {
				return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: epoch}, nil
			}})
			left, err := rows.Get(s.db, stateKey)
			if err != nil {
				t.Fatal(err)
			}
			n := len(urls) + 2
			if name == "none" {
				n--
				if !bytes.Equal(left, foreign) {
					t.Errorf("a state % x became % x", foreign, left)
				}
			} else if !bytes.Equal(left, []byte{noVersion}) {
				t.Errorf("a state % x of another version became % x", foreign, left)
			}
			s.check(t)
			s.reopen(t)
			if got := sameAsScan(t, s, crawldb.DueQuery{Now: epoch.AddDate(0, 3, 0)}); got != n {
				t.Errorf("%d candidates, want %d", got, n)
			}
			s.check(t)
			if state := s.state.Load(); !state.complete || state.foreign {
				t.Errorf("the state is %+v", state)
			}
		}
	}
}
