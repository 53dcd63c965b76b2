package pebblestore

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"runtime"
	"sync"

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
	// steps has the memory of finished merges: an Invert makes many.
	steps sync.Pool
}

const (
	// mergeStep is about how many bytes a Merge writes at a time. A Merge need
	// not be atomic, so its memory need not depend on its size.
	mergeStep = 16 << 20
	// linkLeast is how many bytes make a table: see UpdateAll. Less is written
	// as a batch.
	linkLeast = 512 << 10
)

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
	var keys crawldb.Keys
	var key, last []byte
	for i := range entries {
		key, last = keys.AppendKey(last[:0], entries[i].URL), key
		if i > 0 && bytes.Compare(last, key) >= 0 {
			return fmt.Errorf("%q after %q: %w", entries[i].URL, entries[i-1].URL, linkdb.ErrOrder)
		}
	}
	if err := s.db.take(ctx, &s.view, s.turn); err != nil {
		return err
	}
	defer s.db.give(s.turn)
	if len(entries) == 0 {
		return nil
	}
	st, _ := s.steps.Get().(*step)
	if st == nil {
		st = &step{of: "links-"}
	}
	defer func() {
		st.reset()
		s.steps.Put(st)
	}()
	durable := false
	for len(entries) > 0 {
		n, err := s.mergeSome(ctx, st, entries, limit)
		if err != nil {
			return err
		}
		entries = entries[n:]
		if st.empty() {
			continue
		}
		// If tables are durable, so are earlier commits.
		if durable, err = s.db.writeStep(ctx, &s.view, st, s.least); err != nil {
			return err
		}
		st.reset()
	}
	if durable {
		return nil
	}
	defer s.db.space.hurry(ctx)()
	return s.db.syncInside()
}

// mergeSome adds the first entries to a step, and returns how many.
func (s *linkStore) mergeSome(ctx context.Context, st *step, entries []linkdb.Entry, limit int) (n int, err error) {
	var keys crawldb.Keys
	var key, enc, body []byte
	for n < len(entries) && st.size() < mergeStep {
		e := entries[n]
		if n%checkEvery == 0 {
			if err := s.db.goingOn(ctx, &s.view); err != nil {
				return 0, err
			}
		}
		if n%touched == 0 {
			touch(entries[n:min(n+touched, len(entries))])
		}
		n++
		key = keys.AppendKey(append(key[:0], byte(linkTable)), e.URL)
		if len(e.Inlinks) == 0 {
			// It only limits the existing links, if any.
			if stored, err := get(s.db.db, key); err != nil || stored == nil {
				if err := s.db.outcome("link db", err); err != nil {
					return 0, err
				}
				continue
			}
		}
		// Who reads them puts them in order if they are not.
		links := e.Inlinks
		if limit > 0 && len(links) > limit {
			links = linkdb.Union(nil, links, limit)
		}
		run := runOf(body, e.URL, links, limit)
		if run.count < len(links) {
			// Which links there is no room for must not depend on how they are given.
			run = runOf(body, e.URL, linkdb.Union(nil, links, 0), limit)
		}
		body = run.body
		enc = appendRun(append(enc[:0], linkVersion), run)
		if err := st.Set(key, enc, nil); err != nil {
			return 0, fmt.Errorf("%q: %w", e.URL, err)
		}
	}
	return n, nil
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
