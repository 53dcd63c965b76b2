package pebblestore

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/dueindex"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

var _ crawldb.DueStore = (*crawlStore)(nil)

// crawlStore is the crawl db.
//
// Updates take turns, whatever their URLs: one mutex is all the isolation there
// is. An update is limited by what it reads and writes, which two at a time
// would hardly do faster; reads run beside it.
type crawlStore struct {
	db   *DB
	view view
	turn chan struct{}
	// index has the records by when they are due.
	index *dueindex.Index
	// leasing says that there is, or was, a lease: it is set before one is written.
	leasing atomic.Bool
	// These are the constants of the same names, except in tests.
	bulkStep, bulkLeast, farKeys int
	farBytes                     uint64
}

// checkEvery is the number of records after which a long call checks whether it
// should end.
const checkEvery = 256

func (s *crawlStore) Get(ctx context.Context, url string) (crawldb.Datum, error) {
	d, err := s.get(ctx, url)
	if err != nil {
		return crawldb.Datum{}, fmt.Errorf("pebblestore: get %q: %w", url, err)
	}
	return d, nil
}

func (s *crawlStore) get(ctx context.Context, url string) (crawldb.Datum, error) {
	if err := s.db.enter(ctx, &s.view); err != nil {
		return crawldb.Datum{}, err
	}
	defer s.db.leave()
	key := crawldb.Key(url)
	value, err := rows.Get(s.db.db, codec.CrawlTable.Key(key))
	var lease []byte
	if err == nil && s.leasing.Load() { // checked after the record was read, so it applies to it
		value, lease, err = s.getBoth(key)
	}
	if err := s.db.outcome("crawl db", err); err != nil {
		return crawldb.Datum{}, err
	}
	if value == nil {
		return crawldb.Datum{}, crawldb.ErrNotFound
	}
	var d crawldb.Datum
	err = s.decode(&d, new(crawldb.Keys), []byte(key), value, lease)
	return d, err
}

// getBoth returns record and lease from one snapshot: that of an iterator, see
// [hostStore.load].
func (s *crawlStore) getBoth(key string) (value, lease []byte, err error) {
	it, err := s.db.db.NewIter(nil)
	if err != nil {
		return nil, nil, err
	}
	defer it.Close()
	at := rows.NewCursor(it)
	if value, err = at.Find(codec.CrawlTable.Key(key)); err != nil || value == nil {
		return nil, nil, err
	}
	value = bytes.Clone(value)
	lease, err = at.Find(codec.LeaseTable.Key(key))
	return value, bytes.Clone(lease), err
}

func (s *crawlStore) Scan(ctx context.Context, r crawldb.Range) iter.Seq2[crawldb.Datum, error] {
	return func(yield func(crawldb.Datum, error) bool) {
		if err := s.scan(ctx, r, yield); err != nil {
			yield(crawldb.Datum{}, fmt.Errorf("pebblestore: scan: %w", err))
		}
	}
}

func (s *crawlStore) scan(ctx context.Context, r crawldb.Range, yield func(crawldb.Datum, error) bool) error {
	var keys crawldb.Keys
	var d crawldb.Datum
	for p, err := range s.db.pages(ctx, &s.view, codec.CrawlTable, codec.LeaseTable, r.From, r.To) {
		if err != nil {
			return err
		}
		for i := range p.Len() {
			if err := ctx.Err(); err != nil {
				return err
			}
			key, value, lease := p.Row(i)
			if err := s.decode(&d, &keys, key, value, lease); err != nil {
				return err
			}
			if !yield(d, nil) {
				return nil
			}
		}
	}
	return nil
}

func (s *crawlStore) Update(ctx context.Context, b crawldb.Batch) error {
	if err := s.update(ctx, b); err != nil {
		return fmt.Errorf("pebblestore: update: %w", err)
	}
	return nil
}

func (s *crawlStore) update(ctx context.Context, b crawldb.Batch) error {
	if err := s.db.take(ctx, &s.view, s.turn); err != nil {
		return err
	}
	defer s.db.give(s.turn)

	batch := s.db.db.NewBatch()
	defer batch.Close()
	index := s.index.Update()
	if err := s.collect(ctx, b, batch, index); err != nil {
		return err
	}
	if batch.Empty() {
		return nil
	}
	if err := index.End(batch); err != nil {
		return err
	}
	err := s.db.commit(ctx, &s.view, batch, pebble.NoSync)
	index.Done(err)
	return err
}

