package extsort

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/s2"
)

// A run is a file of sorted records in packed blocks. Behind the header of a
// block, which is the size of the packed bytes and their hash, come the packed
// bytes. What a file has to hold is kept here and not in the file, which only
// the sorter that wrote it ever reads.
type run struct {
	file   temp
	level  int
	blocks int
	// packed and plain are the sizes of the largest block: no damaged length
	// makes the reader ask for more.
	packed, plain int
}

const headerSize = 4 + 8

// runWriter writes runs. Its memory serves one after the other.
type runWriter struct {
	buf           *bufio.Writer
	plain, packed []byte
	key, value    []byte // the last of the block
}

func (w *runWriter) write(r *run, size int, each func(func(Pair) bool)) (err error) {
	if w.buf == nil {
		w.buf = bufio.NewWriterSize(r.file, max(size, 4096))
	}
	w.buf.Reset(r.file)
	w.begin()
	each(func(p Pair) bool {
		if w.add(p); len(w.plain) >= size {
			err = w.flush(r)
		}
		return err == nil
	})
	if err == nil && len(w.plain) > 0 {
		err = w.flush(r)
	}
	if err == nil {
		err = w.buf.Flush()
	}
	if err != nil {
		return fmt.Errorf("extsort: %w", err)
	}
	return nil
}

// begin begins a block, of which nothing depends on what was before it.
func (w *runWriter) begin() { w.plain, w.key, w.value = w.plain[:0], w.key[:0], w.value[:0] }

// add adds a record: how many bytes its key shares with the last, how many follow,
// the same of the value if the key is the last one, and these bytes.
func (w *runWriter) add(p Pair) {
	b := w.plain
	k := shared(w.key, p.Key)
	b = binary.AppendUvarint(b, uint64(k))
	b = binary.AppendUvarint(b, uint64(len(p.Key)-k))
	v := 0
	if same := k == len(p.Key) && k == len(w.key); same {
		v = shared(w.value, p.Value)
		b = binary.AppendUvarint(b, uint64(v))
	} else {
		w.key = append(w.key[:k], p.Key[k:]...)
	}
	b = binary.AppendUvarint(b, uint64(len(p.Value)-v))
	w.value = append(w.value[:v], p.Value[v:]...)
	w.plain = append(append(b, p.Key[k:]...), p.Value[v:]...)
}

func (w *runWriter) flush(r *run) error {
	if n := s2.MaxEncodedLen(len(w.plain)); n > cap(w.packed) {
		w.packed = make([]byte, n)
	}
	packed := s2.Encode(w.packed[:cap(w.packed)], w.plain)
	r.blocks++
	r.packed, r.plain = max(r.packed, len(packed)), max(r.plain, len(w.plain))
	w.begin()
	var h [headerSize]byte
	binary.BigEndian.PutUint32(h[:], uint32(len(packed)))
	binary.BigEndian.PutUint64(h[4:], xxhash.Sum64(packed))
	if _, err := w.buf.Write(h[:]); err != nil {
		return err
	}
	_, err := w.buf.Write(packed)
	return err
}

// shared returns how many bytes two strings have in common at their beginning.
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

// source reads a run from its beginning to its end.
type source struct {
	run
	at         int64 // in the file
	read       int   // blocks read
	packed     []byte
	plain      []byte
	rest       []byte // of plain, behind cur
	key, value []byte // of cur
	cur        Pair
	leaf, same int // see merger
}

// advance makes cur the next record; it reports false behind the last.
func (s *source) advance() (bool, error) {
	if len(s.rest) == 0 {
		if s.read == s.blocks {
			return false, nil
		}
		if err := s.load(); err != nil {
			return false, fmt.Errorf("extsort: %s, block %d: %w", s.file.Name(), s.read, err)
		}
		s.read++
		last := Pair{Key: s.key, Value: s.value}
		s.key, s.value = nil, nil
		if _, err := s.advance(); err != nil {
			return false, err
		}
		s.same, _ = last.common(s.cur, 0)
		return true, nil
	}
	b, ok := s.rest, true
	number := func() int {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > maxRecord {
			ok = false
			return 0
		}
		b = b[size:]
		return int(n)
	}
	k := number()
	klen := number()
	v := 0
	if ok && klen == 0 && k == len(s.key) {
		v = number()
	}
	vlen := number()
	if !ok || k > len(s.key) || v > len(s.value) || klen > len(b) || vlen > len(b)-klen {
		return false, fmt.Errorf("extsort: %s: %w", s.file.Name(), ErrCorrupt)
	}
	if s.same = k; klen == 0 && k == len(s.key) {
		s.same += 1 + v
	}
	s.key = append(s.key[:k], b[:klen]...)
	s.value = append(s.value[:v], b[klen:klen+vlen]...)
	s.rest = b[klen+vlen:]
	s.cur = Pair{Key: s.key, Value: s.value}
	return true, nil
}

func (s *source) load() error {
	var h [headerSize]byte
	if err := s.next(h[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(h[:])
	if uint64(size) > uint64(s.run.packed) {
		return ErrCorrupt
	}
	if cap(s.packed) < int(size) {
		s.packed = make([]byte, size)
	}
	s.packed = s.packed[:size]
	if err := s.next(s.packed); err != nil {
		return err
	}
	if xxhash.Sum64(s.packed) != binary.BigEndian.Uint64(h[4:]) {
		return ErrCorrupt
	}
	n, err := s2.DecodedLen(s.packed)
	if err != nil || n > s.run.plain {
		return ErrCorrupt
	}
	if cap(s.plain) < n {
		s.plain = make([]byte, n)
	}
	if s.plain, err = s2.Decode(s.plain[:n], s.packed); err != nil {
		return ErrCorrupt
	}
	s.rest = s.plain
	return nil
}

// next fills b with what comes next in the file. An early end of it is what it is:
// damage.
func (s *source) next(b []byte) error {
	n, err := s.file.ReadAt(b, s.at)
	s.at += int64(n)
	switch {
	case n == len(b):
		return nil
	case err == io.EOF:
		return fmt.Errorf("%w: it ends too early", ErrCorrupt)
	}
	return err
}
