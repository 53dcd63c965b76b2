package pebblestore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

// dueKey is where the state of the due index is kept.
var dueKey = codec.StateTable.Key("due")

// dueIndex is the state of the due index in memory. Whoever has the turn of the
// crawl db may change it.
type dueIndex struct {
	state atomic.Pointer[dueState]
	// moves is incremented before and after entries move other than by an
	// update: a reader of the index that finds it incremented may have missed
	// some.
	moves atomic.Uint64
	// tailed is how many records tours have read, see readTails.
	tailed atomic.Int64
	// late says that the index must be built anew: because the mark is so far ahead of the
	// clock that selections are slow, or for another reason.
	late atomic.Bool
	// These are stepSize, tooMany, sideSize, tourFrom, mostTails, trimLeast and anewBytes,
	// except in tests; most is how many entries may mature at a time.
	step, tooMany, side, tour, tails, most int
	least                                  int64
	anew                                   uint64
}

const (
	// stepSize is how many entries one batch of building writes.
	stepSize  = 10_000
	stepBytes = 8 << 20 // or more than these bytes
	// A clock that goes back leaves entries in the ready table that are not due.
	// When a selection has passed this many, and the mark is this many buckets ahead
	// of the clock, the index is built anew: that costs some microseconds per
	// record, once; passing them costs a tenth of that, each time.
	tooMany  = 1 << 17
	tooLate  = 24
	seekFrom = 8 // steps over the entries of a host before they are skipped
	// If more than one in anewShare bytes of all entries becomes due at once, and more than
	// anewBytes, because nothing was selected for long, building the index anew costs less
	// than a read for each entry that has no priority: half as much for each record.
	anewShare = 2
	anewBytes = 8 << 20
)

// loadDue reads the state of the index, or sets one. If a store has records but no index,
// its first selection builds it.
func (s *crawlStore) loadDue() error {
	s.due.step, s.due.tooMany, s.due.side, s.due.tour, s.due.most = stepSize, tooMany, sideSize, tourFrom, math.MaxInt
	s.due.tails, s.due.least, s.due.anew = mostTails, trimLeast, anewBytes
	b, err := rows.Get(s.db.db, dueKey)
	if err := s.db.outcome("due index", err); err != nil {
		return err
	}
	if b != nil {
		state, ok, err := parseState(b)
		if err != nil {
			return s.db.damaged("the state of", "the due index", err)
		}
		if !ok { // of another version: clear away what it left
			state = &dueState{foreign: true}
			s.due.late.Store(true)
		}
		s.due.state.Store(state)
		return nil
	}
	any, err := s.db.has(codec.CrawlTable)
	s.due.state.Store(&dueState{whole: !any})
	return err
}

// prepare completes the index, moves its mark to the bucket of the clock, in
// ms, and makes sure that leases are known. It lets updates take turns in
// between.
func (s *crawlStore) prepare(ctx context.Context, clock int64) error {
	anew, err := s.ripeAnew(ctx, markOf(bucket(clock)))
	if err != nil {
		return err
	}
	for tables := 0; ; {
		state := s.due.state.Load()
		moved := state.whole && !s.due.late.Load() && bytes.Compare(state.mark, markOf(bucket(clock))) >= 0
		if moved && s.leases.read() {
			if tables >= tidyHours {
				s.trim(ctx)
				s.db.tidy(ctx, &s.view)
			}
			return nil
		}
		if err := s.db.take(ctx, &s.view, s.turn); err != nil {
			return err
		}
		if moved {
			err = s.readLeases(ctx)
		} else {
			var written int
			written, err = s.step(ctx, clock, anew)
			tables += written
		}
		s.db.give(s.turn)
		if err != nil {
			return err
		}
	}
}

