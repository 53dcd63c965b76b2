package pebblestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/failfs"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/logcheck"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/sstables"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/storedir"
)

const (
	// A selection or an update of a large crawl db reads a block for every
	// record or two, so it pays for everything else in the block. Half of this
	// size is hardly cheaper, and takes a twentieth more disk.
	blockSize = 8 << 10
	// The engine stops writers, without asking, when this many memtables wait
	// to be flushed or level 0 is this deep. That must never happen, since such
	// a wait ends neither with a context nor on a failure: makeRoom stops
	// writers before.
	engineMemTables = 64
	engineSublevels = 1 << 20
	maxMemTables    = 4
	maxSublevels    = 12
	// During an UpdateAll this many may be stacked, and compacting them takes until after
	// its end.
	heldSublevels = 32
	// Tables stay in level 0 until four of them are stacked, and the level below it
	// holds this much before anything moves on. An update passes over the whole key
	// space and changes a part of it everywhere, so its cost is how often the last
	// level is rewritten: if it is small, once for four updates. The price is that
	// reads look into one more table than with two tables and one more level.
	compactL0 = 8 // half of which is the number of tables
	baseBytes = 256 << 20
	// Or until there are this many tables, each of which may be a sublevel.
	compactTables = 128
	// A third level begins when the last is this many times as large as the one before
	// it may be, which is from 6 GiB on. The engine's own ratio of 10 begins it at 2.6 GiB,
	// with a tenth of that: less than a large update writes, all of which is then written
	// once more on its way.
	levelRatio = 25
	// The manifest grows with every table that is made or removed, and is started anew
	// when it is this long and has more changes than there are tables.
	manifestBytes = 256 << 10
	// lookEvery is how many bytes are committed between two checks of these.
	lookEvery = 1 << 20
	// maxBatch is the most that one atomic step may write; the engine's own
	// limit, of 4 GiB, is a panic.
	maxBatch = 1 << 30
	// slowDisk is how long an operation of the file system must take to be
	// reported.
	slowDisk = 5 * time.Second
)

