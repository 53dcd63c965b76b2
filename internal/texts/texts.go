// Package texts makes strings of bytes, many in one block of memory, which is a single
// object for the garbage collector, and is retained as long as any of its strings.
package texts

import "strings"

// Most is how large a block becomes, unless one string is longer.
const Most = 16 << 10

// Pieces makes strings. The zero value is ready to use. Each block is twice as large as
// the one before, so that few strings take little memory.
type Pieces struct {
	// Most is how large a block becomes, in bytes; zero means [Most].
	Most int

	piece strings.Builder
	room  int
}

// Add returns a string with the contents of b, which may change afterwards.
func (p *Pieces) Add(b []byte) string {
	at := p.piece.Len()
	if p.piece.Cap()-at < len(b) {
		most := p.Most
		if most <= 0 {
			most = Most
		}
		p.room = min(max(2*p.room, 512), most)
		p.piece.Reset()
		p.piece.Grow(max(p.room, len(b)))
		at = 0
	}
	p.piece.Write(b) // appended; existing contents do not change
	return p.piece.String()[at:]
}
