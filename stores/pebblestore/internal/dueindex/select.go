package dueindex

import (
	"bytes"
	"context"
	"encoding/binary"
	"iter"
	"math"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

// Due yields the candidates of a query as [crawldb.DueStore] says, from the best level
// on. Levels are an eighth of an octave wide, and in a level candidates come in
// key order. Every candidate is due by the index, except for those beyond the
// horizon, whose records must be consulted.
// The first call on a store without an index builds it, and a call in a later
// hour than the one before moves what has become due: both cost some
// microseconds per record, once.
func (x *Index) Due(ctx context.Context, q crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error] {
	return func(yield func(crawldb.Candidate, error) bool) {
		w := walk{x: x, q: q, now: q.Now.UnixMilli(), horizon: math.MaxInt64, lastLevel: lastLevel, left: q.Limit, yield: yield}
		w.next.dueFrom, w.checkAt = math.MaxInt64, x.TourCost
		w.clock = q.Now.Add(-max(q.AheadOfClock, 0)).UnixMilli()
		if !q.DueBeyond.IsZero() {
			w.horizon = q.DueBeyond.UnixMilli()
		}
		if q.MinPriority > 0 {
			w.lastLevel = levelOf(q.MinPriority)
		}
		err := w.run(ctx)
		if err == nil && !w.stopped && q.NotDue != nil {
			err = w.reportNext(ctx)
		}
		if w.passed > w.x.MaxPassed && w.markIsAhead() {
			x.rebuild.Store(true)
		}
		if err != nil && !w.stopped {
			yield(crawldb.Candidate{}, err)
		}
	}
}

// A walk is one sequence of candidates.
type walk struct {
	x                   *Index
	q                   crawldb.DueQuery
	now, horizon, clock int64  // ms
	lastLevel           uint16 // that matches the query
	left                int    // candidates, if the query has a limit
	yield               func(crawldb.Candidate, error) bool
	stopped             bool // by the loop or by the limit

	passed       int  // entries that were not due, and not because of a lease
	unseenLeases bool // the ready table has entries whose lease was not recorded in next
	spent        int  // on unwanted hosts, see seekCost
	checkAt      int  // when to check next whether that is too much
	tour         *tour
	lastReady    uint16    // the last level of the ready table, as far as it is known
	wantsLevels  bool      // the tour wants more levels there
	next         candidate // the earliest of those not due
	hosts        hostFilter
	page         candidatePage
	side         sideList
	keys         crawldb.Keys
	buf          []byte
}

// A candidate is an entry with the key of its record.
type candidate struct {
	entry
	level uint16
	key   []byte
	value []byte // if it has all of the record
}

// candidatePage is a run of candidates read at a time; see [rows.Page].
type candidatePage struct {
	candidates []candidate
	buf        []byte
	changes    uint64 // that of the store before the page was read
}

func (p *candidatePage) reset(x *Index) {
	p.candidates, p.buf, p.changes = p.candidates[:0], p.buf[:0], x.changes.Load()
}

func (p *candidatePage) full(size int) bool {
	return len(p.candidates) >= size || len(p.buf) >= rows.MaxPageBytes
}

// add adds an entry with its key in the ready table. If the record has a lease, even one
// that has ended, the entry does not have all of it.
func (p *candidatePage) add(e entry, key, value []byte, leased bool) {
	from := len(p.buf)
	p.buf = append(p.buf, key[readyPrefix:]...)
	h := candidate{entry: e, level: binary.BigEndian.Uint16(key[1:]), key: p.buf[from:len(p.buf):len(p.buf)]}
	if e.rest != nil && !leased {
		from = len(p.buf)
		p.buf = append(p.buf, value...)
		h.value = p.buf[from:len(p.buf):len(p.buf)]
	}
	h.rest = nil
	p.candidates = append(p.candidates, h)
}

// A page is kept small enough that little of it is wasted when its
// hosts are full.
const largestPage = 1024

// markIsAhead reports whether the mark is so far ahead of the clock that the index may have to be
// built anew.
func (w *walk) markIsAhead() bool {
	hour, ok := markHour(w.x.state.Load().mark)
	return ok && int64(hour) > int64(hourOf(w.clock))+maxMarkAhead
}

// shows reports whether an entry, whose record has a lease that ends at end,
// matches the query.
func (w *walk) shows(e entry, end int64, leased bool) bool {
	return (e.dueFrom <= w.now || e.dueFrom > w.horizon) && !(leased && end > w.now)
}

// run returns nil if the sequence has ended or was stopped.
func (w *walk) run(ctx context.Context) error {
	for {
		if err := w.x.Prepare(ctx, time.UnixMilli(w.clock)); err != nil {
			return err
		}
		moves := w.x.moves.Load()
		if w.x.rebuild.Load() { // it was set meanwhile
			continue
		}
		whole, err := w.pass(ctx, moves)
		if whole || err != nil {
			return err
		}
	}
}

// pass goes through the index once. whole is false if entries moved meanwhile, so that
// some may have been missed.
func (w *walk) pass(ctx context.Context, moves uint64) (whole bool, err error) {
	w.side, w.tour, w.lastReady, w.wantsLevels = sideList{}, nil, w.x.state.Load().lastReady(), false
	if err := w.readSide(ctx); err != nil {
		return false, err
	}
	lower, more := []byte{byte(codec.ReadyTable)}, true
	for size := rows.FirstPageSize; more; size = min(size*4, largestPage) {
		if w.tour != nil {
			more, err = w.readTour(ctx, size)
		} else {
			lower, more, err = w.readReady(ctx, size, lower)
		}
		if err != nil {
			return false, err
		}
		if w.x.moves.Load() != moves {
			return false, nil
		}
		for _, h := range w.page.candidates {
			if err := w.yieldSide(ctx, h.level); err != nil || w.stopped {
				return true, err
			}
			if err := w.yieldOne(ctx, h); err != nil || w.stopped {
				return true, err
			}
		}
		switch {
		case w.wantsLevels:
			err = w.addLevels(ctx)
		case !more && w.tour == nil:
			more, err = w.tourBelowCut(ctx)
		}
		if err != nil {
			return false, err
		}
	}
	err = w.yieldSide(ctx, math.MaxUint16)
	return w.stopped || w.x.moves.Load() == moves, err
}

// yieldOne yields a candidate.
func (w *walk) yieldOne(ctx context.Context, h candidate) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// URL and token share one string.
	w.buf = w.keys.AppendURL(w.buf[:0], h.key)
	n := len(w.buf)
	w.buf = appendToken(w.buf, w.page.changes, h.value)
	all := string(w.buf)
	c := crawldb.Candidate{URL: all[:n], Priority: h.priority, Due: h.dueFrom <= w.now, Token: all[n:]}
	if w.q.WantHost != nil && !w.q.WantHost(crawldb.Host(c.URL)) {
		return nil
	}
	if !w.yield(c, nil) {
		w.stopped = true
	}
	w.left--
	w.stopped = w.stopped || w.left == 0
	return nil
}

