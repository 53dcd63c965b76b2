package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/linkdb"
)

// countingBatch adds one to the count that every one of some records keeps, in the
// manner of whatever is wrong if it is done twice, and moves their entries in the
// index.
func countingBatch(n, from, to int) crawldb.Batch {
	b := crawldb.Batch{Marks: crawldb.Mark("bulk", strconv.Itoa(n))}
	for i := from; i < to; i++ {
		b.URLs = append(b.URLs, fmt.Sprintf("http://h%02d.example/%05d", i/100, i))
	}
	b.Next = func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
		d := crawldb.Datum{ETag: strings.Repeat(string(rune('a'+i%26)), 40)}
		if old != nil {
			d = *old
		}
		d.Retries++
		d.FetchTime, d.Priority = dueEpoch.Add(time.Duration((from+i)*d.Retries%97)*time.Hour), float32((from+i+d.Retries)%50)
		return &d, nil
	}
	return b
}

const (
	countEach    = 60
	countBatches = 20 // in a pass over all records
)

// counting yields the batches from number n on, as their mark counts them, in
// passes over all records.
func counting(n, passes int, each func(n int)) iter.Seq2[crawldb.Batch, error] {
	return func(yield func(crawldb.Batch, error) bool) {
		for ; n < passes*countBatches; n++ {
			if each != nil {
				each(n)
			}
			at := n % countBatches * countEach
			if !yield(countingBatch(n+1, at, at+countEach), nil) {
				return
			}
		}
	}
}

// asideURL lies, and so does its entry in the index, where no batch of counting
// writes: nothing makes the engine write it out before their tables.
const asideURL = "http://z.zzz/"

func aside(n int) crawldb.Batch {
	return crawldb.Batch{URLs: []string{asideURL}, Marks: crawldb.Mark("aside", strconv.Itoa(n)), Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) {
		return &crawldb.Datum{Retries: n, Priority: -1, FetchTime: dueEpoch.AddDate(1000, 0, 0)}, nil
	}}
}

// checkCounted demands that exactly the batches are there that the mark says, and
// returns how many that is.
func checkCounted(t *testing.T, db *DB) int {
	t.Helper()
	mark, err := db.Crawl().Mark(t.Context(), "bulk")
	if err != nil {
		t.Fatal(err)
	}
	n, _ := strconv.Atoi(mark)
	records := 0
	for d, err := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if d.URL == asideURL {
			continue
		}
		want := n / countBatches
		if records/countEach < n%countBatches {
			want++
		}
		if d.Retries != want {
			t.Fatalf("with the mark %d record %d was counted %d times, want %d", n, records, d.Retries, want)
		}
		records++
	}
	if want := min(n, countBatches) * countEach; records != want {
		t.Fatalf("with the mark %d there are %d records, want %d", n, records, want)
	}
	if err := db.CheckIndex(t.Context()); err != nil {
		t.Fatalf("with the mark %d: %v", n, err)
	}
	return n
}

// shortSteps makes tables of a few batches.
func shortSteps(db *DB, least int) {
	db.crawl.bulkStep, db.crawl.bulkLeast, db.tidyLeast = 40<<10, least, 1
	db.crawl.index.StepBytes, db.crawl.index.LeastTables = 40<<10, least
}

// onWrite calls do before the write numbered at, counted from when it is armed.
type onWrite struct {
	at    int64
	armed atomic.Bool
	n     atomic.Int64
	do    func()
}

func (w *onWrite) String() string { return "on write" }

func (w *onWrite) MaybeError(op errorfs.Op) error {
	if w.armed.Load() && (writes(op) || op.Kind == errorfs.OpRemove) && w.n.Add(1)-1 == w.at {
		w.do()
	}
	return nil
}

