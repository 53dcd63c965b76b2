package dueindex

import (
	"bytes"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

// noEnd is the end of a lease that has a name but no time.
const noEnd = math.MinInt64

// leaseEndOf decodes the end of an encoded lease, in ms.
func leaseEndOf(b []byte) (ms int64, err error) {
	ms, ends, err := codec.DecodeLeaseEnd(b)
	if err == nil && !ends {
		ms = noEnd
	}
	return ms, err
}

// leases are those of the records whose entries an iterator of the index visits, as of its moment: a
// lease does not move the entry of its record, so selections must pass over leased ones.
type leases struct {
	x   *Index
	at  rows.Joined
	key []byte // the last key asked for, with the byte of the table
}

// leasesOf returns the leases beside an iterator.
func (x *Index) leasesOf(it *pebble.Iterator) (*leases, error) {
	at, err := rows.Join(it, codec.LeaseTable)
	return &leases{x: x, at: at}, x.store.EngineError(err)
}

func (l *leases) close() error { return l.at.Close() }

// find returns the end of a record's lease, and whether there is one.
func (l *leases) find(key []byte) (end int64, leased bool, err error) {
	if len(l.key) > 0 && bytes.Compare(key, l.key[1:]) < 0 {
		l.at.Restart() // a key of the next level or hour
	}
	l.key = append(append(l.key[:0], byte(codec.LeaseTable)), key...)
	value, err := l.at.Find(l.key)
	if err == nil && value != nil {
		if end, err = leaseEndOf(value); err != nil {
			return 0, false, l.x.store.Damaged("the lease of", crawldb.URLOf(string(key)), err)
		}
	}
	return end, value != nil, l.x.store.EngineError(err)
}
