package pebblestore

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/changeset"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/dueindex"
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
		s.index.Cut(ctx)
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
	step  changeset.Changes
	index *dueindex.Update
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
	behind := len(batch.URLs) == 0 || b.step.Empty() || crawldb.Compare(b.last, batch.URLs[0]) < 0
	if b.step.Len() >= b.s.bulkStep || !behind {
		if err := b.apply(ctx); err != nil {
			return err
		}
	}
	if !b.turn {
		if err := b.s.db.take(ctx, &b.s.view, b.s.turn); err != nil {
			return err
		}
		b.turn, b.index = true, b.s.index.Update()
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
	if b.step.Empty() {
		return nil
	}
	if err := b.s.db.enter(ctx, &b.s.view); err != nil {
		return err
	}
	defer b.s.db.leave()
	if err := b.index.End(&b.step); err != nil {
		return err
	}
	b.s.db.holdBack()
	tables, err := b.s.db.writeStep(ctx, &b.s.view, &b.step, b.s.bulkLeast)
	if tables {
		b.tables++
	}
	b.index.Done(err)
	if err != nil {
		return err
	}
	b.step.Reset()
	return nil
}

// writeStep writes a step as tables, or as a batch if it has less than least bytes, and
// reports which it is.
func (d *DB) writeStep(ctx context.Context, v *view, st *changeset.Changes, least int) (asTables bool, err error) {
	if st.Len() < least {
		return false, d.commitStep(ctx, v, st)
	}
	t := tables{store: "crawl-", size: st.Len(), rows: slices.Values(st.Tables(fullTable))}
	if st.Cleared.Start != nil {
		t.cleared = []pebble.KeyRange{st.Cleared}
	}
	t.first, t.last = st.RecordKeys()
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

func (d *DB) commitStep(ctx context.Context, v *view, st *changeset.Changes) error {
	batch := d.db.NewBatch()
	defer batch.Close()
	for _, t := range st.Tables(1) {
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
	if st.Cleared.Start != nil {
		if err := batch.DeleteRange(st.Cleared.Start, st.Cleared.End, nil); err != nil {
			return err
		}
	}
	return d.commit(ctx, v, batch, pebble.NoSync)
}

// tables are what ingest writes.
type tables struct {
	store   string                              // the store that writes them, for the names of files
	size    int                                 // in bytes, about
	rows    iter.Seq[iter.Seq2[[]byte, []byte]] // or nil
	err     *error                              // why rows ended early
	cleared []pebble.KeyRange                   // what is deleted with them; they have nothing of it
	// filtered asks for filters of all tables, and not only of records that lie above others.
	filtered bool
	// aside says that a failure to write the tables is not one of the store, and a full disk
	// nothing to wait for: they are not the engine's yet, and no caller waits for them.
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
		name := d.under.PathJoin(d.path, fmt.Sprint(bulkPrefix, t.store, len(names)))
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

// isBulk reports whether a file will be a table of the engine.
func isBulk(name string) bool { return strings.HasPrefix(filepath.Base(name), bulkPrefix) }