// collect writes the changes of a batch to to.
func (s *crawlStore) collect(ctx context.Context, b crawldb.Batch, to dueindex.Writer, index *dueindex.Update) error {
	if err := s.walk(ctx, b, to, index); err != nil {
		return err
	}
	if b.Marks != nil {
		for name, value := range b.Marks() {
			if err := setMark(to, name, value); err != nil {
				return err
			}
		}
	}
	return s.db.goingOn(ctx, &s.view)
}

func setMark(batch dueindex.Writer, name, value string) error {
	key := codec.MarkTable.Key(name)
	if value == "" {
		return batch.Delete(key, nil)
	}
	return batch.Set(key, []byte(value), nil)
}

// walk visits the records of b with one iterator and writes the changes to them
// and to their index entries to batch. It discovers on the way whether the URLs
// are in order: if not, nothing of the batch is applied.
func (s *crawlStore) walk(ctx context.Context, b crawldb.Batch, batch dueindex.Writer, index *dueindex.Update) error {
	if len(b.URLs) == 0 {
		return nil
	}
	if b.Next == nil {
		return fmt.Errorf("the batch has URLs but no Next")
	}
	if b.Tokens != nil && len(b.Tokens) != len(b.URLs) {
		return fmt.Errorf("the batch has %d URLs and %d tokens", len(b.URLs), len(b.Tokens))
	}
	lower := crawldb.AppendKey([]byte{byte(codec.CrawlTable)}, b.URLs[0])
	upper := crawldb.AppendKey([]byte{byte(codec.CrawlTable)}, b.URLs[len(b.URLs)-1])
	if bytes.Compare(lower, upper) > 0 {
		return outOfOrder(b.URLs, len(b.URLs)-1)
	}
	it, err := s.db.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: append(bytes.Clone(upper), 0)})
	if err != nil {
		return s.db.outcome("crawl db", err)
	}
	defer it.Close()
	w := walker{s: s, batch: batch, index: index, at: rows.NewCursor(it)}
	w.at.Last = upper
	if w.at.FarReader, err = s.farReader(lower, upper, len(b.URLs)); err != nil {
		return err
	}
	if w.leases, err = leasesBeside(it); err != nil {
		return s.db.outcome("crawl db", err)
	}
	defer w.leases.Close()
	w.leases.Seek = len(b.URLs) < s.farKeys
	var last []byte
	for i, url := range b.URLs {
		if i%checkEvery == 0 {
			if err := s.db.goingOn(ctx, &s.view); err != nil {
				return err
			}
		}
		w.key, last = w.keys.AppendKey(append(last[:0], byte(codec.CrawlTable)), url), w.key
		if bytes.Compare(last, w.key) >= 0 {
			return outOfOrder(b.URLs, i)
		}
		token := ""
		if b.Tokens != nil {
			token = b.Tokens[i]
		}
		if err := w.find(url, token); err != nil {
			return err
		}
		d, err := b.Next(i, w.old)
		if err == nil && d != w.old {
			err = w.write(d)
		}
		if err != nil {
			return fmt.Errorf("%q: %w", url, err)
		}
		if batch.Len() > maxBatch {
			return fmt.Errorf("a batch that changes more than %d bytes is too large", maxBatch)
		}
	}
	return nil
}

// walker is a walk at one of its records.
type walker struct {
	s      *crawlStore
	batch  dueindex.Writer
	index  *dueindex.Update
	at     rows.Cursor
	leases rows.Joined
	keys   crawldb.Keys

	key          []byte          // of the record, with that of its table
	old          *crawldb.Datum  // nil if there is none
	indexed      dueindex.Record // what the index has of it, before Next saw the record
	stored, held []byte          // record and lease as they are encoded
	fromToken    bool            // a token described the record: it has no lease, and stored is nil

	enc, lease []byte // space for the new ones
}

