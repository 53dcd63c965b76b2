package dueindex

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"slices"

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
)

// Check compares the index with the records as of one moment, and calls found with every
// difference, with some of them twice. Sums of hashes, which do not depend on the order, show
// whether the tables agree; entries are looked up only if they do not. Damage of a block that
// hides the rest is reported, too; an error means that the check could not continue.
//
// The caller has entered the store.
func (x *Index) Check(ctx context.Context, now rows.Snapshot, found func(error)) error {
	err := x.compare(ctx, now, found)
	if x.store.IsDamaged(err) {
		found(err)
		return nil
	}
	return err
}

func (x *Index) compare(ctx context.Context, now rows.Snapshot, found func(error)) error {
	state, err := x.storedState(now)
	if err != nil || state == nil {
		return err
	}
	sums, err := x.sumRows(ctx, now, state, found)
	if err != nil {
		return err
	}
	if sums.tallies != 0 {
		if err := x.compareTallies(ctx, now, state, found); err != nil {
			return err
		}
	}
	if sums.records == sums.index {
		return nil
	}
	if err := x.findMissing(ctx, now, state, found); err != nil {
		return err
	}
	return x.findForeign(ctx, now, state, found)
}

// storedState returns the state of the index as it is stored, that of an empty store if
// there is none, and nil for one of another version, which will be rebuilt.
func (x *Index) storedState(r rows.Reader) (*state, error) {
	b, err := rows.Get(r, stateKey)
	if err := x.store.EngineError(err); err != nil {
		return nil, err
	}
	if b == nil {
		return &state{}, nil
	}
	state, ok, err := parseState(b)
	if err != nil {
		return nil, x.store.Damaged("the state of", "the due index", err)
	}
	if !ok {
		return nil, nil
	}
	return state, nil
}

// tableSums are sums over the tables: of the entries that the records must have, of those
// that there are, and of the latter without what the tallies account for.
type tableSums struct {
	records, index rowSum
	tallies        uint64
}

// rowSum is a number of rows and the sum of their hashes.
type rowSum struct{ n, sum uint64 }

// sumRows adds up the tables, and reports the rows that cannot be read, which do not count.
func (x *Index) sumRows(ctx context.Context, r rows.Reader, state *state, found func(error)) (tableSums, error) {
	seed := maphash.MakeSeed()
	hash := func(key, value []byte) uint64 {
		var h maphash.Hash
		h.SetSeed(seed)
		h.Write(key)
		h.WriteByte(0)
		h.Write(value)
		return h.Sum64()
	}
	var sums tableSums
	err := x.entries(ctx, r, state, found, func(_ string, key, value []byte) error {
		if codec.Table(key[0]) == codec.ReadyTable {
			sums.tallies += hash(key[1:readyPrefix], codec.HostPrefix(key[readyPrefix:]))
		}
		if state.stores(key) {
			sums.records.n++
			sums.records.sum += hash(key, value)
		}
		return nil
	})
	if err != nil {
		return sums, err
	}
	for _, t := range [...]codec.Table{codec.ReadyTable, codec.WheelTable} {
		err := x.rows(ctx, r, t, func(key, value []byte) error {
			if err := x.isEntry(key, value); err != nil {
				found(err)
				return nil
			}
			value, err := x.shortValue(r, key, value)
			if err != nil {
				return err
			}
			sums.index.n++
			sums.index.sum += hash(key, value)
			return nil
		})
		if err != nil {
			return sums, err
		}
	}
	return sums, x.rows(ctx, r, codec.TallyTable, func(key, value []byte) error {
		var own codec.Tally
		if own.AddEncoded(value) != nil {
			found(x.store.Damaged("the tally of", string(key[1:]), codec.ErrTally))
			return nil
		}
		for _, l := range own {
			sums.tallies -= hash(binary.BigEndian.AppendUint16(nil, l.Level), key[1:]) * uint64(l.N)
		}
		return nil
	})
}

// isEntry returns an error if a row of the index is not an entry, or in a wrong place.
func (x *Index) isEntry(key, value []byte) (err error) {
	if codec.Table(key[0]) == codec.ReadyTable {
		_, err = x.readyEntry(key, value)
	} else {
		_, err = x.wheelEntry(key, value)
	}
	return err
}

// shortValue returns the value of an entry without its long rest, if it has one and its record
// is that; otherwise the value as it is, which an entry with a wrong rest shares with no record.
func (x *Index) shortValue(r rows.Reader, key, value []byte) ([]byte, error) {
	var e entry
	if e.decode(value) != nil || len(e.rest) <= maxShortRest {
		return value, nil
	}
	own := key[codec.Table(key[0]).RecordKeyOffset():]
	record, err := rows.Get(r, codec.CrawlTable.Key(string(own)))
	if err := x.store.EngineError(err); err != nil || record == nil {
		return value, err
	}
	var keys crawldb.Keys
	var d crawldb.Datum
	if x.decode(&d, &keys, own, record, nil) != nil {
		return value, nil // reported
	}
	if e = entryOf(&d); !bytes.Equal(e.appendReady(nil, &d, true), value) {
		return value, nil
	}
	return e.appendReady(nil, &d, false), nil
}

