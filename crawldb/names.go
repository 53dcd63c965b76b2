package crawldb

import (
	"bytes"
	"encoding/binary"

	"github.com/recrawl/recrawl/internal/prefixed"
)

// An encoded record has numbers for names in Meta that many records have, and spells out
// the others: otherwise most of what a policy keeps about a page would be its own name.
// The numbers are no more than that, like the static table of header names in HPACK (RFC
// 7541, appendix A): the names mean what those who set them want, and any other name may
// be used.
//
// The numbers are stored: a name may be added after the last one, by a new version of
// every format that contains records, and none may be moved or removed. The usual length
// of the values of a name may be listed, too, and is then not written either.

// nameOf returns the name for a number from 1 on, empty if there is none, and
// the usual length of its value.
func nameOf(number uint64) (name string, usual int) {
	switch number {
	case 1:
		return "opic.cash", 8
	case 2:
		return "opic.history", 16
	case 3:
		return "schedule.rate", 11
	case 4:
		return "schedule.since", 8
	case 5:
		return "schedule.fixed", 0
	case 6:
		return "depth.depth", 1
	case 7:
		return "depth.max", 1
	case 8:
		return "orphan.seen", 10
	case 9:
		return "pagerank.seed", 1
	case 10:
		return "sitemap.mark", 0
	case 11:
		return "sitemap.hint", 0
	case 12:
		return "sitemap.planned", 8
	case 13:
		return "segment.turn", 0
	case 14:
		return "Content-Type", 9 // of "text/html"
	case 15:
		return "nutch.protocol.code", 3
	case 16:
		return "_rs_", 3
	case 17:
		return "_pst_", 26 // of "success(1), lastModified=0"
	}
	return "", 0
}

// numberOf returns the number of a name, zero if it has none.
func numberOf(name string) (number uint64, usual int) {
	switch name {
	case "opic.cash":
		number = 1
	case "opic.history":
		number = 2
	case "schedule.rate":
		number = 3
	case "schedule.since":
		number = 4
	case "schedule.fixed":
		number = 5
	case "depth.depth":
		number = 6
	case "depth.max":
		number = 7
	case "orphan.seen":
		number = 8
	case "pagerank.seed":
		number = 9
	case "sitemap.mark":
		number = 10
	case "sitemap.hint":
		number = 11
	case "sitemap.planned":
		number = 12
	case "segment.turn":
		number = 13
	case "Content-Type":
		number = 14
	case "nutch.protocol.code":
		number = 15
	case "_rs_":
		number = 16
	case "_pst_":
		number = 17
	default:
		return 0, 0
	}
	_, usual = nameOf(number)
	return number, usual
}

func isNumbered(name string) bool {
	number, _ := numberOf(name)
	return number > 0
}

// numbered reports whether a Meta has a name with a number.
func (m Meta) numbered() bool {
	for name := range m.All() {
		if isNumbered(name) {
			return true
		}
	}
	return false
}

// The kinds of the head of a pair, in its lowest bits; above them is the length of the
// name, which follows, or its number.
const (
	spelledName = iota // followed by the value and its length
	numberedName
	usualValue // of a numbered name; followed by the value, which has the usual length
	pairKinds
)

// appendPairs appends the pairs of a Meta to a record, whose last field they are.
func (m Meta) appendPairs(b []byte) []byte {
	for name, value := range m.All() {
		number, usual := numberOf(name)
		switch {
		case number == 0:
			b = append(binary.AppendUvarint(b, uint64(len(name))*pairKinds+spelledName), name...)
			b = prefixed.Append(b, value)
		case len(value) == usual:
			b = append(binary.AppendUvarint(b, number*pairKinds+usualValue), value...)
		default:
			b = prefixed.Append(binary.AppendUvarint(b, number*pairKinds+numberedName), value)
		}
	}
	return b
}

// expandPairs appends what [Meta.Encoded] would return for what appendPairs wrote. If a
// Meta with a numbered name could be written in several ways, it accepts only that of
// appendPairs.
func expandPairs(dst, b []byte) (_ []byte, ok bool) {
	var last []byte
	first, numbered := true, false
	for ; len(b) > 0; first = false {
		var head, size uint64
		if head, b = cutNumber(b); b == nil {
			return dst, false
		}
		kind, number := head%pairKinds, head/pairKinds
		known, usual := nameOf(number)
		name := b
		switch {
		case kind != spelledName:
			if known == "" {
				return dst, false
			}
			dst = prefixed.Append(dst, known)
			name = dst[len(dst)-len(known):]
			numbered = true
		case number > uint64(len(b)):
			return dst, false
		default:
			if name, b = b[:number], b[number:]; isNumbered(string(name)) {
				return dst, false
			}
			dst = prefixed.Append(dst, name)
		}
		if !first && bytes.Compare(name, last) <= 0 {
			return dst, false
		}
		last = name
		if size = uint64(usual); kind != usualValue {
			if size, b = cutNumber(b); b == nil || kind == numberedName && size == uint64(usual) {
				return dst, false
			}
		}
		if size > uint64(len(b)) {
			return dst, false
		}
		dst, b = prefixed.Append(dst, b[:size]), b[size:]
	}
	return dst, numbered
}
