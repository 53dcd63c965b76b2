package rows

import (
	"bytes"
	"cmp"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// A Reader is the current state of the engine, or a snapshot.
type Reader interface {
	Get(key []byte) (value []byte, closer io.Closer, err error)
	NewIter(o *pebble.IterOptions) (*pebble.Iterator, error)
}

// Get returns a copy of the value under key, nil if there is none.
func Get(r Reader, key []byte) ([]byte, error) {
	value, closer, err := r.Get(key)
	if err == pebble.ErrNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, len(value)), value...)
	return out, closer.Close()
}

// A Snapshot is all tables as of one moment: that of an iterator. It is not a snapshot of the
// engine, because closing one waits for the engine's writes, and so for space on a full disk.
// It is for use by one goroutine.
type Snapshot struct{ it *pebble.Iterator }

// NewSnapshot returns the snapshot of an iterator over all tables.
func NewSnapshot(it *pebble.Iterator) Snapshot { return Snapshot{it} }

// Iterator returns the iterator of the snapshot, which every Get moves.
func (s Snapshot) Iterator() *pebble.Iterator { return s.it }

// Get returns a value that is valid until the next call.
func (s Snapshot) Get(key []byte) ([]byte, io.Closer, error) {
	if !s.it.SeekGE(key) || !bytes.Equal(s.it.Key(), key) {
		return nil, nil, cmp.Or(s.it.Error(), pebble.ErrNotFound)
	}
	value, err := s.it.ValueAndErr()
	return value, io.NopCloser(nil), err
}

// NewIter returns an iterator of the snapshot.
func (s Snapshot) NewIter(o *pebble.IterOptions) (*pebble.Iterator, error) {
	return s.it.Clone(pebble.CloneOptions{IterOptions: o})
}

// Close closes an iterator and returns why it ended, if not because there is no more.
func Close(it *pebble.Iterator) error {
	err := it.Error()
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	return err
}
