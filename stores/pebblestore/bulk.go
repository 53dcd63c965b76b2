package pebblestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

var _ crawldb.BulkStore = (*crawlStore)(nil)

const (
	// bulkStep is how many bytes of changes are collected, sorted and written
	// as tables at a time, or the size of two memtables if that is less;
	// bulkLeast is the least that becomes tables: less is written as a batch.
	bulkStep  = 32 << 20
	bulkLeast = 4 << 20
	// fullTable is how many index entries get a table of their own; levels and
	// hours with fewer share one.
	fullTable = 4096
)

// bulkPrefix begins the names of tables that are not yet the engine's. The
// engine uses no such names, and leaves such files alone. A file found when the
// store is opened was left behind by a crash.
const bulkPrefix = "bulk-"

// UpdateAll collects the changes of many batches in tables that the engine ingests
// as they are: they bypass the log and the memtable and, where there is nothing yet,
// are not written again. Records, their index entries, marks and the state of the
// index are all in the tables that the engine takes in one step, so a crash leaves
// all or nothing of it.
func (s *crawlStore) UpdateAll(ctx context.Context, batches iter.Seq2[crawldb.Batch, error]) error {
	if err := s.updateAll(ctx, batches); err != nil {
		return fmt.Errorf("pebblestore: update all: %w", err)
	}
	return nil
}

func (s *crawlStore) updateAll(ctx context.Context, batches iter.Seq2[crawldb.Batch, error]) error {
	b := bulk{s: s}
	defer b.end()
	defer s.db.pacer.hold(false)
	for batch, err := range batches {
		if err == nil {
			err = b.add(ctx, batch)
		}
		if err != nil {
			return err
		}
	}
	if err := b.apply(ctx); err != nil {
		return err
	}
	if err := s.db.sync(ctx, &s.view); err != nil {
		return err
	}
	if b.tables >= tidySteps {
		s.trim(ctx)
		s.db.tidy(ctx, &s.view)
	}
	return nil
}

// A bulk is one call of UpdateAll. It has the turn of the crawl db from the
// first batch of a step to its last, also while the sequence produces the next:
// what was passed to a Next must not change before its result is written.
type bulk struct {
	s     *crawlStore
	turn  bool
	step  step
	index *mover
	last  string // URL of the step
	// tables counts the steps that are written as tables.
	tables int
}

// end discards what was not applied.
func (b *bulk) end() {
	if b.turn {
		b.turn = false
		<-b.s.turn
	}
}

func (b *bulk) add(ctx context.Context, batch crawldb.Batch) error {
	behind := len(batch.URLs) == 0 || b.step.empty() || crawldb.Compare(b.last, batch.URLs[0]) < 0
	if b.step.size() >= b.s.bulkStep || !behind {
		if err := b.apply(ctx); err != nil {
			return err
		}
	}
	if !b.turn {
		if err := b.s.db.take(ctx, &b.s.view, b.s.turn); err != nil {
			return err
		}
		b.turn, b.index = true, b.s.mover()
		b.index.bring = true
	} else if err := b.s.db.enter(ctx, &b.s.view); err != nil {
		return err
	}
	defer b.s.db.leave()
	if err := b.s.collect(ctx, batch, &b.step, b.index); err != nil {
		return err
	}
	if n := len(batch.URLs); n > 0 {
		b.last = batch.URLs[n-1]
	}
	return nil
}

// apply writes the step and releases the turn.
func (b *bulk) apply(ctx context.Context) error {
	defer b.end()
	if b.step.empty() {
		return nil
	}
	if err := b.s.db.enter(ctx, &b.s.view); err != nil {
		return err
	}
	defer b.s.db.leave()
	if err := b.index.end(&b.step); err != nil {
		return err
	}
	if b.index.first {
		if err := b.step.Set(dueKey, b.index.state.append(nil), nil); err != nil {
			return err
		}
	}
	b.s.db.holdBack()
	tables, err := b.s.db.writeStep(ctx, &b.s.view, &b.step, b.s.bulkLeast)
	if tables {
		b.tables++
	}
	b.s.changed(b.index, err)
	if err != nil {
		return err
	}
	if b.index.first {
		b.s.due.state.Store(b.index.state)
	}
	b.step.reset()
	return nil
}

