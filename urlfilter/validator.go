package urlfilter

import "strings"

// NewValidator makes a filter that accepts what looks like the URL of a public web page, and rejects,
// among others, names without a dot, IPv6 addresses, user information and host
// names with "_". (Nutch: urlfilter-validator.)
//
//   - All characters are ASCII, printable and not blank.
//   - The scheme consists of letters.
//   - The host is an IPv4 address, or has at least two labels of letters, digits
//     and "-", the last of at least two characters and beginning with a letter; no
//     dot follows it. A port has one to five digits.
//   - The path is empty or begins with "/" and consists of letters, digits and
//     -_:@&?=+,.!/~*'%$;(). It has fewer ".." than slashes, where "//" counts as
//     one and the first does not count.
func NewValidator() Filter { return validator{} }

type validator struct{}

// Accept reports whether the URL is valid.
func (f validator) Accept(url string) bool { return f.Explain(url) == "" }

// String names the filter.
func (validator) String() string { return "validator" }

// Explain says what is wrong with the URL; empty if it is valid.
func (validator) Explain(url string) string {
	for i := range len(url) {
		if url[i] < 0x21 || url[i] > 0x7E {
			return "a character that is not printable ASCII"
		}
	}
	// The generic split of RFC 3986, appendix B.
	i := strings.IndexAny(url, ":/?#")
	if i <= 0 || url[i] != ':' {
		return "no scheme"
	}
	for j := range i {
		if !isAlpha(url[j]) {
			return "a scheme that is not of letters"
		}
	}
	authority, ok := strings.CutPrefix(url[i+1:], "//")
	if !ok {
		return "no host"
	}
	path := ""
	if j := strings.IndexAny(authority, "/?#"); j >= 0 {
		authority, path = authority[:j], authority[j:]
		if j := strings.IndexAny(path, "?#"); j >= 0 {
			path = path[:j]
		}
	}
	if !validAuthority(authority) {
		return "a host or port that is not valid"
	}
	return validPath(path)
}

func validAuthority(s string) bool {
	n := 0
	for n < len(s) && (isAlnum(s[n]) || s[n] == '-' || s[n] == '.') {
		n++
	}
	host, port := s[:n], s[n:]
	if port != "" {
		if len(port) < 2 || len(port) > 6 || port[0] != ':' || strings.Trim(port[1:], "0123456789") != "" {
			return false
		}
	}
	if parts := strings.Split(host, "."); len(parts) == 4 && looksLikeIPv4(parts) {
		for _, p := range parts {
			if len(p) == 3 && p > "255" {
				return false
			}
		}
		return true
	}
	i := strings.LastIndexByte(host, '.')
	if i < 0 {
		return false
	}
	last := host[i+1:]
	return len(last) >= 2 && isAlpha(last[0]) && host[0] != '.' && !strings.Contains(host, "..")
}

func looksLikeIPv4(parts []string) bool {
	for _, p := range parts {
		if len(p) < 1 || len(p) > 3 || strings.Trim(p, "0123456789") != "" {
			return false
		}
	}
	return true
}

func validPath(path string) string {
	if path == "" {
		return ""
	}
	for i := range len(path) {
		if c := path[i]; !isAlnum(c) && strings.IndexByte("-_:@&?=+,.!/~*'%$;()", c) < 0 {
			return "a character that a path has not"
		}
	}
	up := overlapping(path, "..")
	if up > 0 && up >= overlapping(path, "/")-overlapping(path, "//")-1 {
		return `a path with too many ".."`
	}
	return ""
}

// overlapping counts the places where a token begins.
func overlapping(s, token string) int {
	n := 0
	for i := range len(s) {
		if strings.HasPrefix(s[i:], token) {
			n++
		}
	}
	return n
}
