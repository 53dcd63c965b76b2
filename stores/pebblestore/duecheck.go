package pebblestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

var (
	errNoEntry  = errors.New("it has no entry in the due index, or an old one")
	errNoRecord = errors.New("its entry in the due index is not that of a record")
	errNoOwner  = errors.New("its lease has no record")
	errOldLease = errors.New("its lease is in the record, where selections do not look")
	errCount    = errors.New("its tally does not count its records that are due")
	errKey      = errors.New("it is under the key of another URL")
	errLayer    = errors.New("it is in no layer")
)

// checkDue is CheckIndex, but calls found with every difference, with some of them twice. Sums of
// hashes, which do not depend on the order, show whether the tables agree; entries are looked up
// only if they do not. Damage of a block that hides the rest is reported, too; an error means that
// the check could not continue.
func (s *crawlStore) checkDue(ctx context.Context, found func(error)) error {
	err := s.db.inMoment(ctx, func(now rows.Snapshot) error { return s.compareDue(ctx, now, found) })
	if errors.Is(err, ErrDamaged) {
		found(err)
		return nil
	}
	return err
}

func (s *crawlStore) compareDue(ctx context.Context, now rows.Snapshot, found func(error)) error {
	state, err := s.storedState(now)
	if err != nil || state == nil {
		return err
	}
	sums, err := s.sumDue(ctx, now, state, found)
	if err != nil {
		return err
	}
	if sums.tallies != 0 {
		if err := s.compareTallies(ctx, now, state, found); err != nil {
			return err
		}
	}
	if sums.records == sums.index {
		return nil
	}
	if err := s.findMissing(ctx, now, state, found); err != nil {
		return err
	}
	return s.findForeign(ctx, now, state, found)
}

// storedState returns the state of the index as it is stored, that of an empty store if
// there is none, and nil for one of another version, which will be rebuilt.
func (s *crawlStore) storedState(r rows.Reader) (*dueState, error) {
	b, err := rows.Get(r, dueKey)
	if err := s.db.outcome("due index", err); err != nil {
		return nil, err
	}
	if b == nil {
		return &dueState{}, nil
	}
	state, ok, err := parseState(b)
	if err != nil {
		return nil, s.db.damaged("the state of", "the due index", err)
	}
	if !ok {
		return nil, nil
	}
	return state, nil
}

// dueSums are sums over the tables: of the entries that the records must have, of those
// that there are, and of the latter without what the tallies account for.
type dueSums struct {
	records, index rowSum
	tallies        uint64
}

// rowSum is a number of rows and the sum of their hashes.
type rowSum struct{ n, sum uint64 }

// sumDue adds up the tables, and reports the rows that cannot be read, which do not count.
func (s *crawlStore) sumDue(ctx context.Context, r rows.Reader, state *dueState, found func(error)) (dueSums, error) {
	seed := maphash.MakeSeed()
	hash := func(key, value []byte) uint64 {
		var h maphash.Hash
		h.SetSeed(seed)
		h.Write(key)
		h.WriteByte(0)
		h.Write(value)
		return h.Sum64()
	}
	var sums dueSums
	err := s.entries(ctx, r, state, found, func(_ string, key, value []byte) error {
		if codec.Table(key[0]) == codec.ReadyTable {
			sums.tallies += hash(key[1:readyPrefix], groupOf(key[readyPrefix:]))
		}
		if state.keeps(key) {
			sums.records.n++
			sums.records.sum += hash(key, state.timeOnly(key, value))
		}
		return nil
	})
	if err != nil {
		return sums, err
	}
	for _, t := range [...]codec.Table{codec.ReadyTable, codec.WheelTable} {
		err := s.rows(ctx, r, t, func(key, value []byte) error {
			if err := s.isEntry(key, value); err != nil {
				found(err)
				return nil
			}
			value, err := s.shortValue(r, state, key, value)
			if err != nil {
				return err
			}
			sums.index.n++
			sums.index.sum += hash(key, state.timeOnly(key, value))
			return nil
		})
		if err != nil {
			return sums, err
		}
	}
	return sums, s.rows(ctx, r, codec.TallyTable, func(key, value []byte) error {
		var own tally
		if own.addFrom(value) != nil {
			found(s.db.damaged("the tally of", string(key[1:]), errTally))
			return nil
		}
		for _, l := range own {
			sums.tallies -= hash(binary.BigEndian.AppendUint16(nil, l.level), key[1:]) * uint64(l.n)
		}
		return nil
	})
}

