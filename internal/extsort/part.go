package extsort

// AppendPart appends one part of a key of several. Such keys compare like their first parts,
// then their second, and so on: a zero in a part is followed by 1, and two zeros end it.
func AppendPart[S string | []byte](dst []byte, part S) []byte {
	for i := range len(part) {
		if dst = append(dst, part[i]); part[i] == 0 {
			dst = append(dst, 1)
		}
	}
	return append(dst, 0, 0)
}

// CutPart splits what AppendPart wrote from what was appended after it.
func CutPart(b []byte) (part, rest []byte) {
	for i := 0; i+1 < len(b); i++ {
		if b[i] != 0 {
			part = append(part, b[i])
			continue
		}
		if i++; b[i] == 0 {
			return part, b[i+1:]
		}
		part = append(part, 0)
	}
	return part, nil
}