// readReady reads a page of candidates of the ready table from lower on, and
// returns where the next page begins.
func (w *walk) readReady(ctx context.Context, size int, lower []byte) (next []byte, more bool, err error) {
	if err := w.x.store.Enter(ctx); err != nil {
		return nil, false, err
	}
	defer w.x.store.Leave()
	w.page.reset(w.x)
	upper := belowKey(min(w.lastLevel, w.lastReady))
	if bytes.Compare(lower, upper) >= 0 {
		return nil, false, nil
	}
	it, err := w.x.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, false, w.x.store.EngineError(err)
	}
	defer it.Close()
	w.hosts.askAgain()
	leases, err := w.x.leasesOf(it)
	if err != nil {
		return nil, false, err
	}
	defer leases.close()
	n := 0
	for ok := it.First(); ok; {
		if n++; n%rows.CheckEvery == 0 {
			if err := w.x.store.Continue(ctx); err != nil {
				return nil, false, err
			}
		}
		if w.page.full(size) {
			return bytes.Clone(it.Key()), true, nil
		}
		if w.q.WantHost != nil && !w.hosts.wants(it.Key(), readyPrefix, w.q.WantHost) {
			w.unseenLeases = true
			if w.spent++; w.spent >= w.checkAt {
				if more, err := w.passingCostsMore(); err != nil {
					return nil, false, err
				} else if more {
					return nil, true, w.planBeside(ctx, it)
				}
			}
			if next := w.hosts.skip(); next != nil {
				w.spent += seekCost
				ok = it.SeekGE(next)
			} else {
				ok = it.Next()
			}
			continue
		}
		if err := w.take(it, leases); err != nil {
			return nil, false, err
		}
		ok = it.Next()
	}
	return nil, false, w.x.store.EngineError(it.Error())
}

// take adds the current entry of an iterator over the ready table to the page,
// if it matches the query.
func (w *walk) take(it *pebble.Iterator, leases *leases) error {
	key := it.Key()[readyPrefix:]
	end, leased, err := leases.find(key)
	if err != nil {
		return err
	}
	if leased && end > w.now {
		w.unseenLeases = true
		return nil // there may be many of these; see nextLease
	}
	value, err := it.ValueAndErr()
	if err != nil {
		return w.x.store.EngineError(err)
	}
	e, err := w.x.readyEntry(it.Key(), value)
	if err != nil {
		return err
	}
	if !w.shows(e, end, leased) {
		w.passed++
		w.noteLater(e, key, end)
	} else if !(w.q.MinPriority > 0 && !(e.priority >= w.q.MinPriority)) {
		w.page.add(e, it.Key(), value, leased)
	}
	return nil
}
