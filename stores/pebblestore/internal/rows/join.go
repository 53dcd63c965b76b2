package rows

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// Joined finds the values of another table under keys in ascending order. It is at the
// first row that was not passed yet, so a key without a row costs only a comparison.
type Joined struct {
	// Seek says that each key is sought by itself. A step to the next row would pass over the tombstones of all
	// rows that were removed since the engine wrote its memory to a table, which for few keys costs more.
	Seek bool

	at  Cursor
	t   codec.Table
	key []byte
}

// Join returns the rows of another table, as of the moment of an iterator.
func Join(it *pebble.Iterator, t codec.Table) (Joined, error) {
	other, err := it.Clone(pebble.CloneOptions{IterOptions: t.All()})
	return Joined{at: NewCursor(other), t: t}, err
}

// Close closes the iterator of the other table.
func (j *Joined) Close() error { return j.at.Close() }

// Find returns the value under a key of the other table, nil if there is none. It is
// valid until the next Find.
func (j *Joined) Find(key []byte) ([]byte, error) {
	if j.Seek {
		j.key = append(append(j.key[:0], byte(j.t)), key[1:]...)
		if !j.at.it.SeekPrefixGE(j.key) {
			return nil, j.at.it.Error()
		}
		return j.at.value()
	}
	if j.at.started && (!j.at.it.Valid() || bytes.Compare(j.at.it.Key()[1:], key[1:]) > 0) {
		return nil, j.at.it.Error()
	}
	j.key = append(append(j.key[:0], byte(j.t)), key[1:]...)
	return j.at.Find(j.key)
}
