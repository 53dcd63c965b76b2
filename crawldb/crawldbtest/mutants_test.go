package crawldbtest_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
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
	get      func(ctx, string) (datum, error)
	scan     func(ctx, crawldb.Range) records
	update   func(ctx, batch) error
	sync     func(ctx) error
	progress func(ctx, string) (string, error)
	close    func() error
}

func (f *faulty) Get(c ctx, url string) (datum, error) { return or(f.get, f.engine.Get)(c, url) }
func (f *faulty) Scan(c ctx, r crawldb.Range) records  { return or(f.scan, f.engine.Scan)(c, r) }
func (f *faulty) Update(c ctx, b batch) error          { return or(f.update, f.engine.Update)(c, b) }
func (f *faulty) Sync(c ctx) error                     { return or(f.sync, f.engine.Sync)(c) }
func (f *faulty) Progress(c ctx, job string) (string, error) {
	return or(f.progress, f.engine.Progress)(c, job)
}
func (f *faulty) Close() error { return or(f.close, f.engine.Close)() }

func or[F func(ctx, string) (datum, error) | func(ctx, crawldb.Range) records | func(ctx, batch) error | func(ctx) error | func(ctx, string) (string, error) | func() error](f, sound F) F {
	if f == nil {
		return sound
	}
	return f
}

