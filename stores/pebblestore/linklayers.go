package pebblestore

import (
	"bytes"
	"errors"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/sstables"
)

// The link db is layers, each with rows of its own for the pages that it knows. What a
// small Merge adds goes into the newest. A Merge that makes a table, and finds rows behind
// its first page there, begins another: then nothing of the engine's overlaps the table,
// and it is not compacted with the links that there are. In a single table of rows, links
// were a third of what the engine compacted behind large updates and inversions, and the
// more of them there were the dearer each became.
//
// Who reads asks all layers for a page and joins what they have, in the order of the
// layers. So that these stay few, neighbours become one in the background: when there are
// more than mostLayers, as many of the newest as are no larger than all that are newer
// than them together. A link is then written once more for each doubling of a link db of
// more than that many inversions. (Size-tiered compaction; O'Neil, Cheng, Gawlick, O'Neil:
// The log-structured merge-tree, 1996, is the levelled one.)
//
// A layer is named by the ages of what became it, and the name says what takes its place:
// one whose ages are all in another is a remainder of what has become the other, and not
// read. So the tables of a joined layer are added at one go, readers turn to it, and only
// then the old ones are deleted; a crash in between costs the room of the remainder until
// the next large Merge.

const (
	// mostLayers is how many layers there may be beside the newest before some are joined.
	mostLayers = 16
	// joinedTable is about how many bytes of rows a table of a joined layer has.
	joinedTable = 16 << 20
)

// findLayers returns the layers that there are, and those that are remainders, each in the
// order of their age. There is always one to write to.
func findLayers(db *pebble.DB) (layers, old []codec.Layer, err error) {
	it, err := db.NewIter(codec.LayerTable.All())
	if err != nil {
		return nil, nil, err
	}
	all := []codec.Layer{{}}
	var named []codec.Layer // by the bounds of files
	next := []byte{byte(codec.LayerTable)}
	for next != nil {
		switch ok, err := it.SeekGE(next), it.Error(); {
		case ok:
			if l, _, known := codec.SplitLinkKey(it.Key()); known {
				all, next = append(all, l), l.End()
			} else {
				next = append(bytes.Clone(it.Key()), 0) // Verify reports it
			}
		case err == nil:
			next = nil
		case !pebble.IsCorruptionError(err):
			_ = it.Close()
			return nil, nil, err
		default:
			// Whoever needs what cannot be read will say so. Each file has one layer: see oneKind.
			if named == nil {
				if named, err = layersOfFiles(db); err != nil {
					_ = it.Close()
					return nil, nil, err
				}
			}
			i := slices.IndexFunc(named, func(l codec.Layer) bool { return bytes.Compare(next, l.End()) < 0 })
			if next = nil; i >= 0 {
				all, next = append(all, named[i]), named[i].End()
			}
		}
	}
	_ = it.Close() // whose errors were seen
	slices.SortFunc(all, codec.Layer.Compare)
	for _, l := range all {
		if slices.ContainsFunc(all, func(other codec.Layer) bool { return other.Contains(l) }) {
			old = append(old, l)
		} else {
			layers = append(layers, l)
		}
	}
	return layers, old, nil
}

// layersOfFiles returns the layers that the engine's files have, in the order of keys.
func layersOfFiles(db *pebble.DB) (named []codec.Layer, err error) {
	files, err := sstables.Files(db)
	for _, file := range files {
		for _, key := range [...][]byte{file.Smallest.UserKey, file.Largest.UserKey} {
			if l, _, known := codec.SplitLinkKey(key); known && codec.Table(key[0]) == codec.LayerTable {
				named = append(named, l)
			}
		}
	}
	slices.SortFunc(named, func(a, b codec.Layer) int { return bytes.Compare(a.End(), b.End()) })
	return named, err
}

// list returns the layers, the newest last. It is another list as soon as there are others.
func (s *linkStore) list() (*[]codec.Layer, error) {
	if list := s.layers.Load(); list != nil {
		return list, nil
	}
	s.listing.Lock()
	defer s.listing.Unlock()
	if list := s.layers.Load(); list != nil {
		return list, nil
	}
	layers, old, err := findLayers(s.db.db)
	if err := s.db.outcome("link db", err); err != nil {
		return nil, err
	}
	// Of the layer that every store has nothing may be left to delete.
	if len(old) > 0 && old[0] == (codec.Layer{}) {
		if some, err := s.anyBehind(codec.Layer{}, ""); err == nil && !some {
			old = old[1:]
		}
	}
	s.old = old
	s.remains.Store(len(old) > 0)
	s.layers.Store(&layers)
	return &layers, nil
}

// replace replaces neighbours in the list, or appends to it.
func (s *linkStore) replace(some []codec.Layer, by codec.Layer) {
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

// anyBehind reports whether a layer has a page behind that of a key.
func (s *linkStore) anyBehind(l codec.Layer, page string) (bool, error) {
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
	list, err := s.list()
	if err != nil {
		return l, false, false, err
	}
	l = (*list)[len(*list)-1]
	some, err := s.anyBehind(l, page)
	if err := s.db.outcome("link db", err); err != nil && !errors.Is(err, ErrDamaged) { // what cannot be read is in the way, too
		return l, false, false, err
	}
	if fresh = !some && err == nil; fresh || l.To == math.MaxUint32 {
		return l, false, fresh, nil
	}
	l = codec.Layer{From: l.To + 1, To: l.To + 1}
	s.db.layered.Store(true)
	s.replace(nil, l)
	return l, true, true, nil
}

// value returns what the layers have for a page, nil if there is nothing.
func (s *linkStore) value(page string) ([]byte, error) {
	for {
		list, err := s.list()
		if err != nil {
			return nil, err
		}
		if s.listed != nil {
			s.listed()
		}
		value, err := s.valueIn(*list, page)
		// All of the list was there if it still is the list: see tidy.
		if s.layers.Load() == list {
			return value, s.db.outcome("link db", err)
		}
	}
}

func (s *linkStore) valueIn(layers []codec.Layer, page string) (value []byte, err error) {
	if len(layers) == 1 {
		return rows.Get(s.db.db, layers[0].AppendKey(nil, page))
	}
	// The filters of the last level are used only if asked for.
	it, err := s.db.db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	if err != nil {
		return nil, err
	}
	var sum layerSum
	var key []byte
	for _, l := range layers {
		key = l.AppendKey(key[:0], page)
		if it.SeekPrefixGE(key) {
			found, err := it.ValueAndErr()
			if err != nil {
				_ = it.Close()
				return nil, err
			}
			sum.add(key[len(key)-len(page):], found)
		} else if it.Error() != nil {
			break
		}
	}
	return bytes.Clone(sum.value(layers[0].From == 0)), rows.Close(it)
}

// layerSum joins what layers have for a page.
type layerSum struct {
	n   int
	one []byte
	sum codec.LinkSum
}

// add adds what the next layer has.
func (s *layerSum) add(page, value []byte) {
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

// value returns the sum, nil if there is nothing, and begins another. It is valid until the next add.
func (s *layerSum) value(base bool) []byte {
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
