package dueindex

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// A tallyWriter writes the changes of the counts of the ready table to the batch that changes
// it, host by host. The counts include entries of levels that were cut.
type tallyWriter struct {
	host     []byte
	tally    codec.Tally
	key, enc []byte
}

// add counts an entry n times, if it is in the ready table.
func (c *tallyWriter) add(w Writer, key []byte, n int64) error {
	if codec.Table(key[0]) != codec.ReadyTable {
		return nil
	}
	if host := codec.HostPrefix(key[readyPrefix:]); !bytes.Equal(host, c.host) {
		if err := c.flush(w); err != nil {
			return err
		}
		c.host = append(c.host[:0], host...)
	}
	c.tally.Add(binary.BigEndian.Uint16(key[1:]), n)
	return nil
}

// flush writes the counts of the last host.
func (c *tallyWriter) flush(w Writer) error {
	if len(c.tally) == 0 {
		return nil
	}
	c.key = append(append(c.key[:0], byte(codec.TallyTable)), c.host...)
	c.enc = c.tally.Append(c.enc[:0])
	c.tally = c.tally[:0]
	return w.Merge(c.key, c.enc, nil)
}

// readTally sets a tally to that of a host, as it is stored.
func (x *Index) readTally(own *codec.Tally, host, value []byte) error {
	*own = (*own)[:0]
	if own.AddEncoded(value) != nil || slices.ContainsFunc(*own, func(l codec.LevelCount) bool { return l.N < 0 }) {
		return x.store.Damaged("the tally of", string(host), codec.ErrTally)
	}
	return nil
}

// levelCounts are how many entries are due, by level, whether the table has them or not.
type levelCounts [lastLevel + 1]int64

// upTo counts the entries up to a level.
func (c *levelCounts) upTo(level uint16) (n int64) {
	for _, in := range c[:int(level)+1] {
		n += in
	}
	return n
}

// reaching returns the first level up to which there are n entries, or the last.
func (c *levelCounts) reaching(n int64) (level uint16) {
	for n -= c[0]; n > 0 && level < lastLevel; n -= c[level] {
		level++
	}
	return level
}

// countLevels adds up the tallies.
func (x *Index) countLevels(ctx context.Context) (*levelCounts, error) {
	var c levelCounts
	var own codec.Tally
	return &c, x.rows(ctx, x.db, codec.TallyTable, func(key, value []byte) error {
		if err := x.readTally(&own, key[1:], value); err != nil {
			return err
		}
		for _, l := range own {
			c[l.Level] += l.N
		}
		return nil
	})
}
