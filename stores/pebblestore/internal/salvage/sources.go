package salvage

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/dirstore"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/logcheck"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/sstables"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/storedir"
)

// sources are the tables and logs of a database, each read on its own.
type sources struct {
	s      *Salvage
	tables []*source
	logged []sstables.Version // what the logs hold, the newest of each key, in order
}

// A source is a table. Its number says how new it is, if nothing else does.
type source struct {
	t      *sstables.File
	number uint64
	// seq is the sequence number of all keys of a table that was ingested; 0 if
	// they have their own.
	seq uint64

	reported map[int64]bool // blocks whose loss was reported

	// The current run.
	next int // block
	to   []byte
	rows []sstables.Version
	row  int
}

func (in *sources) close() {
	for _, t := range in.tables {
		t.t.Close()
	}
}

// beside returns the same sources, to be read concurrently.
func (in *sources) beside() *sources {
	b := &sources{s: in.s, logged: in.logged}
	for _, src := range in.tables {
		b.tables = append(b.tables, &source{t: src.t, number: src.number, seq: src.seq, reported: src.reported})
	}
	return b
}

// sealHolds reports whether the manifest is the sealed one, if there is a seal, and
// returns what the seal describes.
func (s *Salvage) sealHolds(under vfs.FS, path string) (files map[string]logcheck.SealedFile, holds bool) {
	text, err := storedir.ReadFile(s.disk, filepath.Join(s.dir, logcheck.SealName))
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

// openSources opens all tables and logs.
func (s *Salvage) openSources(ctx context.Context, under vfs.FS, path string) (in *sources, err error) {
	in = &sources{s: s}
	defer func() {
		if err != nil {
			in.close()
		}
	}()
	names, err := under.List(path)
	if errors.Is(err, fs.ErrNotExist) {
		s.LostBy(Loss{What: "crawl db", File: path, Block: -1}, err)
		return in, nil
	}
	if err != nil {
		return in, err
	}
	var counts map[uint64]sstables.Live
	closed, holds := s.sealHolds(under, path)
	if holds {
		if counts, err = sstables.LiveTables(under, path); err != nil {
			return in, err
		}
	}
	if counts == nil {
		s.Lost(Loss{What: "state", File: path, Offset: -1, Block: -1, Err: errNoManifest})
	}
	least := uint64(0)
	if counts != nil {
		if least, err = logcheck.LeastLog(under, path); err != nil {
			return in, err
		}
	}
	gone, _ := logcheck.MissingLogs(under, path)
	for _, damage := range gone {
		s.LostBy(Loss{What: "log", Block: -1}, damage)
	}
	missing := map[uint64]bool{}
	for number := range counts {
		missing[number] = true
	}
	logs := map[string]sstables.Version{}
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
			src := &source{number: number, reported: map[int64]bool{}}
			if l.Smallest == l.Largest {
				src.seq = l.Largest
			}
			if src.t, err = s.openSource(ctx, under, full); storedir.Absent(err) {
				s.Lost(Loss{What: "crawl db", File: full, Offset: -1, Block: -1, Err: err})
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
				s.Lost(Loss{What: "log", File: full, Offset: -1, Block: -1, Err: logcheck.ErrAdded})
				continue
			}
			if err := s.readLog(under, full, uint32(number), logs); storedir.Absent(err) {
				s.Lost(Loss{What: "log", File: full, Offset: -1, Block: -1, Err: err})
			} else if err != nil {
				return in, err
			}
		}
	}
	for number := range missing {
		s.Lost(Loss{What: "crawl db", File: under.PathJoin(path, sstables.FileName(number)), Offset: -1, Block: -1, Err: fs.ErrNotExist})
	}
	for _, v := range logs {
		in.logged = append(in.logged, v)
	}
	slices.SortFunc(in.logged, func(a, b sstables.Version) int { return bytes.Compare(a.Key, b.Key) })
	return in, nil
}

var errNoManifest = errors.New("the engine cannot open it; all existing tables and logs are read")

// openSource opens a table, and finds its blocks without the index if that is
// damaged.
func (s *Salvage) openSource(ctx context.Context, under vfs.FS, path string) (*sstables.File, error) {
	t, err := sstables.Open(under, path)
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
	s.Lost(Loss{What: "state", File: path, Offset: at, Block: -1, Err: fmt.Errorf("its blocks are found without its index: %w", err)})
	disk := s.zeroFilled(t.File, "crawl db", path)
	t.File = zeroFilledFile{t.File, disk}
	if err := t.Carve(ctx, disk); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// zeroFilled returns a reader of a file whose disk may have unreadable places: each run of them
// is reported once, as lost from a part of the store.
func (s *Salvage) zeroFilled(f vfs.File, what, path string) *dirstore.ZeroFillReader {
	next := int64(-1)
	return dirstore.NewZeroFillReader(f, func(at int64, err error) {
		if at != next {
			s.Lost(Loss{What: what, File: path, Offset: at, Block: -1, Err: err})
		}
		next = at + dirstore.DiskPage
	})
}

// zeroFilledFile is a file that is read through such a reader.
type zeroFilledFile struct {
	vfs.File
	r *dirstore.ZeroFillReader
}

func (f zeroFilledFile) ReadAt(b []byte, at int64) (int, error) { return f.r.ReadAt(b, at) }

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
	for src.next < len(src.t.Data) && bytes.Compare(src.t.Data[src.next].Last, lower) < 0 {
		src.next++
	}
}

