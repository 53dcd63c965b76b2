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
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/dirstore"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/damage"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/failfs"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/logcheck"
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

// The smallest and the default sizes.
//
// Pebble takes the memory of its memtables, up to four of which wait to be
// flushed, from the block cache. With the defaults at least half of the cache
// is left for blocks; a cache as small as its memtables would decompress the
// same blocks over and over during an update.
const (
	defaultCacheSize    = 128 << 20
	defaultMemTableSize = 16 << 20
	minMemTableSize     = 64 << 10
	minCacheSize        = 1 << 20
	onceCache           = 8 << 20 // of who reads everything once, in order
)

// Options are the settings of a store. The zero value is good for a crawl db
// of up to some ten million URLs.
type Options struct {
	// CacheSize is the memory for blocks and memtables together, in bytes; zero
	// means 128 MiB. More makes updates of a large crawl db cheaper. Selecting
	// takes up to as much again for leases, 27 to 40 bytes each.
	CacheSize int64
	// MemTableSize is how much is collected in memory before it is written out
	// as a sorted table, in bytes; zero means 16 MiB. Keep it below an eighth
	// of CacheSize.
	MemTableSize int64
	// Compression is how tables are compressed. It may differ from one opening
	// to the next; tables are recompressed as they are rewritten.
	Compression Compression
	// Logger receives damage, failures, slow disks and, at debug level, what
	// the engine does. Nil discards all of it.
	Logger *slog.Logger
	// ReadOnly opens an existing store and changes no byte of it, not even
	// after a crash: the logs are read into memory. Several handles
	// may have a store open this way at once, while none has it open for
	// writing. Changes return an error that is ErrReadOnly, and so may a
	// selection of due records, which can need to write.
	ReadOnly bool

	// MinFree is how many bytes to leave free on the disk, for others and for
	// opening the store after a crash. With less, changes wait, those of segments
	// included, until half as much again is free; reads still work. A waiting call
	// ends when its context does, and all of them on Close. Zero means 64 MiB, or a
	// twentieth of the file system if that is less. Negative means none, and a write
	// for which there is no room fails: see [ErrFailed].
	MinFree int64
	// OnRoom, if not nil, is called when changes begin to wait for room on the
	// disk and when they resume. It is called by one goroutine at a time, and
	// must not use the store.
	OnRoom func(Room)

	// fs replaces the file system in tests, and segments the part of it below
	// the directory of the segments.
	fs       vfs.FS
	segments standIn
	// lag and manifest, if not zero, replace the constants in tests.
	lag      time.Duration
	manifest int64
	// opening, if not nil, is called when the engine is open and Open is about
	// to return.
	opening func(*pebble.DB)
}

// standIn makes the directory of the segments on a test file system.
type standIn interface {
	below(dir string) (dirstore.FS, error)
}

// Room says that changes begin to wait for room on the disk, or resume.
type Room struct {
	// Dir is the directory of the store.
	Dir string
	// Paused says that changes wait.
	Paused bool
	// Free is the free space on the disk, and Need what is required before
	// changes resume, in bytes.
	Free, Need int64
	// Err is the error of the system, if it has refused a write: syscall.ENOSPC
	// or syscall.EDQUOT. In that case a write is attempted about every second,
	// however much is free.
	Err error
}

// Compression says how tables are compressed.
type Compression uint8

const (
	// Fast compresses every level with MinLZ, which makes random reads cheap.
	Fast Compression = iota
	// Small compresses the last level, where nine tenths of the data end up,
	// with zstd: it takes about a quarter less disk than Fast, and a third more
	// time for each record that is selected or changed in a large crawl db.
	Small
)

