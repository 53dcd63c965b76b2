package pebblestore

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

const (
	// tidySteps is how many steps of tables an UpdateAll must have to be tidied behind.
	// Fewer put few tables on any of the last level, and who takes leases for a fetch list
	// should not pay for what lay there before.
	tidySteps = 4
	// What lies above a stretch of the ready table is compacted with it if it has at
	// least a third of its bytes. To compact less would cost nearly as much.
	tidyShare = 3
	// tidyHours is how many steps what becomes due must have: they lie above one another.
	tidyHours = 3
	// tidyLeast is how many bytes must lie above all stretches together.
	tidyLeast = 1 << 20
	// tidyMost is about how many bytes one compaction reads.
	tidyMost = 64 << 20
)

// tidy compacts the ready table, and the tallies beside it, where an UpdateAll, or what
// becomes due, has left much above the last level of the engine, in the background, and
// until the store is closed. Each step of an UpdateAll has a few entries in every level of
// the ready table, half of which delete others. The engine compacts tables that are full of
// deletions at once, each with all that lies below it: a table of the last level is then
// rewritten for every table of every step. Here it is once for all of them. A tour adds up
// all tallies, which costs three times as much while their sums lie in several tables. What
// is not compacted here, because of a crash or because it is little, is the engine's to do.
func (d *DB) tidy(ctx context.Context, v *view) {
	if d.enter(ctx, v) != nil {
		return
	}
	defer d.leave()
	if !d.tidying.TryLock() {
		return
	}
	var ranges []pebble.KeyRange
	if levels, err := d.db.SSTables(); err == nil {
		for _, t := range [...]codec.Table{codec.ReadyTable, codec.TallyTable} {
			ranges = append(ranges, worthwhile(stretches(levels, t), t, d.tidyLeast)...)
		}
	}
	if len(ranges) == 0 {
		d.tidying.Unlock()
		return
	}
	d.ingests.Go(func() {
		defer d.tidying.Unlock()
		failures, ignore := d.trouble.listen()
		defer ignore()
		ctx, stop := d.whileOpen(context.WithoutCancel(ctx), v, failures)
		defer stop()
		// All at once, so that the engine has no time to take up others: it does one
		// after the other, as the pacer allows.
		var all sync.WaitGroup
		for _, r := range ranges {
			all.Go(func() {
				if err := d.db.Compact(ctx, r.Start, r.End, false); err != nil && ctx.Err() == nil {
					d.log.Warn("pebblestore: the index was not compacted", "dir", d.dir, "error", err)
				}
			})
		}
		all.Wait()
	})
}

// A stretch is what one table of the engine's last level covers, up to the next one, or
// all if there is none.
type stretch struct {
	start        []byte
	below, above uint64 // bytes in the last level, and in those above it
	// stuck says that compacting it would take with it what is of other tables: the
	// engine takes from level 0 all that overlaps.
	stuck bool
}

// stretches divides a table of the store.
func stretches(levels [][]pebble.SSTableInfo, t codec.Table) []stretch {
	last := len(levels) - 1
	var s []stretch
	for _, file := range levels[last] {
		if of(file, t) {
			s = append(s, stretch{start: file.Smallest.UserKey, below: file.Size})
		}
	}
	if len(s) == 0 {
		s = []stretch{{}} // all lies above
	}
	s[0].start = t.Key("")
	at := func(key []byte) int {
		i, _ := slices.BinarySearchFunc(s, key, func(s stretch, key []byte) int { return cmp.Or(bytes.Compare(s.start, key), -1) })
		return max(i-1, 0)
	}
	for _, level := range levels[:last] {
		for _, file := range level {
			if !of(file, t) {
				continue
			}
			from, to := at(file.Smallest.UserKey), at(file.Largest.UserKey)
			for i := from; i <= to; i++ {
				s[i].above += file.Size / uint64(to-from+1)
			}
		}
	}
	for _, span := range islands(levels[0]) {
		if span.Start[0] > byte(t) || span.End[0] < byte(t) || span.Start[0] == span.End[0] {
			continue
		}
		for i := at(span.Start); i <= at(span.End); i++ {
			s[i].stuck = true
		}
	}
	return s
}

// of reports whether a file has keys of a table, or keys before and behind them.
func of(file pebble.SSTableInfo, t codec.Table) bool {
	return file.Smallest.UserKey[0] <= byte(t) && byte(t) <= file.Largest.UserKey[0]
}

// islands returns what files cover together that overlap, from the first key to the
// last. The files may be in any order.
func islands(files []pebble.SSTableInfo) []pebble.KeyRange {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b pebble.SSTableInfo) int {
		return bytes.Compare(a.Smallest.UserKey, b.Smallest.UserKey)
	})
	var spans []pebble.KeyRange
	for _, file := range files {
		first, last := file.Smallest.UserKey, file.Largest.UserKey
		if n := len(spans); n > 0 && bytes.Compare(first, spans[n-1].End) <= 0 {
			if bytes.Compare(last, spans[n-1].End) > 0 {
				spans[n-1].End = last
			}
			continue
		}
		spans = append(spans, pebble.KeyRange{Start: first, End: last})
	}
	return spans
}

// worthwhile returns the ranges to be compacted: neighbouring stretches as one, until
// it is large. There are none if less than least bytes lie above them.
func worthwhile(s []stretch, t codec.Table, least uint64) []pebble.KeyRange {
	var ranges []pebble.KeyRange
	var above, size uint64
	open := false
	for i, x := range s {
		if x.stuck || x.above*tidyShare < x.below {
			open = false
			continue
		}
		end := []byte{byte(t) + 1}
		if i+1 < len(s) {
			end = s[i+1].start
		}
		if !open || size >= tidyMost {
			ranges, size, open = append(ranges, pebble.KeyRange{Start: x.start}), 0, true
		}
		ranges[len(ranges)-1].End = end
		above, size = above+x.above, size+x.above+x.below
	}
	if above < least {
		return nil
	}
	return ranges
}
