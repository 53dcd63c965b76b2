package htmlparse

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
)

// location is an absolute URL against which others are resolved.
type location struct {
	href   string // the whole, without fragment
	scheme string
	prefix string // scheme and authority: "https://host:8080"
	path   string // begins with "/"
	query  string // with its "?", or empty
	// opaque is set instead of prefix, path and query for a scheme that the
	// URL standard does not call special.
	opaque *url.URL
}

// resolver makes links absolute as browsers do (WHATWG URL), so that a link
// that works for a person works for the crawler. It drops the fragment. It
// departs from the standard so that net/url can parse each result: a "%" in the
// path or the user name that begins no escape becomes "%25".
//
// It is fast for plain links, and linear in the length of any link.
type resolver struct {
	base    *location // nil: only absolute links can be resolved
	fromWeb bool      // the page is not a file
	schemes []string  // nil: http, https, ftp; file unless fromWeb
	max     int       // limit in bytes of a reference, and of its result
	long    bool      // the last failure was due to length
	buf     []byte
	clean   []byte
}

// Classes of bytes in a reference. A reference with none of them needs no work.
const (
	dropped   uint8 = 1 << iota // tab and newlines
	encoded                     // escaped in a path
	encodedQ                    // escaped in a query
	encodedU                    // escaped in a user name
	backslash                   // a slash
	percent                     // may begin an escape
	dot                         // may begin a dot segment
)

var classes = func() (t [256]uint8) {
	for c := range t {
		if c <= ' ' || c >= 0x7f {
			t[c] = encoded | encodedQ | encodedU
		}
	}
	set := func(chars string, class uint8) {
		for _, c := range []byte(chars) {
			t[c] |= class
		}
	}
	set("\t\n\r", dropped)
	set("\"#<>", encoded|encodedQ|encodedU)
	set("'", encodedQ)
	set("?^`{}", encoded|encodedU)
	set("/:;=@[\\]|", encodedU)
	set("\\", backslash)
	set("%", percent)
	set(".", dot)
	return t
}()

// locate parses the absolute URL of a page. It returns nil if it is not one.
func locate(s string) *location {
	var r resolver
	scheme, _ := cutScheme([]byte(s))
	if scheme == nil {
		return nil
	}
	if !special(lowerString(scheme)) {
		if href, ok := r.other(lowerString(scheme), []byte(s[len(scheme)+1:])); ok {
			s = string(href) // as a link to the page is written
		}
		u, err := url.Parse(s)
		if err != nil || u.Opaque != "" {
			return nil
		}
		u.Fragment, u.RawFragment = "", ""
		return &location{href: u.String(), scheme: u.Scheme, opaque: u}
	}
	href, ok := r.absolute([]byte(s))
	if !ok {
		return nil
	}
	return split(string(href))
}

// split splits a URL produced by resolve.
func split(href string) *location {
	l := &location{href: href}
	i := strings.IndexByte(href, ':')
	l.scheme = href[:i]
	if !special(l.scheme) {
		u, err := url.Parse(href)
		if err != nil {
			return nil
		}
		l.opaque = u
		return l
	}
	i += len("://")
	i += strings.IndexByte(href[i:], '/')
	l.prefix, l.path = href[:i], href[i:]
	if q := strings.IndexByte(l.path, '?'); q >= 0 {
		l.path, l.query = l.path[:q], l.path[q:]
	}
	return l
}

// special reports whether URLs with the scheme have an authority and a path by
// the URL standard.
func special(scheme string) bool {
	switch scheme {
	case "http", "https", "ftp", "file", "ws", "wss":
		return true
	}
	return false
}

func (r *resolver) allowed(scheme string) bool {
	if r.schemes != nil {
		return slices.Contains(r.schemes, scheme)
	}
	switch scheme {
	case "http", "https", "ftp":
		return true
	case "file":
		return !r.fromWeb
	}
	return false
}

// resolve returns the absolute URL of a reference without its fragment, or
// false if the reference is invalid, too long, or of an unwanted scheme. The
// result is valid until the next call.
func (r *resolver) resolve(ref []byte) ([]byte, bool) {
	r.long = false
	ref, class := r.trim(ref)
	scheme, rest := cutScheme(ref)
	name := ""
	if scheme != nil {
		name = lowerString(scheme)
	} else if r.base != nil {
		name = r.base.scheme
	}
	if !r.allowed(name) {
		return nil, false
	}
	if len(ref) > r.max {
		r.long = true
		return nil, false
	}
	u, ok := r.join(name, scheme != nil, ref, rest, class)
	if ok && len(u) > r.max {
		r.long = true
		return nil, false
	}
	return u, ok
}

