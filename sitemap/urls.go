package sitemap

import (
	"bytes"
	"net/url"
	"strings"
	"unicode"
)

// urls makes URLs of entries from the references in a document.
type urls struct {
	base   *url.URL // of relative references; nil if there is none
	scheme string   // of the document, allowed beside http and https
	max    int
	work   int // bytes of bases to which relative references were joined
}

// maxWork limits the work that short references below a long base cause.
const maxWork = 16 << 20

func newURLs(o Options) urls {
	u := urls{max: o.MaxURL}
	if base, err := url.Parse(o.URL); err == nil && base.IsAbs() && base.Opaque == "" {
		u.base, u.scheme = base, base.Scheme
	}
	return u
}

// resolve returns the absolute URL of b, or nothing. References that do not
// begin with a slash count in feeds only: elsewhere they are mostly host names.
func (u *urls) resolve(b []byte, feed bool) string {
	b = clean(b)
	if len(b) == 0 || len(b) > u.max {
		return ""
	}
	if i := schemeLen(b); i > 0 {
		if !absolute(b) || !u.allowed(b[:i]) {
			return ""
		}
		return u.whole(valid(b))
	}
	if u.base == nil || u.base.Host == "" && u.base.Scheme != "file" || b[0] == '#' {
		return ""
	}
	if !u.afford(u.base) {
		return ""
	}
	switch {
	case bytes.HasPrefix(b, []byte("//")):
		if len(b) == 2 || !hostStart(b[2]) {
			return ""
		}
		return u.whole(u.base.Scheme + ":" + valid(b))
	case b[0] == '/':
		return u.whole(u.base.Scheme + "://" + u.base.Host + valid(b))
	case !feed:
		return ""
	}
	ref, err := u.base.Parse(valid(b))
	if err != nil {
		return ""
	}
	return u.whole(ref.String())
}

func (u *urls) afford(base *url.URL) bool {
	if base != nil {
		u.work += len(base.Host) + len(base.Path) + len(base.RawQuery)
	}
	return u.work <= maxWork
}

func (u *urls) whole(s string) string {
	if len(s) > u.max {
		return ""
	}
	return s
}

// rebase returns the base given by an xml:base.
func (u *urls) rebase(base *url.URL, ref []byte) *url.URL {
	s := valid(clean(ref))
	if s == "" || len(s) > u.max || !u.afford(base) {
		return base
	}
	var b *url.URL
	var err error
	if base == nil {
		b, err = url.Parse(s)
	} else {
		b, err = base.Parse(s)
	}
	if err != nil || b.Host == "" || b.Opaque != "" || len(b.String()) > u.max || !u.allowed([]byte(b.Scheme)) {
		return base
	}
	return b
}

func (u *urls) allowed(scheme []byte) bool {
	return foldEqual(scheme, "http") || foldEqual(scheme, "https") || u.scheme != "" && foldEqual(scheme, u.scheme)
}

func foldEqual(b []byte, s string) bool {
	return len(b) == len(s) && strings.EqualFold(string(b), s)
}

// clean prepares b as in the URL Standard: white space around it is dropped,
// and so are tabs and line ends within. It returns nil if there are other
// control characters.
func clean(b []byte) []byte {
	b = bytes.TrimFunc(b, func(c rune) bool {
		return unicode.IsSpace(c) || c == '\ufeff' || c == '\u200b'
	})
	drop := false
	for _, c := range b {
		if c < ' ' || c == 0x7f {
			if c != '\t' && c != '\n' && c != '\r' {
				return nil
			}
			drop = true
		}
	}
	if !drop {
		return b
	}
	out := b[:0]
	for _, c := range b {
		if c >= ' ' {
			out = append(out, c)
		}
	}
	return out
}

// schemeLen returns the length of the scheme that b begins with; zero if there
// is none.
func schemeLen(b []byte) int {
	for i, c := range b {
		switch {
		case 'a' <= c|0x20 && c|0x20 <= 'z':
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		case i > 0 && c == ':':
			return i
		default:
			return 0
		}
	}
	return 0
}

// absolute reports whether b has a scheme and a host.
func absolute(b []byte) bool {
	i := schemeLen(b)
	if i == 0 || !bytes.HasPrefix(b[i:], []byte("://")) {
		return false
	}
	rest := b[i+3:]
	return len(rest) > 0 && (hostStart(rest[0]) || foldEqual(b[:i], "file") && rest[0] == '/')
}

func hostStart(c byte) bool {
	return c > ' ' && c != '/' && c != '\\' && c != '?' && c != '#'
}
