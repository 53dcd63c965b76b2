package pebblestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// The index has a third table: how many entries each host has in each level of the ready
// table, with those that are left out of it, see trim. A selection that wants only a few
// URLs per host uses it to go from host to host, instead of passing over the remaining
// entries of hosts that are full. Updates add to it and never read it: a row is the sum of
// what was merged into it.

// A tally is the number of entries of one host in each level, ascending, without zeros.
type tally []tallied

type tallied struct {
	level uint16
	n     int64
}

func (t *tally) add(level uint16, n int64) {
	from, to := 0, len(*t) // by hand: an update asks twice for each record
	for from < to {
		if i := (from + to) / 2; (*t)[i].level < level {
			from = i + 1
		} else {
			to = i
		}
	}
	t.addAt(from, level, n)
}

// addAt adds to a level, which is the one at i or comes before it.
func (t *tally) addAt(i int, level uint16, n int64) {
	switch {
	case n == 0:
	case i == len(*t):
		*t = append(*t, tallied{level, n})
	case (*t)[i].level != level:
		*t = slices.Insert(*t, i, tallied{level, n})
	default:
		if (*t)[i].n += n; (*t)[i].n == 0 {
			*t = slices.Delete(*t, i, i+1)
		}
	}
}

func (t tally) append(dst []byte) []byte {
	for _, l := range t {
		dst = binary.AppendVarint(binary.AppendUvarint(dst, uint64(l.level)), l.n)
	}
	return dst
}

var errTally = errors.New("not a tally of the due index")

// addFrom adds what append wrote. Both ascend, so that it looks for no level twice.
func (t *tally) addFrom(b []byte) error {
	if *t == nil {
		*t = make(tally, 0, len(b)/3+1) // a level and a number have three bytes or four
	}
	at := 0
	for last := int64(-1); len(b) > 0; {
		level, i := binary.Uvarint(b)
		if i <= 0 || level > lastLevel || int64(level) <= last {
			return errTally
		}
		n, j := binary.Varint(b[i:])
		if j <= 0 || n == 0 {
			return errTally
		}
		for at < len(*t) && (*t)[at].level < uint16(level) {
			at++
		}
		t.addAt(at, uint16(level), n)
		last, b = int64(level), b[i+j:]
	}
	return nil
}

// groupOf returns the prefix of the keys of a host, shared by no others. What
// crawldb keys by the whole URL is one group.
func groupOf(key []byte) []byte {
	if end := bytes.IndexByte(key, ')'); end >= 0 && key[0] != '!' {
		return key[:end+1]
	}
	return key[:min(len(key), 1)]
}

// A counter writes the changes of the counts of the ready table to the batch
// that changes it, host by host.
type counter struct {
	group    []byte
	tally    tally
	key, enc []byte
}

// entry counts an entry n times, if it is in the ready table.
func (c *counter) entry(batch changes, key []byte, n int64) error {
	if codec.Table(key[0]) != codec.ReadyTable {
		return nil
	}
	if group := groupOf(key[readyPrefix:]); !bytes.Equal(group, c.group) {
		if err := c.flush(batch); err != nil {
			return err
		}
		c.group = append(c.group[:0], group...)
	}
	c.tally.add(binary.BigEndian.Uint16(key[1:]), n)
	return nil
}

func (c *counter) flush(batch changes) error {
	if len(c.tally) == 0 {
		return nil
	}
	c.key = append(append(c.key[:0], byte(codec.TallyTable)), c.group...)
	c.enc = c.tally.append(c.enc[:0])
	c.tally = c.tally[:0]
	return batch.Merge(c.key, c.enc, nil)
}

// tallySum is a tally to which others are added. Reading all tallies takes one per host,
// so its memory is reused.
type tallySum struct {
	tally tally
	out   []byte
	pool  *sync.Pool // or nil
}

func (m *tallySum) MergeNewer(value []byte) error { return m.tally.addFrom(value) }
func (m *tallySum) MergeOlder(value []byte) error { return m.tally.addFrom(value) }

// Finish may leave an empty row, for a host without entries: the engine could drop it,
// but that made its compaction fail (2.1.7).
func (m *tallySum) Finish(bool) ([]byte, io.Closer, error) {
	m.out = m.tally.append(m.out)
	return m.out, m, nil
}

// Close ends the use of the result of Finish.
func (m *tallySum) Close() error {
	if m.pool != nil {
		m.tally, m.out = m.tally[:0], m.out[:0]
		m.pool.Put(m)
	}
	return nil
}

// A tour goes from host to host: in each level, to those that are wanted and have
// entries in it.
type tour struct {
	groups []string
	hosts  []string   // their names; "" for records that are keyed by the URL
	full   []bool     // no longer wanted
	levels [][]uint32 // by level from first on, hosts in the order of their keys
	first  uint16
	tails  tails
	level  int    // in levels
	at     int    // in the level
	resume []byte // where to continue at the host
}

