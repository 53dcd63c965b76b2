// Package input reads the text files of package simulate, which may be gzipped, and names their
// lines in errors. It does not split them into lines or fields. Start with [New].
package input

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
)

// Reader reads the text of a file.
type Reader struct {
	name string // of the file, if known
	from io.Reader
	err  error
}

// New begins to read. A file that begins like gzip is taken as gzip, since no text does. Its error
// is that of line 1.
func New(r io.Reader) (*Reader, error) {
	in := &Reader{}
	if f, ok := r.(interface{ Name() string }); ok {
		in.name = f.Name()
	}
	b := bufio.NewReader(r)
	in.from = b
	if magic, _ := b.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, in.At(1, err)
		}
		in.from = z
	}
	return in, nil
}

// Read implements [io.Reader].
func (r *Reader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// At returns an error that names a line, and the file if it has a name, as an [os.File] does. If the
// file could not be read it is that error: a scanner yields the piece of a line that precedes it,
// and that piece may look wrong.
func (r *Reader) At(line int, err error) error {
	if r.err != nil {
		err = r.err
	}
	if r.name != "" {
		return fmt.Errorf("%s:%d: %w", r.name, line, err)
	}
	return fmt.Errorf("line %d: %w", line, err)
}

// Whole returns an error about the whole file, which it names if it has a name.
func (r *Reader) Whole(err error) error {
	if r.name != "" {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	return err
}
