package robots

import "strings"

// A rule is one Allow or Disallow line.
type rule struct {
	// pattern is canonical: each '*' is a wildcard, and the characters '*' and
	// '$' are written %2A and %24.
	pattern string
	// anchored says that the pattern ended with '$'.
	anchored bool
	allow    bool
	// stars counts the wildcards removed from pattern because each follows
	// another: they match nothing more, but make the rule longer.
	stars uint16
	line  int32 // its line, from 1
}

// octets is the length that decides which rule is most specific.
func (r *rule) octets() int {
	n := len(r.pattern) + int(r.stars)
	if r.anchored {
		n++
	}
	return n
}

// match reports whether the rule matches a canonical path. Each literal between
// two wildcards is searched once, leftmost and after the previous one, which is
// correct for globs and linear in the path: there is no backtracking.
func (r *rule) match(path string) bool {
	lit, rest, wild := strings.Cut(r.pattern, "*")
	if !strings.HasPrefix(path, lit) {
		return false
	}
	path = path[len(lit):]
	if !wild {
		return !r.anchored || path == ""
	}
	for {
		lit, rest, wild = strings.Cut(rest, "*")
		if !wild {
			break
		}
		i := strings.Index(path, lit)
		if i < 0 {
			return false
		}
		path = path[i+len(lit):]
	}
	if r.anchored {
		return strings.HasSuffix(path, lit)
	}
	return strings.Contains(path, lit)
}

// newRule reads the value of an Allow or Disallow line.
func newRule(value string, allow bool) rule {
	r := rule{allow: allow}
	value, r.anchored = strings.CutSuffix(value, "$")
	r.pattern = canonical(value, true)
	r.stars = uint16(strings.Count(value, "*") - strings.Count(r.pattern, "*")) // at most the length of a line
	return r
}

// canonicalPath returns a path in the spelling of patterns.
func canonicalPath(path string) string { return canonical(path, false) }

// canonical normalizes percent-encoding (RFC 9309 section 2.2.2, RFC 3986
// section 6.2.2). In a pattern '*' is a wildcard, and several in a row are one;
// in a path it is a character. A '%' that begins no escape stays.
func canonical(s string, pattern bool) string {
	i := 0
	for i < len(s) && plain[s[i]] {
		i++
	}
	if i == len(s) {
		return s
	}
	const hex = "0123456789ABCDEF"
	b := make([]byte, i, len(s)+len(s)/4+8)
	copy(b, s)
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case plain[c]:
			b = append(b, c)
		case c == '*' && pattern:
			if len(b) == 0 || b[len(b)-1] != '*' {
				b = append(b, c)
			}
		case c == '%':
			d, ok := unescape(s[i:])
			switch {
			case !ok:
				b = append(b, c)
				continue
			case unreserved(d):
				b = append(b, d)
			default:
				b = append(b, '%', hex[d>>4], hex[d&15])
			}
			i += 2
		default:
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}

// plain holds the characters that stand for themselves in pattern and path:
// unreserved and reserved ones, except '*' and '$'.
var plain = func() (t [256]bool) {
	for c := range 256 {
		t[c] = unreserved(byte(c)) || c < 0x80 && strings.IndexByte(":/?#[]@!&'()+,;=", byte(c)) >= 0
	}
	return t
}()

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// unescape decodes the escape that s begins with.
func unescape(s string) (byte, bool) {
	if len(s) < 3 {
		return 0, false
	}
	hi, ok1 := unhex(s[1])
	lo, ok2 := unhex(s[2])
	return hi<<4 | lo, ok1 && ok2
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
