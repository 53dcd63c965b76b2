package hostdbtest_test

import (
	"bytes"
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

	"github.com/recrawl/recrawl/hostdb"
)

type mutant struct {
	fault, rule   string
	wrap          func(*engine) hostdb.Store
	reopen, crash func(*disk) []write
	hangs         bool
}

type (
	ctx    = context.Context
	host   = hostdb.Host
	hosts  = iter.Seq2[host, error]
	nextFn = func(*host) (*host, error)
)

// faulty is an engine with some methods replaced.
type faulty struct {
	*engine
	get    func(ctx, string) (host, error)
	scan   func(ctx) hosts
	update func(ctx, string, nextFn) error
	sync   func(ctx) error
	close  func() error
}

func (f *faulty) Get(c ctx, name string) (host, error) {
	if f.get != nil {
		return f.get(c, name)
	}
	return f.engine.Get(c, name)
}

func (f *faulty) Scan(c ctx) hosts {
	if f.scan != nil {
		return f.scan(c)
	}
	return f.engine.Scan(c)
}

func (f *faulty) Update(c ctx, name string, next nextFn) error {
	if f.update != nil {
		return f.update(c, name, next)
	}
	return f.engine.Update(c, name, next)
}

func (f *faulty) Sync(c ctx) error {
	if f.sync != nil {
		return f.sync(c)
	}
	return f.engine.Sync(c)
}

func (f *faulty) Close() error {
	if f.close != nil {
		return f.close()
	}
	return f.engine.Close()
}

// changed loses or alters something of each record it writes.
type changed struct {
	*engine
	change func(*host)
}

func (s changed) Update(c ctx, name string, next nextFn) error {
	return s.engine.Update(c, name, func(old *host) (*host, error) {
		h, err := next(old)
		if h == nil || h == old {
			return h, err
		}
		h = clone(h)
		s.change(h)
		return h, err
	})
}

func mutants() []mutant {
	return slices.Concat(fieldMutants(), readMutants(), updateMutants(), lifeMutants(), crashMutants())
}

func fieldMutants() []mutant {
	robots := func(f func(*hostdb.Robots)) func(*host) {
		return func(h *host) {
			for i := range h.Robots {
				f(&h.Robots[i])
			}
		}
	}
	var all []mutant
	for fault, change := range map[string]func(*host){
		"drops NextFetch":           func(h *host) { h.NextFetch = time.Time{} },
		"drops LastFetch":           func(h *host) { h.LastFetch = time.Time{} },
		"drops Grants":              func(h *host) { h.Grants = nil },
		"keeps one of Grants":       func(h *host) { h.Grants = h.Grants[:min(len(h.Grants), 1)] },
		"drops Elapsed":             func(h *host) { h.Elapsed = 0 },
		"drops Spent":               func(h *host) { h.Spent = hostdb.Spent{} },
		"drops Spent.Day":           func(h *host) { h.Spent.Day = time.Time{} },
		"drops CrawlDelay":          func(h *host) { h.CrawlDelay = 0 },
		"drops Backoff":             func(h *host) { h.Backoff = 0 },
		"drops Robots":              func(h *host) { h.Robots = nil },
		"keeps one origin":          func(h *host) { h.Robots = h.Robots[:min(len(h.Robots), 1)] },
		"drops Stats":               func(h *host) { h.Stats = hostdb.Stats{} },
		"drops Signals":             func(h *host) { h.Signals = hostdb.SignalStats{} },
		"drops a name of Signals":   func(h *host) { h.Signals.Segment = "" },
		"drops Pages":               func(h *host) { h.Pages = hostdb.Pages{} },
		"drops a count of Pages":    func(h *host) { h.Pages.ParseFailed = 0 },
		"drops Homepage":            func(h *host) { h.Homepage = "" },
		"drops Score":               func(h *host) { h.Score = 0 },
		"drops DNSFailures":         func(h *host) { h.DNSFailures = 0 },
		"drops ConnectionFailures":  func(h *host) { h.ConnectionFailures = 0 },
		"drops LastCheck":           func(h *host) { h.LastCheck = time.Time{} },
		"drops Overdue":             func(h *host) { h.Overdue = 0 },
		"drops Fields":              func(h *host) { h.Fields = nil },
		"drops a zero of Fields":    func(h *host) { maps.DeleteFunc(h.Fields, func(_ string, v float64) bool { return v == 0 }) },
		"drops Counted":             func(h *host) { h.Counted = time.Time{} },
		"drops Origin":              robots(func(r *hostdb.Robots) { r.Origin = "" }),
		"drops Status":              robots(func(r *hostdb.Robots) { r.Status = 0 }),
		"drops Body":                robots(func(r *hostdb.Robots) { r.Body = nil }),
		"drops ETag":                robots(func(r *hostdb.Robots) { r.ETag = "" }),
		"drops LastModified":        robots(func(r *hostdb.Robots) { r.LastModified = "" }),
		"drops Fetched":             robots(func(r *hostdb.Robots) { r.Fetched = time.Time{} }),
		"drops Expires":             robots(func(r *hostdb.Robots) { r.Expires = time.Time{} }),
		"drops FailingSince":        robots(func(r *hostdb.Robots) { r.FailingSince = time.Time{} }),
		"keeps seconds":             func(h *host) { h.CrawlDelay = h.CrawlDelay.Truncate(time.Second) },
		"counts in floating point":  func(h *host) { h.Stats.Bytes = int64(float64(h.Stats.Bytes)) },
		"invalid UTF-8 is replaced": robots(func(r *hostdb.Robots) { r.Body = []byte(strings.ToValidUTF8(string(r.Body), "\ufffd")) }),
		"limits a body to 64 KiB":   robots(func(r *hostdb.Robots) { r.Body = r.Body[:min(len(r.Body), 64<<10)] }),
	} {
		all = append(all, mutant{fault: fault, rule: "every field is kept", wrap: func(e *engine) hostdb.Store { return changed{e, change} }})
	}
	return all
}

