package urlfilter

import (
	"fmt"
	"strings"

	"github.com/recrawl/recrawl/internal/javaregex"
)

// Traps rejects kinds of URLs that servers make endlessly, mostly by mistake:
// relative links resolved below themselves, and calendars and filters that link
// to ever more parameters. The zero value is what [Default] uses; it rejects
// none of the 31,000 URLs of eight large documentation sites.
//
// It looks at one URL at a time. Endless sites with plain URLs are limited by
// what generate selects and update adds.
//
// In each limit zero means the default and a negative number means none.
type Traps struct {
	// MaxDepth is how many segments a path may have; the default is 20. (From
	// Heritrix, TooManyPathSegments.)
	MaxDepth int
	// MaxRepeats is how often the same one to four segments may follow each
	// other: "/a/b/a/b/a/b/". The default is 2. A single segment of digits, as
	// in dates, and an empty one may do so twice as often. (From Heritrix, PathologicalPath.) A segment that occurs three times with one between each, "/a/b/a/c/a/", is
	// one too many, as in Nutch's regex-urlfilter.txt, unless MaxRepeats is
	// negative.
	MaxRepeats int
	// MaxHosts is how often the host of the URL may occur in its path, as in
	// "http://www.example.org/x/www.example.org/", where a link lacks its
	// scheme. The default is 1: archives and proxies have such paths.
	MaxHosts int
	// MaxParams is how many parameters a query may have; the default is 24.
	MaxParams int
	// MaxSame is how many of them may have the same name; the default is 8.
	MaxSame int
	// MaxQuery is how long a query may be, in bytes; the default is 1024.
	MaxQuery int
}

// Defaults of [Traps].
const (
	defaultMaxDepth   = 20
	defaultMaxRepeats = 2
	defaultMaxHosts   = 1
	defaultMaxParams  = 24
	defaultMaxSame    = 8
	defaultMaxQuery   = 1024
)

// Accept reports whether the URL is within the limits. A string that is no URL
// is.
func (t Traps) Accept(url string) bool { return t.rule(url) == trapNone }

// trap is a rule of Traps.
type trap uint8

const (
	trapNone trap = iota
	trapDepth
	trapRepeats
	trapHosts
	trapParams
	trapSame
	trapQuery
)

// limitOf returns a limit, and whether there is one.
func limitOf(n, def int) (int, bool) {
	if n == 0 {
		n = def
	}
	return n, n > 0
}

func (t Traps) rule(url string) trap {
	start, end, ok := pathAt(url)
	if !ok {
		return trapNone
	}
	path := url[start:end]
	// Most URLs are short, and their segments need no check.
	if n := strings.Count(path, "/"); n > 2 {
		// Empty segments count too, since some servers produce them.
		if strings.HasSuffix(path, "/") {
			n--
		}
		if max, ok := limitOf(t.MaxDepth, defaultMaxDepth); ok && n > max {
			return trapDepth
		}
		if max, ok := limitOf(t.MaxRepeats, defaultMaxRepeats); ok && (repeats(path, max) || javaregex.RepeatsSegment(url)) {
			return trapRepeats
		}
		if max, ok := limitOf(t.MaxHosts, defaultMaxHosts); ok {
			if hostSegments(path, hostOf(url)) > max {
				return trapHosts
			}
		}
	}
	if end == len(url) {
		return trapNone
	}
	url, _, _ = strings.Cut(url, "#")
	_, query, ok := strings.Cut(url, "?")
	if !ok {
		return trapNone
	}
	if max, ok := limitOf(t.MaxQuery, defaultMaxQuery); ok && len(query) > max {
		return trapQuery
	}
	if max, ok := limitOf(t.MaxParams, defaultMaxParams); ok && params(query) > max {
		return trapParams
	}
	if max, ok := limitOf(t.MaxSame, defaultMaxSame); ok && params(query) > max && sameNames(query) > max {
		return trapSame
	}
	return trapNone
}

// longestRepeat is how many segments may be repeated together.
const longestRepeat = 4

// repeats reports whether some segments, each with the slash after it, follow
// each other more than max times.
func repeats(path string, max int) bool {
	var last [longestRepeat + 1]string // segments
	var run [longestRepeat + 1]int     // how many segments in a row equal the one so many before
	_, rest, _ := strings.Cut(path, "/")
	for n := 0; ; n++ {
		seg, after, ok := strings.Cut(rest, "/")
		if !ok {
			return false
		}
		for p := 1; p <= longestRepeat && p <= n; p++ {
			if seg != last[(n-p)%len(last)] {
				run[p] = 0
				continue
			}
			run[p]++
			times := max
			if p == 1 && isDigits(seg) {
				times = 2 * max
			}
			if run[p] >= p*times {
				return true
			}
		}
		last[n%len(last)], rest = seg, after
	}
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// hostSegments counts the segments of a path that equal the host.
func hostSegments(path, host string) int {
	if host == "" {
		return 0
	}
	n := 0
	for more := true; more; {
		var seg string
		if seg, path, more = strings.Cut(path, "/"); seg == host {
			n++
		}
	}
	return n
}

// params counts the parameters of a query. A "?" begins one too: a link that
// consists of a query, if appended to the query of the page, makes them grow.
func params(query string) int {
	n := 1
	for i := range len(query) {
		if isParamEnd(query[i]) {
			n++
		}
	}
	return n
}

func isParamEnd(c byte) bool { return c == '&' || c == ';' || c == '?' }

// sameNames returns how often the most frequent name of a parameter occurs.
func sameNames(query string) int {
	counts := map[string]int{}
	most := 0
	for p := range strings.FieldsFuncSeq(query, func(r rune) bool { return r < 0x80 && isParamEnd(byte(r)) }) {
		name, _, _ := strings.Cut(p, "=")
		counts[name]++
		most = max(most, counts[name])
	}
	return most
}

// String names the filter.
func (Traps) String() string { return "traps" }

// Explain returns the limit that a URL exceeds.
func (t Traps) Explain(url string) string {
	limit := func(n, def int) int { n, _ = limitOf(n, def); return n }
	switch t.rule(url) {
	case trapDepth:
		return fmt.Sprintf("trap: more than %d path segments", limit(t.MaxDepth, defaultMaxDepth))
	case trapRepeats:
		return fmt.Sprintf("trap: path segments that follow each other more than %d times, or stand three times", limit(t.MaxRepeats, defaultMaxRepeats))
	case trapHosts:
		return fmt.Sprintf("trap: the host more than %d times in the path", limit(t.MaxHosts, defaultMaxHosts))
	case trapParams:
		return fmt.Sprintf("trap: more than %d parameters", limit(t.MaxParams, defaultMaxParams))
	case trapSame:
		return fmt.Sprintf("trap: more than %d parameters of one name", limit(t.MaxSame, defaultMaxSame))
	case trapQuery:
		return fmt.Sprintf("trap: a query of more than %d bytes", limit(t.MaxQuery, defaultMaxQuery))
	}
	return ""
}