// fetch makes sure that there is a current row, if any are left.
func (src *source) fetch(in *sources, lower []byte) (ok bool) {
	for src.row >= len(src.rows) {
		if src.next >= len(src.t.Data) {
			return false
		}
		b := src.t.Data[src.next]
		if b.After != nil && bytes.Compare(b.After, src.to) >= 0 {
			return false
		}
		src.next++
		src.rows, src.row = src.rows[:0], 0
		data, err := src.t.Read(b.At, b.Size)
		if err == nil {
			err = src.t.Decode(b.At, data, func(v sstables.Version) error {
				if bytes.Compare(v.Key, lower) < 0 || bytes.Compare(v.Key, src.to) >= 0 {
					return nil
				}
				v.Key, v.Value = bytes.Clone(v.Key), bytes.Clone(v.Value)
				if src.seq > 0 {
					v.Seq = src.seq
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
func (in *sources) lostBlock(src *source, b sstables.Block, err error) {
	if src.reported[b.At] {
		return
	}
	src.reported[b.At] = true
	for _, t := range [...]codec.Table{codec.CrawlTable, codec.LeaseTable, codec.HostTable, codec.LayerTable, codec.LinkTable, codec.MarkTable, codec.HostDetailTable} {
		lower, upper := []byte{byte(t)}, []byte{byte(t) + 1}
		if bytes.Compare(b.Last, lower) < 0 || bytes.Compare(b.After, upper) >= 0 {
			continue
		}
		l := Loss{What: tableName(t), Block: -1, File: src.t.Path}
		if bytes.Compare(b.After, lower) >= 0 {
			l.After = string(b.After[1:])
		}
		if bytes.Compare(b.Last, upper) < 0 {
			l.To = string(b.Last[1:])
		}
		if t == codec.LayerTable {
			l.After, l.To = pagesOf(b.After, b.Last)
		}
		in.s.LostBy(l, err)
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
	from, _ := slices.BinarySearchFunc(in.logged, lower, func(v sstables.Version, k []byte) int { return bytes.Compare(v.Key, k) })
	logged := in.logged[from:]
	var at sstables.Version // what is known of the current key
	some := false
	end := func() error {
		if !some || at.Deleted {
			return nil
		}
		return f(at.Key, at.Value)
	}
	for {
		if err := in.s.step(ctx); err != nil {
			return err
		}
		var v sstables.Version
		fromLog := len(logged) > 0 && bytes.Compare(logged[0].Key, upper) < 0
		if len(q) > 0 && fromLog {
			head := &q[0].rows[q[0].row]
			c := bytes.Compare(logged[0].Key, head.Key)
			fromLog = c < 0 || c == 0 && logged[0].Seq >= head.Seq
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
		if some && bytes.Equal(v.Key, at.Key) {
			addOlder(&at, v)
			continue
		}
		if err := end(); err != nil {
			return err
		}
		at, some = v, true
	}
}

// addOlder adds to a version an older one of the same key, if it counts.
func addOlder(v *sstables.Version, old sstables.Version) {
	if !v.More {
		return
	}
	if v.More = old.More; old.Deleted {
		return
	}
	_, page, _ := codec.SplitLinkKey(v.Key)
	var sum codec.LinkSum
	sum.Reset(page, false)
	// These do not fail.
	_, _ = sum.MergeNewer(old.Value), sum.MergeNewer(v.Value)
	v.Value, _, _ = sum.Finish(false)
}

// sourceHeap has the least key on top; for equal keys, the newest version.
type sourceHeap []*source

func (q sourceHeap) Len() int      { return len(q) }
func (q sourceHeap) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q sourceHeap) Less(i, j int) bool {
	a, b := &q[i].rows[q[i].row], &q[j].rows[q[j].row]
	return cmp.Or(bytes.Compare(a.Key, b.Key), cmp.Compare(b.Seq, a.Seq), cmp.Compare(q[j].number, q[i].number)) < 0
}
func (q *sourceHeap) Push(x any) { *q = append(*q, x.(*source)) }
func (q *sourceHeap) Pop() any {
	n := len(*q) - 1
	x := (*q)[n]
	*q = (*q)[:n]
	return x
}

// readLog adds the steps of a log, including those after damage.
func (s *Salvage) readLog(under vfs.FS, path string, number uint32, into map[string]sstables.Version) error {
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
		s.Lost(Loss{What: "log", File: path, Offset: logcheck.MaxSize, Block: -1, Err: logcheck.ErrLong})
	}
	return logcheck.EachRecord(disk, min(info.Size(), logcheck.MaxSize), number, func(rec []byte) {
		readBatch(rec, into)
	}, func(at int64) {
		s.Lost(Loss{What: "log", File: path, Offset: at, Block: -1, Err: logcheck.ErrRecord})
	})
}

// readBatch adds the changes of a step in a log.
func readBatch(rec []byte, into map[string]sstables.Version) {
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
		v := sstables.Version{Key: bytes.Clone(key), Seq: seq}
		switch kind {
		case pebble.InternalKeyKindLogData:
			continue
		case pebble.InternalKeyKindSet, pebble.InternalKeyKindSetWithDelete:
			v.Value = bytes.Clone(value)
		case pebble.InternalKeyKindDelete, pebble.InternalKeyKindSingleDelete, pebble.InternalKeyKindDeleteSized:
			v.Deleted = true
		case pebble.InternalKeyKindMerge:
			if !codec.IsLinkKey(key) { // a merge of the index, which is built anew
				seq++
				continue
			}
			v.Value, v.More = bytes.Clone(value), true
		default: // also of the index
			seq++
			continue
		}
		seq++
		if old, ok := into[string(v.Key)]; ok && old.Seq > v.Seq {
			addOlder(&old, v)
			into[string(v.Key)] = old
		} else {
			if ok {
				addOlder(&v, old)
			}
			into[string(v.Key)] = v
		}
	}
}