// writeStep writes a step as tables, or as a batch if it has less than least bytes, and
// reports which it is.
func (d *DB) writeStep(ctx context.Context, v *view, st *step, least int) (asTables bool, err error) {
	if st.size() < least {
		return false, d.commitStep(ctx, v, st)
	}
	t := tables{of: "crawl-", size: st.size(), rows: slices.Values(st.tables(fullTable))}
	if st.cleared.Start != nil {
		t.cleared = []pebble.KeyRange{st.cleared}
	}
	if n := len(st.records); n > 0 {
		t.first, t.last = st.key(st.records[0]), st.key(st.records[n-1])
	}
	return true, d.ingest(ctx, v, t)
}

// holdBack keeps the engine from compacting while more steps come, unless level 0 is
// already too deep.
func (d *DB) holdBack() {
	deep := d.db.Metrics().Levels[0].Sublevels
	if deep >= maxSublevels {
		d.owed.Store(true)
	}
	d.pacer.hold(deep < heldSublevels)
}

func (d *DB) commitStep(ctx context.Context, v *view, st *step) error {
	batch := d.db.NewBatch()
	defer batch.Close()
	for _, t := range st.tables(1) {
		for key, value := range t {
			var err error
			switch {
			case value == nil:
				err = batch.Delete(key, nil)
			case codec.IsMerged(key):
				err = batch.Merge(key, value, nil)
			default:
				err = batch.Set(key, value, nil)
			}
			if err != nil {
				return err
			}
		}
	}
	if st.cleared.Start != nil {
		if err := batch.DeleteRange(st.cleared.Start, st.cleared.End, nil); err != nil {
			return err
		}
	}
	return d.commit(ctx, v, batch, pebble.NoSync)
}

// tables are what ingest writes.
type tables struct {
	of      string                              // the store that writes them, for the names of files
	size    int                                 // in bytes, about
	rows    iter.Seq[iter.Seq2[[]byte, []byte]] // or nil
	err     *error                              // why rows ended early
	cleared []pebble.KeyRange                   // what is deleted with them; they have nothing of it
	// filtered asks for filters of all tables, and not only of records that lie above others.
	filtered bool
	// aside says that a failure to write the tables is not one of the store, and a full disk
	// nothing to wait for: they are not the engine's yet, and nobody waits for them.
	aside bool
	// fresh says that there are no rows yet under the keys, but perhaps the very first of a table.
	fresh bool
	// The first and the last record, if the first table has records of the crawl db.
	first, last []byte
}

// ingest writes tables and has the engine ingest them. They are
// durable at once, so earlier commits must be durable, too. These are flushed first:
// if they overlapped the tables the engine would wait for that flush itself,
// and would not stop waiting when the disk fails. Other stores, which have
// other turns, commit nothing that overlaps.
func (d *DB) ingest(ctx context.Context, v *view, t tables) (err error) {
	if d.readOnly {
		return ErrReadOnly
	}
	if t.rows != nil { // or it may be what makes room
		if err := d.space.Wait(ctx, v.errClosed); err != nil {
			return err
		}
		if err := d.makeRoom(ctx, v, t.size); err != nil {
			return err
		}
	}
	if !t.aside {
		defer d.space.Hurry(ctx)()
	}
	if err := d.writeOut(); err != nil {
		return err
	}
	var names []string
	defer func() {
		if err != nil {
			for _, name := range names {
				_ = d.fs.Remove(name) // if not, the next opening does
			}
		}
	}()
	above, err := d.liesAbove(t)
	if err != nil {
		return err
	}
	write := func(filtered bool, fill func(*sstable.Writer) error) error {
		if err := d.goingOn(ctx, v); err != nil {
			return err
		}
		name := d.under.PathJoin(d.path, fmt.Sprint(bulkPrefix, t.of, len(names)))
		names = append(names, name)
		return d.outcome("write tables", d.writeTable(name, filtered, t.aside, fill))
	}
	if t.rows != nil {
		for rows := range t.rows {
			// The records come first.
			if err := write(t.filtered || above && len(names) == 0, func(w *sstable.Writer) error { return writeRows(w, rows, t.fresh) }); err != nil {
				return err
			}
		}
	}
	if t.err != nil && *t.err != nil {
		return *t.err
	}
	for _, r := range t.cleared {
		// One would overlap what lies between them.
		if err := write(false, func(w *sstable.Writer) error { return w.DeleteRange(r.Start, r.End) }); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		return nil
	}
	if d.fs.Failure() != nil {
		return d.failed()
	}
	if err := d.changes.enter(ctx, d.closing, v.errClosed); err != nil {
		return err
	}
	d.dirty.Store(true)
	d.batched.Store(0)
	// After a failure of the disk the engine may wait until release.
	done := make(chan error, 1)
	d.ingests.Go(func() {
		defer d.changes.leave()
		done <- ingestTables(d.db, names)
	})
	select {
	case err = <-done:
	case <-d.fs.Down():
	}
	return d.outcome("ingest", err)
}

