package pebblestore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/recrawl/recrawl/crawldb"
)

// passed returns a store in memory in which all records of counting were counted so
// often, the last time so that much is to be rewritten, which has not begun.
func passed(t *testing.T, fs vfs.FS, passes int) *DB {
	t.Helper()
	o := inMemory(small(), fs)
	o.MinFree = -1
	db, err := Open(memPath, o)
	if err != nil {
		t.Fatal(err)
	}
	shortSteps(db, 1)
	db.crawl.rewriting.running = true // as if one was: none begins by itself, nor a compaction
	db.pacer.rewriting(true)
	if err := db.Crawl().(crawldb.BulkStore).UpdateAll(t.Context(), counting(0, passes, nil)); err != nil {
		t.Fatal(err)
	}
	return db
}

// above counts the tables above the last level that have rows of a table.
func above(t *testing.T, db *DB, of table) (n int) {
	t.Helper()
	levels, err := db.db.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range levels[:len(levels)-1] {
		for _, info := range level {
			if table(info.Smallest.UserKey[0]) <= of && of <= table(info.Largest.UserKey[0]) {
				n++
			}
		}
	}
	return n
}

func left(t *testing.T, db *DB) (names []string) {
	t.Helper()
	all, err := db.under.List(db.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if strings.HasPrefix(name, bulkPrefix) {
			names = append(names, name)
		}
	}
	return names
}

// What an update of all records has left above the last level is brought there; what one
// of a few has left is not worth it.
func TestRewriting(t *testing.T) {
	db := passed(t, vfs.NewMem(), 3)
	defer db.Close()
	for _, of := range []table{crawlTable, readyTable, wheelTable} {
		if above(t, db, of) == 0 {
			t.Fatalf("nothing of %q lies above the last level", byte(of))
		}
	}
	before := db.db.Metrics()
	db.tables.RLock()
	if err := db.crawl.rewrite(t.Context()); !errors.Is(err, errPutOff) {
		t.Errorf("a rewriting under a snapshot: %v", err)
	}
	db.tables.RUnlock()
	if names := left(t, db); len(names) > 0 {
		t.Errorf("a rewriting that was put off has left %q", names)
	}
	if err := db.crawl.rewrite(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := db.db.Metrics()
	if a, b := after.Ingest.Count, before.Ingest.Count; a < b+6 {
		t.Errorf("%d spans were rewritten", a-b)
	}
	for _, of := range []table{crawlTable, readyTable, wheelTable} {
		if n := above(t, db, of); n > 0 {
			t.Errorf("%d tables of %q lie above the last level", n, byte(of))
		}
	}
	if n := checkCounted(t, db); n != 3*countBatches {
		t.Error(n)
	}
	db.crawl.rewriteStep = 1 << 20
	few := countingBatch(3*countBatches, 500, 503)
	few.Next = func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
		d := *old
		d.Priority = -d.Priority - 1
		return &d, nil
	}
	if err := db.Crawl().(crawldb.BulkStore).UpdateAll(t.Context(), func(yield func(crawldb.Batch, error) bool) { yield(few, nil) }); err != nil {
		t.Fatal(err)
	}
	if above(t, db, crawlTable) == 0 {
		t.Error("nothing lies above the last level")
	}
	if err := db.crawl.rewrite(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m := db.db.Metrics(); m.Levels[6].TableBytesIngested > after.Levels[6].TableBytesIngested {
		t.Error("what changed here and there was rewritten")
	}
	checkCounted(t, db)
}

// Where the disk has no room for both what is old and what is new nothing is rewritten.
func TestNoRoomToRewrite(t *testing.T) {
	db := passed(t, vfs.NewMem(), 2)
	defer db.Close()
	db.space.min = 1 << 10
	db.space.fs = fewLeft{db.space.fs, uint64(db.crawl.rewriteStep)}
	if err := db.crawl.rewrite(t.Context()); !errors.Is(err, errPutOff) {
		t.Errorf("with little room: %v", err)
	}
	db.space.fs = fewLeft{db.space.fs, 1 << 30}
	if err := db.crawl.rewrite(t.Context()); err != nil {
		t.Errorf("with room: %v", err)
	}
	checkCounted(t, db)
}

type fewLeft struct {
	vfs.FS
	bytes uint64
}

func (f fewLeft) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: f.bytes, TotalBytes: 1 << 40}, nil
}

