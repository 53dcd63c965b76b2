package pebblestore

import (
	"bytes"
	"container/heap"
	"context"

	"github.com/cockroachdb/pebble/v2"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

// A layerMerge reads what layers have for pages, in order, from one snapshot.
type layerMerge struct {
	its    []*pebble.Iterator
	q      layerQueue
	passed bool // the layer on top is at the row that was returned
	base   bool
	sum    layerSum
	page   []byte
	err    error
}

func (s *linkStore) merged(layers []codec.Layer, from, to string) *layerMerge {
	m := &layerMerge{base: layers[0].From == 0}
	for age, l := range layers {
		o := &pebble.IterOptions{}
		o.LowerBound, o.UpperBound = l.Bounds(from, to)
		var it *pebble.Iterator
		if len(m.its) == 0 {
			it, m.err = s.db.db.NewIter(o)
		} else {
			it, m.err = m.its[0].Clone(pebble.CloneOptions{IterOptions: o})
		}
		if m.err != nil {
			return m
		}
		m.its = append(m.its, it)
		if it.First() {
			_, page, _ := codec.SplitLinkKey(it.Key())
			m.q = append(m.q, layerHead{it, page, age})
		} else if m.err = it.Error(); m.err != nil {
			return m
		}
	}
	heap.Init(&m.q)
	return m
}

func (m *layerMerge) close() error {
	for _, it := range m.its {
		if err := it.Close(); m.err == nil {
			m.err = err
		}
	}
	m.its, m.q = nil, nil
	return m.err
}

// next returns the next page's key, and what the layers have for it. Both are valid until the
// next call.
func (m *layerMerge) next() (page, value []byte, ok bool) {
	if m.passed && m.err == nil {
		m.err = m.q.advance()
	}
	m.passed = false
	if m.err != nil || len(m.q) == 0 {
		return nil, nil, false
	}
	if !m.q.second() { // it is in no other
		m.passed = true
		value, m.err = m.q[0].it.ValueAndErr()
		return m.q[0].page, value, m.err == nil
	}
	m.page = append(m.page[:0], m.q[0].page...)
	for len(m.q) > 0 && bytes.Equal(m.q[0].page, m.page) {
		if value, m.err = m.q[0].it.ValueAndErr(); m.err != nil {
			return nil, nil, false
		}
		m.sum.add(m.page, value)
		if m.err = m.q.advance(); m.err != nil {
			return nil, nil, false
		}
	}
	return m.page, m.sum.value(m.base), true
}

// A layerReader reads what the layers of a store have for pages, in order. It never keeps
// an iterator open: see page.
type layerReader struct {
	s        *linkStore
	ctx      context.Context
	from, to string
	size     int // of the next page of rows
	more     bool
	page     rows.Page
	i        int // the next row of it
	err      error
}

func (s *linkStore) read(ctx context.Context, from, to string) *layerReader {
	return &layerReader{s: s, ctx: ctx, from: from, to: to, size: rows.FirstPageSize, more: true}
}

// next is that of a layerMerge.
func (r *layerReader) next() (page, value []byte, ok bool) {
	for r.i >= r.page.Len() {
		if !r.more {
			return nil, nil, false
		}
		if r.more, r.err = r.fetch(); r.err != nil {
			r.more = false
			return nil, nil, false
		}
		r.i, r.size = 0, min(r.size*4, rows.LargestPageSize)
	}
	page, value, _ = r.page.Row(r.i)
	if r.i++; r.i == r.page.Len() {
		r.from = string(page) + "\x00" // the least key that is greater
	}
	return page, value, true
}

func (r *layerReader) fetch() (more bool, err error) {
	if err := r.s.db.enter(r.ctx, &r.s.view); err != nil {
		return false, err
	}
	defer r.s.db.leave()
	r.page.Reset()
	if r.to != "" && r.from >= r.to {
		return false, nil
	}
	for {
		list, err := r.s.list()
		if err != nil {
			return false, err
		}
		if r.s.listed != nil {
			r.s.listed()
		}
		more, err = r.fetchFrom(*list)
		// All of the list was there if it still is the list: see tidy.
		if r.s.layers.Load() == list {
			return more, r.s.db.scanned(err, codec.LinkTable, codec.LayerTable)
		}
	}
}

func (r *layerReader) fetchFrom(layers []codec.Layer) (more bool, err error) {
	r.page.Reset()
	m := r.s.merged(layers, r.from, r.to)
	for page, value, ok := m.next(); ok; page, value, ok = m.next() {
		if more = r.page.Full(r.size); more {
			break
		}
		r.page.Add(codec.LinkTable, page, value, nil)
	}
	return more, m.close()
}

// A layerQueue has the least page on top; for equal ones, that of the oldest layer.
type layerQueue []layerHead

type layerHead struct {
	it   *pebble.Iterator
	page []byte // of its key
	age  int
}

func (q layerQueue) Len() int { return len(q) }

func (q layerQueue) Less(i, j int) bool {
	if c := bytes.Compare(q[i].page, q[j].page); c != 0 {
		return c < 0
	}
	return q[i].age < q[j].age
}

func (q layerQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *layerQueue) Push(x any) { *q = append(*q, x.(layerHead)) }

func (q *layerQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// second reports whether another than that on top has the same page.
func (q layerQueue) second() bool {
	for child := 1; child <= 2 && child < len(q); child++ {
		if bytes.Equal(q[child].page, q[0].page) {
			return true
		}
	}
	return false
}

// advance moves the layer on top to its next page.
func (q *layerQueue) advance() error {
	head := &(*q)[0]
	if head.it.Next() {
		_, head.page, _ = codec.SplitLinkKey(head.it.Key())
		heap.Fix(q, 0)
	} else if err := head.it.Error(); err != nil {
		return err
	} else {
		heap.Pop(q)
	}
	return nil
}