// step does part of the work of prepare, and returns how often tables of what has become due
// were written. The caller has the turn. anew says that it is better to build the index anew
// than to move that much.
func (s *crawlStore) step(ctx context.Context, clock int64, anew bool) (tables int, err error) {
	old, mark := s.due.state.Load(), markOf(bucket(clock))
	if !s.due.late.Load() && old.whole {
		if bytes.Compare(old.mark, mark) >= 0 {
			return 0, nil
		}
		if !anew || !old.stale {
			wrote, err := s.mature(ctx, old, mark)
			if wrote {
				tables = 1
			}
			return tables, err
		}
	}
	batch := s.db.db.NewBatch()
	defer batch.Close()
	var next *dueState
	if s.due.late.Load() || old.whole {
		next, err = s.clear(batch, mark)
	} else {
		next, err = s.build(ctx, batch, old, mark)
	}
	if err != nil {
		return 0, err
	}
	s.due.moves.Add(1)
	defer s.due.moves.Add(1)
	if err := s.commitDue(ctx, batch, next); err != nil {
		return 0, err
	}
	if next.whole {
		return tidyHours, nil // no less than so much that becomes due
	}
	if next.built == nil { // it was cleared
		s.due.late.Store(false)
	}
	return 0, nil
}

// ripeAnew reports whether so much becomes due that the index is better built anew. It does
// not have the turn, as it may take as long as a scan.
func (s *crawlStore) ripeAnew(ctx context.Context, mark []byte) (bool, error) {
	if err := s.db.enter(ctx, &s.view); err != nil {
		return false, err
	}
	defer s.db.leave()
	state := s.due.state.Load()
	if !state.stale || s.db.readOnly || bytes.Compare(state.mark, mark) >= 0 {
		return false, nil
	}
	due, err := s.db.db.EstimateDiskUsage(codec.WheelTable.Key(string(state.mark)), codec.WheelTable.Key(string(mark)))
	if err != nil || due <= s.due.anew {
		return false, s.db.outcome("due index", err)
	}
	var all uint64
	for _, t := range [...]codec.Table{codec.WheelTable, codec.ReadyTable} {
		size, err := s.sizeOf(t)
		if err != nil {
			return false, err
		}
		all += size
	}
	if due <= all/anewShare {
		return false, nil
	}
	// An index that is cleared and cannot be built is none. To move what becomes due needs
	// no records that cannot be read.
	err = s.scan(ctx, crawldb.Range{}, func(crawldb.Datum, error) bool { return true })
	if errors.Is(err, ErrDamaged) {
		return false, nil
	}
	return err == nil, err
}

// commitDue commits a batch together with the new state of the index.
func (s *crawlStore) commitDue(ctx context.Context, batch *pebble.Batch, next *dueState) error {
	if err := batch.Set(dueKey, next.append(nil), nil); err != nil {
		return err
	}
	if err := s.db.commit(ctx, &s.view, batch, pebble.NoSync); err != nil {
		return err
	}
	s.due.state.Store(next)
	return nil
}

// clear begins the index anew.
func (s *crawlStore) clear(batch *pebble.Batch, mark []byte) (*dueState, error) {
	for _, t := range [...]codec.Table{codec.ReadyTable, codec.WheelTable, codec.TallyTable} {
		if err := batch.DeleteRange([]byte{byte(t)}, []byte{byte(t) + 1}, nil); err != nil {
			return nil, err
		}
	}
	return &dueState{mark: mark}, nil
}

// build adds the entries of the next records.
func (s *crawlStore) build(ctx context.Context, batch *pebble.Batch, old *dueState, mark []byte) (*dueState, error) {
	next := &dueState{mark: old.mark, whole: true}
	if next.mark == nil {
		next.mark = mark
	}
	it, err := s.db.db.NewIter(&pebble.IterOptions{
		LowerBound: append([]byte{byte(codec.CrawlTable)}, old.built...),
		UpperBound: []byte{byte(codec.CrawlTable) + 1},
	})
	if err != nil {
		return nil, s.db.outcome("due index", err)
	}
	defer it.Close()
	leases, err := leasesBeside(it)
	if err != nil {
		return nil, s.db.outcome("due index", err)
	}
	defer leases.Close()
	var keys crawldb.Keys
	var d crawldb.Datum
	var key, enc []byte
	var count counter
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if n == s.due.step || batch.Len() > stepBytes {
			next.whole, next.built = false, bytes.Clone(it.Key()[1:])
			break
		}
		if n++; n%checkEvery == 0 {
			if err := s.db.goingOn(ctx, &s.view); err != nil {
				return nil, err
			}
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, s.db.outcome("due index", err)
		}
		lease, err := leases.Find(it.Key())
		if err != nil {
			return nil, s.db.outcome("due index", err)
		}
		if err := s.decode(&d, &keys, it.Key()[1:], value, lease); err != nil {
			return nil, err
		}
		if lease == nil {
			// Before version 4 a lease could be in a record.
			if enc = codec.AppendLease(enc[:0], &d); len(enc) > 0 {
				key = append(append(key[:0], byte(codec.LeaseTable)), it.Key()[1:]...)
				s.leasing.Store(true)
				s.leases.forget()
				if err := batch.Set(key, enc, nil); err != nil {
					return nil, err
				}
			}
		}
		e := entryOf(&d)
		key, enc = e.appendKey(key[:0], next.mark, it.Key()[1:]), e.appendValue(enc[:0])
		if err := batch.Set(key, enc, nil); err != nil {
			return nil, err
		}
		if err := count.entry(batch, key, 1); err != nil {
			return nil, err
		}
	}
	if err := count.flush(batch); err != nil {
		return nil, err
	}
	return next, s.db.outcome("due index", it.Error())
}

