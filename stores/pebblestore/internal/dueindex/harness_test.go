package dueindex

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/changeset"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// testStore is a crawl db of records, leases and the index, on a file system in memory. Its
// writes are batches of the engine.
type testStore struct {
	*Index
	disk     *vfs.MemFS
	readOnly bool
	lock     sync.Mutex
	limits   Limits
}

var errTestDamage = errors.New("damaged")

func (s *testStore) Enter(ctx context.Context) error { return ctx.Err() }
func (s *testStore) Leave()                          {}
func (s *testStore) Lock(ctx context.Context) error {
	s.lock.Lock()
	return nil
}
func (s *testStore) Unlock()                            { s.lock.Unlock() }
func (s *testStore) Continue(ctx context.Context) error { return ctx.Err() }
func (s *testStore) HasLeases()                         {}
func (s *testStore) MovedMuch(context.Context)          {}
func (s *testStore) IsDamaged(err error) bool           { return errors.Is(err, errTestDamage) }

func (s *testStore) EngineError(err error) error {
	if pebble.IsCorruptionError(err) {
		return fmt.Errorf("%w: %w", errTestDamage, err)
	}
	return err
}

func (s *testStore) Damaged(what, name string, err error) error {
	return fmt.Errorf("%w: %s %q: %w", errTestDamage, what, name, err)
}

func (s *testStore) Commit(_ context.Context, b *pebble.Batch) error {
	if s.readOnly {
		return errors.New("read-only")
	}
	return b.Commit(pebble.NoSync)
}

func (s *testStore) Write(ctx context.Context, c *changeset.Changes, leastTables int) (bool, error) {
	batch := s.db.NewBatch()
	for _, table := range c.Tables(1) {
		for key, value := range table {
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
				return false, err
			}
		}
	}
	if c.Cleared.Start != nil {
		if err := batch.DeleteRange(c.Cleared.Start, c.Cleared.End, nil); err != nil {
			return false, err
		}
	}
	return c.Len() >= leastTables, s.Commit(ctx, batch)
}

func (s *testStore) FarReader(_, _ []byte, n int) (pebble.Reader, error) {
	if n > 20 {
		return s.db, nil
	}
	return nil, nil
}

func engineOptions(disk vfs.FS, readOnly bool) *pebble.Options {
	var sums codec.TallySums
	return &pebble.Options{
		FS: disk, ReadOnly: readOnly, FormatMajorVersion: pebble.FormatNewest, Logger: quiet{},
		Merger: &pebble.Merger{Name: pebble.DefaultMerger.Name, Merge: func(_, value []byte) (pebble.ValueMerger, error) {
			m := sums.Get()
			return m, m.MergeNewer(value)
		}},
	}
}

type quiet struct{}

func (quiet) Infof(string, ...any)      {}
func (quiet) Errorf(string, ...any)     {}
func (quiet) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

// newStore opens an empty store with small limits.
func newStore(t *testing.T) *testStore {
	t.Helper()
	s := &testStore{disk: vfs.NewCrashableMem(), limits: DefaultLimits(32<<10, 4<<10)}
	s.open(t)
	t.Cleanup(func() {
		if s.db != nil {
			s.close(t)
		}
	})
	return s
}

func (s *testStore) open(t *testing.T) {
	t.Helper()
	db, err := pebble.Open("db", engineOptions(s.disk, s.readOnly))
	if err != nil {
		t.Fatal(err)
	}
	if s.Index, err = Open(db, s, s.limits, rand.Uint64(), s.readOnly, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
}

func (s *testStore) close(t *testing.T) {
	t.Helper()
	if err := s.db.Close(); err != nil {
		t.Fatal(err)
	}
	s.db = nil
}

// reopen closes the store and opens it again.
func (s *testStore) reopen(t *testing.T) {
	t.Helper()
	s.close(t)
	s.open(t)
}

// crash loses what was not synced.
func (s *testStore) crash(t *testing.T) {
	t.Helper()
	left := s.disk.CrashClone(vfs.CrashCloneCfg{})
	s.close(t)
	s.disk = left
	s.open(t)
}

func (s *testStore) sync(t *testing.T) {
	t.Helper()
	if err := s.db.LogData(nil, pebble.Sync); err != nil {
		t.Fatal(err)
	}
}

// check fails if the index is not that of the records.
func (s *testStore) check(t *testing.T) {
	t.Helper()
	if err := s.checkError(t); err != nil {
		t.Fatal(err)
	}
}

// checkError returns the first difference between index and records.
func (s *testStore) checkError(t *testing.T) (first error) {
	t.Helper()
	it, err := s.db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	if err := s.Check(t.Context(), rows.NewSnapshot(it), func(err error) {
		if first == nil {
			first = err
		}
	}); err != nil {
		t.Fatal(err)
	}
	return first
}

// update applies a batch, as a batch of the engine or as a step of a large update.
func (s *testStore) update(t *testing.T, b crawldb.Batch, large bool) {
	t.Helper()
	if err := s.apply(t.Context(), b, large); err != nil {
		t.Fatal(err)
	}
}

func (s *testStore) tryUpdate(ctx context.Context, b crawldb.Batch) error {
	return s.apply(ctx, b, false)
}

func (s *testStore) apply(ctx context.Context, b crawldb.Batch, large bool) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	batch := s.db.NewBatch()
	defer batch.Close()
	var step changeset.Changes
	var w Writer = batch
	if large {
		w = &step
	}
	u := s.Update()
	for i, url := range b.URLs {
		token := ""
		if b.Tokens != nil {
			token = b.Tokens[i]
		}
		if err := s.updateOne(w, u, url, token, func(old *crawldb.Datum) (*crawldb.Datum, error) { return b.Next(i, old) }); err != nil {
			return err
		}
	}
	err := u.End(w)
	if err == nil && large {
		_, err = s.Write(ctx, &step, 0)
	} else if err == nil {
		err = s.Commit(ctx, batch)
	}
	u.Done(err)
	return err
}

