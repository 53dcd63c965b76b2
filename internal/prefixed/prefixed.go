// Package prefixed encodes texts after their lengths, so that several can follow each other: a length
// is an unsigned varint. It knows nothing of what the texts say. Start with [Append] and [Cut].
package prefixed

import "encoding/binary"

// Append appends a text after its length.
func Append[T ~string | ~[]byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// Cut returns the first text of s and what follows it. Of what Append does not write, such as a
// length with more bytes than it needs, ok is false, and both are empty.
func Cut(s string) (text, rest string, ok bool) {
	n, s, ok := cutLength(s)
	if !ok || n > uint64(len(s)) {
		return "", "", false
	}
	return s[:n], s[n:], true
}

func cutLength(s string) (n uint64, rest string, ok bool) {
	if len(s) > 0 && s[0] < 0x80 { // most have one byte
		return uint64(s[0]), s[1:], true
	}
	for i := range min(len(s), binary.MaxVarintLen64) {
		c := s[i]
		if i == binary.MaxVarintLen64-1 && c > 1 {
			break
		}
		n |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return n, s[i+1:], c > 0 || i == 0
		}
	}
	return 0, "", false
}
