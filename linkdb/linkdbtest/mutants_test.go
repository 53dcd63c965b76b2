package linkdbtest_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/linkdb"
)

type mutant struct {
	fault, rule   string
	wrap          func(*engine) linkdb.Store
	reopen, crash func([]write) []write
	hangs         bool
}

type (
	ctx     = context.Context
	entry   = linkdb.Entry
	inlink  = linkdb.Inlink
	entries = iter.Seq2[entry, error]
)

// faulty is an engine with some methods replaced.
type faulty struct {
	*engine
	get   func(ctx, string) ([]inlink, error)
	scan  func(ctx, crawldb.Range) entries
	merge func(ctx, []entry, int) error
	close func() error
}

func (f *faulty) Get(c ctx, url string) ([]inlink, error) {
	if f.get != nil {
		return f.get(c, url)
	}
	return f.engine.Get(c, url)
}

func (f *faulty) Scan(c ctx, r crawldb.Range) entries {
	if f.scan != nil {
		return f.scan(c, r)
	}
	return f.engine.Scan(c, r)
}

func (f *faulty) Merge(c ctx, all []entry, limit int) error {
	if f.merge != nil {
		return f.merge(c, all, limit)
	}
	return f.engine.Merge(c, all, limit)
}

func (f *faulty) Close() error {
	if f.close != nil {
		return f.close()
	}
	return f.engine.Close()
}

// given alters each link it is given.
type given struct {
	*engine
	change func(*inlink)
}

func (s given) Merge(c ctx, all []entry, limit int) error {
	all = slices.Clone(all)
	for i := range all {
		all[i].Inlinks = slices.Clone(all[i].Inlinks)
		for j := range all[i].Inlinks {
			s.change(&all[i].Inlinks[j])
		}
	}
	return s.engine.Merge(c, all, limit)
}

func mutants() []mutant {
	return slices.Concat(readMutants(), mergeMutants(), lifeMutants())
}

func on(f func(*engine) faulty) func(*engine) linkdb.Store {
	return func(e *engine) linkdb.Store {
		m := f(e)
		m.engine = e
		return &m
	}
}

func onScan(f func(e *engine, c ctx, r crawldb.Range, yield func(entry, error) bool)) func(*engine) linkdb.Store {
	return on(func(e *engine) faulty {
		return faulty{scan: func(c ctx, r crawldb.Range) entries {
			return func(yield func(entry, error) bool) { f(e, c, r, yield) }
		}}
	})
}

func onMerge(f func(e *engine, c ctx, all []entry, limit int) error) func(*engine) linkdb.Store {
	return on(func(e *engine) faulty {
		return faulty{merge: func(c ctx, all []entry, limit int) error { return f(e, c, all, limit) }}
	})
}