func mutants() []mutant {
	var all []mutant
	for _, part := range [][]mutant{fieldMutants(), readMutants(), writeMutants(), markMutants(), lifeMutants(), crashMutants(), dueMutants()} {
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
		{fault: "leaves out the first key", rule: "a range holds its first key and not its last", wrap: onScan(func(e *engine, c ctx, r crawldb.Range, yield func(datum, error) bool) {
			if r.From != "" {
				r.From += "\x00"
			}
			e.Scan(c, r)(yield)
		})},
		{fault: "holds the last key", rule: "a range holds its first key and not its last", wrap: onScan(func(e *engine, c ctx, r crawldb.Range, yield func(datum, error) bool) {
			if r.To != "" {
				r.To += "\x00"
			}
			e.Scan(c, r)(yield)
		})},
		{fault: "takes a bound for a URL", rule: "a host and a domain are ranges", wrap: onScan(func(e *engine, c ctx, r crawldb.Range, yield func(datum, error) bool) {
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
		{fault: "gives out its own bytes", rule: "the caller owns what it is given", wrap: func(e *engine) crawldb.Store {
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
		{fault: "keeps the bytes it is given", rule: "the store keeps nothing that it is given", wrap: func(e *engine) crawldb.Store {
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
			return &faulty{engine: e, get: func(c ctx, url string) (datum, error) {
				d, err := e.Get(c, url)
				for range 20 {
					runtime.Gosched()
				}
				if again, e := e.Get(c, url); err == nil && e == nil {
					d.ETag = again.ETag
				}
				return d, err
			}}
		}},
	}
}

// onNext is an engine that does something else with what Next is.
func onNext(f func(b batch, next nextFn) nextFn) func(*engine) crawldb.Store {
	return func(e *engine) crawldb.Store {
		return &faulty{engine: e, update: func(c ctx, b batch) error {
			if b.Next != nil {
				b.Next = f(b, b.Next)
			}
			return e.Update(c, b)
		}}
	}
}

// onUpdate is an engine that updates in another way.
func onUpdate(f func(e *engine, c ctx, b batch) error) func(*engine) crawldb.Store {
	return func(e *engine) crawldb.Store {
		return &faulty{engine: e, update: func(c ctx, b batch) error { return f(e, c, b) }}
	}
}

// oneByOne applies a batch record by record.
func oneByOne(e *engine, c ctx, b batch) error {
	for i, url := range b.URLs {
		one := batch{URLs: []string{url}, Next: func(_ int, old *datum) (*datum, error) { return b.Next(i, old) }}
		if err := e.Update(c, one); err != nil {
			return err
		}
	}
	return e.Update(c, batch{Job: b.Job, Cursor: b.Cursor})
}

func writeMutants() []mutant {
	return []mutant{
		{fault: "takes out of order and sorts", rule: "a batch out of order is ErrOrder and changes nothing", wrap: onUpdate(oneByOne)},
		{fault: "wants the order of strings", rule: "a batch out of order is ErrOrder and changes nothing", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			if !slices.IsSorted(b.URLs) {
				return crawldb.ErrOrder
			}
			return e.Update(c, b)
		})},
		{fault: "finds the disorder when it comes to it", rule: "a batch out of order is ErrOrder and changes nothing", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			for i := 1; i < len(b.URLs); i++ {
				if crawldb.Compare(b.URLs[i-1], b.URLs[i]) >= 0 {
					if err := e.Update(c, batch{URLs: b.URLs[:i], Next: b.Next}); err != nil {
						return err
					}
				}
			}
			return e.Update(c, b)
		})},
		{fault: "disorder is another error", rule: "a batch out of order is ErrOrder and changes nothing", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			err := e.Update(c, b)
			if errors.Is(err, crawldb.ErrOrder) {
				return io.ErrUnexpectedEOF
			}
			return err
		})},
		{fault: "keeps what it did before an error", rule: "an error of Next changes nothing", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			for i := 1; i < len(b.URLs); i++ {
				if crawldb.Compare(b.URLs[i-1], b.URLs[i]) >= 0 {
					return crawldb.ErrOrder
				}
			}
			return oneByOne(e, c, b)
		})},
		{fault: "hides the error of Next", rule: "an error of Next changes nothing", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			if err := e.Update(c, b); err != nil && !errors.Is(err, crawldb.ErrOrder) && !errors.Is(err, context.Canceled) && !errors.Is(err, crawldb.ErrClosed) {
				return fmt.Errorf("update failed: %v", err)
			} else {
				return err
			}
		})},
		{fault: "an error is a nil record", rule: "an error of Next changes nothing", wrap: onNext(func(b batch, next nextFn) nextFn {
			return func(i int, old *datum) (*datum, error) {
				d, _ := next(i, old)
				return d, nil
			}
		})},
		{fault: "nil leaves", rule: "nil deletes and old leaves", wrap: onNext(func(b batch, next nextFn) nextFn {
			return func(i int, old *datum) (*datum, error) {
				d, err := next(i, old)
				if d == nil {
					d = old
				}
				return d, err
			}
		})},
		{fault: "old deletes", rule: "nil deletes and old leaves", wrap: onNext(func(b batch, next nextFn) nextFn {
			return func(i int, old *datum) (*datum, error) {
				d, err := next(i, old)
				if d == old {
					d = nil
				}
				return d, err
			}
		})},
		{fault: "nil makes an empty record", rule: "nil deletes and old leaves", wrap: onNext(func(b batch, next nextFn) nextFn {
			return func(i int, old *datum) (*datum, error) {
				d, err := next(i, old)
				if d == nil && old == nil {
					d = &datum{}
				}
				return d, err
			}
		})},
		{fault: "none is a zero record", rule: "Next is given what is kept", wrap: onNext(func(b batch, next nextFn) nextFn {
			return func(i int, old *datum) (*datum, error) {
				if old == nil {
					zero := &datum{URL: b.URLs[i]}
					d, err := next(i, zero)
					if d == zero {
						d = nil
					}
					return d, err
				}
				return next(i, old)
			}
		})},
		{fault: "Next is not told the URL", rule: "Next is given what is kept", wrap: onNext(func(b batch, next nextFn) nextFn {
			return func(i int, old *datum) (*datum, error) {
				if old != nil {
					old.URL = ""
				}
				return next(i, old)
			}
		})},
		{fault: "calls Next from the end", rule: "Next is given what is kept", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			for i, url := range slices.Backward(b.URLs) {
				one := batch{URLs: []string{url}, Next: func(_ int, old *datum) (*datum, error) { return b.Next(i, old) }}
				if err := e.Update(c, one); err != nil {
					return err
				}
			}
			return nil
		})},
		{fault: "keeps a record under the URL it bears", rule: "a record is kept under the URL of the batch", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			var moved []datum
			next := b.Next
			b.Next = func(i int, old *datum) (*datum, error) {
				d, err := next(i, old)
				if d != nil && d.URL != b.URLs[i] && d.URL != "" {
					moved = append(moved, *d)
					return old, err
				}
				return d, err
			}
			err := e.Update(c, b)
			for _, d := range moved {
				err = errors.Join(err, e.Update(c, batch{URLs: []string{d.URL}, Next: func(int, *datum) (*datum, error) { return &d, nil }}))
			}
			return err
		})},
		{fault: "takes ten thousand records at most", rule: "a batch may be empty or large", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			b.URLs = b.URLs[:min(len(b.URLs), 10_000)]
			return e.Update(c, b)
		})},
		{fault: "refuses an empty batch", rule: "a batch may be empty or large", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			if len(b.URLs) == 0 {
				return io.ErrShortBuffer
			}
			return e.Update(c, b)
		})},
		{fault: "merges with the record before", rule: "a record replaces the one before whole", wrap: onNext(func(b batch, next nextFn) nextFn {
			return func(i int, old *datum) (*datum, error) {
				d, err := next(i, old)
				if d != nil && d != old && old != nil && d.ETag == "" {
					merged := *d
					merged.ETag = old.ETag
					d = &merged
				}
				return d, err
			}
		})},
		{fault: "reads, then writes", rule: "overlapping updates lose nothing", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			olds := make([]*datum, len(b.URLs))
			for i, url := range b.URLs {
				if d, err := e.Get(c, url); err == nil {
					olds[i] = &d
				}
			}
			runtime.Gosched()
			next := b.Next
			b.Next = func(i int, old *datum) (*datum, error) {
				d, err := next(i, olds[i])
				if d == olds[i] {
					return old, err
				}
				return d, err
			}
			return e.Update(c, b)
		})},
	}
}

