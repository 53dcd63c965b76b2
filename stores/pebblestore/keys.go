package pebblestore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"iter"

	"github.com/cockroachdb/pebble/v2"
)

// A table is the first byte of the keys of one kind. The bytes are stored:
// never reuse or change them.
type table byte

const (
	crawlTable table = 'c' // crawldb.Key: Datum without its lease
	leaseTable table = 'e' // crawldb.Key: lease
	readyTable table = 'd' // level, crawldb.Key: entry
	hostTable  table = 'h' // name: Host without its robots.txt files
	layerTable table = 'i' // layer, crawldb.Key: inlinks, to be merged
	linkTable  table = 'l' // crawldb.Key: inlinks, to be merged
	markTable  table = 'm' // job: cursor
	sideTable  table = 'r' // name: robots.txt files and statistics of a host
	stateTable table = 's' // the store's own state
	tallyTable table = 't' // host: entries of the ready table, by level
	wheelTable table = 'w' // bucket, crawldb.Key: entry
)

// allTables has the bytes of all tables.
var allTables = string([]byte{byte(crawlTable), byte(readyTable), byte(leaseTable), byte(hostTable), byte(layerTable), byte(linkTable), byte(markTable), byte(sideTable), byte(stateTable), byte(tallyTable), byte(wheelTable)})

func (t table) key(name string) []byte {
	return append(append(make([]byte, 0, 1+len(name)), byte(t)), name...)
}

// all are the options of an iterator over the table.
func (t table) all() *pebble.IterOptions {
	return &pebble.IterOptions{LowerBound: []byte{byte(t)}, UpperBound: []byte{byte(t) + 1}}
}

// bounds returns the bounds of the table's keys in the range.
func (t table) bounds(from, to string) (lower, upper []byte) {
	if to == "" {
		return t.key(from), []byte{byte(t) + 1}
	}
	return t.key(from), t.key(to)
}

// A page is a run of records read at a time. It is read while the engine is in
// use and yielded when it is not: so a loop over a table may take as long as it
// likes, write, and stop, and never keeps an iterator open, which would delay
// the deletion of files or make closing the engine a panic.
type page struct {
	buf  []byte
	ends []int // of key, value and joined value of each record in turn
}

func (p *page) reset() { p.buf, p.ends = p.buf[:0], p.ends[:0] }

func (p *page) add(b []byte) {
	p.buf = append(p.buf, b...)
	p.ends = append(p.ends, len(p.buf))
}

func (p *page) len() int { return len(p.ends) / 3 }

func (p *page) part(i int) []byte {
	from := 0
	if i > 0 {
		from = p.ends[i-1]
	}
	return p.buf[from:p.ends[i]:p.ends[i]]
}

// row returns the key of a record, without the byte of the table, its value, and
// what the joined table has under the same key.
func (p *page) row(i int) (key, value, joined []byte) {
	return p.part(3 * i)[1:], p.part(3*i + 1), p.part(3*i + 2)
}

// A row is one record of a table; it is valid until the next one is requested.
type row struct {
	key    string // without the byte of the table
	value  []byte
	joined []byte // what the joined table has under the same key
}

// Pages start small, for callers that want only a few records, and grow.
const (
	firstPage    = 32
	largestPage  = 4096
	maxPageBytes = 1 << 20
)

// scan yields the rows of a table, with those of joined if that is not zero.
// The rows of one page are from one snapshot.
func (d *DB) scan(ctx context.Context, v *view, t, joined table, from, to string) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		for p, err := range d.pages(ctx, v, t, joined, from, to) {
			if err != nil {
				yield(row{}, err)
				return
			}
			for i := range p.len() {
				if err := ctx.Err(); err != nil {
					yield(row{}, err)
					return
				}
				key, value, joined := p.row(i)
				if !yield(row{key: string(key), value: value, joined: joined}, nil) {
					return
				}
			}
		}
	}
}