func (r *resolver) join(scheme string, has bool, ref, rest []byte, class uint8) ([]byte, bool) {
	if has {
		if !special(scheme) {
			return r.other(scheme, rest)
		}
		if r.base == nil || scheme != r.base.scheme || scheme != "file" && bytes.HasPrefix(rest, []byte("//")) {
			return r.withScheme(scheme, rest, class)
		}
		// "http:x" on a page of http is relative.
		ref = rest
	}
	switch {
	case r.base.opaque != nil:
		return r.generic(ref)
	case r.base.scheme == "file":
		return r.file(ref, r.base, class)
	}
	return r.relative(ref, class)
}

// absolute is resolve for an absolute URL of a special scheme.
func (r *resolver) absolute(ref []byte) ([]byte, bool) {
	ref, class := r.trim(ref)
	scheme, rest := cutScheme(ref)
	return r.withScheme(lowerString(scheme), rest, class)
}

func (r *resolver) withScheme(scheme string, rest []byte, class uint8) ([]byte, bool) {
	if scheme == "file" {
		return r.file(rest, nil, class)
	}
	return r.authority(scheme, rest, class)
}

// trim cuts off the fragment and what is not part of a reference. It returns
// the classes of the remaining bytes.
func (r *resolver) trim(ref []byte) ([]byte, uint8) {
	for len(ref) > 0 && ref[0] <= ' ' {
		ref = ref[1:]
	}
	for len(ref) > 0 && ref[len(ref)-1] <= ' ' {
		ref = ref[:len(ref)-1]
	}
	var class uint8
	for i, c := range ref {
		if c == '#' {
			ref = ref[:i]
			break
		}
		class |= classes[c]
	}
	if class&dropped != 0 {
		r.clean = r.clean[:0]
		for _, c := range ref {
			if classes[c]&dropped == 0 {
				r.clean = append(r.clean, c)
			}
		}
		ref = r.clean
	}
	return ref, class
}

// cutScheme splits a reference after its scheme; nil if it has none.
func cutScheme(ref []byte) (scheme, rest []byte) {
	for i, c := range ref {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		case i > 0 && c == ':':
			return ref[:i], ref[i+1:]
		default:
			return nil, ref
		}
	}
	return nil, ref
}

// lowerString returns a scheme in lower case, without allocating for common
// ones.
func lowerString(b []byte) string {
	for _, s := range [...]string{"https", "http", "mailto", "javascript", "ftp", "file", "data", "tel"} {
		if equalFold(b, s) {
			return s
		}
	}
	return strings.ToLower(string(b))
}

func isSlash(c byte) bool { return c == '/' || c == '\\' }

// relative resolves a reference without scheme.
func (r *resolver) relative(ref []byte, class uint8) ([]byte, bool) {
	b := r.base
	switch {
	case len(ref) == 0:
		r.buf = append(append(append(r.buf[:0], b.prefix...), b.path...), b.query...)
		return r.buf, true
	case ref[0] == '?':
		r.buf = append(append(r.buf[:0], b.prefix...), b.path...)
		r.appendQuery(ref, class)
		return r.buf, true
	case isSlash(ref[0]):
		if len(ref) > 1 && isSlash(ref[1]) {
			return r.authority(b.scheme, ref, class)
		}
		r.buf = append(r.buf[:0], b.prefix...)
		r.appendPath(len(r.buf), ref[1:], class, false)
		return r.buf, true
	}
	r.buf = append(append(r.buf[:0], b.prefix...), b.path[:strings.LastIndexByte(b.path, '/')+1]...)
	r.appendPath(len(b.prefix), ref, class, false)
	return r.buf, true
}