// isEntry returns an error if a row of the index is not an entry, or in a wrong place.
func (s *crawlStore) isEntry(key, value []byte) (err error) {
	if codec.Table(key[0]) == codec.ReadyTable {
		_, err = s.readyEntry(key, value)
	} else {
		_, err = s.wheelEntry(key, value)
	}
	return err
}

// shortValue returns the value of an entry without its long rest, if it has one and its record
// is that; otherwise the value as it is, which an entry with a wrong rest shares with no record.
func (s *crawlStore) shortValue(r rows.Reader, state *dueState, key, value []byte) ([]byte, error) {
	var e entry
	if !state.long || e.decode(value) != nil || len(e.rest) <= restMost {
		return value, nil
	}
	own := key[lanePrefix(codec.Table(key[0])):]
	record, err := rows.Get(r, codec.CrawlTable.Key(string(own)))
	if err := s.db.outcome("due index", err); err != nil || record == nil {
		return value, err
	}
	var keys crawldb.Keys
	var d crawldb.Datum
	if s.decode(&d, &keys, own, record, nil) != nil {
		return value, nil // reported
	}
	e = entryOf(&d)
	if e.whole = true; !bytes.Equal(e.appendValue(nil), value) {
		return value, nil
	}
	e.whole = false
	return e.appendValue(nil), nil
}

// findMissing finds records whose entry is missing or that of an older record.
func (s *crawlStore) findMissing(ctx context.Context, r rows.Reader, state *dueState, found func(error)) error {
	return s.entries(ctx, r, state, found, func(url string, key, value []byte) error {
		if !state.keeps(key) {
			return nil
		}
		stored, err := rows.Get(r, key)
		if err := s.db.outcome("due index", err); err != nil {
			return err
		}
		if stored != nil {
			if s.isEntry(key, stored) != nil {
				return nil // reported
			}
			if stored, err = s.shortValue(r, state, key, stored); err != nil {
				return err
			}
		}
		if !bytes.Equal(state.timeOnly(key, stored), state.timeOnly(key, value)) {
			found(s.db.damaged("the record of", url, errNoEntry))
		}
		return nil
	})
}

