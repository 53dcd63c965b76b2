package crawldbtest_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/crawldbtest"
	"github.com/recrawl/recrawl/stores/memstore"
)

// disk is what outlives the engine of these tests: its updates in order.
type disk struct {
	mu     sync.Mutex
	log    []write
	synced int // how many of them are safe
}

type write struct {
	urls  []string
	data  []*crawldb.Datum // nil deletes
	same  []bool           // left as it was
	marks map[string]string
}

// engine is a sound store: a memstore that can be opened again from a disk.
type engine struct {
	*memstore.Crawl
	disk *disk
	// lost is what becomes of the next update, whose answer is lost.
	lost lostAnswer
}

type lostAnswer int

const (
	answered  lostAnswer = iota
	lostAfter            // it was applied
	lostBefore
)

// answerOf returns what becomes of an update.
func (e *engine) answerOf() lostAnswer {
	lost := e.lost
	e.lost = answered
	return lost
}

func (e *engine) Update(ctx context.Context, b crawldb.Batch) error {
	e.disk.mu.Lock()
	defer e.disk.mu.Unlock()
	w := write{urls: slices.Clone(b.URLs), data: make([]*crawldb.Datum, len(b.URLs)), same: make([]bool, len(b.URLs))}
	next := b.Next
	b.Next = func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
		d, err := next(i, old)
		w.same[i], w.data[i] = d == old, nil
		if d != nil {
			kept := *d
			kept.Signature = slices.Clone(d.Signature)
			w.data[i] = &kept
		}
		return d, err
	}
	if marks := b.Marks; marks != nil {
		b.Marks = func() map[string]string {
			w.marks = marks()
			return w.marks
		}
	}
	if err := e.Crawl.Update(ctx, b); err != nil {
		return err
	}
	e.disk.log = append(e.disk.log, w)
	return nil
}

func (e *engine) Sync(ctx context.Context) error {
	if err := e.Crawl.Sync(ctx); err != nil {
		return err
	}
	e.disk.mu.Lock()
	defer e.disk.mu.Unlock()
	e.disk.synced = len(e.disk.log)
	return nil
}

// self lets the harness find the engine inside a mutant.
func (e *engine) self() *engine { return e }

// replay opens an engine of a disk.
func replay(log []write) (*engine, error) {
	e := &engine{Crawl: new(memstore.Crawl), disk: &disk{log: log, synced: len(log)}}
	for _, w := range log {
		err := e.Crawl.Update(context.Background(), crawldb.Batch{URLs: w.urls, Marks: func() map[string]string { return w.marks }, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
			if w.same[i] {
				return old, nil
			}
			return w.data[i], nil
		}})
		if err != nil {
			return nil, err
		}
	}
	return e, nil
}

// keptBy is what a sound engine may have left after a crash: the updates that
// were synced, and half of the others.
func keptBy(d *disk) []write { return d.log[:d.synced+(len(d.log)-d.synced)/2] }

// harness makes stores of wrap around engines; nil functions are sound.
func harness(wrap func(*engine) crawldb.Store, reopened, crashed func(*disk) []write) crawldbtest.Harness {
	if wrap == nil {
		wrap = func(e *engine) crawldb.Store { return e }
	}
	if reopened == nil {
		reopened = func(d *disk) []write { return d.log }
	}
	if crashed == nil {
		crashed = keptBy
	}
	again := func(left func(*disk) []write) func(crawldb.Store) (crawldb.Store, error) {
		return func(s crawldb.Store) (crawldb.Store, error) {
			e, err := replay(slices.Clone(left(s.(interface{ self() *engine }).self().disk)))
			if err != nil {
				return nil, err
			}
			return wrap(e), nil
		}
	}
	return crawldbtest.Harness{
		Open:   func() (crawldb.Store, error) { return wrap(&engine{Crawl: new(memstore.Crawl), disk: &disk{}}), nil },
		Reopen: again(reopened),
		Crash:  again(crashed),
		LoseAnswer: func(s crawldb.Store, applied bool) {
			s.(interface{ self() *engine }).self().lost = map[bool]lostAnswer{true: lostAfter, false: lostBefore}[applied]
		},
		Patience: 5 * time.Second,
	}
}
