package pebblestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// Of a large backlog the ready table has the best levels only. Its other entries would be
// rewritten whenever a link changes their records, and few of them are selected before
// that. The tallies count them nevertheless, so a tour knows which hosts have some, and
// reads those from the records of the host. A selection that needs many of them completes
// the ready table first, see deepen.

const (
	// trimShare is how many times as many entries are due as are kept, and trimLeast how
	// many are kept at least. So completing the table, which reads all records, costs no
	// more than some reads for each entry that is added.
	trimShare = 3
	trimLeast = 1 << 20
	// A tour completes the ready table if it would hold more than mostTails hints from
	// below it, or if tours have read more than readTails records to find such hints since
	// the last UpdateAll, which a longer table would have cost as much.
	mostTails = 1 << 17
	readTails = 1 << 20
)

// depth is the last level that the ready table has.
func (s *dueState) depth() uint16 { return lastLevel - s.out }

// keeps reports whether an entry with that key is in the index.
func (s *dueState) keeps(key []byte) bool {
	if s.out == 0 || codec.Table(key[0]) != codec.ReadyTable {
		return true
	}
	l := binary.BigEndian.Uint16(key[1:])
	return l <= s.depth() || l <= s.goal && bytes.Compare(key[readyPrefix:], s.filled) < 0
}

// belowKey is where the entries begin that come after a level, in the ready table.
func belowKey(level uint16) []byte {
	return binary.BigEndian.AppendUint16([]byte{byte(codec.ReadyTable)}, level+1)
}

// levelCounts are how many entries are due, by level, whether the table has them or not.
type levelCounts [lastLevel + 1]int64

// upTo counts the entries up to a level.
func (c *levelCounts) upTo(level uint16) (n int64) {
	for _, in := range c[:int(level)+1] {
		n += in
	}
	return n
}

// reaching returns the first level up to which there are n entries, or the last.
func (c *levelCounts) reaching(n int64) (level uint16) {
	for n -= c[0]; n > 0 && level < lastLevel; n -= c[level] {
		level++
	}
	return level
}

// countLevels adds up the tallies.
func (s *crawlStore) countLevels(ctx context.Context) (*levelCounts, error) {
	var c levelCounts
	var own tally
	return &c, s.rows(ctx, s.db.db, codec.TallyTable, func(key, value []byte) error {
		if err := s.readTally(&own, key[1:], value); err != nil {
			return err
		}
		for _, l := range own {
			c[l.level] += l.n
		}
		return nil
	})
}

// trim removes the last levels from the ready table if it has twice its share of what is due,
// or more. To fail means that it is as it was.
func (s *crawlStore) trim(ctx context.Context) {
	if err := s.tryTrim(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, s.view.errClosed) {
		s.db.log.Warn("pebblestore: the index was not trimmed", "dir", s.db.dir, "error", err)
	}
}

func (s *crawlStore) tryTrim(ctx context.Context) error {
	if err := s.db.take(ctx, &s.view, s.turn); err != nil {
		return err
	}
	defer s.db.give(s.turn)
	s.due.tailed.Store(0)
	old := s.due.state.Load()
	if !old.whole || s.due.late.Load() {
		return nil
	}
	var size [3]uint64
	for i, t := range [...]codec.Table{codec.ReadyTable, codec.CrawlTable, codec.TallyTable} {
		var err error
		if size[i], err = s.sizeOf(t); err != nil {
			return err
		}
	}
	// Most records are not due, or not in it; or hosts have so few that a look at one costs
	// more than all of its entries do.
	if size[0] < size[1]/trimShare || size[2] > size[0]/trimShare {
		return nil
	}
	counts, err := s.countLevels(ctx)
	if err != nil {
		return err
	}
	keep := max(counts.upTo(lastLevel)/trimShare, s.due.least, old.least)
	depth := counts.reaching(keep)
	if counts.upTo(old.depth()) < 2*max(counts.upTo(depth), 1) { // hardly worth it
		return nil
	}
	next := *old
	next.out, next.goal, next.filled = lastLevel-depth, 0, nil
	s.due.moves.Add(1)
	defer s.due.moves.Add(1)
	var st step
	st.cleared = pebble.KeyRange{Start: belowKey(depth), End: belowKey(lastLevel)}
	_, err = s.putState(ctx, &st, &next, 0)
	return err
}

