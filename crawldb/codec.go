package crawldb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// codecVersion is the first byte of every encoded record.
const codecVersion = 1

// Which fields follow, in this order. The numbers are stored: never renumber.
const (
	hasFetchTime = 1 << iota
	hasLastFetch
	hasInterval
	hasModified
	hasRetries
	hasScore
	hasPriority // differs from the score
	hasSignature
	hasETag
	hasLastModified
	hasLeasedUntil
	hasLeasedBy
	hasMeta
	hasAll = 1<<iota - 1
)

var errDatum = errors.New("crawldb: not an encoded record")

// AppendBinary appends the record without its URL, which is the key it is kept
// under. It implements [encoding.BinaryAppender] and fails only if a field
// cannot be kept: an interval that is negative or 2^31 seconds and over, or
// retries that are negative or 2^31 and over.
func (d *Datum) AppendBinary(b []byte) ([]byte, error) {
	if d.Interval < 0 || d.Interval/time.Second > math.MaxInt32 {
		return b, fmt.Errorf("crawldb: %q: interval %v is out of range", d.URL, d.Interval)
	}
	if d.Retries < 0 || d.Retries > math.MaxInt32 {
		return b, fmt.Errorf("crawldb: %q: %d retries are out of range", d.URL, d.Retries)
	}
	flags := uint64(0)
	set := func(flag uint64, on bool) {
		if on {
			flags |= flag
		}
	}
	set(hasFetchTime, !d.FetchTime.IsZero())
	set(hasLastFetch, !d.LastFetch.IsZero())
	set(hasInterval, d.Interval >= time.Second)
	set(hasModified, !d.Modified.IsZero())
	set(hasRetries, d.Retries > 0)
	set(hasScore, math.Float32bits(d.Score) != 0)
	set(hasPriority, math.Float32bits(d.Priority) != math.Float32bits(d.Score))
	set(hasSignature, d.Signature != nil)
	set(hasETag, d.ETag != "")
	set(hasLastModified, d.LastModified != "")
	set(hasLeasedUntil, !d.LeasedUntil.IsZero())
	set(hasLeasedBy, d.LeasedBy != "")
	set(hasMeta, d.Meta.enc != "")

	b = append(b, codecVersion, byte(d.Status))
	b = binary.AppendUvarint(b, flags)
	if flags&hasFetchTime != 0 {
		b = binary.AppendVarint(b, d.FetchTime.UnixMilli())
	}
	if flags&hasLastFetch != 0 {
		b = binary.AppendVarint(b, d.LastFetch.UnixMilli())
	}
	if flags&hasInterval != 0 {
		b = binary.AppendUvarint(b, uint64(d.Interval/time.Second))
	}
	if flags&hasModified != 0 {
		b = binary.AppendVarint(b, d.Modified.UnixMilli())
	}
	if flags&hasRetries != 0 {
		b = binary.AppendUvarint(b, uint64(d.Retries))
	}
	if flags&hasScore != 0 {
		b = binary.BigEndian.AppendUint32(b, math.Float32bits(d.Score))
	}
	if flags&hasPriority != 0 {
		b = binary.BigEndian.AppendUint32(b, math.Float32bits(d.Priority))
	}
	if flags&hasSignature != 0 {
		b = appendString(b, d.Signature)
	}
	if flags&hasETag != 0 {
		b = appendString(b, d.ETag)
	}
	if flags&hasLastModified != 0 {
		b = appendString(b, d.LastModified)
	}
	if flags&hasLeasedUntil != 0 {
		b = binary.AppendVarint(b, d.LeasedUntil.UnixMilli())
	}
	if flags&hasLeasedBy != 0 {
		b = appendString(b, d.LeasedBy)
	}
	if flags&hasMeta != 0 {
		b = appendString(b, d.Meta.enc)
	}
	return b, nil
}

// UnmarshalBinary reads what AppendBinary wrote. It keeps the URL, replaces
// every other field, and keeps no part of data. Foreign bytes are an error, and
// leave the record as it was.
func (d *Datum) UnmarshalBinary(data []byte) error {
	if len(data) < 3 || data[0] != codecVersion {
		return errDatum
	}
	out := Datum{URL: d.URL, Status: Status(data[1])}
	// One copy for all the strings of a record.
	r := reader{s: string(data[2:])}
	flags := r.uvarint()
	if flags&^uint64(hasAll) != 0 {
		return errDatum
	}
	on := func(flag uint64) bool { return flags&flag != 0 }
	if on(hasFetchTime) {
		out.FetchTime = r.time()
	}
	if on(hasLastFetch) {
		out.LastFetch = r.time()
	}
	if on(hasInterval) {
		out.Interval = time.Duration(r.below(math.MaxInt32)) * time.Second
	}
	if on(hasModified) {
		out.Modified = r.time()
	}
	if on(hasRetries) {
		out.Retries = int(r.below(math.MaxInt32))
	}
	if on(hasScore) {
		out.Score = r.float32()
	}
	out.Priority = out.Score
	if on(hasPriority) {
		out.Priority = r.float32()
	}
	if on(hasSignature) {
		out.Signature = []byte(r.str())
	}
	if on(hasETag) {
		out.ETag = r.str()
	}
	if on(hasLastModified) {
		out.LastModified = r.str()
	}
	if on(hasLeasedUntil) {
		out.LeasedUntil = r.time()
	}
	if on(hasLeasedBy) {
		out.LeasedBy = r.str()
	}
	if on(hasMeta) {
		out.Meta.enc = r.str()
	}
	if r.bad || r.s != "" || !validMeta(out.Meta.enc) {
		return errDatum
	}
	*d = out
	return nil
}

type reader struct {
	s   string
	bad bool
}

func (r *reader) fail() { r.s, r.bad = "", true }

func (r *reader) uvarint() uint64 {
	v, rest, ok := cutUvarint(r.s)
	if !ok {
		r.fail()
		return 0
	}
	r.s = rest
	return v
}

func (r *reader) below(limit uint64) uint64 {
	v := r.uvarint()
	if v > limit {
		r.fail()
		return 0
	}
	return v
}

func (r *reader) time() time.Time {
	v := r.uvarint()
	return time.UnixMilli(int64(v>>1) ^ -int64(v&1)).UTC()
}

func (r *reader) float32() float32 {
	if len(r.s) < 4 {
		r.fail()
		return 0
	}
	v := uint32(r.s[0])<<24 | uint32(r.s[1])<<16 | uint32(r.s[2])<<8 | uint32(r.s[3])
	r.s = r.s[4:]
	return math.Float32frombits(v)
}

func (r *reader) str() string {
	head, rest, ok := cutString(r.s)
	if !ok {
		r.fail()
		return ""
	}
	r.s = rest
	return head
}