// pages yields the rows of a table in pages, each of which is valid until the
// next is requested.
func (d *DB) pages(ctx context.Context, v *view, t, joined table, from, to string) iter.Seq2[*page, error] {
	return func(yield func(*page, error) bool) {
		lower, upper := t.bounds(from, to)
		var p page
		for size := firstPage; ; size = min(size*4, largestPage) {
			more, err := d.readPage(ctx, v, &p, size, joined, lower, upper)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(&p, nil) || !more {
				return
			}
			// The least key that is greater than the last.
			lower = append(append(lower[:0], p.part(3*(p.len()-1))...), 0)
		}
	}
}

func (d *DB) readPage(ctx context.Context, v *view, p *page, size int, joined table, lower, upper []byte) (more bool, err error) {
	if err := d.enter(ctx, v); err != nil {
		return false, err
	}
	defer d.leave()
	p.reset()
	if string(lower) >= string(upper) {
		return false, nil
	}
	t := table(lower[0])
	it, err := d.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return false, d.scanned(err, t, joined)
	}
	defer it.Close()
	var other beside
	if joined != 0 {
		if other, err = besideOf(it, joined); err != nil {
			return false, d.scanned(err, t, joined)
		}
		defer other.close()
	}
	for ok := it.First(); ok; ok = it.Next() {
		if p.len() >= size || len(p.buf) >= maxPageBytes {
			more = true
			break
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return false, d.scanned(err, t, joined)
		}
		p.add(it.Key())
		p.add(value)
		value = nil
		if joined != 0 {
			if value, err = other.find(it.Key()); err != nil {
				return false, d.scanned(err, t, joined)
			}
		}
		p.add(value)
	}
	return more, d.scanned(it.Error(), t, joined)
}

// A cursor finds keys that are requested in ascending order. It only moves
// forward, in steps while keys turn out to be near, which is several times
// cheaper than seeking each of them.
type cursor struct {
	it      *pebble.Iterator
	started bool
	misses  int // keys in a row that no steps led to
	// last is the greatest key there is to find; nil if the iterator must end up after
	// a key that does not exist. If keys lie far apart the filters of tables are then
	// used, and few blocks are read of tables that do not have a key.
	last []byte
	// apart, if not nil, is used for keys that lie far apart instead. It has the
	// contents of the iterator, and looks no further than the newest table that has a
	// key, where an iterator reads a block of the last level for each; but it opens
	// tables anew.
	apart pebble.Reader
	buf   []byte // of returned values
}

// A seek costs as much as six steps where everything is in one level, and as
// twenty-four behind some large updates. So many are taken where steps led to the
// last key, and six after one that they did not lead to. If they lead nowhere four
// times in a row the keys lie far apart, and only two in sixty-four try again: one
// by seeking, and one from there.
const (
	nearby     = 6
	nearer     = 24
	tries      = 4
	triesAgain = 2
	tryEvery   = 64
)

