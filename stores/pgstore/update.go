package pgstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/recrawl/recrawl/crawldb"
)

// Update implements [crawldb.Store].
func (s *crawlStore) Update(ctx context.Context, b crawldb.Batch) error {
	return s.updateAll(ctx, "update", func(yield func(crawldb.Batch, error) bool) { yield(b, nil) })
}

// UpdateAll implements [crawldb.BulkStore]. Several batches share a transaction as long as
// each begins after the end of the one before.
func (s *crawlStore) UpdateAll(ctx context.Context, batches iter.Seq2[crawldb.Batch, error]) error {
	return s.updateAll(ctx, opAll, batches)
}

const opAll = "update all"

func (s *crawlStore) updateAll(ctx context.Context, op string, batches iter.Seq2[crawldb.Batch, error]) error {
	err := s.take(ctx, s.turn)
	if err == nil {
		err = s.inTurn(ctx, batches, op == opAll)
		<-s.turn
	}
	if err != nil {
		return fmt.Errorf("pgstore: %s: %w", op, err)
	}
	return nil
}

func (s *crawlStore) inTurn(ctx context.Context, batches iter.Seq2[crawldb.Batch, error], bulk bool) error {
	if err := s.recount(ctx); err != nil {
		return err
	}
	w := writer{store: s}
	defer w.wait()
	var end *end
	if bulk {
		var err error
		if end, err = s.findEnd(ctx); err != nil {
			return err
		}
	}
	var c *changes
	for b, err := range batches {
		if err != nil {
			return err
		}
		if err := inOrder(b.URLs); err != nil {
			return err
		}
		overlaps := c != nil && !c.endsBefore(b.URLs)
		if c != nil && (c.isFull() || overlaps) {
			if err := w.start(ctx, c); err != nil {
				return err
			}
			c = nil
			if overlaps {
				if err := w.wait(); err != nil {
					return err
				}
			}
		}
		if c == nil {
			c = newChanges()
		}
		if err := s.gather(ctx, c, b, end); err != nil {
			return err
		}
	}
	if c != nil {
		if err := w.start(ctx, c); err != nil {
			return err
		}
	}
	return w.wait()
}

func inOrder(urls []string) error {
	for i := 1; i < len(urls); i++ {
		if crawldb.Compare(urls[i-1], urls[i]) >= 0 {
			return fmt.Errorf("%q after %q: %w", urls[i], urls[i-1], crawldb.ErrOrder)
		}
	}
	return nil
}

// gather reads the records of a batch and adds what becomes of them to the changes. What it
// reads is not changed until they are applied: the turn keeps other updates of this DB away,
// and if another DB has opened the crawl, apply finds out.
func (s *crawlStore) gather(ctx context.Context, c *changes, b crawldb.Batch, end *end) error {
	records, err := s.records(ctx, b.URLs, end)
	if err != nil {
		return err
	}
	olds := make([]crawldb.Datum, len(b.URLs))
	for i, url := range b.URLs {
		if err := s.ready(ctx); err != nil {
			return err
		}
		var old *crawldb.Datum
		if records[i].value != nil {
			old = &olds[i]
			old.URL = url
			if err := old.UnmarshalBinary(records[i].value); err != nil {
				return s.db.damaged("page", url, err)
			}
		}
		d, err := b.Next(i, old)
		if err != nil {
			return fmt.Errorf("%q: %w", url, err)
		}
		if d == old {
			continue
		}
		if err := c.add(records[i].key, old != nil, d); err != nil {
			return fmt.Errorf("%q: %w", url, err)
		}
	}
	if n := len(b.URLs); n > 0 {
		c.last = b.URLs[n-1]
	}
	if b.Marks != nil {
		for name, value := range b.Marks() {
			c.marks[name] = value
		}
	}
	return s.ready(ctx)
}

// An end is where the records end, so that those of later URLs need not be looked for.
type end struct{ index []byte }

// findEnd returns the present end.
func (s *crawlStore) findEnd(ctx context.Context) (*end, error) {
	e := &end{}
	return e, s.read(ctx, func(ctx context.Context) error {
		err := s.db.pool.QueryRow(ctx, `SELECT key FROM page ORDER BY key DESC LIMIT 1`).Scan(&e.index)
		if errors.Is(err, pgx.ErrNoRows) {
			err = nil
		}
		return err
	})
}

// isPassed reports whether keys, which are in order, come after the end, and moves the end
// behind them.
func (e *end) isPassed(found []row) bool {
	if e == nil {
		return false
	}
	first, last := firstBytes(found[0].key), firstBytes(found[len(found)-1].key)
	passed := bytes.Compare(first, firstBytes(e.index)) > 0 || len(e.index) == 0
	if bytes.Compare(last, firstBytes(e.index)) > 0 {
		e.index = last
	}
	return passed
}

func firstBytes(key []byte) []byte { return key[:min(len(key), mostIndexed)] }

