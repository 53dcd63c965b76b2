package dueindex

import (
	"math"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
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
	at  *pebble.Iterator
	key []byte // the last key asked for, with the byte of the table
}

// leasesOf returns the leases beside an iterator.
func (x *Index) leasesOf(it *pebble.Iterator) (*leases, error) {
	at, err := it.Clone(pebble.CloneOptions{IterOptions: codec.LeaseTable.All()})
	return &leases{x: x, at: at}, x.store.EngineError(err)
}

func (l *leases) close() error { return l.at.Close() }

// find returns the end of a record's lease, and whether there is one. It looks at that key alone: a step
// to the next lease would pass over the tombstones of all leases that have ended since the engine
// wrote its memory to a table.
func (l *leases) find(key []byte) (end int64, leased bool, err error) {
	l.key = append(append(l.key[:0], byte(codec.LeaseTable)), key...)
	var value []byte
	found := l.at.SeekPrefixGE(l.key)
	if found {
		value, err = l.at.ValueAndErr()
	} else {
		err = l.at.Error()
	}
	if err == nil && found {
		if end, err = leaseEndOf(value); err != nil {
			return 0, false, l.x.store.Damaged("the lease of", crawldb.URLOf(string(key)), err)
		}
	}
	return end, found, l.x.store.EngineError(err)
}
