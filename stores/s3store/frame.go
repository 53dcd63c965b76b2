package s3store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
)

// A piece is pieceMagic and frames. A frame is the size of a block and the CRC-32C of its place
// (segment/part), its number and its bytes, both as big-endian 32-bit numbers, and the block.
const (
	pieceMagic = "recrawl\x01"
	frameSize  = 8
	// mostBlock bounds the size of a block.
	mostBlock = 1 << 30
)

var (
	errPiece = errors.New("not a piece of a segment")
	errBlock = errors.New("block is missing or not the one that was written")
	errHead  = errors.New("not a head of this part")
)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func sumOf(place string, number int, block []byte) uint32 {
	sum := crc32.Checksum(strconv.AppendInt(append([]byte(place), 0), int64(number), 10), castagnoli())
	return crc32.Update(sum, castagnoli(), block)
}

func appendFrame(b []byte, place string, number int, block []byte) []byte {
	if len(b) == 0 {
		b = append(b, pieceMagic...)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(block)))
	b = binary.BigEndian.AppendUint32(b, sumOf(place, number, block))
	return append(b, block...)
}

// frames walks the blocks of a piece. It retains the piece, and so do the blocks.
type frames struct {
	piece  []byte
	at     int
	place  string
	number int // of the next block
}

// next returns the next block, and false at the end; damage is an error.
func (f *frames) next() (block []byte, ok bool, err error) {
	if f.at == 0 {
		if len(f.piece) < len(pieceMagic) || string(f.piece[:len(pieceMagic)]) != pieceMagic {
			return nil, false, errPiece
		}
		f.at = len(pieceMagic)
	}
	rest := f.piece[f.at:]
	if len(rest) == 0 {
		return nil, false, nil
	}
	if len(rest) < frameSize {
		return nil, false, errBlock
	}
	size, sum := binary.BigEndian.Uint32(rest), binary.BigEndian.Uint32(rest[4:])
	if uint64(size) > uint64(len(rest)-frameSize) {
		return nil, false, errBlock
	}
	block = rest[frameSize : frameSize+size : frameSize+size]
	if sumOf(f.place, f.number, block) != sum {
		return nil, false, errBlock
	}
	f.at += frameSize + len(block)
	f.number++
	return block, true, nil
}

// A piece is an object with blocks, or the first bytes of one.
type piece struct {
	Name   string `json:"name"`
	Blocks int    `json:"blocks"`
	Bytes  int64  `json:"bytes"`
}

// A head says what a part consists of. Its object is this as JSON, a newline, and the CRC-32C of
// that in hexadecimal digits.
type head struct {
	// ID is random, and Root the ID of head 0: a part that is removed and made again has
	// another. Number is that of the head in its chain.
	ID        string  `json:"id"`
	Root      string  `json:"root"`
	Place     string  `json:"part"` // segment/part
	Number    int     `json:"number"`
	Committed bool    `json:"committed,omitempty"`
	Pieces    []piece `json:"pieces,omitempty"`
}

func total(pieces []piece) (blocks int, bytes int64) {
	for _, p := range pieces {
		blocks, bytes = blocks+p.Blocks, bytes+p.Bytes
	}
	return blocks, bytes
}

func (h *head) encode() ([]byte, error) {
	b, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	b = append(b, '\n')
	return fmt.Appendf(b, "%08x\n", crc32.Checksum(b, castagnoli())), nil
}

const headEnd = 9 // bytes of the checksum

func decodeHead(b []byte, place string, number int) (*head, error) {
	n := len(b) - headEnd
	if n <= 0 || fmt.Sprintf("%08x\n", crc32.Checksum(b[:n], castagnoli())) != string(b[n:]) {
		return nil, errHead
	}
	h := &head{}
	if err := json.Unmarshal(b[:n], h); err != nil {
		return nil, fmt.Errorf("%w: %w", errHead, err)
	}
	if h.Place != place || h.Number != number {
		return nil, errHead
	}
	return h, nil
}
