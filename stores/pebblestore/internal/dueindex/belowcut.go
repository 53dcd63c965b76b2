package dueindex

import (
	"bytes"
	"context"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

// A tour adds levels to the ready table if it would hold more than Limits.HeldBelowCut candidates
// that the table lacks, or if tours have read more than maxReadBelowCut records to find such
// candidates since the last large update, which a longer table would have cost as much.
const maxReadBelowCut = 1 << 20

// tourBelowCut plans a tour from the last level of the ready table on, and reports whether there
// is anything to see.
func (w *walk) tourBelowCut(ctx context.Context) (more bool, err error) {
	if w.lastReady >= w.lastLevel {
		return false, nil
	}
	if err := w.x.store.Enter(ctx); err != nil {
		return false, err
	}
	defer w.x.store.Leave()
	it, err := w.x.db.NewIter(codec.TallyTable.All())
	if err != nil {
		return false, w.x.store.EngineError(err)
	}
	defer it.Close()
	return true, w.plan(ctx, it, belowKey(w.lastReady))
}

// addLevels adds levels to the ready table at least up to where the tour is, which goes on there.
func (w *walk) addLevels(ctx context.Context) error {
	w.wantsLevels, w.tour.belowCut = false, belowCut{}
	err := w.x.addLevels(ctx, w.tour.first+uint16(w.tour.level))
	w.lastReady = w.x.state.Load().lastReady()
	return err
}

// belowCut is what a tour has read of hosts from below the ready table.
type belowCut struct {
	byHost map[uint32]*sideList // by the number of the host
	held   int                  // candidates in them
}

func (b *belowCut) drop(i uint32) {
	if l := b.byHost[i]; l != nil {
		b.held -= len(l.best)
		delete(b.byHost, i)
	}
}

// takeBelowCut adds to the page what the host at which the tour is has in its level, which is
// below the ready table. whole is false if the page is full, or if levels should be added to
// the table before.
func (w *walk) takeBelowCut(ctx context.Context, records *pebble.Iterator, leases *leases, size int) (whole bool, err error) {
	t := w.tour
	i, level := t.levels[t.level][t.at], t.first+uint16(t.level)
	l := t.belowCut.byHost[i]
	if l == nil {
		if !w.x.readOnly && (t.belowCut.held > w.x.HeldBelowCut || w.x.readBelowCut.Load() > maxReadBelowCut) {
			w.wantsLevels = true
			return false, nil
		}
		l = &sideList{}
		if t.belowCut.byHost == nil {
			t.belowCut.byHost = map[uint32]*sideList{}
		}
		t.belowCut.byHost[i] = l
		if err := w.readBelowCut(ctx, l, t.groups[i], records, leases); err != nil {
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
			w.page.candidates = append(w.page.candidates, h)
		}
		if !l.more {
			return true, nil
		}
		last := l.best[len(l.best)-1]
		l.last = &last
		if err := w.readBelowCut(ctx, l, t.groups[i], records, leases); err != nil {
			return false, err
		}
	}
}

// readBelowCut fills a list with the best candidates after its last one from below the ready
// table, of the records of a host.
func (w *walk) readBelowCut(ctx context.Context, l *sideList, host string, records *pebble.Iterator, leases *leases) error {
	x, b := w.x, &w.tour.belowCut
	b.held -= len(l.best)
	l.best, l.done, l.more = l.best[:0], 0, false
	mark := x.state.Load().mark
	var keys crawldb.Keys
	var d crawldb.Datum
	var key []byte
	prefix := codec.CrawlTable.Key(host)
	n := 0
	defer func() { x.readBelowCut.Add(int64(n)) }()
	for ok := records.SeekGE(prefix); ok && bytes.HasPrefix(records.Key(), prefix); ok = records.Next() {
		if n++; n%rows.CheckEvery == 0 {
			if err := x.store.Continue(ctx); err != nil {
				return err
			}
		}
		own := records.Key()[1:]
		value, err := records.ValueAndErr()
		if err != nil {
			return x.store.EngineError(err)
		}
		if err := x.decode(&d, &keys, own, value, nil); err != nil {
			return err
		}
		e := entryOf(&d)
		h := candidate{entry: e, level: levelOf(e.priority), key: own}
		if h.level <= w.lastReady || l.last != nil && h.compare(*l.last) <= 0 {
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
			w.noteLater(e, own, end)
		case w.q.MinPriority > 0 && !(e.priority >= w.q.MinPriority):
		default:
			l.offer(h, x.SideList)
		}
	}
	slices.SortFunc(l.best, candidate.compare)
	b.held += len(l.best)
	return x.store.EngineError(records.Error())
}
