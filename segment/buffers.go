package segment

import (
	"encoding/binary"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Buffers keeps the memory in which blocks are encoded, from one block to the next. The zero value is empty.
// It may be used by many goroutines at once.
type Buffers struct {
	mu   sync.Mutex
	free []*encoder
}

// A BufferStore is a [Store] with Buffers, which the writers of its parts share. Without them, each writer begins with
// new memory of some megabytes, which is a quarter of what a round of a hundred pages costs.
type BufferStore interface {
	Store
	Buffers() *Buffers
}

func buffersOf(s Store) *Buffers {
	if b, ok := s.(BufferStore); ok {
		return b.Buffers()
	}
	return &Buffers{}
}

// An idle store keeps two encoders, of some tens of megabytes each at most.
const (
	freeEncoders = 2
	freeBytes    = 32 << 20
)

func (b *Buffers) take() (*encoder, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.free); n > 0 {
		e := b.free[n-1]
		b.free = b.free[:n-1]
		return e, nil
	}
	return newEncoder()
}

func (b *Buffers) give(e *encoder) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.free) < freeEncoders && cap(e.buf)+cap(e.piece)+cap(e.out) <= freeBytes {
		b.free = append(b.free, e)
	}
}

// encoder encodes blocks of records. Its memory is reused for each block.
type encoder struct {
	zw              *zstd.Encoder
	length          [binary.MaxVarintLen64]byte
	buf, piece, out []byte
}

func newEncoder() (*encoder, error) {
	// Consecutive pages have much in common, pages a megabyte apart hardly
	// more, and looking there costs cache misses.
	zw, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	return &encoder{zw: zw}, err
}
