package dueindex

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

// A tour goes from host to host: in each level, to those that are wanted and have
// entries in it.
type tour struct {
	groups   []string   // what the keys of each host begin with
	hosts    []string   // their names; "" for records that are keyed by the URL
	full     []bool     // no longer wanted
	levels   [][]uint32 // by level from first on, hosts in the order of their keys
	first    uint16
	belowCut belowCut

	// Where the tour is.
	level  int    // in levels
	at     int    // in the level
	resume []byte // the first key of the host that was not read; nil for all
}

// Passing an entry costs one; these are the relative costs of other steps.
const (
	seekCost = 8
	// tourCost is how much must have been spent on passing entries before a
	// tour is considered, plus one per tourBytes bytes of tallies.
	tourCost  = 1 << 16
	tourBytes = 64
)

// passingCostsMore reports whether passing hosts that are not wanted has cost as much as
// reading all tallies would.
func (w *walk) passingCostsMore() (bool, error) {
	if w.spent < w.checkAt {
		return false, nil
	}
	w.checkAt = w.spent + w.spent/4
	size, err := w.x.db.EstimateDiskUsage([]byte{byte(codec.TallyTable)}, []byte{byte(codec.TallyTable) + 1})
	return uint64(w.spent-w.x.TourCost) >= size/tourBytes, w.x.store.EngineError(err)
}

// planBeside plans a tour from where an iterator is, in its snapshot.
func (w *walk) planBeside(ctx context.Context, beside *pebble.Iterator) error {
	it, err := beside.Clone(pebble.CloneOptions{IterOptions: codec.TallyTable.All()})
	if err != nil {
		return w.x.store.EngineError(err)
	}
	defer it.Close()
	return w.plan(ctx, it, beside.Key())
}

// wants reports whether URLs of a host are wanted.
func (w *walk) wants(host string) bool { return w.q.WantHost == nil || w.q.WantHost(host) }

// plan makes a tour from a key on, of what an iterator over the tallies shows.
func (w *walk) plan(ctx context.Context, it *pebble.Iterator, from []byte) error {
	t := &tour{first: binary.BigEndian.Uint16(from[1:])}
	t.levels = make([][]uint32, max(0, int(w.lastLevel)-int(t.first)+1))
	var own codec.Tally
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
		group := it.Key()[1:]
		if len(group) == 0 {
			return w.x.store.Damaged("the tally of", "", codec.ErrTally)
		}
		host := ""
		if group[0] != '!' {
			if host = crawldb.Host(crawldb.URLOf(string(group) + "http:")); !w.wants(host) {
				continue
			}
		}
		if err := w.x.readTally(&own, group, value); err != nil {
			return err
		}
		named := false
		for _, l := range own {
			i := int(l.Level) - int(t.first)
			if i < 0 || i >= len(t.levels) || i == 0 && !reaches(group, from[readyPrefix:]) {
				continue
			}
			if !named {
				t.groups, t.hosts, t.full, named = append(t.groups, string(group)), append(t.hosts, host), append(t.full, false), true
			}
			t.levels[i] = append(t.levels[i], uint32(len(t.groups)-1))
		}
	}
	if len(t.levels) > 0 && len(t.levels[0]) > 0 && bytes.HasPrefix(from[readyPrefix:], []byte(t.groups[t.levels[0][0]])) {
		t.resume = bytes.Clone(from)
	}
	w.tour = t
	return w.x.store.EngineError(it.Error())
}

// reaches reports whether a group has room for a key at or after from.
func reaches(group, from []byte) bool {
	return bytes.Compare(group, from) >= 0 || bytes.HasPrefix(from, group)
}

// next returns the prefix of the entries of the next host that is wanted, nil
// if there is none. It does not advance by itself: see pass.
func (t *tour) next(dst []byte, want func(string) bool) []byte {
	for ; t.level < len(t.levels); t.level, t.at = t.level+1, 0 {
		for l := t.levels[t.level]; t.at < len(l); t.at, t.resume = t.at+1, nil {
			i := l[t.at]
			if t.full[i] {
				continue
			}
			if t.hosts[i] != "" && !want(t.hosts[i]) {
				t.full[i] = true
				t.belowCut.drop(i)
				continue
			}
			dst = binary.BigEndian.AppendUint16(append(dst[:0], byte(codec.ReadyTable)), t.first+uint16(t.level))
			return append(dst, t.groups[i]...)
		}
	}
	return nil
}

// pass advances to the next host.
func (t *tour) pass() { t.at, t.resume = t.at+1, nil }

// readTour reads a page of candidates of the next hosts.
func (w *walk) readTour(ctx context.Context, size int) (more bool, err error) {
	if err := w.x.store.Enter(ctx); err != nil {
		return false, err
	}
	defer w.x.store.Leave()
	w.page.reset(w.x)
	it, err := w.x.db.NewIter(codec.ReadyTable.All())
	if err != nil {
		return false, w.x.store.EngineError(err)
	}
	defer it.Close()
	leases, err := w.x.leasesOf(it)
	if err != nil {
		return false, err
	}
	defer leases.close()
	t := w.tour
	var prefix []byte
	var records *pebble.Iterator
	for n := 0; ; t.pass() {
		if prefix = t.next(prefix, w.wants); prefix == nil {
			return false, nil
		}
		if binary.BigEndian.Uint16(prefix[1:]) > w.lastReady {
			if records == nil {
				if records, err = it.Clone(pebble.CloneOptions{IterOptions: codec.CrawlTable.All()}); err != nil {
					return false, w.x.store.EngineError(err)
				}
				defer records.Close()
			}
			if whole, err := w.takeBelowCut(ctx, records, leases, size); err != nil || !whole {
				return true, err
			}
			continue
		}
		ok := it.Valid()
		if t.resume != nil {
			ok = it.SeekGE(t.resume)
		} else if !ok || !bytes.HasPrefix(it.Key(), prefix) {
			ok = it.SeekGE(prefix)
		}
		for ; ok && bytes.HasPrefix(it.Key(), prefix); ok = it.Next() {
			if n++; n%rows.CheckEvery == 0 {
				if err := w.x.store.Continue(ctx); err != nil {
					return false, err
				}
			}
			if w.page.full(size) {
				t.resume = bytes.Clone(it.Key())
				return true, nil
			}
			if err := w.take(it, leases); err != nil {
				return false, err
			}
		}
		if !ok && it.Error() != nil {
			return false, w.x.store.EngineError(it.Error())
		}
	}
}