func readMutants() []mutant {
	onScan := func(f func(e *engine, c ctx, yield func(host, error) bool)) func(*engine) hostdb.Store {
		return func(e *engine) hostdb.Store {
			return &faulty{engine: e, scan: func(c ctx) hosts {
				return func(yield func(host, error) bool) { f(e, c, yield) }
			}}
		}
	}
	return []mutant{
		{fault: "missing is a zero record", rule: "a missing host is ErrNotFound", wrap: func(e *engine) hostdb.Store {
			return &faulty{engine: e, get: func(c ctx, name string) (host, error) {
				h, err := e.Get(c, name)
				if errors.Is(err, hostdb.ErrNotFound) {
					err = nil
				}
				return h, err
			}}
		}},
		{fault: "missing is another error", rule: "a missing host is ErrNotFound", wrap: func(e *engine) hostdb.Store {
			return &faulty{engine: e, get: func(c ctx, name string) (host, error) {
				h, err := e.Get(c, name)
				if errors.Is(err, hostdb.ErrNotFound) {
					err = io.EOF
				}
				return h, err
			}}
		}},
		{fault: "takes the case of a name for nothing", rule: "a missing host is ErrNotFound", wrap: func(e *engine) hostdb.Store {
			return &faulty{engine: e, get: func(c ctx, name string) (host, error) { return e.Get(c, strings.ToLower(name)) }}
		}},
		{fault: "names become valid UTF-8 when reopened", rule: "any string is a name", reopen: func(d *disk) []write {
			for i := range d.log {
				d.log[i].name = strings.ToValidUTF8(d.log[i].name, "?")
			}
			return d.log
		}},
		{fault: "merges with the record before", rule: "a record replaces the whole record before it", wrap: func(e *engine) hostdb.Store {
			return &faulty{engine: e, update: func(c ctx, name string, next nextFn) error {
				return e.Update(c, name, func(old *host) (*host, error) {
					h, err := next(old)
					if h != nil && old != nil && h != old && h.Robots == nil {
						h = clone(h)
						h.Robots = old.Robots
					}
					return h, err
				})
			}}
		}},
		{fault: "gives out its own memory", rule: "the caller owns what it gets", wrap: func(e *engine) hostdb.Store {
			shared := map[string][]hostdb.Robots{}
			return &faulty{engine: e, get: func(c ctx, name string) (host, error) {
				h, err := e.Get(c, name)
				if kept, ok := shared[name]; ok {
					h.Robots = kept
				} else {
					shared[name] = h.Robots
				}
				return h, err
			}}
		}},
		{fault: "gives out its own map", rule: "the caller owns what it gets", wrap: func(e *engine) hostdb.Store {
			shared := map[string]map[string]float64{}
			return &faulty{engine: e, get: func(c ctx, name string) (host, error) {
				h, err := e.Get(c, name)
				if kept, ok := shared[name]; ok {
					h.Fields = kept
				} else {
					shared[name] = h.Fields
				}
				return h, err
			}}
		}},
		{fault: "keeps the memory it is given", rule: "the store keeps nothing that it gets", wrap: func(e *engine) hostdb.Store {
			shared := map[string][]hostdb.Robots{}
			return &faulty{engine: e,
				update: func(c ctx, name string, next nextFn) error {
					return e.Update(c, name, func(old *host) (*host, error) {
						h, err := next(old)
						if h != nil && h != old {
							shared[name] = h.Robots
						}
						return h, err
					})
				},
				get: func(c ctx, name string) (host, error) {
					h, err := e.Get(c, name)
					if err == nil {
						h.Robots = shared[name]
					}
					return h, err
				}}
		}},
		{fault: "an empty store holds a header", rule: "an empty store yields nothing", wrap: onScan(func(e *engine, c ctx, yield func(host, error) bool) {
			if yield(host{}, nil) {
				e.Scan(c)(yield)
			}
		})},
		{fault: "scans in the order of labels", rule: "a scan is in the order of the names", wrap: onScan(func(e *engine, c ctx, yield func(host, error) bool) {
			var all []host
			for h, err := range e.Scan(c) {
				if err != nil {
					yield(h, err)
					return
				}
				all = append(all, h)
			}
			reversed := func(name string) []string {
				labels := strings.Split(name, ".")
				slices.Reverse(labels)
				return labels
			}
			slices.SortFunc(all, func(a, b host) int { return slices.Compare(reversed(a.Name), reversed(b.Name)) })
			for _, h := range all {
				if !yield(h, nil) {
					return
				}
			}
		})},
		{fault: "goes on after a break", rule: "a scan stops when the loop breaks", wrap: onScan(func(e *engine, c ctx, yield func(host, error) bool) {
			for h, err := range e.Scan(c) {
				func() {
					defer func() { _ = recover() }()
					yield(h, err)
				}()
			}
		})},
		{fault: "a scan works once", rule: "a scan can be run again", wrap: func(e *engine) hostdb.Store {
			return &faulty{engine: e, scan: func(c ctx) hosts {
				used := false
				return func(yield func(host, error) bool) {
					if !used {
						used = true
						e.Scan(c)(yield)
					}
				}
			}}
		}},
		{fault: "a scan holds a lock while it yields", rule: "the loop may write", hangs: true, wrap: func(e *engine) hostdb.Store {
			var mu sync.RWMutex
			return &faulty{engine: e,
				scan: func(c ctx) hosts {
					return func(yield func(host, error) bool) {
						mu.RLock()
						defer mu.RUnlock()
						e.Scan(c)(yield)
					}
				},
				update: func(c ctx, name string, next nextFn) error {
					mu.Lock()
					defer mu.Unlock()
					return e.Update(c, name, next)
				}}
		}},
		{fault: "tears records", rule: "a reader sees whole records", wrap: func(e *engine) hostdb.Store {
			var writes meeting
			return &faulty{engine: e,
				get: func(c ctx, name string) (host, error) {
					h, err := e.Get(c, name)
					writes.await()
					if again, e := e.Get(c, name); err == nil && e == nil {
						h.Stats = again.Stats
					}
					return h, err
				},
				update: func(c ctx, name string, next nextFn) error {
					writes.n.Add(1)
					return e.Update(c, name, next)
				}}
		}},
	}
}

