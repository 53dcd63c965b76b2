package extsort

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// buckets hold more records than fit into memory, in a file, divided by splitters,
// which partition a sample of the records (samplesort: Frazer and McKellar, 1970).
// Each bucket has what lies between two splitters, in order of arrival; records equal
// to a splitter are only counted. So a bucket has less than there was to divide,
// whatever the sample. Usually it is so much less that it is sorted in the cache of a
// core.
type buckets struct {
	file      temp
	size      int64 // of the file
	block     int
	splitters []splitter // ascending
	prefix    []byte     // of the keys of all splitters
	words     []uint64   // of the keys after the prefix
	list      []bucket   // one more than splitters
	// If records arrive in order, all after the sample go to the last bucket: once that
	// has this many bytes it ends after the greatest key, and another begins.
	full, last int
	greatest   []byte
	most       int    // buckets
	read       []byte // memory for reading blocks
	key        []byte // and for keys
}

type splitter struct {
	Pair
	count int // of the records that equal it
}

// bucket is blocks of the file and one that is not written yet.
type bucket struct {
	blocks []extent
	plain  []byte
	key    []byte // the last in plain
}

// extent is a block of the file. A hash of its contents is kept here and not in the
// file, as only the sorter that wrote it ever reads it.
type extent struct {
	at   int64
	size int
	hash uint64
}

// sampled is how many records are drawn for each splitter.
const sampled = 16

// newBuckets divides what will be added by splitters sampled from h.
func newBuckets(file temp, h *held, fan, block int) *buckets {
	n := len(h.entries)
	drawn := make([]entry, min(n, fan*sampled))
	for i := range drawn {
		drawn[i] = h.entries[i*n/len(drawn)]
	}
	h.sortBy(drawn, 0, false, patience(len(drawn)))
	b := &buckets{file: file, block: block, full: h.memory / 4, most: 2 * fan}
	for i := 1; i < fan; i++ {
		j := min(max(i*len(drawn)/fan, 1), len(drawn)-1)
		p := h.pair(drawn[j]).above(h.pair(drawn[max(j-1, 0)]))
		if k := len(b.splitters); k == 0 || p.compare(b.splitters[k-1].Pair) != 0 {
			b.splitters = append(b.splitters, splitter{Pair: Pair{bytes.Clone(p.Key), bytes.Clone(p.Value)}})
		}
	}
	b.list = make([]bucket, len(b.splitters)+1)
	b.setWords()
	return b
}

// setWords records the common prefix of the keys of all splitters, and what follows
// it.
func (b *buckets) setWords() {
	first, last := b.splitters[0].Key, b.splitters[len(b.splitters)-1].Key
	b.prefix = first[:shared(first, last)]
	b.words = b.words[:0]
	for i := range b.splitters {
		b.words = append(b.words, word(b.splitters[i].Key[len(b.prefix):]))
	}
}

// above returns a prefix of p that sorts after q, which is less than p; p if they are
// equal, of which there may be many.
func (p Pair) above(q Pair) Pair {
	if n := shared(p.Key, q.Key); n < len(p.Key) {
		return Pair{Key: p.Key[:n+1]}
	}
	if n := shared(p.Value, q.Value); n < len(p.Value) {
		return Pair{p.Key, p.Value[:n+1]}
	}
	return p
}

func (p Pair) compare(q Pair) int {
	if c := bytes.Compare(p.Key, q.Key); c != 0 {
		return c
	}
	return bytes.Compare(p.Value, q.Value)
}

// find returns the bucket of a record, or the splitter that equals it.
func (b *buckets) find(p Pair) (i int, equal bool) {
	n := shared(p.Key, b.prefix)
	switch {
	case n == len(b.prefix):
	case n == len(p.Key) || p.Key[n] < b.prefix[n]:
		return 0, false
	default:
		return len(b.splitters), false
	}
	w := word(p.Key[n:])
	lo := b.below(w)
	if lo == len(b.words) || b.words[lo] != w {
		return lo, false
	}
	hi := b.below(w + 1)
	for lo < hi {
		m := int(uint(lo+hi) / 2)
		c := p.compare(b.splitters[m].Pair)
		if c == 0 {
			return m, true
		}
		if c < 0 {
			hi = m
		} else {
			lo = m + 1
		}
	}
	return lo, false
}

// below returns how many words are less than w. Which half they are in cannot be
// predicted, so it is computed and not branched on.
func (b *buckets) below(w uint64) int {
	words, at := b.words, 0
	for n := len(words); n > 0; {
		half := (n + 1) / 2
		_, less := bits.Sub64(words[at+half-1], w, 0)
		at += half & -int(less)
		n -= half
	}
	return at
}

