package fetch

import (
	"time"
	"unicode/utf16"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/nutchvisit"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/urlfilter"
)

// accept applies the rules of the crawl to a target, and counts what they
// reject.
func (r reader) accept(v *visitResult, scope urlfilter.Scope, from, target string) (string, bool) {
	if r.tooLong(len(target)) {
		v.rejected++
		return "", false
	}
	target, ok := r.rules(scope, target)
	ignored := scope == urlfilter.Outlink || !r.o.Following.ExemptRedirects
	if !ok || target == "" || ignored && r.ignored(from, target) {
		v.rejected++
		return "", false
	}
	return target, true
}

func (r reader) tooLong(n int) bool {
	limit := r.o.Links.MaxLength
	if limit == 0 {
		limit = urlfilter.DefaultMaxLength
	}
	return limit > 0 && n > limit
}

// rules normalizes and filters a target.
func (r reader) rules(scope urlfilter.Scope, target string) (string, bool) {
	if r.o.Rules == nil {
		return target, true
	}
	rules := r.o.Rules
	if scope == urlfilter.Outlink && (r.o.Links.NoNormalize || r.o.Links.NoFilter) {
		some := *rules
		if r.o.Links.NoNormalize {
			some.Normalizers = nil
		}
		if r.o.Links.NoFilter {
			some.Filters = nil
		}
		rules = &some
	}
	target, err := rules.Apply(scope, target)
	return target, err == nil
}

// ignored reports whether a link is left out because of where it leads.
func (r reader) ignored(from, target string) bool {
	if !r.o.Links.IgnoreExternal && !r.o.Links.IgnoreInternal {
		return false
	}
	if r.o.Links.By.Key(from) == r.o.Links.By.Key(target) {
		return r.o.Links.IgnoreInternal
	}
	return r.o.Links.IgnoreExternal && (r.o.Links.Exempt == nil || !r.o.Links.Exempt(from, target))
}

// redirect accepts the target of a redirect.
func (r reader) acceptRedirect(v *visitResult, from *crawldb.Datum, location string) (scoring.Link, bool) {
	l := scoring.Link{From: from.URL}
	var ok bool
	if r.o.NutchCompat {
		l.URL, ok = r.nutchRedirect(v, from.URL, location)
		l.Meta = nutchTargetMeta(v, from, l.URL, nutchvisit.Of(&v.visit).Fetch == nutchvisit.RedirTemp)
	} else {
		l.URL, ok = r.accept(v, urlfilter.Fetcher, from.URL, location)
	}
	return l, ok && l.URL != from.URL
}

// nutchLinks accepts the links of a page in Nutch's order. Duplicates stay: a
// link that occurs twice counts twice.
func (r reader) nutchLinks(v *visitResult, p scoring.Page) {
	from := p.Datum.URL
	found := p.Parsed.Outlinks
	p.Parsed.Outlinks = nil
	var links []scoring.Link
	for _, l := range found {
		if r.o.Links.MaxPerPage > 0 && len(links) == r.o.Links.MaxPerPage {
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
	if !r.stage {
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
	if !r.stage { // the fetcher that parses redirects, and its parser adds a link too
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

func (r reader) nutchAccept(from, target string) (string, bool) {
	if r.nutchTooLong(target) || target == from || r.nutchIgnored(from, target) {
		return "", false
	}
	return r.rules(urlfilter.Outlink, target)
}

// nutchTooLong measures in UTF-16 units, like Java's strings.
func (r reader) nutchTooLong(target string) bool {
	return r.tooLong(len(target)) && r.tooLong(len(utf16.Encode([]rune(target))))
}

// nutchIgnored is ignored with two peculiarities: exemptions apply to hosts
// only, and they are part of the filters.
func (r reader) nutchIgnored(from, target string) bool {
	if !r.o.Links.IgnoreExternal && !r.o.Links.IgnoreInternal {
		return false
	}
	internal := r.o.Links.By.NutchKey(from) == r.o.Links.By.NutchKey(target)
	if internal || !r.o.Links.IgnoreExternal {
		return internal && r.o.Links.IgnoreInternal
	}
	return r.o.Links.By != hostdb.ByHost || r.o.Links.NoFilter || r.o.Links.Exempt == nil || !r.o.Links.Exempt(from, target)
}

// nutchRedirect checks no exemptions, and compares hosts whatever Links.By says.
func (r reader) nutchRedirect(v *visitResult, from, location string) (string, bool) {
	target, ok := "", !r.nutchTooLong(location)
	if ok {
		target, ok = r.rules(urlfilter.Fetcher, location)
	}
	if ok && !r.o.Following.ExemptRedirects {
		external := r.o.Links.By.NutchKey(from) != r.o.Links.By.NutchKey(target)
		internal := hostdb.ByHost.Key(from) == hostdb.ByHost.Key(target)
		ok = (!r.o.Links.IgnoreExternal || !external) && (!r.o.Links.IgnoreInternal || !internal)
	}
	if !ok || target == "" {
		v.rejected++
		return "", false
	}
	return target, true
}
