package crawldbtest_test

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/recrawl/recrawl/crawldb"
)

func lifeMutants() []mutant {
	bg := context.Background()
	heedless := func(f func(e *engine) *faulty) func(*engine) crawldb.Store {
		return func(e *engine) crawldb.Store {
			m := f(e)
			m.engine = e
			return m
		}
	}
	done := "a done context changes nothing"
	closed := "a closed store is ErrClosed"
	forget := func(err error) error {
		if errors.Is(err, crawldb.ErrClosed) {
			return errors.New("bad handle")
		}
		return err
	}
	return []mutant{
		{fault: "Get ignores its context", rule: done, wrap: heedless(func(e *engine) *faulty {
			return &faulty{get: func(_ ctx, url string) (datum, error) { return e.Get(bg, url) }}
		})},
		{fault: "Scan ignores its context", rule: done, wrap: heedless(func(e *engine) *faulty {
			return &faulty{scan: func(_ ctx, r crawldb.Range) records { return e.Scan(bg, r) }}
		})},
		{fault: "Update ignores its context", rule: done, wrap: heedless(func(e *engine) *faulty {
			return &faulty{update: func(_ ctx, b batch) error { return e.Update(bg, b) }}
		})},
		{fault: "Sync ignores its context", rule: done, wrap: heedless(func(e *engine) *faulty {
			return &faulty{sync: func(ctx) error { return e.Sync(bg) }}
		})},
		{fault: "Mark ignores its context", rule: done, wrap: heedless(func(e *engine) *faulty {
			return &faulty{mark: func(_ ctx, name string) (string, error) { return e.Mark(bg, name) }}
		})},
		{fault: "a scan that is cancelled just ends", rule: "a scan heeds its context", wrap: heedless(func(e *engine) *faulty {
			return &faulty{scan: func(c ctx, r crawldb.Range) records {
				return func(yield func(datum, error) bool) {
					started := false
					for d, err := range e.Scan(c, r) {
						if started && err != nil || !yield(d, err) {
							return
						}
						started = true
					}
				}
			}}
		})},
		{fault: "a cancelled update has done half", rule: "a cancelled update changes all or nothing", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			if len(b.URLs) < 1000 || c.Err() != nil {
				return e.Update(c, b)
			}
			half := len(b.URLs) / 2
			if err := e.Update(bg, batch{URLs: b.URLs[:half], Next: b.Next}); err != nil {
				return err
			}
			return e.Update(c, batch{URLs: b.URLs[half:], Marks: b.Marks, Next: func(i int, old *datum) (*datum, error) { return b.Next(half+i, old) }})
		})},
		{fault: "a closed store is another error", rule: closed, wrap: heedless(func(e *engine) *faulty {
			return &faulty{update: func(c ctx, b batch) error { return forget(e.Update(c, b)) }}
		})},
		{fault: "a closed store is read as empty", rule: closed, wrap: heedless(func(e *engine) *faulty {
			return &faulty{scan: func(c ctx, r crawldb.Range) records {
				return func(yield func(datum, error) bool) {
					for d, err := range e.Scan(c, r) {
						if errors.Is(err, crawldb.ErrClosed) || !yield(d, err) {
							return
						}
					}
				}
			}}
		})},
		{fault: "a second Close fails", rule: closed, wrap: heedless(func(e *engine) *faulty {
			n := 0
			return &faulty{close: func() error {
				if n++; n > 1 {
					return crawldb.ErrClosed
				}
				return e.Close()
			}}
		})},
		{fault: "Close waits for the scans", rule: "Close waits for no one", hangs: true, wrap: heedless(func(e *engine) *faulty {
			var scans sync.WaitGroup
			return &faulty{
				scan: func(c ctx, r crawldb.Range) records {
					return func(yield func(datum, error) bool) {
						scans.Add(1)
						defer scans.Done()
						e.Scan(c, r)(yield)
					}
				},
				close: func() error {
					scans.Wait()
					return e.Close()
				}}
		})},
		{fault: "loses its last update when reopened", rule: "everything is there after Reopen", reopened: func(d *disk) []write {
			return d.log[:max(len(d.log)-1, 0)]
		}},
		{fault: "forgets deletes when reopened", rule: "nil deletes a record, old leaves it alone", reopened: func(d *disk) []write {
			for _, w := range d.log {
				for i := range w.data {
					w.same[i] = w.same[i] || w.data[i] == nil
				}
			}
			return d.log
		}},
		{fault: "the first change wins when reopened", rule: "random steps agree with a map", reopened: func(d *disk) []write {
			seen := map[string]bool{}
			for _, w := range d.log {
				for i, url := range w.urls {
					w.same[i] = w.same[i] || seen[url]
					seen[url] = true
				}
			}
			return d.log
		}},
		{fault: "all stores are one", rule: "stores are independent", wrap: func() func(e *engine) crawldb.Store {
			var mu sync.Mutex
			var one *engine
			return func(e *engine) crawldb.Store {
				mu.Lock()
				defer mu.Unlock()
				if one == nil {
					one = e
				}
				return &faulty{engine: one, close: func() error { return nil }}
			}
		}()},
	}
}

func crashMutants() []mutant {
	prefix := "a crash keeps whole updates, and none without those before it"
	return []mutant{
		{fault: "a crash loses what was synced", rule: "a crash keeps what was synced", crashed: func(d *disk) []write { return d.log[:len(d.log)/2] }},
		{fault: "a crash loses the synced marks", rule: "a crash keeps what was synced", crashed: withoutMarks},
		{fault: "a crash keeps a later update without an earlier", rule: prefix, crashed: func(d *disk) []write {
			kept := slices.Clone(d.log[:d.synced])
			if d.synced+2 <= len(d.log) {
				kept = append(kept, d.log[d.synced+1])
			}
			return kept
		}},
		{fault: "a crash tears an update", rule: prefix, crashed: func(d *disk) []write {
			kept := slices.Clone(keptBy(d))
			if len(kept) > d.synced {
				w := &kept[len(kept)-1]
				w.urls = w.urls[:len(w.urls)/2]
			}
			return kept
		}},
		{fault: "a crash keeps the mark without its records", rule: prefix, crashed: func(d *disk) []write {
			kept := slices.Clone(keptBy(d))
			if len(kept) < len(d.log) {
				w := d.log[len(kept)]
				kept = append(kept, write{marks: w.marks})
			}
			return kept
		}},
		{fault: "Close does not sync", rule: "Close syncs", reopened: func(d *disk) []write { return d.log[:d.synced] }},
		{fault: "a mark that is synced alone", rule: prefix, crashed: func(d *disk) []write {
			kept := slices.Clone(d.log)
			for i := range kept[d.synced:] {
				kept[d.synced+i].marks = nil
			}
			return kept
		}},
	}
}
