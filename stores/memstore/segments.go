package memstore

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/recrawl/recrawl/segment"
)

var _ segment.Store = (*Segments)(nil)

// Segments is a [segment.Store]. A segment takes memory until it is removed.
type Segments struct {
	mu       sync.Mutex
	segments map[string]map[string]*part // by segment, then by part
	closed   bool
}

// part is guarded by the mutex of its store. A block never changes, nor does an
// element of blocks once it is set, so what a reader took stays as it was.
type part struct {
	blocks    [][]byte
	committed bool
	writer    *blockWriter // nil if there is none
}

// use calls f with the store locked if the store is open, the context is not
// done and the names are good.
func (s *Segments) use(ctx context.Context, op string, names []string, f func() error) error {
	about := ""
	for i, name := range names {
		if i > 0 {
			about += "/"
		}
		about += name
	}
	err := ctx.Err()
	if err == nil {
		err = segment.ValidName(names...)
	}
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			err = segment.ErrClosed
		} else {
			err = f()
		}
	}
	if err != nil {
		return failed(op, about, err)
	}
	return nil
}

// List implements [segment.Store].
func (s *Segments) List(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var names []string
		err := s.use(ctx, "list", nil, func() error {
			names = slices.Sorted(maps.Keys(s.segments))
			return nil
		})
		if err != nil {
			yield("", err)
			return
		}
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				yield("", fmt.Errorf("memstore: list: %w", err))
				return
			}
			if !yield(name, nil) {
				return
			}
		}
	}
}

// Stat implements [segment.Store].
func (s *Segments) Stat(ctx context.Context, seg, name string) (info segment.Info, err error) {
	err = s.use(ctx, "stat", []string{seg, name}, func() error {
		p := s.segments[seg][name]
		if p == nil {
			return segment.ErrNotFound
		}
		info = segment.Info{Blocks: len(p.blocks), Committed: p.committed}
		for _, b := range p.blocks {
			info.Bytes += int64(len(b))
		}
		return nil
	})
	return info, err
}

// Read implements [segment.Store]. It yields the blocks present when the loop
// begins.
func (s *Segments) Read(ctx context.Context, seg, name string, from int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var blocks [][]byte
		err := s.use(ctx, "read", []string{seg, name}, func() error {
			p := s.segments[seg][name]
			if p == nil {
				return segment.ErrNotFound
			}
			blocks = p.blocks[min(max(from, 0), len(p.blocks)):]
			return nil
		})
		if err != nil {
			yield(nil, err)
			return
		}
		for _, b := range blocks {
			if err := ctx.Err(); err != nil {
				yield(nil, failed("read", seg+"/"+name, err))
				return
			}
			if !yield(append(make([]byte, 0, len(b)), b...), nil) {
				return
			}
		}
	}
}

// Append implements [segment.Store].
func (s *Segments) Append(ctx context.Context, seg, name string, keep int) (segment.BlockWriter, error) {
	var w *blockWriter
	err := s.use(ctx, "append to", []string{seg, name}, func() error {
		p := s.segments[seg][name]
		if p == nil {
			p = &part{}
		}
		switch {
		case p.committed:
			return segment.ErrCommitted
		case p.writer != nil:
			return segment.ErrBusy
		case keep > len(p.blocks):
			return fmt.Errorf("%d blocks of %d: %w", keep, len(p.blocks), segment.ErrNotFound)
		case keep >= 0:
			// A reader may hold what follows, so append elsewhere.
			p.blocks = slices.Clone(p.blocks[:keep])
		}
		if s.segments == nil {
			s.segments = map[string]map[string]*part{}
		}
		if s.segments[seg] == nil {
			s.segments[seg] = map[string]*part{}
		}
		s.segments[seg][name] = p
		w = &blockWriter{store: s, part: p, names: []string{seg, name}}
		p.writer = w
		return nil
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Remove implements [segment.Store].
func (s *Segments) Remove(ctx context.Context, seg string) error {
	return s.use(ctx, "remove", []string{seg}, func() error {
		for _, p := range s.segments[seg] {
			if p.writer != nil {
				return segment.ErrBusy
			}
		}
		delete(s.segments, seg)
		return nil
	})
}

// Close releases all segments; after it every method, those of open writers
// included, returns an error that is segment.ErrClosed. A second Close does
// nothing.
func (s *Segments) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.segments = true, nil
	return nil
}

type blockWriter struct {
	store *Segments
	part  *part
	names []string
}

// use calls f with the store locked if this is still the writer of the part.
func (w *blockWriter) use(ctx context.Context, op string, f func()) error {
	return w.store.use(ctx, op, w.names, func() error {
		if w.part.writer != w {
			return segment.ErrClosed
		}
		f()
		return nil
	})
}

func (w *blockWriter) Append(ctx context.Context, block []byte) error {
	block = bytes.Clone(block)
	return w.use(ctx, "append to", func() { w.part.blocks = append(w.part.blocks, block) })
}

func (w *blockWriter) Sync(ctx context.Context) error {
	return w.use(ctx, "sync", func() {})
}

func (w *blockWriter) Commit(ctx context.Context) error {
	return w.use(ctx, "commit", func() { w.part.committed, w.part.writer = true, nil })
}

func (w *blockWriter) Close() error {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if w.part.writer == w {
		w.part.writer = nil
	}
	return nil
}
