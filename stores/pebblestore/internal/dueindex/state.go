package dueindex

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// stateKey is where the state of the index is stored.
var stateKey = codec.StateTable.Key("due")

// A state says how far the index is built, where its mark is, and which levels the ready table
// has. It is immutable.
type state struct {
	// The wheel begins at the mark: a key of the wheel without the byte of the table.
	mark []byte
	// The index has the records whose keys are less than built, or all of them.
	built    []byte
	complete bool
	// The ready table lacks so many of the last levels. While levels are added, it has those up
	// to goal of the records whose keys are less than filled.
	cut, goal uint16
	filled    []byte
	// wanted is how many entries a selection has needed: fewer are not kept.
	wanted int64
	// foreign says that the stored index is of another version. The first update replaces its
	// state, as a package that knows the version would otherwise take the index for complete.
	foreign bool
}

// markAfter returns the mark after an hour.
func markAfter(hour uint32) []byte { return binary.BigEndian.AppendUint32(nil, hour+1) }

// has reports whether the index has the record of that key.
func (s *state) has(key []byte) bool { return s.complete || bytes.Compare(key, s.built) < 0 }

// lastReady is the last level that the ready table has.
func (s *state) lastReady() uint16 { return lastLevel - s.cut }

// stores reports whether an entry with that key is in a table: entries of levels that were cut
// are only counted.
func (s *state) stores(key []byte) bool {
	if s.cut == 0 || codec.Table(key[0]) != codec.ReadyTable {
		return true
	}
	l := binary.BigEndian.Uint16(key[1:])
	return l <= s.lastReady() || l <= s.goal && bytes.Compare(key[readyPrefix:], s.filled) < 0
}

// recentHours is how many hours before and behind the mark are recent.
const recentHours = 24

// recent reports whether a record that is due from that time has all of it in its ready entry
// when that is written.
func (s *state) recent(dueFrom int64) bool { return recentAt(s.mark, dueFrom) }

func recentAt(mark []byte, dueFrom int64) bool {
	if len(mark) < 4 {
		return false
	}
	hours := int64(hourOf(dueFrom)) - int64(binary.BigEndian.Uint32(mark))
	return hours >= -recentHours && hours < recentHours
}

// These are versions of the index alone: an index of another version is built anew. Versions
// 5 to 8 had priorities in the wheel.
const (
	noVersion    = 0 // of an index that no package may use
	stateVersion = 9
)

const completeFlag = 1

// append appends the encoded state.
func (s *state) append(dst []byte) []byte {
	if s.foreign {
		return append(dst, noVersion)
	}
	flags, last := byte(0), s.built
	if s.complete {
		flags, last = completeFlag, s.filled
	}
	dst = append(dst, stateVersion, flags)
	dst = binary.AppendUvarint(dst, uint64(len(s.mark)))
	dst = append(dst, s.mark...)
	dst = binary.BigEndian.AppendUint16(dst, s.cut)
	dst = binary.BigEndian.AppendUint16(dst, s.goal)
	dst = binary.AppendUvarint(dst, uint64(s.wanted))
	return append(dst, last...)
}

// parseState reads what append wrote; known is false if it is of another version.
func parseState(b []byte) (s *state, known bool, err error) {
	if len(b) == 0 || b[0] != stateVersion {
		return nil, false, nil
	}
	if len(b) < 2 || b[1] > completeFlag {
		return nil, false, ErrEntry
	}
	s = &state{complete: b[1] == completeFlag}
	n, size := binary.Uvarint(b[2:])
	if b = b[2:]; size <= 0 || n > uint64(len(b)-size) {
		return nil, false, ErrEntry
	}
	s.mark, b = b[size:][:n:n], b[size+int(n):]
	if len(b) < 5 {
		return nil, false, ErrEntry
	}
	s.cut, s.goal = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	wanted, size := binary.Uvarint(b[4:])
	if size <= 0 || wanted > math.MaxInt64 || s.cut > lastLevel || s.goal > lastLevel || s.goal > 0 && s.goal <= s.lastReady() {
		return nil, false, ErrEntry
	}
	s.wanted = int64(wanted)
	if b = b[4+size:]; s.complete {
		s.filled = b
	} else {
		s.built = b
	}
	if s.goal == 0 && len(s.filled) > 0 || !s.complete && s.cut > 0 {
		return nil, false, ErrEntry
	}
	return s, true, nil
}
