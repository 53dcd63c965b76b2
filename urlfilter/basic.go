package urlfilter

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// Basic is the stock [Normalizer]. It reads a URL as a browser does (WHATWG URL
// standard) and writes it in one spelling. The zero value is ready to use.
//
// What it does, in any scope:
//
//   - Blanks and controls around the URL are dropped, and so are tabs and line
//     ends within it.
//   - The scheme is in lower case and one of Schemes. Slashes after it may be
//     missing, too many, or turned the wrong way; a "\" in the path is a "/".
//   - The host is decoded from percent escapes, mapped to lower-case ASCII
//     (UTS 46, non-transitional), and consists of letters, digits, "-", "_" and
//     ".", in labels of 1 to 63 bytes and at most 253 in all. IPv4 addresses are
//     written as four decimal numbers, whatever form they come in (127.1,
//     0x7f000001), IPv6 addresses as RFC 5952 has them.
//   - A dot at the end of the host is dropped. "example.com." is the same server
//     as "example.com", and a second name for it would be a way around the
//     delay between two requests.
//   - The default port of http, https and ftp is dropped.
//   - User information is refused: a link must not hand out credentials, and a
//     name before "@" mostly serves to look like another host.
//   - The path has no "." and ".." segments and is never empty. Empty segments
//     stay, unless MergeSlashes is set.
//   - In path and query, escapes of letters, digits, "-", ".", "_" and "~" are
//     decoded, other escapes are in upper case, bytes that RFC 3986 does not
//     allow are escaped, and a "%" that begins no escape is "%25". In a query "'"
//     is escaped, as browsers do.
//   - The fragment is dropped.
//
// Every result of a scheme other than file has a key other than "!…" in
// crawldb, so that the records of a host lie together.
type Basic struct {
	// Schemes are the schemes to crawl, in lower case; nil means http and
	// https. [Rules.AllowSchemes] adds some. A scheme that is not "special" to the WHATWG is treated like http,
	// but has no default port.
	Schemes []string
	// MergeSlashes merges consecutive slashes in a path into one, as Nutch
	// does. It is off because servers do tell them apart: the path of an
	// archived page contains a whole URL.
	MergeSlashes bool
	// NutchCompat makes Basic do exactly what Nutch's BasicURLNormalizer does
	// on Java 17, instead of all of the above; MergeSlashes is then ignored.
	// Some of its results are not URLs ("http:" becomes "http:/",
	// "http://h/../..x" becomes "http://hx"), or are not their own normal form
	// ("%%34%31" becomes "%41", which becomes "A"). Schemes are those that
	// java.net.URL has a handler for; nil means http, https, ftp, file and
	// mailto. ("jar:" is refused.)
	NutchCompat bool
	// HostIDN says how NutchCompat spells a host that is not ASCII; empty
	// leaves it as it is. Without NutchCompat a host is always ASCII. (Nutch:
	// urlnormalizer.basic.host.idn.)
	HostIDN HostIDN
	// IDNA2008 makes HostIDN map by UTS 46, non-transitional, and refuse what
	// that does not allow, instead of mapping by the older IDNA 2003, which has
	// no "ß". (Nutch: urlnormalizer.basic.host.idna2008.)
	IDNA2008 bool
	// TrimTrailingDot drops one dot at the end of the host under NutchCompat.
	// Without NutchCompat it is always dropped. (Nutch:
	// urlnormalizer.basic.host.trim-trailing-dot.)
	TrimTrailingDot bool
}

// HostIDN is a spelling of host names. The values are Nutch's.
type HostIDN string

const (
	ToASCII   HostIDN = "toAscii"
	ToUnicode HostIDN = "toUnicode"
)

var (
	errNoScheme = errors.New("no scheme")
	errScheme   = errors.New("scheme is not crawled")
	errUserInfo = errors.New("user information in the URL")
	errPort     = errors.New("bad port")
	errHost     = errors.New("bad host")
	errIPv4     = errors.New("bad IPv4 address")
	errIPv6     = errors.New("bad IPv6 address")
)

// allowed returns a copy of the schemes that are crawled.
func (b Basic) allowed() []string {
	switch {
	case b.Schemes != nil:
		return slices.Clone(b.Schemes)
	case b.NutchCompat:
		return []string{"http", "https", "ftp", "file", "mailto"}
	}
	return []string{"http", "https"}
}

// Normalize returns the normal form of a URL. The scope makes no difference.
func (b Basic) Normalize(_ Scope, url string) (string, error) {
	if b.NutchCompat {
		// What Nutch would not change either, for speed.
		if b.MergeSlashes = true; b.HostIDN != ToUnicode && b.isNormal(url) {
			return url, nil
		}
		return b.normalizeNutch(url)
	}
	if b.isNormal(url) {
		return url, nil
	}
	return b.rewrite(url)
}

