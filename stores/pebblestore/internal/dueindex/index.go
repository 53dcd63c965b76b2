// Package dueindex keeps which records of the crawl db are due, the best first, so that a
// selection costs what it selects and not what there is.
//
// An update tells it of each record that changes (see [Index.Update]), a lease is such a change,
// and a selection asks it (see [Index.Due]); [Index.Check] compares it with the records. It does
// not store records, and decides nothing about them. The tables and the promises are described
// beside [Index].
package dueindex

import (
	"context"
	"log/slog"
	"math"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/changeset"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

// An Index has one entry for each record, in one of two tables:
//
//	ready  level(2) key         best level first, in a level by key
//	wheel  hour(4) key          by the hour of its fetch time
//
// A third table counts the entries of ready by host and level ([codec.Tally]). The table of an
// entry, and its place there, follow from the record and the state of the index alone: entries
// of the wheel before its mark have moved to ready, and the last levels of a long ready table
// are cut. So an update deletes the entry of a record without looking for it, and writes the new
// one in the batch that writes the record. And selections do not depend on the mark, which only
// says where to look: the entry says when the record is due.
//
// An entry of the wheel is a time alone. The priority of a page changes with each link to it, and
// that of a page which is not due for weeks would be written many times before anyone asks for
// it. The step in which a page becomes due reads its record, and writes a ready entry with the
// priority and the rest of the record: then a lease need not read it again. What needs the
// priority before that, such as a selection of what will be due, reads the record.
//
// A lease does not change the entry: selections look into the table of leases, and pass over
// leased records.
// After the lease the record is selected from where it was.
//
// The holder of the lock of the crawl db ([Store.Lock]) may change the index. Selections run
// beside it.
type Index struct {
	// Limits may be changed before the index is used, by tests.
	Limits

	db       *pebble.DB
	store    Store
	log      *slog.Logger
	readOnly bool

	state atomic.Pointer[state]
	// moves is incremented before and after entries move other than by an
	// update: a reader of the index that finds it incremented may have missed
	// some.
	moves atomic.Uint64
	// changes is incremented after each change of records. A caller that reads it
	// before reading the index, and finds it unchanged once it has the lock, knows that
	// what it read still holds. It starts at a random value, to differ from that of any
	// other store.
	changes atomic.Uint64
	// readBelowCut is how many records selections have read for entries that the ready table
	// lacks, since the last large update; see maxReadBelowCut.
	readBelowCut atomic.Int64
	// rebuild says that the index must be built anew: because the mark is so far ahead of the
	// clock that selections are slow, or because the stored index is of another version.
	rebuild atomic.Bool
}

// Limits are sizes at which the index does things in another way.
type Limits struct {
	// BuildStep is how many entries one batch of building writes.
	BuildStep int
	// MoveStep is how many entries may become due in one step, beside StepBytes.
	MoveStep int
	// StepBytes is how many bytes of changes are written at a time, and LeastTables from how
	// many bytes on they are written as tables.
	StepBytes, LeastTables int
	// MaxPassed is how many entries that are not due a selection may pass before the index is
	// built anew, if its mark is ahead of the clock.
	MaxPassed int
	// SideList is how many candidates of the wheel a selection holds at a time.
	SideList int
	// TourCost is what a selection may spend on passing entries of unwanted hosts before it
	// considers a tour of the others.
	TourCost int
	// HeldBelowCut is how many candidates that the ready table lacks a tour may hold.
	HeldBelowCut int
	// LeastReady is how many entries are never cut from the ready table.
	LeastReady int64
	// RebuildBytes is how much must become due at once to consider building the index anew.
	RebuildBytes uint64
}

// DefaultLimits returns the limits of stores that write so many bytes at a time.
func DefaultLimits(stepBytes, leastTables int) Limits {
	return Limits{
		BuildStep: 10_000, MoveStep: math.MaxInt, StepBytes: stepBytes, LeastTables: leastTables,
		MaxPassed: maxPassed, SideList: 1 << 16, TourCost: tourCost, HeldBelowCut: 1 << 17,
		LeastReady: leastReady, RebuildBytes: 8 << 20,
	}
}

// A Store is what the index needs of the store that it is a part of. Its errors are those that
// callers of the store see.
type Store interface {
	// Enter begins a use of the engine, which Leave ends.
	Enter(context.Context) error
	Leave()
	// Lock waits for the right to change the crawl db and enters; Unlock ends both.
	Lock(context.Context) error
	Unlock()
	// Continue returns why a long call should end early, or nil.
	Continue(context.Context) error
	// EngineError turns an error of the engine into what the call returns, nil into nil.
	EngineError(error) error
	// Damaged returns the error for an invalid stored value, and IsDamaged recognizes
	// it, and the engine's of that kind.
	Damaged(what, name string, err error) error
	IsDamaged(error) bool
	// Commit and Write write changes, at once and not synced.
	Commit(context.Context, *pebble.Batch) error
	// Write writes changes of less than leastTables bytes as a batch, others as tables, and
	// reports which it was.
	Write(ctx context.Context, c *changeset.Changes, leastTables int) (asTables bool, err error)
	// HasLeases is called before the first lease is written.
	HasLeases()
	// MovedMuch is called when so much has become due that the engine may have to be tidied.
	MovedMuch(context.Context)
	// FarReader returns a reader for n keys of records between two if they lie far apart, or nil.
	FarReader(lower, upper []byte, n int) (pebble.Reader, error)
}

// Open reads the state of the index that a store has, or sets one. If a store has records but no
// index, its first selection builds it. changes is where the numbers of changes begin.
func Open(db *pebble.DB, store Store, limits Limits, changes uint64, readOnly bool, log *slog.Logger) (*Index, error) {
	x := &Index{Limits: limits, db: db, store: store, log: log, readOnly: readOnly}
	x.changes.Store(changes)
	b, err := rows.Get(db, stateKey)
	if err := store.EngineError(err); err != nil {
		return nil, err
	}
	if b != nil {
		stored, known, err := parseState(b)
		if err != nil {
			return nil, store.Damaged("the state of", "the due index", err)
		}
		if !known { // clear away what it left
			stored = &state{foreign: true}
			x.rebuild.Store(true)
		}
		x.state.Store(stored)
		return x, nil
	}
	it, err := db.NewIter(codec.CrawlTable.All())
	if err := store.EngineError(err); err != nil {
		return nil, err
	}
	records := it.First()
	x.state.Store(&state{complete: !records})
	return x, store.EngineError(rows.Close(it))
}

// rows calls f with each row of a table.
func (x *Index) rows(ctx context.Context, r rows.Reader, t codec.Table, f func(key, value []byte) error) error {
	it, err := r.NewIter(t.All())
	if err != nil {
		return x.store.EngineError(err)
	}
	defer it.Close()
	return x.each(ctx, it, f)
}

// each calls f with what an iterator visits.
func (x *Index) each(ctx context.Context, it *pebble.Iterator, f func(key, value []byte) error) error {
	return rows.Each(it, func() error { return x.store.Continue(ctx) }, x.store.EngineError, f)
}

// decode sets *d to the record that the tables have under a key, given without the byte of
// the table.
func (x *Index) decode(d *crawldb.Datum, keys *crawldb.Keys, key, value, lease []byte) error {
	if err := keys.Decode(d, key, value); err != nil {
		return x.store.Damaged("the crawl record of", d.URL, err)
	}
	if len(lease) > 0 {
		if err := codec.DecodeLease(d, lease); err != nil {
			return x.store.Damaged("the lease of", d.URL, err)
		}
	}
	return nil
}

// sizeOf returns about how many bytes a table takes in files of the engine.
func (x *Index) sizeOf(t codec.Table) (uint64, error) {
	size, err := x.db.EstimateDiskUsage([]byte{byte(t)}, []byte{byte(t) + 1})
	return size, x.store.EngineError(err)
}
