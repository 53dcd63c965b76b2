package groups

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/segment"
)

// fenced returns stores whose writes all go through guard, which calls write while the lease
// cannot end, and returns its error, or returns [crawldb.ErrFenced] without calling it. Reads do not ask
// guard. Closing these stores does nothing.
func fenced(s Stores, w *openWriters, guard guard) Stores {
	return Stores{
		Crawl:    fencedCrawl{s.Crawl, guard},
		Links:    fencedLinks{s.Links, guard},
		Segments: fencedSegments{s.Segments, w, guard},
		Hosts:    fencedHosts{s.Hosts, guard},
	}
}

type guard = func(write func() error) error

type fencedCrawl struct {
	crawldb.Store
	guard guard
}

// Unwrap lets readers of due records find the store itself.
func (f fencedCrawl) Unwrap() crawldb.Store { return f.Store }

func (f fencedCrawl) Update(ctx context.Context, b crawldb.Batch) error {
	return f.guard(func() error { return f.Store.Update(ctx, b) })
}

func (f fencedCrawl) UpdateAll(ctx context.Context, batches iter.Seq2[crawldb.Batch, error]) error {
	return f.guard(func() error { return crawldb.UpdateAll(ctx, f.Store, batches) })
}

func (f fencedCrawl) Close() error { return nil }

type fencedLinks struct {
	linkdb.Store
	guard guard
}

func (f fencedLinks) Merge(ctx context.Context, entries []linkdb.Entry, limit int) error {
	return f.guard(func() error { return f.Store.Merge(ctx, entries, limit) })
}

func (f fencedLinks) Close() error { return nil }

type fencedHosts struct {
	hostdb.Store
	guard guard
}

func (f fencedHosts) Update(ctx context.Context, name string, next func(old *hostdb.Host) (*hostdb.Host, error)) error {
	return f.guard(func() error { return f.Store.Update(ctx, name, next) })
}

func (f fencedHosts) Close() error { return nil }

// openWriters are the writers of the parts of a group. A part has one writer at a time, so those
// of a lease that has ended are closed before the next one begins.
type openWriters struct {
	mu   sync.Mutex
	open map[segment.BlockWriter]bool
}

func (o *openWriters) add(w segment.BlockWriter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == nil {
		o.open = map[segment.BlockWriter]bool{}
	}
	o.open[w] = true
}

func (o *openWriters) remove(w segment.BlockWriter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, w)
}

// close closes all. What they have not committed stays as it is.
func (o *openWriters) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for w := range o.open {
		w.Close()
	}
	o.open = nil
}

type fencedSegments struct {
	segment.Store
	writers *openWriters
	guard   guard
}

func (f fencedSegments) Append(ctx context.Context, seg, part string, keep int) (w segment.BlockWriter, err error) {
	err = f.guard(func() error {
		if w, err = f.Store.Append(ctx, seg, part, keep); err == nil {
			f.writers.add(w)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return fencedWriter{w, f}, nil
}

func (f fencedSegments) Remove(ctx context.Context, seg string) error {
	return f.guard(func() error { return f.Store.Remove(ctx, seg) })
}

type fencedWriter struct {
	segment.BlockWriter
	of fencedSegments
}

func (f fencedWriter) Append(ctx context.Context, block []byte) error {
	return f.of.guard(func() error { return f.BlockWriter.Append(ctx, block) })
}

func (f fencedWriter) Sync(ctx context.Context) error {
	return f.of.guard(func() error { return f.BlockWriter.Sync(ctx) })
}

func (f fencedWriter) Commit(ctx context.Context) error {
	return f.of.guard(func() error { return f.end(f.BlockWriter.Commit(ctx)) })
}

// Close ends the writer. One whose lease has ended is closed when the next one begins.
func (f fencedWriter) Close() error {
	err := f.of.guard(func() error { return f.end(f.BlockWriter.Close()) })
	if errors.Is(err, crawldb.ErrFenced) {
		return nil
	}
	return err
}

func (f fencedWriter) end(err error) error {
	if err == nil {
		f.of.writers.remove(f.BlockWriter)
	}
	return err
}
