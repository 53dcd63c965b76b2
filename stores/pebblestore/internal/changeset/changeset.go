// Package changeset collects the changes that one step of a large update makes to the crawl db,
// in memory, and yields them sorted as tables that the engine ingests. It writes nothing, and
// does not know what the rows mean, only which tables have a row for each record. Start with
// [Changes].
package changeset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// Changes are the changes of the crawl db that are written together. Records must be set in key
// order, and so must index entries within a level or an hour, which are kept separately.
type Changes struct {
	// Cleared is a range of keys that is deleted, too. It has none of the changed keys.
	Cleared pebble.KeyRange

	chunks  [][]byte // of keys and values, all but the last full, or not in use
	cur     int      // the one being filled
	bytes   int      // in chunks, with the changes
	records []change
	groups  map[uint64]*group // index entries by table and level, or hour; and leases
	others  map[string][]byte // marks, states, and tallies to be merged; nil deletes
}

// change is a key and the value to set under it. The key of an index entry
// omits what precedes the key of the record.
type change struct {
	key, value place
	klen       uint32
	vlen       int32 // or deleted
}

const (
	changeSize = 16
	deleted    = -1
)

// place is where bytes begin: the number of the chunk and the offset in it. A
// chunk larger than usual holds a single piece, at its beginning.
type place uint32

const chunkBits = 20

// Empty reports whether nothing was changed.
func (s *Changes) Empty() bool { return s.bytes == 0 && len(s.others) == 0 }

// Reset removes all changes and keeps the memory for the next step.
func (s *Changes) Reset() {
	s.chunks = slices.DeleteFunc(s.chunks, func(c []byte) bool { return cap(c) > 1<<chunkBits })
	for i, c := range s.chunks {
		s.chunks[i] = c[:0]
	}
	s.records, s.cur, s.bytes = s.records[:0], 0, 0
	for _, l := range s.groups {
		l.changes = l.changes[:0]
	}
	clear(s.others)
}

// Len returns about how many bytes of memory the changes take.
func (s *Changes) Len() int { return s.bytes }

// RecordKeys returns the keys of the first and the last changed record, nil if there is none.
func (s *Changes) RecordKeys() (first, last []byte) {
	if len(s.records) == 0 {
		return nil, nil
	}
	return s.key(s.records[0]), s.key(s.records[len(s.records)-1])
}

// Set has the meaning of [pebble.Batch.Set].
func (s *Changes) Set(key, value []byte, _ *pebble.WriteOptions) error {
	s.put(key, value, int32(len(value)))
	return nil
}

// Delete has the meaning of [pebble.Batch.Delete].
func (s *Changes) Delete(key []byte, _ *pebble.WriteOptions) error {
	s.put(key, nil, deleted)
	return nil
}

// Merge adds an encoded [codec.Tally] to what a row has.
func (s *Changes) Merge(key, value []byte, _ *pebble.WriteOptions) error {
	var sum codec.Tally
	if err := errors.Join(sum.AddEncoded(s.others[string(key)]), sum.AddEncoded(value)); err != nil {
		return err
	}
	return s.Set(key, sum.Append(nil), nil)
}

func (s *Changes) put(key, value []byte, vlen int32) {
	prefix := codec.Table(key[0]).RecordKeyOffset()
	switch {
	case codec.Table(key[0]) == codec.CrawlTable:
		s.records = append(s.records, s.change(key, value, vlen))
		return
	case prefix == 0:
		if s.others == nil {
			s.others = map[string][]byte{}
		}
		if vlen == deleted {
			s.others[string(key)] = nil
		} else {
			s.others[string(key)] = append([]byte{}, value...)
		}
		return
	}
	l := s.group(key, prefix)
	var c change
	// An entry follows its record.
	if last := len(s.records) - 1; last >= 0 && bytes.Equal(s.key(s.records[last])[1:], key[prefix:]) {
		r := s.records[last]
		c = s.change(nil, value, vlen)
		c.key, c.klen = r.key+1, r.klen-1
	} else {
		c = s.change(key[prefix:], value, vlen)
	}
	l.changes = append(l.changes, c)
}

// A group holds the changes of one level or hour, or of the leases, in key order.
type group struct{ changes []change }

