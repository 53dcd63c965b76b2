package pebblestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// The due index has one entry for each record, in one of two tables:
//
//	ready  level(2) key         best level first, in a level by key
//	wheel  bucket(4) key        by the hour of its fetch time
//
// A third table counts the entries of ready, see tally. The value of an entry is the
// priority of the record and the time from which it is due, and the rest of a short
// record, or of one that is due soon, so that it need not be read to be leased. The table of an entry, and its place
// there, follow from the record and the state of the index alone: entries of the wheel
// before its mark have moved to ready, and the last levels of a long ready table are left
// out, see trim. So an update deletes the entry of a record without
// looking for it, and writes the new one in the batch that writes the record. And
// selections do not depend on the mark, which only says where to look: the entry says
// when the record is due.
//
// Of the value of an entry of the wheel that has no rest only the time counts. The priority
// of a page changes with each link to it, and that of a page which is not due for weeks
// would be written many times before anyone asks for it. So a large update leaves such an
// entry as it is, and who needs the priority reads the record: mostly an update that
// brings the page when it is due soon, else the step in which it becomes due.
//
// A lease does not change the entry: selections pass over leased records, see leaseSet.
// After the lease the record is selected from where it was.

// An entry is what the due index holds about a record.
type entry struct {
	from     int64 // ms: FetchTime, or always
	priority float32
	of       *crawldb.Datum // whose rest appendValue appends, if not nil
	whole    bool           // appendValue appends a long rest, too
	rest     []byte         // set by decode; valid for the call only
}

// always is the value of from for a record without a time.
const always = math.MinInt64

func entryOf(d *crawldb.Datum) entry {
	from := d.FetchTime.UnixMilli()
	if from <= (time.Time{}).UnixMilli() {
		from = always
	}
	return entry{from: from, priority: d.Priority, of: d}
}

// bucketMillis is the width of a bucket of the wheel.
const bucketMillis = int64(time.Hour / time.Millisecond)

// bucket returns the bucket number of a time: those before 1970 share the
// first. There is always another bucket after it.
func bucket(ms int64) uint32 {
	return uint32(min(max(ms/bucketMillis, 0), math.MaxUint32-1))
}

// levels of numbers come first, from the highest to the lowest, and NaN last.
const (
	halfLevels = 256 * 8
	lastLevel  = 2 * halfLevels
)

// level returns the number of the eighth of an octave that contains a priority,
// counted downwards. It never decreases as the priority decreases.
func level(p float32) uint16 {
	switch {
	case p != p:
		return lastLevel
	case p == 0: // and the negative zero
		return halfLevels - 1
	case p < 0:
		return halfLevels + magnitude(math.Float32bits(-p))
	}
	return halfLevels - 1 - magnitude(math.Float32bits(p))
}

// magnitude counts eighths of octaves upwards, from the bits of a non-negative
// float.
func magnitude(bits uint32) uint16 {
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

// appendKey appends the key in the index, for that mark, of the entry of the
// record with that key.
func (e entry) appendKey(dst, mark, key []byte) []byte {
	var in [4]byte
	binary.BigEndian.PutUint32(in[:], bucket(e.from))
	// A mark is a bucket and, while entries move, a key in it.
	n := min(len(mark), len(in))
	if c := bytes.Compare(in[:], mark[:n]); c < 0 || c == 0 && bytes.Compare(key, mark[n:]) < 0 {
		return e.appendReady(dst, key)
	}
	return append(append(append(dst, byte(codec.WheelTable)), in[:]...), key...)
}

func (e entry) appendReady(dst, key []byte) []byte {
	dst = binary.BigEndian.AppendUint16(append(dst, byte(codec.ReadyTable)), level(e.priority))
	return append(dst, key...)
}

// The lengths of what precedes the key of the record.
const (
	readyPrefix = 3
	wheelPrefix = 5
)

// valueMost is the longest value of an entry.
const valueMost = 4 + binary.MaxVarintLen64 + wholeMost

func (e entry) appendValue(dst []byte) []byte {
	dst = e.appendHead(dst)
	if e.from != always && e.of != nil {
		return e.appendRest(dst)
	}
	return append(dst, e.rest...)
}

// appendHead appends what precedes the rest.
func (e entry) appendHead(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, math.Float32bits(e.priority))
	if e.from != always {
		dst = binary.AppendVarint(dst, e.from)
	}
	return dst
}

// restMost is the longest rest of a record that is kept in its entry: enough for a
// record that was never fetched, with what scoring filters keep in it (34 bytes with
// the cash of OPIC, 38 with a depth).
const restMost = 40

// wholeMost is the longest rest of a record that is due soon; see bring. One of up to
// restMost bytes is there always or never, so that a longer one can be told by its length.
const wholeMost = 256

