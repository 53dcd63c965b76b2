package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"sync"
)

// A Tally is how many entries of the ready table one host has in each level: ascending,
// without zeros. A row of [TallyTable] is the sum of all that was merged into it, so an
// update adds to it without reading it.
type Tally []LevelCount

// A LevelCount is how many entries there are in one level. In what an update adds it may be
// negative.
type LevelCount struct {
	Level uint16
	N     int64
}

// LastLevel is the last level of the ready table.
const LastLevel = 2 * 256 * 8

// ErrTally says that a value is not an encoded tally.
var ErrTally = errors.New("not a tally of the due index")

// Add adds entries to a level.
func (t *Tally) Add(level uint16, n int64) {
	from, to := 0, len(*t) // by hand: an update asks twice for each record
	for from < to {
		if i := (from + to) / 2; (*t)[i].Level < level {
			from = i + 1
		} else {
			to = i
		}
	}
	t.addAt(from, level, n)
}

// addAt adds to a level, which is the one at i or comes before it.
func (t *Tally) addAt(i int, level uint16, n int64) {
	switch {
	case n == 0:
	case i == len(*t):
		*t = append(*t, LevelCount{level, n})
	case (*t)[i].Level != level:
		*t = slices.Insert(*t, i, LevelCount{level, n})
	default:
		if (*t)[i].N += n; (*t)[i].N == 0 {
			*t = slices.Delete(*t, i, i+1)
		}
	}
}

// Append appends the encoded tally.
func (t Tally) Append(dst []byte) []byte {
	for _, l := range t {
		dst = binary.AppendVarint(binary.AppendUvarint(dst, uint64(l.Level)), l.N)
	}
	return dst
}

// AddEncoded adds what Append wrote. Both ascend, so that it looks for no level twice.
func (t *Tally) AddEncoded(b []byte) error {
	if *t == nil {
		*t = make(Tally, 0, len(b)/3+1) // a level and a number have three bytes or four
	}
	at := 0
	for last := int64(-1); len(b) > 0; {
		level, i := binary.Uvarint(b)
		if i <= 0 || level > LastLevel || int64(level) <= last {
			return ErrTally
		}
		n, j := binary.Varint(b[i:])
		if j <= 0 || n == 0 {
			return ErrTally
		}
		for at < len(*t) && (*t)[at].Level < uint16(level) {
			at++
		}
		t.addAt(at, uint16(level), n)
		last, b = int64(level), b[i+j:]
	}
	return nil
}

// HostPrefix returns the prefix of the keys of a host, shared by no others: under it is the
// tally of the host. What crawldb keys by the whole URL is one group.
func HostPrefix(key []byte) []byte {
	if end := bytes.IndexByte(key, ')'); end >= 0 && key[0] != '!' {
		return key[:end+1]
	}
	return key[:min(len(key), 1)]
}

// A TallySum is a tally to which others are added, by the engine. Reading all tallies takes
// one per host, so [TallySums] reuses its memory.
type TallySum struct {
	tally Tally
	out   []byte
	pool  *sync.Pool // or nil
}

// TallySums makes sums; it is safe for concurrent use.
type TallySums struct{ pool sync.Pool }

// Get returns an empty sum.
func (s *TallySums) Get() *TallySum {
	sum, _ := s.pool.Get().(*TallySum)
	if sum == nil {
		sum = &TallySum{pool: &s.pool}
	}
	return sum
}

// MergeNewer adds an encoded tally.
func (m *TallySum) MergeNewer(value []byte) error { return m.tally.AddEncoded(value) }

// MergeOlder adds an encoded tally.
func (m *TallySum) MergeOlder(value []byte) error { return m.tally.AddEncoded(value) }

// Finish may leave an empty row, for a host without entries: the engine could drop it,
// but that made its compaction fail (2.1.7).
func (m *TallySum) Finish(bool) ([]byte, io.Closer, error) {
	m.out = m.tally.Append(m.out)
	return m.out, m, nil
}

// Close ends the use of the result of Finish.
func (m *TallySum) Close() error {
	if m.pool != nil {
		m.tally, m.out = m.tally[:0], m.out[:0]
		m.pool.Put(m)
	}
	return nil
}
