package pebblestore

import (
	"errors"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/linklayers"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

// The link db is layers: see package linklayers. A read asks all of them for a page. So that these stay
// few, neighbours are joined in the background: when there are more than mostLayers, as many of the
// newest as are no larger than all that are newer than them together. A link is then written once more
// for each doubling of a link db of more than that many inversions. (Size-tiered compaction; O'Neil,
// Cheng, Gawlick, O'Neil: The log-structured merge-tree, 1996, is the levelled one.)

const (
	// mostLayers is how many layers there may be beside the newest before some are joined.
	mostLayers = 16
	// joinedTable is about how many bytes of rows a table of a joined layer has.
	joinedTable = 16 << 20
)

// currentLayers returns the layers, the newest last. It is another list as soon as there are others.
func (s *linkStore) currentLayers() (*[]codec.Layer, error) {
	if list := s.layers.Load(); list != nil {
		return list, nil
	}
	s.listing.Lock()
	defer s.listing.Unlock()
	if list := s.layers.Load(); list != nil {
		return list, nil
	}
	layers, old, err := linklayers.Find(s.db.db)
	if err := s.db.outcome("link db", err); err != nil {
		return nil, err
	}
	// Of the layer that every store has nothing may be left to delete.
	if len(old) > 0 && old[0] == (codec.Layer{}) {
		if some, err := s.hasPagesAfter(codec.Layer{}, ""); err == nil && !some {
			old = old[1:]
		}
	}
	s.remainders = old
	s.hasRemainders.Store(len(old) > 0)
	s.layers.Store(&layers)
	return &layers, nil
}

// replaceLayers replaces neighbours in the list, or appends to it.
func (s *linkStore) replaceLayers(some []codec.Layer, by codec.Layer) {
	s.listing.Lock()
	defer s.listing.Unlock()
	layers := slices.Clone(*s.layers.Load())
	i := len(layers)
	if len(some) > 0 {
		i = slices.Index(layers, some[0])
	}
	layers = slices.Replace(layers, i, i+len(some), by)
	s.layers.Store(&layers)
}

// hasPagesAfter reports whether a layer has a page after that of a key.
func (s *linkStore) hasPagesAfter(l codec.Layer, page string) (bool, error) {
	it, err := s.db.db.NewIter(&pebble.IterOptions{LowerBound: append(l.AppendKey(nil, page), 0), UpperBound: l.End()})
	if err != nil {
		return false, err
	}
	some := it.First()
	return some, rows.Close(it)
}

// layerFor returns the layer for a table whose first page has that key, whether it is a new
// one, and whether there are no other pages in it from there on. The turn must be held.
func (s *linkStore) layerFor(page string) (l codec.Layer, began, fresh bool, err error) {
	list, err := s.currentLayers()
	if err != nil {
		return l, false, false, err
	}
	l = (*list)[len(*list)-1]
	some, err := s.hasPagesAfter(l, page)
	if err := s.db.outcome("link db", err); err != nil && !errors.Is(err, ErrDamaged) { // what cannot be read counts, too
		return l, false, false, err
	}
	if fresh = !some && err == nil; fresh || l.To == math.MaxUint32 {
		return l, false, fresh, nil
	}
	l = codec.Layer{From: l.To + 1, To: l.To + 1}
	s.db.hasLayers.Store(true)
	s.replaceLayers(nil, l)
	return l, true, true, nil
}

// value returns what the layers have for a page, nil if there is nothing.
func (s *linkStore) value(page string) ([]byte, error) {
	for {
		list, err := s.currentLayers()
		if err != nil {
			return nil, err
		}
		if s.onList != nil {
			s.onList()
		}
		value, err := linklayers.Value(s.db.db, *list, page)
		// All of the list was there if it still is the list: see joinLayers.
		if s.layers.Load() == list {
			return value, s.db.outcome("link db", err)
		}
	}
}
