package sitemap

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Scope is the set of URLs that a sitemap may speak of (sitemaps.org, "Sitemap
// file location"): pages below its own directory, on the same host, port and
// scheme; other sitemaps of the same site, in any directory. A site whose
// robots.txt lists the sitemap lets it speak of all its URLs, wherever the
// sitemap is ("Sitemaps & Cross Submits").
//
// (Nutch: sitemap.strict.parsing.)
type Scope struct {
	origin string
	dir    string
	sites  []string
}

// NewScope returns the scope of the sitemap with the given URL. The listing
// URLs are of sites whose robots.txt names it, or names an index that does,
// such as the URLs of these files; only their scheme, host and port count. The
// site of a feed does not follow from its place, so make sure that it is
// listed.
func NewScope(sitemap string, listing ...string) (Scope, error) {
	var s Scope
	var at string
	var ok bool
	if s.origin, at, ok = locate(sitemap); !ok {
		return Scope{}, fmt.Errorf("sitemap: scope: %q is not an absolute URL", sitemap)
	}
	s.dir = at[:strings.LastIndexByte(at, '/')+1]
	for _, l := range listing {
		site, _, ok := locate(l)
		if !ok {
			return Scope{}, fmt.Errorf("sitemap: scope: %q is not an absolute URL", l)
		}
		s.sites = append(s.sites, site)
	}
	return s, nil
}

// Contains reports whether the sitemap may speak of an entry, by its URL and
// Sitemap. The URL should be normalized by then, as the sitemap's was: hosts
// are compared as written, except for case. A string that is no absolute URL is
// not contained, and the zero Scope contains nothing. Entry.Alternates are not
// checked: they may be on other sites.
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

// locate returns the origin of a URL and its path, decoded and without dots:
// anything a server might take as a way out of a directory counts as one.
func locate(s string) (origin, at string, ok bool) {
	u, err := url.Parse(s)
	if err != nil || u.Opaque != "" || u.Host == "" && u.Scheme != "file" {
		return "", "", false
	}
	// The rest is left to IDNA, which has an "İ" that is no "i".
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
