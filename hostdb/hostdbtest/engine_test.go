package hostdbtest_test

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/hostdb/hostdbtest"
	"github.com/recrawl/recrawl/stores/memstore"
)

// disk is what outlives the engine of these tests: its updates in order.
type disk struct {
	mu     sync.Mutex
	log    []write
	synced int
}

type write struct {
	name string
	host *hostdb.Host // nil deletes
}

// engine is a sound store: a memstore that can be opened again from a disk.
type engine struct {
	*memstore.Hosts
	disk *disk
}

func (e *engine) Update(ctx context.Context, name string, next nextFn) error {
	e.disk.mu.Lock()
	defer e.disk.mu.Unlock()
	w, same := write{name: name}, false
	err := e.Hosts.Update(ctx, name, func(old *hostdb.Host) (*hostdb.Host, error) {
		h, err := next(old)
		if same, w.host = h == old, nil; h != nil {
			w.host = clone(h)
		}
		return h, err
	})
	if err == nil && !same {
		e.disk.log = append(e.disk.log, w)
	}
	return err
}

func clone(h *hostdb.Host) *hostdb.Host {
	c := *h
	c.Fields = maps.Clone(h.Fields)
	c.Robots = slices.Clone(h.Robots)
	for i := range c.Robots {
		c.Robots[i].Body = bytes.Clone(c.Robots[i].Body)
	}
	return &c
}

func (e *engine) Sync(ctx context.Context) error {
	err := e.Hosts.Sync(ctx)
	e.disk.mu.Lock()
	defer e.disk.mu.Unlock()
	if err == nil {
		e.disk.synced = len(e.disk.log)
	}
	return err
}

// self lets the harness find the engine inside a mutant.
func (e *engine) self() *engine { return e }

func replay(log []write) (*engine, error) {
	e := &engine{new(memstore.Hosts), &disk{log: log, synced: len(log)}}
	for _, w := range log {
		if err := e.Hosts.Update(context.Background(), w.name, func(*hostdb.Host) (*hostdb.Host, error) { return w.host, nil }); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// crashed returns what a sound engine may have left: what was synced, and half
// of the rest, with the hosts asked again by the given rule.
func crashed(again func(hostdb.Host, time.Time) hostdb.Host) func(*disk) []write {
	return func(d *disk) []write {
		log := slices.Clone(d.log[:d.synced+(len(d.log)-d.synced)/2])
		now := time.Now()
		for i, w := range log {
			if w.host != nil {
				h := again(*clone(w.host), now)
				log[i].host = &h
			}
		}
		return log
	}
}

func askedAgain(h hostdb.Host, now time.Time) hostdb.Host { return h.AfterCrash(now, now) }

// harness makes stores of wrap around engines; nil functions are sound.
func harness(wrap func(*engine) hostdb.Store, reopen, crash func(*disk) []write) hostdbtest.Harness {
	if wrap == nil {
		wrap = func(e *engine) hostdb.Store { return e }
	}
	if reopen == nil {
		reopen = func(d *disk) []write { return d.log }
	}
	if crash == nil {
		crash = crashed(askedAgain)
	}
	again := func(left func(*disk) []write) func(hostdb.Store) (hostdb.Store, error) {
		return func(s hostdb.Store) (hostdb.Store, error) {
			e, err := replay(slices.Clone(left(s.(interface{ self() *engine }).self().disk)))
			if err != nil {
				return nil, err
			}
			return wrap(e), nil
		}
	}
	return hostdbtest.Harness{
		Open:     func() (hostdb.Store, error) { return wrap(&engine{new(memstore.Hosts), &disk{}}), nil },
		Reopen:   again(reopen),
		Crash:    again(crash),
		Patience: 5 * time.Second,
	}
}