// What a byte may be without further thought.
const (
	inHost     = 1 << iota // part of a host name in normal form
	inPath                 // part of a path in normal form
	inQuery                // part of a query in normal form
	unreserved             // never escaped (RFC 3986, 2.3)
)

var class = func() (t [256]uint8) {
	set := func(bits uint8, chars string) {
		for i := range len(chars) {
			t[chars[i]] |= bits
		}
	}
	set(inHost|inPath|inQuery|unreserved, "abcdefghijklmnopqrstuvwxyz0123456789-_")
	set(inPath|inQuery|unreserved, "ABCDEFGHIJKLMNOPQRSTUVWXYZ.~")
	set(inPath|inQuery, "!$&()*+,;=:@/")
	set(inPath, "'")
	set(inQuery, "?")
	return t
}()

// isNormal reports whether url is in normal form, for the great many that are:
// plain names of hosts under http and https. False means that it takes a closer
// look.
func (b Basic) isNormal(url string) bool {
	i := len("http://")
	secure := false
	if !strings.HasPrefix(url, "http://") {
		if !strings.HasPrefix(url, "https://") {
			return false
		}
		i, secure = i+1, true
	}
	if b.Schemes != nil && !slices.Contains(b.Schemes, url[:i-3]) {
		return false
	}
	// Host: non-empty labels, the last not beginning with a digit.
	start, label := i, i
	for ; i < len(url); i++ {
		c := url[i]
		if class[c]&inHost != 0 {
			continue
		}
		if i == label || i-label > 63 {
			return false
		}
		if c != '.' {
			break
		}
		label = i + 1
	}
	if i == len(url) || i-start > 253 || '0' <= url[label] && url[label] <= '9' {
		return false
	}
	if url[i] == ':' {
		i++
		first, port := i, 0
		for ; i < len(url) && '0' <= url[i] && url[i] <= '9' && i-first < 5; i++ {
			port = port*10 + int(url[i]-'0')
		}
		if i == first || i == len(url) || url[first] == '0' || port > 65535 || port == 80 && !secure || port == 443 && secure {
			return false
		}
	}
	if url[i] != '/' {
		return false
	}
	for ; i < len(url) && url[i] != '?'; i++ {
		c := url[i]
		if class[c]&inPath == 0 && !(c == '%' && isNormalEscape(url[i:])) {
			return false
		}
		if c == '/' && i+1 < len(url) && (url[i+1] == '.' && isDots(url[i+1:]) || url[i+1] == '/' && b.MergeSlashes) {
			return false
		}
	}
	for ; i < len(url); i++ {
		c := url[i]
		if class[c]&inQuery == 0 && !(c == '%' && isNormalEscape(url[i:])) {
			return false
		}
	}
	return true
}

// isDots reports whether s begins with a segment that is "." or "..".
func isDots(s string) bool {
	if i := strings.IndexAny(s[:min(3, len(s))], "/?"); i >= 0 {
		s = s[:i]
	}
	return s == "." || s == ".."
}