// authority parses what follows a scheme or two slashes: user, host, port,
// path.
func (r *resolver) authority(scheme string, s []byte, class uint8) ([]byte, bool) {
	for len(s) > 0 && isSlash(s[0]) {
		s = s[1:]
	}
	end := bytes.IndexAny(s, "/\\?")
	if end < 0 {
		end = len(s)
	}
	auth, rest := s[:end], s[end:]
	r.buf = append(append(r.buf[:0], scheme...), "://"...)
	if at := bytes.LastIndexByte(auth, '@'); at >= 0 {
		r.appendUser(auth[:at])
		auth = auth[at+1:]
	}
	host, port := auth, []byte(nil)
	bracket := bytes.LastIndexByte(auth, ']') + 1
	if colon := bytes.IndexByte(auth[bracket:], ':'); colon >= 0 {
		host, port = auth[:bracket+colon], auth[bracket+colon+1:]
	}
	var ok bool
	if r.buf, ok = appendHost(r.buf, host); !ok || len(host) == 0 {
		return nil, false
	}
	if !r.appendPort(scheme, port) {
		return nil, false
	}
	r.appendPath(len(r.buf), unslash(rest), class, false)
	return r.buf, true
}

// unslash cuts off one slash.
func unslash(s []byte) []byte {
	if len(s) > 0 && isSlash(s[0]) {
		return s[1:]
	}
	return s
}

func (r *resolver) appendUser(s []byte) {
	user, pass, _ := bytes.Cut(s, []byte(":"))
	if len(user) == 0 && len(pass) == 0 {
		return
	}
	r.appendEncoded(user, encodedU, true)
	if len(pass) > 0 {
		r.buf = append(r.buf, ':')
		r.appendEncoded(pass, encodedU, true)
	}
	r.buf = append(r.buf, '@')
}

func (r *resolver) appendPort(scheme string, port []byte) bool {
	if len(port) == 0 {
		return true
	}
	n := 0
	for _, c := range port {
		if c < '0' || c > '9' {
			return false
		}
		if n = n*10 + int(c-'0'); n > 65535 {
			return false
		}
	}
	switch {
	case n == 80 && (scheme == "http" || scheme == "ws"),
		n == 443 && (scheme == "https" || scheme == "wss"),
		n == 21 && scheme == "ftp":
		return true
	}
	for len(port) > 1 && port[0] == '0' {
		port = port[1:]
	}
	r.buf = append(append(r.buf, ':'), port...)
	return true
}

// appendPath appends a path and query to the directory that begins at start,
// without its leading slash.
func (r *resolver) appendPath(start int, s []byte, class uint8, drives bool) {
	if len(r.buf) == start {
		r.buf = append(r.buf, '/')
	}
	path, query := s, []byte(nil)
	if q := bytes.IndexByte(s, '?'); q >= 0 {
		path, query = s[:q], s[q:]
	}
	if class&(encoded|backslash|percent) == 0 && (class&dot == 0 || !dotted(path)) && !drives {
		r.buf = append(r.buf, path...)
	} else {
		r.appendSegments(start, path, drives)
	}
	if query != nil {
		r.appendQuery(query, class)
	}
}

// dotted reports whether a path may have a dot segment: some segment begins
// with a dot.
func dotted(path []byte) bool {
	return len(path) > 0 && path[0] == '.' || bytes.Contains(path, []byte("/."))
}

// appendSegments appends the segments of a path one by one, resolving dot
// segments. Each byte is appended once and removed at most once.
func (r *resolver) appendSegments(start int, path []byte, drives bool) {
	for {
		end := bytes.IndexAny(path, "/\\")
		seg := path
		if end >= 0 {
			seg = path[:end]
		}
		switch dots(seg) {
		case 0:
			if drives && len(r.buf) == start+1 && isDrive(seg) {
				r.buf = append(r.buf, seg[0], ':')
			} else {
				r.appendEncoded(seg, encoded, true)
			}
			if end >= 0 {
				r.buf = append(r.buf, '/')
			}
		case 2:
			r.pop(start, drives)
		}
		if end < 0 {
			return
		}
		path = path[end+1:]
	}
}

// pop removes the last segment of a directory, but not a drive.
func (r *resolver) pop(start int, drives bool) {
	dir := r.buf[start:]
	if len(dir) <= 1 || drives && len(dir) == 4 && isDrive(dir[1:3]) && dir[2] == ':' {
		return
	}
	r.buf = r.buf[:start+bytes.LastIndexByte(dir[:len(dir)-1], '/')+1]
}

// dots returns the number of dots, plain or escaped, that a segment consists
// of: 1 or 2, or 0 if it is no dot segment.
func dots(seg []byte) int {
	n := 0
	for len(seg) > 0 {
		switch {
		case seg[0] == '.':
			seg = seg[1:]
		case len(seg) >= 3 && seg[0] == '%' && seg[1] == '2' && (seg[2] == 'e' || seg[2] == 'E'):
			seg = seg[3:]
		default:
			return 0
		}
		if n++; n > 2 {
			return 0
		}
	}
	return n
}

