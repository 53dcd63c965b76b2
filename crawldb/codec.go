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
	hasMeta  // with all names spelled
	hasPairs // Meta in which a name has a number, instead
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
	if numbered {
		b = d.Meta.appendPairs(b)
	}
	return b, nil
}

// UnmarshalBinary reads what AppendBinary wrote. It keeps the URL, replaces
// every other field, and keeps no part of data. Foreign bytes are an error, and
// leave the record as it was. [Keys.Decode] is quicker for many records.
func (d *Datum) UnmarshalBinary(data []byte) error {
	out := Datum{URL: d.URL}
	flags, texts, ok := out.numbers(data)
	if !ok {
		return errDatum
	}
	texts, pairs, ok := cutPairs(flags, texts)
	if !ok {
		return errDatum
	}
	var meta []byte
	if flags&hasPairs != 0 {
		var space [128]byte
		if meta, ok = expandPairs(space[:0], pairs); !ok {
			return errDatum
		}
	}
	if !out.texts(flags, string(texts), string(meta)) {
		return errDatum
	}
	*d = out
	return nil
}

// numbers reads what of an encoded record comes before its texts into d, which has
// none of these fields yet, and returns the rest.
func (d *Datum) numbers(data []byte) (flags uint64, rest []byte, ok bool) {
	if len(data) < 3 || data[0] != codecVersion {
		return 0, nil, false
	}
	d.Status = Status(data[1])
	r := reader{b: data[2:]}
	flags = r.uvarint()
	if flags&^uint64(hasAll) != 0 || flags&(hasMeta|hasPairs) == hasMeta|hasPairs {
		return 0, nil, false
	}
	if flags&hasFetchTime != 0 {
		d.FetchTime = r.time()
	}
	if flags&hasLastFetch != 0 {
		d.LastFetch = r.time()
	}
	if flags&hasInterval != 0 {
		d.Interval = time.Duration(r.below(math.MaxInt32)) * time.Second
	}
	if flags&hasModified != 0 {
		d.Modified = r.time()
	}
	if flags&hasRetries != 0 {
		d.Retries = int(r.below(math.MaxInt32))
	}
	if flags&hasScore != 0 {
		d.Score = r.float32()
	}
	d.Priority = d.Score
	if flags&hasPriority != 0 {
		d.Priority = r.float32()
	}
	return flags, r.b, !r.bad
}

// cutPairs cuts what numbers has left of a record where its pairs begin, if it has any.
func cutPairs(flags uint64, b []byte) (texts, pairs []byte, ok bool) {
	if flags&hasPairs == 0 {
		return b, nil, true
	}
	pairs, ok = b, true
	for flag := uint64(hasSignature); flag < hasMeta && ok; flag <<= 1 {
		if flags&flag == 0 {
			continue
		}
		var n uint64
		if n, pairs, ok = cutUvarint(pairs); flag == hasLeasedUntil {
			n = 0
		}
		if ok = ok && n <= uint64(len(pairs)); ok {
			pairs = pairs[n:]
		}
	}
	return b[:len(b)-len(pairs)], pairs, ok
}

// texts reads the rest, which the record shares, and takes meta for that of pairs.
func (d *Datum) texts(flags uint64, s, meta string) bool {
	if flags < hasSignature {
		return s == ""
	}
	ok := true
	text := func() (head string) {
		if ok {
			head, s, ok = cutString(s)
		}
		return head
	}
	if flags&hasSignature != 0 {
		d.Signature = []byte(text())
	}
	if flags&hasETag != 0 {
		d.ETag = text()
	}
	if flags&hasLastModified != 0 {
		d.LastModified = text()
	}
	if flags&hasLeasedUntil != 0 && ok {
		var v uint64
		v, s, ok = cutUvarint(s)
		d.LeasedUntil = timeOf(v)
	}
	if flags&hasLeasedBy != 0 {
		d.LeasedBy = text()
	}
	if flags&hasMeta != 0 {
		d.Meta.enc = text()
		ok = ok && validMeta(d.Meta.enc)
	}
	if flags&hasPairs != 0 {
		d.Meta.enc = meta
	}
	return ok && s == ""
}

// reader reads numbers. After a failure it has nothing left.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) fail() { r.b, r.bad = nil, true }

func (r *reader) uvarint() uint64 {
	v, rest, ok := cutUvarint(r.b)
	if !ok {
		r.fail()
		return 0
	}
	r.b = rest
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

func (r *reader) time() time.Time { return timeOf(r.uvarint()) }

// timeOf is the time of a signed number of milliseconds as AppendVarint has it.
func timeOf(v uint64) time.Time { return time.UnixMilli(int64(v>>1) ^ -int64(v&1)).UTC() }

func (r *reader) float32() float32 {
	if len(r.b) < 4 {
		r.fail()
		return 0
	}
	v := binary.BigEndian.Uint32(r.b)
	r.b = r.b[4:]
	return math.Float32frombits(v)
}