// writeOut flushes what was committed since the last call.
func (d *DB) writeOut() error {
	d.writing.Lock()
	defer d.writing.Unlock()
	if !d.unflushed.Swap(false) {
		return nil
	}
	err := d.outcome("flush", d.flush())
	if err != nil {
		d.unflushed.Store(true)
	}
	return err
}

// ingestTables is db.Ingest, which may panic after a failure of the disk. It
// cannot be cancelled: it is short, and not atomic.
func ingestTables(db *pebble.DB, names []string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return db.Ingest(context.Background(), names)
}

// liesAbove reports whether records will lie above others. If so their table
// needs a filter, or random reads read a block of each such table. If nothing lies
// below it a filter would be useless: the last level has none.
func (d *DB) liesAbove(t tables) (bool, error) {
	if t.first == nil {
		return false, nil
	}
	size, err := d.db.EstimateDiskUsage(t.first, t.last)
	return size > 0, d.outcome("write tables", err)
}

// writeTable writes and syncs a table, with or without a filter.
func (d *DB) writeTable(name string, filtered, aside bool, fill func(*sstable.Writer) error) error {
	disk := vfs.FS(d.fs)
	if aside {
		disk = d.under
	}
	f, err := disk.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	o := d.options.MakeWriterOptions(len(d.options.Levels)-1, d.db.TableFormat())
	o.WritingToLowestLevel = false // the engine decides that
	if filtered {
		o.FilterPolicy = d.options.Levels[0].FilterPolicy
	}
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(f), o)
	err = fill(w)
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	return err
}

func writeRows(w *sstable.Writer, rows iter.Seq2[[]byte, []byte], fresh bool) (err error) {
	n := 0
	for key, value := range rows {
		n++
		switch {
		case value == nil:
			err = w.Delete(key)
		case codec.IsMerged(key) && (!fresh || n == 1):
			err = w.Merge(key, value)
		default:
			err = w.Set(key, value)
		}
		if err != nil {
			break
		}
	}
	return err
}

// sweepBulk removes tables that a crash kept from the engine. A table that
// cannot be removed only takes space.
func (d *DB) sweepBulk() {
	names, _ := d.under.List(d.path) // the engine will report an error itself
	for _, name := range names {
		if strings.HasPrefix(name, bulkPrefix) {
			if err := d.under.Remove(d.under.PathJoin(d.path, name)); err != nil {
				d.log.Warn("pebblestore: a temporary file was left", "dir", d.dir, "error", err)
			}
		}
	}
}

// A step holds the changes of the crawl db that are written together. Records come in
// key order, and so do the index entries within a level or an hour, which are kept
// separately.
type step struct {
	chunks  [][]byte // of keys and values, all but the last full, or not in use
	cur     int      // the one being filled
	bytes   int      // in chunks, with the changes
	records []change
	entries map[uint64]*lane  // by table and level, or bucket; and leases
	few     map[string][]byte // marks, states, leases, and tallies to be merged; nil deletes
	cleared pebble.KeyRange   // deleted as well, of what has no changes
}

// change is a key and the value to set under it. The key of an index entry
// omits what precedes the key of the record.
type change struct {
	key, value place
	klen       uint32
	vlen       int32 // or deleted
}

const (
	changeSize = 16
	deleted    = -1
)

// place is where bytes begin: the number of the chunk and the offset in it. A
// chunk larger than usual holds a single piece, at its beginning.
type place uint32

