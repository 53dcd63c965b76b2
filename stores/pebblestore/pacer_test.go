package pebblestore

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"
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
func TestPacerForgetsNobody(t *testing.T) {
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
func TestPacerHolds(t *testing.T) {
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
