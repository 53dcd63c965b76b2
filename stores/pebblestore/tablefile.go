package pebblestore

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

// A tableFile is a sorted table of the engine that is read block by block, so
// that a damaged block does not hide the others.
type tableFile struct {
	f      vfs.File
	path   string
	size   int64
	r      *sstable.Reader
	schema colblk.KeySchema
	data   []tableBlock // in the order of keys
	other  []tableBlock // blocks that hold no keys
}

// tableBlock is one block of a table. Its keys are greater than after, and up to
// last.
type tableBlock struct {
	at, size    int64
	after, last []byte
}

// tableFooter is the size of what a table ends with, which says where its index is.
const tableFooter = 57

// maxTableBlock limits the decompressed size of a block.
const maxTableBlock = 1 << 30

var errTable = errors.New("not a table, or its end was cut off")

// openTable reads the index of a table. If the index is damaged the error is a
// *crawldb.CorruptError, and the file is returned, open, without blocks.
func openTable(fs vfs.FS, path string) (t *tableFile, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	t = &tableFile{f: f, path: path, size: info.Size(), schema: colblk.DefaultKeySchema(pebble.DefaultComparer, 16)}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			t.data, t.other = nil, nil
			err = t.corrupt(err, max(t.size-tableFooter, 0))
		}
	}()
	return t, t.index()
}

// corrupt adds the place of the damage to an error of the engine.
func (t *tableFile) corrupt(err error, at int64) error {
	var known *crawldb.CorruptError
	if errors.As(err, &known) {
		return err
	}
	if n, ok := blockIn(err); ok {
		at = n
	}
	return &crawldb.CorruptError{File: t.path, Offset: at, Err: err}
}

var blockText = regexp.MustCompile(`block (\d+)/\d+:`)

// blockIn extracts the offset of a block from an error of the engine, which has
// it only in its text.
func blockIn(err error) (int64, bool) {
	m := blockText.FindStringSubmatch(err.Error())
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	return n, err == nil
}

func (t *tableFile) close() error { return t.f.Close() }

func (t *tableFile) index() error {
	readable, err := sstable.NewSimpleReadable(t.f)
	if err != nil {
		return err
	}
	if t.size < 64 {
		return errTable
	}
	// Closing the reader would close the file, which is ours.
	t.r, err = sstable.NewReader(context.Background(), readable, sstable.ReaderOptions{})
	if err != nil {
		return err
	}
	if format, err := t.r.TableFormat(); err != nil || !format.BlockColumnar() {
		return fmt.Errorf("a table of format %v cannot be read block by block", format)
	}
	l, err := t.r.Layout()
	if err != nil {
		return err
	}
	add := func(h block.Handle) {
		if h.Length > 0 {
			t.other = append(t.other, tableBlock{at: int64(h.Offset), size: int64(h.Length)})
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
		b, err := t.read(int64(h.Offset), int64(h.Length))
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
			t.data = append(t.data, tableBlock{at: int64(h.Offset), size: int64(h.Length), after: last, last: key})
			last = key
		}
	}
	return nil
}

// read returns a block, checked and decompressed.
func (t *tableFile) read(at, size int64) (data []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			err = t.corrupt(err, at)
		}
	}()
	if at < 0 || size < 0 || size > t.size-block.TrailerLen || at > t.size-size-block.TrailerLen {
		return nil, fmt.Errorf("a block of %d bytes is not in the file", size)
	}
	b := make([]byte, size+block.TrailerLen)
	if _, err := t.f.ReadAt(b, at); err != nil {
		return nil, err
	}
	kind := block.ChecksumTypeCRC32c
	if t.r != nil {
		kind = t.r.BlockReader().ChecksumType()
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

// Columns are read as numbers in place, so a block must be aligned for numbers.
func alignedOf(n int) []byte {
	const word = 8
	return make([]byte, n, (n/word+1)*word)
}

func aligned(b []byte) []byte {
	out := alignedOf(len(b))
	copy(out, b)
	return out
}

// version is one version of a key.
type version struct {
	key, value []byte
	seq        uint64
	deleted    bool
	// more says that the value is added to the older ones.
	more bool
}

// decode calls f with the contents of a data block, in order. They are valid
// until f returns.
func (t *tableFile) decode(at int64, data []byte, f func(version) error) (err error) {
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
		v := version{key: kv.K.UserKey, seq: uint64(kv.K.SeqNum())}
		kind := kv.K.Kind()
		if kind == pebble.InternalKeyKindMerge && len(v.key) > 0 && isSum(v.key) {
			// Part of a value; for tallies this does not matter.
			kind, v.more = pebble.InternalKeyKindSet, codec.IsLinkKey(v.key)
		}
		switch kind {
		case pebble.InternalKeyKindSet, pebble.InternalKeyKindSetWithDelete:
			value, _, err := kv.V.Value(nil)
			if err != nil {
				return err
			}
			v.value = value
		case pebble.InternalKeyKindDelete, pebble.InternalKeyKindSingleDelete, pebble.InternalKeyKindDeleteSized:
			v.deleted = true
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

// check reads the whole table and reports damage. It returns what the manifest should say.
func (t *tableFile) check(ctx context.Context, read func(n int64), found func(error)) (is live, err error) {
	is.smallest = math.MaxUint64
	for _, b := range t.other {
		if err := ctx.Err(); err != nil {
			return is, err
		}
		if _, err := t.read(b.at, b.size); err != nil {
			found(err)
		}
		read(b.size)
	}
	for _, b := range t.data {
		if err := ctx.Err(); err != nil {
			return is, err
		}
		data, err := t.read(b.at, b.size)
		if err == nil {
			err = t.decode(b.at, data, func(v version) error {
				if b.after != nil && bytes.Compare(v.key, b.after) <= 0 || bytes.Compare(v.key, b.last) > 0 {
					return &crawldb.CorruptError{File: t.path, Offset: b.at, Err: errors.New("a key is in another block than its index says")}
				}
				if is.first == nil {
					is.first = bytes.Clone(v.key)
				}
				is.last = append(is.last[:0], v.key...)
				is.smallest, is.largest = min(is.smallest, v.seq), max(is.largest, v.seq)
				return nil
			})
		}
		if err != nil {
			found(err)
		}
		read(b.size)
	}
	return is, nil
}

// behind returns a key after the block at an offset of a table, as a key of the
// database; nil if unknown, as for the last block: the table has any key between it and the
// largest there is.
func behind(fs vfs.FS, path string, at int64) []byte {
	if filepath.Ext(path) != ".sst" {
		return nil
	}
	t, err := openTable(fs, path)
	if t != nil {
		defer t.close()
	}
	if err != nil {
		return nil
	}
	for i, b := range t.data {
		if b.at == at && i < len(t.data)-1 {
			return append(bytes.Clone(b.last), 0)
		}
	}
	return nil
}