const chunkBits = 20

func (st *step) size() int { return st.bytes }

func (st *step) empty() bool { return st.bytes == 0 && len(st.few) == 0 }

// reset keeps the memory for the next step.
func (st *step) reset() {
	st.chunks = slices.DeleteFunc(st.chunks, func(c []byte) bool { return cap(c) > 1<<chunkBits })
	for i, c := range st.chunks {
		st.chunks[i] = c[:0]
	}
	st.records, st.cur, st.bytes = st.records[:0], 0, 0
	for _, l := range st.entries {
		l.changes = l.changes[:0]
	}
	clear(st.few)
}

// Len is the size of the whole step.
func (st *step) Len() int { return st.size() }

// Set, Delete and Merge are those of a batch.
func (st *step) Set(key, value []byte, _ *pebble.WriteOptions) error {
	st.put(key, value, int32(len(value)))
	return nil
}

func (st *step) Delete(key []byte, _ *pebble.WriteOptions) error {
	st.put(key, nil, deleted)
	return nil
}

// Merge is called once per tally in a step, or adds.
func (st *step) Merge(key, value []byte, _ *pebble.WriteOptions) error {
	var sum tally
	if err := errors.Join(sum.addFrom(st.few[string(key)]), sum.addFrom(value)); err != nil {
		return err
	}
	return st.Set(key, sum.append(nil), nil)
}

func (st *step) put(key, value []byte, vlen int32) {
	prefix := lanePrefix(codec.Table(key[0]))
	switch {
	case codec.Table(key[0]) == codec.CrawlTable:
		st.records = append(st.records, st.change(key, value, vlen))
		return
	case prefix == 0:
		if st.few == nil {
			st.few = map[string][]byte{}
		}
		if vlen == deleted {
			st.few[string(key)] = nil
		} else {
			st.few[string(key)] = append([]byte{}, value...)
		}
		return
	}
	l := st.lane(key, prefix)
	var c change
	// An entry follows its record.
	if last := len(st.records) - 1; last >= 0 && bytes.Equal(st.key(st.records[last])[1:], key[prefix:]) {
		r := st.records[last]
		c = st.change(nil, value, vlen)
		c.key, c.klen = r.key+1, r.klen-1
	} else {
		c = st.change(key[prefix:], value, vlen)
	}
	l.changes = append(l.changes, c)
}

// A lane holds the changes of one level or hour, or of the leases, in key order.
type lane struct{ changes []change }

// lane returns that of a key whose prefix has that length.
func (st *step) lane(key []byte, prefix int) *lane {
	var number [8]byte
	copy(number[:], key[:prefix])
	n := binary.BigEndian.Uint64(number[:])
	l := st.entries[n]
	if l == nil {
		if st.entries == nil {
			st.entries = map[uint64]*lane{}
		}
		l = &lane{}
		st.entries[n] = l
	}
	return l
}

// inOrder merges changes that are in order within each group. It reuses the groups.
func (st *step) inOrder(groups [][]change) []change {
	for len(groups) > 1 {
		n := 0
		for pair := range slices.Chunk(groups, 2) {
			groups[n] = pair[0]
			if len(pair) > 1 {
				groups[n] = st.merged(pair[0], pair[1])
			}
			n++
		}
		groups = groups[:n]
	}
	return groups[0]
}

