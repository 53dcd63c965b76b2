package logcheck

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

// MaxSize is more than any log or manifest has: a log ends with its memtable, of at
// most a GiB, or after a single step of that size. A longer file is an error of the file
// system, and mostly a hole.
const MaxSize = 3 << 30

var ErrRecord = errors.New("wrong checksum of a record")

// Records describes the contents of a file of records.
type Records struct {
	// Chunks counts those that are whole, up to End, where the next one should be;
	// Size is that of the file.
	Chunks int
	End    int64
	Size   int64
	// Tail counts the bytes after End that are not zero, or were zeroed.
	Tail int64
	// later says that there is a good chunk after End, so that the damage is
	// not where a crash cuts; whole that the chunk at End is complete, and none
	// of its sectors is empty.
	later, whole bool
	// synced is how far the file was synced, according to a good chunk after
	// End.
	synced int64
	// altered says that the chunk at End was changed after it was written.
	altered bool
}

// Broken reports whether a log has damage at End that no crash can have caused.
func (r *Records) Broken() bool { return r.synced > r.End || r.altered }

// Read reads a file of records. number is that of the log, 0 for a
// manifest.
func Read(r io.ReaderAt, size int64, number uint32) (Records, error) {
	out := Records{Size: size}
	buf := make([]byte, recordBlock)
	for from := int64(0); from < size; from += recordBlock {
		b := buf[:min(recordBlock, size-from)]
		if n, err := r.ReadAt(b, from); n < len(b) {
			return out, err
		}
		if out.End < from {
			// An earlier chunk was bad: look for a good one after it.
			out.look(b, number)
			out.Tail += significant(b)
			continue
		}
		at := 0
		for len(b)-at >= recordHead {
			n, ok := chunk(b[at:], number)
			if !ok {
				break
			}
			at += n
			out.Chunks++
			out.End = from + int64(at)
		}
		rest := b[at:]
		switch {
		case filling(rest, len(b)):
			out.End = from + recordBlock
		case len(rest) > 0:
			out.End = from + int64(at)
			if out.Tail = significant(rest); endMark(rest, number) {
				out.Tail = 0
			}
			out.whole = wholeChunk(rest, at)
			out.altered = altered(rest, at, number) || out.End == 0 && foreignHead(rest, number)
			out.look(rest[1:], number)
		}
	}
	return out, nil
}

// recordHeadMost is the size of the largest head.
const recordHeadMost = recordHead + 4 + 8

// chunkSum returns the sum of a chunk, as the engine masks it.
func chunkSum(b []byte) uint32 {
	sum := crc32.Checksum(b, castagnoli())
	return (sum>>15 | sum<<17) + 0xa282ead8
}

// castagnoli is the polynomial of the engine's sums, and of those of the seal.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// filling reports whether rest is the remainder of a block, given its size so
// far, that had no room for another head: the engine fills it with zeros.
func filling(rest []byte, block int) bool {
	return block == recordBlock && (len(rest) < recordHead || len(rest) < recordHeadMost && significant(rest) == 0)
}

// chunk returns the size of the chunk that b begins with, if it is a good one of
// that log.
func chunk(b []byte, number uint32) (size int, ok bool) {
	if size, ok = chunkSize(b, number); !ok {
		return 0, false
	}
	return size, binary.LittleEndian.Uint32(b) == chunkSum(b[6:size])
}

// chunkSize is chunk without checking the sum.
func chunkSize(b []byte, number uint32) (size int, ok bool) {
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
	return size, true
}

// look looks for good chunks after a bad one.
func (r *Records) look(b []byte, number uint32) {
	for i := 0; i+recordHead <= len(b); i++ {
		if number > 0 && b[i+6] <= recordsPerSet {
			continue // without the number of a log only the checksum could tell
		}
		n, ok := chunk(b[i:], number)
		if !ok {
			continue
		}
		r.later = true
		if kind := b[i+6]; kind > 2*recordsPerSet {
			r.synced = max(r.synced, int64(binary.LittleEndian.Uint64(b[i+recordHead+4:])))
		}
		i += n - 1
	}
}

// endMark reports whether b begins with the engine's mark for the end of a log:
// the head of an empty chunk of the next log, without a sum.
func endMark(b []byte, number uint32) bool {
	return len(b) >= recordHead+4 && b[6] > recordsPerSet && b[6] <= recordKinds && binary.LittleEndian.Uint32(b[recordHead:]) == number+1 &&
		len(bytes.TrimLeft(b[:6], "\x00")) == 0
}