// Passing an entry costs one; these are the relative costs of other steps.
const (
	seekCost = 8
	// tourFrom is how much must have been spent on passing entries before a
	// tour is considered, plus one per tourBytes bytes of tallies.
	tourFrom  = 1 << 16
	tourBytes = 64
)

// stuck reports whether passing hosts that are not wanted has cost as much as
// reading all tallies would.
func (w *dueWalk) stuck() (bool, error) {
	if w.spent < w.ask {
		return false, nil
	}
	w.ask = w.spent + w.spent/4
	size, err := w.s.db.db.EstimateDiskUsage([]byte{byte(codec.TallyTable)}, []byte{byte(codec.TallyTable) + 1})
	return uint64(w.spent-w.s.due.tour) >= size/tourBytes, w.s.db.outcome("due index", err)
}

// readTally sets a tally to that of a host, as it is stored.
func (s *crawlStore) readTally(own *tally, group, value []byte) error {
	*own = (*own)[:0]
	if own.addFrom(value) != nil || slices.ContainsFunc(*own, func(l tallied) bool { return l.n < 0 }) {
		return s.db.damaged("the tally of", string(group), errTally)
	}
	return nil
}

// planBeside plans a tour from where an iterator is, in its snapshot.
func (w *dueWalk) planBeside(ctx context.Context, beside *pebble.Iterator) error {
	it, err := beside.Clone(pebble.CloneOptions{IterOptions: codec.TallyTable.All()})
	if err != nil {
		return w.s.db.outcome("due index", err)
	}
	defer it.Close()
	return w.plan(ctx, it, beside.Key())
}

// wants reports whether URLs of a host are wanted.
func (w *dueWalk) wants(host string) bool { return w.q.WantHost == nil || w.q.WantHost(host) }

// plan makes a tour from a key on, of what an iterator over the tallies shows.
func (w *dueWalk) plan(ctx context.Context, it *pebble.Iterator, from []byte) error {
	t := &tour{first: binary.BigEndian.Uint16(from[1:])}
	t.levels = make([][]uint32, max(0, int(w.floor)-int(t.first)+1))
	var own tally
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if n++; n%checkEvery == 0 {
			if err := w.s.db.goingOn(ctx, &w.s.view); err != nil {
				return err
			}
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return w.s.db.outcome("due index", err)
		}
		group := it.Key()[1:]
		if len(group) == 0 {
			return w.s.db.damaged("the tally of", "", errTally)
		}
		host := ""
		if group[0] != '!' {
			if host = crawldb.Host(crawldb.URLOf(string(group) + "http:")); !w.wants(host) {
				continue
			}
		}
		if err := w.s.readTally(&own, group, value); err != nil {
			return err
		}
		named := false
		for _, l := range own {
			i := int(l.level) - int(t.first)
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
	return w.s.db.outcome("due index", it.Error())
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
				t.tails.drop(i)
				continue
			}
			dst = binary.BigEndian.AppendUint16(append(dst[:0], byte(codec.ReadyTable)), t.first+uint16(t.level))
			return append(dst, t.groups[i]...)
		}
	}
	return nil
}

func (t *tour) pass() { t.at, t.resume = t.at+1, nil }

// readTour reads a page of candidates of the next hosts.
func (w *dueWalk) readTour(ctx context.Context, size int) (more bool, err error) {
	d := w.s.db
	if err := d.enter(ctx, &w.s.view); err != nil {
		return false, err
	}
	defer d.leave()
	w.page.reset(w.s)
	it, err := d.db.NewIter(codec.ReadyTable.All())
	if err != nil {
		return false, d.outcome("due index", err)
	}
	defer it.Close()
	defer w.page.end(w.s)
	leases := leaseView{s: w.s, it: it}
	defer leases.close()
	t := w.tour
	var prefix []byte
	var records *pebble.Iterator
	for n := 0; ; t.pass() {
		if prefix = t.next(prefix, w.wants); prefix == nil {
			return false, nil
		}
		if binary.BigEndian.Uint16(prefix[1:]) > w.depth {
			if records == nil {
				if records, err = it.Clone(pebble.CloneOptions{IterOptions: codec.CrawlTable.All()}); err != nil {
					return false, d.outcome("due index", err)
				}
				defer records.Close()
			}
			if whole, err := w.takeTail(ctx, records, &leases, size); err != nil || !whole {
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
			if n++; n%checkEvery == 0 {
				if err := d.goingOn(ctx, &w.s.view); err != nil {
					return false, err
				}
			}
			if w.page.full(size) {
				t.resume = bytes.Clone(it.Key())
				return true, nil
			}
			if err := w.take(it, &leases); err != nil {
				return false, err
			}
		}
		if !ok && it.Error() != nil {
			return false, d.outcome("due index", it.Error())
		}
	}
}
