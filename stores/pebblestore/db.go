package pebblestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/dirstore"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/damage"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/dueindex"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/failfs"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/logcheck"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/sstables"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/storedir"
)

var (
	// ErrLocked says that the directory is open, in this process or another.
	ErrLocked = storedir.ErrLocked
	// ErrNotStore says that a directory holds something other than a store.
	ErrNotStore = errors.New("pebblestore: not a store")
	// ErrVersion says that a store was written in a format this version of the
	// package does not know.
	ErrVersion = errors.New("pebblestore: unknown format version")
	// ErrDamaged says that what was read is not what was written. An error that is
	// ErrDamaged is also a *crawldb.CorruptError, which names the file, the offset
	// if there is one, and the URL if it is one record.
	ErrDamaged = damage.Err
	// ErrFailed says that a write failed and the store has stopped: it must be
	// closed and opened again. The error also wraps that of the file system.
	ErrFailed = errors.New("pebblestore: store has failed")
	// ErrReadOnly says that a change was attempted on a store opened with
	// Options.ReadOnly.
	ErrReadOnly = storedir.ErrReadOnly
)

// DB is a crawl db, a host db, a link db and a store of segments in one
// directory.
//
// It may be used from many goroutines at once.
type DB struct {
	dir      string
	log      *slog.Logger
	lock     io.Closer
	readOnly bool

	db        *pebble.DB
	options   *pebble.Options
	memSize   uint64      // of a memtable
	hasLayers atomic.Bool // there may be rows in LayerTable

	storage
	compactions
	life
	commits
	gates

	crawl    crawlStore
	hosts    hostStore
	links    linkStore
	segments *dirstore.Store
	waiting  segmentStore // segments, for callers
}

// storage is where a store lies, and the file systems on the way there.
type storage struct {
	under    vfs.FS // below fs
	path     string // of the database in under
	fs       *failfs.FailStop
	fsCloser io.Closer
	space    *failfs.DiskSpace
}

// compactions are the state of the engine's background work.
type compactions struct {
	pacer   pacer
	trouble trouble
	// owed says that an UpdateAll may have left more tables stacked up than
	// other writers may.
	owed      atomic.Bool
	ingests   sync.WaitGroup // of tables, and tidy; after a failure they wait for the release of fs
	tidying   sync.Mutex     // held by tidy until it is done
	tidyLeast uint64
}

// life says whether the store is open.
type life struct {
	// use is held for reading by every call inside the engine, and for writing
	// by Close, so the engine is never closed under a call.
	use     sync.RWMutex
	closed  bool
	closing chan struct{} // closed when Close begins
	once    sync.Once
}

// commits says what was committed.
type commits struct {
	dirty     atomic.Bool  // something was
	unflushed atomic.Bool  // something was since the last writeOut
	writing   sync.Mutex   // held by writeOut
	written   atomic.Int64 // bytes since makeRoom last looked
	batched   atomic.Int64 // bytes in batches since the last tables were ingested
}

// gates hold changes up during a Backup.
type gates struct {
	// Every change of the database and of segments passes changes. Those that open a part
	// of a segment for writing pass starts first.
	changes, starts gate
	backing         chan struct{} // held by a Backup
}

// Open opens the store in dir, which it makes if there is none; the parent
// directory must exist. If the directory is open already, here or in another
// process, the error wraps ErrLocked, unless both have Options.ReadOnly. It comes
// after a moment: a process that was killed holds the lock until the system has torn
// it down. If the directory holds something else, the error wraps ErrNotStore and the
// directory is left as it is.
//
// After a crash, Open recovers everything that was synced, without manual
// repair.
func Open(dir string, o Options) (*DB, error) {
	d, err := open(dir, o)
	if err != nil {
		return nil, fmt.Errorf("pebblestore: open %s: %w", dir, err)
	}
	return d, nil
}

func open(dir string, o Options) (*DB, error) {
	if o.CacheSize < 0 || o.MemTableSize < 0 || o.Compression > Small {
		return nil, errors.New("invalid options")
	}
	home, err := claim(dir, o.ReadOnly, o.fs)
	if err != nil {
		return nil, err
	}
	return openClaimed(home, o)
}