// find returns the value under key, nil if there is none. It is valid until the
// next find.
func (c *cursor) find(key []byte) ([]byte, error) {
	steps := 1
	switch {
	case c.misses == 0:
		steps = nearer
	case c.misses < tries || c.misses%tryEvery < triesAgain:
		steps = nearby
	case c.apart != nil:
		c.misses++
		c.started = false // no step can continue from here
		value, closer, err := c.apart.Get(key)
		if err == pebble.ErrNotFound {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if c.buf = append(c.buf[:0], value...); c.buf == nil {
			c.buf = []byte{}
		}
		return c.buf, closer.Close()
	case c.last != nil && bytes.Compare(key, c.last) <= 0:
		c.misses++
		c.started = false
		if !c.it.SeekPrefixGE(key) {
			return nil, c.it.Error()
		}
		return c.value()
	}
	ok, is := c.started && c.it.Valid(), -1 // is compares the key it stands on with key
	for ; ok; ok = c.it.Next() {
		if is = bytes.Compare(c.it.Key(), key); is >= 0 || steps == 0 {
			break
		}
		steps--
	}
	// What cannot be read between two keys, or was to be read for the one before, says
	// nothing of this one.
	if !c.started || ok && is < 0 || !ok && c.it.Error() != nil {
		c.started = true
		c.misses++
		if ok = c.it.SeekGE(key); ok {
			is = bytes.Compare(c.it.Key(), key)
		}
	} else {
		c.misses = 0
	}
	if !ok {
		return nil, c.it.Error()
	}
	if is != 0 {
		return nil, nil
	}
	return c.value()
}

// value returns what is under the key that was found.
func (c *cursor) value() ([]byte, error) {
	value, err := c.it.ValueAndErr()
	if value == nil {
		value = []byte{}
	}
	return value, err
}

// beside finds the values of another table under keys in ascending order. It is at the
// first row that was not passed yet, so a key without a row costs only a comparison.
type beside struct {
	at  cursor
	t   table
	key []byte
}

// besideOf returns the rows of a table in the snapshot of an iterator.
func besideOf(it *pebble.Iterator, t table) (beside, error) {
	other, err := it.Clone(pebble.CloneOptions{IterOptions: t.all()})
	return beside{at: cursor{it: other}, t: t}, err
}

func (b *beside) close() error { return b.at.it.Close() }

// find returns the value under a key of the other table, nil if there is none. It is
// valid until the next find.
func (b *beside) find(key []byte) ([]byte, error) {
	if b.at.started && (!b.at.it.Valid() || bytes.Compare(b.at.it.Key()[1:], key[1:]) > 0) {
		return nil, b.at.it.Error()
	}
	b.key = append(append(b.key[:0], byte(b.t)), key[1:]...)
	return b.at.find(b.key)
}

// A reader is the current state of the engine, or a snapshot.
type reader interface {
	Get(key []byte) (value []byte, closer io.Closer, err error)
	NewIter(o *pebble.IterOptions) (*pebble.Iterator, error)
}

// A moment is a snapshot of all tables: that of an iterator, not a snapshot of the
// engine; see [hostStore.load]. It is for use by one goroutine.
type moment struct{ it *pebble.Iterator }

// inMoment calls f with all tables as of one moment.
func (d *DB) inMoment(ctx context.Context, f func(moment) error) error {
	if err := d.enter(ctx, &d.crawl.view); err != nil {
		return err
	}
	defer d.leave()
	it, err := d.db.NewIter(nil)
	if err != nil {
		return d.outcome("read", err)
	}
	defer it.Close()
	return f(moment{it})
}

// eachRow calls f with the rows of tables, as of one moment. What is behind damage of a table
// is left out: whoever scans the table reports it.
func (d *DB) eachRow(ctx context.Context, tables []table, f func(now moment, key, value []byte) error) error {
	return d.inMoment(ctx, func(now moment) error {
		for _, t := range tables {
			err := d.crawl.rows(ctx, now, t, func(key, value []byte) error { return f(now, key, value) })
			if err != nil && !errors.Is(err, ErrDamaged) {
				return err
			}
		}
		return nil
	})
}

// Get returns a value that is valid until the next call.
func (m moment) Get(key []byte) ([]byte, io.Closer, error) {
	if !m.it.SeekGE(key) || !bytes.Equal(m.it.Key(), key) {
		return nil, nil, cmp.Or(m.it.Error(), pebble.ErrNotFound)
	}
	value, err := m.it.ValueAndErr()
	return value, io.NopCloser(nil), err
}

func (m moment) NewIter(o *pebble.IterOptions) (*pebble.Iterator, error) {
	return m.it.Clone(pebble.CloneOptions{IterOptions: o})
}

// get returns a copy of the value under key, nil if there is none.
func get(r reader, key []byte) ([]byte, error) {
	value, closer, err := r.Get(key)
	if err == pebble.ErrNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, len(value)), value...)
	return out, closer.Close()
}

// has reports whether a table has any row.
func (d *DB) has(t table) (bool, error) {
	it, err := d.db.NewIter(t.all())
	if err != nil {
		return false, d.outcome("open", err)
	}
	defer it.Close()
	return it.First(), d.outcome("open", it.Error())
}