func (d *DB) openEngine(o Options, fresh bool) (err error) {
	cacheSize, memSize := o.CacheSize, o.MemTableSize
	if memSize == 0 {
		memSize = defaultMemTableSize
	}
	if cacheSize == 0 {
		cacheSize = defaultCacheSize
	}
	memSize = min(max(memSize, minMemTableSize), 1<<30)
	cacheSize = max(cacheSize, minCacheSize)
	d.memSize = uint64(memSize)

	path := filepath.Join(d.dir, databaseName)
	under := d.under
	if o.fs == nil && o.Logger != nil {
		under, d.fsCloser = vfs.WithDiskHealthChecks(under, slowDisk, nil, func(i vfs.DiskSlowInfo) {
			d.log.Warn("pebblestore: the disk is slow", "dir", d.dir, "op", i.OpType.String(), "file", i.Path, "elapsed", i.Duration)
		})
		d.under = under
	}
	d.path = path
	if err := logcheck.Unseal(d.dir, under, path, o.ReadOnly); err != nil {
		return err
	}
	if o.ReadOnly {
		under = storedir.ReadOnlyFS{FS: under}
	}
	torn := func(file string, at, size int64) {
		d.log.Warn("pebblestore: the end of a file is cut off: a crash left it incomplete", "file", file, "offset", at, "bytes", size)
	}
	if err := logcheck.CheckFiles(under, path, torn); err != nil {
		return err
	}
	if missing, err := logcheck.MissingLogs(under, path); len(missing) > 0 {
		return missing[0]
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	names := &logcheck.ManifestNames{FS: under, IsFull: failfs.IsFull}
	d.fs = failfs.NewFailStop(d.space.FS(under), failfs.Hooks{
		OnFail: func(err error) {
			d.log.Error("pebblestore: the store has failed and must be reopened", "dir", d.dir, "error", err)
		},
		BeforeCreate: names.Begin,
		AfterSync:    names.Synced,
		Gather:       isBulk,
	})

	cache := pebble.NewCache(cacheSize)
	defer cache.Unref()
	po := &pebble.Options{
		FS:                          stagedFS{d.fs, under, filepath.Join(d.dir, stagingName)},
		Cache:                       cache,
		MemTableSize:                d.memSize,
		MemTableStopWritesThreshold: engineMemTables,
		L0StopWritesThreshold:       engineSublevels,
		L0CompactionThreshold:       compactL0,
		L0CompactionFileThreshold:   compactTables,
		LBaseMaxBytes:               baseBytes,
		MaxManifestFileSize:         cmp.Or(o.manifest, manifestBytes),
		FormatMajorVersion:          sstables.EngineFormat,
		ErrorIfNotExists:            !fresh,
		ReadOnly:                    o.ReadOnly,
		Logger:                      engineLog{d},
		EventListener:               d.listener(),
		Merger:                      merger(),
		CompactionConcurrencyRange: func() (int, int) {
			return 1, min(max(runtime.GOMAXPROCS(0)/2, 1), 4)
		},
	}
	// The tables of UpdateAll overlap no memtable. If they did, the engine would note
	// them in a log of its own, from which it cannot always recover.
	po.Experimental.DisableIngestAsFlushable = func() bool { return true }
	// The engine would compact what is read often, at random. Reads look into few tables
	// anyway, and an update leaves its tables where they are to be compacted once for four.
	po.Experimental.ReadSamplingMultiplier = -1
	po.Experimental.SpanPolicyFunc = d.oneKind
	po.Experimental.LevelMultiplier = levelRatio
	// What a large update leaves in level 0 is compacted with the last level at once, if
	// that rewrites no more than twice as much: the level between would be filled and
	// emptied again. What small updates leave goes to the level between.
	po.Experimental.MultiLevelCompactionHeuristic = pebble.WriteAmpHeuristic{AddPropensity: 1, AllowL0: true}
	// Opening the engine ends with the removal of obsolete files, and waits for that
	// until no compaction runs; but the engine tries to start one as soon as the log is
	// flushed. So none may start before Open ends.
	d.pacer.hold(true)
	po.Experimental.CompactionScheduler = &d.pacer
	for i := range po.Levels {
		po.Levels[i].BlockSize = blockSize
		profile := sstable.MinLZCompression
		if i < len(po.Levels)-1 {
			po.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		} else {
			po.Levels[i].FilterPolicy = pebble.NoFilterPolicy // nil means that of the level above
			if o.Compression == Small {
				profile = sstable.ZstdCompression
			}
		}
		po.Levels[i].Compression = func() *sstable.CompressionProfile { return profile }
	}
	if !fresh && !o.ReadOnly {
		d.sweepBulk()
	}
	d.options = po.Clone()
	d.options.EnsureDefaults()
	d.db, err = sstables.OpenEngine(path, po)
	d.fs.Opened()
	if err != nil {
		d.pacer.Unregister() // which the engine may have left to be done
	}
	if cause := d.fs.Failure(); cause != nil {
		return cause
	}
	if err != nil && (!fromSystem(err) || errors.Is(err, fs.ErrNotExist)) {
		c := d.corrupt(err, codec.AllTables)
		if name := badOptions(under, path, po); name != "" && c.Offset < 0 {
			c.File = name
		} else if names, _ := under.List(path); errors.Is(err, fs.ErrNotExist) && c.File == path && logcheck.CurrentManifest(names) != "" {
			// A manifest that was cut off where a record ends reads as an older one.
			c.File = under.PathJoin(path, logcheck.CurrentManifest(names))
			c.Err = fmt.Errorf("it names tables that are not there, or has lost its end: %w", c.Err)
		}
		return fmt.Errorf("%w: %w", ErrDamaged, c)
	}
	return err
}

// oneKind ends a file of the engine, which begins with a key, where rows of another table
// begin, behind ingested tables. These are of one table each, but a file that lies across
// two ties all that overlaps it together: a compaction of one table takes the other along,
// though nothing of it has changed. What fills memtables lies across all tables anyway, and
// is as many files fewer if they are not cut.
//
// Files with layers of the link db are always of one layer each: the tables of another would
// overlap them, and linklayers.Find relies on it.
func (d *DB) oneKind(first []byte) (policy pebble.SpanPolicy, end []byte, err error) {
	switch {
	case len(first) == 0:
	case codec.IsLinkKey(first) && d.hasLayers.Load():
		l, _, _ := codec.SplitLinkKey(first)
		end = l.End()
	case first[0] < 0xff && d.batched.Load() < int64(d.memSize/2):
		end = []byte{first[0] + 1}
	case first[0] < byte(codec.LayerTable) && d.hasLayers.Load():
		end = []byte{byte(codec.LayerTable)}
	}
	return policy, end, nil
}

// badOptions returns the file in which the engine keeps its options, if it is
// unreadable: the engine does not name it.
func badOptions(under vfs.FS, path string, po *pebble.Options) string {
	names, err := under.List(path)
	if err != nil {
		return ""
	}
	last := ""
	for _, name := range names {
		if strings.HasPrefix(name, "OPTIONS-") {
			last = max(last, name)
		}
	}
	if last == "" {
		return ""
	}
	name := under.PathJoin(path, last)
	f, err := under.Open(name)
	if err != nil {
		return name
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err == nil {
		o := po.Clone()
		o.EnsureDefaults()
		err = o.CheckCompatibility(path, string(text))
	}
	if err != nil {
		return name
	}
	return ""
}

// fromSystem distinguishes failures of the file system from files that the
// engine cannot read.
func fromSystem(err error) bool {
	var path *fs.PathError
	var link *os.LinkError
	var number syscall.Errno
	return errors.As(err, &path) || errors.As(err, &link) || errors.As(err, &number) || errors.Is(err, ErrReadOnly)
}

// engineLog receives the engine's log messages.
type engineLog struct{ d *DB }

func (l engineLog) Infof(format string, args ...any) {
	if l.d.log.Enabled(context.Background(), slog.LevelDebug) {
		l.d.log.Debug("pebble: "+fmt.Sprintf(format, args...), "dir", l.d.dir)
	}
}

func (l engineLog) Errorf(format string, args ...any) {
	l.d.log.Error("pebble: "+fmt.Sprintf(format, args...), "dir", l.d.dir)
}

// Fatalf is called where the engine sees no way to continue. It ends the use of
// the disk (see [failfs.FailStop]) and returns: what the engine does then, with possibly
// wrong bookkeeping, stays in memory and is never acknowledged. Ending the
// goroutine instead would leave its mutexes locked, and some of these
// goroutines belong to our callers.
func (l engineLog) Fatalf(format string, args ...any) {
	err := fatalError{text: "pebble: " + fmt.Sprintf(format, args...)}
	for _, a := range args {
		if cause, ok := a.(error); ok {
			err.cause = cause
		}
	}
	l.d.fs.Fail(err)
}

// fatalError is the message passed to Fatalf.
type fatalError struct {
	text  string
	cause error
}

func (e fatalError) Error() string { return e.text }
func (e fatalError) Unwrap() error { return e.cause }

func (d *DB) listener() *pebble.EventListener {
	l := &pebble.EventListener{
		BackgroundError: func(err error) {
			if d.fs.Failure() == nil && !errors.Is(err, pebble.ErrClosed) {
				d.log.Error("pebblestore: background work failed", "dir", d.dir, "error", err)
			}
			d.pacer.rest()
			d.trouble.tell(err)
		},
		CompactionEnd: func(i pebble.CompactionInfo) {
			if i.Err == nil {
				d.pacer.succeeded()
			}
		},
		// Reading the place returns an error anyway; the default is Fatalf.
		DataCorruption: func(i pebble.DataCorruptionInfo) {
			d.log.Error("pebblestore: damage found", "dir", d.dir, "file", i.Path, "error", i.Details)
		},
		WALCreated: func(made pebble.WALCreateInfo) {
			if made.Err != nil || d.fs.Failure() != nil {
				return
			}
			if err := logcheck.NameLogs(d.fs, d.path); err != nil {
				d.fs.Fail(err)
			}
		},
		LowDiskSpace: func(i pebble.LowDiskSpaceInfo) {
			d.log.Warn("pebblestore: the disk is nearly full", "dir", d.dir, "free", i.AvailBytes)
		},
	}
	l.EnsureDefaults(engineLog{d})
	return l
}

// makeRoom waits while the engine is behind with its background work. Level 0 may be
// deep without that: the engine counts how many tables are stacked above one key, and
// tables each of which overlaps the next are one sublevel each.
func (d *DB) makeRoom(ctx context.Context, v *view, size int) error {
	if d.written.Add(int64(size)) < lookEvery {
		return nil
	}
	d.written.Store(0)
	for {
		m := d.db.Metrics()
		deep := int32(maxSublevels)
		if d.owed.Load() {
			deep += heldSublevels
			if m.Levels[0].Sublevels < maxSublevels {
				d.owed.Store(false)
			}
		}
		if m.MemTable.Size < maxMemTables*d.memSize && (m.Levels[0].Sublevels < deep || m.Compact.NumInProgress == 0) {
			return nil
		}
		if d.fs.Failure() != nil {
			return d.failed()
		}
		again := time.NewTimer(10 * time.Millisecond)
		select {
		case <-again.C:
		case <-ctx.Done():
		case <-d.closing:
		}
		again.Stop()
		if err := d.goingOn(ctx, v); err != nil {
			return err
		}
	}
}

// goingOn returns the reason why a long call should end early; nil if there is none.
func (d *DB) goingOn(ctx context.Context, v *view) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-d.closing:
		return v.errClosed
	default:
		return nil
	}
}

