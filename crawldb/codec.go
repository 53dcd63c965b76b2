package crawldb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/recrawl/recrawl/internal/prefixed"
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
	hasMeta  // with all names spelled out
	hasPairs // Meta in which a name is replaced by its number
	hasAll   = 1<<iota - 1
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
	numbered := d.Meta.numbered()
	set(hasMeta, d.Meta.enc != "" && !numbered)
	set(hasPairs, numbered)

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
		b = prefixed.Append(b, d.Signature)
	}
	if flags&hasETag != 0 {
		b = prefixed.Append(b, d.ETag)
	}
	if flags&hasLastModified != 0 {
		b = prefixed.Append(b, d.LastModified)
	}
	if flags&hasLeasedUntil != 0 {
		b = binary.AppendVarint(b, d.LeasedUntil.UnixMilli())
	}
	if flags&hasLeasedBy != 0 {
		b = prefixed.Append(b, d.LeasedBy)
	}
	if flags&hasMeta != 0 {
		b = prefixed.Append(b, d.Meta.enc)
	}
	if numbered {
		b = d.Meta.appendPairs(b)
	}
	return b, nil
}

// UnmarshalBinary reads what AppendBinary wrote. It keeps the URL, replaces
// every other field, and does not retain data. Malformed bytes are an error,
// and leave the record as it was. [Keys.Decode] is faster for many records.
func (d *Datum) UnmarshalBinary(data []byte) error {
	out := Datum{URL: d.URL}
	var space [256]byte
	buf, t, ok := out.read(space[:0], data)
	if !ok {
		return errDatum
	}
	if t.signature != nil {
		out.Signature = bytes.Clone(t.signature)
	}
	if !out.take(&t, string(buf), 0) {
		return errDatum
	}
	*d = out
	return nil
}

// texts are the parts of a record that are not numbers: the signature, in the bytes it
// was read from, and where each of the consecutive strings in a buffer ends.
type texts struct {
	signature                          []byte
	etag, lastModified, leasedBy, meta int
	spelled                            bool // meta, not examined yet
}

// read decodes a record into d, whose fields must be zero. It appends the strings to
// buf, which the caller passes to take in one piece.
func (d *Datum) read(buf, data []byte) (_ []byte, t texts, ok bool) {
	if len(data) < 3 || data[0] != codecVersion {
		return buf, t, false
	}
	d.Status = Status(data[1])
	flags, b := cutNumber(data[2:])
	if flags&^uint64(hasAll) != 0 || flags&(hasMeta|hasPairs) == hasMeta|hasPairs {
		return buf, t, false
	}
	var v uint64
	if flags&hasFetchTime != 0 {
		v, b = cutNumber(b)
		d.FetchTime = timeOf(v)
	}
	if flags&hasLastFetch != 0 {
		v, b = cutNumber(b)
		d.LastFetch = timeOf(v)
	}
	if flags&hasInterval != 0 {
		v, b = cutBelow(b, math.MaxInt32)
		d.Interval = time.Duration(v) * time.Second
	}
	if flags&hasModified != 0 {
		v, b = cutNumber(b)
		d.Modified = timeOf(v)
	}
	if flags&hasRetries != 0 {
		v, b = cutBelow(b, math.MaxInt32)
		d.Retries = int(v)
	}
	if flags&hasScore != 0 {
		d.Score, b = cutFloat32(b)
	}
	d.Priority = d.Score
	if flags&hasPriority != 0 {
		d.Priority, b = cutFloat32(b)
	}
	if flags < hasSignature { // nothing else: most records that were never fetched
		return buf, texts{}, b != nil && len(b) == 0
	}
	var text []byte
	if flags&hasSignature != 0 {
		t.signature, b = cutText(b)
	}
	if flags&hasETag != 0 {
		text, b = cutText(b)
		buf = append(buf, text...)
	}
	t.etag = len(buf)
	if flags&hasLastModified != 0 {
		text, b = cutText(b)
		buf = append(buf, text...)
	}
	t.lastModified = len(buf)
	if flags&hasLeasedUntil != 0 {
		v, b = cutNumber(b)
		d.LeasedUntil = timeOf(v)
	}
	if flags&hasLeasedBy != 0 {
		text, b = cutText(b)
		buf = append(buf, text...)
	}
	t.leasedBy = len(buf)
	if flags&hasMeta != 0 {
		text, b = cutText(b)
		buf = append(buf, text...)
		t.spelled = true
	}
	if b == nil {
		return buf, t, false
	}
	if ok = len(b) == 0; flags&hasPairs != 0 {
		buf, ok = expandPairs(buf, b)
	}
	t.meta = len(buf)
	return buf, t, ok
}

// take gives a record the strings that read appended after from in the buffer. It
// shares s.
func (d *Datum) take(t *texts, s string, from int) bool {
	if t.meta == 0 {
		return true
	}
	d.ETag = s[from:t.etag]
	d.LastModified = s[t.etag:t.lastModified]
	d.LeasedBy = s[t.lastModified:t.leasedBy]
	d.Meta.enc = s[t.leasedBy:t.meta]
	return !t.spelled || validMeta(d.Meta.enc)
}

// The functions below return a nil rest if what they should cut off is missing, and
// find nothing in nil: so a caller that cuts many things off checks once, at the end.

// cutNumber reads what binary.AppendUvarint writes, and no longer encoding, so a
// value has only one.
func cutNumber(b []byte) (v uint64, rest []byte) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), b[1:]
	}
	v, n := binary.Uvarint(b)
	if n <= 0 || n > 1 && b[n-1] == 0 {
		return 0, nil
	}
	return v, b[n:]
}

// cutBelow is cutNumber for a number of at most limit.
func cutBelow(b []byte, limit uint64) (v uint64, rest []byte) {
	if v, b = cutNumber(b); v > limit {
		return 0, nil
	}
	return v, b
}

// cutText reads what appendString writes.
func cutText(b []byte) (head, rest []byte) {
	n, b := cutNumber(b)
	if n > uint64(len(b)) {
		return nil, nil
	}
	return b[:n], b[n:]
}

func cutFloat32(b []byte) (float32, []byte) {
	if len(b) < 4 {
		return 0, nil
	}
	return math.Float32frombits(binary.BigEndian.Uint32(b)), b[4:]
}

// signed decodes the number that AppendVarint has encoded.
func signed(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

func timeOf(v uint64) time.Time { return time.UnixMilli(signed(v)).UTC() }
