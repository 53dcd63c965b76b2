package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// garbage is what may lie about before it is collected, however little is alive.
//
// Go lets a heap grow to twice what is alive, which here is often little: the cache of
// the engine lies outside of it, and records come and go. Then it would collect every
// few megabytes, and cost a quarter of a scan. Where more than this is alive it
// collects as it always does: a percentage for all takes the most memory where the most
// is in use.
const garbage = 32 << 20

const (
	// usual is Go's percentage, and least what the heap grows to with that at the least;
	// with another it is so much more or less.
	usual = 100
	least = 4 << 20
)

// A collector keeps Go's percentage such that the heap has that much room.
type collector struct {
	room  uint64
	alive []metrics.Sample // what the percentage is one of
}

// collectLess begins that for the rest of the process, unless it was told a percentage
// of its own (GOGC). Limits of memory (GOMEMLIMIT, -memory) hold as they do.
func collectLess(room uint64) {
	if was := debug.SetGCPercent(int(usual * room / least)); was != usual {
		debug.SetGCPercent(was)
		return
	}
	c := &collector{room: room, alive: []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}}
	c.await()
}

// await has collected called when the next collection is over.
func (c *collector) await() { runtime.AddCleanup(&struct{ *collector }{c}, (*collector).collected, c) }

func (c *collector) collected() {
	metrics.Read(c.alive)
	var alive uint64
	for _, s := range c.alive {
		if s.Value.Kind() == metrics.KindUint64 { // as long as Go has it
			alive += s.Value.Uint64()
		}
	}
	debug.SetGCPercent(int(max(usual, usual*c.room/max(alive, least))))
	c.await()
}
