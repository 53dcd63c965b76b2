package javaregex

import "strings"

// The patterns against loops in Nutch's regex-urlfilter.txt, without the
// leading ".*", which changes nothing. They need back-references.
const (
	segmentsPattern = `(/[^/]+)/[^/]+\1/[^/]+\1/`
	partsPattern    = `(/.+?)/.*?\1/.*?\1/`
)

// RepeatsSegment reports whether a path segment occurs three times, with one
// segment between each: "/a/b/a/c/a/". Wrongly resolved relative links make
// endlessly many such URLs. It is the last pattern of Nutch's
// regex-urlfilter.txt, (/[^/]+)/[^/]+\1/[^/]+\1/.
func RepeatsSegment(url string) bool {
	// The last five segments that have a slash on both sides, oldest first.
	var last [5]string
	i := strings.IndexByte(url, '/')
	for i >= 0 {
		n := strings.IndexByte(url[i+1:], '/')
		if n < 0 {
			break
		}
		copy(last[:], last[1:])
		last[4] = url[i+1 : i+1+n]
		i += n + 1
		if last[4] != "" && last[4] == last[2] && last[2] == last[0] && last[1] != "" && last[3] != "" {
			return true
		}
	}
	return false
}

// RepeatsPart reports whether a path segment occurs three times, with anything
// between: "/a/b/c/a/a/". It is the same pattern in older versions of Nutch,
// (/.+?)/.*?\1/.*?\1/, which rejects some legitimate URLs, such as those with
// dates.
//
// The pattern looks for some "/x/" that occurs three times, without a shared
// slash and without a line end from the first to the last, where x is not
// empty. If there is such an x then there is one without a slash except at its
// beginning, since every "/x/" begins with one of these; so each slash has one
// candidate.
func RepeatsPart(url string) bool {
	if strings.Count(url, "/") < 6 {
		return false
	}
	if isASCII(url) && strings.IndexByte(url, '\n') < 0 && strings.IndexByte(url, '\r') < 0 {
		return repeatsPart(url)
	}
	for line := range strings.FieldsFuncSeq(url, func(r rune) bool { return strings.ContainsRune(lineEnds, r) }) {
		if repeatsPart(line) {
			return true
		}
	}
	return false
}

// seenPart says how often a part has been found, and where the last ended.
type seenPart struct{ times, end int }

func repeatsPart(line string) bool {
	parts := map[string]seenPart{}
	for i := strings.IndexByte(line, '/'); i >= 0; {
		if i+2 > len(line) {
			return false
		}
		n := strings.IndexByte(line[i+2:], '/')
		if n < 0 {
			return false
		}
		end := i + 2 + n + 1
		part := line[i:end]
		if seen := parts[part]; seen.times == 0 || i >= seen.end {
			if seen.times == 2 {
				return true
			}
			parts[part] = seenPart{seen.times + 1, end}
		}
		next := strings.IndexByte(line[i+1:], '/')
		if next < 0 {
			return false
		}
		i += 1 + next
	}
	return false
}
