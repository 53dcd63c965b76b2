package pebblestore

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/failfs"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/logcheck"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/storedir"
)

// sources are the tables and logs of a database, each read on its own.
type sources struct {
	s      *salvage
	tables []*source
	logged []version // what the logs hold, the newest of each key, in order
}

// A source is a table. Its number says how new it is, if nothing else does.
type source struct {
	t      *tableFile
	number uint64
	// seq is the sequence number of all keys of a table that was ingested; 0 if
	// they have their own.
	seq uint64

	told map[int64]bool // blocks whose loss was reported

	// The current run.
	next int // block
	to   []byte
	rows []version
	row  int
}

func (in *sources) close() {
	for _, t := range in.tables {
		t.t.close()
	}
}

// Joined returns the same sources, to be read concurrently.
func (in *sources) beside() *sources {
	b := &sources{s: in.s, logged: in.logged}
	for _, src := range in.tables {
		b.tables = append(b.tables, &source{t: src.t, number: src.number, seq: src.seq, told: src.told})
	}
	return b
}

// live is what the manifest says about a table in use: its first and last key and the
// sequence numbers in it.
type live struct {
	first, last       []byte // nil of a table that is in use in part
	smallest, largest uint64
}

// has reports whether a table with these keys and sequence numbers may be the one. The
// manifest counts deletions of ranges, too, and numbers of entries that were left out. A
// Table of one number may have been ingested, and has its own then.
func (l live) has(is live) bool {
	if l.first == nil || is.first == nil {
		return true
	}
	return bytes.Compare(l.first, is.first) <= 0 && bytes.Compare(is.last, l.last) <= 0 &&
		(l.smallest == l.largest || l.smallest <= is.smallest && is.largest <= l.largest)
}

// liveTables asks the engine which tables are in use; nil if it cannot say. A file
// that may not be opened is an error: a user who may would find more.
func liveTables(under vfs.FS, path string) (tables map[uint64]live, err error) {
	defer func() {
		if recover() != nil {
			tables, err = nil, nil
		} else if !errors.Is(err, fs.ErrPermission) {
			err = nil
		}
	}()
	if err := logcheck.CheckFiles(under, path, nil); err != nil {
		return nil, err
	}
	db, err := openEngine(path, &pebble.Options{FS: storedir.ReadOnlyFS{FS: under}, ReadOnly: true, ErrorIfNotExists: true, DisableConsistencyCheck: true, FormatMajorVersion: engineFormat, Logger: quiet{}})
	if err != nil {
		return nil, err
	}
	defer closeEngine(db)
	files, err := filesOf(db)
	if err != nil {
		return nil, err
	}
	tables = map[uint64]live{}
	for i := range files {
		t := &files[i]
		l := live{smallest: uint64(t.SmallestSeqNum), largest: uint64(t.LargestSeqNum)}
		if !t.Virtual {
			l.first, l.last = bytes.Clone(t.Smallest.UserKey), bytes.Clone(t.Largest.UserKey)
		}
		tables[uint64(t.BackingSSTNum)] = l
	}
	return tables, nil
}

// sealHolds reports whether the manifest is the sealed one, if there is a seal, and
// returns what the seal describes.
func (s *salvage) sealHolds(under vfs.FS, path string) (files map[string]logcheck.SealedFile, holds bool) {
	text, err := storedir.ReadFile(s.disk, filepath.Join(s.src.dir, logcheck.SealName))
	if err != nil || !logcheck.WholeSeal(text) {
		return nil, true
	}
	if files, err = logcheck.SealedFiles(text); err != nil {
		return nil, true
	}
	var damage *crawldb.CorruptError
	err = logcheck.CheckSeal(text, under, path)
	return files, !errors.As(err, &damage) || strings.HasSuffix(damage.File, ".log")
}

type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(string, ...any) {}