// isNormalEscape reports whether s begins with an escape that stays as it is.
func isNormalEscape(s string) bool {
	if len(s) < 3 {
		return false
	}
	hi, lo := unhex(s[1]), unhex(s[2])
	return hi >= 0 && lo >= 0 && s[1] < 'a' && s[2] < 'a' && class[hi<<4|lo]&unreserved == 0
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

func (b Basic) rewrite(url string) (string, error) {
	url = strings.TrimFunc(url, func(r rune) bool { return r <= ' ' })
	if strings.ContainsAny(url, "\t\n\r") {
		url = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(url)
	}
	scheme, rest, err := b.cutScheme(url)
	if err != nil {
		return "", err
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, query, hasQuery := strings.Cut(rest, "?")

	var auth, path string
	if scheme == "file" {
		if len(rest) >= 2 && isSlash(rest[0]) && isSlash(rest[1]) {
			auth, path = cutAuthority(rest[2:])
		} else {
			path = rest
		}
	} else {
		for rest != "" && isSlash(rest[0]) {
			rest = rest[1:]
		}
		auth, path = cutAuthority(rest)
	}
	if strings.Contains(auth, "@") {
		return "", errUserInfo
	}
	host, port, err := splitAuthority(scheme, auth)
	if err != nil {
		return "", err
	}

	out := make([]byte, 0, len(scheme)+len(host)+len(port)+len(path)+len(query)+24)
	out = append(append(append(out, scheme...), "://"...), host...)
	if port != "" {
		out = append(append(out, ':'), port...)
	}
	begin := len(out)
	if path == "" || !isSlash(path[0]) {
		out = append(out, '/')
	}
	out = appendEscaped(out, path, inPath)
	out = removeDots(out, begin, b.MergeSlashes)
	if hasQuery {
		out = appendEscaped(append(out, '?'), query, inQuery)
	}
	return string(out), nil
}

func (b Basic) cutScheme(url string) (scheme, rest string, err error) {
	i := strings.IndexByte(url, ':')
	if i <= 0 {
		return "", "", errNoScheme
	}
	if !isScheme(url[:i]) {
		return "", "", errNoScheme
	}
	scheme = strings.ToLower(url[:i])
	if b.Schemes == nil && scheme != "http" && scheme != "https" || b.Schemes != nil && !slices.Contains(b.Schemes, scheme) {
		return "", "", errScheme
	}
	return scheme, url[i+1:], nil
}

// isScheme reports whether a string is a scheme (RFC 3986, 3.1).
func isScheme(s string) bool {
	for i := range len(s) {
		if !isAlpha(s[i]) && (i == 0 || !isAlnum(s[i]) && s[i] != '+' && s[i] != '-' && s[i] != '.') {
			return false
		}
	}
	return s != ""
}

func isSlash(c byte) bool { return c == '/' || c == '\\' }

func cutAuthority(s string) (auth, path string) {
	if i := strings.IndexAny(s, `/\`); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// splitAuthority returns host and port in normal form; port is empty if it is
// the default one.
func splitAuthority(scheme, auth string) (host, port string, err error) {
	host = auth
	if i := strings.LastIndexByte(auth, ':'); i >= 0 && !strings.HasSuffix(auth, "]") {
		host, port = auth[:i], auth[i+1:]
		if scheme == "file" {
			return "", "", errPort
		}
	}
	if port, err = normalPort(scheme, port); err != nil {
		return "", "", err
	}
	if scheme == "file" && host == "" {
		return "", "", nil
	}
	if host, err = normalHost(host); err != nil {
		return "", "", err
	}
	if scheme == "file" && host == "localhost" {
		host = ""
	}
	return host, port, nil
}

func normalPort(scheme, port string) (string, error) {
	n := 0
	for i := range len(port) {
		if port[i] < '0' || port[i] > '9' {
			return "", errPort
		}
		if n = n*10 + int(port[i]-'0'); n > 65535 {
			return "", errPort
		}
	}
	switch {
	case port == "", scheme == "http" && n == 80, scheme == "https" && n == 443, scheme == "ftp" && n == 21:
		return "", nil
	}
	if port = strings.TrimLeft(port, "0"); port == "" {
		port = "0"
	}
	return port, nil
}

// appendEscaped appends s with its escapes normalized. Bytes that are not of
// the class are escaped; in a path a "\" is a "/".
func appendEscaped(dst []byte, s string, ok uint8) []byte {
	const hex = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case class[c]&ok != 0:
			dst = append(dst, c)
		case c == '\\' && ok == inPath:
			dst = append(dst, '/')
		case c == '%' && i+2 < len(s) && unhex(s[i+1]) >= 0 && unhex(s[i+2]) >= 0:
			c = byte(unhex(s[i+1])<<4 | unhex(s[i+2]))
			i += 2
			if class[c]&unreserved != 0 {
				dst = append(dst, c)
				break
			}
			fallthrough
		default:
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		}
	}
	return dst
}

// removeDots resolves the segments "." and ".." of the path that begins at
// out[begin] with a slash, in place.
func removeDots(out []byte, begin int, merge bool) []byte {
	w := begin
	for r := begin; r < len(out); {
		end := r + 1
		for end < len(out) && out[end] != '/' {
			end++
		}
		last := end == len(out)
		switch seg := string(out[r+1 : end]); {
		case seg == "..":
			for w > begin {
				w--
				if out[w] == '/' {
					break
				}
			}
			fallthrough
		case seg == ".":
			if last {
				out[w] = '/'
				w++
			}
		case seg == "" && merge && !last:
		default:
			w += copy(out[w:], out[r:end])
		}
		r = end
	}
	if w == begin {
		out[w] = '/'
		w++
	}
	return out[:w]
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Explain names the parts of the URL that change.
func (b Basic) Explain(url string) string {
	u, err := b.Normalize(AnyScope, url)
	if err != nil || u == url {
		return ""
	}
	before, after := partsOf(url), partsOf(u)
	var all []string
	for i, name := range [...]string{"scheme", "user", "host", "port", "path", "query", "fragment"} {
		if before[i] != after[i] {
			all = append(all, name)
		}
	}
	if all == nil {
		return "spelling" // of what is between the parts
	}
	return strings.Join(all, ", ")
}

func partsOf(url string) (parts [7]string) {
	rest := url
	if scheme, user, host, port, after, ok := cutURL(url); ok {
		parts[0], parts[1], parts[2], parts[3], rest = scheme, user, host, port, after
	} else if i := strings.IndexByte(url, ':'); i >= 0 {
		parts[0], rest = url[:i], url[i+1:]
	}
	if i := strings.IndexByte(rest, '#'); i >= 0 {
		rest, parts[6] = rest[:i], rest[i:]
	}
	if i := strings.IndexByte(rest, '?'); i >= 0 {
		rest, parts[5] = rest[:i], rest[i:]
	}
	parts[4] = rest
	return parts
}

// String names the normalizer.
func (Basic) String() string { return "basic normalizer" }
