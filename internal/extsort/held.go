package extsort

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
)

// held are the records in memory. Their bytes are in chunks, so that they are
// not copied when more are added.
type held struct {
	memory, chunk int
	chunks        [][]byte // those before cur are full, those after it empty
	cur           int
	size          int // of all chunks
	entries       []entry
}

// entry is a record: some bytes of its key for sorting, and where the key is,
// as the number of the chunk and the offset in it. The key is followed by the
// length of the value and the value.
type entry struct {
	word uint64
	at   uint32
	klen uint32
}

const (
	entrySize = 16
	chunkBits = 20 // a larger chunk has one record
	maxChunks = 1 << (32 - chunkBits)
)

func newHeld(memory int) held {
	return held{memory: memory, chunk: min(max(memory/64, 256), 1<<chunkBits)}
}

// add adds a record if there is room for it, or if there are no others.
func (h *held) add(key, value []byte) bool {
	size := binary.MaxVarintLen32 + len(key) + len(value)
	at := h.cur
	for at < len(h.chunks) && cap(h.chunks[at])-len(h.chunks[at]) < size {
		at++
	}
	if at == maxChunks && len(h.entries) == 0 { // each of them is too small for this record
		h.chunks, h.size, at = nil, 0, 0
	}
	more, room := 0, cap(h.entries)
	if at == len(h.chunks) {
		more = max(h.chunk, size)
	}
	if len(h.entries) == room {
		room += max(room/2, 16)
	}
	if len(h.entries) > 0 && (h.size+more+room*entrySize > h.memory || at == maxChunks) {
		return false
	}
	if room > cap(h.entries) {
		h.entries = append(make([]entry, 0, room), h.entries...)
	}
	if at == len(h.chunks) {
		h.chunks = append(h.chunks, make([]byte, 0, more))
		h.size += more
	}
	h.cur = at
	c := h.chunks[at]
	h.entries = append(h.entries, entry{word: word(key), at: uint32(at)<<chunkBits | uint32(len(c)), klen: uint32(len(key))})
	c = binary.AppendUvarint(append(c, key...), uint64(len(value)))
	h.chunks[at] = append(c, value...)
	return true
}

// reset drops the records and keeps the memory, unless some records were larger
// than a chunk: then it is too fragmented to be reused.
func (h *held) reset() {
	h.entries = h.entries[:0]
	if slices.ContainsFunc(h.chunks, func(c []byte) bool { return cap(c) > h.chunk }) {
		h.chunks, h.size = nil, 0
	}
	h.cur = 0
	for i, c := range h.chunks {
		h.chunks[i] = c[:0]
	}
}

func (h *held) key(e entry) []byte {
	return h.chunks[e.at>>chunkBits][e.at&(1<<chunkBits-1):][:e.klen:e.klen]
}

func (h *held) pair(e entry) Pair {
	b := h.chunks[e.at>>chunkBits][e.at&(1<<chunkBits-1):]
	v, n := binary.Uvarint(b[e.klen:])
	end := int(e.klen) + n + int(v)
	return Pair{Key: b[:e.klen:e.klen], Value: b[end-int(v) : end : end]}
}

// each calls f with the records in the order of the entries, until it returns false.
func (h *held) each(f func(Pair) bool) {
	for _, e := range h.entries {
		if !f(h.pair(e)) {
			return
		}
	}
}

// The records are sorted by words of some bytes: first by those at the beginning of
// their keys, then those with equal words by the next, and finally by the values.
// (Bentley and Sedgewick: Fast algorithms for sorting and searching strings, SODA
// 1997; with the words beside the pointers as in Rantala's version.) Keys of the same
// site have long common prefixes, which a sort by comparison would examine again and
// again.

// wordBytes are in a word; the bits below count how many of them are used, plus
// one if the string continues.
const wordBytes = 7

func word(b []byte) uint64 {
	if len(b) > wordBytes {
		return binary.BigEndian.Uint64(b)&^0xff | (wordBytes + 1)
	}
	w := uint64(len(b))
	for i, c := range b {
		w |= uint64(c) << (56 - 8*i)
	}
	return w
}

// rest returns what the record is compared by after that many bytes of its key,
// or of its value, were found equal.
func (h *held) rest(e entry, depth int, value bool) []byte {
	if value {
		return h.pair(e).Value[depth:]
	}
	return h.key(e)[depth:]
}

func (h *held) sort() { h.sortBy(h.entries, 0, false, patience(len(h.entries))) }

// patience is how many times a run of records is divided by a word before it is
// assumed to be constructed to divide badly.
func patience(n int) int { return 2 * bits.Len(uint(n)) }

// Up to few records are sorted by comparison.
const few = 5

// sortBy sorts records whose keys, or keys and values, are equal before depth,
// and whose words are those at depth.
func (h *held) sortBy(a []entry, depth int, value bool, left int) {
	for len(a) > 1 {
		if len(a) <= few || left == 0 {
			h.sortFew(a, depth, value)
			return
		}
		left--
		pivot := median(a)
		// Where an entry goes cannot be predicted, so it is computed and not branched on.
		less, more := 0, 0
		for i, e := range a {
			_, below := bits.Sub64(e.word, pivot, 0)
			a[i], a[less] = a[less], e
			less += int(below)
		}
		for i, e := range a[less:] {
			_, above := bits.Sub64(pivot, e.word, 0)
			a[less+i], a[less+more] = a[less+more], e
			more += 1 - int(above)
		}
		more += less
		h.sortBy(a[:less], depth, value, left)
		h.sortBy(a[more:], depth, value, left)
		a = a[less:more]
		switch {
		case pivot&0xff > wordBytes:
			depth += wordBytes
		case value:
			return // all are equal
		default:
			depth, value = 0, true
		}
		if len(a) < 2 {
			return
		}
		for i := range a {
			a[i].word = word(h.rest(a[i], depth, value))
		}
		left = patience(len(a))
	}
}

func median(a []entry) uint64 {
	n := len(a)
	if n < 64 {
		return middle(a[0].word, a[n/2].word, a[n-1].word)
	}
	s := n / 8
	return middle(middle(a[0].word, a[s].word, a[2*s].word), middle(a[3*s].word, a[4*s].word, a[5*s].word), middle(a[6*s].word, a[7*s].word, a[n-1].word))
}

func middle(a, b, c uint64) uint64 { return max(min(a, b), min(max(a, b), c)) }

func (h *held) sortFew(a []entry, depth int, value bool) {
	order := func(x, y entry) int {
		if x.word != y.word {
			if x.word < y.word {
				return -1
			}
			return 1
		}
		if c := bytes.Compare(h.rest(x, depth, value), h.rest(y, depth, value)); c != 0 || value {
			return c
		}
		return bytes.Compare(h.pair(x).Value, h.pair(y).Value)
	}
	slices.SortFunc(a, order)
}

// shared returns the length of the common prefix of two strings.
func shared(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}
