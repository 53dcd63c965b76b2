package crawldbtest_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

type mutant struct {
	fault, rule string
	wrap        func(*engine) crawldb.Store
	reopened    func(*disk) []write
	crashed     func(*disk) []write
	hangs       bool
}

type (
	ctx     = context.Context
	datum   = crawldb.Datum
	batch   = crawldb.Batch
	records = iter.Seq2[crawldb.Datum, error]
	nextFn  = func(int, *datum) (*datum, error)
)

// faulty is an engine with some methods replaced.
type faulty struct {
	*engine
	get    func(ctx, string) (datum, error)
	scan   func(ctx, crawldb.Range) records
	update func(ctx, batch) error
	sync   func(ctx) error
	mark   func(ctx, string) (string, error)
	close  func() error
}

func (f *faulty) Get(c ctx, url string) (datum, error) { return or(f.get, f.engine.Get)(c, url) }
func (f *faulty) Scan(c ctx, r crawldb.Range) records  { return or(f.scan, f.engine.Scan)(c, r) }
func (f *faulty) Update(c ctx, b batch) error          { return or(f.update, f.engine.Update)(c, b) }
func (f *faulty) Sync(c ctx) error                     { return or(f.sync, f.engine.Sync)(c) }
func (f *faulty) Mark(c ctx, name string) (string, error) {
	return or(f.mark, f.engine.Mark)(c, name)
}
func (f *faulty) Close() error { return or(f.close, f.engine.Close)() }

func or[F func(ctx, string) (datum, error) | func(ctx, crawldb.Range) records | func(ctx, batch) error | func(ctx) error | func(ctx, string) (string, error) | func() error](f, sound F) F {
	if f == nil {
		return sound
	}
	return f
}

// marksOf returns a batch with the marks of another.
func marksOf(b batch) batch { return batch{Marks: b.Marks} }

// editMarks changes the marks of a batch.
func editMarks(b batch, edit func(marks map[string]string)) batch {
	if marks := b.Marks; marks != nil {
		b.Marks = func() map[string]string {
			edited := maps.Clone(marks())
			edit(edited)
			return edited
		}
	}
	return b
}

// withoutEmpty removes the marks that are to be removed, so that they stay.
func withoutEmpty(marks map[string]string) {
	maps.DeleteFunc(marks, func(_, value string) bool { return value == "" })
}

func mutants() []mutant {
	var all []mutant
	for _, part := range [][]mutant{fieldMutants(), readMutants(), writeMutants(), markMutants(), markListMutants(), ambiguousMutants(), lifeMutants(), crashMutants(), sequenceMutants(), dueMutants(), bulkMutants()} {
		all = append(all, part...)
	}
	return all
}

// changed loses or alters something of each record it writes.
type changed struct {
	*engine
	change func(*datum)
}

func (s changed) Update(c ctx, b batch) error {
	next := b.Next
	b.Next = func(i int, old *datum) (*datum, error) {
		d, err := next(i, old)
		if d == nil || d == old {
			return d, err
		}
		cut := *d
		s.change(&cut)
		return &cut, err
	}
	return s.engine.Update(c, b)
}

func fieldMutants() []mutant {
	var all []mutant
	for fault, change := range map[string]func(*datum){
		"drops Status":       func(d *datum) { d.Status = crawldb.Unfetched },
		"drops FetchTime":    func(d *datum) { d.FetchTime = time.Time{} },
		"drops LastFetch":    func(d *datum) { d.LastFetch = time.Time{} },
		"drops Interval":     func(d *datum) { d.Interval = 0 },
		"drops Modified":     func(d *datum) { d.Modified = time.Time{} },
		"drops Retries":      func(d *datum) { d.Retries = 0 },
		"drops Score":        func(d *datum) { d.Score = 0 },
		"drops Priority":     func(d *datum) { d.Priority = d.Score },
		"drops Signature":    func(d *datum) { d.Signature = nil },
		"drops ETag":         func(d *datum) { d.ETag = "" },
		"drops LastModified": func(d *datum) { d.LastModified = "" },
		"drops LeasedUntil":  func(d *datum) { d.LeasedUntil = time.Time{} },
		"drops LeasedBy":     func(d *datum) { d.LeasedBy = "" },
		"drops Meta":         func(d *datum) { d.Meta = crawldb.Meta{} },
		"keeps seconds":      func(d *datum) { d.FetchTime = d.FetchTime.Truncate(time.Second) },
		"one byte of Retries": func(d *datum) {
			d.Retries &= 0xff
		},
		"invalid UTF-8 is replaced": func(d *datum) { d.ETag = strings.ToValidUTF8(d.ETag, "\ufffd") },
		"ends strings at NUL":       func(d *datum) { d.LeasedBy, _, _ = strings.Cut(d.LeasedBy, "\x00") },
		"nil signature is empty": func(d *datum) {
			if d.Signature == nil {
				d.Signature = []byte{}
			}
		},
		"limits a value": func(d *datum) { d.ETag = d.ETag[:min(len(d.ETag), 255)] },
	} {
		all = append(all, mutant{fault: fault, rule: "every field is kept", wrap: func(e *engine) crawldb.Store { return changed{e, change} }})
	}
	return all
}

