package crawls

import (
	"context"
	"iter"
	"sync"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/segment"
)

// cutter does something once, in the midst of one of the calls of some stores, or of
// what they call.
type cutter struct {
	mu   sync.Mutex
	left int
	cut  func()
}

// after makes the n-th step from now on the one that cuts.
func (c *cutter) after(n int, cut func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.cut = n, cut
}

func (c *cutter) step() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		c.cut()
	}
}

// stores returns stores whose steps are counted.
func (c *cutter) stores(s recrawl.Stores) recrawl.Stores {
	return recrawl.Stores{Crawl: cutCrawl{s.Crawl, c}, Hosts: cutHosts{s.Hosts, c}, Links: cutLinks{s.Links, c}, Segments: cutSegments{s.Segments, c}}
}

func cutSeq[T any](c *cutter, seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range seq {
			c.step()
			if !yield(v, err) {
				return
			}
		}
	}
}

type cutCrawl struct {
	crawldb.Store
	c *cutter
}

func (s cutCrawl) Unwrap() crawldb.Store { return s.Store }

func (s cutCrawl) Get(ctx context.Context, url string) (crawldb.Datum, error) {
	s.c.step()
	return s.Store.Get(ctx, url)
}

func (s cutCrawl) Scan(ctx context.Context, r crawldb.Range) iter.Seq2[crawldb.Datum, error] {
	return cutSeq(s.c, s.Store.Scan(ctx, r))
}

func (s cutCrawl) Update(ctx context.Context, b crawldb.Batch) error {
	s.c.step()
	defer s.c.step()
	return s.Store.Update(ctx, s.batch(b))
}

func (s cutCrawl) UpdateAll(ctx context.Context, batches iter.Seq2[crawldb.Batch, error]) error {
	s.c.step()
	defer s.c.step()
	return crawldb.UpdateAll(ctx, s.Store, func(yield func(crawldb.Batch, error) bool) {
		for b, err := range batches {
			s.c.step()
			if !yield(s.batch(b), err) {
				return
			}
		}
	})
}

func (s cutCrawl) batch(b crawldb.Batch) crawldb.Batch {
	if next := b.Next; next != nil {
		b.Next = func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
			s.c.step()
			return next(i, old)
		}
	}
	return b
}

func (s cutCrawl) Sync(ctx context.Context) error {
	s.c.step()
	return s.Store.Sync(ctx)
}

func (s cutCrawl) Mark(ctx context.Context, job string) (string, error) {
	s.c.step()
	return s.Store.Mark(ctx, job)
}

type cutHosts struct {
	hostdb.Store
	c *cutter
}

func (s cutHosts) Get(ctx context.Context, name string) (hostdb.Host, error) {
	s.c.step()
	return s.Store.Get(ctx, name)
}

func (s cutHosts) Update(ctx context.Context, name string, next func(*hostdb.Host) (*hostdb.Host, error)) error {
	s.c.step()
	defer s.c.step()
	return s.Store.Update(ctx, name, next)
}

type cutLinks struct {
	linkdb.Store
	c *cutter
}

func (s cutLinks) Merge(ctx context.Context, entries []linkdb.Entry, limit int) error {
	s.c.step()
	defer s.c.step()
	return s.Store.Merge(ctx, entries, limit)
}

type cutSegments struct {
	segment.Store
	c *cutter
}

func (s cutSegments) List(ctx context.Context) iter.Seq2[string, error] {
	return cutSeq(s.c, s.Store.List(ctx))
}

func (s cutSegments) Read(ctx context.Context, name, part string, from int) iter.Seq2[[]byte, error] {
	return cutSeq(s.c, s.Store.Read(ctx, name, part, from))
}

func (s cutSegments) Append(ctx context.Context, name, part string, keep int) (segment.BlockWriter, error) {
	s.c.step()
	w, err := s.Store.Append(ctx, name, part, keep)
	if err != nil {
		return nil, err
	}
	return cutWriter{w, s.c}, nil
}

func (s cutSegments) Remove(ctx context.Context, name string) error {
	s.c.step()
	return s.Store.Remove(ctx, name)
}

type cutWriter struct {
	segment.BlockWriter
	c *cutter
}

func (w cutWriter) Append(ctx context.Context, block []byte) error {
	w.c.step()
	return w.BlockWriter.Append(ctx, block)
}

func (w cutWriter) Sync(ctx context.Context) error {
	w.c.step()
	return w.BlockWriter.Sync(ctx)
}

func (w cutWriter) Commit(ctx context.Context) error {
	w.c.step()
	defer w.c.step()
	return w.BlockWriter.Commit(ctx)
}
