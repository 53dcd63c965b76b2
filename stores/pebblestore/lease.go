package pebblestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
)

// A lease is stored beside its record, in a table of its own. Records that are
// selected together lie far apart, and writing one anew means that the engine
// sooner or later reads and writes everything around it; at any time leases are
// few and lie together. The entry in the due index is not rewritten either.
//
// A record that an older version wrote may contain its lease. That lease applies as long
// as there is none in the table, and is moved there when the due index is built, before
// the first selection.

// The fields of a lease; the numbers are stored.
const (
	leaseUntil = 1 << iota
	leaseBy
	leaseAll = 1<<iota - 1
)

var errLease = errors.New("not a lease")

// appendLease appends the lease of a record, nothing if it has none.
func appendLease(dst []byte, d *crawldb.Datum) []byte {
	var has byte
	if !d.LeasedUntil.IsZero() {
		has |= leaseUntil
	}
	if d.LeasedBy != "" {
		has |= leaseBy
	}
	if has == 0 {
		return dst
	}
	if dst = append(dst, has); has&leaseUntil != 0 {
		dst = binary.AppendVarint(dst, d.LeasedUntil.UnixMilli())
	}
	return append(dst, d.LeasedBy...)
}

// takeLease sets the lease of a record to what appendLease wrote.
func takeLease(d *crawldb.Datum, b []byte) error {
	if len(b) < 2 || b[0] == 0 || b[0]&^leaseAll != 0 {
		return errLease
	}
	has := b[0]
	b = b[1:]
	d.LeasedUntil, d.LeasedBy = time.Time{}, ""
	if has&leaseUntil != 0 {
		ms, n := binary.Varint(b)
		if n <= 0 {
			return errLease
		}
		if d.LeasedUntil, b = time.UnixMilli(ms).UTC(), b[n:]; d.LeasedUntil.IsZero() {
			return errLease
		}
	}
	if (has&leaseBy != 0) != (len(b) > 0) {
		return errLease
	}
	d.LeasedBy = string(b)
	return nil
}

// appendRecord appends a record without its lease.
func appendRecord(dst []byte, d *crawldb.Datum) ([]byte, error) {
	if d.LeasedUntil.IsZero() && d.LeasedBy == "" {
		return d.AppendBinary(dst)
	}
	bare := *d
	bare.LeasedUntil, bare.LeasedBy = time.Time{}, ""
	return bare.AppendBinary(dst)
}

// sameRecord reports whether two records are equal apart from their leases. It may return
// false for records with equal encodings.
func sameRecord(a, b *crawldb.Datum) bool {
	same := func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }
	return a.Status == b.Status && a.FetchTime.Equal(b.FetchTime) && a.LastFetch.Equal(b.LastFetch) &&
		a.Interval == b.Interval && a.Modified.Equal(b.Modified) && a.Retries == b.Retries &&
		same(a.Score, b.Score) && same(a.Priority, b.Priority) &&
		(a.Signature == nil) == (b.Signature == nil) && bytes.Equal(a.Signature, b.Signature) &&
		a.ETag == b.ETag && a.LastModified == b.LastModified && a.Meta == b.Meta
}

// decode sets *d to the record that the tables have under a key, given without
// the byte of the table.
func (s *crawlStore) decode(d *crawldb.Datum, keys *crawldb.Keys, key, value, lease []byte) error {
	if err := keys.Decode(d, key, value); err != nil {
		return s.db.damaged("the crawl record of", d.URL, err)
	}
	if len(lease) > 0 {
		if err := takeLease(d, lease); err != nil {
			return s.db.damaged("the lease of", d.URL, err)
		}
	}
	return nil
}

// leasesBeside returns the leases as of the moment of an iterator over records.
func leasesBeside(it *pebble.Iterator) (beside, error) { return besideOf(it, leaseTable) }

// putLease writes a lease to the batch that writes the record with that key of
// the crawl table; an empty lease means none.
func (s *crawlStore) putLease(batch changes, key, lease []byte) error {
	key[0] = byte(leaseTable)
	defer func() { key[0] = byte(crawlTable) }()
	if len(lease) == 0 {
		return batch.Delete(key, nil)
	}
	s.leasing.Store(true)
	return batch.Set(key, lease, nil)
}

// loadLeases checks whether there are any leases.
func (s *crawlStore) loadLeases() error {
	any, err := s.db.has(leaseTable)
	s.leasing.Store(any)
	return err
}
