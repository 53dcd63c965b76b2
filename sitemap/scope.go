package sitemap

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Scope is the URLs that a sitemap may speak of (sitemaps.org, "Sitemap file
// location"): pages below its own directory, on the same host, port and scheme;
// other sitemaps, of the same site, in any directory. A site whose robots.txt
// lists the sitemap has given it a say about all of its URLs, wherever the sitemap
// is ("Sitemaps & Cross Submits").
//
// (Nutch: sitemap.strict.parsing.)
type Scope struct {
	origin string
	dir    string
	sites  []string
}

// NewScope returns the scope of the sitemap with the given URL. The listing are
// URLs of the sites whose robots.txt names it, or names an index that does, such
// as the URLs of these files; only their scheme, host and port count. The one
// of a feed is not told by its place: see to it that its site is listed.
func NewScope(sitemap string, listing ...string) (Scope, error) {
	var s Scope
	var at string
	var ok bool
	if s.origin, at, ok = locate(sitemap); !ok {
		return Scope{}, fmt.Errorf("sitemap: scope: %q is no absolute URL", sitemap)
	}
	s.dir = at[:strings.LastIndexByte(at, '/')+1]
	for _, l := range listing {
		site, _, ok := locate(l)
		if !ok {
			return Scope{}, fmt.Errorf("sitemap: scope: %q is no absolute URL", l)
		}
		s.sites = append(s.sites, site)
	}
	return s, nil
}

// Contains reports whether the sitemap may speak of an entry, by its URL and
// Sitemap. The URL is better normalized by then, as that of the sitemap was: hosts
// are compared as they are written, but for their case. What is no absolute URL is
// not contained, and nothing is in the zero Scope. Entry.Alternates are not looked
// at: they may be of other sites.
func (s Scope) Contains(e Entry) bool {
	origin, at, ok := locate(e.URL)
	if !ok {
		return false
	}
	if slices.Contains(s.sites, origin) {
		return true
	}
	return origin == s.origin && (e.Sitemap || strings.HasPrefix(at, s.dir))
}

// locate returns the origin of a URL and its path, decoded and without dots: what
// a server might take for a way out of a directory is one.
func locate(s string) (origin, at string, ok bool) {
	u, err := url.Parse(s)
	if err != nil || u.Opaque != "" || u.Host == "" && u.Scheme != "file" {
		return "", "", false
	}
	// What is not ASCII is for IDNA to map, which has an "İ" that is no "i".
	name, port := []byte(u.Hostname()), u.Port()
	for i, c := range name {
		name[i] = lower(c)
	}
	if port == "80" && u.Scheme == "http" || port == "443" && u.Scheme == "https" {
		port = ""
	}
	at = strings.ReplaceAll(u.Path, `\`, "/")
	end := ""
	if i := strings.LastIndexByte(at, '/'); i == len(at)-1 || at[i+1:] == "." || at[i+1:] == ".." {
		end = "/"
	}
	at = path.Clean("/" + at)
	if at != "/" {
		at += end
	}
	return u.Scheme + "://" + string(name) + ":" + port, at, true
}
