package pgstore

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recrawl/recrawl/crawldb"
)

// Due implements [crawldb.DueStore]. It walks the levels from the best one on, in each the
// records by the time from which on they are due.
func (s *crawlStore) Due(ctx context.Context, q crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error] {
	return func(yield func(crawldb.Candidate, error) bool) {
		d := selection{store: s, q: q, now: millis(q.Now), yield: yield, rows: firstDueRows}
		ended, err := d.run(ctx)
		if err == nil && !ended && q.NotDue != nil {
			err = d.showNext(ctx)
		}
		if err != nil {
			yield(crawldb.Candidate{}, fmt.Errorf("pgstore: due records: %w", err))
		}
	}
}

// A selection reads pages of rows, the later ones larger, so that a caller that wants few
// candidates causes no more work than that.
const firstDueRows, mostDueRows = 250, 4000

// selection is one run of Due.
type selection struct {
	store  *crawlStore
	q      crawldb.DueQuery
	now    int64
	yield  func(crawldb.Candidate, error) bool
	levels []int16
	rows   int // of the next page
	n      int // how many candidates were yielded
}

// run yields candidates; ended says that the caller or the limit ended it.
func (d *selection) run(ctx context.Context) (ended bool, err error) {
	if d.levels, err = d.store.levels(ctx); err != nil {
		return false, err
	}
	least := int16(math.MinInt16)
	if d.q.MinPriority > 0 {
		least = levelOf(d.q.MinPriority)
	}
	for _, level := range d.levels {
		if level < least {
			break
		}
		ended, err := d.level(ctx, level, math.MinInt64, d.now)
		if err == nil && !ended && !d.q.DueBeyond.IsZero() {
			ended, err = d.level(ctx, level, max(d.now, millis(d.q.DueBeyond))+1, math.MaxInt64)
		}
		if ended || err != nil {
			return ended, err
		}
	}
	return false, nil
}

// levels returns the levels that have records, best first.
func (s *crawlStore) levels(ctx context.Context) (levels []int16, err error) {
	err = s.read(ctx, func(ctx context.Context) error {
		rows, err := s.db.pool.Query(ctx, `WITH RECURSIVE l (v) AS ((SELECT max(level) FROM page) UNION ALL SELECT (SELECT max(level) FROM page WHERE level < v) FROM l WHERE v IS NOT NULL) SELECT v FROM l WHERE v IS NOT NULL`)
		if err != nil {
			return err
		}
		levels, err = pgx.CollectRows(rows, pgx.RowTo[int16])
		return err
	})
	return levels, err
}

// dueRow is what a candidate is made of.
type dueRow struct {
	index, tail []byte
	priority    float32
	due         int64
	tie         int32
}

// level yields the records of a level whose column due is from one time to another, both
// included.
func (d *selection) level(ctx context.Context, level int16, from, to int64) (ended bool, err error) {
	var last *dueRow
	var keys crawldb.Keys
	var url []byte
	for {
		page, err := d.page(ctx, level, from, to, last)
		if err != nil {
			return false, err
		}
		for i := range page {
			if err := d.store.ready(ctx); err != nil {
				return false, err
			}
			x := &page[i]
			if d.q.MinPriority > 0 && !(x.priority >= d.q.MinPriority) {
				continue
			}
			url = keys.AppendURL(url[:0], whole(x.index, x.tail))
			c := crawldb.Candidate{URL: string(url), Priority: x.priority, Due: true}
			if d.q.WantHost != nil && !d.q.WantHost(crawldb.Host(c.URL)) {
				continue
			}
			if d.n++; !d.yield(c, nil) || d.n == d.q.Limit {
				return true, nil
			}
		}
		if len(page) < d.rows {
			return false, nil
		}
		last, d.rows = &page[len(page)-1], min(2*d.rows, mostDueRows)
	}
}

// page reads the next rows of a level after the last one. Rows that are leased stay where they
// are in the index.
func (d *selection) page(ctx context.Context, level int16, from, to int64, last *dueRow) (page []dueRow, err error) {
	query, args := `SELECT key, tail, priority, due, tie FROM page WHERE level = $1 AND due >= $2 AND due <= $3 AND (leased IS NULL OR leased <= $4)`, []any{level, from, to, d.now}
	if last != nil {
		query, args = query+` AND (due, tie, key) > ($5, $6, $7)`, append(args, last.due, last.tie, last.index)
		args[1] = last.due
	}
	query += fmt.Sprintf(` ORDER BY due, tie, key LIMIT %d`, d.rows)
	err = d.store.read(ctx, func(ctx context.Context) error {
		rows, err := d.store.db.pool.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		page, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (x dueRow, err error) {
			err = r.Scan(&x.index, &x.tail, &x.priority, &x.due, &x.tie)
			return x, err
		})
		return err
	})
	return page, err
}

// showNext calls NotDue with the time at which the next record is due: the earliest time of a
// visit, or end of a lease, that has not come.
func (d *selection) showNext(ctx context.Context) error {
	to := int64(math.MaxInt64)
	if !d.q.DueBeyond.IsZero() {
		to = millis(d.q.DueBeyond)
	}
	var visit, lease *int64
	err := d.store.read(ctx, func(ctx context.Context) error {
		if err := d.store.db.pool.QueryRow(ctx, `SELECT min(f.due) FROM unnest($1::smallint[]) AS l (level),
			LATERAL (SELECT p.due FROM page p WHERE p.level = l.level AND p.due > $2 AND p.due <= $3 AND (p.leased IS NULL OR p.leased <= p.due) ORDER BY p.due LIMIT 1) AS f`,
			d.levels, d.now, to).Scan(&visit); err != nil {
			return err
		}
		if visit != nil {
			to = *visit
		}
		return d.store.db.pool.QueryRow(ctx, `SELECT min(greatest(due, leased)) FROM page WHERE level = ANY ($1) AND due <= $3 AND leased > $2`, d.levels, d.now, to).Scan(&lease)
	})
	if err != nil {
		return err
	}
	if visit == nil || lease != nil && *lease < *visit {
		visit = lease
	}
	if visit != nil {
		d.q.NotDue(&crawldb.Datum{FetchTime: time.UnixMilli(*visit).UTC()})
	}
	return nil
}