// wholeChunk reports whether what should be a chunk was written to its end: all
// its bytes are in the file, and no disk sector that it touches was left empty.
// A chunk that a crash has cut is not whole.
func wholeChunk(b []byte, at int) bool {
	if len(b) < recordHead || recordHead+int(binary.LittleEndian.Uint16(b[4:])) > len(b) {
		return false
	}
	return fullSectors(b, at)
}

// fullSectors reports whether none of the disk sectors that b touches, at its
// place in its block, was left empty.
func fullSectors(b []byte, at int) bool {
	const sector = 512
	for i := 0; i < len(b); {
		n := min(sector-(at+i)%sector, len(b)-i)
		if len(bytes.TrimLeft(b[i:i+n], "\x00")) == 0 {
			return false
		}
		i += n
	}
	return true
}

// altered reports whether a bad chunk was good when it was written. A crash
// truncates the file, or leaves sectors of it empty, but changes none: no file is
// reused. So a chunk with a valid head, which is complete and has something in each
// sector, was altered; so was one whose head is valid except for a single bit; and one
// that is valid in another log does not belong here.
func altered(b []byte, at int, number uint32) bool {
	if len(b) < recordHead {
		return false
	}
	if size, ok := chunkSize(b, number); ok && (number == 0 || b[6] > recordsPerSet) && fullSectors(b[:size], at) {
		return true
	}
	if len(b) >= recordHead+4 {
		if _, ok := chunk(b, binary.LittleEndian.Uint32(b[recordHead:])); ok && number > 0 {
			return true
		}
	}
	b = bytes.Clone(b)
	for bit := 4 * 8; bit < min(len(b), recordHead+4)*8; bit++ {
		b[bit/8] ^= 1 << (bit % 8)
		if _, ok := chunk(b, number); ok {
			return true
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
	return false
}

// foreignHead reports whether a file, which begins with b, begins with something else than the
// head of a chunk of the log: a crash leaves that, as it is in one sector, or nothing.
func foreignHead(b []byte, number uint32) bool {
	if number == 0 || len(b) < recordHeadMost || significant(b[:recordHeadMost]) == 0 || endMark(b, number) {
		return false
	}
	return b[6] <= recordsPerSet || b[6] > recordKinds || binary.LittleEndian.Uint32(b[recordHead:]) != number
}

// significant returns the length of b without the zeros at its end.
func significant(b []byte) int64 { return int64(len(bytes.TrimRight(b, "\x00"))) }

// EachRecord calls f with each whole record of a log, including those after
// damage, and lost with where damage begins that is not the end of the log.
func EachRecord(r io.ReaderAt, size int64, number uint32, f func([]byte), lost func(at int64)) error {
	buf := make([]byte, recordBlock)
	var rec []byte
	within, bad := false, int64(-1)
	for from := int64(0); from < size; from += recordBlock {
		b := buf[:min(recordBlock, size-from)]
		if n, err := r.ReadAt(b, from); n < len(b) {
			return err
		}
		if len(bytes.TrimLeft(b, "\x00")) == 0 {
			if bad < 0 { // or the end of the log: what follows tells
				bad, within = from, false
			}
			continue
		}
		for at := 0; len(b)-at >= recordHead; {
			n, ok := chunk(b[at:], number)
			if !ok && filling(b[at:], len(b)) {
				break
			}
			if !ok {
				if bad < 0 {
					bad, within = from+int64(at), false
				}
				at++
				continue
			}
			if bad >= 0 {
				lost(bad)
				bad = -1
			}
			kind := b[at+6]
			head := recordHead + 4*min(int((kind-1)/recordsPerSet), 1) + 8*min(int((kind-1)/recordsPerSet/2), 1)
			body := b[at+head : at+n]
			at += n
			switch (kind - 1) % recordsPerSet {
			case 0: // whole
				f(body)
				within = false
			case 1: // first
				rec, within = append(rec[:0], body...), true
			case 2: // middle
				rec = append(rec, body...)
			case 3: // last
				if rec = append(rec, body...); within {
					f(rec)
				}
				within = false
			}
		}
	}
	return nil
}
