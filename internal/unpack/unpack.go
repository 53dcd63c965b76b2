// Package unpack reads gzip as servers send it: members one after the other, and perhaps
// bytes after the last that are none. It does not look for other encodings, nor limit what
// comes out. Start with [Gzip].
package unpack

import (
	"bufio"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
)

// Magic is what each member of a gzip file begins with (RFC 1952).
const Magic = "\x1f\x8b"

// Gzip reads the members of a gzip file, which ends after the last good one: some servers
// pad, and a script may have appended a line end to its output. It begins with Reset.
type Gzip struct {
	z  gzip.Reader
	in *bufio.Reader // which z reads, and not a byte beyond a member
}

// Reset begins to read what is in a reader.
func (g *Gzip) Reset(in *bufio.Reader) error {
	g.in = in
	return g.member()
}

func (g *Gzip) member() error {
	if err := g.z.Reset(g.in); err != nil {
		return err
	}
	g.z.Multistream(false)
	return nil
}

// Read implements [io.Reader].
func (g *Gzip) Read(b []byte) (int, error) {
	for {
		n, err := g.z.Read(b)
		if err != io.EOF {
			return n, err
		}
		if n > 0 {
			return n, nil // the end comes again
		}
		magic, err := g.in.Peek(len(Magic))
		switch {
		case err != nil && err != io.EOF:
			return 0, err
		case string(magic) != Magic:
			return 0, io.EOF
		}
		switch err := g.member(); {
		case errors.Is(err, gzip.ErrHeader):
			return 0, io.EOF
		case err != nil:
			return 0, err
		}
	}
}
