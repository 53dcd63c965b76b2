// Package unpack reads files that may be compressed by gzip, whatever their names.
package unpack

import (
	"bufio"
	"compress/gzip"
	"io"
)

// Reader reads the contents of a file.
type Reader struct {
	from io.Reader
	err  error
}

// NewReader begins to read. Anything that begins like gzip is taken as gzip,
// since no text does.
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

// Err returns the error of the file, for code that reads lines: a scanner yields the last
// piece of a line before it reports the error, and that piece may look wrong.
func (r *Reader) Err() error { return r.err }
