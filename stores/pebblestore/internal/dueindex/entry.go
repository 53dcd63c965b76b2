package dueindex

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// An entry is what the index holds about one record.
type entry struct {
	dueFrom  int64 // ms since 1970: FetchTime, or always
	priority float32
	rest     []byte // what the entry does not say of its record; set by decode, valid for the call only
}

// always is the dueFrom of a record without a time.
const always = math.MinInt64

func entryOf(d *crawldb.Datum) entry {
	from := d.FetchTime.UnixMilli()
	if from <= (time.Time{}).UnixMilli() {
		from = always
	}
	return entry{dueFrom: from, priority: d.Priority}
}

// hourMillis is the width of an hour of the wheel.
const hourMillis = int64(time.Hour / time.Millisecond)

// hourOf returns the hour of a time, in hours since 1970. Those before 1970 share the
// first. There is always another hour after it.
func hourOf(ms int64) uint32 {
	return uint32(min(max(ms/hourMillis, 0), math.MaxUint32-1))
}

// Levels of numbers come first, from the highest to the lowest, and NaN last.
const (
	halfLevels = codec.LastLevel / 2
	lastLevel  = codec.LastLevel
)

// levelOf returns the number of the eighth of an octave that contains a priority,
// counted downwards. It never decreases as the priority decreases.
func levelOf(p float32) uint16 {
	switch {
	case p != p:
		return lastLevel
	case p == 0: // and the negative zero
		return halfLevels - 1
	case p < 0:
		return halfLevels + eighths(math.Float32bits(-p))
	}
	return halfLevels - 1 - eighths(math.Float32bits(p))
}

// eighths counts eighths of octaves upwards, from the bits of a non-negative float.
func eighths(bits uint32) uint16 {
	// The mantissas of 2^(1/8) to 2^(7/8).
	steps := [7]uint32{759234, 1587184, 2490071, 3474675, 4548394, 5719293, 6996167}
	n, mantissa := uint16(bits>>23)*8, bits&(1<<23-1)
	for _, s := range steps {
		if mantissa < s {
			break
		}
		n++
	}
	return n
}

// appendKey appends the key in the index, at that mark, of the entry of the record with
// that key.
func (e entry) appendKey(dst, mark, key []byte) []byte {
	var hour [4]byte
	binary.BigEndian.PutUint32(hour[:], hourOf(e.dueFrom))
	// A mark is an hour and, while entries move, a key in it.
	n := min(len(mark), len(hour))
	if c := bytes.Compare(hour[:], mark[:n]); c < 0 || c == 0 && bytes.Compare(key, mark[n:]) < 0 {
		return e.appendReadyKey(dst, key)
	}
	return append(append(append(dst, byte(codec.WheelTable)), hour[:]...), key...)
}

func (e entry) appendReadyKey(dst, key []byte) []byte {
	dst = binary.BigEndian.AppendUint16(append(dst, byte(codec.ReadyTable)), levelOf(e.priority))
	return append(dst, key...)
}

// The lengths of what precedes the key of the record.
const (
	readyPrefix = 3
	wheelPrefix = 5
)

// maxValue is the longest value of an entry.
const maxValue = 4 + binary.MaxVarintLen64 + maxWholeRest

// appendTime appends the value of an entry of the wheel, which has the time alone.
func (e entry) appendTime(dst []byte) []byte {
	return entry{dueFrom: e.dueFrom}.appendHead(dst)
}

// appendReady appends the value of the ready entry of a record. It has the rest of the record
// if that is short, or if whole is set and it fits.
func (e entry) appendReady(dst []byte, d *crawldb.Datum, whole bool) []byte {
	dst = e.appendHead(dst)
	if e.dueFrom == always {
		return dst
	}
	return e.appendRest(dst, d, whole)
}

// appendHead appends what precedes the rest.
func (e entry) appendHead(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, math.Float32bits(e.priority))
	if e.dueFrom != always {
		dst = binary.AppendVarint(dst, e.dueFrom)
	}
	return dst
}

const (
	// maxShortRest is the longest rest that every ready entry has: enough for a record that was
	// never fetched, with what scoring filters keep in it (34 bytes with the cash of OPIC, 38
	// with a depth).
	maxShortRest = 40
	// maxWholeRest is the longest rest of a page that was fetched before. Only entries that
	// became due within a day have one. It is longer than maxShortRest, so it is known by its
	// length.
	maxWholeRest = 256
)

// appendRest appends what the entry does not say about its record, without the lease; nothing
// if that is too long.
func (e entry) appendRest(dst []byte, record *crawldb.Datum, whole bool) []byte {
	d := *record
	d.LeasedUntil, d.LeasedBy = time.Time{}, ""
	fetched := d.Signature != nil || d.ETag != "" || d.LastModified != ""
	if d.FetchTime.UnixMilli() != e.dueFrom || fetched && !whole {
		return dst
	}
	d.FetchTime = time.Time{}
	switch score := math.Float32bits(d.Score); {
	case score == math.Float32bits(d.Priority):
		d.Score = 0
	case score == 0: // zero means that it equals the priority
		return dst
	}
	d.Priority = d.Score
	out, err := d.AppendBinary(dst)
	switch n := len(out) - len(dst); {
	case err != nil:
		return dst
	case n <= maxShortRest && !fetched, n > maxShortRest && n <= maxWholeRest && whole:
		return out
	}
	return dst
}

// record returns the record if the entry has the rest of it; otherwise false.
func (e *entry) record(url string) (crawldb.Datum, bool) {
	d := crawldb.Datum{URL: url}
	if len(e.rest) == 0 || d.UnmarshalBinary(e.rest) != nil {
		return d, false
	}
	d.FetchTime = time.UnixMilli(e.dueFrom).UTC()
	if d.Priority = e.priority; math.Float32bits(d.Score) == 0 {
		d.Score = e.priority
	}
	return d, true
}

// ErrEntry says that a row is not an entry of the index.
var ErrEntry = errors.New("not an entry of the due index")

// decode reads the value of an entry of either table.
func (e *entry) decode(b []byte) error {
	if len(b) < 4 {
		return ErrEntry
	}
	*e = entry{priority: math.Float32frombits(binary.BigEndian.Uint32(b)), dueFrom: always}
	if b = b[4:]; len(b) > 0 {
		v, n := binary.Varint(b)
		if n <= 0 || len(b)-n > maxWholeRest || v == always {
			return ErrEntry
		}
		e.dueFrom, e.rest = v, b[n:]
	}
	return nil
}

// decodeReady decodes a row of the ready table and checks that it is in its place.
func decodeReady(key, value []byte) (e entry, err error) {
	if len(key) < readyPrefix || e.decode(value) != nil || binary.BigEndian.Uint16(key[1:]) != levelOf(e.priority) {
		return e, ErrEntry
	}
	return e, nil
}

// decodeWheel decodes a row of the wheel and checks that it is in its place.
func decodeWheel(key, value []byte) (e entry, err error) {
	if len(key) < wheelPrefix || e.decode(value) != nil || math.Float32bits(e.priority) != 0 || len(e.rest) > 0 || binary.BigEndian.Uint32(key[1:]) != hourOf(e.dueFrom) {
		return e, ErrEntry
	}
	return e, nil
}
