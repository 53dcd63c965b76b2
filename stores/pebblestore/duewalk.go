package pebblestore

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

// Due implements [crawldb.DueStore]: it reads the due index from its best level
// on. Levels are an eighth of an octave wide, and in a level candidates come in
// key order. Every candidate is due by the index, except for those beyond the
// horizon, whose records must be consulted.
// The first call on a store without an index builds it, and a call in a later
// hour than the one before moves what has become due: both cost some
// microseconds per record, once.
func (s *crawlStore) Due(ctx context.Context, q crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error] {
	return func(yield func(crawldb.Candidate, error) bool) {
		w := dueWalk{s: s, q: q, now: q.Now.UnixMilli(), beyond: math.MaxInt64, floor: lastLevel, left: q.Limit, yield: yield}
		w.next.from, w.ask = math.MaxInt64, s.due.tour
		w.clock = q.Now.Add(-max(q.AheadOfClock, 0)).UnixMilli()
		if !q.DueBeyond.IsZero() {
			w.beyond = q.DueBeyond.UnixMilli()
		}
		if q.MinPriority > 0 {
			w.floor = level(q.MinPriority)
		}
		err := w.run(ctx)
		if err == nil && !w.stopped && q.NotDue != nil {
			err = w.tellNext(ctx)
		}
		if w.passed > w.s.due.tooMany && w.markIsLate() {
			s.due.late.Store(true)
		}
		if err != nil && !w.stopped {
			yield(crawldb.Candidate{}, fmt.Errorf("pebblestore: due: %w", err))
		}
	}
}

// A dueWalk is one sequence of candidates.
type dueWalk struct {
	s                  *crawlStore
	q                  crawldb.DueQuery
	now, beyond, clock int64 // ms
	floor              uint16
	left               int // candidates, if the query has a limit
	yield              func(crawldb.Candidate, error) bool
	stopped            bool // by the loop or by the limit

	passed int // entries that were not due, and not because of a lease
	spent  int // on unwanted hosts, see seekCost
	ask    int // when to check next whether that is too much
	tour   *tour
	depth  uint16 // of the ready table, as far as it is known
	deeper bool   // the tour wants it completed
	next   hint   // the earliest of those not due
	hosts  hostFilter
	page   hintPage
	side   sideList
	keys   crawldb.Keys
	buf    []byte
	texts  texts
}

// A hint is an entry with the key of its record.
type hint struct {
	entry
	level uint16
	key   []byte
	value []byte // if it has all of the record
}

// hintPage is a run of hints read at a time; see page.
type hintPage struct {
	hints   []hint
	buf     []byte
	changes uint64 // that of the store before the page was read
	unsure  bool   // records were changed meanwhile
}

func (p *hintPage) reset(s *crawlStore) {
	p.hints, p.buf, p.changes, p.unsure = p.hints[:0], p.buf[:0], s.changes.Load(), false
}

// end is called after the page was read. Entries are as they were when reading began, and
// leases were checked later: if something changed in between, they may not fit together.
func (p *hintPage) end(s *crawlStore) { p.unsure = s.changes.Load() != p.changes }

func (p *hintPage) full(size int) bool {
	return len(p.hints) >= size || len(p.buf) >= rows.MaxPageBytes
}

// add adds an entry with its key in the ready table. If the record has a lease, even one
// that has ended, the entry does not have all of it.
func (p *hintPage) add(e entry, key, value []byte, leased bool) {
	from := len(p.buf)
	p.buf = append(p.buf, key[readyPrefix:]...)
	h := hint{entry: e, level: binary.BigEndian.Uint16(key[1:]), key: p.buf[from:len(p.buf):len(p.buf)]}
	if e.rest != nil && !leased {
		from = len(p.buf)
		p.buf = append(p.buf, value...)
		h.value = p.buf[from:len(p.buf):len(p.buf)]
	}
	h.rest = nil
	p.hints = append(p.hints, h)
}

// The page of a level is kept small enough that little of it is wasted when its
// hosts are full.
const largestHints = 1024

func (w *dueWalk) markIsLate() bool {
	mark := w.s.due.state.Load().mark
	return len(mark) >= 4 && int64(binary.BigEndian.Uint32(mark)) > int64(bucket(w.clock))+tooLate
}

// shows reports whether an entry, whose record has a lease that ends at end,
// matches the query.
func (w *dueWalk) shows(e entry, end int64, leased bool) bool {
	return (e.from <= w.now || e.from > w.beyond) && !(leased && end > w.now)
}

