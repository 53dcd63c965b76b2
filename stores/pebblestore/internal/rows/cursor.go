package rows

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"
)

// A Cursor finds keys that are requested in ascending order. It only moves
// forward, in steps while keys turn out to be near, which is several times
// cheaper than seeking each of them.
type Cursor struct {
	// Last is the greatest key there is to find; nil if the iterator must end up after
	// a key that does not exist. If keys lie far apart the filters of tables are then
	// used, and few blocks are read of tables that do not have a key.
	Last []byte
	// FarReader, if not nil, is used for keys that lie far apart instead. It has the
	// contents of the iterator, and looks no further than the newest table that has a
	// key, where an iterator reads a block of the last level for each; but it opens
	// tables anew.
	FarReader pebble.Reader

	it      *pebble.Iterator
	started bool
	misses  int    // keys in a row that no steps led to
	buf     []byte // of returned values
}

// NewCursor returns a cursor that moves an iterator.
func NewCursor(it *pebble.Iterator) Cursor { return Cursor{it: it} }

// Close closes the iterator.
func (c *Cursor) Close() error { return c.it.Close() }

// A seek costs as much as six steps where everything is in one level, and as
// twenty-four behind some large updates. So many are taken where steps led to the
// last key, and six after one that they did not lead to. If they lead nowhere four
// times in a row the keys lie far apart, and only two in sixty-four try again: one
// by seeking, and one from there.
const (
	nearby     = 6
	nearer     = 24
	tries      = 4
	triesAgain = 2
	tryEvery   = 64
)

// Find returns the value under key, nil if there is none. It is valid until the
// next Find.
func (c *Cursor) Find(key []byte) ([]byte, error) {
	steps := 1
	switch {
	case c.misses == 0:
		steps = nearer
	case c.misses < tries || c.misses%tryEvery < triesAgain:
		steps = nearby
	case c.FarReader != nil:
		c.misses++
		c.started = false // no step can continue from here
		value, closer, err := c.FarReader.Get(key)
		if err == pebble.ErrNotFound {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if c.buf = append(c.buf[:0], value...); c.buf == nil {
			c.buf = []byte{}
		}
		return c.buf, closer.Close()
	case c.Last != nil && bytes.Compare(key, c.Last) <= 0:
		c.misses++
		c.started = false
		if !c.it.SeekPrefixGE(key) {
			return nil, c.it.Error()
		}
		return c.value()
	}
	ok, is := c.started && c.it.Valid(), -1 // is compares the key it stands on with key
	for ; ok; ok = c.it.Next() {
		if is = bytes.Compare(c.it.Key(), key); is >= 0 || steps == 0 {
			break
		}
		steps--
	}
	// What cannot be read between two keys, or was to be read for the one before, says
	// nothing of this one.
	if !c.started || ok && is < 0 || !ok && c.it.Error() != nil {
		c.started = true
		c.misses++
		if ok = c.it.SeekGE(key); ok {
			is = bytes.Compare(c.it.Key(), key)
		}
	} else {
		c.misses = 0
	}
	if !ok {
		return nil, c.it.Error()
	}
	if is != 0 {
		return nil, nil
	}
	return c.value()
}

// value returns what is under the key that was found.
func (c *Cursor) value() ([]byte, error) {
	value, err := c.it.ValueAndErr()
	if value == nil {
		value = []byte{}
	}
	return value, err
}
