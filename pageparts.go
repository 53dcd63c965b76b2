package recrawl

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/segment"
)

// Content returns what the server sent; the zero Content if the visit brought
// none, or if contents are not stored. If the segment has been removed, the error
// is [segment.ErrNotFound]; the same goes for Text and Parsed. An event that did not come
// from a Crawler, such as one that a test makes, has none of the three.
func (e *PageEvent) Content(ctx context.Context) (page.Content, error) {
	if e.parts == nil {
		return page.Content{}, nil
	}
	return partOf(ctx, e, &e.parts.contents, &e.parts.from.contents, func(c *page.Content) string { return c.URL })
}

// Text returns the text of the page; empty if it has none.
func (e *PageEvent) Text(ctx context.Context) (string, error) {
	if e.parts == nil {
		return "", nil
	}
	t, err := partOf(ctx, e, &e.parts.texts, &e.parts.from.texts, func(t *segment.Text) string { return t.URL })
	return t.Text, err
}

// Parsed returns title, outlinks and properties of the page, without its text; the
// zero Parsed if it was not parsed. Its outlinks are those that the crawl follows.
func (e *PageEvent) Parsed(ctx context.Context) (page.Parsed, error) {
	if e.parts == nil {
		return page.Parsed{}, nil
	}
	d, err := partOf(ctx, e, &e.parts.data, &e.parts.from.data, func(d *segment.Data) string { return d.URL })
	return d.Parsed, err
}

// Usage returns what the page may be used for, as it says in headers and meta elements, and as the last
// robots.txt of its site says: which of train-ai, search and other categories are allowed.
func (e *PageEvent) Usage(ctx context.Context) (robots.Usage, error) {
	u := robots.Usage{}
	if e.parts == nil {
		return u, nil
	}
	p, err := e.Parsed(ctx)
	if err != nil {
		return u, err
	}
	u = robots.ParseUsage(p.Usage())
	return u, e.parts.previous.c.addSiteUsage(ctx, u, e.URL)
}

// blockParts are the parts of the pages whose visits are in one block, read when
// the first of its events asks.
type blockParts struct {
	from     *pageParts
	block    int
	previous *previousEvents

	mu       sync.Mutex
	contents map[string]page.Content
	texts    map[string]segment.Text
	data     map[string]segment.Data
}

// pageParts are the parts of a segment whose events are being delivered.
type pageParts struct {
	contents blockReader[page.Content]
	texts    blockReader[segment.Text]
	data     blockReader[segment.Data]
}

func newPageParts(ctx context.Context, s segment.Store, name string) *pageParts {
	return &pageParts{
		blockReader[page.Content]{ctx: ctx, segments: s, name: name},
		blockReader[segment.Text]{ctx: ctx, segments: s, name: name},
		blockReader[segment.Data]{ctx: ctx, segments: s, name: name},
	}
}

func (p *pageParts) close() {
	p.contents.close()
	p.texts.close()
	p.data.close()
}

func partOf[T segment.Record](ctx context.Context, e *PageEvent, m *map[string]T, f *blockReader[T], url func(*T) string) (rec T, err error) {
	e.parts.mu.Lock()
	defer e.parts.mu.Unlock()
	if *m == nil {
		block, ok := f.block(e.parts.block)
		if !ok {
			// Events that are looked at later, or an error, which the caller gets when
			// it asks.
			for b, err := range segment.Blocks[T](ctx, f.segments, f.name, e.parts.block) {
				if err != nil {
					return rec, fmt.Errorf("recrawl: page %s: %w", e.URL, err)
				}
				block = b
				break
			}
		}
		*m = make(map[string]T, len(block))
		for i := range block {
			(*m)[url(&block[i])] = block[i]
		}
	}
	return (*m)[e.URL], nil
}

// blockReader reads a part of a segment block by block, for events in the order of their
// blocks. It opens the part only once: opening it for each block would read all
// blocks before it. Its methods may be called concurrently.
type blockReader[T segment.Record] struct {
	ctx      context.Context
	segments segment.Store
	name     string

	mu   sync.Mutex
	next func() ([]T, error, bool) // nil if nothing is open
	stop func()
	at   int  // the block that next returns
	done bool // nothing is opened any more
}

// block returns a block. If it cannot, for whatever reason, ok is false, and the caller
// finds out why by reading the part.
func (f *blockReader[T]) block(n int) (records []T, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done || n < f.at {
		return nil, false
	}
	if f.next == nil || n > f.at {
		f.closeBlocks()
		f.next, f.stop = iter.Pull2(segment.Blocks[T](f.ctx, f.segments, f.name, n))
		f.at = n
	}
	records, err, ok := f.next()
	f.at++
	if err != nil || !ok {
		f.closeBlocks()
		return nil, false
	}
	return records, true
}

func (f *blockReader[T]) closeBlocks() {
	if f.stop != nil {
		f.stop()
	}
	f.next, f.stop = nil, nil
}

// close ends the reading, so that the segment can be removed.
func (f *blockReader[T]) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = true
	f.closeBlocks()
}
