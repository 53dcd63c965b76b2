// Package sstables reads the sorted tables of the engine block by block, so that a damaged block
// does not hide the others, and says which tables are in use. It writes nothing. Start with Open
// and LiveTables.
package sstables

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// A File is a sorted table of the engine that is read block by block, so
// that a damaged block does not hide the others.
type File struct {
	File   vfs.File
	Path   string
	Size   int64
	Reader *sstable.Reader
	schema colblk.KeySchema
	Data   []Block // in the order of keys
	Other  []Block // blocks that hold no keys
}

// A Block is one block of a table. Its keys are greater than after, and up to
// last.
type Block struct {
	At, Size    int64
	After, Last []byte
}

// FooterSize is the size of what a table ends with, which says where its index is.
const FooterSize = 57

// maxTableBlock limits the decompressed size of a block.
const maxTableBlock = 1 << 30

var errTable = errors.New("not a table, or its end was cut off")

// Open reads the index of a table. If the index is damaged the error is a
// *crawldb.CorruptError, and the file is returned, open, without blocks.
func Open(fs vfs.FS, path string) (t *File, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	t = &File{File: f, Path: path, Size: info.Size(), schema: colblk.DefaultKeySchema(pebble.DefaultComparer, 16)}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			t.Data, t.Other = nil, nil
			err = t.corrupt(err, max(t.Size-FooterSize, 0))
		}
	}()
	return t, t.index()
}

// corrupt adds the place of the damage to an error of the engine.
func (t *File) corrupt(err error, at int64) error {
	var known *crawldb.CorruptError
	if errors.As(err, &known) {
		return err
	}
	if n, ok := BlockIn(err); ok {
		at = n
	}
	return &crawldb.CorruptError{File: t.Path, Offset: at, Err: err}
}

var blockText = regexp.MustCompile(`block (\d+)/\d+:`)

// BlockIn extracts the offset of a block from an error of the engine, which has
// it only in its text.
func BlockIn(err error) (int64, bool) {
	m := blockText.FindStringSubmatch(err.Error())
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	return n, err == nil
}

func (t *File) Close() error { return t.File.Close() }

func (t *File) index() error {
	readable, err := sstable.NewSimpleReadable(t.File)
	if err != nil {
		return err
	}
	if t.Size < 64 {
		return errTable
	}
	// Closing the reader would close the file, which is ours.
	t.Reader, err = sstable.NewReader(context.Background(), readable, sstable.ReaderOptions{})
	if err != nil {
		return err
	}
	if format, err := t.Reader.TableFormat(); err != nil || !format.BlockColumnar() {
		return fmt.Errorf("a table of format %v cannot be read block by block", format)
	}
	l, err := t.Reader.Layout()
	if err != nil {
		return err
	}
	add := func(h block.Handle) {
		if h.Length > 0 {
			t.Other = append(t.Other, Block{At: int64(h.Offset), Size: int64(h.Length)})
		}
	}
	for _, h := range append([]block.Handle{l.TopIndex, l.RangeDel, l.RangeKey, l.Properties, l.MetaIndex, l.BlobReferenceIndex, l.ValueIndex}, l.ValueBlock...) {
		add(h)
	}
	for _, h := range l.Filter {
		add(h.Handle)
	}
	var last []byte
	for _, h := range l.Index {
		add(h)
		b, err := t.Read(int64(h.Offset), int64(h.Length))
		if err != nil {
			return err
		}
		var it colblk.IndexIter
		if err := it.Init(pebble.DefaultComparer, b, block.NoTransforms); err != nil {
			return err
		}
		for ok := it.First(); ok; ok = it.Next() {
			h, err := it.BlockHandleWithProperties()
			if err != nil {
				return err
			}
			key := bytes.Clone(it.Separator())
			t.Data = append(t.Data, Block{At: int64(h.Offset), Size: int64(h.Length), After: last, Last: key})
			last = key
		}
	}
	return nil
}

// Read returns a block, checked and decompressed.
func (t *File) Read(at, size int64) (data []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			err = t.corrupt(err, at)
		}
	}()
	if at < 0 || size < 0 || size > t.Size-block.TrailerLen || at > t.Size-size-block.TrailerLen {
		return nil, fmt.Errorf("a block of %d bytes is not in the file", size)
	}
	b := make([]byte, size+block.TrailerLen)
	if _, err := t.File.ReadAt(b, at); err != nil {
		return nil, err
	}
	kind := block.ChecksumTypeCRC32c
	if t.Reader != nil {
		kind = t.Reader.BlockReader().ChecksumType()
	}
	if err := block.ValidateChecksum(kind, b, block.Handle{Offset: uint64(at), Length: uint64(size)}); err != nil {
		return nil, err
	}
	return unpack(b[:size], block.CompressionIndicator(b[size]))
}

func unpack(b []byte, how block.CompressionIndicator) ([]byte, error) {
	if how == block.NoCompressionIndicator {
		return aligned(b), nil
	}
	n, err := block.DecompressedLen(how, b)
	if err != nil {
		return nil, err
	}
	if n < 0 || n > maxTableBlock || n > 64<<20 && n > 256*len(b) {
		return nil, fmt.Errorf("a block that decompresses to %d bytes", n)
	}
	out := alignedOf(n)
	return out, block.DecompressInto(how, b, out)
}

