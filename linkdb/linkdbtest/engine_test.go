package linkdbtest_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/linkdb/linkdbtest"
	"github.com/recrawl/recrawl/stores/memstore"
)

// disk is what outlives the engine of these tests: its merges in order.
type disk struct {
	mu  sync.Mutex
	log []write
}

type write struct {
	entries []linkdb.Entry
	limit   int
}

// engine is a sound store: a memstore that can be opened again from a disk.
type engine struct {
	*memstore.Links
	disk *disk
}

func (e *engine) Merge(ctx context.Context, entries []linkdb.Entry, limit int) error {
	e.disk.mu.Lock()
	defer e.disk.mu.Unlock()
	w := write{slices.Clone(entries), limit}
	for i := range w.entries {
		w.entries[i].Inlinks = slices.Clone(w.entries[i].Inlinks)
	}
	err := e.Links.Merge(ctx, entries, limit)
	if err == nil {
		e.disk.log = append(e.disk.log, w)
	}
	return err
}

// self lets the harness find the engine inside a mutant.
func (e *engine) self() *engine { return e }

func replay(log []write) (*engine, error) {
	e := &engine{new(memstore.Links), &disk{log: log}}
	for _, w := range log {
		if err := e.Links.Merge(context.Background(), w.entries, w.limit); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// harness makes stores of wrap around engines; nil functions are sound.
func harness(wrap func(*engine) linkdb.Store, reopen, crash func([]write) []write) linkdbtest.Harness {
	if wrap == nil {
		wrap = func(e *engine) linkdb.Store { return e }
	}
	again := func(left func([]write) []write) func(linkdb.Store) (linkdb.Store, error) {
		return func(s linkdb.Store) (linkdb.Store, error) {
			log := slices.Clone(s.(interface{ self() *engine }).self().disk.log)
			if left != nil {
				log = left(log)
			}
			e, err := replay(log)
			if err != nil {
				return nil, err
			}
			return wrap(e), nil
		}
	}
	return linkdbtest.Harness{
		Open:     func() (linkdb.Store, error) { return wrap(&engine{new(memstore.Links), &disk{}}), nil },
		Reopen:   again(reopen),
		Crash:    again(crash),
		Patience: 5 * time.Second,
	}
}