// run returns nil if the sequence has ended or was stopped.
func (w *dueWalk) run(ctx context.Context) error {
	for {
		if err := w.s.prepare(ctx, w.clock); err != nil {
			return err
		}
		moves := w.s.due.moves.Load()
		if w.s.due.late.Load() { // it was set meanwhile
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
func (w *dueWalk) pass(ctx context.Context, moves uint64) (whole bool, err error) {
	w.side, w.tour, w.depth, w.deeper = sideList{}, nil, w.s.due.state.Load().depth(), false
	if err := w.readSide(ctx); err != nil {
		return false, err
	}
	lower, more := []byte{byte(codec.ReadyTable)}, true
	for size := rows.FirstPageSize; more; size = min(size*4, largestHints) {
		if w.tour != nil {
			more, err = w.readTour(ctx, size)
		} else {
			lower, more, err = w.readReady(ctx, size, lower)
		}
		if err != nil {
			return false, err
		}
		if w.s.due.moves.Load() != moves {
			return false, nil
		}
		for _, h := range w.page.hints {
			if err := w.emitSide(ctx, h.level); err != nil || w.stopped {
				return true, err
			}
			if err := w.emit(ctx, h, w.page.unsure); err != nil || w.stopped {
				return true, err
			}
		}
		switch {
		case w.deeper:
			err = w.deepen(ctx)
		case !more && w.tour == nil:
			more, err = w.below(ctx)
		}
		if err != nil {
			return false, err
		}
	}
	err = w.emitSide(ctx, math.MaxUint16)
	return w.stopped || w.s.due.moves.Load() == moves, err
}

// emit yields a candidate.
func (w *dueWalk) emit(ctx context.Context, h hint, unsure bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// URL and token share one string.
	w.buf = w.keys.AppendURL(w.buf[:0], h.key)
	n := len(w.buf)
	w.buf = appendToken(w.buf, w.page.changes, h.value)
	all := w.texts.add(w.buf)
	c := crawldb.Candidate{URL: all[:n], Priority: h.priority, Due: h.from <= w.now && !unsure, Token: all[n:]}
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

// texts makes strings of bytes, some kilobytes at a time: the garbage collector sees
// each block as a single object.
type texts struct {
	b    strings.Builder
	room int
}

func (t *texts) add(b []byte) string {
	from := t.b.Len()
	if t.b.Cap()-from < len(b) {
		t.room = min(max(2*t.room, 512), 4<<10)
		t.b, from = strings.Builder{}, 0
		t.b.Grow(max(t.room, len(b)))
	}
	t.b.Write(b)
	return t.b.String()[from:]
}

// readReady reads a page of candidates of the ready table from lower on, and
// returns where the next page begins.
func (w *dueWalk) readReady(ctx context.Context, size int, lower []byte) (next []byte, more bool, err error) {
	d := w.s.db
	if err := d.enter(ctx, &w.s.view); err != nil {
		return nil, false, err
	}
	defer d.leave()
	w.page.reset(w.s)
	upper := belowKey(min(w.floor, w.depth))
	if bytes.Compare(lower, upper) >= 0 {
		return nil, false, nil
	}
	it, err := d.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, false, d.outcome("due index", err)
	}
	defer it.Close()
	defer w.page.end(w.s)
	w.hosts.yes = false
	leases := leaseView{s: w.s, it: it}
	defer leases.close()
	n := 0
	for ok := it.First(); ok; {
		if n++; n%checkEvery == 0 {
			if err := d.goingOn(ctx, &w.s.view); err != nil {
				return nil, false, err
			}
		}
		if w.page.full(size) {
			return bytes.Clone(it.Key()), true, nil
		}
		if w.q.WantHost != nil && !w.hosts.wants(it.Key(), readyPrefix, w.q.WantHost) {
			if w.spent++; w.spent >= w.ask {
				if is, err := w.stuck(); err != nil {
					return nil, false, err
				} else if is {
					return nil, true, w.planBeside(ctx, it)
				}
			}
			if skip := w.hosts.behind(); skip != nil {
				w.spent += seekCost
				ok = it.SeekGE(skip)
			} else {
				ok = it.Next()
			}
			continue
		}
		if err := w.take(it, &leases); err != nil {
			return nil, false, err
		}
		ok = it.Next()
	}
	return nil, false, d.outcome("due index", it.Error())
}

// take adds the current entry of an iterator over the ready table to the page,
// if it matches the query.
func (w *dueWalk) take(it *pebble.Iterator, leases *leaseView) error {
	key := it.Key()[readyPrefix:]
	end, leased, err := leases.find(key)
	if err != nil {
		return err
	}
	if leased && end > w.now {
		return nil // there may be many of these; see firstLease
	}
	value, err := it.ValueAndErr()
	if err != nil {
		return w.s.db.outcome("due index", err)
	}
	e, err := w.s.readyEntry(it.Key(), value)
	if err != nil {
		return err
	}
	if !w.shows(e, end, leased) {
		w.passed++
		w.later(e, key, end)
	} else if !(w.q.MinPriority > 0 && !(e.priority >= w.q.MinPriority)) {
		w.page.add(e, it.Key(), value, leased)
	}
	return nil
}

// later records an entry that is not due, whose record has a lease that ends at
// end.
func (w *dueWalk) later(e entry, key []byte, end int64) {
	if e.rest, e.from = nil, max(e.from, end); e.from < w.next.from {
		w.next = hint{entry: e, key: bytes.Clone(key)}
	}
}

// tellNext reports the entry that is due next.
func (w *dueWalk) tellNext(ctx context.Context) error {
	if err := w.firstOfWheel(ctx); err != nil {
		return err
	}
	if err := w.firstLease(ctx); err != nil || w.next.key == nil {
		return err
	}
	w.q.NotDue(&crawldb.Datum{URL: crawldb.URLOf(string(w.next.key)), Priority: w.next.priority, FetchTime: time.UnixMilli(w.next.from).UTC()})
	return nil
}

// firstOfWheel records what becomes due next in the wheel. Buckets after that of what is
// already recorded need not be read.
func (w *dueWalk) firstOfWheel(ctx context.Context) error {
	lower := codec.WheelTable.Key(string(w.s.due.state.Load().mark))
	return w.wheel(ctx, lower, []byte{byte(codec.WheelTable) + 1}, func(e entry, key []byte, end int64, leased bool) (bool, error) {
		if w.next.key != nil && bucket(e.from) > bucket(w.next.from) {
			return false, nil
		}
		if !w.shows(e, end, leased) {
			w.later(e, key[wheelPrefix:], end)
		}
		return true, nil
	})
}

// firstLease records the first lease to end before anything recorded. Leased entries
// of the ready table were not recorded.
func (w *dueWalk) firstLease(ctx context.Context) error {
	if end, known := w.s.leases.first(w.now); known && end >= w.next.from {
		return nil
	}
	d := w.s.db
	if err := d.enter(ctx, &w.s.view); err != nil {
		return err
	}
	defer d.leave()
	it, err := d.db.NewIter(codec.LeaseTable.All())
	if err != nil {
		return d.outcome("due index", err)
	}
	defer it.Close()
	records, err := rows.Join(it, codec.CrawlTable)
	if err != nil {
		return d.outcome("due index", err)
	}
	defer records.Close()
	var keys crawldb.Keys
	return w.s.each(ctx, it, func(key, lease []byte) error {
		end, err := leaseEndOf(lease)
		if err == nil && (end <= w.now || end >= w.next.from) {
			return nil
		}
		value, err := records.Find(key)
		if err := d.outcome("due index", err); err != nil || value == nil {
			return err
		}
		var r crawldb.Datum
		if err := w.s.decode(&r, &keys, key[1:], value, lease); err != nil {
			return err
		}
		w.later(entryOf(&r), key[1:], end)
		return nil
	})
}

// wheel calls each with the entries of the wheel from lower to upper, until it
// returns false. The keys are those of the table, and valid for the call only; end
// is the end of the record's lease.
func (w *dueWalk) wheel(ctx context.Context, lower, upper []byte, each func(e entry, key []byte, end int64, leased bool) (more bool, err error)) error {
	d := w.s.db
	if err := d.enter(ctx, &w.s.view); err != nil {
		return err
	}
	defer d.leave()
	it, err := d.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return d.outcome("due index", err)
	}
	defer it.Close()
	leases := leaseView{s: w.s, it: it}
	defer leases.close()
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if n++; n%checkEvery == 0 {
			if err := d.goingOn(ctx, &w.s.view); err != nil {
				return err
			}
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return d.outcome("due index", err)
		}
		e, err := w.s.wheelEntry(it.Key(), value)
		if err != nil {
			return err
		}
		end, leased, err := leases.find(it.Key()[wheelPrefix:])
		if err != nil {
			return err
		}
		if more, err := each(e, it.Key(), end, leased); err != nil {
			return err
		} else if !more {
			break
		}
	}
	return d.outcome("due index", it.Error())
}

// A hostFilter asks whether hosts are wanted, but not again once one is not.
type hostFilter struct {
	group    []byte // of the last key asked about, up to the end of its host
	host     string // of the group, if it may be wanted
	no       bool   // the group is not wanted
	yes      bool   // it is wanted, until the loop continues
	unwanted map[string]struct{}
	steps    int // entries of a host that is not wanted
	keys     crawldb.Keys
	buf      []byte
}

// wants reports whether the host of a key of an index is wanted.
func (f *hostFilter) wants(key []byte, prefix int, want func(string) bool) bool {
	if len(f.group) == 0 || !bytes.HasPrefix(key, f.group) {
		own := key[prefix:]
		end := bytes.IndexByte(own, ')')
		if end < 0 || own[0] == '!' { // only crawldb can find the host
			f.group, f.steps, f.yes = f.group[:0], 0, false
			return want(crawldb.Host(crawldb.URLOf(string(own))))
		}
		f.group, f.steps, f.yes = append(f.group[:0], key[:prefix+end+1]...), 0, false
		if _, f.no = f.unwanted[string(own[:end])]; !f.no {
			f.host = f.hostOf(own, end)
		}
	}
	if f.yes || f.no {
		return f.yes
	}
	if f.yes = want(f.host); f.yes {
		return true
	}
	if f.unwanted == nil {
		f.unwanted = map[string]struct{}{}
	}
	f.no, f.unwanted[string(f.group[prefix:len(f.group)-1])] = true, struct{}{}
	return false
}

// hostOf returns the host of a key, of which the first end bytes name it.
func (f *hostFilter) hostOf(own []byte, end int) string {
	if path := bytes.IndexByte(own[end:], '/'); path >= 0 {
		own = own[:end+path+1]
	}
	f.buf = f.keys.AppendURL(f.buf[:0], own)
	return crawldb.Host(string(f.buf))
}

// behind returns the first key that can follow those of the host last asked
// about, nil if a single step is as good.
func (f *hostFilter) behind() []byte {
	if f.steps++; f.steps < seekFrom || len(f.group) == 0 {
		return nil
	}
	f.group[len(f.group)-1]++ // no key has this
	skip := f.group
	f.group, f.steps = nil, 0
	return skip
}

// sideList holds candidates that are still in the wheel: those that become due between
// the clock and the time of the query, and those beyond the horizon. They are few, unless
// the query looks far ahead. If they do not fit, the rest is read again later.
type sideList struct {
	best worstHint
	done int   // hints already yielded
	more bool  // there are more after the last
	last *hint // last hint of the previous list
	// unsure is that of a page.
	unsure bool
}

const sideSize = 1 << 16

// readSide fills the list with the best hints after last.
func (w *dueWalk) readSide(ctx context.Context) error {
	l := &w.side
	l.best, l.done, l.more = l.best[:0], 0, false
	changes := w.s.changes.Load()
	defer func() { l.unsure = w.s.changes.Load() != changes }()
	mark := w.s.due.state.Load().mark
	first := uint32(0)
	if len(mark) >= 4 {
		first = binary.BigEndian.Uint32(mark)
	}
	// Due records begin at the mark, and those beyond the horizon are at the end.
	until := first
	if b := bucket(w.now) + 1; b > first {
		until = b
		if err := w.readWheel(ctx, first, until); err != nil {
			return err
		}
	}
	if w.beyond != math.MaxInt64 {
		if err := w.readWheel(ctx, max(bucket(w.beyond), until), math.MaxUint32); err != nil {
			return err
		}
	}
	slices.SortFunc(l.best, hint.compare)
	return nil
}

// readWheel adds the matching entries of some buckets. The list is empty if they begin at
// the mark.
func (w *dueWalk) readWheel(ctx context.Context, from, to uint32) error {
	if from >= to {
		return nil
	}
	w.hosts.yes = false
	stale := w.s.due.state.Load().stale
	if stale && to < math.MaxUint32 && to-from > soonHours {
		if err := w.scanWheel(ctx, to); !errors.Is(err, ErrDamaged) {
			return err
		}
		// Records that cannot be read cost their pages the new priorities, and the others a read each.
		w.side.best, w.side.more, w.hosts.yes = w.side.best[:0], false, false
	}
	lower := binary.BigEndian.AppendUint32([]byte{byte(codec.WheelTable)}, from)
	upper := binary.BigEndian.AppendUint32([]byte{byte(codec.WheelTable)}, to)
	return w.wheel(ctx, lower, upper, func(e entry, key []byte, end int64, leased bool) (bool, error) {
		if !w.shows(e, end, leased) || w.q.WantHost != nil && !w.hosts.wants(key, wheelPrefix, w.q.WantHost) {
			return true, nil
		}
		if stale && len(e.rest) == 0 {
			var d crawldb.Datum
			record, err := rows.Get(w.s.db.db, codec.CrawlTable.Key(string(key[wheelPrefix:])))
			if err = w.s.db.outcome("crawl db", err); err == nil && record != nil {
				err = w.s.decode(&d, &w.keys, key[wheelPrefix:], record, nil)
			}
			switch {
			case errors.Is(err, ErrDamaged): // whoever needs it says so
			case err != nil || record == nil:
				return err == nil, err
			default:
				e.priority = d.Priority
			}
		}
		w.offerSide(e, key[wheelPrefix:])
		return true, nil
	})
}

// scanWheel is readWheel, from the mark on, by a scan of the records, which costs less than
// a read for each entry of many hours.
func (w *dueWalk) scanWheel(ctx context.Context, to uint32) error {
	d := w.s.db
	if err := d.enter(ctx, &w.s.view); err != nil {
		return err
	}
	defer d.leave()
	it, err := d.db.NewIter(codec.CrawlTable.All())
	if err != nil {
		return d.outcome("due index", err)
	}
	defer it.Close()
	leases := leaseView{s: w.s, it: it}
	defer leases.close()
	mark := w.s.due.state.Load().mark
	var r crawldb.Datum
	var place []byte
	return w.s.each(ctx, it, func(key, value []byte) error {
		if err := w.s.decode(&r, &w.keys, key[1:], value, nil); err != nil {
			return err
		}
		e := entryOf(&r)
		if place = e.appendKey(place[:0], mark, key[1:]); codec.Table(place[0]) != codec.WheelTable || bucket(e.from) >= to {
			return nil
		}
		end, leased, err := leases.find(key[1:])
		if err == nil && w.shows(e, end, leased) && (w.q.WantHost == nil || w.hosts.wants(key, 1, w.q.WantHost)) {
			w.offerSide(e, key[1:])
		}
		return err
	})
}

// offerSide adds an entry to the list, if it belongs there.
func (w *dueWalk) offerSide(e entry, key []byte) {
	e.rest, e.of = nil, nil // valid only during the call
	h := hint{entry: e, level: level(e.priority), key: key}
	if w.q.MinPriority > 0 && !(e.priority >= w.q.MinPriority) || w.side.last != nil && h.compare(*w.side.last) <= 0 {
		return
	}
	w.side.offer(h, w.s.due.side)
}

// offer adds a hint, if it is among the best so many.
func (l *sideList) offer(h hint, most int) {
	switch {
	case len(l.best) < most:
		h.key = bytes.Clone(h.key)
		heap.Push(&l.best, h)
	case h.compare(l.best[0]) < 0:
		l.more = true
		h.key = bytes.Clone(h.key)
		l.best[0] = h
		heap.Fix(&l.best, 0)
	default:
		l.more = true
	}
}

// emitSide yields hints of the list whose level is not worse.
func (w *dueWalk) emitSide(ctx context.Context, level uint16) error {
	l := &w.side
	for {
		for ; l.done < len(l.best); l.done++ {
			h := l.best[l.done]
			if h.level > level {
				return nil
			}
			if err := w.emit(ctx, h, l.unsure); err != nil || w.stopped {
				return err
			}
		}
		if !l.more {
			return nil
		}
		last := l.best[len(l.best)-1]
		l.last = &last
		if err := w.readSide(ctx); err != nil {
			return err
		}
	}
}

// compare is negative if a comes before b.
func (a hint) compare(b hint) int {
	return cmp.Or(cmp.Compare(a.level, b.level), bytes.Compare(a.key, b.key))
}

// worstHint is a heap whose root comes last.
type worstHint []hint

func (h worstHint) Len() int           { return len(h) }
func (h worstHint) Less(i, j int) bool { return h[i].compare(h[j]) > 0 }
func (h worstHint) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *worstHint) Push(x any)        { *h = append(*h, x.(hint)) }
func (h *worstHint) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