// openSources opens all tables and logs.
func (s *salvage) openSources(ctx context.Context, under vfs.FS, path string) (in *sources, err error) {
	in = &sources{s: s}
	defer func() {
		if err != nil {
			in.close()
		}
	}()
	names, err := under.List(path)
	if errors.Is(err, fs.ErrNotExist) {
		s.lostBy(Loss{What: "crawl db", File: path, Block: -1}, err)
		return in, nil
	}
	if err != nil {
		return in, err
	}
	var counts map[uint64]live
	closed, holds := s.sealHolds(under, path)
	if holds {
		if counts, err = liveTables(under, path); err != nil {
			return in, err
		}
	}
	if counts == nil {
		s.lost(Loss{What: "state", File: path, Offset: -1, Block: -1, Err: errNoManifest})
	}
	least := uint64(0)
	if counts != nil {
		if least, err = logcheck.LeastLog(under, path); err != nil {
			return in, err
		}
	}
	gone, _ := logcheck.MissingLogs(under, path)
	for _, damage := range gone {
		s.lostBy(Loss{What: "log", Block: -1}, damage)
	}
	missing := map[uint64]bool{}
	for number := range counts {
		missing[number] = true
	}
	logs := map[string]version{}
	slices.Sort(names)
	for _, name := range names {
		full := under.PathJoin(path, name)
		ext := filepath.Ext(name)
		number, err := strconv.ParseUint(strings.TrimSuffix(name, ext), 10, 63)
		if err != nil {
			continue
		}
		switch ext {
		case ".sst":
			l, ok := counts[number]
			if counts != nil && !ok {
				continue // it was replaced
			}
			delete(missing, number)
			src := &source{number: number, told: map[int64]bool{}}
			if l.smallest == l.largest {
				src.seq = l.largest
			}
			if src.t, err = s.openSource(ctx, under, full); storedir.Absent(err) {
				s.lost(Loss{What: "crawl db", File: full, Offset: -1, Block: -1, Err: err})
				continue
			} else if err != nil {
				return in, err
			}
			in.tables = append(in.tables, src)
		case ".log":
			if number < least {
				continue // its contents are in tables
			}
			if _, ok := closed[name]; !ok && closed != nil {
				s.lost(Loss{What: "log", File: full, Offset: -1, Block: -1, Err: logcheck.ErrAdded})
				continue
			}
			if err := s.readLog(under, full, uint32(number), logs); storedir.Absent(err) {
				s.lost(Loss{What: "log", File: full, Offset: -1, Block: -1, Err: err})
			} else if err != nil {
				return in, err
			}
		}
	}
	for number := range missing {
		s.lost(Loss{What: "crawl db", File: under.PathJoin(path, sstName(number)), Offset: -1, Block: -1, Err: fs.ErrNotExist})
	}
	for _, v := range logs {
		in.logged = append(in.logged, v)
	}
	slices.SortFunc(in.logged, func(a, b version) int { return bytes.Compare(a.key, b.key) })
	return in, nil
}

var errNoManifest = errors.New("the engine cannot open it; all existing tables and logs are read")

