package dueindex

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/changeset"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

const (
	// A clock that goes back leaves entries in the ready table that are not due.
	// When a selection has passed this many, and the mark is this many hours ahead
	// of the clock, the index is built anew: that costs some microseconds per
	// record, once; passing them costs a tenth of that, each time.
	maxPassed    = 1 << 17
	maxMarkAhead = 24
	// maxBuildBytes is how many bytes one batch of building writes.
	maxBuildBytes = 8 << 20
	// If more than one in rebuildShare bytes of all entries becomes due at once, and more than
	// Limits.RebuildBytes, because nothing was selected for long, building the index anew
	// costs half as much for each record as to move it.
	rebuildShare = 2
	// muchSteps is how many steps what becomes due must have for the engine to be tidied: they
	// lie above one another.
	muchSteps = 3
)

// Rebuild lets the next selection build the index anew.
func (x *Index) Rebuild() { x.rebuild.Store(true) }

// Prepare does what a selection at that time begins with: it completes the index and moves its
// mark behind the hour of the clock. It lets updates take turns in between.
func (x *Index) Prepare(ctx context.Context, clock time.Time) error {
	mark := markAfter(hourOf(clock.UnixMilli()))
	rebuild, err := x.movesTooMuch(ctx, mark)
	if err != nil {
		return err
	}
	for steps := 0; ; {
		now := x.state.Load()
		if now.complete && !x.rebuild.Load() && bytes.Compare(now.mark, mark) >= 0 {
			if steps >= muchSteps {
				x.Cut(ctx)
				x.store.MovedMuch(ctx)
			}
			return nil
		}
		if err := x.store.Lock(ctx); err != nil {
			return err
		}
		written, err := x.prepareStep(ctx, mark, rebuild)
		steps += written
		x.store.Unlock()
		if err != nil {
			return err
		}
	}
}

// prepareStep does part of the work of Prepare, and returns how often tables of what has become
// due were written. The caller holds the lock. rebuild says that it is better to build the index
// anew than to move that much.
func (x *Index) prepareStep(ctx context.Context, mark []byte, rebuild bool) (tables int, err error) {
	old := x.state.Load()
	if !x.rebuild.Load() && old.complete {
		if bytes.Compare(old.mark, mark) >= 0 {
			return 0, nil
		}
		if !rebuild {
			wrote, err := x.moveDue(ctx, old, mark)
			if wrote {
				tables = 1
			}
			return tables, err
		}
	}
	batch := x.db.NewBatch()
	defer batch.Close()
	var next *state
	if x.rebuild.Load() || old.complete {
		next, err = x.clear(batch, mark)
	} else {
		next, err = x.build(ctx, batch, old, mark)
	}
	if err != nil {
		return 0, err
	}
	x.moves.Add(1)
	defer x.moves.Add(1)
	if err := batch.Set(stateKey, next.append(nil), nil); err != nil {
		return 0, err
	}
	if err := x.store.Commit(ctx, batch); err != nil {
		return 0, err
	}
	x.state.Store(next)
	if next.complete {
		return muchSteps, nil // no less than so much that becomes due
	}
	if next.built == nil { // it was cleared
		x.rebuild.Store(false)
	}
	return 0, nil
}

// movesTooMuch reports whether so much becomes due that the index is better built anew. It does
// not hold the lock, as it may take as long as a scan.
func (x *Index) movesTooMuch(ctx context.Context, mark []byte) (bool, error) {
	if err := x.store.Enter(ctx); err != nil {
		return false, err
	}
	defer x.store.Leave()
	now := x.state.Load()
	if x.readOnly || !now.complete || bytes.Compare(now.mark, mark) >= 0 {
		return false, nil
	}
	due, err := x.db.EstimateDiskUsage(codec.WheelTable.Key(string(now.mark)), codec.WheelTable.Key(string(mark)))
	if err != nil || due <= x.RebuildBytes {
		return false, x.store.EngineError(err)
	}
	var all uint64
	for _, t := range [...]codec.Table{codec.WheelTable, codec.ReadyTable} {
		size, err := x.sizeOf(t)
		if err != nil {
			return false, err
		}
		all += size
	}
	if due <= all/rebuildShare {
		return false, nil
	}
	// An index that is cleared and cannot be built is none. To move what becomes due needs
	// no records that cannot be read.
	var keys crawldb.Keys
	var d crawldb.Datum
	err = x.rows(ctx, x.db, codec.CrawlTable, func(key, value []byte) error { return x.decode(&d, &keys, key[1:], value, nil) })
	if x.store.IsDamaged(err) {
		return false, nil
	}
	return err == nil, err
}

