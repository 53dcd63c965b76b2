package javaurl

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// NormalizedURI is what toURI().normalize() returns: the URL with its path
// normalized by RFC 2396 and empty segments dropped. It fails if java.net.URI
// finds a character that RFC 2396 does not allow.
func (u *URL) NormalizedURI() (string, error) {
	whole := u.String()
	s := whole[len(u.Protocol)+1:]
	if !isURIScheme(u.Protocol) {
		return "", errURI
	}
	s, ref, _ := strings.Cut(s, "#")
	if !onlyURI(ref, uriAny) {
		return "", errURI
	}
	if !strings.HasPrefix(s, "/") {
		if s == "" || !onlyURI(s, uriAny) {
			return "", errURI
		}
		return whole, nil // opaque: nothing to normalize
	}
	rest, query, hasQuery := strings.Cut(s, "?")
	head, path := u.Protocol+":", rest
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		auth := after
		path = ""
		if i := strings.IndexByte(after, '/'); i >= 0 {
			auth, path = after[:i], after[i:]
		}
		if auth != "" {
			if !isURIAuthority(auth) {
				return "", errURI
			}
			head += "//" + auth
		} else if path == "" && !hasQuery && !u.HasRef {
			return "", errURI
		}
	}
	if !onlyURI(path, uriPath) || !onlyURI(query, uriAny) {
		return "", errURI
	}
	head += normalizePath(path)
	if hasQuery {
		head += "?" + query
	}
	return head, nil
}

// normalizePath removes empty segments, "." and each ".." that has something
// before it to remove; a leading ".." stays.
func normalizePath(path string) string {
	out := make([]byte, 0, len(path))
	parents := 0 // length of the part that ends with the last ".." that stays
	slash := false
	for i := 0; i < len(path); {
		if path[i] == '/' {
			slash = true
			i++
			continue
		}
		end := strings.IndexByte(path[i:], '/')
		if end < 0 {
			end = len(path)
		} else {
			end += i
		}
		seg := path[i:end]
		i = end
		switch {
		case seg == ".":
			slash = true
		case seg == ".." && len(out) > parents:
			out = out[:strings.LastIndexByte(string(out), '/')]
			slash = true
		default:
			out = append(append(out, '/'), seg...)
			if slash = false; seg == ".." {
				parents = len(out)
			}
		}
	}
	if slash {
		out = append(out, '/')
	}
	return string(out)
}

// The characters that java.net.URI accepts in the parts of a URI (RFC 2396 with
// its errata), besides letters, digits and anything not ASCII.
const (
	uriMark     = "-_.!~*'()"
	uriAny      = uriMark + "%;/?:@&=+$,[]"
	uriPath     = uriMark + "%:@&=+$,;/"
	uriUser     = uriMark + "%;:&=+$,"
	uriRegistry = uriUser + "@"
	uriServer   = uriUser + "@[]"
)

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// isURIScheme is stricter than java.net.URL, which accepts any letter.
func isURIScheme(s string) bool {
	for i := range len(s) {
		if !isAlnum(s[i]) && s[i] != '+' && s[i] != '-' && s[i] != '.' {
			return false
		}
	}
	return true
}

// onlyURI reports whether s consists of letters, digits, the given characters,
// whole escapes if "%" is given, and printable non-ASCII characters.
func onlyURI(s, chars string) bool {
	escapes := strings.Contains(chars, "%")
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '%' && escapes:
			if i+2 >= len(s) || unhex(s[i+1]) < 0 || unhex(s[i+2]) < 0 {
				return false
			}
			i += 3
		case c < utf8.RuneSelf:
			if !isAlnum(c) && strings.IndexByte(chars, c) < 0 {
				return false
			}
			i++
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			if !escapes || unicode.In(r, unicode.Z, unicode.Cc) {
				return false
			}
			i += n
		}
	}
	return true
}

// isURIAuthority reports whether java.net.URI accepts an authority,
// server-based or registry-based.
func isURIAuthority(auth string) bool {
	if onlyURI(auth, uriRegistry) {
		return true
	}
	if strings.IndexByte(auth, ']') > 0 { // a zone behind "%" is no escape
		return onlyURI(strings.ReplaceAll(auth, "%", "%25"), uriServer) && isURIServer(auth)
	}
	return onlyURI(auth, uriServer) && isURIServer(auth)
}

// isURIServer reports whether auth is user, host and port. Only an authority
// with brackets gets here, since any other was already accepted as a registry
// name; so the host can only be an IPv6 address.
func isURIServer(auth string) bool {
	if i := strings.IndexByte(auth, '@'); i >= 0 {
		if !onlyURI(auth[:i], uriUser) {
			return false
		}
		auth = auth[i+1:]
	}
	if !strings.HasPrefix(auth, "[") {
		return false
	}
	host, port, ok := strings.Cut(auth[1:], "]")
	if !ok || host == "" {
		return false
	}
	host, zone, hasZone := strings.Cut(host, "%")
	if hasZone {
		for i := range len(zone) {
			if !isAlnum(zone[i]) && zone[i] != '_' && zone[i] != '.' {
				return false
			}
		}
		if zone == "" {
			return false
		}
	}
	if !isURIIPv6(host) {
		return false
	}
	if port == "" {
		return true
	}
	if port[0] != ':' || strings.Trim(port[1:], "0123456789") != "" {
		return false
	}
	_, ok = parseInt(port[1:], 10)
	return ok || port == ":"
}

// isURIIPv6 is stricter than isIPv6Literal: at most four digits per group, and a
// "::" stands for at least one group.
func isURIIPv6(s string) bool {
	head, tail, gap := strings.Cut(s, "::")
	n, ok := uriGroups(head, !gap)
	if !ok {
		return false
	}
	if !gap {
		return n == 8
	}
	m, ok := uriGroups(tail, true)
	return ok && n+m < 8
}

// uriGroups counts the groups of hexadecimal digits in s, two for an IPv4 address
// at the end.
func uriGroups(s string, v4 bool) (int, bool) {
	if s == "" {
		return 0, true
	}
	n := 0
	parts := strings.Split(s, ":")
	for i, p := range parts {
		if v4 && i == len(parts)-1 && strings.Contains(p, ".") {
			return n + 2, isURIIPv4(p)
		}
		if len(p) < 1 || len(p) > 4 || strings.Trim(p, "0123456789abcdefABCDEF") != "" {
			return 0, false
		}
		n++
	}
	return n, true
}

func isURIIPv4(s string) bool {
	parts := strings.Split(s, ".")
	for _, p := range parts {
		if p == "" || strings.Trim(p, "0123456789") != "" {
			return false
		}
		if p = strings.TrimLeft(p, "0"); len(p) > 3 || len(p) == 3 && p > "255" {
			return false
		}
	}
	return len(parts) == 4
}
