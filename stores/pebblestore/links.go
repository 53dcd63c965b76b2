package pebblestore

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

var _ linkdb.Store = (*linkStore)(nil)

// linkStore is the link db. Merges take turns.
type linkStore struct {
	db   *DB
	view view
	turn chan struct{}
	// leastTable is the constant linkLeast, and mostLayers is that of its name, except in tests.
	leastTable, mostLayers int

	layers        atomic.Pointer[[]codec.Layer] // nil until they are first needed
	listing       sync.Mutex                    // while layers changes
	joining       chan struct{}                 // held while layers are joined
	remainders    []codec.Layer                 // of layers that were joined; joining must be held
	hasRemainders atomic.Bool                   // there are remainders
	joinAgainAt   int                           // after a join has failed, how many closed layers to wait for
	onList        func()                        // called in tests before layers are read
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
	value, err := s.value(crawldb.Key(url))
	if err != nil || value == nil {
		return nil, err
	}
	return s.decode(url, value)
}

func (s *linkStore) decode(url string, value []byte) ([]linkdb.Inlink, error) {
	links, err := codec.DecodeInlinks(url, value)
	if err != nil {
		return nil, s.db.damaged("the inlinks of", url, err)
	}
	return links, nil
}

func (s *linkStore) Scan(ctx context.Context, r crawldb.Range) iter.Seq2[linkdb.Entry, error] {
	return func(yield func(linkdb.Entry, error) bool) {
		in := s.read(ctx, r.From, r.To)
		for page, value, ok := in.next(); ok; page, value, ok = in.next() {
			var e linkdb.Entry
			if in.err = ctx.Err(); in.err == nil {
				e.URL = crawldb.URLOf(string(page))
				e.Inlinks, in.err = s.decode(e.URL, value)
			}
			if in.err != nil {
				break
			}
			if !yield(e, nil) {
				return
			}
		}
		if in.err != nil {
			yield(linkdb.Entry{}, fmt.Errorf("pebblestore: scan of links: %w", in.err))
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
	if sizeOfEntries(entries, s.leastTable) < s.leastTable {
		list, err := s.currentLayers()
		if err != nil {
			return err
		}
		rows.layer = (*list)[len(*list)-1]
		return s.mergeAsBatch(&rows)
	}
	l, began, fresh, err := s.layerFor(crawldb.Key(entries[0].URL))
	if err != nil {
		return err
	}
	rows.layer = l
	if !rows.next() {
		return rows.err
	}
	if began || s.hasRemainders.Load() {
		defer s.joinInBackground(ctx)
	}
	// The rows are encoded while the table is written, so a Merge takes no memory for them.
	table := func(yield func(key, value []byte) bool) {
		for more := true; more && yield(rows.key, rows.value); more = rows.next() {
		}
	}
	t := tables{store: "links-", size: lookEvery, filtered: filtered(l), fresh: fresh, err: &rows.err}
	t.rows = func(yield func(iter.Seq2[[]byte, []byte]) bool) { yield(table) }
	return s.db.ingest(ctx, &s.view, t)
}

// sizeOfEntries returns how many bytes the texts of entries have, or some number that is
// at least enough.
func sizeOfEntries(entries []linkdb.Entry, enough int) (size int) {
	for _, e := range entries {
		if size += len(e.URL) + codec.TextSize(e.Inlinks); size >= enough {
			break
		}
	}
	return size
}

// mergeAsBatch writes rows as a batch of the engine.
func (s *linkStore) mergeAsBatch(rows *linkRows) error {
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
	defer s.db.space.Hurry(rows.ctx)()
	return s.db.syncInside()
}

// linkRows are the rows of a Merge.
type linkRows struct {
	s       *linkStore
	ctx     context.Context
	entries []linkdb.Entry
	limit   int
	layer   codec.Layer
	n       int // entries that were passed
	keys    crawldb.Keys
	encoder codec.LinkEncoder
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
		if r.n%touchGroup == 0 {
			touch(r.entries[r.n:min(r.n+touchGroup, len(r.entries))])
		}
		e := &r.entries[r.n]
		r.n++
		r.key, r.last = r.keys.AppendKey(r.layer.AppendKey(r.last[:0], ""), e.URL), r.key
		if bytes.Compare(r.last, r.key) >= 0 {
			r.err = fmt.Errorf("%q after %q: %w", e.URL, r.entries[r.n-2].URL, linkdb.ErrOrder)
			return false
		}
		if len(e.Inlinks) == 0 {
			// It only limits the existing links, if any.
			_, page, _ := codec.SplitLinkKey(r.key)
			stored, err := r.s.value(string(page))
			if r.err = err; err != nil {
				return false
			}
			if stored == nil {
				continue
			}
		}
		// A read puts them in order if they are not.
		links := e.Inlinks
		if r.limit > 0 && len(links) > r.limit {
			links = linkdb.Union(nil, links, r.limit)
		}
		r.value = r.encoder.Encode(e.URL, links, r.limit)
		return true
	}
	return false
}

// touchGroup is how many entries are touched at a time.
const touchGroup = 16

// touch reads from the pages that link to those of some entries. They are scattered in
// memory, and fetching many pieces takes hardly longer than fetching one.
func touch(entries []linkdb.Entry) {
	var sum byte
	for _, e := range entries {
		for _, l := range e.Inlinks[:min(len(e.Inlinks), touchGroup)] {
			if n := len(l.From); n > 0 {
				sum += l.From[0] + l.From[n-1]
			}
		}
	}
	runtime.KeepAlive(sum)
}

func (s *linkStore) Close() error { return s.db.closeView(&s.view) }
