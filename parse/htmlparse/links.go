package htmlparse

import (
	"strings"

	"github.com/recrawl/recrawl/internal/weburl"
	"github.com/recrawl/recrawl/page"
)

// nofollow reports whether the relation of a link asks not to follow it.
func (a *attrs) nofollow() bool {
	for w := range words(a.rel) {
		if equalFold(w, "nofollow") || equalFold(w, "ugc") || equalFold(w, "sponsored") {
			return true
		}
	}
	return false
}

// resolve returns an absolute URL, valid until the next call. It records that
// the base mattered.
func (s *scan) resolve(ref []byte) ([]byte, bool) {
	s.based = true
	return s.res.Resolve(ref)
}

// link adds a link unless it is empty, or finds it among those already added. It
// returns its index, or -1 if it is not kept.
func (s *scan) link(ref, anchor []byte, nofollow bool) int {
	if len(ref) == 0 {
		return -1
	}
	return s.anyLink(ref, anchor, nofollow)
}

// anyLink is link for a reference that may be empty, which leads to the base of
// the page.
func (s *scan) anyLink(ref, anchor []byte, nofollow bool) int {
	u, ok := s.resolve(ref)
	if !ok {
		if s.res.TooLong() {
			s.out.OutlinksCut++
		}
		return -1
	}
	if s.page != nil && string(u) == s.page.String() {
		return -1
	}
	i, ok := s.seen[string(u)]
	if !ok {
		if len(s.out.Outlinks) >= s.lim.outlinks || s.linkBytes+len(u) > maxLinkBytes {
			s.out.OutlinksCut++
			return -1
		}
		i = len(s.out.Outlinks)
		target := string(u)
		s.seen[target] = i
		s.linkBytes += len(target)
		s.out.Outlinks = append(s.out.Outlinks, page.Outlink{URL: target, NoFollow: nofollow})
	}
	l := &s.out.Outlinks[i]
	l.NoFollow = l.NoFollow && nofollow
	if len(anchor) > 0 && l.Anchor == "" {
		f := folder{max: s.lim.anchor}
		f.add(anchor)
		l.Anchor = string(f.buf)
	}
	return i
}

func (s *scan) anchorTag() {
	s.endAnchor()
	a := s.attrs()
	if !a.hasHref {
		return
	}
	if i := s.anyLink(a.href, nil, a.nofollow()); i >= 0 && s.out.Outlinks[i].Anchor == "" {
		s.target, s.collect = i, true
	}
}

func (s *scan) endAnchor() {
	if !s.collect {
		return
	}
	text := s.anchor.buf
	if len(text) == 0 {
		text = s.alt.buf
	}
	s.out.Outlinks[s.target].Anchor = string(text)
	s.anchor.reset()
	s.alt.reset()
	s.target, s.collect = -1, false
}

// baseTag sets the base of links, if it is the first base element with a href.
// An invalid base, or one outside the web, leaves the URL of the page as the
// base.
func (s *scan) baseTag() {
	a := s.attrs()
	if s.baseSet || !a.hasHref {
		return
	}
	s.baseSet = true
	res := weburl.Resolver{Base: s.page, Schemes: s.res.Schemes, Max: s.lim.url}
	base, ok := res.ResolveBase(a.href)
	if !ok || s.page != nil && base.String() == s.page.String() {
		return
	}
	s.res.Base = base
	s.again = s.based
}

func (s *scan) linkTag() {
	a := s.attrs()
	if len(a.href) == 0 {
		return
	}
	toPage, hint := false, false
	var lower [16]byte
	canonical, alternate, stylesheet := false, false, false
	for w := range words(a.rel) {
		if len(w) > len(lower) {
			continue
		}
		rel := lower[:copy(lower[:], w)]
		for i, c := range rel {
			if 'A' <= c && c <= 'Z' {
				rel[i] = c + 'a' - 'A'
			}
		}
		switch string(rel) {
		case "canonical":
			canonical = true
		case "alternate":
			alternate = true
		case "stylesheet":
			stylesheet = true
		case "dns-prefetch", "preconnect":
			hint = true
		}
		toPage = toPage || pageRel(string(rel))
	}
	if stylesheet || alternate && !pageType(mediaType(a.typ)) {
		toPage = false
	}
	if canonical && !s.inBody && s.out.Canonical == "" && s.skip == inline {
		if u, ok := s.resolve(a.href); ok {
			s.out.Canonical = string(u)
		}
	}
	if toPage || s.lim.resources && !hint {
		s.link(a.href, a.title, a.nofollow())
	}
}

func mediaType(b []byte) string {
	t, _, _ := strings.Cut(string(b[:min(len(b), 64)]), ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// pageRel reports whether a link element with that relation leads to a page.
// The relation is in lower case.
func pageRel(rel string) bool {
	switch rel {
	case "alternate", "amphtml", "appendix", "archives", "author", "bookmark",
		"canonical", "chapter", "contents", "copyright", "first", "glossary",
		"help", "home", "index", "last", "license", "next", "prev", "previous",
		"related", "section", "start", "subsection", "toc", "top", "up":
		return true
	}
	return false
}

// pageType reports whether an alternate of that media type is a page or a feed.
func pageType(mime string) bool {
	switch mime {
	case "", "text/html", "application/xhtml+xml",
		"application/rss+xml", "application/atom+xml", "application/feed+json":
		return true
	}
	return false
}

// maxLinkBytes limits the targets of one page in total. A short link becomes
// long below a long base: without a limit a page of 100 kB could ask for 20 MB.
const maxLinkBytes = 8 << 20
