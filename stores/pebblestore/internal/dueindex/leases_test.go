package dueindex

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// The tombstones of leases that have ended stay in the engine's memory for many rounds. A lease is
// found without a step over them.
func TestLeaseIsFoundPastThoseThatEnded(t *testing.T) {
	s, urls := waitingStore(t, 500)
	leaseUntil := func(until time.Time, by string, urls []string) {
		s.update(t, crawldb.Batch{URLs: urls, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
			d := *old
			d.LeasedUntil, d.LeasedBy = until, by
			return &d, nil
		}}, false)
	}
	leaseUntil(epoch.AddDate(1, 0, 0), "s", urls)
	leaseUntil(time.Time{}, "", urls[:499])
	it, err := s.db.NewIter(codec.WheelTable.All())
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	l, err := s.leasesOf(it)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	// In no order, as the keys of levels and hours are.
	for _, i := range []int{300, 2, 499, 100, 498} {
		end, leased, err := l.find([]byte(crawldb.Key(urls[i])))
		if want := i == 499; err != nil || leased != want || want && end != epoch.AddDate(1, 0, 0).UnixMilli() {
			t.Errorf("%s: leased %v until %v, %v", urls[i], leased, time.UnixMilli(end), err)
		}
	}
	stats := l.at.Stats()
	if steps := stats.ForwardStepCount[pebble.InternalIterCall]; steps > 20 {
		t.Errorf("%d steps for 5 keys", steps)
	}
}
