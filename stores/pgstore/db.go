package pgstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/segment"
)

var (
	// ErrNotStore says that the schema of a crawl holds tables of something else.
	ErrNotStore = errors.New("pgstore: not a crawl")
	// ErrNoCrawl says that a crawl that must exist does not.
	ErrNoCrawl = errors.New("pgstore: no such crawl")
	// ErrVersion says that a crawl has a schema that this version of the package can
	// neither use nor migrate.
	ErrVersion = errors.New("pgstore: unknown schema version")
	// ErrLocked says that another process has the crawl open for writing.
	ErrLocked = errors.New("pgstore: the crawl is open in another process")
	// ErrFenced says that this DB can no longer change the crawl: it gave no sign of life for
	// some seconds, and another process has opened the crawl.
	ErrFenced = fmt.Errorf("pgstore: taken over by another process: %w", crawldb.ErrFenced)
	// ErrDivided says that a crawl is divided among groups, and is opened by [OpenGroups] only.
	ErrDivided = errors.New("pgstore: the crawl is divided among groups")
	// ErrReadOnly says that a change was attempted on a store opened with
	// Options.ReadOnly.
	ErrReadOnly = errors.New("pgstore: store is read-only")
)

// DefaultCrawl is the name of a crawl whose connection string names none.
const DefaultCrawl = "recrawl"

// DB is a crawl in a PostgreSQL database: a crawl db, a host db, a link db and a store of
// segments.
//
// It may be used from many goroutines at once.
type DB struct {
	name      string // of the crawl and its schema
	place     string // for messages: host, database and crawl, without the password
	readOnly  bool
	mustExist bool
	patience  time.Duration
	log       *slog.Logger

	pool *pgxpool.Pool
	// opening is the number of this opening of the crawl. Every change checks that the
	// crawl has not been opened again.
	opening   int64
	leaseTime time.Duration
	signs     sync.WaitGroup     // of keepLease
	endSigns  context.CancelFunc // nil without a lease

	once     sync.Once
	crawl    crawlStore
	hosts    hostStore
	links    linkStore
	segments segmentStore
}

var validName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// Open opens a crawl and makes it if there is none. The connection string is a URL or a list
// of keywords and values as libpq has them; in addition, crawl names the crawl, which is a
// schema of the database, and pool_max_conns bounds the connections (default 8):
//
//	postgres://user@db.example/web?crawl=news
//
// One DB at a time has a crawl open for writing; for a second one, the error is ErrLocked. A
// process that was killed is waited for, for about five seconds.
func Open(ctx context.Context, dsn string, o Options) (*DB, error) {
	db, err := open(ctx, dsn, o, migrations())
	if err != nil {
		return nil, fmt.Errorf("pgstore: open: %w", err)
	}
	return db, nil
}

func open(ctx context.Context, dsn string, o Options, steps []migration) (_ *DB, err error) {
	config, name, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	db := newDB(config, name, o)
	defer func() {
		if err != nil {
			db.release()
		}
	}()
	if err := db.connect(ctx, config, steps); err != nil {
		return nil, err
	}
	db.makeStores()
	if divided, err := db.isDivided(ctx); err != nil || divided {
		if divided {
			err = fmt.Errorf("%s: %w", db.place, ErrDivided)
		}
		return nil, err
	}
	if db.readOnly {
		return db, nil
	}
	if err := db.own(ctx); err != nil {
		return nil, err
	}
	return db, db.hosts.recover(ctx)
}

// own makes this DB the one that may change the crawl, until it is closed.
func (db *DB) own(ctx context.Context) error {
	if err := db.acquire(ctx); err != nil {
		return fmt.Errorf("%s: %w", db.place, err)
	}
	signs, end := context.WithCancel(context.Background())
	db.endSigns = end
	db.signs.Go(func() { db.keepLease(signs) })
	return nil
}

// newDB returns a DB that is not connected.
func newDB(config *pgxpool.Config, name string, o Options) *DB {
	db := &DB{name: name, readOnly: o.ReadOnly, mustExist: o.MustExist, patience: o.Patience, log: o.Logger}
	if db.leaseTime = o.leaseTime; db.leaseTime == 0 {
		db.leaseTime = leaseTime
	}
	db.place = fmt.Sprintf("%s:%d/%s, crawl %s", config.ConnConfig.Host, config.ConnConfig.Port, config.ConnConfig.Database, name)
	if db.patience == 0 {
		db.patience = time.Minute
	}
	if db.log == nil {
		db.log = slog.New(slog.DiscardHandler)
	}
	db.log = db.log.With("crawl", db.place)
	return db
}

// connect makes the pool of connections, and brings the schema to the present version.
func (db *DB) connect(ctx context.Context, config *pgxpool.Config, steps []migration) (err error) {
	if db.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err
	}
	return db.migrate(ctx, steps)
}

func (db *DB) makeStores() {
	db.crawl = crawlStore{view: newView(db, crawldb.ErrClosed), turn: make(chan struct{}, 1)}
	db.hosts = hostStore{view: newView(db, hostdb.ErrClosed), details: &detailCache{}}
	db.links = linkStore{view: newView(db, linkdb.ErrClosed), turn: make(chan struct{}, 1)}
	db.segments = segmentStore{view: newView(db, segment.ErrClosed), writers: map[partName]*blockWriter{}, removing: map[string]bool{}, sound: map[int64]int{}}
}

