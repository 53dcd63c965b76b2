package rows

import "github.com/recrawl/recrawl/stores/pebblestore/internal/codec"

// A Page is a run of rows read at a time. It is read while the engine is in
// use and yielded when it is not: so a loop over a table may take as long as it
// likes, write, and stop, and never keeps an iterator open, which would delay
// the deletion of files or make closing the engine a panic.
type Page struct {
	buf  []byte
	ends []int // of key, value and joined value of each row in turn
}

// Reset empties the page and keeps its memory.
func (p *Page) Reset() { p.buf, p.ends = p.buf[:0], p.ends[:0] }

// Add appends a row; the key is without the byte of the table.
func (p *Page) Add(t codec.Table, key, value, joined []byte) {
	p.buf = append(append(p.buf, byte(t)), key...)
	p.ends = append(p.ends, len(p.buf))
	p.buf = append(p.buf, value...)
	p.ends = append(p.ends, len(p.buf))
	p.buf = append(p.buf, joined...)
	p.ends = append(p.ends, len(p.buf))
}

// Full reports whether a page of that many rows has enough of them, or of bytes.
func (p *Page) Full(size int) bool { return p.Len() >= size || len(p.buf) >= MaxPageBytes }

// After appends the least key that is greater than that of the last row, with the byte of
// its table.
func (p *Page) After(dst []byte) []byte { return append(append(dst, p.part(3*(p.Len()-1))...), 0) }

// Len returns how many rows the page has.
func (p *Page) Len() int { return len(p.ends) / 3 }

func (p *Page) part(i int) []byte {
	from := 0
	if i > 0 {
		from = p.ends[i-1]
	}
	return p.buf[from:p.ends[i]:p.ends[i]]
}

// Row returns the key of a row, without the byte of the table, its value, and
// what the joined table has under the same key.
func (p *Page) Row(i int) (key, value, joined []byte) {
	return p.part(3 * i)[1:], p.part(3*i + 1), p.part(3*i + 2)
}

// Pages start small, for callers that want only a few records, and grow.
const (
	FirstPageSize   = 32
	LargestPageSize = 4096
	MaxPageBytes    = 1 << 20
)