// Iterators see what they saw when tables are put in the place of those they read.
func TestIteratorsAcrossARewriting(t *testing.T) {
	db := passed(t, vfs.NewMem(), 2)
	defer db.Close()
	read := func(it *pebble.Iterator) (rows []string) {
		for ok := it.Valid(); ok; ok = it.Next() {
			rows = append(rows, fmt.Sprintf("%q %q", it.Key(), it.Value()))
		}
		if err := it.Error(); err != nil {
			t.Error(err)
		}
		return rows
	}
	open := func() *pebble.Iterator {
		it, err := db.db.NewIter(nil)
		if err != nil {
			t.Fatal(err)
		}
		it.First()
		return it
	}
	old, across := open(), open()
	defer old.Close()
	defer across.Close()
	want := read(old)
	for range len(want) / 2 {
		across.Next()
	}
	if err := db.crawl.rewrite(t.Context()); err != nil {
		t.Fatal(err)
	}
	fresh := open()
	defer fresh.Close()
	for which, c := range map[string]struct{ got, want []string }{"across": {read(across), want[len(want)/2:]}, "behind it": {read(fresh), want}} {
		if strings.Join(c.got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s: %d rows, want %d as they were", which, len(c.got), len(c.want))
		}
	}
}

// A selection, or a scan, is the same when tables are put in the place of others while it is
// under way.
func TestSelectionAcrossARewriting(t *testing.T) {
	db := passed(t, vfs.NewMem(), 3)
	defer db.Close()
	selection := func(at int, do func()) (all []string) {
		for c, err := range crawldb.Due(t.Context(), db.Crawl(), crawldb.DueQuery{Now: dueEpoch.AddDate(0, 0, 2)}) {
			if err != nil {
				t.Fatal(err)
			}
			if len(all) == at {
				do()
			}
			all = append(all, fmt.Sprintf("%s %v", c.URL, c.Priority))
		}
		return all
	}
	want := selection(0, func() {})
	if len(want) < 300 {
		t.Fatalf("only %d are due", len(want))
	}
	before := db.db.Metrics().Ingest.Count
	got := selection(len(want)/2, func() {
		if err := db.crawl.rewrite(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	if db.db.Metrics().Ingest.Count == before {
		t.Error("nothing was rewritten")
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%d were selected, want %d as without", len(got), len(want))
	}
}

// TestPowerLossWhileRewriting lets the power go before each change of the disk under a
// rewriting, and each fail: nothing is lost, and the next opening goes on.
func TestPowerLossWhileRewriting(t *testing.T) {
	for at, through := int64(0), false; !through; at++ {
		if at > 60 { // the many appends to tables are alike
			at += at / 20
		}
		mem := vfs.NewCrashableMem()
		var crashed *vfs.MemFS
		r := rand.New(rand.NewPCG(uint64(at), 5))
		power := &onWrite{at: at, do: func() { crashed = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r}) }}
		broken := &breaker{at: 1 << 40, once: true, cause: syscall.EIO, picks: writes}
		db := passed(t, errorfs.Wrap(errorfs.Wrap(mem, broken), power), 2)
		power.armed.Store(true)
		if at%2 == 1 {
			broken.at = broken.n.Load() + at
		}
		err := db.crawl.rewrite(t.Context())
		failed := broken.hits.Load() > 0
		if failed != errors.Is(err, ErrFailed) || !failed && err != nil {
			t.Errorf("change %d: %v", at, err)
		}
		if through = crashed == nil && !failed; crashed == nil {
			power.do()
		}
		db.fence.fail(errCrash)
		_ = db.Close()
		for _, fs := range []vfs.FS{crashed, mem} {
			db, err := Open(memPath, inMemory(small(), fs))
			if err != nil {
				t.Fatalf("change %d: %v", at, err)
			}
			if n := checkCounted(t, db); n != 2*countBatches {
				t.Errorf("change %d: the mark is %d", at, n)
			}
			if names := left(t, db); len(names) > 0 {
				t.Errorf("change %d: %q were left", at, names)
			}
			shortSteps(db, 1)
			if err := db.Crawl().(crawldb.BulkStore).UpdateAll(t.Context(), counting(2*countBatches, 3, nil)); err != nil {
				t.Errorf("change %d: %v", at, err)
			}
			if n := checkCounted(t, db); n != 3*countBatches {
				t.Errorf("change %d: the mark is %d behind another pass", at, n)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}
		if through {
			t.Logf("%d changes of the disk", at)
			if at < 30 {
				t.Error("too few")
			}
		}
	}
}

// TestRewritingBesideEverything rewrites while others read, select, update here and
// there, check the index and compact.
func TestRewritingBesideEverything(t *testing.T) {
	db, err := Open(t.TempDir(), small())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	shortSteps(db, 1)
	const passes = 5
	if err := crawldb.UpdateAll(t.Context(), db.Crawl(), counting(0, 1, nil)); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var others sync.WaitGroup
	beside := func(what string, do func(n int) error) {
		others.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := do(n); err != nil {
					t.Errorf("%s: %v", what, err)
					return
				}
			}
		})
	}
	beside("scan", func(int) error {
		records := 0
		for d, err := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
			if err != nil {
				return err
			}
			if d.URL != asideURL {
				records++
			}
		}
		if records != countBatches*countEach {
			return fmt.Errorf("%d records", records)
		}
		return nil
	})
	beside("selection", func(int) error {
		for _, err := range crawldb.Due(t.Context(), db.Crawl(), crawldb.DueQuery{Now: dueEpoch.AddDate(1, 0, 0)}) {
			if err != nil {
				return err
			}
		}
		return nil
	})
	beside("update", func(n int) error { return db.Crawl().Update(t.Context(), aside(n)) })
	beside("check", func(int) error { return db.CheckIndex(t.Context()) })
	beside("rewriting", func(int) error {
		if err := db.crawl.rewrite(t.Context()); !errors.Is(err, errPutOff) {
			return err
		}
		return nil
	})
	for n := range passes - 1 {
		if err := crawldb.UpdateAll(t.Context(), db.Crawl(), counting((n+1)*countBatches, n+2, nil)); err != nil {
			t.Error(err)
		}
		if n%2 == 1 {
			if err := db.Compact(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	close(stop)
	others.Wait()
	if n := checkCounted(t, db); n != passes*countBatches {
		t.Errorf("%d batches", n)
	}
	if db.db.Metrics().Levels[6].TableBytesIngested == 0 {
		t.Error("nothing was rewritten")
	}
}

// TestSalvageOfRewrittenSpans: what lies in the part of a table in whose place others were
// put is not what the store has, as long as the rest of it counts.
func TestSalvageOfRewrittenSpans(t *testing.T) {
	dir := t.TempDir() + "/s"
	db, err := Open(dir, small())
	if err != nil {
		t.Fatal(err)
	}
	shortSteps(db, 1<<30)
	update := func(b crawldb.Batch) {
		t.Helper()
		if err := db.Crawl().Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	update(countingBatch(1, 0, 1200))
	if err := db.flush(); err != nil {
		t.Fatal(err)
	}
	gone := countingBatch(1, 300, 400)
	gone.Next = func(int, *crawldb.Datum) (*crawldb.Datum, error) { return nil, nil }
	update(gone)
	// From within the table to within it.
	from, to := crawldb.AppendKey([]byte{byte(crawlTable)}, gone.URLs[0]), crawldb.AppendKey([]byte{byte(crawlTable)}, countingBatch(1, 800, 801).URLs[0])
	db.crawl.rewriteStep, db.crawl.lastTable = 1<<20, 1<<20
	if _, more, err := db.crawl.rewriteSpan(t.Context(), span{from, to}); err != nil || more {
		t.Fatal(more, err)
	}
	levels, err := db.db.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	virtual := 0
	for _, level := range levels {
		for _, info := range level {
			if info.Virtual {
				virtual++
			}
		}
	}
	if virtual < 2 {
		t.Fatalf("%d parts of tables are left", virtual)
	}
	want := crawled(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	var losses []Loss
	if _, err := Salvage(t.Context(), dir, dir+".new", SalvageOptions{Lost: func(l Loss) { losses = append(losses, l) }}); err != nil || len(losses) > 0 {
		t.Fatal(err, losses)
	}
	if db, err = Open(dir+".new", Options{}); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if got := crawled(t, db); got != want {
		t.Errorf("salvaged %d bytes of records, want %d", len(got), len(want))
	}
}

func crawled(t *testing.T, db *DB) string {
	t.Helper()
	var b strings.Builder
	for d, err := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%+v\n", d)
	}
	return b.String()
}
