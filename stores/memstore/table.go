package memstore

import (
	"slices"
	"sort"
	"strings"
)

// table is a sorted map: a sorted list of sorted chunks. A lookup is two binary
// searches; an insertion moves at most a chunk of entries and, once for every
// half chunk, the list of chunks. That is fast enough for some ten million
// entries and a good deal shorter than a tree.
//
// The zero value is empty. Values are replaced, never changed in place, so what
// page returns may be read without a lock.
type table[V any] struct {
	chunks [][]entry[V] // none is empty
}

type entry[V any] struct {
	key string
	val V
}

// chunkSize is the size at which a chunk is split.
const chunkSize = 256

// find returns where key is, or where it belongs if it is absent.
func (t *table[V]) find(key string) (chunk, at int, ok bool) {
	chunk = sort.Search(len(t.chunks), func(i int) bool { return t.chunks[i][0].key > key }) - 1
	if chunk < 0 {
		return 0, 0, false
	}
	at, ok = slices.BinarySearchFunc(t.chunks[chunk], key, func(e entry[V], key string) int {
		return strings.Compare(e.key, key)
	})
	return chunk, at, ok
}

func (t *table[V]) get(key string) (V, bool) {
	chunk, at, ok := t.find(key)
	if !ok {
		var zero V
		return zero, false
	}
	return t.chunks[chunk][at].val, true
}

func (t *table[V]) set(key string, val V) {
	chunk, at, ok := t.find(key)
	if ok {
		t.chunks[chunk][at].val = val
		return
	}
	if len(t.chunks) == 0 {
		t.chunks = append(t.chunks, nil)
	}
	c := slices.Insert(t.chunks[chunk], at, entry[V]{key, val})
	t.chunks[chunk] = c
	if len(c) < chunkSize {
		return
	}
	// Keys that come in ascending order leave full chunks behind.
	half := len(c) / 2
	if chunk == len(t.chunks)-1 && at == len(c)-1 {
		half = len(c) - 1
	}
	t.chunks[chunk] = slices.Clip(c[:half])
	t.chunks = slices.Insert(t.chunks, chunk+1, slices.Clone(c[half:]))
	clear(c[half:])
}

func (t *table[V]) delete(key string) {
	chunk, at, ok := t.find(key)
	if !ok {
		return
	}
	t.chunks[chunk] = slices.Delete(t.chunks[chunk], at, at+1)
	if len(t.chunks[chunk]) == 0 {
		t.chunks = slices.Delete(t.chunks, chunk, chunk+1)
	}
}

// page appends to buf up to n entries, from the first whose key is at least
// from, with keys less than to; an empty to means no limit.
func (t *table[V]) page(buf []entry[V], from, to string, n int) []entry[V] {
	chunk, at, _ := t.find(from)
	for ; chunk < len(t.chunks); chunk, at = chunk+1, 0 {
		for _, e := range t.chunks[chunk][at:] {
			if len(buf) == n || to != "" && e.key >= to {
				return buf
			}
			buf = append(buf, e)
		}
	}
	return buf
}