func markMutants() []mutant {
	rule := "a mark is written with its batch"
	return []mutant{
		{fault: "marks no empty batch", rule: rule, wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			if len(b.URLs) == 0 {
				return nil
			}
			return e.Update(c, b)
		})},
		{fault: "forgets the mark with the next batch", rule: rule, wrap: func(e *engine) crawldb.Store {
			var last batch
			return &faulty{engine: e,
				update: func(c ctx, b batch) error {
					err := e.Update(c, b)
					if err == nil {
						last = b
					}
					return err
				},
				progress: func(c ctx, job string) (string, error) {
					if last.Job != job {
						return "", c.Err()
					}
					return e.Progress(c, job)
				}}
		}},
		{fault: "the job without a name has a mark", rule: rule, wrap: func(e *engine) crawldb.Store {
			return &faulty{engine: e,
				update: func(c ctx, b batch) error {
					b.Job = "+" + b.Job
					return e.Update(c, b)
				},
				progress: func(c ctx, job string) (string, error) { return e.Progress(c, "+"+job) }}
		}},
		{fault: "marks before the batch", rule: "an error of Next changes nothing", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			if err := e.Update(c, batch{Job: b.Job, Cursor: b.Cursor}); err != nil {
				return err
			}
			return e.Update(c, b)
		})},
		{fault: "an empty cursor leaves the mark", rule: "an empty cursor removes the mark", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			if b.Cursor == "" {
				b.Job = ""
			}
			return e.Update(c, b)
		})},
		{fault: "one mark for all", rule: "each job has its own mark", wrap: func(e *engine) crawldb.Store {
			return &faulty{engine: e,
				update: func(c ctx, b batch) error {
					if b.Job != "" {
						b.Job = "job"
					}
					return e.Update(c, b)
				},
				progress: func(c ctx, job string) (string, error) { return e.Progress(c, "job") }}
		}},
		{fault: "a mark is a record", rule: "each job has its own mark", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			if err := e.Update(c, b); err != nil || b.Job == "" {
				return err
			}
			return e.Update(c, batch{URLs: []string{b.Job}, Next: func(int, *datum) (*datum, error) { return &datum{Status: crawldb.Gone}, nil }})
		})},
		{fault: "marks are lost when reopened", rule: rule, reopened: withoutMarks},
	}
}

