package codec

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/recrawl/recrawl/linkdb"
)

// The inlinks of a page are a version byte and runs, the oldest first. A run is what
// one Merge gave the page: its limit (0 is none), the number of links, the number of
// bytes that follow, and the links as they were given: in order, unless a Merge was given
// others and has room for all. The page that a link is on is encoded as
// the length of the prefix it shares with that of the previous link, or with the page
// itself, and the rest; its anchor likewise with the previous anchor: the pages of a
// site, which lie together, mostly link to a page from the same directories and with
// the same words.
//
// The page has the links that merging the runs one after the other would give:
// see joinRuns.
const linkVersion = 2

// oldLinkVersion is that of stores before version 9: the links of the page in one
// list, none encoded relative to the page itself.
const oldLinkVersion = 1

// maxInlinks limits the bytes of a page's inlinks: since prefixes are shared, a few
// damaged bytes could ask for any amount of memory. If there are more, the first in order
// are kept, which do not depend on the order of merges.
const maxInlinks = 256 << 20

var ErrInlinks = errors.New("not encoded inlinks")

// linkRun is an encoded run.
type linkRun struct {
	limit, count int
	body         []byte
}

// leastLink is the smallest size of an encoded link.
const leastLink = 4

func appendRun(dst []byte, r linkRun) []byte {
	dst = binary.AppendUvarint(dst, uint64(r.limit))
	dst = binary.AppendUvarint(dst, uint64(r.count))
	dst = binary.AppendUvarint(dst, uint64(len(r.body)))
	return append(dst, r.body...)
}

// runOf encodes links into buf, as many of the first as there is room for.
func runOf(buf []byte, url string, links []linkdb.Inlink, limit int) linkRun {
	r := linkRun{limit: max(limit, 0), body: buf[:0]}
	var last linkdb.Inlink
	for size := 0; r.count < len(links); r.count++ {
		l := links[r.count]
		if size += len(l.From) + len(l.Anchor); size > maxInlinks {
			break
		}
		n, own := common(last.From, l.From), 0
		if m := common(url, l.From); m > n {
			n, own = m, 1
		}
		r.body = binary.AppendUvarint(r.body, uint64(n<<1|own))
		r.body = appendText(r.body, l.From[n:])
		n = common(last.Anchor, l.Anchor)
		r.body = binary.AppendUvarint(r.body, uint64(n))
		r.body = appendText(r.body, l.Anchor[n:])
		last = l
	}
	return r
}

// LinkEncoder encodes what Merges give pages. The zero value is ready; its memory is reused.
type LinkEncoder struct{ body, value []byte }

// Encode returns the value of a page to which one Merge gave links with a limit; a limit of
// zero is none. If there is no room for all of them it has the first in order, however they
// are given. The value is valid until the next call.
func (e *LinkEncoder) Encode(url string, links []linkdb.Inlink, limit int) []byte {
	run := runOf(e.body, url, links, limit)
	if run.count < len(links) {
		run = runOf(run.body, url, linkdb.Union(nil, links, 0), limit)
	}
	e.body = run.body
	e.value = appendRun(append(e.value[:0], linkVersion), run)
	return e.value
}