func updateMutants() []mutant {
	onUpdate := func(f func(e *engine, c ctx, name string, next nextFn) error) func(*engine) hostdb.Store {
		return func(e *engine) hostdb.Store {
			return &faulty{engine: e, update: func(c ctx, name string, next nextFn) error { return f(e, c, name, next) }}
		}
	}
	onNext := func(f func(old *host, next nextFn) (*host, error)) func(*engine) hostdb.Store {
		return onUpdate(func(e *engine, c ctx, name string, next nextFn) error {
			return e.Update(c, name, func(old *host) (*host, error) { return f(old, next) })
		})
	}
	readThenWrite := func(e *engine) hostdb.Store {
		var readers meeting
		return &faulty{engine: e, update: func(c ctx, name string, next nextFn) error {
			var old *host
			if h, err := e.Get(c, name); err == nil {
				old = &h
			}
			h, err := next(old)
			if err != nil {
				return err
			}
			readers.arrive()
			return e.Update(c, name, func(*host) (*host, error) { return h, nil })
		}}
	}
	return []mutant{
		{fault: "none is a zero record", rule: "next gets the stored record", wrap: onNext(func(old *host, next nextFn) (*host, error) {
			if old == nil {
				old = &host{}
			}
			return next(old)
		})},
		{fault: "next is not told the robots", rule: "next gets the stored record", wrap: onNext(func(old *host, next nextFn) (*host, error) {
			if old != nil {
				old.Robots = nil
			}
			return next(old)
		})},
		{fault: "a body that is given back is lost", rule: "what next returns is kept", wrap: onNext(func(old *host, next nextFn) (*host, error) {
			h, err := next(old)
			if old == nil || h == nil || h == old {
				return h, err
			}
			h = clone(h)
			for i := range h.Robots {
				if i < len(old.Robots) && bytes.Equal(h.Robots[i].Body, old.Robots[i].Body) {
					h.Robots[i].Body = nil
				}
			}
			return h, err
		})},
		{fault: "nil leaves", rule: "nil deletes a record, old leaves it alone", wrap: onNext(func(old *host, next nextFn) (*host, error) {
			h, err := next(old)
			if h == nil {
				h = old
			}
			return h, err
		})},
		{fault: "old deletes", rule: "nil deletes a record, old leaves it alone", wrap: onNext(func(old *host, next nextFn) (*host, error) {
			h, err := next(old)
			if h == old {
				h = nil
			}
			return h, err
		})},
		{fault: "keeps a record under the name it bears", rule: "a record is stored under the name of the update", wrap: onUpdate(func(e *engine, c ctx, name string, next nextFn) error {
			var moved *host
			err := e.Update(c, name, func(old *host) (*host, error) {
				h, err := next(old)
				if moved = nil; h != nil && h.Name != name {
					moved = h
					return old, err
				}
				return h, err
			})
			if err != nil || moved == nil {
				return err
			}
			return e.Update(c, moved.Name, func(*host) (*host, error) { return moved, nil })
		})},
		{fault: "an error of next is ignored", rule: "an error from next changes nothing", wrap: onNext(func(old *host, next nextFn) (*host, error) {
			h, _ := next(old)
			return h, nil
		})},
		{fault: "an error of next is returned after the write", rule: "an error from next changes nothing", wrap: onUpdate(func(e *engine, c ctx, name string, next nextFn) error {
			var failed error
			err := e.Update(c, name, func(old *host) (h *host, _ error) {
				h, failed = next(old)
				return h, nil
			})
			return errors.Join(err, failed)
		})},
		{fault: "a grant is read, then written", rule: "exactly one of many rivals gets a grant", wrap: readThenWrite},
		{fault: "reads, then writes", rule: "overlapping updates lose nothing", wrap: readThenWrite},
	}
}

