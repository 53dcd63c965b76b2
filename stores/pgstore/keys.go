package pgstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"iter"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/recrawl/recrawl/crawldb"
)

// mostIndexed is how many bytes of a key are indexed as they are. An entry of a B-tree of
// PostgreSQL holds 2,704 bytes.
const mostIndexed = 2000

// indexed returns what a row is indexed by, and the rest of its key: the key itself and nil,
// or for a long key its first bytes with a hash of the others, and the others. Only keys that
// agree in their first mostIndexed bytes are indexed out of order.
func indexed(key []byte) (index, tail []byte) {
	if len(key) <= mostIndexed {
		return key, nil
	}
	tail = key[mostIndexed:]
	sum := sha256.Sum256(tail)
	return slices.Concat(key[:mostIndexed], sum[:]), tail
}

// isLong reports whether an indexed key is that of a long key.
func isLong(index []byte) bool { return len(index) > mostIndexed }

// whole returns the key of a row.
func whole(index, tail []byte) []byte {
	if isLong(index) {
		return slices.Concat(index[:mostIndexed], tail)
	}
	return index
}

// after returns the least key that is greater than all that begin with a prefix; nil if there
// is none.
func after(prefix []byte) []byte {
	n := len(prefix)
	for n > 0 && prefix[n-1] == 0xff {
		n--
	}
	if n == 0 {
		return nil
	}
	next := bytes.Clone(prefix[:n])
	next[n-1]++
	return next
}

// A row is a key with its values.
type row struct{ key, value, detail []byte }

// A source says which table to scan.
type source struct {
	table  string
	values string // one or two columns
	two    bool
	rows   int // how many are read at once
}

// scan yields the rows of a range in the order of their keys. It holds no connection while
// the loop runs: each page is a query that begins after the last key of the one before.
func (v *view) scan(ctx context.Context, src source, r crawldb.Range) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		p := place{from: []byte(r.From), to: []byte(r.To)}
		if r.To != "" && r.From >= r.To {
			p.done = true
			if err := v.ready(ctx); err != nil {
				yield(row{}, err)
			}
		}
		for !p.done {
			page, err := v.page(ctx, src, &p)
			if err != nil {
				yield(row{}, err)
				return
			}
			for _, x := range page {
				if err := v.ready(ctx); err != nil {
					yield(row{}, err)
					return
				}
				if !yield(x, nil) {
					return
				}
			}
		}
	}
}

// A place is how far a scan has come: at the key from, or behind it. While the scan is among
// the long keys that share a prefix, which are ordered by their tails, from is the next tail.
type place struct {
	prefix   []byte // of the long keys; nil outside of them
	from, to []byte
	behind   bool
	done     bool
}

// operator returns how the next rows compare with from.
func (p *place) operator() string {
	if p.behind {
		return ">"
	}
	return ">="
}

// page reads the next rows and moves the place.
func (v *view) page(ctx context.Context, src source, p *place) ([]row, error) {
	if p.prefix == nil && len(p.from) > mostIndexed {
		p.prefix, p.from = p.from[:mostIndexed:mostIndexed], p.from[mostIndexed:]
	}
	if p.prefix != nil {
		return v.longPage(ctx, src, p)
	}
	longEnd := len(p.to) > mostIndexed
	where, args := `key `+p.operator()+` $1`, []any{p.from}
	switch {
	case longEnd:
		where, args = where+` AND key <= $2`, append(args, p.to[:mostIndexed])
	case len(p.to) > 0:
		where, args = where+` AND key < $2`, append(args, p.to)
	}
	rows, err := v.rows(ctx, src, where+` ORDER BY key`, args)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if isLong(rows[i].index) {
			p.prefix, p.from, p.behind = rows[i].index[:mostIndexed:mostIndexed], nil, false
			return keyed(rows[:i]), nil
		}
	}
	switch {
	case len(rows) == src.rows:
		p.from, p.behind = rows[len(rows)-1].index, true
	case longEnd:
		p.prefix, p.from, p.behind = p.to[:mostIndexed:mostIndexed], nil, false
	default:
		p.done = true
	}
	return keyed(rows), nil
}

// longPage is page among long keys.
func (v *view) longPage(ctx context.Context, src source, p *place) ([]row, error) {
	last := slices.Concat(p.prefix, bytes.Repeat([]byte{0xff}, sha256.Size))
	where, args := `key > $1 AND key <= $2 AND tail `+p.operator()+` $3`, []any{p.prefix, last, notNil(p.from)}
	ends := len(p.to) > mostIndexed && bytes.Equal(p.to[:mostIndexed], p.prefix)
	if ends {
		where, args = where+` AND tail < $4`, append(args, p.to[mostIndexed:])
	}
	rows, err := v.rows(ctx, src, where+` ORDER BY tail`, args)
	if err != nil {
		return nil, err
	}
	if len(rows) == src.rows {
		p.from, p.behind = rows[len(rows)-1].tail, true
		return keyed(rows), nil
	}
	p.from, p.prefix, p.behind = after(p.prefix), nil, false
	p.done = ends || p.from == nil || len(p.to) > 0 && bytes.Compare(p.from, p.to) >= 0
	return keyed(rows), nil
}

// indexedRow is a row as it is stored.
type indexedRow struct {
	index, tail []byte
	row
}

func keyed(stored []indexedRow) []row {
	rows := make([]row, len(stored))
	for i, x := range stored {
		rows[i] = x.row
		rows[i].key = whole(x.index, x.tail)
	}
	return rows
}

func (v *view) rows(ctx context.Context, src source, where string, args []any) (page []indexedRow, err error) {
	query := `SELECT key, tail, ` + src.values + ` FROM ` + src.table + ` WHERE ` + where + ` LIMIT ` + strconv.Itoa(src.rows)
	err = v.read(ctx, func(ctx context.Context) error {
		rows, err := v.db.pool.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		page, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (x indexedRow, err error) {
			into := []any{&x.index, &x.tail, &x.value, &x.detail}
			if !src.two {
				into = into[:3]
			}
			err = r.Scan(into...)
			return x, err
		})
		return err
	})
	return page, err
}

// notNil returns b, or an empty slice, which is not NULL.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