// find reads the record that has the key, or takes it from its token.
func (w *walker) find(url, token string) error {
	s := w.s
	w.old, w.stored, w.held, w.fromToken = nil, nil, nil, false
	if token != "" {
		if d, ok := s.index.RecordOfToken(token, url); ok {
			w.old, w.fromToken = &d, true
		}
	}
	if !w.fromToken {
		var err error
		if w.stored, err = w.at.Find(w.key); err != nil {
			return s.db.outcome("crawl db", err)
		}
		if w.stored == nil {
			return nil
		}
		if w.held, err = w.leases.Find(w.key); err != nil {
			return s.db.outcome("crawl db", err)
		}
		w.old = new(crawldb.Datum)
		if err := s.decode(w.old, &w.keys, w.key[1:], w.stored, w.held); err != nil {
			return err
		}
	}
	w.indexed = dueindex.RecordOf(w.old)
	return nil
}

// write writes what has changed of the record that becomes d, of its lease and of its
// entry in the index.
func (w *walker) write(d *crawldb.Datum) error {
	var from, to *dueindex.Record
	if w.old != nil {
		from = &w.indexed
	}
	same := false // apart from the lease
	w.lease = w.lease[:0]
	if d == nil {
		if err := w.batch.Delete(w.key, nil); err != nil {
			return err
		}
	} else {
		w.lease = codec.AppendLease(w.lease, d)
		if same = w.fromToken && codec.EqualRecords(w.old, d); !same {
			var err error
			if w.enc, err = codec.AppendRecord(w.enc[:0], d); err != nil {
				return err
			}
			same = bytes.Equal(w.enc, w.stored)
		}
		if !same {
			if err := w.batch.Set(w.key, w.enc, nil); err != nil {
				return err
			}
		}
		is := dueindex.RecordOf(d)
		to = &is
	}
	if !bytes.Equal(w.lease, w.held) {
		if err := w.s.putLease(w.batch, w.key, w.lease); err != nil {
			return err
		}
	}
	if same {
		return nil
	}
	return w.index.Change(w.batch, w.key[1:], from, to)
}

const (
	// farBytes is how many bytes of tables lie between keys that are far apart: in half
	// of the blocks there is none.
	farBytes = blockSize / 2
	// farKeys is the number of keys from which checking that is worthwhile.
	farKeys = 1000
)

// farReader returns the reader for keys that lie far apart when walking n keys from lower
// to upper, nil if the iterator is as good. No other call changes records during the
// walk.
func (s *crawlStore) farReader(lower, upper []byte, n int) (pebble.Reader, error) {
	if n < s.farKeys {
		return nil, nil
	}
	size, err := s.db.db.EstimateDiskUsage(lower, upper)
	if err != nil || size/uint64(n) < s.farBytes {
		return nil, s.db.outcome("crawl db", err)
	}
	return s.db.db, nil
}

func outOfOrder(urls []string, i int) error {
	return fmt.Errorf("%q after %q: %w", urls[i], urls[i-1], crawldb.ErrOrder)
}

func (s *crawlStore) Sync(ctx context.Context) error { return s.db.sync(ctx, &s.view) }

func (s *crawlStore) Mark(ctx context.Context, job string) (string, error) {
	if err := s.db.enter(ctx, &s.view); err != nil {
		return "", fmt.Errorf("pebblestore: progress of %q: %w", job, err)
	}
	defer s.db.leave()
	cursor, err := rows.Get(s.db.db, codec.MarkTable.Key(job))
	return string(cursor), s.db.outcome("progress", err)
}

// Marks implements [crawldb.MarkStore].
func (s *crawlStore) Marks(ctx context.Context) iter.Seq2[crawldb.NamedMark, error] {
	return func(yield func(crawldb.NamedMark, error) bool) {
		for r, err := range s.db.scan(ctx, &s.view, codec.MarkTable, 0, "", "") {
			if err != nil {
				yield(crawldb.NamedMark{}, fmt.Errorf("pebblestore: marks: %w", err))
				return
			}
			if !yield(crawldb.NamedMark{Name: r.key, Value: string(r.value)}, nil) {
				return
			}
		}
	}
}

func (s *crawlStore) Close() error { return s.db.closeView(&s.view) }
