package frontier

import (
	"iter"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
)

// PartOf names the part of a site that contains a URL: host and first
// directory, followed by "?" if the URL has a query, such as
// "www.example.org/docs/", "www.example.org/" for the top, or
// "www.example.org/search?". Parts that differ only in numbers or session ids
// are one: "www#.example.org/s#/".
func PartOf(url string) string {
	host, path, query := split(url)
	var b strings.Builder
	b.Grow(maxName)
	b.WriteString(Shape(host))
	b.WriteByte('/')
	if dir, _, ok := strings.Cut(path, "/"); ok {
		b.WriteString(Shape(dir))
		b.WriteByte('/')
	} else if query {
		b.WriteString(Shape(path))
	}
	if query {
		b.WriteByte('?')
	}
	name := b.String()
	return strings.ToValidUTF8(name[:min(len(name), maxName)], "")
}

// HostOf returns the host of a part.
func HostOf(part string) string {
	host, _, _ := strings.Cut(part, "/")
	return host
}

// Steps yields the steps from a host to a URL: the shapes of its directories,
// then "name?" if it has a query. So URLs that have the same steps are siblings
// of one kind.
func Steps(url string) iter.Seq[string] {
	return func(yield func(string) bool) {
		_, path, query := split(url)
		for {
			dir, rest, ok := strings.Cut(path, "/")
			if !ok {
				break
			}
			if !yield(Shape(dir) + "/") {
				return
			}
			path = rest
		}
		if query {
			yield(Shape(path) + "?")
		}
	}
}

// split returns the host, the path without its first slash, and whether there is
// a query.
func split(url string) (host, path string, query bool) {
	host = strings.TrimSuffix(crawldb.Host(url), ".")
	if i := strings.Index(url, "://"); i >= 0 {
		url = url[i+3:]
	}
	if i := strings.IndexByte(url, '#'); i >= 0 {
		url = url[:i]
	}
	if i := strings.IndexByte(url, '?'); i >= 0 {
		url, query = url[:i], true
	}
	_, path, _ = strings.Cut(url, "/")
	return host, path, query
}

// Shape returns a segment of a URL with each number in it replaced by "#", and
// what looks random by "*".
func Shape(segment string) string {
	if isToken(segment) {
		return "*"
	}
	i := strings.IndexFunc(segment, isDigit)
	if i < 0 {
		return segment
	}
	b := make([]byte, 0, len(segment))
	for j := range len(segment) {
		c := segment[j]
		if !isDigit(rune(c)) {
			b = append(b, c)
		} else if j == 0 || !isDigit(rune(segment[j-1])) {
			b = append(b, '#')
		}
	}
	return string(b)
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

// isToken reports whether a segment may be a session id, a hash, or the like:
// long, of letters and digits only, which alternate more often than in a name
// with a number; or longer still, with some of both.
func isToken(s string) bool {
	if len(s) < 8 {
		return false
	}
	digits, changes := 0, 0
	for i := range len(s) {
		c := s[i]
		switch {
		case isDigit(rune(c)):
			digits++
			if i > 0 && !isDigit(rune(s[i-1])) {
				changes++
			}
		case 'a' <= c|0x20 && c|0x20 <= 'z':
		default:
			return false
		}
	}
	return changes >= 2 || len(s) >= 16 && digits >= 2 && digits < len(s)
}

// Endless reports whether a URL is of a kind that a server can make any number
// of: it has a query, or a segment that is a number or a token, or is the start
// page of a host below a domain, of which there may be any number. Most such
// URLs are legitimate.
func Endless(url, domain string) bool {
	host, path, query := split(url)
	if query {
		return true
	}
	if path == "" && host != domain && host != "www."+domain {
		return true
	}
	for seg := range strings.SplitSeq(path, "/") {
		stem, _, _ := strings.Cut(seg, ".")
		if isNumber(stem) || isToken(stem) {
			return true
		}
	}
	return false
}

// isNumber reports whether a segment is a number or several, such as a date.
func isNumber(s string) bool {
	some := false
	for i := range len(s) {
		switch c := s[i]; {
		case isDigit(rune(c)):
			some = true
		case c != '-' && c != '_':
			return false
		}
	}
	return some
}
