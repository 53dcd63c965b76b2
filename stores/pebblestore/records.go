package pebblestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// The logs and the manifest of the engine are files of records, which are cut
// into chunks:
//
//	crc uint32, size uint16, kind uint8, and for some kinds the number of the log
//	uint32 and how far it was synced uint64; then the bytes
//
// all little-endian, the crc over all that follows it. A chunk does not cross a
// block of 32 KiB.
const (
	recordBlock   = 32 << 10
	recordHead    = 7
	recordKinds   = 12
	recordsPerSet = 4 // whole, first, middle and last chunk of a record
)

var errRecord = errors.New("wrong check of a record")

// records is what a file of records was found to hold.
type records struct {
	// chunks counts those that are whole, up to end, where the next one should be.
	chunks int
	end    int64
	// tail counts the bytes behind end that are not zero, or were zeroed.
	tail int64
	// later says that there is a good chunk behind end, so that the damage is not
	// where a crash cuts; whole that the chunk at end is all there, and none of its
	// sectors is empty.
	later, whole bool
}

// readRecords reads a file of records. number is that of the log, 0 for a
// manifest.
func readRecords(r io.ReaderAt, size int64, number uint32) (records, error) {
	var out records
	buf := make([]byte, recordBlock)
	for from := int64(0); from < size; from += recordBlock {
		b := buf[:min(recordBlock, size-from)]
		if n, err := r.ReadAt(b, from); n < len(b) {
			return out, err
		}
		if out.end < from {
			// A chunk before was bad: is there a good one behind it?
			out.later = out.later || findChunk(b, number)
			out.tail += significant(b)
			continue
		}
		at := 0
		for len(b)-at >= recordHead {
			n, ok := chunk(b[at:], number)
			if !ok {
				break
			}
			at += n
			out.chunks++
			out.end = from + int64(at)
		}
		rest := b[at:]
		switch {
		case len(rest) < recordHead && len(b) == recordBlock:
			out.end = from + recordBlock
		case len(rest) > 0:
			out.end = from + int64(at)
			out.tail = significant(rest)
			out.whole = wholeChunk(rest, at)
			out.later = findChunk(rest[1:], number)
		}
	}
	return out, nil
}

// chunk returns the size of the chunk that b begins with, if it is a good one of
// that log.
func chunk(b []byte, number uint32) (size int, ok bool) {
	if len(b) < recordHead || b[6] == 0 || b[6] > recordKinds {
		return 0, false
	}
	head := recordHead
	if b[6] > recordsPerSet {
		head += 4
	}
	if b[6] > 2*recordsPerSet {
		head += 8
	}
	size = head + int(binary.LittleEndian.Uint16(b[4:]))
	if size > len(b) || head > recordHead && binary.LittleEndian.Uint32(b[recordHead:]) != number {
		return 0, false
	}
	sum := crc32.Checksum(b[6:size], castagnoli)
	return size, binary.LittleEndian.Uint32(b) == (sum>>15|sum<<17)+0xa282ead8
}

// findChunk reports whether a good chunk begins anywhere in b.
func findChunk(b []byte, number uint32) bool {
	for i := range b {
		if _, ok := chunk(b[i:], number); ok {
			return true
		}
	}
	return false
}

// wholeChunk reports whether what should be a chunk is one that was written
// to its end: all its bytes are in the file, and no sector of the disk that it
// touches was left empty. A chunk that a crash has cut is not.
func wholeChunk(b []byte, at int) bool {
	const sector = 512
	if len(b) < recordHead || recordHead+int(binary.LittleEndian.Uint16(b[4:])) > len(b) {
		return false
	}
	for i := 0; i < len(b); {
		n := min(sector-(at+i)%sector, len(b)-i)
		if len(bytes.TrimLeft(b[i:i+n], "\x00")) == 0 {
			return false
		}
		i += n
	}
	return true
}

// significant returns the length of b without the zeros at its end.
func significant(b []byte) int64 { return int64(len(bytes.TrimRight(b, "\x00"))) }