// openClaimed opens a store whose directory is locked, and keeps the lock until it is closed.
func openClaimed(home *home, o Options) (_ *DB, err error) {
	d := &DB{dir: home.dir, readOnly: o.ReadOnly, log: o.Logger, lock: home.lock}
	d.under, d.closing, d.backing, d.tidyLeast = home.fs, make(chan struct{}), make(chan struct{}, 1), tidyLeast
	d.hasLayers.Store(!home.fresh) // until that is known
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.release())
		}
	}()
	if d.segments, err = openSegments(home.file(segmentsName), o); err != nil {
		return nil, err
	}
	d.space = d.newSpace(o)
	d.waiting = segmentStore{d.segments, d}
	if err := d.openEngine(o, home.fresh); err != nil {
		return nil, err
	}
	if home.fresh {
		if err := home.confirm(); err != nil {
			return nil, err
		}
	}
	d.crawl = crawlStore{db: d, view: view{errClosed: crawldb.ErrClosed}, turn: make(chan struct{}, 1), bulkStep: min(bulkStep, 2*int(d.memSize)), bulkLeast: bulkLeast, farKeys: farKeys, farBytes: farBytes}
	if d.crawl.index, err = dueindex.Open(d.db, dueStore{&d.crawl}, dueindex.DefaultLimits(d.crawl.bulkStep, bulkLeast), rand.Uint64(), d.readOnly, d.log.With("dir", d.dir)); err != nil {
		return nil, err
	}
	if err := d.crawl.loadLeases(); err != nil {
		return nil, err
	}
	d.links = linkStore{db: d, view: view{errClosed: linkdb.ErrClosed}, turn: make(chan struct{}, 1), joining: make(chan struct{}, 1), leastTable: linkLeast, mostLayers: mostLayers}
	some, err := d.has(codec.LayerTable)
	d.hasLayers.Store(some || err != nil) // a read of them says what is wrong
	d.hosts = hostStore{db: d, view: view{errClosed: hostdb.ErrClosed}, turn: make(chan struct{}, 1), lag: cmp.Or(o.lag, lag)}
	if o.ReadOnly {
		return d, nil
	}
	if err := d.hosts.recover(); err != nil {
		return nil, err
	}
	d.space.Opened()
	if o.opening != nil {
		o.opening(d.db)
	}
	d.pacer.hold(false)
	return d, nil
}

func (d *DB) newSpace(o Options) *failfs.DiskSpace {
	return failfs.NewDiskSpace(failfs.SpaceOptions{FS: d.under, Dir: d.dir, MinFree: o.MinFree, Closing: d.closing, OnChange: func(s failfs.SpaceState) {
		if s.Paused {
			d.log.Warn("pebblestore: paused: the disk is full", "dir", d.dir, "free", s.Free, "need", s.Need, "error", s.Err)
		} else {
			d.log.Info("pebblestore: there is room on the disk again", "dir", d.dir, "free", s.Free)
		}
		if o.OnRoom != nil {
			o.OnRoom(Room{Dir: d.dir, Paused: s.Paused, Free: s.Free, Need: s.Need, Err: s.Err})
		}
	}})
}

func openSegments(dir string, o Options) (*dirstore.Store, error) {
	of := dirstore.Options{ReadOnly: o.ReadOnly}
	if !o.ReadOnly && o.segments != nil {
		var err error
		if of.FS, err = o.segments.below(dir); err != nil {
			return nil, err
		}
	}
	return dirstore.Open(dir, of)
}

// Crawl returns the crawl db. Closing it closes only the crawl db.
func (d *DB) Crawl() crawldb.Store { return &d.crawl }

// Hosts returns the host db. Closing it closes only the host db.
func (d *DB) Hosts() hostdb.Store { return &d.hosts }

// Links returns the link db. Closing it closes only the link db.
func (d *DB) Links() linkdb.Store { return &d.links }

// Segments returns the store of segments, which are files beside the database.
func (d *DB) Segments() segment.Store { return &d.waiting }

// Compact rewrites the tables of the database, to reclaim the space of what was
// deleted or replaced. It takes as long as writing the database anew, and is
// never required: the engine does the same bit by bit. After many scattered
// changes a database may be up to twice as large as after Compact. Meanwhile it takes as much
// more room as the link db; if there is none, the rest is done, and the error is syscall.ENOSPC.
func (d *DB) Compact(ctx context.Context) error {
	v := view{errClosed: crawldb.ErrClosed}
	if err := d.enter(ctx, &v); err != nil {
		return err
	}
	defer d.leave()
	// The work is done on other goroutines, and after a failure it does not end: the engine
	// does first what the shape of its levels asks for, and that again until it succeeds.
	failures, ignore := d.trouble.listen()
	defer ignore()
	ctx, stop := d.whileOpen(ctx, &v, failures)
	defer stop()
	d.pacer.hurry()
	joined := d.links.joinAll(ctx)
	err := joined
	if err == nil || failfs.IsFull(err) || errors.Is(err, ErrDamaged) { // the rest can be compacted
		err = cmp.Or(d.db.Compact(ctx, []byte{0}, []byte{0xff}, false), joined)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return d.outcome("compact", err)
}

// whileOpen returns a context that also ends when the store fails, when it is to be closed, or
// with an error that comes from failures.
func (d *DB) whileOpen(ctx context.Context, v *view, failures <-chan error) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	done := make(chan struct{})
	watch.Go(func() {
		select {
		case err := <-failures:
			cancel(err)
		case <-d.fs.Down():
			cancel(d.failed())
		case <-d.closing:
			cancel(v.errClosed)
		case <-done:
		}
	})
	return ctx, func() { close(done); watch.Wait(); cancel(nil) }
}