// commit applies a batch. If an error means that the store has failed, the
// batch may or may not be applied when the store is opened again; after any
// other error it is not.
func (d *DB) commit(ctx context.Context, v *view, b *pebble.Batch, o *pebble.WriteOptions) error {
	if b.Len() > maxBatch {
		return fmt.Errorf("pebblestore: one step of %d bytes is too large", b.Len())
	}
	if d.readOnly {
		return ErrReadOnly
	}
	if err := d.space.Wait(ctx, v.errClosed); err != nil {
		return err
	}
	if err := d.makeRoom(ctx, v, b.Len()); err != nil {
		return err
	}
	if err := d.changes.enter(ctx, d.closing, v.errClosed); err != nil {
		return err
	}
	defer d.changes.leave()
	d.dirty.Store(true)
	defer d.space.Hurry(ctx)()
	d.batched.Add(int64(b.Len()))
	defer d.unflushed.Store(true) // once it is in a memtable
	return d.outcome("write", b.Commit(o))
}

// flush writes out what is in memory, so that the next opening does not need
// the log. It ends early if the store fails.
func (d *DB) flush() error {
	done, err := d.db.AsyncFlush()
	if err != nil {
		return err
	}
	select {
	case <-done:
	case <-d.fs.Down():
	}
	return nil
}

// sync makes earlier commits durable.
func (d *DB) sync(ctx context.Context, v *view) error {
	if err := d.enter(ctx, v); err != nil {
		return err
	}
	defer d.leave()
	defer d.space.Hurry(ctx)()
	return d.syncInside()
}

// syncInside is sync for a caller that has entered. It syncs an empty record at
// the end of the log, and with it all that precedes it.
func (d *DB) syncInside() error {
	if d.readOnly {
		return nil
	}
	return d.outcome("sync", d.db.LogData(nil, pebble.Sync))
}

// closeView closes a view; the first call syncs.
func (d *DB) closeView(v *view) error {
	if v.closed.Swap(true) {
		return nil
	}
	d.use.RLock()
	defer d.use.RUnlock()
	if d.closed {
		return nil
	}
	if d.fs.Failure() != nil {
		return d.failed()
	}
	return d.syncInside()
}