// records returns the key of each URL, and its record if there is one.
func (s *crawlStore) records(ctx context.Context, urls []string, end *end) ([]row, error) {
	if len(urls) == 0 {
		return nil, nil
	}
	var keys crawldb.Keys
	found := make([]row, len(urls))
	index := make([][]byte, len(urls))
	size := 0
	for _, url := range urls {
		size += len(url) + 4
	}
	buf := make([]byte, 0, size)
	for i, url := range urls {
		n := len(buf)
		buf = keys.AppendKey(buf, url)
		found[i].key = buf[n:len(buf):len(buf)]
		index[i], _ = indexed(found[i].key)
	}
	if end.isPassed(found) {
		return found, nil
	}
	err := s.read(ctx, func(ctx context.Context) error {
		for i := range found {
			found[i].value = nil
		}
		rows, err := s.db.pool.Query(ctx, `SELECT u.i, p.record FROM unnest($1::bytea[]) WITH ORDINALITY AS u (key, i) JOIN page p ON p.key = u.key`, index)
		if err != nil {
			return err
		}
		var i int64
		var record []byte
		_, err = pgx.ForEachRow(rows, []any{&i, &record}, func() error { found[i-1].value = record; return nil })
		return err
	})
	return found, err
}

// recount reads the number of applied changes, unless it is known.
func (s *crawlStore) recount(ctx context.Context) error {
	if s.known {
		return nil
	}
	err := s.read(ctx, func(ctx context.Context) error {
		return s.db.pool.QueryRow(ctx, `SELECT applied FROM crawl_update WHERE id = 0`).Scan(&s.applied)
	})
	s.known = err == nil
	return err
}

// A writer applies one set of changes while the next is gathered.
type writer struct {
	store  *crawlStore
	result chan error // of the set that is being applied; nil if there is none
}

// start begins to apply changes once those before are applied.
func (w *writer) start(ctx context.Context, c *changes) error {
	if err := w.wait(); err != nil {
		return err
	}
	w.result = make(chan error, 1)
	go func(result chan<- error) { result <- w.store.apply(ctx, c) }(w.result)
	return nil
}

// wait waits until all changes are applied.
func (w *writer) wait() error {
	if w.result == nil {
		return nil
	}
	err := <-w.result
	w.result = nil
	return err
}

// apply writes changes in one transaction, which it repeats until it is committed or
// something other than the connection fails. The number of applied sets tells a commit whose
// answer was lost from one that did not take place.
func (s *crawlStore) apply(ctx context.Context, c *changes) error {
	if c.isEmpty() {
		return s.ready(ctx)
	}
	s.known = false
	unanswered := false // a commit was sent, and its outcome is not known
	try := func(ctx context.Context) error {
		tx, err := s.db.pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback(context.WithoutCancel(ctx)) // does nothing after a commit
		counted, err := tx.Exec(ctx, `UPDATE crawl_update SET applied = $1 WHERE id = 0 AND applied = $2 AND EXISTS (SELECT 1 FROM crawl_group WHERE id = 0 AND opening = $3 FOR SHARE)`,
			s.applied+1, s.applied, s.db.opening)
		if err != nil {
			return err
		}
		if counted.RowsAffected() == 0 {
			return s.explain(ctx, tx, unanswered)
		}
		if err := c.write(ctx, tx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		err = tx.Commit(context.WithoutCancel(ctx))
		unanswered = isUnanswered(err)
		return err
	}
	err := s.write(ctx, try)
	if err != nil && unanswered {
		// The caller has given up, but it must learn what became of the commit.
		err = s.settle(ctx, err)
	}
	if err == nil {
		s.applied++
		s.known = true
	}
	return err
}

// explain returns why the changes were not counted, nil if they have been applied before.
func (s *crawlStore) explain(ctx context.Context, tx pgx.Tx, unanswered bool) error {
	var applied, opening int64
	if err := tx.QueryRow(ctx, `SELECT applied FROM crawl_update WHERE id = 0`).Scan(&applied); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, `SELECT opening FROM crawl_group WHERE id = 0`).Scan(&opening); err != nil {
		return err
	}
	switch {
	case opening != s.db.opening:
		return ErrFenced
	case unanswered && applied == s.applied+1:
		return nil
	}
	return fmt.Errorf("%d sets of changes were applied, expected %d", applied, s.applied)
}

// settle finds out whether a commit took place after the update was cancelled.
func (s *crawlStore) settle(ctx context.Context, cause error) error {
	var applied int64
	err := s.db.retry(context.WithoutCancel(ctx), func(ctx context.Context) error {
		// The lock waits for the end of a transaction that the server has not given up yet.
		return pgx.BeginFunc(ctx, s.db.pool, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, `SELECT applied FROM crawl_update WHERE id = 0 FOR UPDATE`).Scan(&applied)
		})
	})
	switch {
	case err != nil:
		return fmt.Errorf("it is not known whether the update was applied: %w", errors.Join(cause, err))
	case applied == s.applied+1:
		return nil
	}
	return cause
}