func withoutMarks(d *disk) []write {
	for i := range d.log {
		d.log[i].job = ""
	}
	return d.log
}

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
		{fault: "Progress ignores its context", rule: done, wrap: heedless(func(e *engine) *faulty {
			return &faulty{progress: func(_ ctx, job string) (string, error) { return e.Progress(bg, job) }}
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
		{fault: "a cancelled update has done half", rule: "an update cancelled on its way changes all or nothing", wrap: onUpdate(func(e *engine, c ctx, b batch) error {
			if len(b.URLs) < 1000 || c.Err() != nil {
				return e.Update(c, b)
			}
			half := len(b.URLs) / 2
			if err := e.Update(bg, batch{URLs: b.URLs[:half], Next: b.Next}); err != nil {
				return err
			}
			return e.Update(c, batch{URLs: b.URLs[half:], Job: b.Job, Cursor: b.Cursor, Next: func(i int, old *datum) (*datum, error) { return b.Next(half+i, old) }})
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
		{fault: "forgets deletes when reopened", rule: "nil deletes and old leaves", reopened: func(d *disk) []write {
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
	prefix := "a crash keeps whole updates and no later one without an earlier"
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
				kept = append(kept, write{job: w.job, cursor: w.cursor})
			}
			return kept
		}},
		{fault: "Close does not sync", rule: "Close syncs", reopened: func(d *disk) []write { return d.log[:d.synced] }},
		{fault: "a mark that is synced alone", rule: prefix, crashed: func(d *disk) []write {
			kept := slices.Clone(d.log)
			for i := range kept[d.synced:] {
				kept[d.synced+i].job = ""
			}
			return kept
		}},
	}
}

// indexed is a sound DueStore as lazy as the contract lets it be: levels in no
// order, and hints that are not due.
type indexed struct {
	*engine
	due  func(datum, crawldb.DueQuery) bool
	rank func(a, b datum) int
	give func(crawldb.DueQuery, []datum, func(crawldb.Candidate, error) bool)
	ctx  func(context.Context) context.Context
}

func newIndexed(e *engine) *indexed {
	return &indexed{engine: e, due: hinted, rank: byLevel, give: giveDue, ctx: func(c context.Context) context.Context { return c }}
}

func hinted(d datum, q crawldb.DueQuery) bool {
	late := !d.FetchTime.After(q.Now) || !q.Beyond.IsZero() && d.FetchTime.After(q.Beyond)
	return (late && !d.Leased(q.Now) || len(d.URL)%5 == 0) && (q.MinPriority <= 0 || d.Priority >= q.MinPriority)
}

func byLevel(a, b datum) int {
	level := func(d datum) float64 {
		p := float64(d.Priority)
		if !(p > 0) {
			return math.Inf(-1)
		}
		return math.Floor(8 * math.Log2(p))
	}
	return cmp.Or(cmp.Compare(level(b), level(a)), cmp.Compare(b.URL, a.URL))
}

func giveDue(q crawldb.DueQuery, data []datum, yield func(crawldb.Candidate, error) bool) {
	n := 0
	for _, d := range data {
		if q.Want != nil && !q.Want(crawldb.Host(d.URL)) {
			continue
		}
		if !yield(crawldb.Candidate{URL: d.URL, Priority: d.Priority}, nil) {
			return
		}
		if n++; n == q.Limit {
			return
		}
	}
}

func (s *indexed) Due(c context.Context, q crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error] {
	return func(yield func(crawldb.Candidate, error) bool) {
		var data []datum
		for d, err := range s.Scan(s.ctx(c), crawldb.Range{}) {
			if err != nil {
				yield(crawldb.Candidate{}, err)
				return
			}
			if s.due(d, q) {
				data = append(data, d)
			}
		}
		slices.SortStableFunc(data, s.rank)
		s.give(q, data, yield)
	}
}

func dueMutants() []mutant {
	on := func(change func(*indexed)) func(*engine) crawldb.Store {
		return func(e *engine) crawldb.Store {
			s := newIndexed(e)
			change(s)
			return s
		}
	}
	omits := func(what func(datum, crawldb.DueQuery) bool) func(*engine) crawldb.Store {
		return on(func(s *indexed) {
			s.due = func(d datum, q crawldb.DueQuery) bool { return hinted(d, q) && !what(d, q) }
		})
	}
	nothing := "Due omits nothing that is due"
	return []mutant{
		{fault: "Due omits what is due this moment", rule: nothing, wrap: omits(func(d datum, q crawldb.DueQuery) bool { return d.FetchTime.Equal(q.Now) })},
		{fault: "Due omits what was never given a time", rule: nothing, wrap: omits(func(d datum, q crawldb.DueQuery) bool { return d.FetchTime.IsZero() })},
		{fault: "Due omits what is beyond", rule: nothing, wrap: omits(func(d datum, q crawldb.DueQuery) bool { return d.FetchTime.After(q.Now) })},
		{fault: "Due omits what was ever leased", rule: nothing, wrap: omits(func(d datum, q crawldb.DueQuery) bool { return d.LeasedBy != "" })},
		{fault: "Due omits what has no priority", rule: nothing, wrap: omits(func(d datum, q crawldb.DueQuery) bool { return !(d.Priority > 0) })},
		{fault: "Due omits URLs without a host", rule: nothing, wrap: omits(func(d datum, q crawldb.DueQuery) bool { return crawldb.Host(d.URL) == "" })},
		{fault: "Due forgets when the clock goes back", rule: nothing, wrap: func(e *engine) crawldb.Store {
			s := newIndexed(e)
			var latest time.Time
			s.due = func(d datum, q crawldb.DueQuery) bool {
				if q.Now.After(latest) {
					latest = q.Now
				}
				return hinted(d, q) && !q.Now.Before(latest)
			}
			return s
		}},
		{fault: "Due yields the worst first", rule: "Due yields the best level first", wrap: on(func(s *indexed) { s.rank = func(a, b datum) int { return byLevel(b, a) } })},
		{fault: "Due has levels of an octave", rule: "Due yields the best level first", wrap: on(func(s *indexed) {
			s.rank = func(a, b datum) int {
				octave := func(d datum) float64 { return math.Floor(math.Log2(max(float64(d.Priority), 1e-300))) }
				return cmp.Or(cmp.Compare(octave(b), octave(a)), bytes.Compare([]byte(a.URL), []byte(b.URL)))
			}
		})},
		{fault: "Due yields no priority", rule: "Due yields the best level first", wrap: on(func(s *indexed) {
			s.give = func(q crawldb.DueQuery, data []datum, yield func(crawldb.Candidate, error) bool) {
				giveDue(q, data, func(c crawldb.Candidate, err error) bool {
					c.Priority = 0
					return yield(c, err)
				})
			}
		})},
		{fault: "Due knows no limit", rule: "Due ends at its limit", wrap: on(func(s *indexed) {
			s.give = func(q crawldb.DueQuery, data []datum, yield func(crawldb.Candidate, error) bool) {
				q.Limit = 0
				giveDue(q, data, yield)
			}
		})},
		{fault: "Due counts what nobody wants", rule: "Due ends at its limit", wrap: on(func(s *indexed) {
			s.give = func(q crawldb.DueQuery, data []datum, yield func(crawldb.Candidate, error) bool) {
				if q.Limit > 0 {
					data = data[:min(len(data), q.Limit/2)]
				}
				giveDue(q, data, yield)
			}
		})},
		{fault: "Due ignores MinPriority", rule: "Due leaves out what is below MinPriority", wrap: on(func(s *indexed) {
			s.due = func(d datum, q crawldb.DueQuery) bool {
				q.MinPriority = 0
				return hinted(d, q)
			}
		})},
		{fault: "Due ends at the first host not wanted", rule: "Due omits no host that is wanted", wrap: on(func(s *indexed) {
			s.give = func(q crawldb.DueQuery, data []datum, yield func(crawldb.Candidate, error) bool) {
				if i := slices.IndexFunc(data, func(d datum) bool { return q.Want != nil && !q.Want(crawldb.Host(d.URL)) }); i >= 0 {
					data = data[:i]
				}
				giveDue(q, data, yield)
			}
		})},
		{fault: "Due asks Want about the URL", rule: "Due omits no host that is wanted", wrap: on(func(s *indexed) {
			s.give = func(q crawldb.DueQuery, data []datum, yield func(crawldb.Candidate, error) bool) {
				if want := q.Want; want != nil {
					q.Want = func(string) bool { return want("http://example.com/") }
				}
				giveDue(q, data, yield)
			}
		})},
		{fault: "Due goes on after a break", rule: "Due lets the loop write and break", wrap: on(func(s *indexed) {
			s.give = func(q crawldb.DueQuery, data []datum, yield func(crawldb.Candidate, error) bool) {
				giveDue(q, data, func(c crawldb.Candidate, err error) bool {
					defer func() { _ = recover() }()
					yield(c, err)
					return true
				})
			}
		})},
		{fault: "Due omits what was written twice", rule: "Due follows every change", wrap: func(e *engine) crawldb.Store {
			written := map[string]int{}
			s := newIndexed(e)
			s.due = func(d datum, q crawldb.DueQuery) bool { return hinted(d, q) && written[d.URL] < 2 }
			return counting{s, written}
		}},
		{fault: "Due ignores its context", rule: "Due heeds its context", wrap: on(func(s *indexed) {
			s.ctx = func(context.Context) context.Context { return context.Background() }
		})},
		{fault: "Due knows what was written since it was opened", rule: "Due follows a Reopen", wrap: sinceOpened},
		{fault: "Due knows what was written since the crash", rule: "Due follows a crash", wrap: sinceOpened},
	}
}

// counting counts how often a record is written.
type counting struct {
	*indexed
	written map[string]int
}

func (s counting) Update(c ctx, b batch) error {
	err := s.indexed.Update(c, b)
	if err == nil {
		for _, url := range b.URLs {
			s.written[url]++
		}
	}
	return err
}

// sinceOpened has an index that is not kept.
func sinceOpened(e *engine) crawldb.Store {
	written := map[string]int{}
	s := newIndexed(e)
	s.due = func(d datum, q crawldb.DueQuery) bool { return hinted(d, q) && written[d.URL] > 0 }
	return counting{s, written}
}
