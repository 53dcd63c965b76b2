package crawls

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// TestBackup makes backups of running crawls: in the middle of a step of a store, with other
// work paused or not, in inject, generate, fetch, update, invert and everything else that a run
// does. The result of the crawl is the same as without; each backup is sound, and continues to
// the same result.
func TestBackup(t *testing.T) {
	want := testlevel.Pick(4, 12)
	n := 0
	for seed := uint64(0); n < want; seed++ {
		calm := crawlDump(t, seed, pebble, nil)
		b := &backups{rnd: rand.New(rand.NewPCG(seed, 8)), dir: t.TempDir()}
		if got := b.crawl(t, seed, -1); got != calm {
			t.Errorf("%s\nafter %d backups it differs:\n%s", newWorld(seed).ways, len(b.made), difference(got, calm))
		}
		for i, m := range b.made {
			if n++; m.moment.IsZero() {
				t.Fatal("its time is unknown")
			}
			_, err := pebblestore.Verify(t.Context(), m.dir, verify.Options{Now: func() time.Time { return m.moment }, Found: func(f verify.Finding) {
				t.Errorf("%s\nbackup %d, %v is not sound: %v", newWorld(seed).ways, i, m, f)
			}})
			if err != nil {
				t.Error(err)
			}
			if got := b.crawl(t, seed, i); got != calm {
				t.Errorf("%s\nbackup %d, %v, goes on to something else:\n%s", newWorld(seed).ways, i, m, difference(got, calm))
			}
		}
	}
	t.Logf("%d backups", n)
}

// backups are made of one crawl.
type backups struct {
	rnd  *rand.Rand
	dir  string
	made []backedUp
}

type backedUp struct {
	dir    string
	run    int // in which it was made
	seeded bool
	moment time.Time
	how    string
}

func (m backedUp) String() string { return fmt.Sprintf("%s in run %d", m.how, m.run) }

// crawl crawls a world and makes backups, or continues from one of them.
func (b *backups) crawl(t *testing.T, seed uint64, from int) string {
	t.Helper()
	var text strings.Builder
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(seed)
		w.vary(variant{threads: 1 + int(seed%9), seed: seed + 1})
		// As in TestCancel.
		w.o.Run.Rounds, w.o.Retention.Segments = 0, 0
		w.o.Generate.HostLimit, w.o.Generate.HostDelay = nil, nil
		w.o.Generate.Segments, w.o.Generate.Ahead = 0, 0
		w.seedOnce = w.o.Update.Sweep.PurgeGone
		h, first := home{kind: pebble, dir: b.dir + "/crawl"}, 0
		if from >= 0 {
			h.dir, first = b.made[from].dir, b.made[from].run
			for _, days := range w.days[:first] {
				time.Sleep(time.Duration(days) * 24 * time.Hour)
				w.clock.Advance(time.Duration(days) * 24 * time.Hour)
			}
			w.seeded = b.made[from].seeded
		}
		if err := h.open(); err != nil {
			t.Fatal(err)
		}
		for i := first; i < w.runs; i++ {
			if i > first {
				if err := w.pass(&h, w.days[i-1]); err != nil {
					t.Fatal(err)
				}
				w.seeded = false
			}
			var err error
			if from >= 0 {
				err = w.run(t.Context(), &h)
			} else {
				err = b.during(t, w, &h, i)
			}
			if err != nil {
				t.Fatalf("%s: %v", w.ways, err)
			}
		}
		if err := dumpCrawl(t.Context(), h.stores, &text); err != nil {
			t.Error(err)
		}
		if err := h.close(); err != nil {
			t.Error(err)
		}
	})
	return text.String()
}

// during does a run and makes backups meanwhile.
func (b *backups) during(t *testing.T, w *world, h *home, run int) error {
	cut, stores := &cutter{}, h.stores
	defer func() { h.stores = stores }()
	h.stores = cut.stores(stores)
	var beside sync.WaitGroup
	defer beside.Wait()
	begin := func() {
		m := backedUp{dir: fmt.Sprintf("%s/%d", b.dir, len(b.made)), run: run, seeded: w.seeded, moment: w.clock.Now(), how: "beside it"}
		copies := len(b.made)%2 == 0
		do := func() {
			if _, err := h.db.Backup(context.Background(), m.dir, pebblestore.BackupOptions{Copy: copies}); err != nil {
				t.Errorf("%v: %v", m, err)
			}
		}
		if b.rnd.IntN(2) == 0 {
			m.how = "in the midst of a step"
			do()
		} else {
			beside.Go(do)
		}
		b.made = append(b.made, m)
	}
	cut.after(1+int(b.rnd.ExpFloat64()*[]float64{30, 300, 1500}[b.rnd.IntN(3)]), begin)
	return w.run(t.Context(), h)
}
