package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// The fields of a lease; the numbers are stored.
const (
	leaseUntil = 1 << iota
	leaseBy
	leaseAll = 1<<iota - 1
)

var ErrLease = errors.New("not a lease")

// AppendLease appends the lease of a record, nothing if it has none.
func AppendLease(dst []byte, d *crawldb.Datum) []byte {
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

// DecodeLease sets the lease of a record to what AppendLease wrote.
func DecodeLease(d *crawldb.Datum, b []byte) error {
	if len(b) < 2 || b[0] == 0 || b[0]&^leaseAll != 0 {
		return ErrLease
	}
	has := b[0]
	b = b[1:]
	d.LeasedUntil, d.LeasedBy = time.Time{}, ""
	if has&leaseUntil != 0 {
		ms, n := binary.Varint(b)
		if n <= 0 {
			return ErrLease
		}
		if d.LeasedUntil, b = time.UnixMilli(ms).UTC(), b[n:]; d.LeasedUntil.IsZero() {
			return ErrLease
		}
	}
	if (has&leaseBy != 0) != (len(b) > 0) {
		return ErrLease
	}
	d.LeasedBy = string(b)
	return nil
}

// AppendRecord appends a record without its lease.
func AppendRecord(dst []byte, d *crawldb.Datum) ([]byte, error) {
	if d.LeasedUntil.IsZero() && d.LeasedBy == "" {
		return d.AppendBinary(dst)
	}
	bare := *d
	bare.LeasedUntil, bare.LeasedBy = time.Time{}, ""
	return bare.AppendBinary(dst)
}

// EqualRecords reports whether two records are equal apart from their leases. It may return
// false for records with equal encodings.
func EqualRecords(a, b *crawldb.Datum) bool {
	same := func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }
	return a.Status == b.Status && a.FetchTime.Equal(b.FetchTime) && a.LastFetch.Equal(b.LastFetch) &&
		a.Interval == b.Interval && a.Modified.Equal(b.Modified) && a.Retries == b.Retries &&
		same(a.Score, b.Score) && same(a.Priority, b.Priority) &&
		(a.Signature == nil) == (b.Signature == nil) && bytes.Equal(a.Signature, b.Signature) &&
		a.ETag == b.ETag && a.LastModified == b.LastModified && a.Meta == b.Meta
}

// DecodeLeaseEnd returns when a lease that AppendLease wrote ends, in milliseconds since 1970;
// ends is false if it has no end.
func DecodeLeaseEnd(b []byte) (ms int64, ends bool, err error) {
	if len(b) < 2 || b[0] == 0 || b[0]&^leaseAll != 0 {
		return 0, false, ErrLease
	}
	if b[0]&leaseUntil == 0 {
		return 0, false, nil
	}
	ms, n := binary.Varint(b[1:])
	if n <= 0 {
		return 0, false, ErrLease
	}
	return ms, true, nil
}