func readMutants() []mutant {
	onScan := func(f func(e *engine, c ctx, r crawldb.Range, yield func(datum, error) bool)) func(*engine) crawldb.Store {
		return func(e *engine) crawldb.Store {
			return &faulty{engine: e, scan: func(c ctx, r crawldb.Range) records {
				return func(yield func(datum, error) bool) { f(e, c, r, yield) }
			}}
		}
	}
	all := func(e *engine, c ctx, r crawldb.Range) (data []datum, err error) {
		for d, err := range e.Scan(c, r) {
			if err != nil {
				return nil, err
			}
			data = append(data, d)
		}
		return data, nil
	}
	give := func(data []datum, err error, yield func(datum, error) bool) {
		if err != nil {
			yield(datum{}, err)
			return
		}
		for _, d := range data {
			if !yield(d, nil) {
				return
			}
		}
	}
	return []mutant{
		{fault: "missing is a zero record", rule: "a missing record is ErrNotFound", wrap: func(e *engine) crawldb.Store {
			return &faulty{engine: e, get: func(c ctx, url string) (datum, error) {
				d, err := e.Get(c, url)
				if errors.Is(err, crawldb.ErrNotFound) {
					err = nil
				}
				return d, err
			}}
		}},
		{fault: "missing is another error", rule: "a missing record is ErrNotFound", wrap: func(e *engine) crawldb.Store {
			return &faulty{engine: e, get: func(c ctx, url string) (datum, error) {
				d, err := e.Get(c, url)
				if errors.Is(err, crawldb.ErrNotFound) {
					err = io.EOF
				}
				return d, err
			}}
		}},
		{fault: "finds the nearest", rule: "a missing record is ErrNotFound", wrap: func(e *engine) crawldb.Store {
			return &faulty{engine: e, get: func(c ctx, url string) (datum, error) {
				for d, err := range e.Scan(c, crawldb.Range{From: crawldb.Key(url)}) {
					return d, err
				}
				return datum{}, crawldb.ErrNotFound
			}}
		}},
		{fault: "URLs become valid UTF-8 when reopened", rule: "any string is a URL", reopened: func(d *disk) []write {
			for _, w := range d.log {
				for i := range w.urls {
					w.urls[i] = strings.ToValidUTF8(w.urls[i], "?")
				}
			}
			return d.log
		}},
		{fault: "scans in the order of strings", rule: "a scan is in key order", wrap: onScan(func(e *engine, c ctx, r crawldb.Range, yield func(datum, error) bool) {
			data, err := all(e, c, r)
			slices.SortFunc(data, func(a, b datum) int { return cmp.Compare(a.URL, b.URL) })
			give(data, err, yield)
		})},
		{fault: "an empty store holds a header", rule: "an empty store yields nothing", wrap: onScan(func(e *engine, c ctx, r crawldb.Range, yield func(datum, error) bool) {
			if data, err := all(e, c, r); err == nil && len(data) == 0 {
				yield(datum{}, nil)
				return
			}
			e.Scan(c, r)(yield)
		})},
		{fault: "leaves out the first key", rule: "a range has its first key but not its last", wrap: onScan(func(e *engine, c ctx, r crawldb.Range, yield func(datum, error) bool) {
			if r.From != "" {
				r.From += "\x00"
			}
			e.Scan(c, r)(yield)
		})},
		{fault: "holds the last key", rule: "a range has its first key but not its last", wrap: onScan(func(e *engine, c ctx, r crawldb.Range, yield func(datum, error) bool) {
			if r.To != "" {
				r.To += "\x00"
			}
			e.Scan(c, r)(yield)
		})},
		{fault: "takes a bound for a URL", rule: "hosts and domains are ranges", wrap: onScan(func(e *engine, c ctx, r crawldb.Range, yield func(datum, error) bool) {
			if r.From != "" {
				r.From = crawldb.Key(r.From)
			}
			e.Scan(c, r)(yield)
		})},
		{fault: "loses the last of a scan", rule: "every field is kept", wrap: onScan(func(e *engine, c ctx, r crawldb.Range, yield func(datum, error) bool) {
			data, err := all(e, c, r)
			give(data[:max(len(data)-1, 0)], err, yield)
		})},
		{fault: "goes on after a break", rule: "a scan stops when the loop breaks", wrap: onScan(func(e *engine, c ctx, r crawldb.Range, yield func(datum, error) bool) {
			// A range loop would panic here; only a caller of the function sees it.
			data, err := all(e, c, r)
			for _, d := range data {
				func() {
					defer func() { _ = recover() }()
					yield(d, err)
				}()
			}
		})},
		{fault: "a scan holds a lock while it yields", rule: "the loop may write", hangs: true, wrap: func(e *engine) crawldb.Store {
			var mu sync.RWMutex
			return &faulty{engine: e,
				scan: func(c ctx, r crawldb.Range) records {
					return func(yield func(datum, error) bool) {
						mu.RLock()
						defer mu.RUnlock()
						e.Scan(c, r)(yield)
					}
				},
				update: func(c ctx, b batch) error {
					mu.Lock()
					defer mu.Unlock()
					return e.Update(c, b)
				}}
		}},
		{fault: "a scan is spoiled by a write", rule: "the loop may write", wrap: func(e *engine) crawldb.Store {
			writes := 0
			return &faulty{engine: e,
				scan: func(c ctx, r crawldb.Range) records {
					return func(yield func(datum, error) bool) {
						before := writes
						for d, err := range e.Scan(c, r) {
							if writes != before { // the position moved by one
								before = writes
								continue
							}
							if !yield(d, err) {
								return
							}
						}
					}
				},
				update: func(c ctx, b batch) error {
					writes++
					return e.Update(c, b)
				}}
		}},
		{fault: "a scan works once", rule: "a scan can be run again", wrap: func(e *engine) crawldb.Store {
			return &faulty{engine: e, scan: func(c ctx, r crawldb.Range) records {
				used := false
				return func(yield func(datum, error) bool) {
					if !used {
						used = true
						e.Scan(c, r)(yield)
					}
				}
			}}
		}},
		{fault: "gives out its own bytes", rule: "the caller owns what it gets", wrap: func(e *engine) crawldb.Store {
			shared := map[string][]byte{}
			return &faulty{engine: e, get: func(c ctx, url string) (datum, error) {
				d, err := e.Get(c, url)
				if kept, ok := shared[url]; ok && len(kept) == len(d.Signature) {
					d.Signature = kept
				} else {
					shared[url] = d.Signature
				}
				return d, err
			}}
		}},
		{fault: "keeps the bytes it is given", rule: "the store keeps nothing that it gets", wrap: func(e *engine) crawldb.Store {
			shared := map[string][]byte{}
			return &faulty{engine: e,
				update: func(c ctx, b batch) error {
					next := b.Next
					b.Next = func(i int, old *datum) (*datum, error) {
						d, err := next(i, old)
						if d != nil && d != old {
							shared[b.URLs[i]] = d.Signature
						}
						return d, err
					}
					return e.Update(c, b)
				},
				get: func(c ctx, url string) (datum, error) {
					d, err := e.Get(c, url)
					if err == nil {
						d.Signature = shared[url]
					}
					return d, err
				}}
		}},
		{fault: "tears records", rule: "a reader sees whole records", wrap: func(e *engine) crawldb.Store {
			var writes meeting
			return &faulty{engine: e,
				get: func(c ctx, url string) (datum, error) {
					d, err := e.Get(c, url)
					writes.await()
					if again, e := e.Get(c, url); err == nil && e == nil {
						d.ETag = again.ETag
					}
					return d, err
				},
				update: func(c ctx, b batch) error {
					writes.n.Add(1)
					return e.Update(c, b)
				}}
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
