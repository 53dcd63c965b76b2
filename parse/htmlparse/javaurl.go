package htmlparse

import (
	"errors"
	"strconv"
	"strings"
)

// javaURL is a URL as java.net.URL splits it: by the rules of RFC 2396 and some
// of its own, without changing the spelling.
type javaURL struct {
	scheme, authority, path, query, ref string
	hasQuery, hasRef                    bool
}

// maxJavaPath limits a path: removing dots may take a step for each.
const maxJavaPath = 8192

var errJavaURL = errors.New("htmlparse: not a URL")

// parseJavaURL resolves a reference against a base, which may be nil.
func parseJavaURL(base *javaURL, s string) (*javaURL, error) {
	s = strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
	if len(s) >= 4 && strings.EqualFold(s[:4], "url:") {
		s = s[4:]
	}
	u := &javaURL{}
	if i := strings.IndexAny(s, ":/"); i > 0 && s[i] == ':' && javaScheme(s[:i]) && s[0] != '#' {
		u.scheme = strings.ToLower(s[:i])
		s = s[i+1:]
	}
	relative := base != nil && (u.scheme == "" || u.scheme == base.scheme && strings.HasPrefix(base.path, "/"))
	if relative {
		*u = javaURL{scheme: base.scheme, authority: base.authority, path: base.path}
	}
	switch u.scheme {
	case "http", "https", "ftp", "file":
	case "jar":
		if !strings.Contains(s, "!/") {
			return nil, errJavaURL
		}
		u.path = s
		return u, nil
	default:
		// A scheme without a handler. Java has one for mailto, but not inside
		// Nutch, whose handler factory refuses it.
		return nil, errJavaURL
	}
	s, u.ref, u.hasRef = strings.Cut(s, "#")
	if relative && s == "" {
		u.query, u.hasQuery = base.query, base.hasQuery
		if !u.hasRef {
			u.ref, u.hasRef = base.ref, base.hasRef
		}
	}
	return u, u.parse(s)
}

// javaScheme reports whether a word may be a scheme.
func javaScheme(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c|0x20 && c|0x20 <= 'z' || i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.')) {
			return false
		}
	}
	return s != ""
}

// parse parses what is between the scheme and the fragment.
func (u *javaURL) parse(s string) error {
	queryOnly := strings.HasPrefix(s, "?")
	if rest, query, ok := strings.Cut(s, "?"); ok {
		s, u.query, u.hasQuery = rest, query, true
	}
	if strings.HasPrefix(s, "//") && !strings.HasPrefix(s, "////") {
		s = s[2:]
		i := strings.IndexByte(s, '/')
		if i < 0 {
			i = len(s)
		}
		if u.authority, s = s[:i], s[i:]; u.authority != "" {
			u.path = ""
		}
		if err := javaAuthority(u.authority); err != nil {
			return err
		}
	}
	switch {
	case strings.HasPrefix(s, "/"):
		u.path = s
	case s != "" && u.path != "":
		i := strings.LastIndexByte(u.path, '/')
		slash := ""
		if i < 0 && u.authority != "" {
			slash = "/"
		}
		u.path = u.path[:i+1] + slash + s
	case s != "":
		if u.path = s; u.authority != "" {
			u.path = "/" + s
		}
	case queryOnly && u.path != "":
		u.path = u.path[:max(strings.LastIndexByte(u.path, '/'), 0)] + "/"
	}
	if len(u.path) > maxJavaPath {
		return errJavaURL
	}
	u.path = javaPath(u.path)
	return nil
}

// javaAuthority rejects an authority whose port is not a number.
func javaAuthority(a string) error {
	host := a[strings.IndexByte(a, '@')+1:]
	if strings.HasPrefix(host, "[") {
		i := strings.IndexByte(host, ']')
		if i < 0 || len(host) > i+1 && host[i+1] != ':' {
			return errJavaURL
		}
		host = host[i+1:]
	}
	if _, port, ok := strings.Cut(host, ":"); ok && port != "" {
		if n, err := strconv.ParseInt(port, 10, 32); err != nil || n < -1 {
			return errJavaURL
		}
	}
	return nil
}

// javaPath removes "." and ".." segments step by step, as Java does: a ".." at
// the root stays, and so does one at the end if another stayed.
func javaPath(p string) string {
	for strings.Contains(p, "/./") {
		p = strings.ReplaceAll(p, "/./", "/")
	}
	for i := 0; ; {
		n := strings.Index(p[i:], "/../")
		if n < 0 {
			break
		}
		i += n
		if up := strings.LastIndexByte(p[:i], '/'); up >= 0 && !strings.HasPrefix(p, "/../") {
			p, i = p[:up]+p[i+3:], 0
		} else {
			i += 3
		}
	}
	for strings.HasSuffix(p, "/..") {
		up := strings.LastIndexByte(p[:strings.Index(p, "/..")], '/')
		if up < 0 {
			break
		}
		p = p[:up+1]
	}
	if strings.HasPrefix(p, "./") && len(p) > 2 {
		p = p[2:]
	}
	if strings.HasSuffix(p, "/.") {
		p = p[:len(p)-1]
	}
	return p
}

// String reassembles the parts.
func (u *javaURL) String() string {
	var b strings.Builder
	b.WriteString(u.scheme + ":")
	if u.authority != "" {
		b.WriteString("//" + u.authority)
	}
	b.WriteString(u.path)
	if u.hasQuery {
		b.WriteString("?" + u.query)
	}
	if u.hasRef {
		b.WriteString("#" + u.ref)
	}
	return b.String()
}

// resolveAsNutch resolves a link. A bare query is appended to the full path, as
// in browsers but not in Java.
func resolveAsNutch(base *javaURL, link string) (*javaURL, error) {
	link = strings.TrimFunc(link, func(r rune) bool { return r <= ' ' })
	if strings.HasPrefix(link, "?") {
		link = base.path[strings.LastIndexByte(base.path, '/')+1:] + link
	}
	return parseJavaURL(base, link)
}
