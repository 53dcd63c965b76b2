package dirstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/recrawl/recrawl/segment"
)

// A file is a head, the blocks and, once it is committed, a foot. All numbers
// are big-endian.
//
//	head    magic [8], place [3], version uint8
//	block   size uint32, check uint32, hash uint64, and size bytes
//	foot    ^0 uint32, check uint32, number of blocks uint64, sum of their sizes uint64
//
// The hash is the xxhash64 of the bytes of a block. The check is the CRC-32C of
// the number, the size and the hash of the block, so a block that was moved,
// left out or repeated is detected too; that of the foot covers the two numbers
// after it. The place is the first three bytes of the CRC-32C of the names of
// segment and part with a slash between them, so a file put in the place of
// another is detected. A file that was truncated anywhere has no foot.
//
// Version 1 had zeros for the place. Version 3 says that records in blocks may have
// numbers for names in Meta, which a reader of version 2 would take for damage; its
// place is the complement of that of version 2, so no flipped bit turns a file of one
// version into one of the other. Everything else is the same. A part of an older
// version becomes version 3 when it is opened for writing.
const (
	magic     = "recrawl\n"
	version   = 3
	headSize  = 8 + 4
	frameSize = 4 + 4 + 8
	footSize  = 4 + 4 + 8 + 8
	footMark  = 1<<32 - 1
	// maxBlock leaves room between the largest block and footMark.
	maxBlock = 1 << 30
)

// ErrVersion says that a file was written in a format that this version of the
// package does not know.
var ErrVersion = errors.New("dirstore: unknown format version")

var (
	errHead  = errors.New("not a file of blocks")
	errPlace = errors.New("a file of another segment or part")
	errFoot  = errors.New("no valid foot: the file was cut, or something was added")
	errFrame = errors.New("wrong checksum of a block header")
	errHash  = errors.New("wrong hash of a block")
	errEnd   = errors.New("blocks and foot do not agree")
)

// castagnoli returns the CRC-32C table, which the hash package makes once.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func appendHead(b []byte, name string) []byte {
	return binary.BigEndian.AppendUint32(append(b, magic...), placeOf(name, version)<<8|version)
}

// placeOf returns the place in the head of a file of a version; name ends with
// segment and part.
func placeOf(name string, version byte) uint32 {
	name = strings.TrimSuffix(filepath.ToSlash(name), openSuffix)
	dir, part := path.Split(name)
	place := crc32.Checksum([]byte(path.Base(dir)+"/"+part), castagnoli()) >> 8
	switch version {
	case 1:
		return 0
	case 2:
		return place
	}
	return place ^ (1<<24 - 1)
}

func appendFrame(b []byte, number int, block []byte) []byte {
	size, hash := uint32(len(block)), xxhash.Sum64(block)
	b = binary.BigEndian.AppendUint32(b, size)
	b = binary.BigEndian.AppendUint32(b, checkFrame(number, size, hash))
	return binary.BigEndian.AppendUint64(b, hash)
}

func checkFrame(number int, size uint32, hash uint64) uint32 {
	var b [20]byte
	binary.BigEndian.PutUint64(b[:], uint64(number))
	binary.BigEndian.PutUint32(b[8:], size)
	binary.BigEndian.PutUint64(b[12:], hash)
	return crc32.Checksum(b[:], castagnoli())
}

func appendFoot(b []byte, blocks int, bytes int64) []byte {
	var n [16]byte
	binary.BigEndian.PutUint64(n[:], uint64(blocks))
	binary.BigEndian.PutUint64(n[8:], uint64(bytes))
	b = binary.BigEndian.AppendUint32(b, footMark)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(n[:], castagnoli()))
	return append(b, n[:]...)
}

// blockFile reads the blocks of a file, from the current one on.
type blockFile struct {
	r         io.ReaderAt
	name      string // for errors
	committed bool
	// end is where the blocks end, at the latest if the file is not committed.
	end int64
	// blocks is the number of blocks of a committed file.
	blocks int
	// at and number are the place and number of the next block.
	at     int64
	number int
}

