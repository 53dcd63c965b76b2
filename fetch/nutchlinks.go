package fetch

import (
	"time"
	"unicode/utf16"

	"net/url"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/nutchvisit"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/urlfilter"
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

// nutchLinks accepts the links of a page in Nutch's order. Duplicates stay: a
// link that occurs twice counts twice.
func (r contentReader) nutchLinks(v *visitResult, p scoring.Page) {
	from := p.Datum.URL
	found := p.Parsed.Outlinks
	p.Parsed.Outlinks = nil
	var links []scoring.Link
	for _, l := range found {
		if r.opts.Links.MaxPerPage > 0 && len(links) == r.opts.Links.MaxPerPage {
			v.cut++
			continue
		}
		target, ok := r.nutchAccept(from, l.URL)
		if !ok || l.NoFollow || p.Parsed.NoFollow {
			v.rejected++
			continue
		}
		links = append(links, scoring.Link{From: from, URL: target})
		p.Parsed.Outlinks = append(p.Parsed.Outlinks, outlink{URL: target, Anchor: l.Anchor})
	}
	if !r.parseStage {
		// A fetcher that parses counts the links after it has left some out.
		p.Found = len(links)
	}
	r.distribute(v.parse, p, links)
	if p.Parsed.Refresh == "" {
		return
	}
	// The target of a refresh is not a link and gets no share, even on a page
	// whose links must not be followed.
	refresh, temporary := p.Parsed.Refresh, p.Parsed.RefreshDelay < 5*time.Second
	add := func(target string, m crawldb.Meta) {
		if target != from {
			p.Parsed.Refresh = target
			v.parse.Links = append(v.parse.Links, segmentLink{URL: target, Meta: m})
		}
	}
	if !r.parseStage { // the fetcher that parses redirects, and its parser adds a link too
		if l, ok := r.followRedirect(v, p.Datum, refresh); ok {
			add(l.URL, nutchTargetMeta(v, p.Datum, l.URL, temporary))
			if v.setTarget(l.URL); v.target != nil {
				v.parse.Refresh = l.URL
			}
		}
	}
	if target, ok := r.rules(urlfilter.Fetcher, refresh); ok && !r.nutchIgnored(from, target) {
		var m crawldb.Meta
		if repr := representative(from, target, temporary); repr != target {
			m.Set(representativeKey, repr)
		}
		add(target, m)
	}
}

func (r contentReader) nutchAccept(from, target string) (string, bool) {
	if r.nutchTooLong(target) || target == from || r.nutchIgnored(from, target) {
		return "", false
	}
	return r.rules(urlfilter.Outlink, target)
}

// nutchTooLong measures in UTF-16 units, like Java's strings.
func (r contentReader) nutchTooLong(target string) bool {
	return r.tooLong(len(target)) && r.tooLong(len(utf16.Encode([]rune(target))))
}

// nutchIgnored is ignored with two peculiarities: exemptions apply to hosts
// only, and they are part of the filters.
func (r contentReader) nutchIgnored(from, target string) bool {
	if !r.opts.Links.IgnoreExternal && !r.opts.Links.IgnoreInternal {
		return false
	}
	internal := r.opts.Links.By.NutchKey(from) == r.opts.Links.By.NutchKey(target)
	if internal || !r.opts.Links.IgnoreExternal {
		return internal && r.opts.Links.IgnoreInternal
	}
	return r.opts.Links.By != hostdb.ByHost || r.opts.Links.NoFilter || r.opts.Links.Exempt == nil || !r.opts.Links.Exempt(from, target)
}

// nutchRedirect checks no exemptions, and compares hosts whatever Links.By says.
func (r contentReader) nutchRedirect(v *visitResult, from, location string) (string, bool) {
	target, ok := "", !r.nutchTooLong(location)
	if ok {
		target, ok = r.rules(urlfilter.Fetcher, location)
	}
	if ok && !r.opts.Following.ExemptRedirects {
		external := r.opts.Links.By.NutchKey(from) != r.opts.Links.By.NutchKey(target)
		internal := hostdb.ByHost.Key(from) == hostdb.ByHost.Key(target)
		ok = (!r.opts.Links.IgnoreExternal || !external) && (!r.opts.Links.IgnoreInternal || !internal)
	}
	if !ok || target == "" {
		v.rejected++
		return "", false
	}
	return target, true
}
