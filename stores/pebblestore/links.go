package pebblestore

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"runtime"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/linkdb"
)

var _ linkdb.Store = (*linkStore)(nil)

// linkStore is the link db. Merges take turns.
type linkStore struct {
	db   *DB
	view view
	turn chan struct{}
	// least is the constant linkLeast, except in tests.
	least int
}

// linkLeast is how many bytes of URLs and anchors make a table: see UpdateAll. Less is
// written as a batch.
const linkLeast = 1 << 20

func (s *linkStore) Get(ctx context.Context, url string) ([]linkdb.Inlink, error) {
	links, err := s.get(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("pebblestore: inlinks of %q: %w", url, err)
	}
	return links, nil
}

func (s *linkStore) get(ctx context.Context, url string) ([]linkdb.Inlink, error) {
	if err := s.db.enter(ctx, &s.view); err != nil {
		return nil, err
	}
	defer s.db.leave()
	value, err := get(s.db.db, linkTable.key(crawldb.Key(url)))
	if err := s.db.outcome("link db", err); err != nil || value == nil {
		return nil, err
	}
	return s.decode(url, value)
}

func (s *linkStore) decode(url string, value []byte) ([]linkdb.Inlink, error) {
	links, err := decodeInlinks(url, value)
	if err != nil {
		return nil, s.db.damaged("the inlinks of", url, err)
	}
	return links, nil
}

func (s *linkStore) Scan(ctx context.Context, r crawldb.Range) iter.Seq2[linkdb.Entry, error] {
	return func(yield func(linkdb.Entry, error) bool) {
		for r, err := range s.db.scan(ctx, &s.view, linkTable, 0, r.From, r.To) {
			var e linkdb.Entry
			if err == nil {
				e.URL = crawldb.URLOf(r.key)
				e.Inlinks, err = s.decode(e.URL, r.value)
			}
			if err != nil {
				yield(linkdb.Entry{}, fmt.Errorf("pebblestore: scan of links: %w", err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (s *linkStore) Merge(ctx context.Context, entries []linkdb.Entry, limit int) error {
	if err := s.merge(ctx, entries, limit); err != nil {
		return fmt.Errorf("pebblestore: merge: %w", err)
	}
	return nil
}

func (s *linkStore) merge(ctx context.Context, entries []linkdb.Entry, limit int) error {
	if err := s.db.take(ctx, &s.view, s.turn); err != nil {
		return err
	}
	defer s.db.give(s.turn)
	if len(entries) == 0 {
		return nil
	}
	rows := linkRows{s: s, ctx: ctx, entries: entries, limit: limit}
	if sizeOfEntries(entries, s.least) < s.least {
		return s.mergeFew(&rows)
	}
	if !rows.next() {
		return rows.err
	}
	// The rows are encoded while the table is written, so a Merge takes no memory for them.
	table := func(yield func(key, value []byte) bool) {
		for more := true; more && yield(rows.key, rows.value); more = rows.next() {
		}
	}
	return s.db.ingest(ctx, &s.view, tables{of: "links-", size: lookEvery, rows: []iter.Seq2[[]byte, []byte]{table}, err: &rows.err})
}

// sizeOfEntries returns how many bytes the texts of entries have, or some number that is
// at least enough.
func sizeOfEntries(entries []linkdb.Entry, enough int) (size int) {
	for _, e := range entries {
		if size += len(e.URL) + sizeOf(e.Inlinks); size >= enough {
			break
		}
	}
	return size
}

// mergeFew writes a batch.
func (s *linkStore) mergeFew(rows *linkRows) error {
	batch := s.db.db.NewBatch()
	defer batch.Close()
	for rows.next() {
		if err := batch.Merge(rows.key, rows.value, nil); err != nil {
			return err
		}
	}
	if rows.err != nil || batch.Empty() {
		return rows.err
	}
	if err := s.db.commit(rows.ctx, &s.view, batch, pebble.NoSync); err != nil {
		return err
	}
	defer s.db.space.hurry(rows.ctx)()
	return s.db.syncInside()
}

// linkRows are the rows of a Merge.
type linkRows struct {
	s       *linkStore
	ctx     context.Context
	entries []linkdb.Entry
	limit   int
	n       int // entries that were passed
	keys    crawldb.Keys
	body    []byte
	// The current row, the key of the one before, and the reason why there are no more.
	key, value, last []byte
	err              error
}

// next encodes the next row, if there is one.
func (r *linkRows) next() bool {
	for r.n < len(r.entries) {
		if r.n%checkEvery == 0 {
			if r.err = r.s.db.goingOn(r.ctx, &r.s.view); r.err != nil {
				return false
			}
		}
		if r.n%touched == 0 {
			touch(r.entries[r.n:min(r.n+touched, len(r.entries))])
		}
		e := &r.entries[r.n]
		r.n++
		r.key, r.last = r.keys.AppendKey(append(r.last[:0], byte(linkTable)), e.URL), r.key
		if bytes.Compare(r.last, r.key) >= 0 {
			r.err = fmt.Errorf("%q after %q: %w", e.URL, r.entries[r.n-2].URL, linkdb.ErrOrder)
			return false
		}
		if len(e.Inlinks) == 0 {
			// It only limits the existing links, if any.
			stored, err := get(r.s.db.db, r.key)
			if r.err = r.s.db.outcome("link db", err); r.err != nil {
				return false
			}
			if stored == nil {
				continue
			}
		}
		// Who reads them puts them in order if they are not.
		links := e.Inlinks
		if r.limit > 0 && len(links) > r.limit {
			links = linkdb.Union(nil, links, r.limit)
		}
		run := runOf(r.body, e.URL, links, r.limit)
		if run.count < len(links) {
			// Which links there is no room for must not depend on how they are given.
			run = runOf(run.body, e.URL, linkdb.Union(nil, links, 0), r.limit)
		}
		r.body = run.body
		r.value = appendRun(append(r.value[:0], linkVersion), run)
		return true
	}
	return false
}

// touched is how many entries are touched at a time.
const touched = 16

// touch reads from the pages that link to those of some entries. They are scattered in
// memory, and fetching many pieces takes hardly longer than fetching one.
func touch(entries []linkdb.Entry) {
	var sum byte
	for _, e := range entries {
		for _, l := range e.Inlinks[:min(len(e.Inlinks), touched)] {
			if n := len(l.From); n > 0 {
				sum += l.From[0] + l.From[n-1]
			}
		}
	}
	runtime.KeepAlive(sum)
}

func (s *linkStore) Close() error { return s.db.closeView(&s.view) }