// appendRest appends what the entry does not say about its record, if that is short, or
// e.whole. It excludes the lease.
func (e entry) appendRest(dst []byte) []byte {
	d := *e.of
	d.LeasedUntil, d.LeasedBy = time.Time{}, ""
	fetched := d.Signature != nil || d.ETag != "" || d.LastModified != ""
	if d.FetchTime.UnixMilli() != e.from || fetched && !e.whole {
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
	case n <= restMost && !fetched, n > restMost && n <= wholeMost && e.whole:
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
	d.FetchTime = time.UnixMilli(e.from).UTC()
	if d.Priority = e.priority; math.Float32bits(d.Score) == 0 {
		d.Score = e.priority
	}
	return d, true
}

var errEntry = errors.New("not an entry of the due index")

// decode reads what appendValue wrote.
func (e *entry) decode(b []byte) error {
	if len(b) < 4 {
		return errEntry
	}
	*e = entry{priority: math.Float32frombits(binary.BigEndian.Uint32(b)), from: always}
	if b = b[4:]; len(b) > 0 {
		v, n := binary.Varint(b)
		if n <= 0 || len(b)-n > wholeMost || v == always {
			return errEntry
		}
		e.from, e.rest = v, b[n:]
	}
	return nil
}

// markOf returns the mark after a bucket.
func markOf(bucket uint32) []byte { return binary.BigEndian.AppendUint32(nil, bucket+1) }

// dueState says how far the index is built and where its mark is. It is immutable.
type dueState struct {
	mark []byte // the wheel begins here; a key of the wheel without the table's byte
	// The index has the records whose keys are less than built, or all of them.
	built []byte
	whole bool
	// The ready table leaves out so many of the last levels. While it is completed, it has
	// those up to goal of the records whose keys are less than filled.
	out, goal uint16
	filled    []byte
	// least is how many entries a selection has asked for by completing the table: fewer
	// are not kept.
	least int64
	// long says that entries may have rests longer than restMost.
	long bool
	// stale says that entries of the wheel without a rest may have a priority that their
	// records had before.
	stale bool
	// foreign says that the index in the store is of another version, which an update
	// must not leave as it is: who knows that version would take it for whole.
	foreign bool
}

// has reports whether the index has the record of that key.
func (s *dueState) has(key []byte) bool { return s.whole || bytes.Compare(key, s.built) < 0 }

// These are versions of the index alone: an index of another version is built anew. An
// index that was never trimmed, has no long rests and no old priorities, is written as older
// packages read it.
const (
	noVersion    = 0 // of one that nobody may use
	stateVersion = 5
	trimmedState = 6 // of one that leaves out levels, or could not
	longState    = 7 // of one that may have long rests, and may leave out levels
	staleState   = 8 // of one that may have old priorities, and all of the above
)

// The flags of a state. An older version than the last has only the first.
const (
	wholeFlag = 1 << iota
	longFlag
	allFlags = 1<<iota - 1
)

func (s *dueState) append(dst []byte) []byte {
	if s.foreign {
		return append(dst, noVersion)
	}
	trimmed := s.out > 0 || s.least > 0 || s.long || s.stale
	version, flags := byte(stateVersion), byte(0)
	if s.whole {
		flags |= wholeFlag
	}
	switch {
	case s.stale:
		if version = staleState; s.long {
			flags |= longFlag
		}
	case s.long:
		version = longState
	case trimmed:
		version = trimmedState
	}
	dst = append(dst, version, flags)
	dst = binary.AppendUvarint(dst, uint64(len(s.mark)))
	dst = append(dst, s.mark...)
	if trimmed {
		dst = binary.BigEndian.AppendUint16(dst, s.out)
		dst = binary.BigEndian.AppendUint16(dst, s.goal)
		dst = binary.AppendUvarint(dst, uint64(s.least))
		dst = append(dst, s.filled...)
	}
	return append(dst, s.built...)
}

// parseState reads what append wrote; ok is false if it is of another version.
func parseState(b []byte) (s *dueState, ok bool, err error) {
	if len(b) > 0 && (b[0] < stateVersion || b[0] > staleState) {
		return nil, false, nil
	}
	if len(b) < 3 || b[1] > allFlags || b[0] < staleState && b[1] > wholeFlag {
		return nil, false, errEntry
	}
	s = &dueState{whole: b[1]&wholeFlag != 0, long: b[0] == longState || b[1]&longFlag != 0, stale: b[0] == staleState}
	trimmed := b[0] != stateVersion
	n, size := binary.Uvarint(b[2:])
	if b = b[2:]; size <= 0 || n > uint64(len(b)-size) {
		return nil, false, errEntry
	}
	b = b[size:]
	s.mark, s.built = b[:n:n], b[n:]
	if !trimmed {
		return s, true, nil
	}
	if b = s.built; len(b) < 5 || !s.whole {
		return nil, false, errEntry
	}
	s.out, s.goal, s.built = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]), nil
	least, size := binary.Uvarint(b[4:])
	if size <= 0 || least > math.MaxInt64 || s.out > lastLevel || s.goal > lastLevel || s.goal > 0 && s.goal <= s.depth() {
		return nil, false, errEntry
	}
	if s.least, s.filled = int64(least), b[4+size:]; s.goal == 0 && len(s.filled) > 0 {
		return nil, false, errEntry
	}
	return s, true, nil
}

// same reports whether two entries have the same value, long or short if it may be long.
func (e entry) same(o entry, long bool) bool {
	if e.from != o.from || math.Float32bits(e.priority) != math.Float32bits(o.priority) {
		return false
	}
	e.whole, o.whole = long, long
	var a, b [valueMost]byte
	return bytes.Equal(e.appendValue(a[:0]), o.appendValue(b[:0]))
}

// sameTime reports whether neither of two entries has a rest if it is short, and both are
// due from the same time.
func (e entry) sameTime(o entry) bool {
	return e.from == o.from && e.bare() && o.bare()
}

// bare reports whether an entry has no rest if it is short.
func (e entry) bare() bool {
	e.whole = false
	var space [valueMost]byte
	head := e.appendHead(space[:0])
	return len(e.appendValue(space[:0])) == len(head)
}

// timeOnly returns an entry of the index without the priority if that does not count;
// otherwise as it is.
func (s *dueState) timeOnly(key, value []byte) []byte {
	var e entry
	if !s.stale || codec.Table(key[0]) != codec.WheelTable || e.decode(value) != nil || len(e.rest) > 0 {
		return value
	}
	return append(make([]byte, 4, len(value)), value[4:]...)
}