func lifeMutants() []mutant {
	bg := context.Background()
	done, closed := "a done context changes nothing", "a closed store is ErrClosed"
	with := func(f func(*engine) faulty) func(*engine) hostdb.Store {
		return func(e *engine) hostdb.Store {
			m := f(e)
			m.engine = e
			return &m
		}
	}
	return []mutant{
		{fault: "Get ignores its context", rule: done, wrap: with(func(e *engine) faulty {
			return faulty{get: func(_ ctx, name string) (host, error) { return e.Get(bg, name) }}
		})},
		{fault: "Scan ignores its context", rule: done, wrap: with(func(e *engine) faulty {
			return faulty{scan: func(ctx) hosts { return e.Scan(bg) }}
		})},
		{fault: "Update ignores its context", rule: done, wrap: with(func(e *engine) faulty {
			return faulty{update: func(_ ctx, name string, next nextFn) error { return e.Update(bg, name, next) }}
		})},
		{fault: "Sync ignores its context", rule: done, wrap: with(func(e *engine) faulty {
			return faulty{sync: func(ctx) error { return e.Sync(bg) }}
		})},
		{fault: "a closed store is another error", rule: closed, wrap: with(func(e *engine) faulty {
			return faulty{update: func(c ctx, name string, next nextFn) error {
				err := e.Update(c, name, next)
				if errors.Is(err, hostdb.ErrClosed) {
					err = errors.New("bad handle")
				}
				return err
			}}
		})},
		{fault: "a second Close fails", rule: closed, wrap: with(func(e *engine) faulty {
			n := 0
			return faulty{close: func() error {
				if n++; n > 1 {
					return hostdb.ErrClosed
				}
				return e.Close()
			}}
		})},
		{fault: "all stores are one", rule: "stores are independent", wrap: func() func(e *engine) hostdb.Store {
			var one *engine
			return func(e *engine) hostdb.Store {
				if one == nil {
					one = e
				}
				return &faulty{engine: one, close: func() error { return nil }}
			}
		}()},
		{fault: "loses its last update when reopened", rule: "everything is there after Reopen", reopen: func(d *disk) []write {
			return d.log[:max(len(d.log)-1, 0)]
		}},
		{fault: "the first change wins when reopened", rule: "random steps agree with a map", reopen: func(d *disk) []write {
			seen := map[string]bool{}
			return slices.DeleteFunc(d.log, func(w write) bool {
				was := seen[w.name]
				seen[w.name] = true
				return was
			})
		}},
	}
}

