package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// heapRoom is how much the heap may grow between two collections, however little is alive.
//
// Go lets the heap grow to twice what is alive. Here that is often little, because the cache
// of the engine is not part of the heap, so Go would collect every few megabytes; this room
// saves 7 % of the CPU time of a crawl. If more than heapRoom is alive, Go collects as by
// default: a higher percentage would take the most memory where the most is in use.
const heapRoom = 32 << 20

const (
	// defaultPercent is Go's percentage, and leastHeap the least size at which it collects with
	// that percentage; with another, this changes in proportion.
	defaultPercent = 100
	leastHeap      = 4 << 20
)

// A collector adjusts Go's percentage after each collection, so that the heap has room.
type collector struct {
	room  uint64
	alive []metrics.Sample // what counts as alive
}

// leaveHeapRoom gives the heap that room for the rest of the process, unless GOGC is set. Limits
// of memory (GOMEMLIMIT, -memory) hold as before.
func leaveHeapRoom(room uint64) {
	if was := debug.SetGCPercent(int(defaultPercent * room / leastHeap)); was != defaultPercent {
		debug.SetGCPercent(was)
		return
	}
	c := &collector{room: room, alive: []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}}
	c.await()
}

// await calls collected after the next collection.
func (c *collector) await() { runtime.AddCleanup(&struct{ *collector }{c}, (*collector).collected, c) }

func (c *collector) collected() {
	metrics.Read(c.alive)
	var alive uint64
	for _, s := range c.alive {
		if s.Value.Kind() == metrics.KindUint64 { // as long as Go has it
			alive += s.Value.Uint64()
		}
	}
	debug.SetGCPercent(int(max(defaultPercent, defaultPercent*c.room/max(alive, leastHeap))))
	c.await()
}
