package pebblestore

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/recrawl/recrawl/linkdb"
)

// The inlinks of a page are a version byte and, for each in order, the page it
// is on and its anchor. Both are given as how many bytes they share with the
// one before, and the rest: the pages of a site, which lie together, mostly link
// to a page from the same directories and with the same words.
const linkVersion = 1

// maxInlinks bounds what a value may unpack to: since parts are shared, a few
// damaged bytes could ask for any amount of memory.
const maxInlinks = 256 << 20

var errInlinks = errors.New("not encoded inlinks")

func appendInlinks(b []byte, links []linkdb.Inlink) ([]byte, error) {
	b = append(b, linkVersion)
	var last linkdb.Inlink
	size := 0
	for _, l := range links {
		b = appendShared(b, last.From, l.From)
		b = appendShared(b, last.Anchor, l.Anchor)
		last = l
		size += len(l.From) + len(l.Anchor)
	}
	if size > maxInlinks {
		return b, fmt.Errorf("pebblestore: inlinks of %d bytes are too many", size)
	}
	return b, nil
}

func decodeInlinks(b []byte) ([]linkdb.Inlink, error) {
	if len(b) < 1 || b[0] != linkVersion {
		return nil, errInlinks
	}
	b = b[1:]
	var out []linkdb.Inlink
	var last linkdb.Inlink
	size := 0
	for len(b) > 0 {
		var ok1, ok2 bool
		last.From, b, ok1 = cutShared(b, last.From)
		last.Anchor, b, ok2 = cutShared(b, last.Anchor)
		size += len(last.From) + len(last.Anchor)
		if !ok1 || !ok2 || size > maxInlinks {
			return nil, errInlinks
		}
		out = append(out, last)
	}
	return out, nil
}

func appendShared(b []byte, last, s string) []byte {
	n := 0
	for n < len(last) && n < len(s) && last[n] == s[n] {
		n++
	}
	b = binary.AppendUvarint(b, uint64(n))
	b = binary.AppendUvarint(b, uint64(len(s)-n))
	return append(b, s[n:]...)
}

func cutShared(b []byte, last string) (s string, rest []byte, ok bool) {
	shared, n := binary.Uvarint(b)
	if n <= 0 || shared > uint64(len(last)) {
		return "", nil, false
	}
	b = b[n:]
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return "", nil, false
	}
	own, rest := b[n:n+int(size)], b[n+int(size):]
	if len(own) == 0 && shared == uint64(len(last)) {
		return last, rest, true
	}
	return last[:shared] + string(own), rest, true
}