// common returns the length of the common prefix of two texts.
func common(a, b string) int {
	n, end := 0, min(len(a), len(b))
	for n+8 <= end && a[n:n+8] == b[n:n+8] {
		n += 8
	}
	for n < end && a[n] == b[n] {
		n++
	}
	return n
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// DecodeInlinks returns the links of a page from its value.
func DecodeInlinks(url string, b []byte) ([]linkdb.Inlink, error) {
	if len(b) > 0 && b[0] == oldLinkVersion {
		return decodeRun(url, b[1:], true)
	}
	if len(b) == 1 && b[0] == linkVersion {
		return nil, nil
	}
	runs, ok := appendRuns(nil, b)
	if !ok {
		return nil, ErrInlinks
	}
	list, err := decodeRuns(url, runs)
	if err != nil {
		return nil, err
	}
	list = joinRuns(list, true)
	return list[0].links, nil
}

// appendRuns appends the runs of a value of this version, which refer to its
// memory.
func appendRuns(runs []linkRun, b []byte) (_ []linkRun, ok bool) {
	if len(b) < 1 || b[0] != linkVersion {
		return runs, false
	}
	for b = b[1:]; len(b) > 0; {
		var head [3]uint64
		for i := range head {
			v, n := binary.Uvarint(b)
			if n <= 0 || v > math.MaxInt {
				return runs, false
			}
			head[i], b = v, b[n:]
		}
		if head[2] > uint64(len(b)) || head[1] > head[2]/leastLink {
			return runs, false
		}
		n := int(head[2])
		runs = append(runs, linkRun{limit: int(head[0]), count: int(head[1]), body: b[:n:n]})
		b = b[n:]
	}
	return runs, true
}

// boundedLinks is a decoded run.
type boundedLinks struct {
	links []linkdb.Inlink
	limit int
}

func decodeRuns(url string, runs []linkRun) (list []boundedLinks, err error) {
	size := 0
	for _, r := range runs {
		links, err := decodeRun(url, r.body, false)
		if err != nil || len(links) != r.count {
			return nil, ErrInlinks
		}
		if size += TextSize(links); size > maxInlinks && len(list) > 1 {
			list = joinRuns(list, false) // or damaged bytes could ask for any amount, run by run
			size = 0
		}
		list = append(list, boundedLinks{links, r.limit})
	}
	return list, nil
}

func TextSize(links []linkdb.Inlink) (size int) {
	for _, l := range links {
		size += len(l.From) + len(l.Anchor)
	}
	return size
}

// decodeRun decodes the links of a run.
func decodeRun(url string, b []byte, old bool) (links []linkdb.Inlink, err error) {
	var last linkdb.Inlink
	size := 0
	for len(b) > 0 {
		n, i := binary.Uvarint(b)
		if i <= 0 {
			return nil, ErrInlinks
		}
		with := last.From
		if !old {
			if n&1 != 0 {
				with = url
			}
			n >>= 1
		}
		var ok bool
		if last.From, b, ok = cutText(b[i:], with, n); !ok {
			return nil, ErrInlinks
		}
		if n, i = binary.Uvarint(b); i <= 0 {
			return nil, ErrInlinks
		}
		if last.Anchor, b, ok = cutText(b[i:], last.Anchor, n); !ok {
			return nil, ErrInlinks
		}
		if size += len(last.From) + len(last.Anchor); size > maxInlinks {
			return nil, ErrInlinks
		}
		links = append(links, last)
	}
	return links, nil
}

// cutText returns the text that begins with the first bytes of another and
// continues with the text at the start of b.
func cutText(b []byte, with string, shared uint64) (s string, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) || shared > uint64(len(with)) {
		return "", nil, false
	}
	own, rest := b[n:n+int(size)], b[n+int(size):]
	if len(own) == 0 {
		return with[:shared], rest, true
	}
	return with[:shared] + string(own), rest, true
}

// joinRuns combines runs as one merge after the other would: the first limit
// links of each together with what came before. Two become one if the second
// has no higher limit than the first, whatever preceded them; base says that
// nothing did, and then one is left.
func joinRuns(list []boundedLinks, base bool) []boundedLinks {
	for {
		out := make([]boundedLinks, 0, (len(list)+1)/2)
		for i := 0; i < len(list); i++ {
			if i+1 < len(list) && (base && i == 0 || !higher(list[i+1].limit, list[i].limit)) {
				i++
				list[i].links = first(linkdb.Union(list[i-1].links, list[i].links, list[i].limit))
			}
			out = append(out, list[i])
		}
		if len(out) == len(list) || len(out) == 1 {
			if base && len(out) == 1 {
				out[0].links = first(linkdb.Union(nil, out[0].links, out[0].limit))
			}
			return out
		}
		list = out
	}
}

// higher reports whether a limit allows more than another; zero means none.
func higher(a, b int) bool { return b > 0 && (a == 0 || a > b) }

// first returns as many of the first links as there is room for.
func first(links []linkdb.Inlink) []linkdb.Inlink {
	size := 0
	for i, l := range links {
		if size += len(l.From) + len(l.Anchor); size > maxInlinks {
			return links[:i]
		}
	}
	return links
}
