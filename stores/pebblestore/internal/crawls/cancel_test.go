package crawls

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/segment"
)

var cancels = flag.Int("cancels", 0, "at how many instants TestCancel ends a crawl; 0 is a few, and 300 with the build tag exhaustive")

// TestCancel ends crawls at random instants, by their context or by closing the stores under
// them, after some time or in the middle of a step of a store, in inject, generate, fetch,
// update, invert, dedup, and everything else that a run does. The run returns within two seconds
// (if the store was closed: at its next use), no visit is under way then, and a crawl that
// continues has the crawl db and the link db of an undisturbed one: no lease is left, and nothing
// is lost or counted twice.
func TestCancel(t *testing.T) {
	want := *cancels
	if want <= 0 {
		want = testlevel.Pick(25, 300)
	}
	fds := openFiles(t)
	n, slowest := 0, time.Duration(0)
	for seed := uint64(0); n < want; seed++ {
		if *onlySeed >= 0 && seed != uint64(*onlySeed) {
			if seed > uint64(*onlySeed) {
				break
			}
			continue
		}
		kind := engineKind(seed % uint64(engineKinds))
		calm := crawlDump(t, seed, kind, nil)
		c := &cancelling{rnd: rand.New(rand.NewPCG(seed, 6))}
		got := crawlDump(t, seed, kind, c)
		if got != calm {
			t.Errorf("%s\n%v: after %d ends it differs:\n%s", newWorld(seed).ways, kind, c.n, difference(got, calm))
		}
		n += c.n
		slowest = max(slowest, c.slowest)
	}
	if slowest > 2*time.Second {
		t.Errorf("the slowest end took %v", slowest)
	}
	if now := openFiles(t); now > fds {
		t.Errorf("%d files are open, before it were %d", now, fds)
	}
	t.Logf("%d ends, the slowest after %v", n, slowest)
}

func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if errors.Is(err, os.ErrNotExist) { // not Linux
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// cancelling ends runs.
type cancelling struct {
	rnd     *rand.Rand
	n       int
	slowest time.Duration
}

// crawlDump is the resulting crawl db and link db of a world.
func crawlDump(t *testing.T, seed uint64, kind engineKind, c *cancelling) string {
	t.Helper()
	dir := t.TempDir() + "/db"
	var b strings.Builder
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(seed)
		w.vary(variant{threads: 1 + int(seed%9), seed: seed + 1})
		w.o.Run.Rounds, w.o.Retention.Segments = 0, 0
		w.o.Generate.HostLimit, w.o.Generate.HostDelay = nil, nil // of requests that were cut short
		// Of several segments that are made at once the first may be there when the
		// others are not; what was for these is selected again, after what they bring.
		w.o.Generate.Segments, w.o.Generate.Ahead = 0, 0
		w.seedOnce = w.o.Update.Sweep.PurgeGone
		h := home{kind: kind, dir: dir}
		if err := h.open(); err != nil {
			t.Fatal(err)
		}
		for i := range w.runs {
			if i > 0 {
				if err := w.pass(&h, w.days[i-1]); err != nil {
					t.Fatal(err)
				}
			}
			w.seeded = false
			whole := false
			for again := true; again && !whole; {
				again, whole = c.disturb(t, w, &h)
			}
			if whole { // once more would be another run
				continue
			}
			if err := w.run(t.Context(), &h); err != nil {
				t.Fatalf("%s: %v", w.ways, err)
			}
		}
		if err := dumpCrawl(t.Context(), h.stores, &b); err != nil {
			t.Error(err)
		}
		if err := h.close(); err != nil {
			t.Error(err)
		}
	})
	return b.String()
}

// disturb does a run that is ended before it ends, and reports whether there may be
// another, and whether it came to its end after all.
func (c *cancelling) disturb(t *testing.T, w *world, h *home) (again, whole bool) {
	if c == nil || c.n > 0 && c.rnd.IntN(9) == 0 {
		return false, false
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var once sync.Once
	var ended time.Time
	var closing sync.WaitGroup
	var closed error
	var took time.Duration
	byClose := h.kind != mem && c.rnd.IntN(4) == 0
	end := func() {
		once.Do(func() {
			if ended = time.Now(); !byClose {
				cancel()
				return
			}
			// Close waits for the calls that are inside.
			closing.Go(func() {
				closed = h.close()
				took = time.Since(ended)
			})
		})
	}
	cut := &cutter{}
	stores := h.stores
	if c.rnd.IntN(3) == 0 {
		timer := time.AfterFunc(time.Duration(c.rnd.ExpFloat64()*3e9), end)
		defer timer.Stop()
	} else {
		cut.after(1+int(c.rnd.ExpFloat64()*[]float64{30, 300, 1500}[c.rnd.IntN(3)]), end)
	}
	h.stores = cut.stores(stores)
	err := w.run(ctx, h)
	h.stores = stores
	cut.after(0, nil)
	once.Do(func() {}) // from here on it is too late
	was := !ended.IsZero()
	closing.Wait()
	if was && !byClose { // without a store a run ends with the visit that is under way
		took = time.Since(ended)
	}
	if byClose && was {
		if closed != nil {
			t.Errorf("Close: %v", closed)
		}
		if err := h.open(); err != nil {
			t.Fatal(err)
		}
	}
	if w.inFlight > 0 {
		t.Errorf("%s: %d visits are under way", w.ways, w.inFlight)
	}
	if !was {
		if err != nil {
			t.Errorf("%s: %v", w.ways, err)
		}
		return false, true
	}
	c.n++
	c.slowest = max(c.slowest, took)
	if err != nil && !errors.Is(err, context.Canceled) && !(byClose && isClosed(err)) {
		t.Errorf("%s: ended by close: %v: %v", w.ways, byClose, err)
	}
	return true, err == nil
}

func isClosed(err error) bool {
	for _, closed := range []error{crawldb.ErrClosed, hostdb.ErrClosed, linkdb.ErrClosed, segment.ErrClosed} {
		if errors.Is(err, closed) {
			return true
		}
	}
	return false
}