// add adds a record. In a block it is the length of the prefix that its key
// shares with the one before, the length of the rest, the length of its value,
// and these bytes.
func (b *buckets) add(p Pair) error {
	i, equal := b.find(p)
	if equal {
		b.splitters[i].count++
		return nil
	}
	k := &b.list[i]
	if len(k.plain)+3*binary.MaxVarintLen32+len(p.Key)+len(p.Value) > b.block {
		if err := b.flush(k); err != nil {
			return err
		}
	}
	if k.plain == nil {
		k.plain = make([]byte, 0, b.block)
	}
	n := shared(k.key, p.Key)
	out := binary.AppendUvarint(k.plain, uint64(n))
	out = binary.AppendUvarint(out, uint64(len(p.Key)-n))
	out = binary.AppendUvarint(out, uint64(len(p.Value)))
	k.plain = append(append(out, p.Key[n:]...), p.Value...)
	k.key = append(k.key[:n], p.Key[n:]...)
	if len(k.plain) > b.block {
		if err := b.flush(k); err != nil {
			return err
		}
	}
	if i == len(b.splitters) {
		b.addLast(p)
	}
	return nil
}

// addLast counts a record of the last bucket.
func (b *buckets) addLast(p Pair) {
	b.last += len(p.Key) + len(p.Value) + entrySize
	if bytes.Compare(b.greatest, p.Key) < 0 {
		b.greatest = append(b.greatest[:0], p.Key...)
	}
	if b.last > b.full && len(b.list) < b.most {
		b.splitters = append(b.splitters, splitter{Pair: Pair{Key: append(b.greatest, 0)}})
		b.list = append(b.list, bucket{})
		b.greatest, b.last = nil, 0
		b.setWords()
	}
}

// flush writes the pending block of a bucket.
func (b *buckets) flush(k *bucket) error {
	if len(k.plain) == 0 {
		return nil
	}
	if _, err := b.file.WriteAt(k.plain, b.size); err != nil {
		return fmt.Errorf("extsort: %w", err)
	}
	k.blocks = append(k.blocks, extent{b.size, len(k.plain), xxhash.Sum64(k.plain)})
	b.size += int64(len(k.plain))
	if k.plain, k.key = k.plain[:0], k.key[:0]; cap(k.plain) > b.block { // of one large record
		k.plain, k.key = nil, nil
	}
	return nil
}

// finish writes everything pending, and frees its memory.
func (b *buckets) finish() error {
	for i := range b.list {
		k := &b.list[i]
		if err := b.flush(k); err != nil {
			return err
		}
		k.plain, k.key = nil, nil
	}
	return nil
}

// each calls f with the records of a block until it returns false.
func (b *buckets) each(e extent, f func(Pair) bool) error {
	if cap(b.read) < e.size {
		b.read = make([]byte, max(e.size, b.block))
	}
	rest := b.read[:e.size]
	_, err := b.file.ReadAt(rest, e.at)
	switch {
	case err == io.EOF:
		err = fmt.Errorf("%w: it ends too early", ErrCorrupt)
	case err == nil && xxhash.Sum64(rest) != e.hash:
		err = ErrCorrupt
	}
	if err != nil {
		return fmt.Errorf("extsort: %s, at %d: %w", b.file.Name(), e.at, err)
	}
	key := b.key[:0]
	for len(rest) > 0 { // this sorter wrote it, so it can be trusted
		var n [3]int
		for i := range n {
			v, size := binary.Uvarint(rest)
			n[i], rest = int(v), rest[size:]
		}
		shared, own, value := n[0], n[1], n[2]
		key = append(key[:shared], rest[:own]...)
		rest = rest[own:]
		if !f(Pair{key, rest[:value:value]}) {
			break
		}
		rest = rest[value:]
	}
	b.key = key
	return nil
}

// some calls f with the records of n of the blocks, until it returns false.
// However soon that is, the blocks are spread out: each is a golden section
// after the one before. Which is first is random.
func (b *buckets) some(blocks []extent, n int, f func(Pair) bool) error {
	const golden = 0x9e3779b97f4a7c15
	more := true
	for i := 0; more && i < n; i++ {
		at := (blocks[0].hash + uint64(i)*golden) >> 32
		err := b.each(blocks[at*uint64(len(blocks))>>32], func(p Pair) bool {
			more = f(p)
			return more
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// end closes the file.
func (b *buckets) end() error {
	if err := b.file.end(); err != nil {
		return fmt.Errorf("extsort: %w", err)
	}
	return nil
}
