package memstore

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/linkdb"
)

var _ linkdb.Store = (*Links)(nil)

// Links is a [linkdb.Store].
type Links struct {
	pages guarded[[]linkdb.Inlink]
}

// Get implements [linkdb.Store].
func (s *Links) Get(ctx context.Context, url string) ([]linkdb.Inlink, error) {
	in, _, err := s.pages.get(ctx, crawldb.Key(url), linkdb.ErrClosed)
	if err != nil {
		return nil, failed("get inlinks of", url, err)
	}
	return slices.Clone(in), nil
}

// Scan implements [linkdb.Store].
func (s *Links) Scan(ctx context.Context, r crawldb.Range) iter.Seq2[linkdb.Entry, error] {
	return func(yield func(linkdb.Entry, error) bool) {
		for e, err := range s.pages.scan(ctx, r.From, r.To, linkdb.ErrClosed) {
			if err != nil {
				yield(linkdb.Entry{}, fmt.Errorf("memstore: scan inlinks: %w", err))
				return
			}
			if !yield(linkdb.Entry{URL: crawldb.URLOf(e.key), Inlinks: slices.Clone(e.val)}, nil) {
				return
			}
		}
	}
}

// Merge implements [linkdb.Store]. It is applied whole or not at all.
func (s *Links) Merge(ctx context.Context, entries []linkdb.Entry, limit int) error {
	if err := s.merge(ctx, entries, limit); err != nil {
		return fmt.Errorf("memstore: merge inlinks: %w", err)
	}
	return nil
}

func (s *Links) merge(ctx context.Context, entries []linkdb.Entry, limit int) error {
	keys := make([]string, len(entries))
	for i, e := range entries {
		keys[i] = crawldb.Key(e.URL)
		if i > 0 && keys[i] <= keys[i-1] {
			return fmt.Errorf("%q after %q: %w", e.URL, entries[i-1].URL, linkdb.ErrOrder)
		}
	}
	s.pages.writing.Lock()
	defer s.pages.writing.Unlock()
	if err := s.pages.ready(ctx, linkdb.ErrClosed); err != nil {
		return err
	}
	merged := make([][]linkdb.Inlink, len(entries))
	for i, e := range entries {
		had, _, err := s.pages.get(ctx, keys[i], linkdb.ErrClosed)
		if err != nil {
			return err
		}
		merged[i] = linkdb.Union(had, own(e.Inlinks), limit)
	}
	return s.pages.apply(linkdb.ErrClosed, func(t *table[[]linkdb.Inlink]) {
		for i, in := range merged {
			if len(in) > 0 {
				t.set(keys[i], in)
			}
		}
	})
}

// own copies links and their text, so that a few words of anchor do not keep in
// memory the page they were cut from.
func own(in []linkdb.Inlink) []linkdb.Inlink {
	out := make([]linkdb.Inlink, len(in))
	for i, l := range in {
		out[i] = linkdb.Inlink{From: strings.Clone(l.From), Anchor: strings.Clone(l.Anchor)}
	}
	return out
}

// Close implements [linkdb.Store].
func (s *Links) Close() error {
	s.pages.close()
	return nil
}
