package crawldb

import (
	"bytes"
	"strings"
)

// Key returns the key a URL is kept and ordered under: the labels of its host
// in reverse order, then scheme, port and the rest as they stand (the order of
// SURT, which has the scheme first).
//
//	http://www.example.com/a?b      com,example,www)http:/a?b
//	https://www.example.com:8443/   com,example,www)https:8443/
//
// So the URLs of a host lie together, a host or a domain is a [Range], and
// neighbours share long prefixes. An IPv4 address is not reversed. Every string
// has a key, and no two share one: anything but a plain lower-case URL with a
// host and without user information has the key "!" followed by itself.
func Key(url string) string { return string(AppendKey(nil, url)) }

// AppendKey appends the [Key] of url to dst.
func AppendKey(dst []byte, url string) []byte {
	dst, rest := appendSite(dst, url)
	return append(dst, url[rest:]...)
}

// appendSite appends the beginning of the key of url, which the rest of url follows
// unchanged.
func appendSite(dst []byte, url string) (_ []byte, rest int) {
	if i, j := usualHost(url); j > 0 {
		dst = appendReversed(dst, url[i:j])
		dst = append(append(dst, ')'), url[:i-len("://")]...)
		return append(dst, ':'), j
	}
	scheme, host, port, path, ok := split(url)
	if !ok {
		return append(dst, '!'), 0
	}
	dst = appendReversed(dst, host)
	dst = append(append(dst, ')'), scheme...)
	dst = append(append(dst, ':'), port...)
	return dst, len(url) - len(path)
}

// URLOf returns the URL whose [Key] is key. For a string that is not a key it
// returns some URL; it never fails.
func URLOf(key string) string {
	if strings.HasPrefix(key, "!") {
		return key[1:]
	}
	host, tail, _ := strings.Cut(key, ")")
	scheme, rest, _ := strings.Cut(tail, ":")
	b := make([]byte, 0, len(key)+3)
	b = append(append(b, scheme...), "://"...)
	b = appendReversedKey(b, host)
	if rest != "" && '0' <= rest[0] && rest[0] <= '9' {
		b = append(b, ':')
	}
	return string(append(b, rest...))
}

// Compare orders two URLs as their keys are ordered.
func Compare(a, b string) int {
	// Most URLs that are compared are on the same site: then the beginnings of
	// their keys are equal, whatever they are.
	if n := slashEnd(a); n > 0 && n <= len(b) && a[:n] == b[:n] {
		return strings.Compare(a[n:], b[n:])
	}
	if ha, hb := namedHost(a), namedHost(b); ha != "" && hb != "" && ha != hb {
		return compareHosts(ha, hb)
	}
	var ka, kb [256]byte
	return bytes.Compare(AppendKey(ka[:0], a), AppendKey(kb[:0], b))
}

// namedHost returns the host of a URL whose key begins with its labels in
// reverse; it may be empty even if there is one.
func namedHost(url string) string {
	i := schemeEnd(url)
	if i < 0 || url[:i] != "http" && url[:i] != "https" { // there are others, which are few
		return ""
	}
	host := url[i+3:]
	host = host[:restAt(host)]
	if host == "" || '0' <= host[len(host)-1] && host[len(host)-1] <= '9' || !plainHost(host) {
		return ""
	}
	return host
}

// compareHosts orders different hosts like the keys of their URLs: label by label
// from the last on. What separates labels in a key, and what follows them, sorts
// before everything that occurs in a label.
func compareHosts(a, b string) int {
	for {
		i, j := strings.LastIndexByte(a, '.'), strings.LastIndexByte(b, '.')
		if c := strings.Compare(a[i+1:], b[j+1:]); c != 0 {
			return c
		}
		switch {
		case i < 0:
			return -1
		case j < 0:
			return 1
		}
		a, b = a[:i], b[:j]
	}
}

// slashEnd returns the index after the slash that begins the path, or a later one,
// after '?' or '#'; 0 if there is none. It is quicker than siteEnd.
func slashEnd(url string) int {
	i := schemeEnd(url)
	if i < 0 {
		return 0
	}
	j := strings.IndexByte(url[i+3:], '/')
	if j < 0 {
		return 0
	}
	return i + 3 + j + 1
}

// siteEnd returns the length of what precedes the path, including the byte that
// begins it; 0 if there is none.
func siteEnd(url string) int {
	i := schemeEnd(url)
	if i < 0 {
		return 0
	}
	auth := url[i+3:]
	j := restAt(auth)
	if j == len(auth) {
		return 0
	}
	return i + 3 + j + 1
}

// restAt returns where the authority at the start of s ends.
func restAt(s string) int {
	for i := range len(s) {
		if c := s[i]; c == '/' || c == '?' || c == '#' {
			return i
		}
	}
	return len(s)
}

