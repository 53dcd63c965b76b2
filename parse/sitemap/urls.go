package sitemap

import (
	"bytes"
	"strings"
	"unicode"

	"github.com/recrawl/recrawl/internal/weburl"
)

// urls makes URLs of entries from the references in a document.
type urls struct {
	base   *weburl.Base // of relative references; nil if there is none
	scheme string       // of the document, allowed beside http and https
	max    int
	work   int // bytes of bases to which relative references were joined
}

// maxWork limits the work that short references below a long base cause.
const maxWork = 16 << 20

func newURLs(o Options) urls {
	u := urls{max: o.MaxURL}
	if u.base = weburl.Parse(o.URL); u.base != nil {
		u.scheme = u.base.Scheme()
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
	if scheme, _ := weburl.CutScheme(b); scheme != nil {
		if !absolute(b) || !u.allowed(scheme) {
			return ""
		}
		return u.whole(valid(b))
	}
	if u.base == nil || b[0] == '#' || b[0] != '/' && !feed || !u.afford(u.base) {
		return ""
	}
	r := weburl.Resolver{Base: u.base, Fragment: true}
	ref, ok := r.Resolve([]byte(valid(b)))
	if !ok || !absolute(ref) {
		return ""
	}
	return u.whole(string(ref))
}

func (u *urls) afford(base *weburl.Base) bool {
	if base != nil {
		u.work += len(base.String())
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
func (u *urls) rebase(base *weburl.Base, ref []byte) *weburl.Base {
	s := valid(clean(ref))
	if s == "" || !u.afford(base) {
		return base
	}
	r := weburl.Resolver{Base: base, Max: u.max}
	b, ok := r.ResolveBase([]byte(s))
	if !ok || !absolute([]byte(b.String())) || !u.allowed([]byte(b.Scheme())) {
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

// absolute reports whether b has a scheme and a host.
func absolute(b []byte) bool {
	scheme, rest := weburl.CutScheme(b)
	if scheme == nil || len(rest) < 3 || string(rest[:2]) != "//" {
		return false
	}
	c := rest[2]
	return c > ' ' && strings.IndexByte(`/\?#`, c) < 0 || c == '/' && foldEqual(scheme, "file")
}