// clear begins the index anew.
func (x *Index) clear(batch *pebble.Batch, mark []byte) (*state, error) {
	for _, t := range [...]codec.Table{codec.ReadyTable, codec.WheelTable, codec.TallyTable} {
		if err := batch.DeleteRange([]byte{byte(t)}, []byte{byte(t) + 1}, nil); err != nil {
			return nil, err
		}
	}
	return &state{mark: mark}, nil
}

// build adds the entries of the next records.
func (x *Index) build(ctx context.Context, batch *pebble.Batch, old *state, mark []byte) (*state, error) {
	next := &state{mark: old.mark, complete: true}
	if next.mark == nil {
		next.mark = mark
	}
	it, err := x.db.NewIter(&pebble.IterOptions{
		LowerBound: append([]byte{byte(codec.CrawlTable)}, old.built...),
		UpperBound: []byte{byte(codec.CrawlTable) + 1},
	})
	if err != nil {
		return nil, x.store.EngineError(err)
	}
	defer it.Close()
	leases, err := rows.Join(it, codec.LeaseTable)
	if err != nil {
		return nil, x.store.EngineError(err)
	}
	defer leases.Close()
	var keys crawldb.Keys
	var d crawldb.Datum
	var key, enc []byte
	var counts tallyWriter
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if n == x.BuildStep || batch.Len() > maxBuildBytes {
			next.complete, next.built = false, bytes.Clone(it.Key()[1:])
			break
		}
		if n++; n%rows.CheckEvery == 0 {
			if err := x.store.Continue(ctx); err != nil {
				return nil, err
			}
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, x.store.EngineError(err)
		}
		lease, err := leases.Find(it.Key())
		if err != nil {
			return nil, x.store.EngineError(err)
		}
		if err := x.decode(&d, &keys, it.Key()[1:], value, lease); err != nil {
			return nil, err
		}
		if lease == nil {
			// Before version 4 of the store a lease could be in a record.
			if enc = codec.AppendLease(enc[:0], &d); len(enc) > 0 {
				key = append(append(key[:0], byte(codec.LeaseTable)), it.Key()[1:]...)
				x.store.HasLeases()
				if err := batch.Set(key, enc, nil); err != nil {
					return nil, err
				}
			}
		}
		e := entryOf(&d)
		if key = e.appendKey(key[:0], next.mark, it.Key()[1:]); codec.Table(key[0]) == codec.WheelTable {
			enc = e.appendTime(enc[:0])
		} else {
			enc = e.appendReady(enc[:0], &d, false)
		}
		if err := batch.Set(key, enc, nil); err != nil {
			return nil, err
		}
		if err := counts.add(batch, key, 1); err != nil {
			return nil, err
		}
	}
	if err := counts.flush(batch); err != nil {
		return nil, err
	}
	return next, x.store.EngineError(it.Error())
}

// moveDue moves entries of the wheel before the mark to the ready table, as many as a step
// of a large update has, and reports whether they were written as tables.
func (x *Index) moveDue(ctx context.Context, old *state, mark []byte) (tables bool, err error) {
	next := *old
	moved, upTo, err := x.wheelBefore(ctx, old.mark, mark)
	if err != nil {
		return false, err
	}
	next.mark = upTo
	var c changeset.Changes
	if len(moved.entries) > 0 {
		// In the order of records, as in an update: so those of a host are counted once, and
		// each level is in order.
		moved.sort()
		if err := x.addReady(ctx, &c, moved, &next, mark); err != nil {
			return false, err
		}
		c.Cleared = pebble.KeyRange{Start: codec.WheelTable.Key(string(old.mark)), End: codec.WheelTable.Key(string(next.mark))}
		x.moves.Add(1)
		defer x.moves.Add(1)
	}
	return x.write(ctx, &c, &next, x.LeastTables)
}

// write writes changes together with the state that they lead to.
func (x *Index) write(ctx context.Context, c *changeset.Changes, next *state, leastTables int) (asTables bool, err error) {
	if err := c.Set(stateKey, next.append(nil), nil); err != nil {
		return false, err
	}
	if asTables, err = x.store.Write(ctx, c, leastTables); err == nil {
		x.state.Store(next)
	}
	return asTables, err
}

