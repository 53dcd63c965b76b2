package dueindex

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

// wheel calls each with the entries of the wheel from lower to upper, until it
// returns false. The keys are those of the table, and valid for the call only; end
// is the end of the record's lease.
func (w *walk) wheel(ctx context.Context, lower, upper []byte, each func(e entry, key []byte, end int64, leased bool) (more bool, err error)) error {
	if err := w.x.store.Enter(ctx); err != nil {
		return err
	}
	defer w.x.store.Leave()
	it, err := w.x.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return w.x.store.EngineError(err)
	}
	defer it.Close()
	leases, err := w.x.leasesOf(it)
	if err != nil {
		return err
	}
	defer leases.close()
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if n++; n%rows.CheckEvery == 0 {
			if err := w.x.store.Continue(ctx); err != nil {
				return err
			}
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return w.x.store.EngineError(err)
		}
		e, err := w.x.wheelEntry(it.Key(), value)
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
	return w.x.store.EngineError(it.Error())
}

// sideList holds candidates that are still in the wheel: those that become due between
// the clock and the time of the query, and those beyond the horizon. They are few, unless
// the query looks far ahead. If they do not fit, the rest is read again later.
type sideList struct {
	best worstFirst
	done int        // candidates already yielded
	more bool       // there are more after the last
	last *candidate // last candidate of the previous list
}

// readSide fills the list with the best candidates after last.
func (w *walk) readSide(ctx context.Context) error {
	l := &w.side
	l.best, l.done, l.more = l.best[:0], 0, false
	first, _ := markHour(w.x.state.Load().mark)
	// Due records begin at the mark, and those beyond the horizon are at the end.
	until := first
	if b := hourOf(w.now) + 1; b > first {
		until = b
		if err := w.readWheel(ctx, first, until); err != nil {
			return err
		}
	}
	if w.horizon != math.MaxInt64 {
		if err := w.readWheel(ctx, max(hourOf(w.horizon), until), math.MaxUint32); err != nil {
			return err
		}
	}
	slices.SortFunc(l.best, candidate.compare)
	return nil
}

// maxReadHours is how many hours of the wheel are read one record at a time: a scan of the
// records costs less than a read for each entry of many hours.
const maxReadHours = 24

// readWheel adds the matching entries of some hours. The list is empty if they begin at
// the mark.
func (w *walk) readWheel(ctx context.Context, from, to uint32) error {
	if from >= to {
		return nil
	}
	w.hosts.askAgain()
	if to < math.MaxUint32 && to-from > maxReadHours {
		if err := w.scanWheel(ctx, to); !w.x.store.IsDamaged(err) {
			return err
		}
		// What can be read is read one by one.
		w.side.best, w.side.more = w.side.best[:0], false
		w.hosts.askAgain()
	}
	lower := binary.BigEndian.AppendUint32([]byte{byte(codec.WheelTable)}, from)
	upper := binary.BigEndian.AppendUint32([]byte{byte(codec.WheelTable)}, to)
	return w.wheel(ctx, lower, upper, func(e entry, key []byte, end int64, leased bool) (bool, error) {
		if !w.shows(e, end, leased) || w.q.WantHost != nil && !w.hosts.wants(key, wheelPrefix, w.q.WantHost) {
			return true, nil
		}
		var d crawldb.Datum
		record, err := rows.Get(w.x.db, codec.CrawlTable.Key(string(key[wheelPrefix:])))
		if err = w.x.store.EngineError(err); err == nil && record != nil {
			err = w.x.decode(&d, &w.keys, key[wheelPrefix:], record, nil)
		}
		switch {
		case w.x.store.IsDamaged(err): // the lease that reads it says so
		case err != nil || record == nil:
			return err == nil, err
		default:
			e.priority = d.Priority
		}
		w.offerSide(e, key[wheelPrefix:])
		return true, nil
	})
}

// scanWheel is readWheel, from the mark on, by a scan of the records.
func (w *walk) scanWheel(ctx context.Context, to uint32) error {
	if err := w.x.store.Enter(ctx); err != nil {
		return err
	}
	defer w.x.store.Leave()
	it, err := w.x.db.NewIter(codec.CrawlTable.All())
	if err != nil {
		return w.x.store.EngineError(err)
	}
	defer it.Close()
	leases, err := w.x.leasesOf(it)
	if err != nil {
		return err
	}
	defer leases.close()
	mark := w.x.state.Load().mark
	var r crawldb.Datum
	var place []byte
	return w.x.each(ctx, it, func(key, value []byte) error {
		if err := w.x.decode(&r, &w.keys, key[1:], value, nil); err != nil {
			return err
		}
		e := entryOf(&r)
		if place = e.appendKey(place[:0], mark, key[1:]); codec.Table(place[0]) != codec.WheelTable || hourOf(e.dueFrom) >= to {
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
func (w *walk) offerSide(e entry, key []byte) {
	e.rest = nil // valid only during the call
	h := candidate{entry: e, level: levelOf(e.priority), key: key}
	if w.q.MinPriority > 0 && !(e.priority >= w.q.MinPriority) || w.side.last != nil && h.compare(*w.side.last) <= 0 {
		return
	}
	w.side.offer(h, w.x.SideList)
}

// offer adds a candidate, if it is among the best so many.
func (l *sideList) offer(h candidate, most int) {
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

// yieldSide yields candidates of the list whose level is not worse.
func (w *walk) yieldSide(ctx context.Context, level uint16) error {
	l := &w.side
	for {
		for ; l.done < len(l.best); l.done++ {
			h := l.best[l.done]
			if h.level > level {
				return nil
			}
			if err := w.yieldOne(ctx, h); err != nil || w.stopped {
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
func (a candidate) compare(b candidate) int {
	return cmp.Or(cmp.Compare(a.level, b.level), bytes.Compare(a.key, b.key))
}

// worstFirst is a heap whose root comes last.
type worstFirst []candidate

func (h worstFirst) Len() int           { return len(h) }
func (h worstFirst) Less(i, j int) bool { return h[i].compare(h[j]) > 0 }
func (h worstFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *worstFirst) Push(x any)        { *h = append(*h, x.(candidate)) }
func (h *worstFirst) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