// TestBulkIsExactlyOnce makes the machine crash at any write under an UpdateAll, with any share
// of unsynced data lost, and resumes from the mark: every batch is applied once, and an
// UpdateAll that returned is kept.
func TestBulkIsExactlyOnce(t *testing.T) {
	testlevel.SkipInRace(t)
	t.Parallel()
	const trials = 30
	states, cut := map[int]bool{}, 0
	for trial := range uint64(trials) {
		r := rand.New(rand.NewPCG(trial, 9))
		mem := vfs.NewCrashableMem()
		acknowledged, wasAside := 0, 0
		check := func(db *DB) int {
			t.Helper()
			n := checkCounted(t, db)
			if n < acknowledged {
				t.Fatalf("trial %d: the mark is %d after %d were acknowledged", trial, n, acknowledged)
			}
			mark, err := db.Crawl().Mark(t.Context(), "aside")
			if at, _ := strconv.Atoi(mark); err != nil || n > wasAside && at != wasAside {
				t.Fatalf("trial %d: the mark is %d, and the update before it, at %d, is lost (%d, %v)", trial, n, wasAside, at, err)
			}
			states[n] = true
			return n
		}
		for range 3 {
			// The clone is what the disk holds when the power fails; this store continues
			// on the original.
			var left *vfs.MemFS
			w := &onWrite{at: r.Int64N(90)}
			w.do = func() { left = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r}) }
			if trial%7 == 0 {
				w.at = 1 << 40 // it comes through
			}
			db, err := Open(memPath, inMemory(small(), errorfs.Wrap(mem, w)))
			if err != nil {
				t.Fatal(err)
			}
			w.armed.Store(true)
			shortSteps(db, []int{1, 24 << 10}[trial%2])
			n := check(db)
			// Updates before it, which are not synced.
			wasAside = n
			if err := db.Crawl().Update(t.Context(), aside(n)); err != nil {
				t.Fatal(err)
			}
			if n%countBatches == 0 && r.IntN(2) == 0 {
				if err := db.Crawl().Update(t.Context(), countingBatch(n+1, 0, countEach)); err != nil {
					t.Fatal(err)
				}
				n++
			}
			passes := n/countBatches + 2
			if err := db.Crawl().(crawldb.BulkStore).UpdateAll(t.Context(), counting(n, passes, nil)); err != nil {
				t.Fatal(err)
			}
			if left == nil {
				acknowledged = passes * countBatches
				w.do()
			} else {
				cut++
			}
			db.fs.Fail(errCrash) // it leaves no seal
			if err := db.Close(); err != nil && !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			mem = left
		}
		db, err := Open(memPath, inMemory(small(), mem))
		if err != nil {
			t.Fatal(err)
		}
		check(db)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if t.Logf("%d crashes on the way, %d states", cut, len(states)); cut < 60 || len(states) < 8 {
		t.Errorf("too few: %d crashes, %d states", cut, len(states))
	}
}

