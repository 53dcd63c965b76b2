// Package unpack reads files that may be compressed by gzip, whatever they are called.
package unpack

import (
	"bufio"
	"compress/gzip"
	"io"
)

// Reader reads what is in a file.
type Reader struct {
	from io.Reader
	err  error
}

// NewReader begins to read. What begins like gzip is that, for no text does.
func NewReader(r io.Reader) (*Reader, error) {
	b := bufio.NewReader(r)
	if magic, _ := b.Peek(2); string(magic) != "\x1f\x8b" {
		return &Reader{from: b}, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, err
	}
	return &Reader{from: z}, nil
}

// Read implements [io.Reader].
func (r *Reader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// Err returns what was wrong with the file, for who reads lines: a scanner gives out the piece
// of a line that came last before it tells of that, and the piece may look wrong.
func (r *Reader) Err() error { return r.err }