// isDivided reports whether the crawl is divided among groups.
func (db *DB) isDivided(ctx context.Context) (divided bool, err error) {
	version, _, err := db.version(ctx)
	if err != nil || version < 2 { // opened read-only before it was migrated
		return false, err
	}
	err = db.retry(ctx, func(ctx context.Context) error {
		return db.pool.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM group_table)`).Scan(&divided)
	})
	return divided, err
}

// parse makes a configuration of a pool from a connection string, and returns the name of the
// crawl.
func parse(dsn string) (*pgxpool.Config, string, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, "", err // without the password
	}
	params := config.ConnConfig.RuntimeParams
	name := params["crawl"]
	delete(params, "crawl")
	if name == "" {
		name = DefaultCrawl
	}
	if !validName.MatchString(name) {
		return nil, "", fmt.Errorf("the name %q of a crawl is not a lower-case letter followed by up to 62 letters, digits and underscores", name)
	}
	params["search_path"] = pgx.Identifier{name}.Sanitize()
	// All statements find their rows by an index. The number of elements of an array, or
	// statistics of a table that was just filled, would lead a planner to read whole tables.
	params["plan_cache_mode"] = "force_generic_plan"
	if params["application_name"] == "" {
		params["application_name"] = "recrawl"
	}
	if !maxConnsNamed.MatchString(dsn) {
		config.MaxConns = 8
	}
	config.MaxConns = max(config.MaxConns, 2) // an UpdateAll, and its sequence that reads a mark
	return config, name, nil
}

var maxConnsNamed = regexp.MustCompile(`\bpool_max_conns\b`)

// fence makes sure that the crawl has not been opened again, and that it will not be before the
// end of the transaction.
func (db *DB) fence(ctx context.Context, tx pgx.Tx) error {
	var opening int64
	err := tx.QueryRow(ctx, `SELECT opening FROM crawl_group WHERE id = 0 FOR SHARE`).Scan(&opening)
	if err == nil && opening != db.opening {
		err = ErrFenced
	}
	return err
}

// Name returns the name of the crawl, which is that of its schema.
func (db *DB) Name() string { return db.name }

// Crawl returns the crawl db. Closing it closes only the crawl db.
func (db *DB) Crawl() crawldb.Store { return &db.crawl }

// Hosts returns the host db. Closing it closes only the host db.
func (db *DB) Hosts() hostdb.Store { return &db.hosts }

// Links returns the link db. Closing it closes only the link db.
func (db *DB) Links() linkdb.Store { return &db.links }

// Segments returns the store of segments.
func (db *DB) Segments() segment.Store { return &db.segments }

// Close ends the use of everything that is still open, and waits for the calls that are
// running. A second Close does nothing.
func (db *DB) Close() error {
	var err error
	db.once.Do(func() {
		err = errors.Join(db.crawl.Close(), db.links.Close(), db.hosts.Close())
		db.segments.end()
		if db.endSigns != nil {
			err = errors.Join(err, db.releaseLease())
		}
		db.release()
	})
	return err
}

// release frees what open has acquired so far.
func (db *DB) release() {
	db.stopSigns()
	if db.pool != nil {
		db.pool.Close()
	}
}

// stopSigns ends the signs of life.
func (db *DB) stopSigns() {
	if db.endSigns != nil {
		db.endSigns()
		db.signs.Wait()
		db.endSigns = nil
	}
}

// A view is one of the stores that a DB offers.
type view struct {
	db        *DB
	errClosed error
	open      context.Context // done once the view is closed
	end       context.CancelFunc
}

func newView(db *DB, errClosed error) view {
	v := view{db: db, errClosed: errClosed}
	v.open, v.end = context.WithCancel(context.Background())
	return v
}

// ready returns why a call cannot begin or go on, nil if it can.
func (v *view) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if v.open.Err() != nil {
		return v.errClosed
	}
	return nil
}

// read calls f with a context that ends when the view is closed, and again while the server
// cannot be reached. f must not assume that earlier calls of it have failed.
func (v *view) read(ctx context.Context, f func(context.Context) error) error {
	if err := v.ready(ctx); err != nil {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(v.open, cancel)()
	if err := v.db.retry(inner, f); err != nil {
		if stopped := v.ready(ctx); stopped != nil {
			return stopped
		}
		return err
	}
	return nil
}

// readyToChange is ready for changes.
func (v *view) readyToChange(ctx context.Context) error {
	err := v.ready(ctx)
	if err == nil && v.db.readOnly {
		err = ErrReadOnly
	}
	return err
}

// write is read for changes.
func (v *view) write(ctx context.Context, f func(context.Context) error) error {
	if err := v.readyToChange(ctx); err != nil {
		return err
	}
	return v.read(ctx, f)
}

// take waits for the turn of a change. The turn ends when turn is received from.
func (v *view) take(ctx context.Context, turn chan<- struct{}) error {
	if err := v.readyToChange(ctx); err != nil {
		return err
	}
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-v.open.Done():
		return v.errClosed
	}
}

// damaged returns the error of a row that makes no sense.
func (db *DB) damaged(table, url string, err error) error {
	return &crawldb.CorruptError{File: "table " + table + " of " + db.place, Offset: -1, URL: url, Err: err}
}
