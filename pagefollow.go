package recrawl

import (
	"context"
	"iter"
	"sync"

	"github.com/recrawl/recrawl/segment"
)

// follower reads a part of a segment block by block, for events in the order of their
// blocks. It opens the part only once: opening it for each block would read all
// blocks before it. Its methods may be called concurrently.
type follower[T segment.Record] struct {
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
func (f *follower[T]) block(n int) (records []T, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done || n < f.at {
		return nil, false
	}
	if f.next == nil || n > f.at {
		f.end()
		f.next, f.stop = iter.Pull2(segment.Blocks[T](f.ctx, f.segments, f.name, n))
		f.at = n
	}
	records, err, ok := f.next()
	f.at++
	if err != nil || !ok {
		f.end()
		return nil, false
	}
	return records, true
}

func (f *follower[T]) end() {
	if f.stop != nil {
		f.stop()
	}
	f.next, f.stop = nil, nil
}

// close ends the reading, so that the segment can be removed.
func (f *follower[T]) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = true
	f.end()
}
