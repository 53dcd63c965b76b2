package memstore

import (
	"context"
	"iter"
	"sync"
)

// guarded is a table that many goroutines use and that can be closed.
type guarded[V any] struct {
	// writing is held during a read-modify-write step, the caller's functions
	// included; mu only while the table is touched, so reads are not blocked.
	// Take writing before mu.
	writing sync.Mutex
	mu      sync.RWMutex
	table   table[V]
	closed  bool
}

// ready returns why a method cannot start: a context that is done, or the given
// error if the store is closed.
func (g *guarded[V]) ready(ctx context.Context, errClosed error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.closed {
		return errClosed
	}
	return nil
}

func (g *guarded[V]) get(ctx context.Context, key string, errClosed error) (val V, ok bool, err error) {
	if err := ctx.Err(); err != nil {
		return val, false, err
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.closed {
		return val, false, errClosed
	}
	val, ok = g.table.get(key)
	return val, ok, nil
}

// apply runs change on the table in one step.
func (g *guarded[V]) apply(errClosed error, change func(*table[V])) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errClosed
	}
	change(&g.table)
	return nil
}

func (g *guarded[V]) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed, g.table = true, table[V]{}
}

// scan yields the entries of [from, to) page by page and holds no lock while it
// yields. The pages grow, so a loop that breaks early costs little.
func (g *guarded[V]) scan(ctx context.Context, from, to string, errClosed error) iter.Seq2[entry[V], error] {
	return func(yield func(entry[V], error) bool) {
		var page []entry[V]
		for size := 8; ; size = min(2*size, 512) {
			if err := g.ready(ctx, errClosed); err != nil {
				yield(entry[V]{}, err)
				return
			}
			g.mu.RLock()
			page = g.table.page(page[:0], from, to, size)
			g.mu.RUnlock()
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
			}
			if len(page) < size {
				return
			}
			from = page[len(page)-1].key + "\x00" // the next possible key
		}
	}
}
