package pebblestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/maphash"
	"math"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/rows"
)

// A leaseSet knows which records have a lease, and until when, without reading anything:
// a lease does not move the entry of a record in the due index, so selections must pass
// over leased ones. The set is read from the table of leases when a selection first needs
// it, and follows updates from then on.
//
// It holds at most most leases. While there are more, selections read the table for each
// entry, which takes some microseconds instead of a tenth of one.
type leaseSet struct {
	most  int
	seeds [2]maphash.Seed

	mu    sync.RWMutex
	state leaseState
	ends  map[leaseID]leaseEnd // if known
	rows  int                  // of the table, unless unread
}

type leaseState byte

const (
	leasesUnread leaseState = iota
	leasesKnown
	leasesTooMany
)

// leaseBytes is the most that a lease takes in the set: a slot of 16 bytes and a
// control byte, in a map that may use less than half of its slots.
const leaseBytes = 40

// A leaseID stands for the key of a record: 80 bits of hashes that differ from one
// opening to the next, so that nobody can make two collide. Among 20 million URLs and
// two million leases there is a collision once in 30 billion times; then a URL waits
// for the lease of another.
type leaseID [10]byte

// A leaseEnd is a time in milliseconds since the year one began, big-endian;
// zero is noEnd. Times after the year 8920 count as that.
type leaseEnd [6]byte

const (
	// noEnd is the end of a lease that has a name but no time.
	noEnd = math.MinInt64

	yearOne = -62135596800_000 // the zero of time.Time, in ms since 1970
	lastEnd = 1<<48 - 1
)

func endOf(ms int64) (e leaseEnd) {
	var b [8]byte
	if ms >= yearOne {
		binary.BigEndian.PutUint64(b[:], uint64(min(ms-yearOne, lastEnd)))
	}
	copy(e[:], b[2:])
	return e
}

func (e leaseEnd) millis() int64 {
	var b [8]byte
	copy(b[2:], e[:])
	if n := binary.BigEndian.Uint64(b[:]); n > 0 {
		return int64(n) + yearOne
	}
	return noEnd
}

func newLeaseSet(most int) *leaseSet {
	return &leaseSet{most: most, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

// id returns the ID for the key of a record.
func (l *leaseSet) id(key []byte) (id leaseID) {
	binary.LittleEndian.PutUint64(id[:], maphash.Bytes(l.seeds[0], key))
	binary.LittleEndian.PutUint16(id[8:], uint16(maphash.Bytes(l.seeds[1], key)))
	return id
}

// find returns the end of a record's lease, and whether there is one; known is
// false if the table must be read.
func (l *leaseSet) find(key []byte) (end int64, leased, known bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if len(l.ends) == 0 {
		return 0, false, l.state == leasesKnown
	}
	e, leased := l.ends[l.id(key)]
	return e.millis(), leased, true
}

// read reports whether the table was read.
func (l *leaseSet) read() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.state != leasesUnread
}

// first returns the earliest end after a time; false if unknown.
func (l *leaseSet) first(after int64) (end int64, known bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	end = math.MaxInt64
	for _, e := range l.ends {
		if ms := e.millis(); ms > after {
			end = min(end, ms)
		}
	}
	return end, l.state == leasesKnown
}

// A leaseChange is what an update does to a lease.
type leaseChange struct {
	id        leaseID
	end       leaseEnd
	was, held bool // whether there was a row before, and is one now
}

// changed records a change of a lease. The caller must have the turn.
func (l *leaseSet) changed(all []leaseChange, key, was, lease []byte, d *crawldb.Datum) []leaseChange {
	if !l.read() {
		return all
	}
	c := leaseChange{id: l.id(key), was: was != nil, held: len(lease) > 0}
	if c.held && !d.LeasedUntil.IsZero() {
		c.end = endOf(d.LeasedUntil.UnixMilli())
	}
	return append(all, c)
}

// apply applies committed changes, and calls then before anyone can see them.
func (l *leaseSet) apply(all []leaseChange, then func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer then()
	for _, c := range all {
		switch {
		case c.held && !c.was:
			l.rows++
		case c.was && !c.held:
			l.rows--
		}
		if l.state != leasesKnown {
			continue
		}
		if c.held {
			l.ends[c.id] = c.end
		} else {
			delete(l.ends, c.id)
		}
		if l.rows > l.most {
			l.state, l.ends = leasesTooMany, nil
		}
	}
	if l.state == leasesTooMany && l.rows <= l.most/2 {
		l.state = leasesUnread
	}
}

// forget discards the set, so that the table is read again.
func (l *leaseSet) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state, l.ends = leasesUnread, nil
}

// readLeases reads the table of leases into the set. The caller has the turn.
func (s *crawlStore) readLeases(ctx context.Context) error {
	l := s.leases
	if l.read() {
		return nil
	}
	ends, rows := map[leaseID]leaseEnd{}, 0
	err := s.rows(ctx, s.db.db, codec.LeaseTable, func(key, value []byte) error {
		if rows++; rows > l.most {
			ends = nil
			return nil
		}
		end, err := leaseEndOf(value)
		if err != nil {
			return s.db.damaged("the lease of", crawldb.URLOf(string(key[1:])), err)
		}
		ends[l.id(key[1:])] = endOf(end)
		return nil
	})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows, l.ends, l.state = rows, ends, leasesKnown
	if rows > l.most {
		l.state = leasesTooMany
	}
	return nil
}

// leaseEndOf decodes the end of an encoded lease.
func leaseEndOf(b []byte) (ms int64, err error) {
	ms, ends, err := codec.DecodeLeaseEnd(b)
	if err == nil && !ends {
		ms = noEnd
	}
	return ms, err
}

// A leaseView answers for the entries that an iterator of the index visits.
type leaseView struct {
	s    *crawlStore
	it   *pebble.Iterator
	asks bool // look into the table, with at
	at   rows.Joined
	key  []byte // the last key checked, with the byte of some table
}

func (v *leaseView) close() error {
	if !v.asks {
		return nil
	}
	return v.at.Close()
}

// find returns the end of a record's lease, and whether there is one.
func (v *leaseView) find(key []byte) (end int64, leased bool, err error) {
	if !v.asks {
		if end, leased, known := v.s.leases.find(key); known {
			return end, leased, nil
		}
		if v.at, err = rows.Join(v.it, codec.LeaseTable); err != nil {
			return 0, false, v.s.db.outcome("due index", err)
		}
		v.asks = true
	}
	if len(v.key) > 0 && bytes.Compare(key, v.key[1:]) < 0 {
		v.at.Restart() // a key of the next level or hour: start again
	}
	v.key = append(append(v.key[:0], byte(codec.LeaseTable)), key...)
	value, err := v.at.Find(v.key)
	if err == nil && value != nil {
		if end, err = leaseEndOf(value); err != nil {
			return 0, false, v.s.db.damaged("the lease of", crawldb.URLOf(string(key)), err)
		}
	}
	return end, value != nil, v.s.db.outcome("due index", err)
}