func crashMutants() []mutant {
	asked := "a host asked before a crash counts as asked at opening"
	return []mutant{
		{fault: "a crash loses what was synced", rule: "a crash keeps what was synced", crash: func(d *disk) []write { return d.log[:len(d.log)/2] }},
		{fault: "a crash forgets who was asked", rule: asked, crash: func(d *disk) []write { return d.log[:d.synced] }},
		{fault: "busy hosts stay busy after a crash", rule: asked, crash: crashed(func(h host, now time.Time) host {
			again := h.AfterCrash(now, now)
			again.Grants = h.Grants
			return again
		})},
		{fault: "busy hosts are free after a crash", rule: asked, crash: crashed(func(h host, now time.Time) host {
			h.Grants = nil
			return h.AfterCrash(now, now)
		})},
		{fault: "a crash lets asked hosts be asked at once", rule: asked, crash: crashed(func(h host, now time.Time) host {
			h = h.AfterCrash(now, now)
			h.NextFetch = now
			return h
		})},
		{fault: "a crash forgets the robots", rule: asked, crash: crashed(func(h host, now time.Time) host {
			h.Robots = nil
			return h.AfterCrash(now, now)
		})},
		{fault: "a crash makes every host wait", rule: "a host not asked before a crash stays as it was", crash: crashed(func(h host, now time.Time) host {
			if next := now.Add(time.Minute); next.After(h.NextFetch) {
				h.NextFetch = next
			}
			return h
		})},
		{fault: "a crash counts from the request", rule: "a crash lets no host be asked sooner", crash: func(d *disk) []write { return d.log[:d.synced] }},
		{fault: "every opening is taken for a crash", rule: "an orderly Close changes no host", reopen: crashed(askedAgain)},
		{fault: "Close does not sync", rule: "Close syncs", reopen: func(d *disk) []write { return d.log[:d.synced] }},
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