// group returns that of a key whose prefix has that length.
func (s *Changes) group(key []byte, prefix int) *group {
	var number [8]byte
	copy(number[:], key[:prefix])
	n := binary.BigEndian.Uint64(number[:])
	l := s.groups[n]
	if l == nil {
		if s.groups == nil {
			s.groups = map[uint64]*group{}
		}
		l = &group{}
		s.groups[n] = l
	}
	return l
}

func (s *Changes) change(key, value []byte, vlen int32) change {
	s.bytes += changeSize
	return change{key: s.add(key), klen: uint32(len(key)), value: s.add(value), vlen: vlen}
}

// add adds bytes and returns where they are.
func (s *Changes) add(b []byte) place {
	for ; s.cur < len(s.chunks); s.cur++ {
		if c := s.chunks[s.cur]; cap(c)-len(c) >= len(b) && len(c) < 1<<chunkBits {
			break
		}
	}
	if s.cur == len(s.chunks) { // as much as there is, up to a whole one
		s.chunks = append(s.chunks, make([]byte, 0, max(min(max(s.bytes, 16<<10), 1<<chunkBits), len(b))))
	}
	c := s.chunks[s.cur]
	s.chunks[s.cur] = append(c, b...)
	s.bytes += len(b)
	return place(s.cur<<chunkBits | len(c))
}

func (s *Changes) at(p place, n int) []byte {
	return s.chunks[p>>chunkBits][p&(1<<chunkBits-1):][:n:n]
}

func (s *Changes) key(c change) []byte { return s.at(c.key, int(c.klen)) }

// valueOf returns the value of a change; nil if it deletes.
func (s *Changes) valueOf(c change) []byte {
	if c.vlen == deleted {
		return nil
	}
	return s.at(c.value, int(c.vlen))
}

// Tables returns the changes as tables that do not overlap, each in key order, with nil
// for deleted keys. Levels and hours with at least full entries get tables of their own:
// the next step begins where they end, while a table with several of them would overlap
// all of it.
func (s *Changes) Tables(full int) []iter.Seq2[[]byte, []byte] {
	var all []iter.Seq2[[]byte, []byte]
	if len(s.records) > 0 {
		all = append(all, func(yield func(key, value []byte) bool) {
			for _, c := range s.records {
				if !yield(s.key(c), s.valueOf(c)) {
					return
				}
			}
		})
	}
	var some []uint64
	flush := func() {
		if len(some) > 0 {
			all = append(all, s.groupRows(some))
			some = nil
		}
	}
	for _, n := range slices.Sorted(maps.Keys(s.groups)) {
		size := len(s.groups[n].changes)
		if size == 0 { // from an earlier step
			continue
		}
		if size >= full || len(some) > 0 && some[0]>>56 != n>>56 {
			flush()
		}
		some = append(some, n)
		if size >= full {
			flush()
		}
	}
	flush()
	names := slices.Sorted(maps.Keys(s.others))
	for i := 0; i < len(names); {
		from := i
		for i < len(names) && kindOf(names[i]) == kindOf(names[from]) {
			i++
		}
		all = append(all, func(yield func(key, value []byte) bool) {
			for _, name := range names[from:i] {
				if !yield([]byte(name), s.others[name]) {
					return
				}
			}
		})
	}
	return all
}

// kindOf returns the prefix of those keys of a table that get a table to themselves in
// a step. A step has the marks of some domains, which are adjacent, and that of its
// job: one table of both would overlap the domains of all other steps, and each
// Progress would read it.
func kindOf(key string) string {
	if codec.Table(key[0]) == codec.MarkTable {
		kind, _, _ := strings.Cut(key, "/")
		return kind
	}
	return key[:1]
}

// groupRows yields the entries of some levels or hours of one table.
func (s *Changes) groupRows(numbers []uint64) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		var key []byte
		for _, n := range numbers {
			var number [8]byte
			binary.BigEndian.PutUint64(number[:], n)
			prefix := codec.Table(number[0]).RecordKeyOffset()
			for _, c := range s.groups[n].changes {
				key = append(append(key[:0], number[:prefix]...), s.key(c)...)
				if !yield(key, s.valueOf(c)) {
					return
				}
			}
		}
	}
}
