package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/recrawl/recrawl/crawldb"
)

// An engine is what a pacer sees of one that may run one compaction at a time: it asks
// about the first, and while that waits it asks no more, as pebble does.
type engine struct {
	pacer   *pacer
	wanted  int
	waiting bool
	ran     int
	between func() // at the end of GetWaitingCompaction, when its mutex is free
}

func (e *engine) GetAllowedWithoutPermission() int { return 1 }

func (e *engine) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	waiting := e.waiting
	if f := e.between; f != nil {
		e.between = nil
		f()
	}
	return waiting, pebble.WaitingCompaction{}
}

func (e *engine) Schedule(pebble.CompactionGrantHandle) bool {
	if !e.waiting || e.wanted == 0 {
		e.waiting = false
		return false
	}
	e.wanted--
	e.ran++
	return true
}

// want is what pebble does when it finds something to compact.
func (e *engine) want() {
	e.wanted++
	if e.waiting {
		return
	}
	if ok, _ := e.pacer.TrySchedule(); !ok {
		e.waiting = true
		return
	}
	e.wanted--
	e.ran++
}

// A request for a compaction between the engine's answer that nothing waits and the end of the
// grant that asked is refused, and only that grant can make it run: otherwise the engine waits
// forever, and so does everything that waits for the engine.
func TestRefusedCompactionRunsAfterTheGrant(t *testing.T) {
	for _, c := range []struct {
		name  string
		after func(p *pacer)
	}{
		{"the end of a compaction", func(p *pacer) {
			if ok, h := p.TrySchedule(); ok {
				h.Done()
			} else {
				t.Error("refused although nothing runs")
			}
		}},
		{"the end of a hold", func(p *pacer) { p.hold(true); p.hold(false) }},
		{"more being allowed", func(p *pacer) {
			p.UpdateGetAllowedWithoutPermission()
			p.grants.Wait()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := new(pacer)
			e := &engine{pacer: p}
			p.Register(1, e)
			e.between = e.want
			c.after(p)
			if e.ran != 1 {
				t.Fatalf("%d compactions ran, want 1", e.ran)
			}
			e.want()
			if e.ran != 1 {
				t.Fatal("two ran at once")
			}
			p.Done()
			if e.ran != 2 {
				t.Fatalf("%d compactions ran, want 2", e.ran)
			}
			p.Done()
			p.Unregister()
			if p.running != 0 {
				t.Fatalf("%d run at the end", p.running)
			}
		})
	}
}

// While it is held nothing is begun, and what was asked about then is begun at the end.
func TestHeldPacerStartsNoCompaction(t *testing.T) {
	p := new(pacer)
	e := &engine{pacer: p}
	p.hold(true)
	p.Register(1, e)
	e.want()
	e.want()
	p.UpdateGetAllowedWithoutPermission()
	p.grants.Wait()
	if e.ran != 0 {
		t.Fatalf("%d compactions ran while held", e.ran)
	}
	p.hold(false)
	if e.ran != 1 {
		t.Fatalf("%d compactions ran, want 1", e.ran)
	}
	p.hold(true)
	p.Done()
	if e.ran != 1 {
		t.Fatal("one was begun while held")
	}
	p.hold(false)
	if e.ran != 2 {
		t.Fatalf("%d compactions ran, want 2", e.ran)
	}
	p.Done()
	p.Unregister()
	e.want()
	p.hold(true)
	p.hold(false)
	if e.ran != 2 {
		t.Fatal("one was begun when closed")
	}
}

// After a failure the engine, which would try again at once, has to wait: twice as long each
// time, unless somebody waits for it, and not once it has been closed.
func TestPacerRestsAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(pacer)
		e := &engine{pacer: p}
		p.Register(1, e)
		fails := func() { // one more compaction, which is wanted again
			e.wanted++
			e.waiting = true
			p.rest()
			p.Done()
		}
		ran := func() int {
			p.mu.Lock()
			defer p.mu.Unlock()
			return e.ran
		}
		e.want()
		if ran() != 1 {
			t.Fatal("the first one does not run")
		}
		for i, pause := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
			before := ran()
			fails()
			time.Sleep(pause*time.Second - time.Millisecond)
			if synctest.Wait(); ran() != before {
				t.Errorf("%d. is tried again before %d s", i, pause)
			}
			time.Sleep(time.Millisecond)
			if synctest.Wait(); ran() != before+1 {
				t.Errorf("%d. is not tried again after %d s", i, pause)
			}
		}
		before := ran()
		fails()
		if p.hurry(); ran() != before+1 {
			t.Error("somebody waits, and it is not tried again")
		}
		p.succeeded()
		fails()
		time.Sleep(leastRest)
		if synctest.Wait(); ran() != before+2 {
			t.Error("it still rests for long after a success")
		}
		fails()
		p.Unregister()
		p.rest()
		time.Sleep(2 * mostRest)
		if synctest.Wait(); ran() != before+2 {
			t.Error("it runs after the end")
		}
	})
}

// A table that cannot be read does not keep the engine busy, nor those who write or ask for
// a compaction.
func TestUnreadableTablesAreNotTriedAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &breaker{at: 1 << 62, cause: syscall.EIO, picks: func(op errorfs.Op) bool { return reads(op) && strings.HasSuffix(op.Path, ".sst") }}
		o := inMemory(small(), errorfs.Wrap(vfs.NewMem(), b))
		var failures atomic.Int64
		o.Logger = slog.New(counts{slog.DiscardHandler, &failures})
		db, err := Open(memPath, o)
		if err != nil {
			t.Fatal(err)
		}
		// The engine only leaves alone for a while what it cannot read below level 0.
		put := func(i int) {
			b := crawldb.Batch{Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) {
				return &crawldb.Datum{Status: crawldb.Unfetched, ETag: strings.Repeat("e", 4000)}, nil
			}}
			for j := range 30 {
				b.URLs = append(b.URLs, fmt.Sprintf("http://new.example/%06d", 1000*j+i))
			}
			if err := db.Crawl().Update(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		db.pacer.hold(true)
		for i := range 40 {
			put(i)
		}
		b.at = b.n.Load()
		db.pacer.hold(false)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := failures.Load(); n == 0 || n > 20 {
			t.Errorf("%d compactions failed in ten minutes", n)
		}
		if err := db.Compact(t.Context()); !errors.Is(err, syscall.EIO) {
			t.Errorf("Compact: %v", err)
		}
		synctest.Wait() // or a compaction that has begun may still fail, which Compact would return
		b.at = 1 << 62
		if err := db.Compact(t.Context()); err != nil {
			t.Errorf("Compact once all can be read: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
}

// counts counts errors.
type counts struct {
	slog.Handler
	n *atomic.Int64
}

func (c counts) Enabled(context.Context, slog.Level) bool { return true }

func (c counts) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError && strings.Contains(r.Message, "background work") {
		c.n.Add(1)
	}
	return nil
}
