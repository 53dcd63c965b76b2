package warc

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/idna"
)

// SURT returns the key of a URL in an index: host labels in reverse, path and query, as in
// "com,example)/path?a=1". By the rules of the Internet Archive, under which different
// spellings of a URL have one key: all is in lower case; scheme, fragment, user, default
// port, a leading "www." and session numbers are left out; arguments of the query are
// sorted; escapes, dot segments and slashes are made uniform.
//
// Of a URL without a host, such as "urn:isbn:1", the key is the URL in lower case.
func SURT(url string) string {
	scheme, rest, ok := strings.Cut(strings.TrimSpace(url), "://")
	if !ok {
		return strings.ReplaceAll(escapeOnce(strings.ToLower(url)), " ", "%20")
	}
	scheme = strings.ToLower(scheme)
	rest, _, _ = strings.Cut(rest, "#")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	authority, rest := rest[:end], rest[end:]
	path, query, _ := strings.Cut(rest, "?")

	authority = authority[strings.LastIndexByte(authority, '@')+1:]
	host, port := authority, ""
	if i := strings.LastIndexByte(authority, ':'); i >= 0 && !strings.Contains(authority[i:], "]") {
		host, port = authority[:i], authority[i+1:]
	}
	if scheme == "http" && port == "80" || scheme == "https" && port == "443" {
		port = ""
	}
	labels := strings.Split(surtHost(host), ".")
	slices.Reverse(labels)

	var b strings.Builder
	b.WriteString(strings.Join(labels, ","))
	if port != "" {
		b.WriteString(":" + escapeOnce(port))
	}
	b.WriteString(")" + surtPath(path))
	if q := surtQuery(query); q != "" {
		b.WriteString("?" + q)
	}
	return b.String()
}

func surtHost(host string) string {
	host = unescapeAll(host)
	if len(host) < 1000 && strings.ContainsFunc(host, func(r rune) bool { return r >= 0x80 }) { // no name is longer, and the mapping takes time
		if ascii, err := idna.New(idna.MapForLookup(), idna.Transitional(false)).ToASCII(host); err == nil {
			host = ascii
		}
	}
	host = strings.Trim(strings.ReplaceAll(strings.ToLower(host), "..", "."), ".")
	if digits, ok := strings.CutPrefix(host, "www"); ok {
		if rest := strings.TrimLeft(digits, "0123456789"); strings.HasPrefix(rest, ".") {
			host = rest[1:]
		}
	}
	return escapeOnce(host)
}

func surtPath(path string) string {
	var kept []string
	segments := strings.Split(unescapeAll(path), "/")
	for i, s := range segments[1:] { // what precedes the first slash is empty
		last := i == len(segments)-2
		switch {
		case s == "." && !last, s == "" && !last:
		case s == ".":
			kept = append(kept, "")
		case s == "..":
			if len(kept) > 0 {
				kept = kept[:len(kept)-1]
			} else {
				kept = append(kept, s)
			}
		default:
			kept = append(kept, s)
		}
	}
	path = strings.ToLower(escapeOnce("/" + strings.Join(kept, "/")))
	if !strings.ContainsRune(path, '(') {
		return trimSlash(path)
	}
	for _, session := range []string{`^(.*/)\((?:[a-z]\([0-9a-z]{24}\))+\)/([^?]+\.aspx.*)$`, `^(.*/)\([0-9a-z]{24}\)/([^?]+\.aspx.*)$`} {
		path = regexp.MustCompile(session).ReplaceAllString(path, "$1$2")
	}
	return trimSlash(path)
}

func trimSlash(path string) string {
	if len(path) > 1 {
		return strings.TrimSuffix(path, "/")
	}
	return path
}

func surtQuery(query string) string {
	if query == "" {
		return ""
	}
	query = strings.ToLower(escapeOnce(unescapeAll(query)))
	if strings.Contains(query, "sess") || strings.Contains(query, "sid=") || strings.Contains(query, "cfid=") {
		for _, session := range []string{
			`^(.*)jsessionid=[0-9a-z]{32}(?:&(.*))?$`,
			`^(.*)phpsessid=[0-9a-z]{32}(?:&(.*))?$`,
			`^(.*)sid=[0-9a-z]{32}(?:&(.*))?$`,
			`^(.*)aspsessionid[a-z]{8}=[a-z]{24}(?:&(.*))?$`,
			`^(.*)cfid=[^&]+&cftoken=[^&]+(?:&(.*))?$`,
		} {
			query = regexp.MustCompile(session).ReplaceAllString(query, "$1$2")
		}
	}
	arguments := strings.Split(query, "&")
	slices.SortFunc(arguments, func(a, b string) int {
		name, value, hasValue := strings.Cut(a, "=")
		otherName, otherValue, otherHasValue := strings.Cut(b, "=")
		if c := cmp.Compare(name, otherName); c != 0 {
			return c
		}
		if hasValue != otherHasValue {
			if hasValue {
				return 1
			}
			return -1
		}
		return cmp.Compare(value, otherValue)
	})
	return strings.Join(arguments, "&")
}

// unescapeAll undoes percent escapes until none is left, as some URLs are escaped more than
// once.
func unescapeAll(s string) string {
	for {
		t := unescape(s)
		if t == s {
			return s
		}
		s = t
	}
}

func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if high, low := hexValue(s[i+1]), hexValue(s[i+2]); high >= 0 && low >= 0 {
				b.WriteByte(byte(high<<4 | low))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func hexValue(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// escapeOnce escapes what is no printable ASCII, and "%" and "#".
func escapeOnce(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f || c == '%' || c == '#' {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
