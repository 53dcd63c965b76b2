// Package linklayers reads the layers of a link db: what each has for a page, joined in the order of
// their age, and which layers there are. It does not write, and does not know how many layers are too
// many. Start with [Find] and [Read]; the names of layers are those of [codec.Layer].
//
// A link db is layers, each with rows of its own for the pages that it knows. What a small Merge adds
// goes into the newest. A Merge that makes a table, and finds rows behind its first page there, begins
// another: then nothing of the engine's overlaps the table, and it is not compacted with the links that
// there are. In a single table of rows, each inversion was compacted with all links, and cost more the
// more there were.
//
// A layer is named by the ages of what was joined into it, and the name says what takes its place: one
// whose ages are all in another is a remainder of what was joined into the other, and is not read. So the
// tables of a joined layer are added at once, readers turn to it, and only then the old ones are deleted;
// a crash in between costs the room of the remainders until the next large Merge.
package linklayers

import (
	"bytes"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

// Find returns the layers that there are, and the remainders of layers that were joined, each in the
// order of their age. There is always one to write to.
//
// Each file of the engine must have rows of one layer only: where rows cannot be read, the bounds of
// files say which layers there are.
func Find(db *pebble.DB) (layers, remainders []codec.Layer, err error) {
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
				next = append(bytes.Clone(it.Key()), 0) // a check of the keys reports it
			}
		case err == nil:
			next = nil
		case !pebble.IsCorruptionError(err):
			_ = it.Close()
			return nil, nil, err
		default:
			// A read of what is damaged reports it.
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
			remainders = append(remainders, l)
		} else {
			layers = append(layers, l)
		}
	}
	return layers, remainders, nil
}

// layersOfFiles returns the layers that the engine's files have, in the order of keys.
func layersOfFiles(db *pebble.DB) (named []codec.Layer, err error) {
	levels, err := db.SSTables()
	for _, file := range slices.Concat(levels...) {
		for _, key := range [...][]byte{file.Smallest.UserKey, file.Largest.UserKey} {
			if l, _, known := codec.SplitLinkKey(key); known && codec.Table(key[0]) == codec.LayerTable {
				named = append(named, l)
			}
		}
	}
	slices.SortFunc(named, func(a, b codec.Layer) int { return bytes.Compare(a.End(), b.End()) })
	return named, err
}

// Value returns what some layers, the oldest first, have for the key of a page, nil if there is nothing.
func Value(db *pebble.DB, layers []codec.Layer, page string) (value []byte, err error) {
	if len(layers) == 1 {
		return rows.Get(db, layers[0].AppendKey(nil, page))
	}
	// The filters of the last level are used only if asked for.
	it, err := db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	if err != nil {
		return nil, err
	}
	var sum pageSum
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