// Close syncs and closes everything that is still open, and waits for the
// calls that are running. A second Close does nothing. If the store has failed,
// Close returns why; it is closed anyway.
func (d *DB) Close() error {
	var err error
	d.once.Do(func() { err = d.close() })
	return err
}

func (d *DB) close() error {
	close(d.closing)
	err := errors.Join(d.crawl.Close(), d.links.Close(), d.hosts.Close())
	if err != nil && d.fs.Failure() != nil {
		err = d.failed() // once, not for each part
	}
	d.use.Lock()
	d.closed = true
	d.use.Unlock()
	return errors.Join(err, d.release())
}

// release releases whatever open has acquired so far.
func (d *DB) release() error {
	var errs []error
	if d.db != nil {
		failedBefore := d.fs.Failure() != nil
		var err error
		if !failedBefore && d.dirty.Load() {
			err = d.flush()
		}
		d.fs.Release()
		d.ingests.Wait()
		err = errors.Join(err, sstables.CloseEngine(d.db))
		if err == nil && d.fs.Failure() == nil && !d.readOnly {
			err = logcheck.Seal(d.dir, d.under, d.path)
		}
		switch failed := d.fs.Failure() != nil; {
		case failedBefore: // errors of closing a failed engine say nothing new
		case failed:
			errs = append(errs, d.failed())
		case err != nil:
			errs = append(errs, fmt.Errorf("pebblestore: close %s: %w", d.dir, err))
		}
		d.db = nil
	}
	if d.segments != nil {
		errs = append(errs, d.segments.Close())
	}
	if d.lock != nil && !d.readOnly && d.fs != nil && d.fs.Failure() == nil {
		errs = append(errs, removeRunDir(d.under, d.dir))
	}
	if d.fsCloser != nil {
		errs = append(errs, d.fsCloser.Close())
	}
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
	}
	return errors.Join(errs...)
}

// A view is one of the stores that a DB offers.
type view struct {
	closed    atomic.Bool
	errClosed error
}

// enter lets a call into the engine; if it returns nil, leave must follow. A
// call inside must not enter again.
func (d *DB) enter(ctx context.Context, v *view) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.use.RLock()
	if d.closed || v.closed.Load() {
		d.use.RUnlock()
		return v.errClosed
	}
	if d.fs.Failure() != nil {
		d.use.RUnlock()
		return d.failed()
	}
	return nil
}

func (d *DB) leave() { d.use.RUnlock() }

// take waits for a turn: the right to be the only writer of its kind.
func (d *DB) take(ctx context.Context, v *view, turn chan struct{}) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-d.closing:
		return v.errClosed
	}
	if err := d.enter(ctx, v); err != nil {
		<-turn
		return err
	}
	return nil
}

func (d *DB) give(turn chan struct{}) {
	d.leave()
	<-turn
}

// failed returns the error of a store that has failed.
func (d *DB) failed() error {
	return fmt.Errorf("%w: %s: %w", ErrFailed, d.dir, d.fs.Failure())
}

// outcome turns an error of the engine into what the call returns.
func (d *DB) outcome(what string, err error) error { return d.outcomeOf(what, err, codec.AllTables) }

// scanned is outcome for a scan of some tables.
func (d *DB) scanned(err error, some ...codec.Table) error {
	return d.outcomeOf("scan", err, string(some))
}

func (d *DB) outcomeOf(what string, err error, tables string) error {
	switch {
	case d.fs.Failure() != nil:
		return d.failed()
	case err == nil:
		return nil
	case pebble.IsCorruptionError(err):
		return fmt.Errorf("%w: %s: %w", ErrDamaged, what, d.corrupt(err, tables))
	case errors.Is(err, pebble.ErrReadOnly):
		err = ErrReadOnly
	}
	return fmt.Errorf("pebblestore: %s: %s: %w", d.dir, what, err)
}