// TestEveryWriteOfBulkFails makes each write under an UpdateAll fail in turn: the error is
// reported, nothing hangs, and what is left is exactly what the mark says.
func TestEveryWriteOfBulkFails(t *testing.T) {
	testlevel.SkipInRace(t)
	t.Parallel()
	for i := range 2 * len(causes()) {
		once, cause := i%2 == 0, causes()[i/2]
		failed := 0
		for at := int64(0); ; at = after(at, 40) {
			b := &breaker{at: at, once: once, cause: cause, picks: writes}
			mem := vfs.NewCrashableMem()
			o := inMemory(small(), errorfs.Wrap(mem, b))
			o.MinFree = -1 // no write waits for room
			db, err := Open(memPath, o)
			acknowledged := 0
			if err == nil {
				shortSteps(db, 1)
				if err = db.Crawl().Update(t.Context(), countingBatch(1, 0, countEach)); err == nil {
					err = db.Crawl().(crawldb.BulkStore).UpdateAll(t.Context(), counting(1, 2, nil))
				}
				if err == nil {
					acknowledged = 2 * countBatches
				}
				if err != nil && !errors.Is(err, ErrFailed) {
					t.Errorf("write %d: %v", at, err)
				}
				err = errors.Join(err, db.Close())
			}
			if b.hits.Load() == 0 {
				t.Logf("%d writes; %d trials failed", at, failed)
				if err != nil {
					t.Error(err)
				}
				break
			}
			if !errors.Is(err, cause) {
				t.Errorf("write %d failed and UpdateAll said %v", at, err)
			}
			failed++
			for _, fs := range []vfs.FS{mem.CrashClone(vfs.CrashCloneCfg{}), mem} {
				db, err := Open(memPath, inMemory(small(), fs))
				if err != nil {
					t.Fatalf("write %d: %v", at, err)
				}
				if n := checkCounted(t, db); n < acknowledged {
					t.Errorf("write %d: the mark is %d", at, n)
				}
				names, err := db.under.List(db.path)
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range names {
					if strings.HasPrefix(name, bulkPrefix) {
						t.Errorf("write %d: %s was left", at, name)
					}
				}
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// noLinks is a file system that has no hard links.
type noLinks struct{ vfs.FS }

func (noLinks) Link(oldname, newname string) error { return syscall.EPERM }

func TestBulkWithoutLinks(t *testing.T) {
	db, err := Open(memPath, inMemory(small(), noLinks{vfs.NewMem()}))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	shortSteps(db, 1)
	if err := db.Crawl().(crawldb.BulkStore).UpdateAll(t.Context(), counting(0, 1, nil)); err != nil {
		t.Fatal(err)
	}
	if n := checkCounted(t, db); n != countBatches {
		t.Error(n)
	}
}

// TestBulkMakesTables: large steps are neither logged nor compacted again.
func TestBulkMakesTables(t *testing.T) {
	db, err := Open(t.TempDir()+"/s", small())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	shortSteps(db, 1)
	if err := db.Crawl().(crawldb.BulkStore).UpdateAll(t.Context(), counting(0, 1, nil)); err != nil {
		t.Fatal(err)
	}
	m := db.db.Metrics()
	if m.WAL.BytesIn > 2000 || m.Ingest.Count < 2 {
		t.Errorf("%d bytes were logged, and %d times tables were taken", m.WAL.BytesIn, m.Ingest.Count)
	}
	// And what is small is.
	shortSteps(db, 1<<30)
	if err := db.Crawl().(crawldb.BulkStore).UpdateAll(t.Context(), counting(countBatches, 2, nil)); err != nil {
		t.Fatal(err)
	}
	if after := db.db.Metrics(); after.Ingest.Count != m.Ingest.Count || after.WAL.BytesIn == m.WAL.BytesIn {
		t.Error("a small UpdateAll made tables")
	}
	if n := checkCounted(t, db); n != 2*countBatches {
		t.Error(n)
	}
}

// TestCloseWaitsForNoSequence closes the store while a sequence of batches takes its
// time.
func TestCloseWaitsForNoSequence(t *testing.T) {
	db, err := Open(t.TempDir()+"/s", small())
	if err != nil {
		t.Fatal(err)
	}
	shortSteps(db, 1)
	err = db.Crawl().(crawldb.BulkStore).UpdateAll(context.Background(), counting(0, 1, func(n int) {
		if n == 10 {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}
	}))
	if !errors.Is(err, crawldb.ErrClosed) {
		t.Errorf("UpdateAll of a store closed meanwhile: %v", err)
	}
}

// TestTwoStoresWriteTablesAtOnce lets the link db make tables, and batches between
// them, while UpdateAll makes its own.
func TestTwoStoresWriteTablesAtOnce(t *testing.T) {
	db, err := Open(t.TempDir(), small())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	shortSteps(db, 1)
	db.links.leastTable = 1 << 10
	const merges = 40
	var done sync.WaitGroup
	done.Go(func() {
		for n := range merges {
			var entries []linkdb.Entry
			for i := range 1 + n%2*40 {
				entries = append(entries, linkdb.Entry{URL: fmt.Sprintf("http://h%02d.example/", i), Inlinks: []linkdb.Inlink{{From: fmt.Sprintf("http://from.example/%d", n)}}})
			}
			if err := db.Links().Merge(t.Context(), entries, 0); err != nil {
				t.Error(err)
			}
		}
	})
	if err := crawldb.UpdateAll(t.Context(), db.Crawl(), counting(0, 5, nil)); err != nil {
		t.Error(err)
	}
	done.Wait()
	if n := checkCounted(t, db); n != 5*countBatches {
		t.Errorf("%d batches", n)
	}
	for i, want := range []int{merges, merges / 2} {
		links, err := db.Links().Get(t.Context(), fmt.Sprintf("http://h%02d.example/", i))
		if err != nil || len(links) != want {
			t.Errorf("%d links, want %d; %v", len(links), want, err)
		}
	}
}

// The engine compacts the sooner the more tables there are, so a Merge is one, however much
// it adds. One that only limits what is not there is none.
func TestMergeIsOneTable(t *testing.T) {
	db, err := Open(t.TempDir(), small())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	entries := make([]linkdb.Entry, 20_000)
	limits := make([]linkdb.Entry, len(entries))
	anchor := strings.Repeat("anchor ", 150)
	for i := range entries {
		entries[i] = linkdb.Entry{URL: fmt.Sprintf("http://h.example/%06d", i), Inlinks: []linkdb.Inlink{{From: "http://from.example/", Anchor: anchor}}}
		limits[i].URL = fmt.Sprintf("http://h.example/-%06d%s", i, anchor)
	}
	ingested := func() uint64 {
		m := db.db.Metrics()
		total := m.Total()
		return total.TablesIngested
	}
	for _, step := range []struct {
		entries []linkdb.Entry
		want    uint64
	}{{limits, 0}, {entries, 1}, {entries[:10], 1}} {
		if err := db.Links().Merge(t.Context(), step.entries, 1); err != nil {
			t.Fatal(err)
		}
		if n := ingested(); n != step.want {
			t.Errorf("%d tables, want %d", n, step.want)
		}
	}
	if links, err := db.Links().Get(t.Context(), entries[19_999].URL); err != nil || len(links) != 1 || links[0].Anchor != anchor {
		t.Errorf("%d links, %v", len(links), err)
	}
}

// Tables each of which overlaps the next make level 0 deep, but give the engine no reason to
// compact it: nothing may wait for that.
func TestManySublevels(t *testing.T) {
	db, err := Open(t.TempDir(), small())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.crawl.bulkLeast = 1
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // a wait would last forever
	defer cancel()
	deep := false
	for i := range 3 * maxSublevels {
		b := crawldb.Batch{URLs: []string{fmt.Sprintf("http://a.example/%03d", i), fmt.Sprintf("http://a.example/%03d", i+1)}}
		b.Next = func(int, *crawldb.Datum) (*crawldb.Datum, error) { return &crawldb.Datum{Retries: i}, nil }
		db.written.Store(lookEvery)
		if err := crawldb.UpdateAll(ctx, db.Crawl(), func(yield func(crawldb.Batch, error) bool) { yield(b, nil) }); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		m := db.db.Metrics()
		deep = deep || m.Levels[0].Sublevels >= maxSublevels
	}
	if !deep {
		t.Error("level 0 was never deep")
	}
}

// The engine compacts nothing while the steps of an UpdateAll come, unless they are too
// many, and does when they have come.
func TestCompactionsWaitForUpdateAll(t *testing.T) {
	for _, passes := range []int{4, 20} {
		db, err := Open(t.TempDir(), small())
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		shortSteps(db, 1)
		var begun, deepest int64
		err = db.Crawl().(crawldb.BulkStore).UpdateAll(t.Context(), counting(0, passes, func(int) {
			m := db.db.Metrics()
			begun = m.Compact.Count + m.Compact.NumInProgress
			deepest = max(deepest, int64(m.Levels[0].Sublevels))
		}))
		if err != nil {
			t.Fatal(err)
		}
		if many := passes == 20; many != (begun > 0) || many && deepest > maxSublevels+heldSublevels || deepest < maxSublevels {
			t.Errorf("%d passes: %d compactions were begun, level 0 was %d deep", passes, begun, deepest)
		}
		if n := checkCounted(t, db); n != passes*countBatches {
			t.Errorf("%d batches", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := db.Compact(ctx); err != nil {
			t.Errorf("a compaction after it: %v", err)
		}
		if m := db.db.Metrics(); m.Levels[0].TablesCount > 0 {
			t.Errorf("%d tables in level 0 when all was compacted", m.Levels[0].TablesCount)
		}
	}
}

// A Compact that was given up while the engine may not compact does not start when it may, and
// does no harm.
func TestCompactGivenUpWhileHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := Open(memPath, inMemory(small(), vfs.NewMem()))
		if err != nil {
			t.Fatal(err)
		}
		db.crawl.bulkLeast = 1
		// Too few tables come for the engine to compact on its own, and the last step is a batch,
		// which makes none.
		err = db.Crawl().(crawldb.BulkStore).UpdateAll(t.Context(), func(yield func(crawldb.Batch, error) bool) {
			for n := range 3 { // each has the step of the one before written
				if !yield(aside(n), nil) {
					return
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			compacted := make(chan error)
			go func() { compacted <- db.Compact(ctx) }()
			synctest.Wait()
			cancel()
			if err := <-compacted; !errors.Is(err, context.Canceled) {
				t.Errorf("Compact: %v", err)
			}
			db.crawl.bulkLeast = 1 << 30
		})
		if err != nil {
			t.Error(err)
		}
		if err := db.Compact(t.Context()); err != nil {
			t.Errorf("another Compact: %v", err)
		}
		if m := db.db.Metrics(); m.Levels[0].TablesCount > 0 {
			t.Errorf("%d tables in level 0 when all was compacted", m.Levels[0].TablesCount)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
}
