package pebblestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/changeset"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/dueindex"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

// Due implements [crawldb.DueStore]: it reads the index of due records, see
// [dueindex.Index.Due].
func (s *crawlStore) Due(ctx context.Context, q crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error] {
	return func(yield func(crawldb.Candidate, error) bool) {
		for c, err := range s.index.Due(ctx, q) {
			if err != nil {
				err = fmt.Errorf("pebblestore: due: %w", err)
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// CheckIndex compares the index of due records with the records and returns the
// first difference; nil if they agree. It reads a snapshot of both, and may run while
// the store is in use.
func (d *DB) CheckIndex(ctx context.Context) error {
	var first error
	err := d.crawl.checkDue(ctx, func(err error) { first = cmp.Or(first, err) })
	if err = cmp.Or(err, first); err != nil {
		return fmt.Errorf("pebblestore: check index: %w", err)
	}
	return nil
}

// checkDue calls found with every difference between the index and the records.
func (s *crawlStore) checkDue(ctx context.Context, found func(error)) error {
	return s.db.inMoment(ctx, func(now rows.Snapshot) error { return s.index.Check(ctx, now, found) })
}

// dueStore is what the index of due records needs of the crawl db.
type dueStore struct{ s *crawlStore }

var _ dueindex.Store = dueStore{}

func (d dueStore) Enter(ctx context.Context) error    { return d.s.db.enter(ctx, &d.s.view) }
func (d dueStore) Leave()                             { d.s.db.leave() }
func (d dueStore) Lock(ctx context.Context) error     { return d.s.db.take(ctx, &d.s.view, d.s.turn) }
func (d dueStore) Unlock()                            { d.s.db.give(d.s.turn) }
func (d dueStore) Continue(ctx context.Context) error { return d.s.db.goingOn(ctx, &d.s.view) }
func (d dueStore) EngineError(err error) error        { return d.s.db.outcome("due index", err) }
func (d dueStore) IsDamaged(err error) bool           { return errors.Is(err, ErrDamaged) }
func (d dueStore) HasLeases()                         { d.s.leasing.Store(true) }
func (d dueStore) MovedMuch(ctx context.Context)      { d.s.db.tidy(ctx, &d.s.view) }

func (d dueStore) Damaged(what, name string, err error) error { return d.s.db.damaged(what, name, err) }

func (d dueStore) Commit(ctx context.Context, b *pebble.Batch) error {
	return d.s.db.commit(ctx, &d.s.view, b, pebble.NoSync)
}

func (d dueStore) Write(ctx context.Context, c *changeset.Changes, leastTables int) (asTables bool, err error) {
	return d.s.db.writeStep(ctx, &d.s.view, c, leastTables)
}

func (d dueStore) FarReader(lower, upper []byte, n int) (pebble.Reader, error) {
	return d.s.farReader(lower, upper, n)
}
