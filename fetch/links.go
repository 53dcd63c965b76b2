package fetch

import (
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/nutchvisit"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/urlfilter"
)

// accept applies the rules of the crawl to a target, and counts what they
// reject.
func (r contentReader) accept(v *visitResult, scope urlfilter.Scope, from, target string) (string, bool) {
	if r.tooLong(len(target)) {
		v.rejected++
		return "", false
	}
	target, ok := r.rules(scope, target)
	ignored := scope == urlfilter.Outlink || !r.opts.Following.ExemptRedirects
	if !ok || target == "" || ignored && r.ignored(from, target) {
		v.rejected++
		return "", false
	}
	return target, true
}

func (r contentReader) tooLong(n int) bool {
	limit := r.opts.Links.MaxLength
	if limit == 0 {
		limit = urlfilter.DefaultMaxLength
	}
	return limit > 0 && n > limit
}

// rules normalizes and filters a target.
func (r contentReader) rules(scope urlfilter.Scope, target string) (string, bool) {
	if r.opts.Rules == nil {
		return target, true
	}
	rules := r.opts.Rules
	if scope == urlfilter.Outlink && (r.opts.Links.NoNormalize || r.opts.Links.NoFilter) {
		some := *rules
		if r.opts.Links.NoNormalize {
			some.Normalizers = nil
		}
		if r.opts.Links.NoFilter {
			some.Filters = nil
		}
		rules = &some
	}
	target, err := rules.Apply(scope, target)
	return target, err == nil
}

// ignored reports whether a link is left out because of where it leads.
func (r contentReader) ignored(from, target string) bool {
	if !r.opts.Links.IgnoreExternal && !r.opts.Links.IgnoreInternal {
		return false
	}
	if r.opts.Links.By.Key(from) == r.opts.Links.By.Key(target) {
		return r.opts.Links.IgnoreInternal
	}
	return r.opts.Links.IgnoreExternal && (r.opts.Links.Exempt == nil || !r.opts.Links.Exempt(from, target))
}

// acceptRedirect accepts the target of a redirect.
func (r contentReader) acceptRedirect(v *visitResult, from *crawldb.Datum, location string) (scoring.Link, bool) {
	l := scoring.Link{From: from.URL}
	var ok bool
	if r.opts.NutchCompat {
		l.URL, ok = r.nutchRedirect(v, from.URL, location)
		l.Meta = nutchTargetMeta(v, from, l.URL, nutchvisit.Of(&v.visit).Fetch == nutchvisit.RedirTemp)
	} else {
		l.URL, ok = r.accept(v, urlfilter.Fetcher, from.URL, location)
	}
	return l, ok && l.URL != from.URL
}

// links accepts the links of a page, each target once.
func (r contentReader) links(v *visitResult, p scoring.Page) {
	from := p.Datum.URL
	found := p.Parsed.Outlinks
	p.Parsed.Outlinks = make([]outlink, 0, len(found))
	seen := make(map[string]struct{}, len(found)+1)
	seen[from] = struct{}{}
	links := make([]scoring.Link, 0, len(found)+1)
	add := func(target string) bool {
		if _, dup := seen[target]; dup {
			p.Found--
			return false
		}
		seen[target] = struct{}{}
		links = append(links, scoring.Link{From: from, URL: target})
		return true
	}
	refresh := ""
	if p.Parsed.Refresh != "" && !p.Parsed.NoFollow {
		p.Found++
		l, ok := r.followRedirect(v, p.Datum, p.Parsed.Refresh)
		if l.URL != "" {
			p.Parsed.Refresh = l.URL
		}
		if ok {
			add(l.URL)
			refresh = l.URL
		} else if l.URL == from {
			p.Found--
		}
	}
	for _, l := range found {
		if l.NoFollow || p.Parsed.NoFollow {
			v.rejected++
			continue
		}
		target, ok := r.accept(v, urlfilter.Outlink, from, l.URL)
		if !ok {
			continue
		}
		if _, dup := seen[target]; !dup && r.opts.Links.MaxPerPage > 0 && len(links) >= r.opts.Links.MaxPerPage {
			v.cut++
			continue
		}
		if add(target) {
			p.Parsed.Outlinks = append(p.Parsed.Outlinks, outlink{URL: target, Anchor: l.Anchor})
		}
	}
	r.distribute(v.parse, p, links)
	if v.setTarget(refresh); v.target != nil {
		v.parse.Refresh = refresh
	}
}

// distribute gives the links their share of the page's importance.
func (r contentReader) distribute(p *segment.Parse, from scoring.Page, links []scoring.Link) {
	p.Gave = r.opts.Scoring.Distribute(from, links)
	p.Links = make([]segment.Link, 0, len(links))
	for _, l := range links {
		if !l.Drop {
			p.Links = append(p.Links, segment.Link{URL: l.URL, Score: l.Score, Meta: l.Meta})
		}
	}
}

type (
	outlink     = page.Outlink
	segmentLink = segment.Link
)