// openBlocks reads head and foot of a file; it may read the first size
// bytes. A file that was not committed and has no head has no blocks.
func openBlocks(r io.ReaderAt, size int64, name string, committed bool) (*blockFile, error) {
	f := &blockFile{r: r, name: name, committed: committed, end: size, at: headSize}
	var head [headSize]byte
	switch err := readAt(r, head[:], 0, size); {
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, err
	case err != nil || string(head[:len(magic)]) != magic:
		if committed {
			return nil, f.corrupt(0, errHead)
		}
		f.at, f.end = 0, 0
		return f, nil
	}
	switch v, place := head[headSize-1], binary.BigEndian.Uint32(head[len(magic):])>>8; {
	case v < 1 || v > version:
		return nil, f.corrupt(int64(headSize-1), fmt.Errorf("%w %d; this is version %d", ErrVersion, v, version))
	case place != placeOf(name, v):
		return nil, f.corrupt(int64(len(magic)), errPlace)
	}
	if !committed {
		return f, nil
	}
	var foot [footSize]byte
	f.end = size - footSize
	if err := readAt(r, foot[:], f.end, size); errors.Is(err, io.ErrUnexpectedEOF) || f.end < headSize {
		return nil, f.corrupt(min(size, headSize), errFoot)
	} else if err != nil {
		return nil, err
	}
	blocks, bytes := binary.BigEndian.Uint64(foot[8:]), binary.BigEndian.Uint64(foot[16:])
	if binary.BigEndian.Uint32(foot[:]) != footMark ||
		binary.BigEndian.Uint32(foot[4:]) != crc32.Checksum(foot[8:], castagnoli()) ||
		blocks > uint64(size) || bytes > uint64(size) ||
		headSize+frameSize*blocks+bytes != uint64(f.end) {
		return nil, f.corrupt(f.end, errFoot)
	}
	f.blocks = int(blocks)
	return f, nil
}

// next returns the next block, in memory of its own, and io.EOF after the last.
// With skip it does not read the block and returns none.
func (f *blockFile) next(skip bool) ([]byte, error) {
	block, size, err := f.frame(skip)
	switch {
	case err == nil:
		f.at += frameSize + size
		f.number++
		return block, nil
	case err == io.EOF:
		return nil, err
	case !f.committed && damage(err):
		// No call has returned that it was written.
		f.end = f.at
		return nil, io.EOF
	case damage(err):
		return nil, f.corrupt(f.at, err)
	}
	return nil, err
}

// damage reports whether an error means damage in a file rather than a failure
// to read it.
func damage(err error) bool {
	return errors.Is(err, errFrame) || errors.Is(err, errHash) || errors.Is(err, errEnd) || errors.Is(err, io.ErrUnexpectedEOF)
}

func (f *blockFile) frame(skip bool) (block []byte, size int64, err error) {
	if f.at == f.end && (!f.committed || f.number == f.blocks) {
		return nil, 0, io.EOF
	}
	if f.committed && f.number == f.blocks {
		return nil, 0, errEnd
	}
	var h [frameSize]byte
	if err := readAt(f.r, h[:], f.at, f.end); err != nil {
		return nil, 0, err
	}
	n, hash := binary.BigEndian.Uint32(h[:]), binary.BigEndian.Uint64(h[8:])
	if n > maxBlock || binary.BigEndian.Uint32(h[4:]) != checkFrame(f.number, n, hash) {
		return nil, 0, errFrame
	}
	// Nothing is allocated for a block that is not in the file.
	at := f.at + frameSize
	if int64(n) > f.end-at {
		return nil, 0, io.ErrUnexpectedEOF
	}
	if skip && f.committed {
		return nil, int64(n), nil
	}
	block = make([]byte, n)
	if err := readAt(f.r, block, at, f.end); err != nil {
		return nil, 0, err
	}
	if xxhash.Sum64(block) != hash {
		return nil, 0, errHash
	}
	return block, int64(n), nil
}

func (f *blockFile) corrupt(at int64, err error) error {
	return &segment.CorruptError{File: f.name, Offset: at, Err: err}
}

// readAt fills b from a file that ends at end; if it is too short, the error is
// io.ErrUnexpectedEOF.
func readAt(r io.ReaderAt, b []byte, at, end int64) error {
	if at < 0 || at > end || int64(len(b)) > end-at {
		return io.ErrUnexpectedEOF
	}
	if len(b) == 0 {
		return nil
	}
	n, err := r.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
