package dueindex

import (
	"bytes"
	"context"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

// noteLater records an entry that is not due, whose record has a lease that ends at
// end.
func (w *walk) noteLater(e entry, key []byte, end int64) {
	if e.rest, e.dueFrom = nil, max(e.dueFrom, end); e.dueFrom < w.next.dueFrom {
		w.next = candidate{entry: e, key: bytes.Clone(key)}
	}
}

// reportNext reports the entry that is due next.
func (w *walk) reportNext(ctx context.Context) error {
	if err := w.nextOfWheel(ctx); err != nil {
		return err
	}
	// If the walk has seen all of the ready table, what it recorded is all there is. The table of leases
	// is as long as the tombstones of those that ended.
	if w.unseenLeases || w.q.MinPriority != 0 || w.tour != nil {
		if err := w.nextLease(ctx); err != nil {
			return err
		}
	}
	if w.next.key == nil {
		return nil
	}
	w.q.NotDue(&crawldb.Datum{URL: crawldb.URLOf(string(w.next.key)), FetchTime: time.UnixMilli(w.next.dueFrom).UTC()})
	return nil
}

// nextOfWheel records what becomes due next in the wheel. Hours after that of what is
// already recorded need not be read.
func (w *walk) nextOfWheel(ctx context.Context) error {
	lower := codec.WheelTable.Key(string(w.x.state.Load().mark))
	return w.wheel(ctx, lower, []byte{byte(codec.WheelTable) + 1}, func(e entry, key []byte, end int64, leased bool) (bool, error) {
		if w.next.key != nil && hourOf(e.dueFrom) > hourOf(w.next.dueFrom) {
			return false, nil
		}
		if !w.shows(e, end, leased) {
			w.noteLater(e, key[wheelPrefix:], end)
		}
		return true, nil
	})
}

// nextLease records the first lease to end before anything recorded. Leased entries
// of the ready table were not recorded.
func (w *walk) nextLease(ctx context.Context) error {
	if err := w.x.store.Enter(ctx); err != nil {
		return err
	}
	defer w.x.store.Leave()
	it, err := w.x.db.NewIter(codec.LeaseTable.All())
	if err != nil {
		return w.x.store.EngineError(err)
	}
	defer it.Close()
	records, err := rows.Join(it, codec.CrawlTable)
	if err != nil {
		return w.x.store.EngineError(err)
	}
	defer records.Close()
	var keys crawldb.Keys
	return w.x.each(ctx, it, func(key, lease []byte) error {
		end, err := leaseEndOf(lease)
		if err == nil && (end <= w.now || end >= w.next.dueFrom) {
			return nil
		}
		value, err := records.Find(key)
		if err := w.x.store.EngineError(err); err != nil || value == nil {
			return err
		}
		var r crawldb.Datum
		if err := w.x.decode(&r, &keys, key[1:], value, lease); err != nil {
			return err
		}
		w.noteLater(entryOf(&r), key[1:], end)
		return nil
	})
}
