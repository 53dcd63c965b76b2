package pebblestore

import (
	"context"

	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/linklayers"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

// A linkReader reads what the layers have for pages, in order. It never keeps an iterator
// open: see [rows.Page].
type linkReader struct {
	s        *linkStore
	ctx      context.Context
	from, to string
	size     int // of the next page of rows
	more     bool
	page     rows.Page
	i        int // the next row of it
	err      error
}

func (s *linkStore) read(ctx context.Context, from, to string) *linkReader {
	return &linkReader{s: s, ctx: ctx, from: from, to: to, size: rows.FirstPageSize, more: true}
}

// next returns the next page's key, and what the layers have for it. Both are valid until the next call.
func (r *linkReader) next() (page, value []byte, ok bool) {
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

func (r *linkReader) fetch() (more bool, err error) {
	if err := r.s.db.enter(r.ctx, &r.s.view); err != nil {
		return false, err
	}
	defer r.s.db.leave()
	r.page.Reset()
	if r.to != "" && r.from >= r.to {
		return false, nil
	}
	for {
		list, err := r.s.currentLayers()
		if err != nil {
			return false, err
		}
		if r.s.onList != nil {
			r.s.onList()
		}
		more, err = r.fetchFrom(*list)
		// All of the list was there if it still is the list: see joinLayers.
		if r.s.layers.Load() == list {
			return more, r.s.db.scanned(err, codec.LinkTable, codec.LayerTable)
		}
	}
}

func (r *linkReader) fetchFrom(layers []codec.Layer) (more bool, err error) {
	r.page.Reset()
	m := linklayers.Read(r.s.db.db, layers, r.from, r.to)
	for page, value, ok := m.Next(); ok; page, value, ok = m.Next() {
		if more = r.page.Full(r.size); more {
			break
		}
		r.page.Add(codec.LinkTable, page, value, nil)
	}
	return more, m.Close()
}
