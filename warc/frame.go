package warc

import (
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

// A frameReader passes on one frame of zstd, and ends with it: the decoder itself would
// read on into the next one. (RFC 8878, section 3.1.1.)
type frameReader struct {
	r       *countingReader
	pending []byte // read, and to be passed on
	block   int64  // bytes left of the content of a block
	state   frameState
	sum     bool // whether a checksum follows the last block
}

type frameState uint8

const (
	frameHead frameState = iota
	blockHead
	lastBlock // its content is being read
	frameEnd
)

func (f *frameReader) Read(p []byte) (int, error) {
	for {
		if len(f.pending) > 0 {
			n := copy(p, f.pending)
			f.pending = f.pending[n:]
			return n, nil
		}
		if f.block > 0 {
			n, err := f.r.Read(p[:min(int64(len(p)), f.block)])
			f.block -= int64(n)
			if n == 0 && err != nil {
				return 0, unexpected(err)
			}
			return n, nil
		}
		if f.state == frameEnd {
			return 0, io.EOF
		}
		if err := f.step(); err != nil {
			return 0, err
		}
	}
}

// step reads the next piece of structure.
func (f *frameReader) step() error {
	switch f.state {
	case frameHead:
		peeked, err := f.r.r.Peek(zstd.HeaderMaxSize)
		if len(peeked) == 0 {
			return unexpected(err)
		}
		var h zstd.Header
		if err := h.Decode(peeked); err != nil {
			return err
		}
		f.sum, f.state = h.HasCheckSum, blockHead
		return f.take(h.HeaderSize)
	case blockHead:
		if err := f.take(3); err != nil {
			return err
		}
		head := uint32(f.pending[0]) | uint32(f.pending[1])<<8 | uint32(f.pending[2])<<16
		f.block = int64(head >> 3)
		switch head >> 1 & 3 {
		case 1: // one byte, repeated
			f.block = 1
		case 3:
			return errors.New("zstd: block of a reserved type")
		}
		if head&1 != 0 {
			f.state = lastBlock
		}
		return nil
	default:
		f.state = frameEnd
		if f.sum {
			return f.take(4)
		}
		return nil
	}
}

// take reads bytes of structure, which are passed on too.
func (f *frameReader) take(n int) error {
	f.pending = make([]byte, n)
	if _, err := io.ReadFull(f.r, f.pending); err != nil {
		return unexpected(err)
	}
	return nil
}