// findForeign finds entries for which no record accounts.
func (s *crawlStore) findForeign(ctx context.Context, r rows.Reader, state *dueState, found func(error)) error {
	var keys crawldb.Keys
	for _, t := range [...]struct {
		codec.Table
		prefix int
	}{{codec.ReadyTable, readyPrefix}, {codec.WheelTable, wheelPrefix}} {
		err := s.rows(ctx, r, t.Table, func(key, value []byte) error {
			if s.isEntry(key, value) != nil {
				return nil // reported
			}
			own := key[t.prefix:]
			url := crawldb.URLOf(string(own))
			record, err := rows.Get(r, codec.CrawlTable.Key(string(own)))
			if err := s.db.outcome("due index", err); err != nil {
				return err
			}
			if record != nil {
				var d crawldb.Datum
				if keys.Decode(&d, own, record) != nil {
					return nil // reported
				}
				e := entryOf(&d)
				if state.has(own) && state.keeps(key) && bytes.Equal(e.appendKey(nil, state.mark, own), key) {
					return nil
				}
			}
			found(s.db.damaged("the entry of the due index", url, errNoRecord))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkKeys checks that each record of the crawl db, and each page of the link db, is
// under the key of its URL.
func (d *DB) checkKeys(ctx context.Context, found func(error)) error {
	var again []byte
	return d.eachRow(ctx, []codec.Table{codec.CrawlTable, codec.LinkTable, codec.LayerTable}, func(_ rows.Snapshot, key, _ []byte) error {
		page := key[1:]
		if codec.IsLinkKey(key) {
			var known bool
			if _, page, known = codec.SplitLinkKey(key); !known {
				found(d.damaged("a row of the link db", string(key), errLayer))
				return nil
			}
		}
		url := crawldb.URLOf(string(page))
		if again = crawldb.AppendKey(again[:0], url); !bytes.Equal(again, page) {
			found(d.damaged("the key of", url, errKey))
		}
		return nil
	})
}

// compareTallies finds hosts whose tally does not count their records that are due. Both are
// in the order of hosts. A host with a record that cannot be read is passed: it was reported.
func (s *crawlStore) compareTallies(ctx context.Context, now rows.Snapshot, state *dueState, found func(error)) error {
	wrong := func(group []byte) { found(s.db.damaged("the tally of", string(group), errCount)) }
	it, err := now.NewIter(codec.TallyTable.All())
	if err != nil {
		return s.db.outcome("due index", err)
	}
	defer it.Close()
	it.First()
	var group []byte // of the records that are counted, nil before the first
	var is, own tally
	unsure := false
	// pass compares the tallies before a group, or all that are left: those of group with what was
	// counted, others with nothing.
	pass := func(next []byte) error {
		for ; it.Valid() && (next == nil || bytes.Compare(it.Key()[1:], next) < 0); it.Next() {
			value, err := it.ValueAndErr()
			if err != nil {
				return s.db.outcome("due index", err)
			}
			mine := group != nil && bytes.Equal(it.Key()[1:], group)
			if own = own[:0]; own.addFrom(value) != nil || mine && unsure {
				unsure = unsure || mine // reported
			} else if mine && !slices.Equal(own, is) || !mine && len(own) > 0 {
				wrong(it.Key()[1:])
			}
			if mine {
				is = is[:0]
			}
		}
		if len(is) > 0 && !unsure { // there was none
			wrong(group)
		}
		is, unsure = is[:0], false
		return s.db.outcome("due index", it.Error())
	}
	var keys crawldb.Keys
	var d crawldb.Datum
	var key []byte
	err = s.rows(ctx, now, codec.CrawlTable, func(k, value []byte) error {
		if of := groupOf(k[1:]); group == nil || !bytes.Equal(of, group) {
			if err := pass(of); err != nil {
				return err
			}
			group = append([]byte{}, of...)
		}
		if !state.has(k[1:]) {
			return nil
		}
		if keys.Decode(&d, k[1:], value) != nil {
			unsure = true
			return nil
		}
		e := entryOf(&d)
		if key = e.appendKey(key[:0], state.mark, k[1:]); codec.Table(key[0]) == codec.ReadyTable {
			is.add(binary.BigEndian.Uint16(key[1:]), 1)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return pass(nil)
}

// entries calls f with the entry that each record must have. It reports records and leases
// that cannot be read, and leases that have no record.
func (s *crawlStore) entries(ctx context.Context, r rows.Reader, state *dueState, found func(error), f func(url string, key, value []byte) error) error {
	it, err := r.NewIter(codec.LeaseTable.All())
	if err != nil {
		return s.db.outcome("due index", err)
	}
	defer it.Close()
	it.First()
	// pass passes over the leases before a key, which have no record; all of them if it is nil.
	pass := func(key []byte) {
		for it.Valid() && (key == nil || bytes.Compare(it.Key()[1:], key) < 0) {
			found(s.db.damaged("the lease of", crawldb.URLOf(string(it.Key()[1:])), errNoOwner))
			it.Next()
		}
	}
	var keys crawldb.Keys
	var d crawldb.Datum
	var key, enc []byte
	err = s.rows(ctx, r, codec.CrawlTable, func(k, value []byte) error {
		pass(k[1:])
		leased := it.Valid() && bytes.Equal(it.Key()[1:], k[1:])
		if leased {
			defer it.Next()
			lease, err := it.ValueAndErr()
			if err != nil {
				return s.db.outcome("due index", err)
			}
			if err := codec.DecodeLease(&d, lease); err != nil {
				found(s.db.damaged("the lease of", crawldb.URLOf(string(k[1:])), err))
			}
		}
		if err := s.decode(&d, &keys, k[1:], value, nil); err != nil {
			found(err)
			return nil
		}
		if !state.has(k[1:]) {
			return nil
		}
		if !leased && (d.LeasedBy != "" || !d.LeasedUntil.IsZero()) {
			found(s.db.damaged("the record of", d.URL, errOldLease))
		}
		e := entryOf(&d)
		key, enc = e.appendKey(key[:0], state.mark, k[1:]), e.appendValue(enc[:0])
		return f(d.URL, key, enc)
	})
	if err != nil {
		return err
	}
	pass(nil)
	return s.db.outcome("due index", it.Error())
}

// rows calls f with each row of a table.
func (s *crawlStore) rows(ctx context.Context, r rows.Reader, t codec.Table, f func(key, value []byte) error) error {
	it, err := r.NewIter(t.All())
	if err != nil {
		return s.db.outcome("due index", err)
	}
	defer it.Close()
	return s.each(ctx, it, f)
}

// each calls f with what an iterator visits.
func (s *crawlStore) each(ctx context.Context, it *pebble.Iterator, f func(key, value []byte) error) error {
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if n++; n%checkEvery == 0 {
			if err := s.db.goingOn(ctx, &s.view); err != nil {
				return err
			}
		}
		value, err := it.ValueAndErr()
		if err == nil {
			err = f(it.Key(), value)
		}
		if err != nil {
			return err
		}
	}
	return s.db.outcome("due index", it.Error())
}
