package fetch

import (
	"net/url"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/nutchvisit"
)

// representativeKey is where Nutch keeps the URL that represents a page to
// which others redirect.
const representativeKey = "_repr_"

// nutchTargetMeta returns the initial Meta of a redirect's target in Nutch: a
// copy of what the record of the page has after the visit.
func nutchTargetMeta(v *visitResult, from *crawldb.Datum, target string, temporary bool) crawldb.Meta {
	m := from.Meta
	nutchvisit.Note(&m, &v.visit, true)
	src, ok := from.Meta.Get(representativeKey)
	if !ok {
		src = from.URL
	}
	m.Set(representativeKey, representative(src, target, temporary))
	return m
}

// representative returns which end of a redirect represents both. (Nutch:
// URLUtil.chooseRepr.)
func representative(src, dst string, temporary bool) string {
	s, err := url.Parse(src)
	if err != nil {
		return dst
	}
	d, err := url.Parse(dst)
	if err != nil || hostdb.ByDomain.NutchKey(src) != hostdb.ByDomain.NutchKey(dst) {
		return dst
	}
	sFile, dFile := file(s), file(d)
	sRoot, dRoot := sFile == "" || sFile == "/", dFile == "" || dFile == "/"
	better := false // dst is
	switch {
	case !temporary:
		better = !sRoot
	case sRoot != dRoot:
		better = dRoot
	case !sRoot && s.Hostname() == d.Hostname():
		better = pieces(dFile, "/") < pieces(sFile, "/") ||
			pieces(dFile, "/") == pieces(sFile, "/") && len(dFile) < len(sFile)
	default:
		better = pieces(d.Hostname(), ".") < pieces(s.Hostname(), ".")
	}
	if better {
		return dst
	}
	return src
}

// file is the path and the query of a URL.
func file(u *url.URL) string {
	f := u.EscapedPath()
	if u.RawQuery != "" || u.ForceQuery {
		f += "?" + u.RawQuery
	}
	return f
}

// pieces counts the results of Java's String.split, which drops empty strings
// at the end.
func pieces(s, sep string) int {
	if s == "" {
		return 1
	}
	s = strings.TrimRight(s, sep)
	if s == "" {
		return 0
	}
	return strings.Count(s, sep) + 1
}
