package sstables

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/recrawl/recrawl/stores/dirstore"
)

// Carve finds the blocks of a table by their checksums alone. They are
// adjacent; after a damaged one, the next may begin anywhere.
func (t *File) Carve(ctx context.Context, disk *dirstore.ZeroFillReader) error {
	// Few blocks are larger than near, none than far, which is tried where a
	// block must begin.
	const near, far = 256 << 10, 4 << 20
	t.Reader, t.Data, t.Other = nil, nil, nil
	window := make([]byte, far)
	begins := true
	for at := int64(0); at < t.Size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		reach := int64(near)
		if begins {
			reach = far
		}
		b := window[:min(reach, t.Size-at)]
		if _, err := disk.ReadAt(b, at); err != nil {
			return err
		}
		if behind := disk.ReadableFrom(at); behind > at {
			at, begins = behind, false // no block that begins here is whole
			continue
		}
		n := blockEnd(b)
		if begins = n >= 0; !begins {
			at++
			// No data block begins with this many zeros, compressed or not, and a file
			// may have a hole of any size.
			const fewer = 8
			rest := b[1:]
			at += max(0, int64(len(rest)-len(bytes.TrimLeft(rest, "\x00")))-fewer)
			continue
		}
		end := at + int64(n) + block.TrailerLen
		if found, ok := t.dataBlock(at, int64(n)); ok {
			t.Data = append(t.Data, found)
		} else if !isFilter(b[:n]) {
			// A search tries so many places that some have a good checksum by chance; what
			// it finds there must not hide the blocks within. Any other block has one behind
			// it, but for the last, which holds no data, and one before a damaged one: these
			// are small, so searching them takes no time.
			next := window[:min(far, t.Size-end)]
			if _, err := disk.ReadAt(next, end); err != nil {
				return err
			}
			if begins = blockEnd(next) >= 0; !begins {
				at++
				continue
			}
		}
		at = end
	}
	slices.SortFunc(t.Data, func(a, b Block) int { return bytes.Compare(a.After, b.After) })
	return nil
}

// dataBlock describes the block at an offset; false if it is not one of data.
func (t *File) dataBlock(at, size int64) (b Block, ok bool) {
	data, err := t.Read(at, size)
	if err != nil || !isData(data) {
		return b, false
	}
	b = Block{At: at, Size: size}
	err = t.Decode(at, data, func(v Version) error {
		if b.After == nil {
			b.After = bytes.Clone(v.Key)
		}
		b.Last = append(b.Last[:0], v.Key...)
		return nil
	})
	return b, err == nil && b.After != nil
}

// blockEnd returns the size of the block that b begins with, without its
// trailer; negative if there is none.
func blockEnd(b []byte) int {
	sum, castagnoli := ^uint32(0), crc32.MakeTable(crc32.Castagnoli)
	for n := 0; n+block.TrailerLen <= len(b); n++ {
		sum = castagnoli[byte(sum)^b[n]] ^ sum>>8
		// b[n] would be the kind of compression, which the sum covers.
		if n > 16 && b[n] <= 16 && binary.LittleEndian.Uint32(b[n+1:]) == (^sum>>15|^sum<<17)+0xa282ead8 {
			return n
		}
	}
	return -1
}