// openSource opens a table, and finds its blocks without the index if that is
// damaged.
func (s *salvage) openSource(ctx context.Context, under vfs.FS, path string) (*tableFile, error) {
	t, err := openTable(under, path)
	if t == nil {
		return nil, err
	}
	if err == nil {
		return t, nil
	}
	at := int64(-1)
	if c, ok := err.(interface{ Unwrap() error }); ok {
		err = c.Unwrap()
	}
	s.lost(Loss{What: "state", File: path, Offset: at, Block: -1, Err: fmt.Errorf("its blocks are found without its index: %w", err)})
	disk := s.zeroFilled(t.f, "crawl db", path)
	t.f = zeroFilledFile{t.f, disk}
	if err := t.carve(ctx, disk); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// zeroFilled returns a reader of a file whose disk may have unreadable places: each run of them
// is reported once, as lost from a part of the store.
func (s *salvage) zeroFilled(f vfs.File, what, path string) *failfs.ZeroFillReader {
	next := int64(-1)
	return failfs.NewZeroFillReader(f, func(at int64, err error) {
		if at != next {
			s.lost(Loss{What: what, File: path, Offset: at, Block: -1, Err: err})
		}
		next = at + failfs.PageSize
	})
}

// zeroFilledFile is a file that is read through such a reader.
type zeroFilledFile struct {
	vfs.File
	r *failfs.ZeroFillReader
}

func (f zeroFilledFile) ReadAt(b []byte, at int64) (int, error) { return f.r.ReadAt(b, at) }

// carve finds the blocks of a table by their checksums alone. They are
// adjacent; after a damaged one, the next may begin anywhere.
func (t *tableFile) carve(ctx context.Context, disk *failfs.ZeroFillReader) error {
	// Few blocks are larger than near, none than far, which is tried where a
	// block must begin.
	const near, far = 256 << 10, 4 << 20
	t.r, t.data, t.other = nil, nil, nil
	window := make([]byte, far)
	begins := true
	for at := int64(0); at < t.size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		reach := int64(near)
		if begins {
			reach = far
		}
		b := window[:min(reach, t.size-at)]
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
			t.data = append(t.data, found)
		} else if !isFilter(b[:n]) {
			// A search tries so many places that some have a good checksum by chance; what
			// it finds there must not hide the blocks within. Any other block has one behind
			// it, but for the last, which holds no data, and one before a damaged one: these
			// are small, so searching them takes no time.
			next := window[:min(far, t.size-end)]
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
	slices.SortFunc(t.data, func(a, b tableBlock) int { return bytes.Compare(a.after, b.after) })
	return nil
}

// dataBlock describes the block at an offset; false if it is not one of data.
func (t *tableFile) dataBlock(at, size int64) (b tableBlock, ok bool) {
	data, err := t.read(at, size)
	if err != nil || !isData(data) {
		return b, false
	}
	b = tableBlock{at: at, size: size}
	err = t.decode(at, data, func(v version) error {
		if b.after == nil {
			b.after = bytes.Clone(v.key)
		}
		b.last = append(b.last[:0], v.key...)
		return nil
	})
	return b, err == nil && b.after != nil
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

// tableName returns the kind of data that is lost with a table.
func tableName(t codec.Table) string {
	switch t {
	case codec.CrawlTable:
		return "crawl db"
	case codec.LeaseTable:
		return "leases"
	case codec.LinkTable, codec.LayerTable:
		return "link db"
	case codec.MarkTable:
		return "marks"
	}
	return "host db"
}

// seek begins a run over the keys from lower up to upper.
func (src *source) seek(lower, upper []byte) {
	src.next, src.to, src.rows, src.row = 0, upper, nil, 0
	for src.next < len(src.t.data) && bytes.Compare(src.t.data[src.next].last, lower) < 0 {
		src.next++
	}
}

// fetch makes sure that there is a current row, if any are left.
func (src *source) fetch(in *sources, lower []byte) (ok bool) {
	for src.row >= len(src.rows) {
		if src.next >= len(src.t.data) {
			return false
		}
		b := src.t.data[src.next]
		if b.after != nil && bytes.Compare(b.after, src.to) >= 0 {
			return false
		}
		src.next++
		src.rows, src.row = src.rows[:0], 0
		data, err := src.t.read(b.at, b.size)
		if err == nil {
			err = src.t.decode(b.at, data, func(v version) error {
				if bytes.Compare(v.key, lower) < 0 || bytes.Compare(v.key, src.to) >= 0 {
					return nil
				}
				v.key, v.value = bytes.Clone(v.key), bytes.Clone(v.value)
				if src.seq > 0 {
					v.seq = src.seq
				}
				src.rows = append(src.rows, v)
				return nil
			})
		}
		if err != nil {
			src.rows = src.rows[:0]
			in.lostBlock(src, b, err)
		}
	}
	return true
}

// lostBlock reports once that a block is lost.
func (in *sources) lostBlock(src *source, b tableBlock, err error) {
	if src.told[b.at] {
		return
	}
	src.told[b.at] = true
	for _, t := range [...]codec.Table{codec.CrawlTable, codec.LeaseTable, codec.HostTable, codec.LayerTable, codec.LinkTable, codec.MarkTable, codec.HostDetailTable} {
		lower, upper := []byte{byte(t)}, []byte{byte(t) + 1}
		if bytes.Compare(b.last, lower) < 0 || bytes.Compare(b.after, upper) >= 0 {
			continue
		}
		l := Loss{What: tableName(t), Block: -1, File: src.t.path}
		if bytes.Compare(b.after, lower) >= 0 {
			l.After = string(b.after[1:])
		}
		if bytes.Compare(b.last, upper) < 0 {
			l.To = string(b.last[1:])
		}
		if t == codec.LayerTable {
			l.After, l.To = pagesOf(b.after, b.last)
		}
		in.s.lostBy(l, err)
	}
}

// pagesOf returns between which pages links are lost with a block of layers: all, if it has
// rows of several.
func pagesOf(after, last []byte) (from, to string) {
	a, first, _ := codec.SplitLinkKey(after)
	b, end, _ := codec.SplitLinkKey(last)
	if a == b {
		from, to = string(first), string(end)
	}
	return from, to
}

// run calls f with the newest version of each key of a table, in order; for sums,
// with everything added up.
func (in *sources) run(ctx context.Context, t codec.Table, f func(key string, value []byte) error) error {
	return in.between(ctx, []byte{byte(t)}, []byte{byte(t) + 1}, func(key, value []byte) error { return f(string(key[1:]), value) })
}

// between is run for the keys, with the byte of their table, from lower up to upper.
func (in *sources) between(ctx context.Context, lower, upper []byte, f func(key, value []byte) error) error {
	var q sourceHeap
	for _, src := range in.tables {
		src.seek(lower, upper)
		if src.fetch(in, lower) {
			q = append(q, src)
		}
	}
	heap.Init(&q)
	from, _ := slices.BinarySearchFunc(in.logged, lower, func(v version, k []byte) int { return bytes.Compare(v.key, k) })
	logged := in.logged[from:]
	var at version // what is known of the current key
	some := false
	end := func() error {
		if !some || at.deleted {
			return nil
		}
		return f(at.key, at.value)
	}
	for {
		if err := in.s.step(ctx); err != nil {
			return err
		}
		var v version
		fromLog := len(logged) > 0 && bytes.Compare(logged[0].key, upper) < 0
		if len(q) > 0 && fromLog {
			head := &q[0].rows[q[0].row]
			c := bytes.Compare(logged[0].key, head.key)
			fromLog = c < 0 || c == 0 && logged[0].seq >= head.seq
		}
		switch {
		case fromLog:
			v, logged = logged[0], logged[1:]
		case len(q) > 0:
			src := q[0]
			v = src.rows[src.row]
			src.row++
			if src.fetch(in, lower) {
				heap.Fix(&q, 0)
			} else {
				heap.Pop(&q)
			}
		default:
			return end()
		}
		if some && bytes.Equal(v.key, at.key) {
			at.addOlder(v)
			continue
		}
		if err := end(); err != nil {
			return err
		}
		at, some = v, true
	}
}

// addOlder adds an older version of the same key, if it counts.
func (v *version) addOlder(old version) {
	if !v.more {
		return
	}
	if v.more = old.more; old.deleted {
		return
	}
	_, page, _ := codec.SplitLinkKey(v.key)
	var sum codec.LinkSum
	sum.Reset(page, false)
	// These do not fail.
	_, _ = sum.MergeNewer(old.value), sum.MergeNewer(v.value)
	v.value, _, _ = sum.Finish(false)
}

// sourceHeap has the least key on top; for equal keys, the newest version.
type sourceHeap []*source

func (q sourceHeap) Len() int      { return len(q) }
func (q sourceHeap) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q sourceHeap) Less(i, j int) bool {
	a, b := &q[i].rows[q[i].row], &q[j].rows[q[j].row]
	return cmp.Or(bytes.Compare(a.key, b.key), cmp.Compare(b.seq, a.seq), cmp.Compare(q[j].number, q[i].number)) < 0
}
func (q *sourceHeap) Push(x any) { *q = append(*q, x.(*source)) }
func (q *sourceHeap) Pop() any {
	n := len(*q) - 1
	x := (*q)[n]
	*q = (*q)[:n]
	return x
}

// readLog adds the steps of a log, including those after damage.
func (s *salvage) readLog(under vfs.FS, path string, number uint32, into map[string]version) error {
	f, err := under.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	disk := s.zeroFilled(f, "log", path)
	if info.Size() > logcheck.MaxSize {
		s.lost(Loss{What: "log", File: path, Offset: logcheck.MaxSize, Block: -1, Err: logcheck.ErrLong})
	}
	return logcheck.EachRecord(disk, min(info.Size(), logcheck.MaxSize), number, func(rec []byte) {
		readBatch(rec, into)
	}, func(at int64) {
		s.lost(Loss{What: "log", File: path, Offset: at, Block: -1, Err: logcheck.ErrRecord})
	})
}

// readBatch adds the changes of a step in a log.
func readBatch(rec []byte, into map[string]version) {
	r, ok := batchrepr.Read(rec), len(rec) >= batchrepr.HeaderLen
	if !ok {
		return
	}
	seq := binary.LittleEndian.Uint64(rec)
	for {
		kind, key, value, ok, err := r.Next()
		if !ok || err != nil {
			return
		}
		v := version{key: bytes.Clone(key), seq: seq}
		switch kind {
		case pebble.InternalKeyKindLogData:
			continue
		case pebble.InternalKeyKindSet, pebble.InternalKeyKindSetWithDelete:
			v.value = bytes.Clone(value)
		case pebble.InternalKeyKindDelete, pebble.InternalKeyKindSingleDelete, pebble.InternalKeyKindDeleteSized:
			v.deleted = true
		case pebble.InternalKeyKindMerge:
			if !codec.IsLinkKey(key) { // a merge of the index, which is built anew
				seq++
				continue
			}
			v.value, v.more = bytes.Clone(value), true
		default: // also of the index
			seq++
			continue
		}
		seq++
		if old, ok := into[string(v.key)]; ok && old.seq > v.seq {
			old.addOlder(v)
			into[string(v.key)] = old
		} else {
			if ok {
				v.addOlder(old)
			}
			into[string(v.key)] = v
		}
	}
}