// alignedOf returns n bytes that are aligned for numbers, as a block must be: its columns are read
// as numbers in place.
func alignedOf(n int) []byte {
	const word = 8
	return make([]byte, n, (n/word+1)*word)
}

func aligned(b []byte) []byte {
	out := alignedOf(len(b))
	copy(out, b)
	return out
}

// A Version is one version of a key.
type Version struct {
	Key, Value []byte
	Seq        uint64
	Deleted    bool
	// more says that the value is added to the older ones.
	More bool
}

// Decode calls f with the contents of a data block, in order. They are valid
// until f returns.
func (t *File) Decode(at int64, data []byte, f func(Version) error) (err error) {
	var mine error
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if err != nil && err != mine {
			err = t.corrupt(err, at)
		}
	}()
	if !isData(data) {
		return errors.New("not a block of data")
	}
	var d colblk.DataBlockDecoder
	d.Init(&t.schema, data)
	var it colblk.DataBlockIter
	it.InitOnce(&t.schema, pebble.DefaultComparer, nil)
	if err := it.Init(&d, block.NoTransforms); err != nil {
		return err
	}
	var last []byte
	for kv := it.First(); kv != nil; kv = it.Next() {
		if last != nil && bytes.Compare(last, kv.K.UserKey) > 0 {
			return errors.New("keys are not in order")
		}
		last = append(last[:0], kv.K.UserKey...)
		v := Version{Key: kv.K.UserKey, Seq: uint64(kv.K.SeqNum())}
		kind := kv.K.Kind()
		if kind == pebble.InternalKeyKindMerge && len(v.Key) > 0 && codec.IsMerged(v.Key) {
			// Part of a value; for tallies this does not matter.
			kind, v.More = pebble.InternalKeyKindSet, codec.IsLinkKey(v.Key)
		}
		switch kind {
		case pebble.InternalKeyKindSet, pebble.InternalKeyKindSetWithDelete:
			value, _, err := kv.V.Value(nil)
			if err != nil {
				return err
			}
			v.Value = value
		case pebble.InternalKeyKindDelete, pebble.InternalKeyKindSingleDelete, pebble.InternalKeyKindDeleteSized:
			v.Deleted = true
		default:
			return fmt.Errorf("a key of kind %v", kind)
		}
		if mine = f(v); mine != nil {
			return mine
		}
	}
	return nil
}

// isData recognizes a data block by its columns.
func isData(b []byte) bool {
	const own, version1, columns = 4, 1, 7
	return len(b) >= own+7 && b[own] == version1 && binary.LittleEndian.Uint16(b[own+1:]) == columns
}

// isFilter recognizes a Bloom filter: lines of 64 bytes, the number of probes, and that of
// the lines. It is never compressed.
func isFilter(b []byte) bool {
	const line, tail = 64, 5
	return len(b) > tail && len(b)%line == tail && binary.LittleEndian.Uint32(b[len(b)-4:]) == uint32(len(b)/line)
}

// Check reads the whole table and reports damage. It returns what the manifest should say.
func (t *File) Check(ctx context.Context, read func(n int64), found func(error)) (is Live, err error) {
	is.Smallest = math.MaxUint64
	for _, b := range t.Other {
		if err := ctx.Err(); err != nil {
			return is, err
		}
		if _, err := t.Read(b.At, b.Size); err != nil {
			found(err)
		}
		read(b.Size)
	}
	for _, b := range t.Data {
		if err := ctx.Err(); err != nil {
			return is, err
		}
		data, err := t.Read(b.At, b.Size)
		if err == nil {
			err = t.Decode(b.At, data, func(v Version) error {
				if b.After != nil && bytes.Compare(v.Key, b.After) <= 0 || bytes.Compare(v.Key, b.Last) > 0 {
					return &crawldb.CorruptError{File: t.Path, Offset: b.At, Err: errors.New("a key is in another block than its index says")}
				}
				if is.First == nil {
					is.First = bytes.Clone(v.Key)
				}
				is.Last = append(is.Last[:0], v.Key...)
				is.Smallest, is.Largest = min(is.Smallest, v.Seq), max(is.Largest, v.Seq)
				return nil
			})
		}
		if err != nil {
			found(err)
		}
		read(b.Size)
	}
	return is, nil
}

// KeyAfter returns a key after the block at an offset of a table, as a key of the
// database; nil if unknown, as for the last block: the table has any key between it and the
// largest there is.
func KeyAfter(fs vfs.FS, path string, at int64) []byte {
	if filepath.Ext(path) != ".sst" {
		return nil
	}
	t, err := Open(fs, path)
	if t != nil {
		defer t.Close()
	}
	if err != nil {
		return nil
	}
	for i, b := range t.Data {
		if b.At == at && i < len(t.Data)-1 {
			return append(bytes.Clone(b.Last), 0)
		}
	}
	return nil
}