// Host returns the host of a URL without its port, its ASCII letters in lower
// case; empty if it has none. It is the name under which DueQuery.WantHost asks, and by default the
// name of the queue a URL waits in.
func Host(url string) string {
	if _, host, _, _, ok := split(url); ok {
		return host
	}
	i := schemeEnd(url)
	if i < 0 {
		return ""
	}
	auth := url[i+3:]
	if j := strings.IndexAny(auth, "/?#\\"); j >= 0 {
		auth = auth[:j]
	}
	auth = auth[strings.LastIndexByte(auth, '@')+1:]
	if strings.HasPrefix(auth, "[") {
		if j := strings.IndexByte(auth, ']'); j >= 0 {
			return lower(auth[:j+1])
		}
		return ""
	}
	host, _, _ := strings.Cut(auth, ":")
	return lower(host)
}

// Range is a half-open interval of keys. The zero Range holds everything.
type Range struct {
	// From is the first key, included; empty means from the beginning.
	From string
	// To is the key after the last, not included; empty means to the end.
	To string
}

// HostRange holds the URLs of one host, whatever their scheme and port.
func HostRange(host string) Range {
	b := string(appendReversed(nil, lower(host)))
	return Range{From: b + ")", To: b + "*"} // '*' follows ')'
}

// DomainRange holds the URLs of a domain and of all hosts below it.
func DomainRange(domain string) Range {
	b := string(appendReversed(nil, lower(domain)))
	return Range{From: b + ")", To: b + "-"} // ')' and ',' lie between
}

// Contains reports whether the range holds the key.
func (r Range) Contains(key string) bool {
	return key >= r.From && (r.To == "" || key < r.To)
}

// schemeEnd returns where the scheme ends: the index of the first "://", or
// negative.
func schemeEnd(url string) int {
	switch { // nearly always one of these
	case strings.HasPrefix(url, "https://"):
		return 5
	case strings.HasPrefix(url, "http://"):
		return 4
	}
	return strings.Index(url, "://")
}

// split splits a plain URL; rest begins with '/', '?' or '#', or is empty.
func split(url string) (scheme, host, port, rest string, ok bool) {
	if i, j := usualHost(url); j > 0 {
		return url[:i-len("://")], url[i:j], "", url[j:], true
	}
	i := schemeEnd(url)
	if i <= 0 {
		return
	}
	for j := range i {
		if c := url[j]; !('a' <= c && c <= 'z' || j > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.')) {
			return
		}
	}
	scheme = url[:i]
	auth := url[i+3:]
	j := restAt(auth)
	auth, rest = auth[:j], auth[j:]
	host = auth
	if j := strings.LastIndexByte(auth, ':'); j >= 0 && !strings.HasSuffix(auth, "]") {
		host, port = auth[:j], auth[j+1:]
		if port == "" {
			return
		}
		for k := range len(port) {
			if port[k] < '0' || port[k] > '9' {
				return
			}
		}
	}
	if !plainHost(host) {
		return
	}
	return scheme, host, port, rest, true
}

// usualHost returns where the host of a URL begins and ends if it is a name or an
// IPv4 address without a port, under http or https, as nearly all are; 0 for any
// other.
func usualHost(url string) (begin, end int) {
	begin = len("http://")
	if !strings.HasPrefix(url, "http://") {
		if !strings.HasPrefix(url, "https://") {
			return 0, 0
		}
		begin++
	}
	// The ASCII that plainHost allows: "-.", digits, "_" and small letters.
	plain := [2]uint64{0x03ff_6000_0000_0000, 0x07ff_fffe_8000_0000}
	for end = begin; end < len(url); end++ {
		c := url[end]
		if c >= 0x80 || plain[c>>6]>>(c&63)&1 != 0 {
			continue
		}
		if c != '/' && c != '?' && c != '#' {
			return 0, 0
		}
		break
	}
	if end == begin {
		return 0, 0
	}
	return begin, end
}

func plainHost(host string) bool {
	if host == "" {
		return false
	}
	if host[0] == '[' { // an IPv6 address
		if len(host) < 4 || host[len(host)-1] != ']' {
			return false
		}
		for i := 1; i < len(host)-1; i++ {
			if c := host[i]; !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || c == ':' || c == '.') {
				return false
			}
		}
		return true
	}
	for i := range len(host) {
		if c := host[i]; !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c >= 0x80) {
			return false
		}
	}
	return true
}

// lower lowers ASCII letters and leaves all other bytes as they are.
func lower(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for i, c := range b {
				if 'A' <= c && c <= 'Z' {
					b[i] = c + 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

// literal reports whether a host is an address, which is not reversed: it is
// in brackets, or its last label is a number.
func literal(host string) bool {
	if strings.HasPrefix(host, "[") {
		return true
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	for i := range len(last) {
		if last[i] < '0' || last[i] > '9' {
			return false
		}
	}
	return last != ""
}

func appendReversed(dst []byte, host string) []byte {
	if literal(host) {
		return append(dst, host...)
	}
	for {
		i := strings.LastIndexByte(host, '.')
		dst = append(dst, host[i+1:]...)
		if i < 0 {
			return dst
		}
		dst = append(dst, ',')
		host = host[:i]
	}
}

func appendReversedKey(dst []byte, rev string) []byte {
	for {
		i := strings.LastIndexByte(rev, ',')
		dst = append(dst, rev[i+1:]...)
		if i < 0 {
			return dst
		}
		dst = append(dst, '.')
		rev = rev[:i]
	}
}
