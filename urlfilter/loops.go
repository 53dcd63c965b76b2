package urlfilter

import "strings"

// The patterns against loops in Nutch's regex-urlfilter.txt, without the
// leading ".*", which changes nothing. They need back-references.
const (
	segmentsPattern = `(/[^/]+)/[^/]+\1/[^/]+\1/`
	partsPattern    = `(/.+?)/.*?\1/.*?\1/`
)

// RepeatedSegments rejects a URL in which a path segment occurs three times,
// with one segment between each: "/a/b/a/c/a/". Wrongly resolved relative links
// make endlessly many such URLs. (The last pattern of Nutch's
// regex-urlfilter.txt.)
type RepeatedSegments struct{}

// Accept reports whether the URL has no such repetition.
func (RepeatedSegments) Accept(url string) bool {
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
			return false
		}
	}
	return true
}

// String names the filter.
func (RepeatedSegments) String() string { return "repeated path segments" }

// Explain returns the pattern if it rejects the URL.
func (f RepeatedSegments) Explain(url string) string {
	if f.Accept(url) {
		return ""
	}
	return "-.*" + segmentsPattern
}

// RepeatedParts rejects a URL in which a path segment occurs three times, with
// anything between: "/a/b/c/a/a/". It is stricter than [RepeatedSegments] and
// rejects some legitimate URLs, such as those with dates. (The same pattern in
// older versions of Nutch, -.*(/.+?)/.*?\1/.*?\1/.)
type RepeatedParts struct{}

// Accept reports whether the URL has no such repetition.
//
// The pattern looks for some "/x/" that occurs three times, without a shared
// slash and without a line end from the first to the last, where x is not
// empty. If there is such an x then there is one without a slash except at its
// beginning, since every "/x/" begins with one of these; so each slash has one
// candidate.
func (RepeatedParts) Accept(url string) bool {
	if strings.Count(url, "/") < 6 {
		return true
	}
	if isASCII(url) && strings.IndexByte(url, '\n') < 0 && strings.IndexByte(url, '\r') < 0 {
		return !repeatsParts(url)
	}
	for line := range strings.FieldsFuncSeq(url, func(r rune) bool { return strings.ContainsRune(lineEnds, r) }) {
		if repeatsParts(line) {
			return false
		}
	}
	return true
}

// seenPart says how often a part has been found, and where the last ended.
type seenPart struct {
	part  string
	times int
	end   int
}

func repeatsParts(line string) bool {
	var few [24]seenPart
	list := few[:0]
	var many map[string]*seenPart
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
		var seen *seenPart
		if many != nil {
			seen = many[part]
		} else {
			for j := range list {
				if list[j].part == part {
					seen = &list[j]
					break
				}
			}
		}
		switch {
		case seen == nil && many == nil && len(list) < len(few):
			list = append(list, seenPart{part, 1, end})
		case seen == nil:
			if many == nil {
				many = map[string]*seenPart{}
				for j := range list {
					many[list[j].part] = &list[j]
				}
			}
			many[part] = &seenPart{part, 1, end}
		case i >= seen.end:
			if seen.times++; seen.times == 3 {
				return true
			}
			seen.end = end
		}
		next := strings.IndexByte(line[i+1:], '/')
		if next < 0 {
			return false
		}
		i += 1 + next
	}
	return false
}

// String names the filter.
func (RepeatedParts) String() string { return "repeated parts of the path" }

// Explain returns the pattern if it rejects the URL.
func (f RepeatedParts) Explain(url string) string {
	if f.Accept(url) {
		return ""
	}
	return "-.*" + partsPattern
}