func readMutants() []mutant {
	anyString := "any string can be a URL or an anchor"
	return []mutant{
		{fault: "a page without inlinks is an error", rule: "a page without inlinks is no error", wrap: on(func(e *engine) faulty {
			return faulty{get: func(c ctx, url string) ([]inlink, error) {
				in, err := e.Get(c, url)
				if err == nil && len(in) == 0 {
					err = crawldb.ErrNotFound
				}
				return in, err
			}}
		})},
		{fault: "drops anchors", rule: anyString, wrap: func(e *engine) linkdb.Store {
			return given{e, func(l *inlink) { l.Anchor = "" }}
		}},
		{fault: "ends anchors at NUL", rule: anyString, wrap: func(e *engine) linkdb.Store {
			return given{e, func(l *inlink) { l.Anchor, _, _ = strings.Cut(l.Anchor, "\x00") }}
		}},
		{fault: "folds the case of URLs", rule: anyString, wrap: func(e *engine) linkdb.Store {
			return given{e, func(l *inlink) { l.From = strings.ToLower(l.From) }}
		}},
		{fault: "invalid UTF-8 is replaced when reopened", rule: anyString, reopen: func(log []write) []write {
			for _, w := range log {
				for _, e := range w.entries {
					for i := range e.Inlinks {
						e.Inlinks[i].Anchor = strings.ToValidUTF8(e.Inlinks[i].Anchor, "\ufffd")
					}
				}
			}
			return log
		}},
		{fault: "keeps a thousand links of a page", rule: "a page may have many inlinks, and a merge many pages", wrap: onMerge(func(e *engine, c ctx, all []entry, limit int) error {
			if limit <= 0 {
				limit = 1000
			}
			return e.Merge(c, all, limit)
		})},
		{fault: "gives out its own memory", rule: "the caller owns what it gets", wrap: on(func(e *engine) faulty {
			shared := map[string][]inlink{}
			return faulty{get: func(c ctx, url string) ([]inlink, error) {
				in, err := e.Get(c, url)
				if kept, ok := shared[url]; ok {
					return kept, err
				}
				shared[url] = in
				return in, err
			}}
		})},
		{fault: "keeps the memory it is given", rule: "the store neither keeps nor changes what it gets", wrap: on(func(e *engine) faulty {
			shared := map[string][]inlink{}
			return faulty{
				merge: func(c ctx, all []entry, limit int) error {
					for _, e := range all {
						shared[e.URL] = e.Inlinks
					}
					return e.Merge(c, all, limit)
				},
				get: func(c ctx, url string) ([]inlink, error) { return shared[url], c.Err() },
			}
		})},
		{fault: "sorts what it is given", rule: "the store neither keeps nor changes what it gets", wrap: onMerge(func(e *engine, c ctx, all []entry, limit int) error {
			for _, e := range all {
				slices.SortFunc(e.Inlinks, linkdb.CompareInlinks)
			}
			return e.Merge(c, all, limit)
		})},
		{fault: "an empty store holds a header", rule: "an empty store yields nothing", wrap: onScan(func(e *engine, c ctx, r crawldb.Range, yield func(entry, error) bool) {
			if yield(entry{}, nil) {
				e.Scan(c, r)(yield)
			}
		})},
		{fault: "scans in the order of strings", rule: "pages are in key order", wrap: onScan(func(e *engine, c ctx, r crawldb.Range, yield func(entry, error) bool) {
			var all []entry
			for e, err := range e.Scan(c, r) {
				if err != nil {
					yield(e, err)
					return
				}
				all = append(all, e)
			}
			slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.URL, b.URL) })
			for _, e := range all {
				if !yield(e, nil) {
					return
				}
			}
		})},
		{fault: "ignores the range", rule: "a range has its first key but not its last", wrap: onScan(func(e *engine, c ctx, _ crawldb.Range, yield func(entry, error) bool) {
			e.Scan(c, crawldb.Range{})(yield)
		})},
		{fault: "leaves out the first key", rule: "a range has its first key but not its last", wrap: onScan(func(e *engine, c ctx, r crawldb.Range, yield func(entry, error) bool) {
			if r.From != "" {
				r.From += "\x00"
			}
			e.Scan(c, r)(yield)
		})},
		{fault: "goes on after a break", rule: "a scan stops when the loop breaks", wrap: onScan(func(e *engine, c ctx, r crawldb.Range, yield func(entry, error) bool) {
			for e, err := range e.Scan(c, r) {
				func() {
					defer func() { _ = recover() }()
					yield(e, err)
				}()
			}
		})},
		{fault: "a scan works once", rule: "a scan can be run again", wrap: on(func(e *engine) faulty {
			return faulty{scan: func(c ctx, r crawldb.Range) entries {
				used := false
				return func(yield func(entry, error) bool) {
					if !used {
						used = true
						e.Scan(c, r)(yield)
					}
				}
			}}
		})},
		{fault: "a scan holds a lock while it yields", rule: "the loop may write", hangs: true, wrap: on(func(e *engine) faulty {
			var mu sync.RWMutex
			return faulty{
				scan: func(c ctx, r crawldb.Range) entries {
					return func(yield func(entry, error) bool) {
						mu.RLock()
						defer mu.RUnlock()
						e.Scan(c, r)(yield)
					}
				},
				merge: func(c ctx, all []entry, limit int) error {
					mu.Lock()
					defer mu.Unlock()
					return e.Merge(c, all, limit)
				}}
		})},
	}
}