// wheelBefore reads entries of the wheel between two marks, as many as may move in a step, and
// returns the mark behind them.
func (x *Index) wheelBefore(ctx context.Context, from, to []byte) (*wheelEntries, []byte, error) {
	it, err := x.db.NewIter(&pebble.IterOptions{LowerBound: codec.WheelTable.Key(string(from)), UpperBound: codec.WheelTable.Key(string(to))})
	if err != nil {
		return nil, nil, x.store.EngineError(err)
	}
	defer it.Close()
	var read wheelEntries
	size := 0
	for ok := it.First(); ok; ok = it.Next() {
		n := len(read.entries)
		if n == x.MoveStep || size >= x.StepBytes {
			to = bytes.Clone(it.Key()[1:])
			break
		}
		if (n+1)%rows.CheckEvery == 0 {
			if err := x.store.Continue(ctx); err != nil {
				return nil, nil, err
			}
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, nil, x.store.EngineError(err)
		}
		e, err := x.wheelEntry(it.Key(), value)
		if err != nil {
			return nil, nil, err
		}
		read.add(e.dueFrom, it.Key()[wheelPrefix:])
		if size += len(it.Key()) + maxShortRest; recentAt(to, e.dueFrom) {
			size += maxWholeRest
		}
	}
	return &read, to, x.store.EngineError(it.Error())
}

// wheelEntries are the keys of records that leave the wheel, and the times of their entries.
type wheelEntries struct {
	keys    []byte
	entries []wheelEntry
}

type wheelEntry struct {
	dueFrom   int64
	from, end int // in keys
}

func (w *wheelEntries) add(dueFrom int64, key []byte) {
	from := len(w.keys)
	w.keys = append(w.keys, key...)
	w.entries = append(w.entries, wheelEntry{dueFrom, from, len(w.keys)})
}

func (w *wheelEntries) key(i int) []byte { return w.keys[w.entries[i].from:w.entries[i].end] }

func (w *wheelEntries) sort() {
	slices.SortFunc(w.entries, func(a, b wheelEntry) int { return bytes.Compare(w.keys[a.from:a.end], w.keys[b.from:b.end]) })
}

// addReady writes the ready entries of what leaves the wheel, with the priorities that the records
// have now, and with all of the record if it has become due within a day: what became due before,
// during months without a selection perhaps, need not be selected soon either. next is the
// state that the step leads to, mark that of the last step.
//
// A record that cannot be read becomes due with no priority, so that it is not forgotten in
// silence: the lease that reads it says what is wrong.
func (x *Index) addReady(ctx context.Context, c *changeset.Changes, moved *wheelEntries, next *state, mark []byte) error {
	n := len(moved.entries)
	lower, upper := codec.CrawlTable.Key(string(moved.key(0))), codec.CrawlTable.Key(string(moved.key(n-1)))
	it, err := x.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: append(bytes.Clone(upper), 0)})
	if err != nil {
		return x.store.EngineError(err)
	}
	defer it.Close()
	records := rows.NewCursor(it)
	records.Last = upper
	if records.FarReader, err = x.store.FarReader(lower, upper, n); err != nil {
		return err
	}
	var counts tallyWriter
	var keys crawldb.Keys
	var d crawldb.Datum
	var recordKey, key, value, last []byte
	for i := range n {
		own := moved.key(i)
		if i > 0 && bytes.Equal(last, own) {
			return x.store.Damaged("an entry of the due index, which is there twice,", string(own), ErrEntry)
		}
		if last = own; i%rows.CheckEvery == 0 {
			if err := x.store.Continue(ctx); err != nil {
				return err
			}
		}
		recordKey = append(append(recordKey[:0], byte(codec.CrawlTable)), own...)
		stored, err := records.Find(recordKey)
		if err = x.store.EngineError(err); err != nil && !x.store.IsDamaged(err) {
			return err
		}
		dueFrom := moved.entries[i].dueFrom
		e := entry{dueFrom: dueFrom}
		if err == nil && stored != nil && x.decode(&d, &keys, own, stored, nil) == nil && entryOf(&d).dueFrom == dueFrom {
			e = entryOf(&d)
			value = e.appendReady(value[:0], &d, recentAt(mark, dueFrom))
		} else {
			value = e.appendHead(value[:0])
		}
		key = e.appendReadyKey(key[:0], own)
		if err := counts.add(c, key, 1); err != nil {
			return err
		}
		if next.stores(key) {
			if err := c.Set(key, value, nil); err != nil {
				return err
			}
		}
	}
	return counts.flush(c)
}

// wheelEntry and readyEntry decode an entry and check that it is in its place.
func (x *Index) wheelEntry(key, value []byte) (entry, error) {
	e, err := decodeWheel(key, value)
	if err != nil {
		err = x.store.Damaged("the entry of the due index", string(key), err)
	}
	return e, err
}

func (x *Index) readyEntry(key, value []byte) (entry, error) {
	e, err := decodeReady(key, value)
	if err != nil {
		err = x.store.Damaged("the entry of the due index", string(key), err)
	}
	return e, err
}

// markHour returns the hour at which a mark begins.
func markHour(mark []byte) (hour uint32, ok bool) {
	if len(mark) < 4 {
		return 0, false
	}
	return binary.BigEndian.Uint32(mark), true
}
