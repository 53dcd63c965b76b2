package dueindex

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/changeset"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// Of a large backlog the ready table has the best levels only. Its other entries would be
// rewritten whenever a link changes their records, and few of them are selected before
// that. The tallies count them nevertheless, so a tour knows which hosts have some, and
// reads those from the records of the host (see belowcut.go). A selection that needs many of
// them adds them to the ready table first.

const (
	// cutShare is how many times as many entries are due as are kept, and leastReady how
	// many are kept at least. So adding levels, which reads all records, costs no
	// more than some reads for each entry that is added.
	cutShare   = 3
	leastReady = 1 << 20
)

// belowKey is where the entries begin that come after a level, in the ready table.
func belowKey(level uint16) []byte {
	return binary.BigEndian.AppendUint16([]byte{byte(codec.ReadyTable)}, level+1)
}

// Cut removes the last levels from the ready table if it has twice its share of what is due,
// or more. It is for the end of a large update. A failure is logged, and means that the table
// is as it was.
func (x *Index) Cut(ctx context.Context) {
	if err := x.TryCut(ctx); err != nil && ctx.Err() == nil {
		x.log.Warn("pebblestore: the due index was not cut", "error", err)
	}
}

// TryCut is Cut, and returns why it has failed.
func (x *Index) TryCut(ctx context.Context) error {
	if err := x.store.Lock(ctx); err != nil {
		return err
	}
	defer x.store.Unlock()
	x.readBelowCut.Store(0)
	old := x.state.Load()
	if !old.complete || x.rebuild.Load() {
		return nil
	}
	var size [3]uint64
	for i, t := range [...]codec.Table{codec.ReadyTable, codec.CrawlTable, codec.TallyTable} {
		var err error
		if size[i], err = x.sizeOf(t); err != nil {
			return err
		}
	}
	// Most records are not due, or not in it; or hosts have so few that a look at one costs
	// more than all of its entries do.
	if size[0] < size[1]/cutShare || size[2] > size[0]/cutShare {
		return nil
	}
	counts, err := x.countLevels(ctx)
	if err != nil {
		return err
	}
	keep := max(counts.upTo(lastLevel)/cutShare, x.LeastReady, old.wanted)
	last := counts.reaching(keep)
	if counts.upTo(old.lastReady()) < 2*max(counts.upTo(last), 1) { // hardly worth it
		return nil
	}
	next := *old
	next.cut, next.goal, next.filled = lastLevel-last, 0, nil
	x.moves.Add(1)
	defer x.moves.Add(1)
	var c changeset.Changes
	c.Cleared = pebble.KeyRange{Start: belowKey(last), End: belowKey(lastLevel)}
	_, err = x.write(ctx, &c, &next, 0)
	return err
}

// addLevels adds to the ready table what was cut from it, at least up to a level, and lets
// updates take turns in between. What a reader has not read yet is added only.
func (x *Index) addLevels(ctx context.Context, level uint16) error {
	for x.state.Load().lastReady() < level {
		if err := x.store.Lock(ctx); err != nil {
			return err
		}
		err := x.addLevelsStep(ctx, level)
		x.store.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) addLevelsStep(ctx context.Context, level uint16) error {
	next := *x.state.Load()
	if next.lastReady() >= level {
		return nil
	}
	if next.goal == 0 {
		counts, err := x.countLevels(ctx)
		if err != nil {
			return err
		}
		all, had := counts.upTo(lastLevel), counts.upTo(next.lastReady())
		keep := max(had+all/cutShare, 2*had, x.LeastReady)
		if next.goal = max(counts.reaching(keep), level); keep > all-all/cutShare {
			next.goal = lastLevel
		}
		next.wanted = max(0, counts.upTo(next.goal))
	}
	it, err := x.db.NewIter(&pebble.IterOptions{
		LowerBound: append([]byte{byte(codec.CrawlTable)}, next.filled...),
		UpperBound: []byte{byte(codec.CrawlTable) + 1},
	})
	if err != nil {
		return x.store.EngineError(err)
	}
	defer it.Close()
	var c changeset.Changes
	var keys crawldb.Keys
	var d crawldb.Datum
	var key, enc []byte
	done := true
	err = x.each(ctx, it, func(k, value []byte) error {
		if c.Len() >= x.StepBytes {
			done, next.filled = false, bytes.Clone(k[1:])
			return errStepFull
		}
		if err := x.decode(&d, &keys, k[1:], value, nil); err != nil {
			return err
		}
		e := entryOf(&d)
		key = e.appendKey(key[:0], next.mark, k[1:])
		if codec.Table(key[0]) != codec.ReadyTable {
			return nil
		}
		if l := binary.BigEndian.Uint16(key[1:]); l <= next.lastReady() || l > next.goal {
			return nil
		}
		enc = e.appendReady(enc[:0], &d, false)
		return c.Set(key, enc, nil)
	})
	if err != nil && err != errStepFull {
		return err
	}
	if done {
		x.readBelowCut.Store(0)
		next.cut, next.goal, next.filled = lastLevel-next.goal, 0, nil
	}
	_, err = x.write(ctx, &c, &next, x.LeastTables)
	return err
}

// errStepFull ends the reading of records for a step.
var errStepFull = errors.New("the step is full")
