package pebblestore

import (
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/stores/memstore"
)

// A linkTrial merges at random, and keeps account of what the link db must have: model, and
// then with the last Merge, which may or may not be there.
type linkTrial struct {
	r           *rand.Rand
	model, then *memstore.Links
	last        func() error // makes model the same as then
}

func newLinkTrial(t *testing.T, r *rand.Rand, has map[string][]linkdb.Inlink) *linkTrial {
	t.Helper()
	tr := &linkTrial{r: r, model: new(memstore.Links), then: new(memstore.Links), last: func() error { return nil }}
	for _, s := range []linkdb.Store{tr.model, tr.then} {
		for url, links := range has {
			if err := s.Merge(t.Context(), []linkdb.Entry{{URL: url, Inlinks: links}}, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	return tr
}

func (tr *linkTrial) step(t *testing.T, db *DB) error {
	t.Helper()
	if tr.r.IntN(12) == 0 {
		return db.Compact(t.Context())
	}
	if err := tr.last(); err != nil {
		t.Fatal(err)
	}
	db.links.leastTable = []int{0, 1 << 20}[tr.r.IntN(2)]
	entries := someLinks(tr.r.IntN(1000), 1+tr.r.IntN(5))
	limit := []int{0, 3, 3, 10}[tr.r.IntN(4)]
	if tr.r.IntN(6) == 0 { // it only limits
		for i := range entries {
			entries[i].Inlinks = nil
		}
	}
	tr.last = func() error {
		tr.last = func() error { return nil }
		return tr.model.Merge(t.Context(), entries, limit)
	}
	if err := tr.then.Merge(t.Context(), entries, limit); err != nil {
		t.Fatal(err)
	}
	return db.Links().Merge(t.Context(), entries, limit)
}

// check compares the store with the account, and returns what it has. The last Merge must be
// there if it was acknowledged.
func (tr *linkTrial) check(t *testing.T, db *DB, acknowledged bool) map[string][]linkdb.Inlink {
	t.Helper()
	got, want := linksOf(t, db.Links()), linksOf(t, tr.then)
	if !reflect.DeepEqual(got, want) && (acknowledged || !reflect.DeepEqual(got, linksOf(t, tr.model))) {
		t.Fatalf("%v\nand not\n%v", got, want)
	}
	return got
}

// oneLink makes one link at a time.
type oneLink struct {
	vfs.FS
	mu *sync.Mutex
}

func (f oneLink) Link(oldname, newname string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.FS.Link(oldname, newname)
}

// TestLayersSurvivePowerLoss makes the machine crash at any write of Merges of all sizes, of
// joins and of Compact.
func TestLayersSurvivePowerLoss(t *testing.T) {
	trials := uint64(testlevel.Pick(20, 3000))
	remains := 0
	for trial := range trials {
		tr := newLinkTrial(t, rand.New(rand.NewPCG(trial, 424)), nil)
		mem := vfs.NewCrashableMem()
		var left atomic.Pointer[vfs.MemFS]
		kept := tr.r.IntN(101)
		w := &onWrite{at: tr.r.Int64N(300)}
		// Link of this file system locks the same mutex twice for reading, so a crash in between,
		// which waits for it, would never end.
		var linking sync.Mutex
		w.do = func() {
			linking.Lock()
			defer linking.Unlock()
			left.Store(mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: kept, RNG: rand.New(rand.NewPCG(trial, 1))}))
		}
		db := layerStore(t, memPath, inMemory(small(), errorfs.Wrap(oneLink{mem, &linking}, w)))
		w.armed.Store(true)
		for left.Load() == nil {
			if err := tr.step(t, db); err != nil {
				t.Fatalf("trial %d: %v", trial, err)
			}
		}
		db.fs.Fail(errCrash) // it leaves no seal
		db.Close()
		t.Log("trial", trial)
		db = layerStore(t, memPath, inMemory(small(), left.Load()))
		tr = newLinkTrial(t, tr.r, tr.check(t, db, false))
		if db.links.hasRemainders.Load() {
			remains++
		}
		for range 8 {
			if err := tr.step(t, db); err != nil {
				t.Fatalf("trial %d: %v", trial, err)
			}
		}
		tr.check(t, db, true)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if t.Logf("%d of %d crashes left remainders", remains, trials); remains == 0 && testlevel.Exhaustive {
		t.Error("none did")
	}
}

// TestLayersSurviveFailures makes any write or read of Merges, joins and Compact fail, once or
// from then on: the store is opened again with all that was acknowledged.
func TestLayersSurviveFailures(t *testing.T) {
	trials := uint64(testlevel.Pick(20, 3000))
	failed := 0
	for trial := range trials {
		tr := newLinkTrial(t, rand.New(rand.NewPCG(trial, 425)), nil)
		mem := vfs.NewMem()
		b := &breaker{at: 1 << 60, once: trial%2 == 0, cause: []error{syscall.EIO, syscall.EROFS}[tr.r.IntN(2)], picks: writes}
		if trial%3 == 0 {
			b.picks = reads
		}
		var armed atomic.Bool
		picks := b.picks
		b.picks = func(op errorfs.Op) bool { return armed.Load() && picks(op) }
		b.at = tr.r.Int64N(300)
		db := layerStore(t, memPath, inMemory(small(), errorfs.Wrap(mem, b)))
		armed.Store(true)
		var err error
		for n := 0; n < 60 && err == nil; n++ {
			err = tr.step(t, db)
		}
		if err != nil {
			failed++
		}
		_ = db.Close()
		t.Log("trial", trial, err)
		db = layerStore(t, memPath, inMemory(small(), mem))
		tr.check(t, db, err == nil)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if t.Logf("%d of %d failed", failed, trials); failed < int(trials)/4 {
		t.Error("few do")
	}
}
