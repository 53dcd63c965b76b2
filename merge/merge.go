// Package merge merges several crawl dbs ([CrawlDBs]), link dbs ([LinkDBs]) or
// segments ([Segments]) into one. If several know a page, the newest wins.
//
// The result does not depend on the order of the sources, and merging the same
// sources again changes nothing; so an interrupted merge is simply repeated.
package merge

// AcceptFunc returns the normalized spelling of a URL, and whether it may be
// kept at all. It is called by one goroutine at a time. Usually it is
// urlfilter.Rules.Apply with a scope.
type AcceptFunc = func(url string) (string, bool)

// chunk is the number of URLs in one Update or Merge of a store.
const chunk = 10_000

// Parts are joined so that the result compares like the parts: a part ends in 0
// 0, and a 0 in it is followed by 1.
func appendPart(dst []byte, part string) []byte {
	for i := range len(part) {
		if dst = append(dst, part[i]); part[i] == 0 {
			dst = append(dst, 1)
		}
	}
	return append(dst, 0, 0)
}

// cutPart splits what appendPart wrote from what was appended after it.
func cutPart(b []byte) (part string, rest []byte) {
	var out []byte
	for i := 0; i+1 < len(b); i++ {
		if b[i] != 0 {
			out = append(out, b[i])
			continue
		}
		if i++; b[i] == 0 {
			return string(out), b[i+1:]
		}
		out = append(out, 0)
	}
	return "", nil
}
