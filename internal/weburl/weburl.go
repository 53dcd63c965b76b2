// Package weburl makes references absolute as browsers do (WHATWG URL, section 4.4), so that
// what works for a person works for the crawler, and a page that a link, a redirect and a
// sitemap lead to is one record. It departs from the standard so that net/url can parse each
// result: a "%" in the path or the user name that begins no escape becomes "%25".
//
// It does not normalize: what the standard leaves as it is, such as "%41" and "//" in a path,
// is left to urlfilter. Start with [Resolver].
package weburl

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
)

// Base is an absolute URL against which references are resolved.
type Base struct {
	href   string // the whole, without fragment
	scheme string
	prefix string // scheme and authority: "https://host:8080"
	path   string // begins with "/"
	query  string // with its "?", or empty
	// opaque is set instead of prefix, path and query for a scheme that the
	// URL standard does not call special.
	opaque *url.URL
}

// String returns the URL without its fragment.
func (b *Base) String() string { return b.href }

// Scheme returns the scheme in lower case.
func (b *Base) Scheme() string { return b.scheme }

// Resolver resolves references. It is fast for plain ones, and linear in the length of any. It
// must not be used by several goroutines at once.
type Resolver struct {
	Base     *Base    // nil: only absolute references can be resolved
	Schemes  []string // those of a result, in lower case; nil means any
	Max      int      // limit in bytes of a reference, and of its result; 0 means none
	Fragment bool     // keep fragments

	long  bool // the last failure was due to length
	buf   []byte
	clean []byte
}

// Resolve returns the absolute URL of one reference, of any scheme and without its fragment.
func (b *Base) Resolve(ref string) (string, bool) {
	r := Resolver{Base: b}
	u, ok := r.Resolve([]byte(ref))
	return string(u), ok
}

// Classes of bytes in a reference. A reference with none of them needs no work.
const (
	dropped   uint8 = 1 << iota // tab and newlines
	encoded                     // escaped in a path
	encodedQ                    // escaped in a query
	encodedU                    // escaped in a user name
	encodedF                    // escaped in a fragment
	backslash                   // a slash
	percent                     // may begin an escape
	dot                         // may begin a dot segment
)

var classes = func() (t [256]uint8) {
	for c := range t {
		if c <= ' ' || c >= 0x7f {
			t[c] = encoded | encodedQ | encodedU | encodedF
		}
	}
	set := func(chars string, class uint8) {
		for _, c := range []byte(chars) {
			t[c] |= class
		}
	}
	set("\t\n\r", dropped)
	set("\"#<>", encoded|encodedQ|encodedU|encodedF)
	set("'", encodedQ)
	set("?^`{}", encoded|encodedU)
	set("`", encodedF)
	set("/:;=@[\\]|", encodedU)
	set("\\", backslash)
	set("%", percent)
	set(".", dot)
	return t
}()

// Parse parses an absolute URL. It returns nil if it is none, or nothing can be relative to it.
func Parse(s string) *Base {
	var r Resolver
	scheme, _ := CutScheme([]byte(s))
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
		return &Base{href: u.String(), scheme: u.Scheme, opaque: u}
	}
	href, ok := r.absolute([]byte(s))
	if !ok {
		return nil
	}
	return split(string(href))
}

