package pebblestore

import (
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// A pacer decides when the engine may compact: as the engine's own scheduler would,
// except while tables are stacked and more are to come. Each step of an UpdateAll has
// index entries in all levels and hours, so its tables lie above those of the step
// before, and the level below would be rewritten for every few of them. Nor may the
// engine compact while the store is being opened, which would wait for it.
type pacer struct {
	mu      sync.Mutex
	db      pebble.DBForCompaction
	running int
	held    bool
	closed  bool
	refused bool // since the last grant: the engine waits, and does not ask again
	grants  sync.WaitGroup
	// After a failure the engine would try again at once, and for ever if a table cannot
	// be read: the first pause, or that after a success, is leastRest, each other one twice as long.
	resting *time.Timer // or nil
	pause   time.Duration
}

const (
	leastRest = time.Second
	mostRest  = time.Minute
)

var _ pebble.CompactionScheduler = (*pacer)(nil)

// hold keeps compactions from starting, or allows them.
func (p *pacer) hold(held bool) {
	p.mu.Lock()
	before := p.held
	p.held = held
	p.mu.Unlock()
	if before && !held {
		p.grant()
	}
}

// rest is called when a compaction has failed. None starts for a while.
func (p *pacer) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.resting != nil {
		return
	}
	p.pause = min(max(2*p.pause, leastRest), mostRest)
	p.grants.Add(1)
	var timer *time.Timer
	timer = time.AfterFunc(p.pause, func() {
		defer p.grants.Done()
		p.mu.Lock()
		if p.resting == timer {
			p.resting = nil
		}
		p.mu.Unlock()
		p.grant()
	})
	p.resting = timer
}

// rested ends the rest. The mutex must be held.
func (p *pacer) rested() {
	if p.resting != nil && p.resting.Stop() {
		p.grants.Done()
	}
	p.resting = nil
}

// hurry is called when somebody waits for compactions.
func (p *pacer) hurry() {
	p.mu.Lock()
	p.rested()
	p.mu.Unlock()
	p.grant()
}

// succeeded is called when a compaction has not failed.
func (p *pacer) succeeded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pause = 0
}

// Register is called when the engine is open, and Unregister when it is closed:
// nothing is asked of it after that.
func (p *pacer) Register(_ int, db pebble.DBForCompaction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.db = db
}

func (p *pacer) Unregister() {
	p.mu.Lock()
	p.closed = true
	p.rested()
	p.mu.Unlock()
	p.grants.Wait()
}

// TrySchedule asks once for a compaction. After a refusal the engine waits for a grant.
func (p *pacer) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.free() {
		p.refused = true
		return false, nil
	}
	p.running++
	return true, p
}

// free reports whether one more compaction may run. The mutex must be held.
func (p *pacer) free() bool {
	return p.db != nil && !p.closed && !p.held && p.resting == nil && p.running < p.db.GetAllowedWithoutPermission()
}

// UpdateGetAllowedWithoutPermission says that more may be allowed. The engine then
// holds its mutex, which a grant needs.
func (p *pacer) UpdateGetAllowedWithoutPermission() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free() {
		p.grants.Go(p.grant)
	}
}

// Done ends a compaction.
func (p *pacer) Done() {
	p.mu.Lock()
	p.running--
	p.mu.Unlock()
	p.grant()
}

func (p *pacer) Started()                                          {}
func (p *pacer) MeasureCPU(pebble.CompactionGoroutineKind)         {}
func (p *pacer) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// grant lets the engine start what it waits for. It holds no mutex, since the engine
// takes its own, under which it calls TrySchedule.
func (p *pacer) grant() {
	for p.grantOne() {
	}
}

// grantOne reports whether there may be more to grant. While the engine is called, a
// place is reserved for what it may start. A compaction refused because of that
// reservation has to be offered again if the place stays unused: there may be no other
// compaction whose end would do so.
func (p *pacer) grantOne() bool {
	p.mu.Lock()
	if !p.free() {
		p.mu.Unlock()
		return false
	}
	p.running++
	p.refused = false
	p.grants.Add(1)
	p.mu.Unlock()
	defer p.grants.Done()
	waiting, _ := p.db.GetWaitingCompaction()
	if waiting && p.schedule() {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	return p.refused
}

// schedule is Schedule, which panics if a Compact was waiting and has been given up
// meanwhile (2.1.7): the engine has forgotten which grant asked for it, but not what it has
// picked. The panic comes before it starts anything, and makes it forget that as well; a
// second call picks what was refused until then.
func (p *pacer) schedule() bool {
	defer func() {
		if r := recover(); r != nil {
			if err, ok := r.(error); !ok || !strings.HasPrefix(err.Error(), "did not find manual compaction") {
				panic(r)
			}
			p.mu.Lock()
			p.refused = true
			p.mu.Unlock()
		}
	}()
	return p.db.Schedule(p)
}
