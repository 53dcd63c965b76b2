package pebblestore

import (
	"context"
	"errors"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

// A row is one record of a table; it is valid until the next one is requested.
type row struct {
	key    string // without the byte of the table
	value  []byte
	joined []byte // what the joined table has under the same key
}

// scan yields the rows of a table, with those of joined if that is not zero.
// The rows of one page are from one snapshot.
func (d *DB) scan(ctx context.Context, v *view, t, joined codec.Table, from, to string) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		for p, err := range d.pages(ctx, v, t, joined, from, to) {
			if err != nil {
				yield(row{}, err)
				return
			}
			for i := range p.Len() {
				if err := ctx.Err(); err != nil {
					yield(row{}, err)
					return
				}
				key, value, joined := p.Row(i)
				if !yield(row{key: string(key), value: value, joined: joined}, nil) {
					return
				}
			}
		}
	}
}

// pages yields the rows of a table in pages, each of which is valid until the
// next is requested.
func (d *DB) pages(ctx context.Context, v *view, t, joined codec.Table, from, to string) iter.Seq2[*rows.Page, error] {
	return func(yield func(*rows.Page, error) bool) {
		lower, upper := t.Bounds(from, to)
		var p rows.Page
		for size := rows.FirstPageSize; ; size = min(size*4, rows.LargestPageSize) {
			more, err := d.readPage(ctx, v, &p, size, joined, lower, upper)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(&p, nil) || !more {
				return
			}
			lower = p.After(lower[:0])
		}
	}
}

func (d *DB) readPage(ctx context.Context, v *view, p *rows.Page, size int, joined codec.Table, lower, upper []byte) (more bool, err error) {
	if err := d.enter(ctx, v); err != nil {
		return false, err
	}
	defer d.leave()
	p.Reset()
	if string(lower) >= string(upper) {
		return false, nil
	}
	t := codec.Table(lower[0])
	it, err := d.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return false, d.scanned(err, t, joined)
	}
	defer it.Close()
	var other rows.Joined
	if joined != 0 {
		if other, err = rows.Join(it, joined); err != nil {
			return false, d.scanned(err, t, joined)
		}
		defer other.Close()
	}
	for ok := it.First(); ok; ok = it.Next() {
		if p.Full(size) {
			more = true
			break
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return false, d.scanned(err, t, joined)
		}
		var found []byte
		if joined != 0 {
			if found, err = other.Find(it.Key()); err != nil {
				return false, d.scanned(err, t, joined)
			}
		}
		p.Add(t, it.Key()[1:], value, found)
	}
	return more, d.scanned(it.Error(), t, joined)
}

// inMoment calls f with all tables as of one moment.
func (d *DB) inMoment(ctx context.Context, f func(rows.Snapshot) error) error {
	if err := d.enter(ctx, &d.crawl.view); err != nil {
		return err
	}
	defer d.leave()
	it, err := d.db.NewIter(nil)
	if err != nil {
		return d.outcome("read", err)
	}
	defer it.Close()
	return f(rows.NewSnapshot(it))
}

// eachRow calls f with the rows of tables, as of one moment. What is behind damage of a table
// is left out: a scan of the table reports it.
func (d *DB) eachRow(ctx context.Context, tables []codec.Table, f func(now rows.Snapshot, key, value []byte) error) error {
	return d.inMoment(ctx, func(now rows.Snapshot) error {
		for _, t := range tables {
			err := d.eachOf(ctx, now, t, func(key, value []byte) error { return f(now, key, value) })
			if err != nil && !errors.Is(err, ErrDamaged) {
				return err
			}
		}
		return nil
	})
}

// eachOf calls f with each row of a table.
func (d *DB) eachOf(ctx context.Context, r rows.Reader, t codec.Table, f func(key, value []byte) error) error {
	it, err := r.NewIter(t.All())
	if err != nil {
		return d.outcome("read", err)
	}
	defer it.Close()
	going := func() error { return d.goingOn(ctx, &d.crawl.view) }
	return rows.Each(it, going, func(err error) error { return d.outcome("read", err) }, f)
}

// has reports whether a table has any row.
func (d *DB) has(t codec.Table) (bool, error) {
	it, err := d.db.NewIter(t.All())
	if err != nil {
		return false, d.outcome("open", err)
	}
	defer it.Close()
	return it.First(), d.outcome("open", it.Error())
}