// split splits a URL produced by Resolve, without a fragment.
func split(href string) *Base {
	l := &Base{href: href}
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

// Resolve returns the absolute URL of a reference, or false if the reference is invalid, too
// long, or of an unwanted scheme. The result is valid until the next call.
func (r *Resolver) Resolve(ref []byte) ([]byte, bool) {
	r.long = false
	ref, fragment, class := r.trim(ref)
	scheme, rest := CutScheme(ref)
	name := ""
	if scheme != nil {
		name = lowerString(scheme)
	} else if r.Base != nil {
		name = r.Base.scheme
	} else {
		return nil, false
	}
	if r.Schemes != nil && !slices.Contains(r.Schemes, name) {
		return nil, false
	}
	if r.tooLong(ref) {
		return nil, false
	}
	u, ok := r.join(name, scheme != nil, ref, rest, class)
	if ok && r.Fragment {
		u = r.withFragment(u, fragment)
	}
	if ok && r.tooLong(u) {
		return nil, false
	}
	return u, ok
}

// TooLong reports whether the last reference failed because of its length.
func (r *Resolver) TooLong() bool { return r.long }

func (r *Resolver) tooLong(b []byte) bool {
	r.long = r.Max > 0 && len(b) > r.Max
	return r.long
}

// ResolveBase is Resolve for a reference that becomes the base of others.
func (r *Resolver) ResolveBase(ref []byte) (*Base, bool) {
	if i := bytes.IndexByte(ref, '#'); i >= 0 {
		ref = ref[:i]
	}
	u, ok := r.Resolve(ref)
	if !ok {
		return nil, false
	}
	b := split(string(u))
	return b, b != nil
}

func (r *Resolver) join(scheme string, has bool, ref, rest []byte, class uint8) ([]byte, bool) {
	if has {
		if !special(scheme) {
			return r.other(scheme, rest)
		}
		if r.Base == nil || scheme != r.Base.scheme || scheme != "file" && bytes.HasPrefix(rest, []byte("//")) {
			return r.withScheme(scheme, rest, class)
		}
		// "http:x" on a page of http is relative.
		ref = rest
	}
	switch {
	case r.Base.opaque != nil:
		return r.generic(ref)
	case r.Base.scheme == "file":
		return r.file(ref, r.Base, class)
	}
	return r.relative(ref, class)
}

// absolute is Resolve for an absolute URL of a special scheme.
func (r *Resolver) absolute(ref []byte) ([]byte, bool) {
	ref, _, class := r.trim(ref)
	scheme, rest := CutScheme(ref)
	return r.withScheme(lowerString(scheme), rest, class)
}

func (r *Resolver) withScheme(scheme string, rest []byte, class uint8) ([]byte, bool) {
	if scheme == "file" {
		return r.file(rest, nil, class)
	}
	return r.authority(scheme, rest, class)
}

// trim cuts off the fragment and what is not part of a reference. It also
// returns the fragment, and the classes of the bytes before it.
func (r *Resolver) trim(ref []byte) (rest, fragment []byte, class uint8) {
	for len(ref) > 0 && ref[0] <= ' ' {
		ref = ref[1:]
	}
	for len(ref) > 0 && ref[len(ref)-1] <= ' ' {
		ref = ref[:len(ref)-1]
	}
	for i, c := range ref {
		if c == '#' {
			ref, fragment = ref[:i], ref[i+1:]
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
	return ref, fragment, class
}

// CutScheme splits a reference after its scheme; nil if it has none.
func CutScheme(ref []byte) (scheme, rest []byte) {
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
		if len(b) == len(s) && strings.EqualFold(string(b), s) {
			return s
		}
	}
	return strings.ToLower(string(b))
}

func isSlash(c byte) bool { return c == '/' || c == '\\' }

// relative resolves a reference without scheme.
func (r *Resolver) relative(ref []byte, class uint8) ([]byte, bool) {
	b := r.Base
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
func (r *Resolver) authority(scheme string, s []byte, class uint8) ([]byte, bool) {
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

func (r *Resolver) appendUser(s []byte) {
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

func (r *Resolver) appendPort(scheme string, port []byte) bool {
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
func (r *Resolver) appendPath(start int, s []byte, class uint8, drives bool) {
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
func (r *Resolver) appendSegments(start int, path []byte, drives bool) {
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
func (r *Resolver) pop(start int, drives bool) {
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
func (r *Resolver) appendQuery(q []byte, class uint8) {
	if class&encodedQ == 0 {
		r.buf = append(r.buf, q...)
		return
	}
	r.appendEncoded(q, encodedQ, false)
}

// withFragment appends a fragment to the result u.
func (r *Resolver) withFragment(u, s []byte) []byte {
	s = slices.DeleteFunc(slices.Clone(s), func(c byte) bool { return classes[c]&dropped != 0 })
	if len(s) == 0 {
		return u
	}
	r.buf = append(u, '#')
	r.appendEncoded(s, encodedF, true)
	return r.buf
}

const hexDigits = "0123456789ABCDEF"

// appendEncoded appends s with the bytes of the class escaped and, if asked,
// each percent sign that begins no escape.
func (r *Resolver) appendEncoded(s []byte, class uint8, escapes bool) {
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
func (r *Resolver) file(s []byte, base *Base, class uint8) ([]byte, bool) {
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
func (r *Resolver) other(scheme string, rest []byte) ([]byte, bool) {
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
func (r *Resolver) generic(ref []byte) ([]byte, bool) {
	r.buf = r.buf[:0]
	r.appendEncoded(ref, encodedQ, true)
	target, err := url.Parse(string(r.buf))
	if err != nil {
		return nil, false
	}
	u := r.Base.opaque.ResolveReference(target)
	if target.Fragment, target.RawFragment = "", ""; *target == (url.URL{}) {
		u.ForceQuery = r.Base.opaque.ForceQuery // which net/url drops
	}
	r.buf = append(r.buf[:0], u.String()...)
	return r.buf, true
}
