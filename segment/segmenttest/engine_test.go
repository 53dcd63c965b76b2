package segmenttest_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/segment/segmenttest"
	"github.com/recrawl/recrawl/stores/memstore"
)

// fault is what a store does wrong. A field that is nil or false is sound.
type fault struct {
	block   func(i int, b []byte) []byte // what is read as block i
	from    func(from int) int           // where reading begins
	stat    func(segment.Info) segment.Info
	keep    func(keep int) int
	err     func(op string, err error) error // what a method returns for an error, or for none
	list    func([]string) []string
	append  func(w segment.BlockWriter, ctx context.Context, b []byte) error
	commit  func(w segment.BlockWriter, ctx context.Context) error
	close   func(w segment.BlockWriter) error
	remove  func(s segment.Store, ctx context.Context, seg string) error
	left    func(crash bool, p saved) (saved, bool) // what of a part is left behind an end
	torn    func(blocks [][]byte) [][]byte
	damaged func(s *engine)
	alias   bool // yields the same memory again and again
	locks   bool // holds a lock while it yields
	tardy   bool // asks the context only before a loop
	deaf    bool // asks no context
	race    bool // gives a part to more than one writer
}

// saved is one part on the disk of an engine.
type saved struct {
	blocks    [][]byte
	synced    int
	committed bool
}

// engine is a memstore with a fault, and with a disk that outlives it.
type engine struct {
	segment.Store
	fault   fault
	locked  sync.Mutex
	mu      sync.Mutex
	disk    map[[2]string]int // parts, and how many of their blocks are synced
	corrupt bool
}

func newEngine(f fault) *engine {
	return &engine{Store: new(memstore.Segments), fault: f, disk: map[[2]string]int{}}
}

func (e *engine) context(ctx context.Context) context.Context {
	if e.fault.deaf {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

func (e *engine) error(op string, err error) error {
	if e.fault.err != nil {
		return e.fault.err(op, err)
	}
	return err
}

func (e *engine) lock() func() {
	if !e.fault.locks {
		return func() {}
	}
	e.locked.Lock()
	return e.locked.Unlock
}

func (e *engine) List(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var names []string
		for name, err := range e.Store.List(e.context(ctx)) {
			if err != nil {
				yield("", err)
				return
			}
			names = append(names, name)
		}
		if e.fault.list != nil {
			names = e.fault.list(names)
		}
		for _, name := range names {
			if !yield(name, nil) {
				return
			}
		}
	}
}

func (e *engine) Stat(ctx context.Context, seg, part string) (segment.Info, error) {
	defer e.lock()()
	info, err := e.Store.Stat(e.context(ctx), seg, part)
	if e.fault.stat != nil && err == nil {
		info = e.fault.stat(info)
	}
	return info, e.error("stat", err)
}

func (e *engine) Read(ctx context.Context, seg, part string, from int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		defer e.lock()()
		if e.corrupt && e.fault.damaged == nil {
			yield(nil, &segment.CorruptError{File: seg + "/" + part, Err: errors.New("bit rot")})
			return
		}
		if e.fault.from != nil {
			from = e.fault.from(from)
		}
		loop := e.context(ctx)
		if e.fault.tardy && ctx.Err() == nil {
			loop = context.WithoutCancel(ctx)
		}
		i := from
		var same []byte
		for b, err := range e.Store.Read(loop, seg, part, from) {
			if err = e.error("read", err); err == nil && e.fault.block != nil {
				b = e.fault.block(i, b)
			}
			if e.fault.alias && err == nil {
				same = append(same[:0], b...)
				b = same
			}
			if !yield(b, err) {
				return
			}
			i++
		}
	}
}

