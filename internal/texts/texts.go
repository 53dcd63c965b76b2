// Package texts makes strings of bytes, many in one piece of memory: each piece is one
// thing for the garbage collector, and stays as long as any string of it does.
package texts

import "strings"

// Most is how large a piece becomes, unless one string is longer.
const Most = 16 << 10

// Pieces is where strings are made. The zero value is ready to use. Each piece is twice
// as large as the one before, so that few strings take little.
type Pieces struct {
	// Most is how large a piece becomes, in bytes; zero means [Most].
	Most int

	piece strings.Builder
	room  int
}

// Add returns a string of b, which may change afterwards.
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
	p.piece.Write(b) // behind what there is, which stays as it is
	return p.piece.String()[at:]
}