// DB is a crawl db, a host db, a link db and a store of segments in one
// directory.
//
// It may be used from many goroutines at once.
type DB struct {
	dir      string
	log      *slog.Logger
	lock     io.Closer
	under    vfs.FS // below fs
	path     string // of the database in under
	fs       *failfs.FailStop
	fsCloser io.Closer
	db       *pebble.DB
	pacer    pacer
	trouble  trouble
	// owed says that an UpdateAll may have left more tables stacked up than
	// other writers may.
	owed    atomic.Bool
	memSize uint64
	// cacheSize is the size of the engine's cache.
	cacheSize int64
	readOnly  bool
	layered   atomic.Bool // there may be rows in LayerTable
	options   *pebble.Options
	ingests   sync.WaitGroup // of tables, and tidy; after a failure they wait for release
	tidying   sync.Mutex     // held by tidy until it is done
	tidyLeast uint64

	// use is held for reading by every call inside the engine, and for writing
	// by Close, so the engine is never closed under a call.
	use     sync.RWMutex
	closed  bool
	closing chan struct{} // closed when Close begins
	once    sync.Once
	dirty   atomic.Bool // something was committed

	// unflushed says that something was committed since the last writeOut;
	// writing is held by writeOut.
	unflushed atomic.Bool
	writing   sync.Mutex
	written   atomic.Int64 // bytes committed since makeRoom last looked
	// batched is how many bytes were committed in batches since the last tables were
	// ingested.
	batched atomic.Int64

	// Every change of the database and of segments passes changes. Those that open a part
	// of a segment for writing pass starts first. A Backup holds backing.
	changes, starts gate
	backing         chan struct{}

	space    *failfs.DiskSpace
	crawl    crawlStore
	hosts    hostStore
	links    linkStore
	segments *dirstore.Store
	waiting  segmentStore // segments, for callers
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
	d := &DB{dir: home.dir, under: home.fs, readOnly: o.ReadOnly, log: o.Logger, lock: home.lock, closing: make(chan struct{}), backing: make(chan struct{}, 1), tidyLeast: tidyLeast}
	d.layered.Store(!home.fresh) // until that is known
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
	d.crawl.leases = newLeaseSet(int(d.cacheSize / leaseBytes))
	d.crawl.changes.Store(rand.Uint64())
	if err := errors.Join(d.crawl.loadDue(), d.crawl.loadLeases()); err != nil {
		return nil, err
	}
	d.links = linkStore{db: d, view: view{errClosed: linkdb.ErrClosed}, turn: make(chan struct{}, 1), joining: make(chan struct{}, 1), least: linkLeast, most: mostLayers}
	some, err := d.has(codec.LayerTable)
	d.layered.Store(some || err != nil) // whoever reads them will say what is wrong
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
	told, ignore := d.trouble.listen()
	defer ignore()
	ctx, stop := d.whileOpen(ctx, &v, told)
	defer stop()
	d.pacer.hurry()
	joined := d.links.compact(ctx)
	err := joined
	if err == nil || failfs.IsFull(err) || errors.Is(err, ErrDamaged) { // the rest can be compacted
		err = cmp.Or(d.db.Compact(ctx, []byte{0}, []byte{0xff}, false), joined)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return d.outcome("compact", err)
}

// whileOpen returns a context that ends, too, when the store fails or is to be closed, or told
// tells of a failure.
func (d *DB) whileOpen(ctx context.Context, v *view, told <-chan error) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	done := make(chan struct{})
	watch.Go(func() {
		select {
		case err := <-told:
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

// trouble tells those who wait for background work of the engine that some has failed.
type trouble struct {
	mu        sync.Mutex
	listeners map[chan error]struct{}
}

// listen returns a channel for the next failure.
func (t *trouble) listen() (told <-chan error, ignore func()) {
	c := make(chan error, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.listeners == nil {
		t.listeners = map[chan error]struct{}{}
	}
	t.listeners[c] = struct{}{}
	return c, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.listeners, c)
	}
}

func (t *trouble) tell(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.listeners {
		select {
		case c <- err:
		default: // it has been told of another
		}
	}
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
		told := d.fs.Failure() != nil
		var err error
		if !told && d.dirty.Load() {
			err = d.flush()
		}
		d.fs.Release()
		d.ingests.Wait()
		err = errors.Join(err, closeEngine(d.db))
		if err == nil && d.fs.Failure() == nil && !d.readOnly {
			err = logcheck.Seal(d.dir, d.under, d.path)
		}
		switch failed := d.fs.Failure() != nil; {
		case told: // what a failed engine says about closing helps nobody
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
		errs = append(errs, d.under.RemoveAll(RunDir(d.dir)))
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