// kept is an engine that keeps the links of each page as a function makes them
// of those it had and those it is given.
func kept(union func(had, in []inlink, limit int) []inlink) func(*engine) linkdb.Store {
	return on(func(e *engine) faulty {
		var mu sync.Mutex
		pages := map[string][]inlink{}
		return faulty{
			merge: func(c ctx, all []entry, limit int) error {
				mu.Lock()
				defer mu.Unlock()
				for _, e := range all {
					if in := union(pages[e.URL], e.Inlinks, limit); len(in) > 0 {
						pages[e.URL] = in
					}
				}
				return e.Merge(c, all, limit)
			},
			get: func(c ctx, url string) ([]inlink, error) {
				mu.Lock()
				defer mu.Unlock()
				return slices.Clone(pages[url]), c.Err()
			},
			scan: func(c ctx, r crawldb.Range) entries {
				return func(yield func(entry, error) bool) {
					for e, err := range e.Scan(c, r) {
						mu.Lock()
						in := slices.Clone(pages[e.URL])
						mu.Unlock()
						if !yield(entry{URL: e.URL, Inlinks: in}, err) {
							return
						}
					}
				}
			},
		}
	})
}

func mergeMutants() []mutant {
	order := "entries out of order are ErrOrder and change nothing"
	anchored := func(a, b inlink) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Anchor, b.Anchor)) }
	return []mutant{
		{fault: "keeps repeated links", rule: "inlinks are distinct and in order", wrap: kept(func(had, in []inlink, _ int) []inlink {
			all := slices.Concat(had, in)
			slices.SortFunc(all, linkdb.CompareInlinks)
			return all
		})},
		{fault: "one link from each page", rule: "inlinks are distinct and in order", wrap: kept(func(had, in []inlink, _ int) []inlink {
			all := linkdb.Union(had, in, 0)
			return slices.CompactFunc(all, func(a, b inlink) bool { return a.From == b.From })
		})},
		{fault: "inlinks are in the order of strings", rule: "inlinks are distinct and in order", wrap: kept(func(had, in []inlink, _ int) []inlink {
			all := linkdb.Union(had, in, 0)
			slices.SortFunc(all, anchored)
			return all
		})},
		{fault: "replaces the links of a page", rule: "inlinks are distinct and in order", wrap: kept(func(_, in []inlink, limit int) []inlink {
			return linkdb.Union(nil, in, limit)
		})},
		{fault: "keeps links of two merges twice", rule: "merging again changes nothing", wrap: kept(func(had, in []inlink, _ int) []inlink {
			all := slices.Concat(had, linkdb.Union(nil, in, 0))
			slices.SortFunc(all, linkdb.CompareInlinks)
			return all
		})},
		{fault: "first come, first kept", rule: "the order of merges does not matter", wrap: kept(func(had, in []inlink, limit int) []inlink {
			if limit > 0 {
				in = linkdb.Union(nil, in, 0)
				in = in[:min(len(in), max(limit-len(had), 0))]
			}
			return linkdb.Union(had, in, 0)
		})},
		{fault: "keeps the last", rule: "a limit keeps the first inlinks", wrap: kept(func(had, in []inlink, limit int) []inlink {
			all := linkdb.Union(had, in, 0)
			if limit > 0 {
				all = all[max(0, len(all)-limit):]
			}
			return all
		})},
		{fault: "limits what is given, not what is kept", rule: "a limit keeps the first inlinks", wrap: kept(func(had, in []inlink, limit int) []inlink {
			return linkdb.Union(had, linkdb.Union(nil, in, limit), 0)
		})},
		{fault: "no limit keeps nothing", rule: "a limit keeps the first inlinks", wrap: kept(func(had, in []inlink, limit int) []inlink {
			if limit < 0 {
				return nil
			}
			return linkdb.Union(had, in, limit)
		})},
		{fault: "an empty entry makes a page", rule: "an entry without inlinks makes no page", wrap: onScan(func(e *engine, c ctx, r crawldb.Range, yield func(entry, error) bool) {
			e.disk.mu.Lock()
			empty := map[string]bool{}
			for _, w := range e.disk.log {
				for _, e := range w.entries {
					if len(e.Inlinks) == 0 {
						empty[e.URL] = true
					}
				}
			}
			e.disk.mu.Unlock()
			for url := range empty {
				if !yield(entry{URL: url}, nil) {
					return
				}
			}
			e.Scan(c, r)(yield)
		})},
		{fault: "takes entries in any order", rule: order, wrap: onMerge(func(e *engine, c ctx, all []entry, limit int) error {
			for _, one := range all {
				if err := e.Merge(c, []entry{one}, limit); err != nil {
					return err
				}
			}
			return nil
		})},
		{fault: "disorder is another error", rule: order, wrap: onMerge(func(e *engine, c ctx, all []entry, limit int) error {
			err := e.Merge(c, all, limit)
			if errors.Is(err, linkdb.ErrOrder) {
				err = crawldb.ErrOrder
			}
			return err
		})},
		{fault: "finds the disorder when it comes to it", rule: order, wrap: onMerge(func(e *engine, c ctx, all []entry, limit int) error {
			for i := 1; i < len(all); i++ {
				if crawldb.Compare(all[i-1].URL, all[i].URL) >= 0 {
					if err := e.Merge(c, all[:i], limit); err != nil {
						return err
					}
				}
			}
			return e.Merge(c, all, limit)
		})},
		{fault: "reads, then writes", rule: "overlapping merges lose nothing", wrap: on(func(e *engine) faulty {
			var mu sync.Mutex
			var readers meeting
			pages := map[string][]inlink{}
			return faulty{
				merge: func(c ctx, all []entry, limit int) error {
					for _, one := range all {
						mu.Lock()
						had := pages[one.URL]
						mu.Unlock()
						readers.arrive()
						in := linkdb.Union(had, one.Inlinks, limit)
						mu.Lock()
						pages[one.URL] = in
						mu.Unlock()
					}
					return e.Merge(c, all, limit)
				},
				get: func(c ctx, url string) ([]inlink, error) {
					mu.Lock()
					defer mu.Unlock()
					return slices.Clone(pages[url]), c.Err()
				}}
		})},
	}
}

