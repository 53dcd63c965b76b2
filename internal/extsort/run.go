package extsort

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
)

// A run is a file of sorted records in packed blocks. Behind the header of a
// block, which is the size of the packed bytes and their hash, come the packed
// bytes. What a file has to hold is kept here and not in the file, which only
// the sorter that wrote it ever reads.
type run struct {
	name   string
	level  int
	blocks int
	// packed and plain are the sizes of the largest block: no damaged length
	// makes the reader ask for more.
	packed, plain int
}

const headerSize = 4 + 8

// packer packs and unpacks blocks.
type packer struct {
	zw *zstd.Encoder
	zr *zstd.Decoder
}

func newPacker() (*packer, error) {
	zw, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, err
	}
	zr, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	return &packer{zw: zw, zr: zr}, err
}

func (p *packer) close() {
	if p != nil {
		p.zw.Close()
		p.zr.Close()
	}
}

func writeRun(name string, size int, p *packer, next func() (Pair, bool, error)) (r run, err error) {
	r.name = name
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return r, fmt.Errorf("extsort: %w", err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("extsort: %w", cerr)
		}
	}()
	w := bufio.NewWriterSize(f, max(size, 4096))
	var plain, packed []byte
	flush := func() error {
		packed = p.zw.EncodeAll(plain, packed[:0])
		r.blocks++
		r.packed, r.plain = max(r.packed, len(packed)), max(r.plain, len(plain))
		plain = plain[:0]
		var h [headerSize]byte
		binary.BigEndian.PutUint32(h[:], uint32(len(packed)))
		binary.BigEndian.PutUint64(h[4:], xxhash.Sum64(packed))
		if _, err := w.Write(h[:]); err != nil {
			return err
		}
		_, err := w.Write(packed)
		return err
	}
	for {
		pair, ok, err := next()
		if err != nil {
			return r, err
		}
		if !ok {
			break
		}
		plain = binary.AppendUvarint(plain, uint64(len(pair.Key)))
		plain = binary.AppendUvarint(plain, uint64(len(pair.Value)))
		plain = append(append(plain, pair.Key...), pair.Value...)
		if len(plain) >= size {
			if err := flush(); err != nil {
				return r, fmt.Errorf("extsort: %w", err)
			}
		}
	}
	if len(plain) > 0 {
		if err := flush(); err != nil {
			return r, fmt.Errorf("extsort: %w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return r, fmt.Errorf("extsort: %w", err)
	}
	return r, nil
}

// source reads a run from its beginning to its end.
type source struct {
	run
	f      *os.File
	pack   *packer
	read   int // blocks read
	packed []byte
	plain  []byte
	rest   []byte // of plain, behind cur
	cur    Pair
}

func openRun(r run, p *packer) (*source, error) {
	f, err := os.Open(r.name)
	if err != nil {
		return nil, fmt.Errorf("extsort: %w", err)
	}
	return &source{run: r, f: f, pack: p}, nil
}

// advance makes cur the next record; it reports false behind the last.
func (s *source) advance() (bool, error) {
	if len(s.rest) == 0 {
		if s.read == s.blocks {
			return false, nil
		}
		if err := s.load(); err != nil {
			return false, fmt.Errorf("extsort: %s, block %d: %w", s.name, s.read, err)
		}
		s.read++
	}
	klen, n := binary.Uvarint(s.rest)
	vlen, m := binary.Uvarint(s.rest[max(n, 0):])
	if n <= 0 || m <= 0 {
		return false, fmt.Errorf("extsort: %s: %w", s.name, ErrCorrupt)
	}
	body := s.rest[n+m:]
	if klen > uint64(len(body)) || vlen > uint64(len(body))-klen {
		return false, fmt.Errorf("extsort: %s: %w", s.name, ErrCorrupt)
	}
	end := klen + vlen
	s.cur = Pair{Key: body[:klen:klen], Value: body[klen:end:end]}
	s.rest = body[end:]
	return true, nil
}

func (s *source) load() error {
	var h [headerSize]byte
	if _, err := io.ReadFull(s.f, h[:]); err != nil {
		return short(err)
	}
	size := binary.BigEndian.Uint32(h[:])
	if uint64(size) > uint64(s.run.packed) {
		return ErrCorrupt
	}
	if cap(s.packed) < int(size) {
		s.packed = make([]byte, size)
	}
	s.packed = s.packed[:size]
	if _, err := io.ReadFull(s.f, s.packed); err != nil {
		return short(err)
	}
	if xxhash.Sum64(s.packed) != binary.BigEndian.Uint64(h[4:]) {
		return ErrCorrupt
	}
	var err error
	if s.plain, err = s.pack.zr.DecodeAll(s.packed, s.plain[:0]); err != nil || len(s.plain) > s.run.plain {
		return ErrCorrupt
	}
	s.rest = s.plain
	return nil
}

// short makes an early end of a file what it is: damage.
func short(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%w: it ends too early", ErrCorrupt)
	}
	return err
}

// merger yields the records of many sources in order. Which of two equal records
// comes first cannot be told.
type merger struct {
	all  []*source
	heap []*source
	// taken says that the record at the top of the heap was yielded, and is
	// replaced when the next is asked for: until then its memory is good.
	taken bool
}

func (m *merger) next() (Pair, bool, error) {
	if m.taken {
		m.taken = false
		ok, err := m.heap[0].advance()
		if err != nil {
			return Pair{}, false, err
		}
		if !ok {
			last := len(m.heap) - 1
			m.heap[0] = m.heap[last]
			m.heap = m.heap[:last]
		}
		m.down(0)
	}
	if len(m.heap) == 0 {
		return Pair{}, false, nil
	}
	m.taken = true
	return m.heap[0].cur, true, nil
}

func (m *merger) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(m.heap); c++ {
			if compare(m.heap[c].cur, m.heap[least].cur) < 0 {
				least = c
			}
		}
		if least == i {
			return
		}
		m.heap[i], m.heap[least] = m.heap[least], m.heap[i]
		i = least
	}
}

func (m *merger) close() {
	for _, s := range m.all {
		s.f.Close()
	}
}