// appendQuery appends a query with its question mark.
func (r *resolver) appendQuery(q []byte, class uint8) {
	if class&encodedQ == 0 {
		r.buf = append(r.buf, q...)
		return
	}
	r.appendEncoded(q, encodedQ, false)
}

const hexDigits = "0123456789ABCDEF"

// appendEncoded appends s with the bytes of the class escaped and, if asked,
// each percent sign that begins no escape.
func (r *resolver) appendEncoded(s []byte, class uint8, escapes bool) {
	for i, c := range s {
		if classes[c]&class != 0 || escapes && c == '%' && !isEscape(s[i:]) {
			r.buf = append(r.buf, '%', hexDigits[c>>4], hexDigits[c&15])
		} else {
			r.buf = append(r.buf, c)
		}
	}
}

func isEscape(s []byte) bool {
	return len(s) >= 3 && isHex(s[1]) && isHex(s[2])
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// file resolves what follows "file:", or a reference on a page that is a file.
func (r *resolver) file(s []byte, base *location, class uint8) ([]byte, bool) {
	r.buf = append(r.buf[:0], "file://"...)
	switch {
	case len(s) >= 2 && isSlash(s[0]) && isSlash(s[1]):
		s = s[2:]
		end := bytes.IndexAny(s, "/\\?")
		if end < 0 {
			end = len(s)
		}
		if host := s[:end]; len(host) > 0 && !isDrive(host) {
			var ok bool
			if r.buf, ok = appendHost(r.buf, host); !ok {
				return nil, false
			}
			if string(r.buf[len("file://"):]) == "localhost" {
				r.buf = r.buf[:len("file://")]
			}
			s = s[end:]
		}
		r.appendPath(len(r.buf), unslash(s), class, true)
	case len(s) >= 1 && isSlash(s[0]):
		s = s[1:]
		start := len(r.buf)
		if base != nil {
			r.buf = append(r.buf[:0], base.prefix...)
			start = len(r.buf)
			if !startsWithDrive(s) && len(base.path) >= 3 && startsWithDrive([]byte(base.path[1:])) {
				r.buf = append(append(r.buf, base.path[:3]...), '/')
			}
		}
		r.appendPath(start, s, class, true)
	case base == nil:
		r.appendPath(len(r.buf), s, class, true)
	case len(s) == 0 || s[0] == '?':
		return r.relative(s, class)
	default:
		r.buf = append(r.buf[:0], base.prefix...)
		start := len(r.buf)
		if !startsWithDrive(s) {
			r.buf = append(r.buf, base.path[:strings.LastIndexByte(base.path, '/')+1]...)
		}
		r.appendPath(start, s, class, true)
	}
	return r.buf, true
}

// isDrive reports whether s is a Windows drive, such as "C:" or "C|".
func isDrive(s []byte) bool {
	return len(s) == 2 && (s[1] == ':' || s[1] == '|') && isAlpha(s[0])
}

func startsWithDrive(s []byte) bool {
	return len(s) >= 2 && isDrive(s[:2]) && (len(s) == 2 || s[2] == '/' || s[2] == '\\' || s[2] == '?')
}

func isAlpha(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// other keeps an absolute URL of a scheme about which nothing more is known.
func (r *resolver) other(scheme string, rest []byte) ([]byte, bool) {
	if len(rest) == 0 {
		return nil, false
	}
	r.buf = append(append(r.buf[:0], scheme...), ':')
	r.appendEncoded(rest, encodedQ, true)
	if _, err := url.Parse(string(r.buf)); err != nil {
		return nil, false
	}
	return r.buf, true
}

// generic resolves against a base of a scheme about which nothing more is
// known.
func (r *resolver) generic(ref []byte) ([]byte, bool) {
	r.buf = r.buf[:0]
	r.appendEncoded(ref, encodedQ, true)
	target, err := url.Parse(string(r.buf))
	if err != nil {
		return nil, false
	}
	u := r.base.opaque.ResolveReference(target)
	if target.Fragment, target.RawFragment = "", ""; *target == (url.URL{}) {
		u.ForceQuery = r.base.opaque.ForceQuery // which net/url drops
	}
	r.buf = append(r.buf[:0], u.String()...)
	return r.buf, true
}