// sizeOf returns about how many bytes a table takes in files of the engine.
func (s *crawlStore) sizeOf(t codec.Table) (uint64, error) {
	size, err := s.db.db.EstimateDiskUsage([]byte{byte(t)}, []byte{byte(t) + 1})
	return size, s.db.outcome("due index", err)
}

// putState writes a step that changes the state of the index, as writeStep does.
func (s *crawlStore) putState(ctx context.Context, st *step, next *dueState, least int) (asTables bool, err error) {
	if err := st.Set(dueKey, next.append(nil), nil); err != nil {
		return false, err
	}
	if asTables, err = s.db.writeStep(ctx, &s.view, st, least); err == nil {
		s.due.state.Store(next)
	}
	return asTables, err
}

// deepen completes the ready table at least up to a level, and lets updates take turns in
// between. What a reader has not read yet is added only.
func (s *crawlStore) deepen(ctx context.Context, level uint16) error {
	for s.due.state.Load().depth() < level {
		if err := s.db.take(ctx, &s.view, s.turn); err != nil {
			return err
		}
		err := s.deepenStep(ctx, level)
		s.db.give(s.turn)
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *crawlStore) deepenStep(ctx context.Context, level uint16) error {
	next := *s.due.state.Load()
	if next.depth() >= level {
		return nil
	}
	if next.goal == 0 {
		counts, err := s.countLevels(ctx)
		if err != nil {
			return err
		}
		all, had := counts.upTo(lastLevel), counts.upTo(next.depth())
		keep := max(had+all/trimShare, 2*had, s.due.least)
		if next.goal = max(counts.reaching(keep), level); keep > all-all/trimShare {
			next.goal = lastLevel
		}
		next.least = max(0, counts.upTo(next.goal))
	}
	it, err := s.db.db.NewIter(&pebble.IterOptions{
		LowerBound: append([]byte{byte(codec.CrawlTable)}, next.filled...),
		UpperBound: []byte{byte(codec.CrawlTable) + 1},
	})
	if err != nil {
		return s.db.outcome("due index", err)
	}
	defer it.Close()
	var st step
	var keys crawldb.Keys
	var d crawldb.Datum
	var key, enc []byte
	whole := true
	err = s.each(ctx, it, func(k, value []byte) error {
		if st.size() >= s.bulkStep {
			whole, next.filled = false, bytes.Clone(k[1:])
			return errStepFull
		}
		if err := s.decode(&d, &keys, k[1:], value, nil); err != nil {
			return err
		}
		e := entryOf(&d)
		key = e.appendKey(key[:0], next.mark, k[1:])
		if codec.Table(key[0]) != codec.ReadyTable {
			return nil
		}
		if l := binary.BigEndian.Uint16(key[1:]); l <= next.depth() || l > next.goal {
			return nil
		}
		enc = e.appendValue(enc[:0])
		return st.Set(key, enc, nil)
	})
	if err != nil && err != errStepFull {
		return err
	}
	if whole {
		s.due.tailed.Store(0)
		next.out, next.goal, next.filled = lastLevel-next.goal, 0, nil
	}
	_, err = s.putState(ctx, &st, &next, s.bulkLeast)
	return err
}

// errStepFull ends the reading of records for a step.
var errStepFull = errors.New("the step is full")

// below plans a tour from the last level of the ready table on, and reports whether there
// is anything to see.
func (w *dueWalk) below(ctx context.Context) (more bool, err error) {
	if w.depth >= w.floor {
		return false, nil
	}
	d := w.s.db
	if err := d.enter(ctx, &w.s.view); err != nil {
		return false, err
	}
	defer d.leave()
	it, err := d.db.NewIter(codec.TallyTable.All())
	if err != nil {
		return false, d.outcome("due index", err)
	}
	defer it.Close()
	return true, w.plan(ctx, it, belowKey(w.depth))
}

// deepen completes the ready table at least up to where the tour is, which goes on there.
func (w *dueWalk) deepen(ctx context.Context) error {
	w.deeper, w.tour.tails = false, tails{}
	err := w.s.deepen(ctx, w.tour.first+uint16(w.tour.level))
	w.depth = w.s.due.state.Load().depth()
	return err
}

// tails are what a tour has read of hosts from below the ready table.
type tails struct {
	of   map[uint32]*sideList // by the number of the host
	held int                  // hints in them
}

func (t *tails) drop(i uint32) {
	if l := t.of[i]; l != nil {
		t.held -= len(l.best)
		delete(t.of, i)
	}
}

// takeTail adds to the page what the host at which the tour is has in its level, which is
// below the ready table. whole is false if the page is full, or if the tour should
// complete the table before.
func (w *dueWalk) takeTail(ctx context.Context, records *pebble.Iterator, leases *leaseView, size int) (whole bool, err error) {
	t := w.tour
	i, level := t.levels[t.level][t.at], t.first+uint16(t.level)
	l := t.tails.of[i]
	if l == nil {
		if !w.s.db.readOnly && (t.tails.held > w.s.due.tails || w.s.due.tailed.Load() > readTails) {
			w.deeper = true
			return false, nil
		}
		l = &sideList{}
		if t.tails.of == nil {
			t.tails.of = map[uint32]*sideList{}
		}
		t.tails.of[i] = l
		if err := w.readTail(ctx, l, t.groups[i], records, leases); err != nil {
			return false, err
		}
	}
	for {
		for ; l.done < len(l.best); l.done++ {
			h := l.best[l.done]
			if h.level > level {
				return true, nil
			}
			if w.page.full(size) {
				return false, nil
			}
			w.page.hints = append(w.page.hints, h)
		}
		if !l.more {
			return true, nil
		}
		last := l.best[len(l.best)-1]
		l.last = &last
		if err := w.readTail(ctx, l, t.groups[i], records, leases); err != nil {
			return false, err
		}
	}
}

// readTail fills a list with the best hints after its last one from below the ready table,
// of the records of a host.
func (w *dueWalk) readTail(ctx context.Context, l *sideList, group string, records *pebble.Iterator, leases *leaseView) error {
	s, t := w.s, &w.tour.tails
	t.held -= len(l.best)
	l.best, l.done, l.more = l.best[:0], 0, false
	mark := s.due.state.Load().mark
	var keys crawldb.Keys
	var d crawldb.Datum
	var key []byte
	prefix := codec.CrawlTable.Key(group)
	n := 0
	defer func() { s.due.tailed.Add(int64(n)) }()
	for ok := records.SeekGE(prefix); ok && bytes.HasPrefix(records.Key(), prefix); ok = records.Next() {
		if n++; n%checkEvery == 0 {
			if err := s.db.goingOn(ctx, &s.view); err != nil {
				return err
			}
		}
		own := records.Key()[1:]
		value, err := records.ValueAndErr()
		if err != nil {
			return s.db.outcome("due index", err)
		}
		if err := s.decode(&d, &keys, own, value, nil); err != nil {
			return err
		}
		e := entryOf(&d)
		e.of = nil
		h := hint{entry: e, level: level(e.priority), key: own}
		if h.level <= w.depth || l.last != nil && h.compare(*l.last) <= 0 {
			continue
		}
		if key = e.appendKey(key[:0], mark, own); codec.Table(key[0]) != codec.ReadyTable {
			continue
		}
		end, leased, err := leases.find(own)
		if err != nil {
			return err
		}
		switch {
		case leased && end > w.now: // as in take
		case !w.shows(e, end, leased):
			w.passed++
			w.later(e, own, end)
		case w.q.MinPriority > 0 && !(e.priority >= w.q.MinPriority):
		default:
			l.offer(h, s.due.side)
		}
	}
	slices.SortFunc(l.best, hint.compare)
	t.held += len(l.best)
	return s.db.outcome("due index", records.Error())
}
