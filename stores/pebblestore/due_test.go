package pebblestore

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/sstables"
)

// The tests of the index itself are those of internal/dueindex. These are about what the store adds:
// tables, logs, files that cannot be read, and stores that older versions have written.

var dueEpoch = time.Date(2024, 6, 1, 12, 0, 0, 0, time.UTC)

func dueBy(d crawldb.Datum, q crawldb.DueQuery) bool {
	return !d.FetchTime.After(q.Now) && !d.Leased(q.Now)
}

// putDue writes records that are due at their times.
func putDue(t *testing.T, db *DB, n int, at func(i int) time.Time) []string {
	t.Helper()
	urls := make([]string, n)
	for i := range urls {
		urls[i] = fmt.Sprintf("http://h%03d.example/%06d", i/100, i)
	}
	for from := 0; from < n; from += 10_000 {
		chunk := urls[from:min(from+10_000, n)]
		err := db.Crawl().Update(t.Context(), crawldb.Batch{URLs: chunk, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
			return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: at(from + i), Score: float32(from + i), Priority: float32(from + i)}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return urls
}

// putPages writes n fetched pages, page i due after i minutes.
func putPages(t *testing.T, db *DB, n int) (urls []string) {
	t.Helper()
	for i := range n {
		urls = append(urls, fmt.Sprintf("http://h%03d.example/%05d", i/100, i))
	}
	put(t, db, "http://a.example/", func(*crawldb.Datum) *crawldb.Datum {
		return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: dueEpoch.Add(-time.Hour)} // where the wheel begins
	})
	err := db.Crawl().Update(t.Context(), crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
		return &crawldb.Datum{Status: crawldb.Fetched, LastFetch: dueEpoch.AddDate(0, -1, 0), FetchTime: dueEpoch.Add(time.Duration(i) * time.Minute), Interval: 30 * 24 * time.Hour,
			Score: float32(i), Priority: float32(i), Signature: make([]byte, 16), ETag: fmt.Sprintf(`"the tag of entity %06d"`, i)}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return urls
}

func countDue(t *testing.T, db *DB, q crawldb.DueQuery) (n int) {
	t.Helper()
	for _, err := range db.crawl.Due(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// sameAsScan compares what the index yields with a scan: the same candidates with the
// priorities of their records.
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
		slices.SortFunc(all, func(a, b crawldb.Candidate) int { return crawldb.Compare(a.URL, b.URL) })
		return all
	}
	want, got := all(true), all(false)
	if !slices.Equal(got, want) {
		t.Errorf("%+v: the index yields %d candidates and a scan %d", q, len(got), len(want))
	}
	return len(got)
}

// tableSize counts the rows of a table.
func tableSize(t *testing.T, db *DB, tab codec.Table) (n int) {
	t.Helper()
	if err := db.eachOf(t.Context(), db.db, tab, func(_, _ []byte) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

// indexVersion returns the version of the stored index.
func indexVersion(t *testing.T, db *DB) byte {
	t.Helper()
	state, err := db.Row(string(codec.StateTable.Key("due")))
	if err != nil || len(state) == 0 {
		t.Fatalf("the state is %q, %v", state, err)
	}
	return state[0]
}

func TestCheckIndex(t *testing.T) {
	db, err := Open(t.TempDir(), small())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	putDue(t, db, 50, func(int) time.Time { return dueEpoch })
	if err := db.CheckIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.db.DeleteRange([]byte{byte(codec.ReadyTable)}, []byte{byte(codec.ReadyTable) + 1}, pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	if err := db.CheckIndex(t.Context()); !errors.Is(err, ErrDamaged) {
		t.Errorf("an index without entries: %v", err)
	}
}

// Much that becomes due at once is moved as tables, in the order of records, whatever
// hours it is from; and what is deleted with it is nothing to verify or to salvage.
func TestManyDueEntriesAreWrittenAsTables(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, small())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { db.Close() }()
	const n, hours = 500, 7
	b := crawldb.Batch{Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
		return &crawldb.Datum{Status: crawldb.Fetched, FetchTime: dueEpoch.Add(time.Duration(i%hours) * time.Hour), LastFetch: dueEpoch.AddDate(0, -1, 0), Priority: float32(i % 3)}, nil
	}}
	for i := range n {
		b.URLs = append(b.URLs, fmt.Sprintf("http://h%02d.example/%05d", i/100, i))
	}
	if err := db.Crawl().Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	before := db.db.Metrics().Ingest.Count
	db.crawl.index.LeastTables, db.crawl.index.MoveStep = 1, n/2+1
	if err := db.crawl.index.Prepare(t.Context(), dueEpoch.Add(hours*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := db.db.Metrics().Ingest.Count - before; got != 2 {
		t.Errorf("%d ingestions, want 2", got)
	}
	if any, err := db.has(codec.WheelTable); any || err != nil {
		t.Errorf("the wheel still has entries: %v %v", any, err)
	}
	found := 0
	for c, err := range crawldb.Due(t.Context(), db.Crawl(), crawldb.DueQuery{Now: dueEpoch.Add(hours * time.Hour)}) {
		if err != nil {
			t.Fatal(err)
		}
		if found++; !c.Due {
			t.Errorf("%s is not due", c.URL)
		}
	}
	if found != n {
		t.Errorf("%d are due, want %d", found, n)
	}
	if err := db.CheckIndex(t.Context()); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(t.Context(), dir, verify.Options{Found: func(f verify.Finding) { t.Error(f) }}); err != nil {
		t.Error(err)
	}
	if _, err := Salvage(t.Context(), dir, dir+".new", SalvageOptions{Lost: func(l Loss) { t.Error(l) }}); err != nil {
		t.Error(err)
	}
}

// Behind an UpdateAll of several steps, and behind what becomes due in several, the ready table
// of the index is cut.
func TestIndexIsCutAfterLargeUpdates(t *testing.T) {
	db := leaseStore(t)
	s := &db.crawl
	const each = 1000
	s.index.LeastReady, s.index.LeastTables, s.bulkLeast, s.bulkStep = 100, 1, 1, 1 // each batch is a step
	s.index.HeldBelowCut = 0
	puts := func(n, from int) {
		t.Helper()
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
	want := func(what string, cut bool, due int) {
		t.Helper()
		if err := db.CheckIndex(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := tableSize(t, db, codec.ReadyTable); (n < due) != cut {
			t.Fatalf("%s: %d of %d due entries are in the ready table", what, n, due)
		}
	}
	put(t, db, "http://a.example/", func(*crawldb.Datum) *crawldb.Datum {
		return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: dueEpoch.AddDate(0, 0, -2)} // where the wheel begins
	})
	puts(tidySteps, 0)
	want("nothing is due", false, 0)
	s.index.MoveStep = each
	if err := s.index.Prepare(t.Context(), dueEpoch.AddDate(0, 0, 1)); err != nil {
		t.Fatal(err)
	}
	want("behind what became due", true, each*tidySteps+1)
	if n := countDue(t, db, crawldb.DueQuery{Now: dueEpoch.AddDate(0, 0, 1)}); n != each*tidySteps+1 { // which adds the levels
		t.Fatalf("%d are due", n)
	}
	puts(tidySteps-1, 200)
	want("behind a few steps", false, each*(2*tidySteps-1)+1)
	puts(5*tidySteps, 300)
	want("behind many steps", true, each*(7*tidySteps-1)+1)
}

// damageRecords damages a block of records, and returns the store opened again and the URLs whose
// records cannot be read any more.
func damageRecords(t *testing.T, db *DB, urls []string) (again *DB, lost []string) {
	t.Helper()
	if err := db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := sstables.Files(db.db)
	if err != nil {
		t.Fatal(err)
	}
	var file pebble.SSTableInfo
	for _, f := range files {
		if codec.Table(f.Smallest.UserKey[0]) == codec.CrawlTable && f.Size > file.Size {
			file = f
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
	b[len(b)/24] ^= 1 // records come first
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

// A block of records that cannot be read costs the pages whose records are in it their
// priorities, and no other page anything, whether they are due or will be.
func TestSelectionsPassDamagedBlocks(t *testing.T) {
	testlevel.SkipInRace(t)
	for name, test := range map[string]struct {
		q       crawldb.DueQuery
		rebuild uint64
	}{
		"due":                {crawldb.DueQuery{Now: dueEpoch.AddDate(0, 3, 0)}, math.MaxUint64},
		"due, and much":      {crawldb.DueQuery{Now: dueEpoch.AddDate(0, 3, 0)}, 0},
		"the next hours":     {crawldb.DueQuery{Now: dueEpoch.Add(19 * time.Hour), AheadOfClock: 20 * time.Hour}, math.MaxUint64},
		"the next days":      {crawldb.DueQuery{Now: dueEpoch.AddDate(0, 0, 5), AheadOfClock: 6 * 24 * time.Hour}, math.MaxUint64},
		"of some hosts":      {crawldb.DueQuery{Now: dueEpoch.AddDate(0, 0, 5), AheadOfClock: 6 * 24 * time.Hour, WantHost: func(host string) bool { return host < "h015" }}, math.MaxUint64},
		"beyond the horizon": {crawldb.DueQuery{Now: dueEpoch, DueBeyond: dueEpoch.Add(time.Hour)}, math.MaxUint64},
	} {
		db, err := Open(t.TempDir(), small())
		if err != nil {
			t.Fatal(err)
		}
		urls := putPages(t, db, 12_000)
		want := map[string]float32{}
		for c, err := range crawldb.DueByScan(t.Context(), db.Crawl(), test.q, nil) {
			if err != nil {
				t.Fatal(err)
			}
			want[c.URL] = c.Priority
		}
		db, lost := damageRecords(t, db, urls)
		db.crawl.index.RebuildBytes = test.rebuild
		got := map[string]bool{}
		for c, err := range crawldb.Due(t.Context(), db.Crawl(), test.q) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if _, found := slices.BinarySearchFunc(lost, c.URL, crawldb.Compare); !found && c.Priority != want[c.URL] {
				t.Fatalf("%s: %s has priority %g, want %g", name, c.URL, c.Priority, want[c.URL])
			}
			if got[c.URL] {
				t.Fatalf("%s: %s is yielded twice", name, c.URL)
			}
			got[c.URL] = true
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d of %d candidates", name, len(got), len(want))
		}
		reported := 0
		if err := db.crawl.checkDue(t.Context(), func(error) { reported++ }); reported == 0 && err == nil {
			t.Errorf("%s: the check finds nothing", name)
		}
	}
}

// An update passes records that cannot be read, and fails if it changes one of them.
func TestUpdatesPassDamagedBlocks(t *testing.T) {
	db, err := Open(t.TempDir(), small())
	if err != nil {
		t.Fatal(err)
	}
	urls := putPages(t, db, 12_000)
	db, lost := damageRecords(t, db, urls)
	b := crawldb.Batch{Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
		d := *old
		d.FetchTime = d.FetchTime.AddDate(0, 1, 0)
		return &d, nil
	}}
	for i, u := range urls {
		if _, found := slices.BinarySearchFunc(lost, u, crawldb.Compare); i%10 > 0 && !found {
			b.URLs = append(b.URLs, u)
		}
	}
	all := func(yield func(crawldb.Batch, error) bool) { yield(b, nil) }
	if err := crawldb.UpdateAll(t.Context(), db.Crawl(), all); err != nil {
		t.Fatal(err)
	}
	at, _ := slices.BinarySearchFunc(b.URLs, lost[1], crawldb.Compare)
	b.URLs = slices.Insert(b.URLs, at, lost[1])
	if err := crawldb.UpdateAll(t.Context(), db.Crawl(), all); !errors.Is(err, ErrDamaged) {
		t.Errorf("an update of a record that cannot be read: %v", err)
	}
}

// The machine crashes at any write of updates, of selections that move what has become due or build
// the index anew, and of cuts: what the disk holds has an index that says what its records say.
func TestIndexSurvivesPowerLoss(t *testing.T) {
	testlevel.SkipInRace(t)
	trials := uint64(testlevel.Pick(60, 2000))
	var left atomic.Pointer[vfs.MemFS]
	for trial := range trials {
		r := rand.New(rand.NewPCG(trial, 417))
		mem := vfs.NewCrashableMem()
		left.Store(nil)
		w := &onWrite{at: r.Int64N(150)}
		crash := rand.New(rand.NewPCG(trial, 418)) // the engine crashes in a goroutine of its own
		w.do = func() {
			left.Store(mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: crash.IntN(101), RNG: crash}))
		}
		db, err := Open(memPath, inMemory(small(), errorfs.Wrap(mem, w)))
		if err != nil {
			t.Fatal(err)
		}
		shortSteps(db, []int{1, 1 << 30}[r.IntN(2)])
		s := &db.crawl
		s.farKeys, s.index.LeastReady, s.index.BuildStep, s.index.RebuildBytes = 50, int64(r.IntN(100)), 100, []uint64{0, 1 << 40}[r.IntN(2)]
		urls := putPages(t, db, 300)
		w.armed.Store(true)
		clock := dueEpoch.Add(-time.Hour)
		for left.Load() == nil {
			switch n := r.IntN(10); {
			case n < 6:
				b := crawldb.Batch{Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
					d := *old
					if d.Score, d.Priority = 2*d.Score+1, 2*d.Priority+1; n > 3 {
						d.FetchTime = clock.Add(time.Duration(r.IntN(30*24)) * time.Hour)
					}
					return &d, nil
				}}
				for i, u := range urls {
					if i%10 > 0 {
						b.URLs = append(b.URLs, u)
					}
				}
				if err := crawldb.UpdateAll(t.Context(), db.Crawl(), func(yield func(crawldb.Batch, error) bool) { yield(b, nil) }); err != nil {
					t.Fatal(err)
				}
			case n < 9:
				clock = clock.Add(time.Duration(r.IntN(90*24)) * time.Hour)
				if err := s.index.Prepare(t.Context(), clock); err != nil {
					t.Fatal(err)
				}
			default:
				if err := s.index.TryCut(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		db.fs.Fail(errCrash) // it leaves no seal
		db.Close()

		if db, err = Open(memPath, inMemory(small(), left.Load())); err != nil {
			t.Fatalf("trial %d: %v", trial, err)
		}
		if err := db.CheckIndex(t.Context()); err != nil {
			t.Errorf("trial %d: %v", trial, err)
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
}

// An index of another version, of each that there was, is built anew by the first selection, and what
// is due is what the records say before that and after it.
func TestOlderIndexesAreRebuilt(t *testing.T) {
	for _, golden := range []string{"v5", "v6", "v7", "v8", "v9", "v10", "due6", "due7", "due8"} {
		dir := filepath.Join(t.TempDir(), "store")
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", golden))); err != nil {
			t.Fatal(err)
		}
		// What keeps the directory may not keep one that is empty.
		if err := os.MkdirAll(filepath.Join(dir, "segments"), 0o755); err != nil {
			t.Fatal(err)
		}
		db, err := Open(dir, small())
		if err != nil {
			t.Fatal(err)
		}
		old := indexVersion(t, db)
		if strings.HasPrefix(golden, "due") && fmt.Sprint("due", old) != golden {
			t.Errorf("%s has an index of version %d", golden, old)
		}
		if err := db.CheckIndex(t.Context()); err != nil {
			t.Errorf("%s: %v", golden, err)
		}
		for _, q := range []crawldb.DueQuery{{Now: dueEpoch}, {Now: dueEpoch.AddDate(0, 2, 0), AheadOfClock: 20 * time.Hour}, {Now: dueEpoch.AddDate(0, 3, 0)}} {
			sameAsScan(t, db, q)
			if err := db.CheckIndex(t.Context()); err != nil {
				t.Errorf("%s, %+v: %v", golden, q, err)
			}
		}
		if is := indexVersion(t, db); is <= old {
			t.Errorf("%s: the index of version %d has version %d now", golden, old, is)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestGoldenV2 opens a directory that was written before there was an index.
func TestGoldenV2(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(dir, os.DirFS("testdata/v2")); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		db, err := Open(dir, small())
		if err != nil {
			t.Fatal(err)
		}
		if err := db.CheckIndex(t.Context()); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		records, due := 0, 0
		for d, err := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			records++
			if dueBy(d, crawldb.DueQuery{Now: dueEpoch}) {
				due++
			}
		}
		if round == 0 { // a change comes before the index
			if err := db.Crawl().Update(t.Context(), crawldb.Batch{URLs: []string{"http://h0.example/new"}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) {
				return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: dueEpoch.Add(time.Hour)}, nil
			}}); err != nil {
				t.Fatal(err)
			}
		} else if n := countDue(t, db, crawldb.DueQuery{Now: dueEpoch}); n != due || due != 31 || records != 61 {
			t.Errorf("round %d: %d of %d are due by the index, %d by the records", round, n, records, due)
		}
		if cursor, err := db.Crawl().Mark(t.Context(), "golden"); cursor != "1" || err != nil {
			t.Errorf("the mark is %q, %v", cursor, err)
		}
		if h, err := db.Hosts().Get(t.Context(), "h1.example"); err != nil || !reflect.DeepEqual(h, hostdb.Host{Name: "h1.example", NextFetch: millis(5)}) {
			t.Errorf("%+v, %v", h, err)
		}
		if e, err := db.Links().Get(t.Context(), "http://h1.example/"); err != nil || !slices.Equal(e, []linkdb.Inlink{{From: "http://h2.example/", Anchor: "a"}}) {
			t.Errorf("%+v, %v", e, err)
		}
		if err := db.CheckIndex(t.Context()); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(dir, formatName)); err != nil || string(text) != fmt.Sprintf("%s%d\n", formatMagic, formatVersion) {
			t.Errorf("the mark is %q, %v", text, err)
		}
	}
}

// randomDue changes a record as anything might.
func randomDue(r *rand.Rand, d crawldb.Datum, clock time.Time) crawldb.Datum {
	change := func(n int) bool { return r.IntN(n) == 0 }
	d.Status = crawldb.Unfetched
	if change(2) {
		d.FetchTime = clock.Add(time.Duration(r.IntN(400)-200) * time.Hour / 4)
	}
	if change(15) {
		d.FetchTime = []time.Time{{}, time.UnixMilli(0), time.UnixMilli(-1), dueEpoch.AddDate(500, 0, 0), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}[r.IntN(5)]
	}
	if change(3) {
		d.LeasedUntil, d.LeasedBy = time.Time{}, ""
	} else if change(3) {
		d.LeasedUntil, d.LeasedBy = clock.Add(time.Duration(r.IntN(100)-50)*time.Hour), "s"
	}
	switch {
	case change(10):
		d.Priority = []float32{0, -1, 1e-40, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}[r.IntN(6)]
	case change(2):
		d.Priority = float32(math.Exp(r.NormFloat64() * 2))
	}
	d.Retries = r.IntN(3)
	if change(2) {
		if d.Signature, d.ETag = nil, ""; !change(4) { // it was fetched
			d.Signature = binary.BigEndian.AppendUint64(nil, r.Uint64())
			if d.ETag = strings.Repeat("e", 40); change(5) { // or it is too short, or too long
				d.ETag = strings.Repeat("e", r.IntN(2*256))
			}
		}
	}
	return d
}

// What is written of an index that was cut, and has entries with all of their records, equals a golden
// directory row by row: those of small stores, such as TestGolden has, never come to that.
func TestGoldenIndex(t *testing.T) {
	made, err := Open(t.TempDir(), small())
	if err != nil {
		t.Fatal(err)
	}
	putPages(t, made, 1000)
	err = errors.Join(made.crawl.index.Prepare(t.Context(), dueEpoch.Add(12*time.Hour)), made.db.Flush())
	if err != nil {
		t.Fatal(err)
	}
	made.crawl.index.LeastReady = 10
	if err := made.crawl.index.TryCut(t.Context()); err != nil {
		t.Fatal(err)
	}
	want, err := made.Rows()
	if err = errors.Join(err, made.Compact(t.Context()), made.Close()); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "due9")
	if _, err := os.Stat(golden); errors.Is(err, fs.ErrNotExist) && flag.Lookup("update").Value.String() == "true" {
		if err := os.CopyFS(golden, os.DirFS(made.dir)); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(dir, os.DirFS(golden)); err != nil {
		t.Fatal(err)
	}
	// What keeps the directory may not keep one that is empty.
	if err := os.MkdirAll(filepath.Join(dir, "segments"), 0o755); err != nil {
		t.Fatal(err)
	}
	db, err := Open(dir, small())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if v := indexVersion(t, db); v != 9 {
		t.Errorf("the index has version %d", v)
	}
	if got, err := db.Rows(); err != nil || got != want {
		t.Errorf("what is written is not what %s has, %v:\n%.2000s\n%.2000s", golden, err, want, got)
	}
	if n := tableSize(t, db, codec.ReadyTable); n > 500 {
		t.Errorf("%d entries: the index was not cut", n)
	}
	for _, q := range []crawldb.DueQuery{{Now: dueEpoch.Add(12 * time.Hour)}, {Now: dueEpoch.AddDate(0, 0, 1), AheadOfClock: 12 * time.Hour}, {Now: dueEpoch.AddDate(0, 3, 0)}} {
		sameAsScan(t, db, q)
		if err := db.CheckIndex(t.Context()); err != nil {
			t.Errorf("%+v: %v", q, err)
		}
	}
}
