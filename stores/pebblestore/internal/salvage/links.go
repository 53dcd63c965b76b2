package salvage

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// copyLinks copies the link db: for each page, what all layers have, remainders included.
// While all of them are there they change nothing, and if a layer that has taken their place is
// damaged they are what is left.
func (s *Salvage) copyLinks(ctx context.Context, in *sources) error {
	layers, err := s.findLayers(ctx, in)
	if err != nil {
		return err
	}
	var heads []*layerReader
	for _, l := range layers {
		h := s.openLayer(ctx, in.beside(), l)
		defer h.stop()
		if heads = append(heads, h); !h.advance() {
			heads = heads[:len(heads)-1]
		}
		if h.err != nil {
			return h.err
		}
	}
	var sum codec.LinkSum
	var entries []linkdb.Entry
	size := 0
	flush := func() error {
		err := s.target.Links.Merge(ctx, entries, 0)
		entries, size = entries[:0], 0
		return err
	}
	for len(heads) > 0 {
		page := heads[0].page
		for _, h := range heads[1:] {
			page = min(page, h.page)
		}
		e := linkdb.Entry{URL: crawldb.URLOf(page)}
		lost := func(err error) {
			s.Lost(Loss{What: "link db", URL: e.URL, Offset: -1, Block: -1, Err: err})
		}
		var values [][]byte
		for i := 0; i < len(heads); {
			h := heads[i]
			if h.page != page {
				i++
				continue
			}
			links, err := codec.DecodeInlinks(e.URL, h.value)
			if err == nil && crawldb.Key(e.URL) != page {
				err = errKey
			}
			if err == nil {
				values = append(values, h.value)
				e.Inlinks = links
			} else {
				lost(err)
			}
			if h.advance() {
				i++
			} else if heads = slices.Delete(heads, i, i+1); h.err != nil {
				return h.err
			}
		}
		if len(values) == 0 {
			continue
		}
		value := values[0]
		if len(values) > 1 {
			sum.Reset([]byte(page), false)
			for _, v := range values {
				_ = sum.MergeNewer(v) // does not fail
			}
			value, _, _ = sum.Finish(true)
			if e.Inlinks, err = codec.DecodeInlinks(e.URL, value); err != nil {
				lost(err)
				continue
			}
		}
		entries = append(entries, e)
		s.report.Targets++
		if size += len(value); len(entries) >= batchSize || size >= batchBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// findLayers returns the layers that anything is left of, the oldest first.
func (s *Salvage) findLayers(ctx context.Context, in *sources) ([]codec.Layer, error) {
	layers := []codec.Layer{{}}
	upper := []byte{byte(codec.LayerTable) + 1}
	for lower := []byte{byte(codec.LayerTable)}; ; {
		var first []byte
		err := in.between(ctx, lower, upper, func(key, _ []byte) error {
			first = bytes.Clone(key)
			return errEnough
		})
		if first == nil || !errors.Is(err, errEnough) {
			slices.SortFunc(layers, codec.Layer.Compare)
			return layers, err
		}
		l, _, known := codec.SplitLinkKey(first)
		if lower = append(first, 0); known {
			layers, lower = append(layers, l), l.End()
		} else {
			s.Lost(Loss{What: "link db", URL: crawldb.URLOf(string(first[1:])), Offset: -1, Block: -1, Err: errLayer})
		}
	}
}

// A layerReader is at a page of a layer.
type layerReader struct {
	next  func() (page string, value []byte, ok bool)
	stop  func()
	page  string
	value []byte
	err   error // why there is no more
}

func (s *Salvage) openLayer(ctx context.Context, in *sources, l codec.Layer) *layerReader {
	h := &layerReader{}
	h.next, h.stop = iter.Pull2(func(yield func(string, []byte) bool) {
		err := in.between(ctx, l.AppendKey(nil, ""), l.End(), func(key, value []byte) error {
			if _, page, _ := codec.SplitLinkKey(key); !yield(string(page), value) {
				return errEnough
			}
			return nil
		})
		if !errors.Is(err, errEnough) {
			h.err = err
		}
	})
	return h
}

func (h *layerReader) advance() (ok bool) {
	h.page, h.value, ok = h.next()
	return ok
}
