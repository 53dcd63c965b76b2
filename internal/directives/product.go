package directives

import (
	"slices"
	"strings"
)

// Space is white space: that of RFC 9309, and that of C, as Google has it. A
// no-break space does not count, so that no part of a path or name is lost with
// it.
const Space = " \t\v\f\r\n"

// Trim removes Space from both ends.
func Trim(s string) string { return strings.Trim(s, Space) }

// product returns the name by which a crawler is known, in lower case: the first
// word, without a version.
func product(s string) string {
	s = Trim(s)
	if i := strings.IndexAny(s, Space+"/;,("); i >= 0 {
		s = s[:i]
	}
	return strings.ToLower(s)
}

// Products is product of each name that has one.
func Products(names []string) (all []string) {
	for _, n := range names {
		if p := product(n); p != "" {
			all = append(all, p)
		}
	}
	return all
}

// Names reports whether a name is that of a crawler that Products returned: in
// full, or as far as it is a product token.
func Names(name string, products []string) bool {
	return slices.Contains(products, product(name)) || slices.Contains(products, token(name))
}

// token returns the product token that a name begins with, in lower case:
// letters, hyphens and underscores (RFC 9309 section 2.2.1).
func token(s string) string {
	i := 0
	for i < len(s) && ('a' <= s[i]|0x20 && s[i]|0x20 <= 'z' || s[i] == '-' || s[i] == '_') {
		i++
	}
	return strings.ToLower(s[:i])
}