func (s *testStore) updateOne(w Writer, u *Update, url, token string, next func(*crawldb.Datum) (*crawldb.Datum, error)) error {
	var old *crawldb.Datum
	var from, to *Record
	if d, ok := s.RecordOfToken(token, url); ok {
		old = &d
	} else if d, err := s.get(url); err == nil {
		old = &d
	} else if err != crawldb.ErrNotFound {
		return err
	}
	if old != nil {
		r := RecordOf(old)
		from = &r
	}
	d, err := next(old)
	if err != nil || d == old {
		return err
	}
	key := crawldb.Key(url)
	if d == nil {
		if err := errors.Join(w.Delete(codec.CrawlTable.Key(key), nil), w.Delete(codec.LeaseTable.Key(key), nil)); err != nil {
			return err
		}
		return u.Change(w, []byte(key), from, nil)
	}
	enc, err := codec.AppendRecord(nil, d)
	if err != nil {
		return err
	}
	if err := w.Set(codec.CrawlTable.Key(key), enc, nil); err != nil {
		return err
	}
	if lease := codec.AppendLease(nil, d); len(lease) > 0 {
		err = w.Set(codec.LeaseTable.Key(key), lease, nil)
	} else {
		err = w.Delete(codec.LeaseTable.Key(key), nil)
	}
	r := RecordOf(d)
	to = &r
	return errors.Join(err, u.Change(w, []byte(key), from, to))
}

// get reads a record with its lease.
func (s *testStore) get(url string) (d crawldb.Datum, err error) {
	key := crawldb.Key(url)
	value, err := rows.Get(s.db, codec.CrawlTable.Key(key))
	if err != nil {
		return d, s.EngineError(err)
	}
	if value == nil {
		return d, crawldb.ErrNotFound
	}
	lease, err := rows.Get(s.db, codec.LeaseTable.Key(key))
	if err != nil {
		return d, s.EngineError(err)
	}
	var keys crawldb.Keys
	return d, s.decode(&d, &keys, []byte(key), value, lease)
}

// put changes one record.
func (s *testStore) put(t *testing.T, url string, next func(*crawldb.Datum) *crawldb.Datum) {
	t.Helper()
	s.update(t, crawldb.Batch{URLs: []string{url}, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) { return next(old), nil }}, false)
}

// putDue writes records that are due at their times; each has a higher priority than the one before.
func (s *testStore) putDue(t *testing.T, n int, at func(i int) time.Time) []string {
	t.Helper()
	urls := make([]string, n)
	for i := range urls {
		urls[i] = fmt.Sprintf("http://h%03d.example/%06d", i/100, i)
	}
	s.update(t, crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
		return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: at(i), Score: float32(i), Priority: float32(i)}, nil
	}}, false)
	return urls
}

// due returns the candidates of a query.
func (s *testStore) due(t *testing.T, q crawldb.DueQuery) (all []crawldb.Candidate) {
	t.Helper()
	for c, err := range s.Due(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// scan yields all records, for [crawldb.DueByScan].
type scanned struct {
	crawldb.Store
	s *testStore
}

func (d scanned) Scan(ctx context.Context, _ crawldb.Range) iter.Seq2[crawldb.Datum, error] {
	return func(yield func(crawldb.Datum, error) bool) {
		err := d.s.rows(ctx, d.s.db, codec.CrawlTable, func(key, _ []byte) error {
			r, err := d.s.get(crawldb.URLOf(string(key[1:])))
			if err == nil && !yield(r, nil) {
				err = errStepFull
			}
			return err
		})
		if err != nil && err != errStepFull {
			yield(crawldb.Datum{}, err)
		}
	}
}

// size counts the rows of a table.
func (s *testStore) size(t *testing.T, table codec.Table) (n int) {
	t.Helper()
	if err := s.rows(t.Context(), s.db, table, func(_, _ []byte) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}
