package dueindex

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// A Writer is where changes are written: a batch of the engine, or a step of a large update.
type Writer interface {
	Set(key, value []byte, _ *pebble.WriteOptions) error
	Delete(key []byte, _ *pebble.WriteOptions) error
	Merge(key, value []byte, _ *pebble.WriteOptions) error // of tallies
	Len() int
}

// An Update keeps the index consistent with the records while these change. Its caller holds the
// lock of the crawl db from [Index.Update] to [Update.Done].
type Update struct {
	x       *Index
	state   *state
	changed bool // the state is not the stored one
	counts  tallyWriter
	scratch [3][]byte
}

// Update begins an update.
func (x *Index) Update() *Update {
	stored := x.state.Load()
	return &Update{x: x, state: stored, changed: stored.foreign}
}

// Change writes the change of the entry of the record with that key, part of it only at End. from
// is the record before, nil if there was none; to is nil if there is none any more. key and
// records are not kept.
//
// An index that has never been used begins about when its first record was seen: any time will do,
// but a good one saves moving entries.
func (u *Update) Change(w Writer, key []byte, from, to *Record) error {
	if !u.state.has(key) {
		return nil
	}
	if u.state.mark == nil && to != nil {
		u.state, u.changed = &state{mark: markAfter(hourOf(to.seen.UnixMilli())), complete: true}, true
	}
	was, is := u.scratch[0][:0], u.scratch[1][:0]
	if from != nil {
		was = from.appendKey(was, u.state.mark, key)
	}
	if to != nil {
		is = to.appendKey(is, u.state.mark, key)
	}
	u.scratch[0], u.scratch[1] = was, is
	if same := bytes.Equal(was, is); !same {
		if err := u.move(w, was, is); err != nil {
			return err
		}
	} else if to == nil || from.sameValue(to, codec.Table(is[0])) {
		return nil
	}
	if to == nil || !u.state.stores(is) {
		return nil
	}
	value := u.scratch[2][:0]
	if codec.Table(is[0]) == codec.WheelTable {
		value = to.appendTime(value)
	} else {
		value = to.appendReady(value, to.datum, u.state.recent(to.dueFrom))
	}
	u.scratch[2] = value
	return w.Set(is, value, nil)
}

// move deletes the entry under one key, and counts that there is one under another; either may be
// empty.
func (u *Update) move(w Writer, was, is []byte) error {
	if len(was) > 0 {
		if u.state.stores(was) {
			if err := w.Delete(was, nil); err != nil {
				return err
			}
		}
		if err := u.counts.add(w, was, -1); err != nil {
			return err
		}
	}
	if len(is) > 0 {
		return u.counts.add(w, is, 1)
	}
	return nil
}

// End writes the remaining changes of the index. Records must not change after it.
func (u *Update) End(w Writer) error {
	if err := u.counts.flush(w); err != nil || !u.changed {
		return err
	}
	return w.Set(stateKey, u.state.append(nil), nil)
}

// Done tells selections of the update once its changes were written, or err was the reason why
// they were not.
func (u *Update) Done(err error) {
	if err == nil && u.changed {
		u.x.state.Store(u.state)
	}
	u.x.changes.Add(1)
}

// A Record is a record as the index sees it. Of the record it keeps a reference to all that it
// does not have itself, which must not change before the next call of Change.
type Record struct {
	entry
	datum *crawldb.Datum
	seen  time.Time
}

// RecordOf returns what the index has of a record.
func RecordOf(d *crawldb.Datum) Record {
	r := Record{entry: entryOf(d), datum: d, seen: d.LastFetch}
	if r.seen.IsZero() {
		r.seen = d.FetchTime
	}
	return r
}

// sameValue reports whether the entries of two records have the same value in a table.
func (r *Record) sameValue(o *Record, t codec.Table) bool {
	if t == codec.WheelTable {
		return r.dueFrom == o.dueFrom
	}
	var a, b [maxValue]byte
	return bytes.Equal(r.appendReady(a[:0], r.datum, true), o.appendReady(b[:0], o.datum, true))
}

// appendToken appends the token of a candidate: the number of changes before its entry
// was read, and the entry's value; nothing if that says too little.
func appendToken(dst []byte, changes uint64, value []byte) []byte {
	if value == nil {
		return dst
	}
	return append(binary.BigEndian.AppendUint64(dst, changes), value...)
}

// RecordOfToken returns the record that the token of a candidate describes, if no record has
// changed since. The caller holds the lock of the crawl db.
func (x *Index) RecordOfToken(token, url string) (d crawldb.Datum, ok bool) {
	if len(token) <= 8 {
		return d, false
	}
	var space [8 + maxValue]byte
	b := append(space[:0], token...)
	var e entry
	if binary.BigEndian.Uint64(b) != x.changes.Load() || e.decode(b[8:]) != nil {
		return d, false
	}
	return e.record(url)
}
