package codec

import (
	"cmp"
	"encoding/binary"
)

// A Layer of the link db is a set of rows with the inlinks of some pages. It is named by the
// ages of the layers that were joined into it: From is the oldest, To the newest. A layer
// whose ages are all in another's is a remainder of one that was joined, and is not read.
type Layer struct{ From, To uint32 }

// layerPrefix is the length of what precedes the page in a key of [LayerTable]: the table,
// and the ages as four bytes each, the newest first. The layer of age zero is in
// [LinkTable]: all links of stores before version 10, and of those to which only small merges were made.
const layerPrefix = 1 + 4 + 4

// AppendKey appends the key of a page.
func (l Layer) AppendKey(dst []byte, page string) []byte {
	if l.To == 0 {
		dst = append(dst, byte(LinkTable))
	} else {
		dst = append(dst, byte(LayerTable))
		dst = binary.BigEndian.AppendUint32(dst, l.To)
		dst = binary.BigEndian.AppendUint32(dst, l.From)
	}
	return append(dst, page...)
}

// End returns the least key that is greater than those of the layer.
func (l Layer) End() []byte {
	end := l.AppendKey(nil, "")
	for i := len(end) - 1; ; i-- {
		if end[i]++; end[i] != 0 {
			return end
		}
	}
}

// Bounds returns the bounds of the keys of pages in a range.
func (l Layer) Bounds(from, to string) (lower, upper []byte) {
	lower, upper = l.AppendKey(nil, from), l.End()
	if to != "" {
		upper = l.AppendKey(nil, to)
	}
	return lower, upper
}

// Contains reports whether another layer was joined into this one.
func (l Layer) Contains(other Layer) bool {
	return l != other && l.From <= other.From && other.To <= l.To
}

// Compare orders layers by age: it puts the older first, and what was joined behind its remainders.
func (l Layer) Compare(other Layer) int {
	return cmp.Or(cmp.Compare(l.To, other.To), cmp.Compare(other.From, l.From))
}

// IsLinkKey reports whether a key is one of the link db.
func IsLinkKey(key []byte) bool {
	return len(key) > 0 && (Table(key[0]) == LinkTable || Table(key[0]) == LayerTable)
}

// SplitLinkKey divides a key of the link db into its layer and the key of the page. It returns
// false if the key is of another table or malformed.
func SplitLinkKey(key []byte) (l Layer, page []byte, ok bool) {
	switch {
	case !IsLinkKey(key):
	case Table(key[0]) == LinkTable:
		return Layer{}, key[1:], true
	case len(key) >= layerPrefix:
		l = Layer{From: binary.BigEndian.Uint32(key[5:]), To: binary.BigEndian.Uint32(key[1:])}
		return l, key[layerPrefix:], 0 < l.To && l.From <= l.To
	}
	return l, nil, false
}
