package linklayers

import (
	"bytes"
	"container/heap"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// A Reader reads what layers have for pages, in the order of pages, as of one moment.
type Reader struct {
	layers []*pebble.Iterator
	q      queue
	passed bool // the layer on top is at the row that was returned
	base   bool
	sum    pageSum
	page   []byte
	err    error
}

// Read reads the pages whose keys lie in a range, as of now; an empty to means all that follow. The
// reader must be closed.
func Read(db *pebble.DB, layers []codec.Layer, from, to string) *Reader {
	r := &Reader{base: layers[0].From == 0}
	for age, l := range layers {
		o := &pebble.IterOptions{}
		o.LowerBound, o.UpperBound = l.Bounds(from, to)
		var it *pebble.Iterator
		if len(r.layers) == 0 {
			it, r.err = db.NewIter(o)
		} else {
			it, r.err = r.layers[0].Clone(pebble.CloneOptions{IterOptions: o})
		}
		if r.err != nil {
			return r
		}
		r.layers = append(r.layers, it)
		if it.First() {
			_, page, _ := codec.SplitLinkKey(it.Key())
			r.q = append(r.q, head{it, page, age})
		} else if r.err = it.Error(); r.err != nil {
			return r
		}
	}
	heap.Init(&r.q)
	return r
}

// Close ends the reading and returns why it ended early, if it did.
func (r *Reader) Close() error {
	for _, it := range r.layers {
		if err := it.Close(); r.err == nil {
			r.err = err
		}
	}
	r.layers, r.q = nil, nil
	return r.err
}

// Next returns the next page's key, and what the layers have for it. Both are valid until the
// next call.
func (r *Reader) Next() (page, value []byte, ok bool) {
	if r.passed && r.err == nil {
		r.err = r.q.advance()
	}
	r.passed = false
	if r.err != nil || len(r.q) == 0 {
		return nil, nil, false
	}
	if !r.q.second() { // it is in no other
		r.passed = true
		value, r.err = r.q[0].it.ValueAndErr()
		return r.q[0].page, value, r.err == nil
	}
	r.page = append(r.page[:0], r.q[0].page...)
	for len(r.q) > 0 && bytes.Equal(r.q[0].page, r.page) {
		if value, r.err = r.q[0].it.ValueAndErr(); r.err != nil {
			return nil, nil, false
		}
		r.sum.add(r.page, value)
		if r.err = r.q.advance(); r.err != nil {
			return nil, nil, false
		}
	}
	return r.page, r.sum.value(r.base), true
}

// Unreadable returns the URL of the page that Next has returned, if what its layers have cannot be
// read together.
func (r *Reader) Unreadable() (url string, is bool) { return r.sum.sum.URL(), r.sum.sum.Bad() }

// A queue has the least page on top; for equal ones, that of the oldest layer.
type queue []head

type head struct {
	it   *pebble.Iterator
	page []byte // of its key
	age  int
}

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if c := bytes.Compare(q[i].page, q[j].page); c != 0 {
		return c < 0
	}
	return q[i].age < q[j].age
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *queue) Push(x any) { *q = append(*q, x.(head)) }

func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// second reports whether another than that on top has the same page.
func (q queue) second() bool {
	for child := 1; child <= 2 && child < len(q); child++ {
		if bytes.Equal(q[child].page, q[0].page) {
			return true
		}
	}
	return false
}

// advance moves the layer on top to its next page.
func (q *queue) advance() error {
	top := &(*q)[0]
	if top.it.Next() {
		_, top.page, _ = codec.SplitLinkKey(top.it.Key())
		heap.Fix(q, 0)
	} else if err := top.it.Error(); err != nil {
		return err
	} else {
		heap.Pop(q)
	}
	return nil
}

// A pageSum joins what layers have for one page.
type pageSum struct {
	n   int
	one []byte
	sum codec.LinkSum
}

// add adds what the next layer has, in the order of age.
func (s *pageSum) add(page, value []byte) {
	switch s.n++; s.n {
	case 1:
		s.one = append(s.one[:0], value...)
		return
	case 2:
		s.sum.Reset(page, false)
		_ = s.sum.MergeNewer(s.one) // these do not fail
	}
	_ = s.sum.MergeNewer(value)
}

// value returns the sum, nil if there is nothing, and begins another. base says that no older layer
// has links of the page. The value is valid until the next Add.
func (s *pageSum) value(base bool) []byte {
	n := s.n
	s.n = 0
	switch n {
	case 0:
		return nil
	case 1:
		return s.one
	}
	value, _, _ := s.sum.Finish(base)
	return value
}