func (e *engine) Append(ctx context.Context, seg, part string, keep int) (segment.BlockWriter, error) {
	defer e.lock()()
	if e.fault.keep != nil {
		keep = e.fault.keep(keep)
	}
	w, err := e.Store.Append(e.context(ctx), seg, part, keep)
	if e.fault.race && errors.Is(err, segment.ErrBusy) {
		return idle{}, nil
	}
	if err = e.error("append", err); err != nil {
		return nil, err
	}
	if w == nil {
		return idle{}, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	at := [2]string{seg, part}
	if keep >= 0 {
		e.disk[at] = min(e.disk[at], keep)
	} else {
		e.disk[at] += 0
	}
	return &writer{w: w, e: e, at: at}, nil
}

func (e *engine) Remove(ctx context.Context, seg string) error {
	if e.fault.remove != nil {
		return e.fault.remove(e.Store, ctx, seg)
	}
	return e.error("remove", e.Store.Remove(e.context(ctx), seg))
}

// idle is a writer that does nothing.
type idle struct{}

func (idle) Append(context.Context, []byte) error { return nil }
func (idle) Sync(context.Context) error           { return nil }
func (idle) Commit(context.Context) error         { return nil }
func (idle) Close() error                         { return nil }

type writer struct {
	w  segment.BlockWriter
	e  *engine
	at [2]string
}

func (w *writer) Append(ctx context.Context, b []byte) error {
	ctx = w.e.context(ctx)
	if w.e.fault.append != nil {
		return w.e.fault.append(w.w, ctx, b)
	}
	return w.e.error("write", w.w.Append(ctx, b))
}

func (w *writer) Sync(ctx context.Context) error {
	if err := w.e.error("sync", w.w.Sync(w.e.context(ctx))); err != nil {
		return err
	}
	info, err := w.e.Store.Stat(ctx, w.at[0], w.at[1])
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	w.e.disk[w.at] = info.Blocks
	return err
}

func (w *writer) Commit(ctx context.Context) error {
	ctx = w.e.context(ctx)
	if w.e.fault.commit != nil {
		return w.e.fault.commit(w.w, ctx)
	}
	return w.e.error("commit", w.w.Commit(ctx))
}

func (w *writer) Close() error {
	if w.e.fault.close != nil {
		return w.e.fault.close(w.w)
	}
	return w.w.Close()
}

// again makes an engine of what another has left.
func (e *engine) again(crash bool) (segment.Store, error) {
	ctx := context.Background()
	out := newEngine(e.fault)
	for at, synced := range e.disk {
		info, err := e.Store.Stat(ctx, at[0], at[1])
		if errors.Is(err, segment.ErrNotFound) {
			continue
		}
		p := saved{synced: synced, committed: info.Committed}
		for b := range e.Store.Read(ctx, at[0], at[1], 0) {
			p.blocks = append(p.blocks, b)
		}
		if crash && !p.committed && e.fault.left == nil {
			// Half of what was not synced is lost.
			p.blocks = p.blocks[:p.synced+(len(p.blocks)-p.synced)/2]
		}
		if e.fault.left != nil {
			var ok bool
			if p, ok = e.fault.left(crash, p); !ok {
				continue
			}
		}
		if err := out.put(at, p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (e *engine) put(at [2]string, p saved) error {
	ctx := context.Background()
	w, err := e.Store.Append(ctx, at[0], at[1], 0)
	if err != nil {
		return err
	}
	e.disk[at] = len(p.blocks)
	for _, b := range p.blocks {
		if err := w.Append(ctx, b); err != nil {
			return err
		}
	}
	if p.committed {
		return w.Commit(ctx)
	}
	return w.Close()
}

func harness(f fault) segmenttest.Harness {
	return segmenttest.Harness{
		Open:   func() (segment.Store, error) { return newEngine(f), nil },
		Reopen: func(s segment.Store) (segment.Store, error) { return s.(*engine).again(false) },
		Crash:  func(s segment.Store) (segment.Store, error) { return s.(*engine).again(true) },
		Tear: func(s segment.Store, seg, part string, n int) error {
			e := s.(*engine)
			var blocks [][]byte
			for b := range e.Store.Read(context.Background(), seg, part, 0) {
				blocks = append(blocks, b)
			}
			if f.torn != nil {
				blocks = f.torn(blocks)
			} else {
				for n > 0 && len(blocks) > 0 {
					last := len(blocks) - 1
					n -= len(blocks[last]) + 1
					blocks = blocks[:last]
				}
			}
			return e.put([2]string{seg, part}, saved{blocks: blocks})
		},
		Damage: func(s segment.Store, seg, part string, at int) error {
			s.(*engine).corrupt = true
			if f.damaged != nil {
				f.damaged(s.(*engine))
			}
			return nil
		},
		Patience: 10 * time.Second,
	}
}

type mutant struct {
	name, rule string
	fault      fault
	hangs      bool
}

// swap makes an error another one for some calls; a nil target is no error.
func swap(op string, from, to error) func(string, error) error {
	return func(o string, err error) error {
		if o == op && errors.Is(err, from) {
			return to
		}
		return err
	}
}

func mutants() []mutant {
	errOther := errors.New("something else")
	return []mutant{
		{name: "an empty part is lost", rule: "a part may have no blocks", fault: fault{left: func(_ bool, p saved) (saved, bool) { return p, len(p.blocks) > 0 }}},
		{name: "a segment of a device's name is refused", rule: "every valid name can be used", fault: fault{append: func(w segment.BlockWriter, ctx context.Context, b []byte) error {
			if bytes.HasPrefix(b, []byte("con ")) {
				return errOther
			}
			return w.Append(ctx, b)
		}}},
		{name: "Sync fails", rule: "Sync has no visible effect", fault: fault{err: swap("sync", nil, errOther)}},
		{name: "yields the beginning of a block", rule: "a reader sees whole blocks in order while a writer writes", fault: fault{block: func(_ int, b []byte) []byte { return b[:len(b)-1] }}},
		{name: "removes nothing that is read", rule: "Remove during reads does no harm", fault: fault{err: swap("remove", nil, segment.ErrBusy)}},
		{name: "a crash loses what was synced of an open part", rule: "after a crash there are no writers and no removed segments", fault: fault{left: func(crash bool, p saved) (saved, bool) { return p, !crash }}},
		{name: "drops empty blocks", rule: "blocks are read as they were appended", fault: fault{append: func(w segment.BlockWriter, ctx context.Context, b []byte) error {
			if len(b) == 0 {
				return w.Sync(ctx)
			}
			return w.Append(ctx, b)
		}}},
		{name: "cuts large blocks", rule: "blocks are read as they were appended", fault: fault{block: func(_ int, b []byte) []byte { return b[:min(len(b), 1<<20)] }}},
		{name: "trims white space", rule: "blocks are read as they were appended", fault: fault{block: func(_ int, b []byte) []byte { return bytes.TrimSpace(b) }}},
		{name: "counts blocks from one", rule: "Read begins with the requested block", fault: fault{from: func(from int) int { return max(from-1, 0) }}},
		{name: "reads everything always", rule: "Read begins with the requested block", fault: fault{from: func(int) int { return 0 }}},
		{name: "tells of no commit", rule: "a part that is being written can be read", fault: fault{stat: func(i segment.Info) segment.Info { i.Committed = false; return i }}},
		{name: "tells of no size", rule: "Stat returns the size", fault: fault{stat: func(i segment.Info) segment.Info { i.Bytes = 0; return i }}},
		{name: "a missing part reads as an error of its own", rule: "a missing part is ErrNotFound", fault: fault{err: swap("read", segment.ErrNotFound, errOther)}},
		{name: "a missing part reads as empty", rule: "a missing part is ErrNotFound", fault: fault{err: swap("stat", segment.ErrNotFound, nil)}},
		{name: "yields the same memory", rule: "the caller owns what it gets", fault: fault{alias: true}},
		{name: "keeps memory", rule: "the store keeps no memory of its caller", fault: lagging()},
		{name: "locks while it yields", rule: "a loop may break, and may use the store", fault: fault{locks: true}, hangs: true},
		{name: "takes a bad name", rule: "an invalid name is ErrName", fault: fault{err: swap("append", segment.ErrName, nil)}},
		{name: "a bad name is missing", rule: "an invalid name is ErrName", fault: fault{err: swap("stat", segment.ErrName, segment.ErrNotFound)}},
		{name: "removes under a bad name", rule: "an invalid name is ErrName", fault: fault{err: swap("remove", segment.ErrName, nil)}},
		{name: "lists in reverse", rule: "List is in order of names", fault: fault{list: func(n []string) []string { slices.Reverse(n); return n }}},
		{name: "lists without the last", rule: "List is in order of names", fault: fault{list: func(n []string) []string { return n[:max(len(n)-1, 0)] }}},
		{name: "keeps all", rule: "Append keeps the blocks it is told to", fault: fault{keep: func(keep int) int {
			if keep == 0 {
				return -1
			}
			return keep
		}}},
		{name: "keeps nothing", rule: "Append keeps the blocks it is told to", fault: fault{keep: func(keep int) int { return min(keep, 0) }}},
		{name: "a negative keep drops all", rule: "Append keeps the blocks it is told to", fault: fault{keep: func(keep int) int { return max(keep, 0) }}},
		{name: "keeps what is not there", rule: "Append that would keep too many blocks is ErrNotFound and changes nothing", fault: fault{err: swap("append", segment.ErrNotFound, nil)}},
		{name: "refuses a second writer with another error", rule: "a part has one writer", fault: fault{err: swap("append", segment.ErrBusy, errOther)}},
		{name: "takes a second writer", rule: "a part has one writer", fault: fault{race: true}},
		{name: "takes many at once", rule: "one of several concurrent Appends wins", fault: fault{race: true}},
		{name: "opens a committed part", rule: "a committed part is complete", fault: fault{err: swap("append", segment.ErrCommitted, nil)}},
		{name: "a committed part is busy", rule: "a committed part is complete", fault: fault{err: swap("append", segment.ErrCommitted, segment.ErrBusy)}},
		{name: "Close commits", rule: "a closed writer leaves the part open", fault: fault{close: func(w segment.BlockWriter) error {
			if err := w.Commit(context.Background()); !errors.Is(err, segment.ErrClosed) {
				return err
			}
			return nil
		}}},
		{name: "Commit only closes", rule: "a committed part is complete", fault: fault{commit: func(w segment.BlockWriter, _ context.Context) error { return w.Close() }}},
		{name: "appends after the end", rule: "a writer after Close or Commit is ErrClosed", fault: fault{err: swap("write", segment.ErrClosed, nil)}},
		{name: "syncs after the end", rule: "a writer after Close or Commit is ErrClosed", fault: fault{err: swap("sync", segment.ErrClosed, nil)}},
		{name: "commits twice", rule: "a writer after Close or Commit is ErrClosed", fault: fault{err: swap("commit", segment.ErrClosed, nil)}},
		{name: "removes nothing", rule: "Remove deletes a segment with all its parts, and no other", fault: fault{remove: func(segment.Store, context.Context, string) error { return nil }}},
		{name: "removes by prefix", rule: "Remove deletes a segment with all its parts, and no other", fault: fault{remove: func(s segment.Store, ctx context.Context, seg string) error {
			for name := range s.List(ctx) {
				if len(name) > len(seg) && name[:len(seg)] == seg {
					s.Remove(ctx, name)
				}
			}
			return s.Remove(ctx, seg)
		}}},
		{name: "misses what is to be removed", rule: "Remove of a missing segment does nothing", fault: fault{remove: func(s segment.Store, ctx context.Context, seg string) error {
			for name := range s.List(ctx) {
				if name == seg {
					return s.Remove(ctx, seg)
				}
			}
			if err := segment.ValidName(seg); err != nil {
				return err
			}
			return segment.ErrNotFound
		}}},
		{name: "removes what is being written", rule: "Remove is ErrBusy while a part is being written", fault: fault{err: swap("remove", segment.ErrBusy, nil)}},
		{name: "ignores contexts", rule: "a done context changes nothing", fault: fault{deaf: true}},
		{name: "ignores contexts in a loop", rule: "a loop ends when its context does", fault: fault{tardy: true}},
		{name: "forgets what was not committed", rule: "Reopen finds everything", fault: fault{left: func(_ bool, p saved) (saved, bool) { return p, p.committed }}},
		{name: "reopens parts as committed", rule: "Reopen finds everything", fault: fault{left: func(_ bool, p saved) (saved, bool) { p.committed = true; return p, true }}},
		{name: "loses what was synced", rule: "a crash keeps what was synced or committed, and a prefix of the rest", fault: fault{left: func(crash bool, p saved) (saved, bool) {
			if crash && !p.committed && p.synced > 0 {
				p.blocks = p.blocks[:p.synced-1]
			}
			return p, true
		}}},
		{name: "loses a block between", rule: "a crash keeps what was synced or committed, and a prefix of the rest", fault: fault{left: func(crash bool, p saved) (saved, bool) {
			if n := len(p.blocks); crash && !p.committed && n-p.synced > 1 {
				p.blocks = slices.Delete(p.blocks, n-2, n-1)
			}
			return p, true
		}}},
		{name: "loses the commit", rule: "a crash keeps what was synced or committed, and a prefix of the rest", fault: fault{left: func(crash bool, p saved) (saved, bool) {
			p.committed = p.committed && !crash
			return p, true
		}}},
		{name: "reads a torn block", rule: "a torn block was never written", fault: fault{torn: func(b [][]byte) [][]byte {
			b[len(b)-1] = b[len(b)-1][:3]
			return b
		}}},
		{name: "reads damage as data", rule: "damage in a committed part is a CorruptError", fault: fault{damaged: func(e *engine) {
			e.fault.block = func(i int, b []byte) []byte {
				if i == 1 {
					return append(b, 1)
				}
				return b
			}
		}}},
		{name: "reads damage as the end", rule: "damage in a committed part is a CorruptError", fault: fault{damaged: func(e *engine) { e.fault.from = func(int) int { return 99 } }}},
		{name: "calls damage by another name", rule: "damage in a committed part is a CorruptError", fault: fault{damaged: func(e *engine) {
			e.fault.err = func(op string, err error) error {
				if op == "read" {
					return errOther
				}
				return err
			}
		}}},
		{name: "swaps two blocks", rule: "any sequence of calls agrees with the model", fault: fault{from: func(from int) int {
			if from == 3 {
				return 4
			}
			return from
		}}},
	}
}

// lagging keeps each block it is given until the next comes.
func lagging() fault {
	held := map[segment.BlockWriter][]byte{}
	var mu sync.Mutex
	flush := func(w segment.BlockWriter, ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		b, ok := held[w]
		delete(held, w)
		if !ok {
			return nil
		}
		return w.Append(ctx, b)
	}
	return fault{
		append: func(w segment.BlockWriter, ctx context.Context, b []byte) error {
			err := flush(w, ctx)
			mu.Lock()
			defer mu.Unlock()
			held[w] = b
			return err
		},
		commit: func(w segment.BlockWriter, ctx context.Context) error {
			return errors.Join(flush(w, ctx), w.Commit(ctx))
		},
		close: func(w segment.BlockWriter) error {
			flush(w, context.Background())
			return w.Close()
		},
	}
}
