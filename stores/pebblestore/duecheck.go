package pebblestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
)

var (
	errNoEntry  = errors.New("has no entry in the due index")
	errNoRecord = errors.New("no record accounts for it")
	errOldLease = errors.New("its lease is in the record, where selections do not look")
	errKey      = errors.New("it is under the key of another URL")
)

// checkDue is CheckIndex, but calls found with every difference. Sums of hashes, which do
// not depend on the order, show whether the tables agree; entries are looked up only if
// they do not. Damage that hides the rest is reported, too; an error means that the check
// could not continue.
func (s *crawlStore) checkDue(ctx context.Context, found func(error)) error {
	told := 0
	err := s.db.inMoment(ctx, func(now moment) error {
		return s.compareDue(ctx, now, func(err error) { told++; found(err) })
	})
	if errors.Is(err, ErrDamaged) {
		if told == 0 {
			found(err)
		}
		return nil
	}
	return err
}

func (s *crawlStore) compareDue(ctx context.Context, now moment, found func(error)) error {
	state, err := s.storedState(now)
	if err != nil || state == nil {
		return err
	}
	sums, err := s.sumDue(ctx, now, state)
	if err != nil {
		return err
	}
	if sums.tallies != 0 {
		if err := s.compareTallies(ctx, now, found); err != nil {
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
func (s *crawlStore) storedState(r reader) (*dueState, error) {
	b, err := get(r, dueKey)
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

func (s *crawlStore) sumDue(ctx context.Context, r reader, state *dueState) (dueSums, error) {
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
	err := s.entries(ctx, r, state, func(_ string, key, value []byte) error {
		sums.records.n++
		sums.records.sum += hash(key, value)
		return nil
	})
	if err != nil {
		return sums, err
	}
	for _, t := range [...]table{readyTable, wheelTable} {
		entry := s.readyEntry
		if t == wheelTable {
			entry = s.wheelEntry
		}
		err := s.rows(ctx, r, t, func(key, value []byte) error {
			if _, err := entry(key, value); err != nil {
				return err
			}
			sums.index.n++
			sums.index.sum += hash(key, value)
			if t == readyTable {
				sums.tallies += hash(key[1:readyPrefix], groupOf(key[readyPrefix:]))
			}
			return nil
		})
		if err != nil {
			return sums, err
		}
	}
	return sums, s.rows(ctx, r, tallyTable, func(key, value []byte) error {
		var own tally
		if own.addFrom(value) != nil {
			return s.db.damaged("the tally of", string(key[1:]), errTally)
		}
		for _, l := range own {
			sums.tallies -= hash(binary.BigEndian.AppendUint16(nil, l.level), key[1:]) * uint64(l.n)
		}
		return nil
	})
}

// findMissing finds records whose entry is missing or wrong.
func (s *crawlStore) findMissing(ctx context.Context, r reader, state *dueState, found func(error)) error {
	return s.entries(ctx, r, state, func(url string, key, value []byte) error {
		stored, err := get(r, key)
		if err := s.db.outcome("due index", err); err != nil {
			return err
		}
		if stored == nil || !bytes.Equal(stored, value) {
			found(s.db.damaged("the record of", url, errNoEntry))
		}
		return nil
	})
}

// findForeign finds entries for which no record accounts.
func (s *crawlStore) findForeign(ctx context.Context, r reader, state *dueState, found func(error)) error {
	var keys crawldb.Keys
	for _, t := range [...]struct {
		table
		prefix int
	}{{readyTable, readyPrefix}, {wheelTable, wheelPrefix}} {
		err := s.rows(ctx, r, t.table, func(key, _ []byte) error {
			own := key[min(len(key), t.prefix):]
			url := crawldb.URLOf(string(own))
			value, err := get(r, crawlTable.key(string(own)))
			var lease []byte
			if err == nil {
				lease, err = get(r, leaseTable.key(string(own)))
			}
			if err := s.db.outcome("due index", err); err != nil {
				return err
			}
			if value != nil {
				var d crawldb.Datum
				if err := s.decode(&d, &keys, own, value, lease); err != nil {
					return err
				}
				e := entryOf(&d)
				if state.has(own) && bytes.Equal(e.appendKey(nil, state.mark, own), key) {
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
	return d.eachRow(ctx, []table{crawlTable, linkTable}, func(_ moment, key, _ []byte) error {
		url := crawldb.URLOf(string(key[1:]))
		if again = crawldb.AppendKey(again[:0], url); !bytes.Equal(again, key[1:]) {
			found(d.damaged("the key of", url, errKey))
		}
		return nil
	})
}

// compareTallies finds hosts whose tally is wrong.
func (s *crawlStore) compareTallies(ctx context.Context, r reader, found func(error)) error {
	have := map[string]tally{}
	err := s.rows(ctx, r, readyTable, func(key, _ []byte) error {
		own := have[string(groupOf(key[readyPrefix:]))]
		own.add(binary.BigEndian.Uint16(key[1:]), 1)
		have[string(groupOf(key[readyPrefix:]))] = own
		return nil
	})
	if err != nil {
		return err
	}
	err = s.rows(ctx, r, tallyTable, func(key, value []byte) error {
		if group := string(key[1:]); !bytes.Equal(have[group].append(nil), value) {
			found(s.db.damaged("the tally of", group, errTally))
		}
		delete(have, string(key[1:]))
		return nil
	})
	if err != nil {
		return err
	}
	for _, group := range slices.Sorted(maps.Keys(have)) {
		found(s.db.damaged("the tally of", group, errNoEntry))
	}
	return nil
}

// entries calls f with the entry that each record must have, and checks that each lease
// has a record.
func (s *crawlStore) entries(ctx context.Context, r reader, state *dueState, f func(url string, key, value []byte) error) error {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: []byte{byte(leaseTable)}, UpperBound: []byte{byte(leaseTable) + 1}})
	if err != nil {
		return s.db.outcome("due index", err)
	}
	defer it.Close()
	it.First()
	next := func() error {
		if it.Error() == nil && it.Valid() {
			return s.db.damaged("the lease of", crawldb.URLOf(string(it.Key()[1:])), errNoRecord)
		}
		return s.db.outcome("due index", it.Error())
	}
	var keys crawldb.Keys
	var d crawldb.Datum
	var key, enc []byte
	err = s.rows(ctx, r, crawlTable, func(k, value []byte) error {
		var lease []byte
		if it.Valid() {
			switch c := bytes.Compare(it.Key()[1:], k[1:]); {
			case c < 0:
				return next()
			case c == 0:
				var err error
				if lease, err = it.ValueAndErr(); err != nil {
					return err
				}
				if len(lease) == 0 {
					return s.db.damaged("the lease of", crawldb.URLOf(string(k[1:])), errLease)
				}
			}
		}
		if err := s.decode(&d, &keys, k[1:], value, lease); err != nil {
			return err
		}
		if lease != nil {
			it.Next()
		}
		if !state.has(k[1:]) {
			return nil
		}
		if lease == nil && (d.LeasedBy != "" || !d.LeasedUntil.IsZero()) {
			return s.db.damaged("the record of", d.URL, errOldLease)
		}
		e := entryOf(&d)
		key, enc = e.appendKey(key[:0], state.mark, k[1:]), e.appendValue(enc[:0])
		return f(d.URL, key, enc)
	})
	if err != nil {
		return err
	}
	return next()
}

// rows calls f with each row of a table.
func (s *crawlStore) rows(ctx context.Context, r reader, t table, f func(key, value []byte) error) error {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: []byte{byte(t)}, UpperBound: []byte{byte(t) + 1}})
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