func lifeMutants() []mutant {
	bg := context.Background()
	done, closed := "a done context changes nothing", "a closed store is ErrClosed"
	return []mutant{
		{fault: "Get ignores its context", rule: done, wrap: on(func(e *engine) faulty {
			return faulty{get: func(_ ctx, url string) ([]inlink, error) { return e.Get(bg, url) }}
		})},
		{fault: "Scan ignores its context", rule: done, wrap: on(func(e *engine) faulty {
			return faulty{scan: func(_ ctx, r crawldb.Range) entries { return e.Scan(bg, r) }}
		})},
		{fault: "Merge ignores its context", rule: done, wrap: onMerge(func(e *engine, _ ctx, all []entry, limit int) error {
			return e.Merge(bg, all, limit)
		})},
		{fault: "a closed store is another error", rule: closed, wrap: onMerge(func(e *engine, c ctx, all []entry, limit int) error {
			err := e.Merge(c, all, limit)
			if errors.Is(err, linkdb.ErrClosed) {
				err = io.ErrClosedPipe
			}
			return err
		})},
		{fault: "a second Close fails", rule: closed, wrap: on(func(e *engine) faulty {
			n := 0
			return faulty{close: func() error {
				if n++; n > 1 {
					return linkdb.ErrClosed
				}
				return e.Close()
			}}
		})},
		{fault: "all stores are one", rule: "stores are independent", wrap: func() func(e *engine) linkdb.Store {
			var one *engine
			return func(e *engine) linkdb.Store {
				if one == nil {
					one = e
				}
				return &faulty{engine: one, close: func() error { return nil }}
			}
		}()},
		{fault: "loses its last merge when reopened", rule: "everything is there after Reopen", reopen: func(log []write) []write {
			return log[:max(len(log)-1, 0)]
		}},
		{fault: "loses its last merge in a crash", rule: "a crash keeps every Merge that returned", crash: func(log []write) []write {
			return log[:max(len(log)-1, 0)]
		}},
		{fault: "the last merge wins when reopened", rule: "random steps agree with a map", reopen: func(log []write) []write {
			last := map[string]int{}
			for i, w := range log {
				for _, e := range w.entries {
					last[e.URL] = i
				}
			}
			for i := range log {
				log[i].entries = slices.DeleteFunc(slices.Clone(log[i].entries), func(e entry) bool { return last[e.URL] != i })
			}
			return log
		}},
	}
}

// meeting makes a race come true: await returns when another goroutine has arrived,
// or after a while.
type meeting struct{ n atomic.Int64 }

func (m *meeting) await() {
	at := m.n.Load()
	for range 10_000 {
		if m.n.Load() != at {
			return
		}
		runtime.Gosched()
	}
}

func (m *meeting) arrive() {
	m.n.Add(1)
	m.await()
}
