// Package heaproom lets the Go heap of a program with a pebblestore grow to a least size before it is
// collected. The cache of the store is not part of the heap, and few objects are alive beside it, so Go
// would collect every few megabytes. It changes a setting of the whole process, which only a program
// should do and no library. Start with [Leave].
package heaproom

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Default is the room of the recrawl command in bytes. It saves 7 % of the CPU time of a crawl.
const Default = 32 << 20

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

// Leave gives the heap that room in bytes between two collections for the rest of the process, unless
// GOGC is set. If more than that is alive, Go collects as by default: a higher percentage would take
// the most memory where the most is in use. Limits of memory (GOMEMLIMIT) hold as before.
func Leave(room uint64) {
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