func (st *step) merged(a, b []change) []change {
	all := make([]change, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if bytes.Compare(st.key(a[0]), st.key(b[0])) <= 0 {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return append(append(all, a...), b...)
}

// lanePrefix is the length of what precedes the key of a record in a key of a table;
// zero if the table has nothing per record.
func lanePrefix(t codec.Table) int {
	switch t {
	case codec.LeaseTable:
		return 1
	case codec.ReadyTable:
		return readyPrefix
	case codec.WheelTable:
		return wheelPrefix
	}
	return 0
}

func (st *step) change(key, value []byte, vlen int32) change {
	st.bytes += changeSize
	return change{key: st.add(key), klen: uint32(len(key)), value: st.add(value), vlen: vlen}
}

// add adds bytes and returns where they are.
func (st *step) add(b []byte) place {
	for ; st.cur < len(st.chunks); st.cur++ {
		if c := st.chunks[st.cur]; cap(c)-len(c) >= len(b) && len(c) < 1<<chunkBits {
			break
		}
	}
	if st.cur == len(st.chunks) { // as much as there is, up to a whole one
		st.chunks = append(st.chunks, make([]byte, 0, max(min(max(st.bytes, 16<<10), 1<<chunkBits), len(b))))
	}
	c := st.chunks[st.cur]
	st.chunks[st.cur] = append(c, b...)
	st.bytes += len(b)
	return place(st.cur<<chunkBits | len(c))
}

func (st *step) at(p place, n int) []byte {
	return st.chunks[p>>chunkBits][p&(1<<chunkBits-1):][:n:n]
}

func (st *step) key(c change) []byte { return st.at(c.key, int(c.klen)) }

// valueOf returns the value of a change; nil if it deletes.
func (st *step) valueOf(c change) []byte {
	if c.vlen == deleted {
		return nil
	}
	return st.at(c.value, int(c.vlen))
}

// tables returns the changes as tables that do not overlap, each in key order, with nil
// for deleted keys. Levels and hours with at least full entries get tables of their own:
// the next step begins where they end, while a table with several of them would overlap
// all of it.
func (st *step) tables(full int) []iter.Seq2[[]byte, []byte] {
	var all []iter.Seq2[[]byte, []byte]
	if len(st.records) > 0 {
		all = append(all, func(yield func(key, value []byte) bool) {
			for _, c := range st.records {
				if !yield(st.key(c), st.valueOf(c)) {
					return
				}
			}
		})
	}
	var some []uint64
	flush := func() {
		if len(some) > 0 {
			all = append(all, st.lanes(some))
			some = nil
		}
	}
	for _, n := range slices.Sorted(maps.Keys(st.entries)) {
		size := len(st.entries[n].changes)
		if size == 0 { // from an earlier step
			continue
		}
		if size >= full || len(some) > 0 && some[0]>>56 != n>>56 {
			flush()
		}
		some = append(some, n)
		if size >= full {
			flush()
		}
	}
	flush()
	names := slices.Sorted(maps.Keys(st.few))
	for i := 0; i < len(names); {
		from := i
		for i < len(names) && kindOf(names[i]) == kindOf(names[from]) {
			i++
		}
		all = append(all, func(yield func(key, value []byte) bool) {
			for _, name := range names[from:i] {
				if !yield([]byte(name), st.few[name]) {
					return
				}
			}
		})
	}
	return all
}

// kindOf returns the prefix of those keys of a table that get a table to themselves in
// a step. A step has the marks of some domains, which are adjacent, and that of its
// job: one table of both would overlap the domains of all other steps, and each
// Progress would read it.
func kindOf(key string) string {
	if codec.Table(key[0]) == codec.MarkTable {
		kind, _, _ := strings.Cut(key, "/")
		return kind
	}
	return key[:1]
}

// lanes yields the entries of some levels or hours of one table. The keys and values of
// neighbours lie all over the step, so some at a time are brought together: what the cache
// misses is then read at once, and not one after the other.
func (st *step) lanes(numbers []uint64) iter.Seq2[[]byte, []byte] {
	const atOnce = 32
	return func(yield func(key, value []byte) bool) {
		var buf []byte
		for _, n := range numbers {
			var number [8]byte
			binary.BigEndian.PutUint64(number[:], n)
			prefix := lanePrefix(codec.Table(number[0]))
			for some := range slices.Chunk(st.entries[n].changes, atOnce) {
				buf = buf[:0]
				for _, c := range some {
					buf = append(append(append(buf, number[:prefix]...), st.key(c)...), st.valueOf(c)...)
				}
				rest := buf
				for _, c := range some {
					size := prefix + int(c.klen)
					key, value := rest[:size:size], []byte(nil)
					if rest = rest[size:]; c.vlen != deleted {
						value, rest = rest[:c.vlen:c.vlen], rest[c.vlen:]
					}
					if !yield(key, value) {
						return
					}
				}
			}
		}
	}
}

// isBulk reports whether a file will be a table of the engine.
func isBulk(name string) bool { return strings.HasPrefix(filepath.Base(name), bulkPrefix) }
