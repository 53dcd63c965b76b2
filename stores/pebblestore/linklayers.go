package pebblestore

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"
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
type layer struct{ from, to uint32 }

const (
	// layerPrefix is the length of what precedes the page in a key of layerTable: the table,
	// and the ages as four bytes each, the greatest first. The layer of age zero is in
	// linkTable: all links of stores before version 10, and of those that know only small Merges.
	layerPrefix = 1 + 4 + 4
	// mostLayers is how many layers there may be beside the newest before some are joined.
	mostLayers = 16
	// joinedTable is about how many bytes of rows a table of a joined layer has.
	joinedTable = 16 << 20
)

// appendKey appends the key of a page.
func (l layer) appendKey(dst []byte, page string) []byte {
	if l.to == 0 {
		dst = append(dst, byte(linkTable))
	} else {
		dst = append(dst, byte(layerTable))
		dst = binary.BigEndian.AppendUint32(dst, l.to)
		dst = binary.BigEndian.AppendUint32(dst, l.from)
	}
	return append(dst, page...)
}

// end is the least key behind the layer.
func (l layer) end() []byte {
	end := l.appendKey(nil, "")
	for i := len(end) - 1; ; i-- {
		if end[i]++; end[i] != 0 {
			return end
		}
	}
}

// bounds are those of the keys of pages in a range.
func (l layer) bounds(from, to string) (lower, upper []byte) {
	lower, upper = l.appendKey(nil, from), l.end()
	if to != "" {
		upper = l.appendKey(nil, to)
	}
	return lower, upper
}

// has reports whether all of another layer is in this one.
func (l layer) has(other layer) bool {
	return l != other && l.from <= other.from && other.to <= l.to
}

// compare puts the older first, and what was joined behind its remainders.
func (l layer) compare(other layer) int {
	return cmp.Or(cmp.Compare(l.to, other.to), cmp.Compare(other.from, l.from))
}

// isLink reports whether a key is one of the link db.
func isLink(key []byte) bool {
	return len(key) > 0 && (table(key[0]) == linkTable || table(key[0]) == layerTable)
}

// layerOf divides a key of the link db.
func layerOf(key []byte) (l layer, page []byte, ok bool) {
	switch {
	case !isLink(key):
	case table(key[0]) == linkTable:
		return layer{}, key[1:], true
	case len(key) >= layerPrefix:
		l = layer{from: binary.BigEndian.Uint32(key[5:]), to: binary.BigEndian.Uint32(key[1:])}
		return l, key[layerPrefix:], 0 < l.to && l.from <= l.to
	}
	return l, nil, false
}

// findLayers returns the layers that there are, and those that are remainders, each in the
// order of their age. There is always one to write to.
func findLayers(db *pebble.DB) (layers, old []layer, err error) {
	it, err := db.NewIter(layerTable.all())
	if err != nil {
		return nil, nil, err
	}
	all := []layer{{}}
	var named []layer // by the bounds of files
	next := []byte{byte(layerTable)}
	for next != nil {
		switch ok, err := it.SeekGE(next), it.Error(); {
		case ok:
			if l, _, known := layerOf(it.Key()); known {
				all, next = append(all, l), l.end()
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
			i := slices.IndexFunc(named, func(l layer) bool { return bytes.Compare(next, l.end()) < 0 })
			if next = nil; i >= 0 {
				all, next = append(all, named[i]), named[i].end()
			}
		}
	}
	_ = it.Close() // whose errors were seen
	slices.SortFunc(all, layer.compare)
	for _, l := range all {
		if slices.ContainsFunc(all, func(other layer) bool { return other.has(l) }) {
			old = append(old, l)
		} else {
			layers = append(layers, l)
		}
	}
	return layers, old, nil
}

// layersOfFiles returns the layers that the engine's files have, in the order of keys.
func layersOfFiles(db *pebble.DB) (named []layer, err error) {
	files, err := filesOf(db)
	for _, file := range files {
		for _, key := range [...][]byte{file.Smallest.UserKey, file.Largest.UserKey} {
			if l, _, known := layerOf(key); known && table(key[0]) == layerTable {
				named = append(named, l)
			}
		}
	}
	slices.SortFunc(named, func(a, b layer) int { return bytes.Compare(a.end(), b.end()) })
	return named, err
}

// list returns the layers, the newest last. It is another list as soon as there are others.
func (s *linkStore) list() (*[]layer, error) {
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
	if len(old) > 0 && old[0] == (layer{}) {
		if some, err := s.anyBehind(layer{}, ""); err == nil && !some {
			old = old[1:]
		}
	}
	s.old = old
	s.remains.Store(len(old) > 0)
	s.layers.Store(&layers)
	return &layers, nil
}

// replace replaces neighbours in the list, or appends to it.
func (s *linkStore) replace(some []layer, by layer) {
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
func (s *linkStore) anyBehind(l layer, page string) (bool, error) {
	it, err := s.db.db.NewIter(&pebble.IterOptions{LowerBound: append(l.appendKey(nil, page), 0), UpperBound: l.end()})
	if err != nil {
		return false, err
	}
	some := it.First()
	return some, closing(it)
}

// closing closes an iterator and returns why it ended, if not because there is no more.
func closing(it *pebble.Iterator) error {
	err := it.Error()
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	return err
}

// layerFor returns the layer for a table whose first page has that key, whether it is a new
// one, and whether there are no other pages in it from there on. The turn must be held.
func (s *linkStore) layerFor(page string) (l layer, began, fresh bool, err error) {
	list, err := s.list()
	if err != nil {
		return l, false, false, err
	}
	l = (*list)[len(*list)-1]
	some, err := s.anyBehind(l, page)
	if err := s.db.outcome("link db", err); err != nil && !errors.Is(err, ErrDamaged) { // what cannot be read is in the way, too
		return l, false, false, err
	}
	if fresh = !some && err == nil; fresh || l.to == math.MaxUint32 {
		return l, false, fresh, nil
	}
	l = layer{l.to + 1, l.to + 1}
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

func (s *linkStore) valueIn(layers []layer, page string) (value []byte, err error) {
	if len(layers) == 1 {
		return get(s.db.db, layers[0].appendKey(nil, page))
	}
	// The filters of the last level are used only if asked for.
	it, err := s.db.db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	if err != nil {
		return nil, err
	}
	var sum layerSum
	var key []byte
	for _, l := range layers {
		key = l.appendKey(key[:0], page)
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
	return bytes.Clone(sum.value(layers[0].from == 0)), closing(it)
}

// layerSum joins what layers have for a page.
type layerSum struct {
	n   int
	one []byte
	sum linkSum
}

// add adds what the next layer has.
func (s *layerSum) add(page, value []byte) {
	switch s.n++; s.n {
	case 1:
		s.one = append(s.one[:0], value...)
		return
	case 2:
		s.sum.reset()
		s.sum.key = append(s.sum.key, page...)
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