// mature moves entries of the wheel before the mark to the ready table, as many as a step
// of an UpdateAll has, and reports whether they were written as tables.
func (s *crawlStore) mature(ctx context.Context, old *dueState, mark []byte) (tables bool, err error) {
	var st step
	next, hours, err := s.ripe(ctx, &st, old, mark)
	if err != nil {
		return false, err
	}
	if len(hours) > 0 {
		// In the order of records, as in an update: so those of a host are counted once, and
		// each level is in order.
		var count counter
		var key, last []byte
		due := st.inOrder(hours)
		records, err := s.dueRecords(&st, due, next, mark)
		if err != nil {
			return false, err
		}
		defer records.close()
		for i, c := range due {
			if bytes.Equal(last, st.key(c)) {
				return false, s.db.damaged("an entry of the due index, which is there twice,", string(last), errEntry)
			}
			if last = st.key(c); i%checkEvery == 0 {
				if err := s.db.goingOn(ctx, &s.view); err != nil {
					return false, err
				}
			}
			if c, err = records.complete(&st, c); err != nil {
				return false, err
			}
			e := entry{priority: math.Float32frombits(binary.BigEndian.Uint32(st.valueOf(c)))}
			key = e.appendReady(key[:0], st.key(c))
			if err := count.entry(&st, key, 1); err != nil {
				return false, err
			}
			if next.keeps(key) {
				l := st.lane(key, readyPrefix)
				l.changes = append(l.changes, c)
			}
		}
		if err := count.flush(&st); err != nil {
			return false, err
		}
		st.cleared = pebble.KeyRange{Start: codec.WheelTable.Key(string(old.mark)), End: codec.WheelTable.Key(string(next.mark))}
		s.due.moves.Add(1)
		defer s.due.moves.Add(1)
	}
	return s.putState(ctx, &st, next, s.bulkLeast)
}

// ripe reads entries of the wheel before the mark into a step, hour by hour, and returns
// the state of the index without them.
func (s *crawlStore) ripe(ctx context.Context, st *step, old *dueState, mark []byte) (next *dueState, hours [][]change, err error) {
	it, err := s.db.db.NewIter(&pebble.IterOptions{LowerBound: codec.WheelTable.Key(string(old.mark)), UpperBound: codec.WheelTable.Key(string(mark))})
	if err != nil {
		return nil, nil, s.db.outcome("due index", err)
	}
	defer it.Close()
	state := *old
	next, state.mark = &state, mark
	last, n := uint32(0), 0
	more := 0 // bytes that may be added when entries are completed
	for ok := it.First(); ok; ok = it.Next() {
		if n == s.due.most || st.size()+more >= s.bulkStep {
			next.mark = bytes.Clone(it.Key()[1:])
			break
		}
		if n++; n%checkEvery == 0 {
			if err := s.db.goingOn(ctx, &s.view); err != nil {
				return nil, nil, err
			}
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, nil, s.db.outcome("due index", err)
		}
		e, err := s.wheelEntry(it.Key(), value)
		if err != nil {
			return nil, nil, err
		}
		if hour := bucket(e.from); len(hours) == 0 || hour != last {
			hours, last = append(hours, nil), hour
		}
		if state.stale && len(e.rest) == 0 && soonAt(mark, e.from) {
			more += wholeMost
		}
		h := &hours[len(hours)-1]
		*h = append(*h, st.change(it.Key()[wheelPrefix:], value, int32(len(value))))
	}
	return next, hours, s.db.outcome("due index", it.Error())
}

