package pebblestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

// A page that was fetched has a record that is too long for its entry. To lease it takes a
// read of its block, for nearly each page of a selection another, and that is what a selection of
// matured pages costs most. An UpdateAll, however, whose records lie near one another passes through most
// blocks as it is. So it brings along what is due soon: the entry gets all of the record, and moves to the ready
// table with it. Only as many as are due in a day are held, so the index grows by little.
const (
	// soonHours is how many buckets before and behind the mark are soon.
	soonHours = 24
	// bringOne is how many records a batch must have for each that it brings.
	bringOne = 8
)

// isSoon reports whether the entry of a record that is due at that time gets all of it when
// it is written.
func (s *dueState) isSoon(from int64) bool { return s.long && soonAt(s.mark, from) }

// soonAt reports whether a time is soon at a mark.
func soonAt(mark []byte, from int64) bool {
	if len(mark) < 4 {
		return false
	}
	hours := int64(bucket(from)) - int64(binary.BigEndian.Uint32(mark))
	return hours >= -soonHours && hours < soonHours
}

// dueSoon returns the keys in the wheel of what a batch brings, in the order of records: what is due
// soonest, lies between lower and upper, and has an entry without all of its record.
func (s *crawlStore) dueSoon(ctx context.Context, b crawldb.Batch, lower, upper []byte, state *dueState) ([][]byte, error) {
	if len(state.mark) < 4 {
		return nil, nil
	}
	most := len(b.URLs) / bringOne
	hour := binary.BigEndian.Uint32(state.mark)
	end := binary.BigEndian.AppendUint32([]byte{byte(codec.WheelTable)}, uint32(min(int64(hour)+soonHours, math.MaxUint32)))
	it, err := s.db.db.NewIter(&pebble.IterOptions{LowerBound: codec.WheelTable.Key(string(state.mark)), UpperBound: end})
	if err != nil {
		return nil, s.db.outcome("due index", err)
	}
	defer it.Close()
	// place returns the key in the wheel of the record with that key, if it is due in the hour.
	place := func(of []byte) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{byte(codec.WheelTable)}, hour), of[1:]...)
	}
	var soon [][]byte
	n := 0
	for ok := it.SeekGE(place(lower)); ok && len(soon) < most; {
		if n++; n%checkEvery == 0 {
			if err := s.db.goingOn(ctx, &s.view); err != nil {
				return nil, err
			}
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, s.db.outcome("due index", err)
		}
		e, err := s.wheelEntry(it.Key(), value)
		if err != nil {
			return nil, err
		}
		switch {
		case bucket(e.from) > hour: // nothing in between
			hour = bucket(e.from)
			ok = it.SeekGE(place(lower))
		case bytes.Compare(it.Key()[wheelPrefix:], upper[1:]) > 0:
			hour++
			ok = it.SeekGE(place(lower))
		default:
			if len(e.rest) == 0 {
				soon = append(soon, bytes.Clone(it.Key()))
			}
			ok = it.Next()
		}
	}
	slices.SortFunc(soon, func(a, b []byte) int { return bytes.Compare(a[wheelPrefix:], b[wheelPrefix:]) })
	return soon, s.db.outcome("due index", it.Error())
}

// bring writes what is due soon and precedes the key that the walk is at. What the walk itself
// changes is written as it is then.
func (w *walker) bring() error {
	for len(w.soon) > 0 {
		place := w.soon[0]
		c := bytes.Compare(place[wheelPrefix:], w.key[1:])
		if c > 0 {
			return nil
		}
		if w.soon = w.soon[1:]; c == 0 {
			return nil
		}
		key := codec.CrawlTable.Key(string(place[wheelPrefix:]))
		stored, err := w.at.Find(key)
		if err = w.s.db.outcome("crawl db", err); err != nil && !errors.Is(err, ErrDamaged) {
			return err
		}
		var d crawldb.Datum
		if err != nil || stored == nil || w.s.decode(&d, &w.keys, key[1:], stored, nil) != nil {
			continue // whoever needs it says so; without a record the index is damaged, as CheckIndex says
		}
		if err := w.index.whole(w.batch, place, &d); err != nil {
			return err
		}
	}
	return nil
}

// whole writes the entry of a record, which does not change, with all of it.
func (m *mover) whole(batch changes, place []byte, d *crawldb.Datum) error {
	e := entryOf(d)
	if m.scratch[0] = e.appendKey(m.scratch[0][:0], m.state.mark, place[wheelPrefix:]); !bytes.Equal(m.scratch[0], place) {
		return nil // the index is damaged
	}
	short := len(e.appendValue(m.scratch[2][:0]))
	e.whole = true
	if m.scratch[2] = e.appendValue(m.scratch[2][:0]); len(m.scratch[2]) <= short {
		return nil // it is too long
	}
	m.now(func(s *dueState) { s.long = true }, m.state.long)
	return batch.Set(place, m.scratch[2], nil)
}

// dueRecords are the records of what becomes due, whose entries may lack what they need in
// the ready table. Nil is for an index whose entries lack nothing.
type dueRecords struct {
	s    *crawlStore
	next *dueState // the state that the step leads to
	mark []byte    // that of the last step
	at   rows.Cursor
	keys crawldb.Keys
	key  []byte
	enc  []byte
}

// dueRecords returns the records of entries of the wheel, which are in the order of records.
// mark is where the last step leads to, next what this one does.
func (s *crawlStore) dueRecords(st *step, due []change, next *dueState, mark []byte) (*dueRecords, error) {
	if !next.stale {
		return nil, nil
	}
	lower, upper := codec.CrawlTable.Key(string(st.key(due[0]))), codec.CrawlTable.Key(string(st.key(due[len(due)-1])))
	it, err := s.db.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: append(bytes.Clone(upper), 0)})
	if err != nil {
		return nil, s.db.outcome("due index", err)
	}
	r := &dueRecords{s: s, next: next, mark: mark, at: rows.NewCursor(it)}
	r.at.Last = upper
	if r.at.FarReader, err = s.apart(lower, upper, len(due)); err != nil {
		return nil, errors.Join(err, it.Close())
	}
	return r, nil
}

func (r *dueRecords) close() {
	if r != nil {
		r.at.Close()
	}
}

// complete returns the change that sets an entry, with the priority that its record has now, and with
// all of the record if it has become due within a day. What became due before, during months without a
// selection perhaps, need not be selected soon either. What is damaged stays as it is: whoever needs it says so.
func (r *dueRecords) complete(st *step, c change) (change, error) {
	var e entry
	if r == nil || e.decode(st.valueOf(c)) != nil || len(e.rest) > 0 {
		return c, nil
	}
	r.key = append(append(r.key[:0], byte(codec.CrawlTable)), st.key(c)...)
	stored, err := r.at.Find(r.key)
	if err = r.s.db.outcome("crawl db", err); err != nil && !errors.Is(err, ErrDamaged) {
		return c, err
	}
	var d crawldb.Datum
	if err != nil || stored == nil || r.s.decode(&d, &r.keys, r.key[1:], stored, nil) != nil {
		return c, nil
	}
	is := entryOf(&d)
	if is.from != e.from {
		return c, nil
	}
	is.whole = soonAt(r.mark, is.from)
	if r.enc = is.appendValue(r.enc[:0]); len(r.enc)-len(is.appendHead(nil)) > restMost {
		r.next.long = true
	}
	whole := st.change(nil, r.enc, int32(len(r.enc)))
	whole.key, whole.klen = c.key, c.klen
	return whole, nil
}