// findMissing finds records whose entry is missing or that of an older record.
func (x *Index) findMissing(ctx context.Context, r rows.Reader, state *state, found func(error)) error {
	return x.entries(ctx, r, state, found, func(url string, key, value []byte) error {
		if !state.stores(key) {
			return nil
		}
		stored, err := rows.Get(r, key)
		if err := x.store.EngineError(err); err != nil {
			return err
		}
		if stored != nil {
			if x.isEntry(key, stored) != nil {
				return nil // reported
			}
			if stored, err = x.shortValue(r, key, stored); err != nil {
				return err
			}
		}
		if !bytes.Equal(stored, value) {
			found(x.store.Damaged("the record of", url, errNoEntry))
		}
		return nil
	})
}

// findForeign finds entries for which no record accounts.
func (x *Index) findForeign(ctx context.Context, r rows.Reader, state *state, found func(error)) error {
	var keys crawldb.Keys
	for _, t := range [...]codec.Table{codec.ReadyTable, codec.WheelTable} {
		err := x.rows(ctx, r, t, func(key, value []byte) error {
			if x.isEntry(key, value) != nil {
				return nil // reported
			}
			own := key[t.RecordKeyOffset():]
			url := crawldb.URLOf(string(own))
			record, err := rows.Get(r, codec.CrawlTable.Key(string(own)))
			if err := x.store.EngineError(err); err != nil {
				return err
			}
			if record != nil {
				var d crawldb.Datum
				if keys.Decode(&d, own, record) != nil {
					return nil // reported
				}
				e := entryOf(&d)
				if state.has(own) && state.stores(key) && bytes.Equal(e.appendKey(nil, state.mark, own), key) {
					return nil
				}
			}
			found(x.store.Damaged("the entry of the due index", url, errNoRecord))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// compareTallies finds hosts whose tally does not count their records that are due. Both are
// in the order of hosts. A host with a record that cannot be read is passed: it was reported.
func (x *Index) compareTallies(ctx context.Context, now rows.Snapshot, state *state, found func(error)) error {
	wrong := func(group []byte) { found(x.store.Damaged("the tally of", string(group), errCount)) }
	it, err := now.NewIter(codec.TallyTable.All())
	if err != nil {
		return x.store.EngineError(err)
	}
	defer it.Close()
	it.First()
	var group []byte // of the records that are counted, nil before the first
	var is, own codec.Tally
	unsure := false
	// pass compares the tallies before a group, or all that are left: those of group with what was
	// counted, others with nothing.
	pass := func(next []byte) error {
		for ; it.Valid() && (next == nil || bytes.Compare(it.Key()[1:], next) < 0); it.Next() {
			value, err := it.ValueAndErr()
			if err != nil {
				return x.store.EngineError(err)
			}
			mine := group != nil && bytes.Equal(it.Key()[1:], group)
			if own = own[:0]; own.AddEncoded(value) != nil || mine && unsure {
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
		return x.store.EngineError(it.Error())
	}
	var keys crawldb.Keys
	var d crawldb.Datum
	var key []byte
	err = x.rows(ctx, now, codec.CrawlTable, func(k, value []byte) error {
		if of := codec.HostPrefix(k[1:]); group == nil || !bytes.Equal(of, group) {
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
			is.Add(binary.BigEndian.Uint16(key[1:]), 1)
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
func (x *Index) entries(ctx context.Context, r rows.Reader, state *state, found func(error), f func(url string, key, value []byte) error) error {
	it, err := r.NewIter(codec.LeaseTable.All())
	if err != nil {
		return x.store.EngineError(err)
	}
	defer it.Close()
	it.First()
	// pass passes over the leases before a key, which have no record; all of them if it is nil.
	pass := func(key []byte) {
		for it.Valid() && (key == nil || bytes.Compare(it.Key()[1:], key) < 0) {
			found(x.store.Damaged("the lease of", crawldb.URLOf(string(it.Key()[1:])), errNoOwner))
			it.Next()
		}
	}
	var keys crawldb.Keys
	var d crawldb.Datum
	var key, enc []byte
	err = x.rows(ctx, r, codec.CrawlTable, func(k, value []byte) error {
		pass(k[1:])
		leased := it.Valid() && bytes.Equal(it.Key()[1:], k[1:])
		if leased {
			defer it.Next()
			lease, err := it.ValueAndErr()
			if err != nil {
				return x.store.EngineError(err)
			}
			if err := codec.DecodeLease(&d, lease); err != nil {
				found(x.store.Damaged("the lease of", crawldb.URLOf(string(k[1:])), err))
			}
		}
		if err := x.decode(&d, &keys, k[1:], value, nil); err != nil {
			found(err)
			return nil
		}
		if !state.has(k[1:]) {
			return nil
		}
		if !leased && (d.LeasedBy != "" || !d.LeasedUntil.IsZero()) {
			found(x.store.Damaged("the record of", d.URL, errOldLease))
		}
		e := entryOf(&d)
		if key = e.appendKey(key[:0], state.mark, k[1:]); codec.Table(key[0]) == codec.WheelTable {
			enc = e.appendTime(enc[:0])
		} else {
			enc = e.appendReady(enc[:0], &d, false)
		}
		return f(d.URL, key, enc)
	})
	if err != nil {
		return err
	}
	pass(nil)
	return x.store.EngineError(it.Error())
}