// wheelEntry and readyEntry decode an entry and check that it is in its place.
func (s *crawlStore) wheelEntry(key, value []byte) (e entry, err error) {
	if len(key) < wheelPrefix || e.decode(value) != nil || binary.BigEndian.Uint32(key[1:]) != bucket(e.from) {
		return e, s.db.damaged("the entry of the due index", string(key), errEntry)
	}
	return e, nil
}

func (s *crawlStore) readyEntry(key, value []byte) (e entry, err error) {
	if len(key) < readyPrefix || e.decode(value) != nil || binary.BigEndian.Uint16(key[1:]) != level(e.priority) {
		return e, s.db.damaged("the entry of the due index", string(key), errEntry)
	}
	return e, nil
}

// A mover keeps the index consistent with the records during an update.
type mover struct {
	state   *dueState
	first   bool // the state is new
	bring   bool // walks bring what is due soon, see there
	brings  bool // this walk does, so it need not keep priorities that nobody needs yet
	count   counter
	leases  []leaseChange
	scratch [3][]byte
}

// mover returns the mover of an update.
func (s *crawlStore) mover() *mover {
	state := s.due.state.Load()
	return &mover{state: state, first: state.foreign}
}

// move writes the change of a record's entry to the batch, part of it only at end; nil
// means no entry. An index that has never been used begins at seen, about the time of the
// first record: any time will do, but a good one saves moving entries.
func (m *mover) move(batch changes, key []byte, from, to *entry, seen time.Time) error {
	if !m.state.has(key) {
		return nil
	}
	if m.state.mark == nil && to != nil {
		m.state, m.first = &dueState{mark: markOf(bucket(seen.UnixMilli())), whole: true}, true
	}
	was, is := m.scratch[0][:0], m.scratch[1][:0]
	if from != nil {
		was = from.appendKey(was, m.state.mark, key)
	}
	if to != nil {
		is = to.appendKey(is, m.state.mark, key)
	}
	m.scratch[0], m.scratch[1] = was, is
	same := bytes.Equal(was, is)
	if from != nil && !same {
		if m.state.keeps(was) {
			if err := batch.Delete(was, nil); err != nil {
				return err
			}
		}
		if err := m.count.entry(batch, was, -1); err != nil {
			return err
		}
	}
	if to != nil && !same {
		if err := m.count.entry(batch, is, 1); err != nil {
			return err
		}
	}
	if to != nil && m.state.keeps(is) && !(same && from != nil && from.same(*to, m.state.long)) {
		to.whole = m.state.isSoon(to.from)
		if m.brings && !to.whole && same && from != nil && codec.Table(is[0]) == codec.WheelTable && from.sameTime(*to) {
			m.now(func(s *dueState) { s.stale = true }, m.state.stale)
			return nil
		}
		m.scratch[2] = to.appendValue(m.scratch[2][:0])
		return batch.Set(is, m.scratch[2], nil)
	}
	return nil
}

// now changes the state of the index, unless it is so already.
func (m *mover) now(change func(*dueState), already bool) {
	if already {
		return
	}
	state := *m.state
	change(&state)
	m.state, m.first = &state, true
}

// end writes the remaining changes of the index to the batch.
func (m *mover) end(batch changes) error { return m.count.flush(batch) }

// CheckIndex compares the index of due records with the records and returns the
// first difference; nil if they agree. It reads a snapshot of both, and may run while
// the store is in use.
func (d *DB) CheckIndex(ctx context.Context) error {
	var first error
	err := d.crawl.checkDue(ctx, func(err error) { first = cmp.Or(first, err) })
	if err = cmp.Or(err, first); err != nil {
		return fmt.Errorf("pebblestore: check index: %w", err)
	}
	return nil
}
