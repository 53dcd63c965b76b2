package rank

import (
	"encoding/binary"
	"errors"
	"math"
)

// entry is what is known of the links of one page. Raw is the number of bytes that
// follow that number; the number of the page; twice the number of links by which the
// page divides, plus 1 if what it has of its own follows as a float32; and the pages
// it links to, in ascending order, the first as the difference to the page, the
// others to the previous one. All but the float32 are varints.
type entry struct {
	raw  []byte
	page uint32
	rest []byte // after the page
}

var errEntry = errors.New("rank: an entry of the graph is damaged")

// newEntry returns an entry of a page with out links, which lists the known targets
// to, sorted and distinct.
func newEntry(page uint32, own float32, out int, to []uint32) entry {
	body := make([]byte, 0, 16+3*len(to))
	body = binary.AppendUvarint(body, uint64(page))
	at := len(body)
	head := uint64(out) << 1
	if own != 0 {
		head |= 1
	}
	body = binary.AppendUvarint(body, head)
	if own != 0 {
		body = binary.BigEndian.AppendUint32(body, math.Float32bits(own))
	}
	last := page
	for i, t := range to {
		if i == 0 {
			body = binary.AppendVarint(body, int64(t)-int64(page))
		} else {
			body = binary.AppendUvarint(body, uint64(t-last))
		}
		last = t
	}
	raw := binary.AppendUvarint(make([]byte, 0, len(body)+2), uint64(len(body)))
	size := len(raw)
	raw = append(raw, body...)
	return entry{raw: raw, page: page, rest: raw[size+at:]}
}

// cutEntry takes the first entry of a block that was checked. In an unchecked block,
// the size is zero if there is none.
func cutEntry(b []byte) (e entry, size int) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(len(b)-k) {
		return entry{}, 0
	}
	size = k + int(n)
	page, j := binary.Uvarint(b[k:size])
	if j <= 0 || page > math.MaxUint32 {
		return entry{}, 0
	}
	return entry{raw: b[:size:size], page: uint32(page), rest: b[k+j : size]}, size
}

// head reads what comes before the links. to is the rest.
func (e *entry) head() (out uint64, own float32, to []byte, ok bool) {
	head, k := binary.Uvarint(e.rest)
	if k <= 0 {
		return 0, 0, nil, false
	}
	to = e.rest[k:]
	if head&1 != 0 {
		if len(to) < 4 {
			return 0, 0, nil, false
		}
		own, to = math.Float32frombits(binary.BigEndian.Uint32(to)), to[4:]
	}
	return head >> 1, own, to, true
}

// links counts the pages that are linked to.
func (e *entry) links() (n int64) {
	_, _, to, _ := e.head()
	for _, b := range to { // the last byte of a varint has no high bit
		if b < 0x80 {
			n++
		}
	}
	return n
}

// check reports what is wrong with an entry of a graph of that many pages.
func (e *entry) check(pages int) error {
	out, own, to, ok := e.head()
	if !ok || int64(e.page) >= int64(pages) || !(own >= 0) || math.IsInf(float64(own), 0) {
		return errEntry
	}
	n, last := uint64(0), int64(e.page)
	for len(to) > 0 {
		var d int64
		var k int
		if n == 0 {
			d, k = binary.Varint(to)
		} else {
			var u uint64
			u, k = binary.Uvarint(to)
			if d = int64(u); d <= 0 {
				return errEntry
			}
		}
		if last += d; k <= 0 || d > math.MaxUint32 || d < -math.MaxUint32 || last < 0 || last >= int64(pages) {
			return errEntry
		}
		to, n = to[k:], n+1
	}
	if n > out || out > math.MaxUint32 {
		return errEntry
	}
	return nil
}
