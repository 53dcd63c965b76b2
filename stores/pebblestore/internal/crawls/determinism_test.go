package crawls

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/internal/testlevel"
)

var (
	mixes    = flag.Int("mixes", 0, "how many webs and options TestDeterminism crawls; 0 is a few, and 60 with the build tag exhaustive")
	onlySeed = flag.Int64("seed", -1, "the only seed to run")
)

// seedsOf returns the seeds of a test: some in the short form.
func seedsOf(asked, short int) (seeds []uint64) {
	if *onlySeed >= 0 {
		return []uint64{uint64(*onlySeed)}
	}
	if asked <= 0 {
		asked = short
		if testlevel.Race {
			asked = (short + 3) / 4
		}
	}
	for i := range asked {
		seeds = append(seeds, uint64(i))
	}
	return seeds
}

// TestDeterminism crawls webs by chance under options by chance, each several
// times: with another number of workers, with answers and seeds in another order,
// on another engine. All come to the same, byte for byte.
func TestDeterminism(t *testing.T) {
	for _, seed := range seedsOf(*mixes, testlevel.Pick(4, 60)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			ways := []variant{
				{threads: 8, procs: 2},
				{threads: 1, procs: 2, seed: 1},
				{threads: 2, procs: 1, seed: 2},
				{threads: 64, procs: 2, seed: 3, engine: pebble},
				{threads: 8, procs: 1, seed: 4},
			}
			var want string
			for i, v := range ways {
				got := outcome(t, seed, v)
				if i == 0 {
					want = got
					continue
				}
				if got != want {
					t.Fatalf("%s\n%v differs from %v:\n%s", newWorld(seed).ways, v, ways[0], difference(got, want))
				}
			}
		})
	}
}

// outcome is the result of a variant of a world.
func outcome(t *testing.T, seed uint64, v variant) (text string) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(v.procs))
	dir := t.TempDir() + "/db"
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(seed)
		w.vary(v)
		h := home{kind: v.engine, dir: dir}
		if err := h.open(); err != nil {
			t.Fatal(err)
		}
		if err := w.crawl(t.Context(), &h); err != nil {
			t.Errorf("%s\n%v: %v", w.ways, v, err)
		}
		var err error
		if text, err = dump(t.Context(), h.stores); err != nil {
			t.Error(err)
		}
		if err := h.close(); err != nil {
			t.Error(err)
		}
	})
	return text
}

// crawl does all the runs of a world, undisturbed.
func (w *world) crawl(ctx context.Context, h *home) error {
	for i := range w.runs {
		if i > 0 {
			if err := w.pass(h, w.days[i-1]); err != nil {
				return err
			}
		}
		if err := w.run(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// pass lets days pass, on all clocks; nothing is open meanwhile.
func (w *world) pass(h *home, days int) error {
	if err := h.close(); err != nil {
		return err
	}
	time.Sleep(time.Duration(days) * 24 * time.Hour)
	w.clock.Advance(time.Duration(days) * 24 * time.Hour)
	return h.open()
}

// run injects the seeds and crawls.
func (w *world) run(ctx context.Context, h *home) error {
	c, err := recrawl.New(h.stores, w.o)
	if err != nil {
		return err
	}
	defer c.Close()
	if !w.seedOnce || !w.seeded {
		if err := w.inject(ctx, c); err != nil {
			return err
		}
		w.seeded = true
	}
	_, err = c.Run(ctx)
	return err
}
