package htmlparse

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/recrawl/recrawl/internal/directives"
	"github.com/recrawl/recrawl/internal/weburl"
	"github.com/recrawl/recrawl/page"
)

// scan reads the tokens of one page.
type scan struct {
	lim *limits
	z   tokens
	res weburl.Resolver
	out page.Parsed

	time    time.Time    // of the visit
	page    *weburl.Base // nil if the URL of the page is invalid
	baseSet bool         // the first base element was seen
	based   bool         // something was resolved
	again   bool         // it was resolved against the wrong base
	inBody  bool

	text  folder
	title folder
	want  wanted // what the next text is

	// The link whose text is being read.
	anchor  folder
	alt     folder
	target  int // its place in out.Outlinks, or -1
	collect bool

	seen      map[string]int
	linkBytes int
	refreshed bool

	// While an element is skipped no text is kept. depth counts the templates
	// nested in it.
	skip  element
	depth int

	// islands are the open elements that change how content is read: 's' and
	// 'm' for SVG and MathML, 'h' for HTML inside them. Beyond maxIslands they
	// are no longer told apart.
	islands []byte
}

const maxIslands = 64

// wanted says what to do with a text token.
type wanted uint8

const (
	visible wanted = iota
	hidden
	asTitle
)

func newScan(lim *limits, c *page.Content) *scan {
	s := &scan{lim: lim, target: -1, seen: make(map[string]int, min(len(c.Body)/512, 1024))}
	s.page = weburl.Parse(c.URL)
	s.res = weburl.Resolver{Base: s.page, Schemes: lim.schemes, Max: lim.url}
	if lim.schemes == nil {
		s.res.Schemes = []string{"http", "https", "ftp"}
		if s.page != nil && !slices.Contains(s.res.Schemes, s.page.Scheme()) {
			// A file, or a page of another scheme, may link to others of that scheme.
			s.res.Schemes = append(s.res.Schemes, s.page.Scheme())
		}
	}
	s.text = folder{max: lim.text, buf: make([]byte, 0, min(len(c.Body)/2, lim.text)+64)}
	s.title = folder{max: lim.title}
	s.anchor = folder{max: lim.anchor}
	s.alt = folder{max: lim.anchor}
	s.out.Directives = directives.Header([]string{c.Robots})
	s.time = c.Time
	if c.Refresh != "" {
		// A header comes before any base element, and before any meta element.
		s.refresh([]byte(c.Refresh))
		s.based = false
	}
	return s
}

// run reads the page to its end, or to the first base element if that changes
// what was read before.
func (s *scan) run(utf8 []byte, stop *stopper) {
	s.z = tokens{page: utf8, stop: stop}
	for !s.again {
		switch t := s.z.next(); t {
		case pageEnd:
			return
		case textToken:
			s.textToken()
			s.want = visible
		case startTag, closedTag:
			s.want = visible
			s.startTag(s.z.elem, t == closedTag)
		case endTag:
			s.want = visible
			s.endTag(s.z.elem)
		default:
			s.want = visible
		}
	}
}

// notRaw makes the content of the element just opened be read as markup.
func (s *scan) notRaw() { s.z.raw = nil }

func (s *scan) textToken() {
	switch s.want {
	case asTitle:
		s.title.add(s.z.readText())
	case visible:
		if s.skip != inline {
			if s.collect && s.skip == titleElem {
				// The title of a drawing names it, as alt names a picture.
				s.alt.add(s.z.readText())
			}
			return
		}
		b := s.z.readText()
		s.text.add(b)
		if s.collect {
			s.anchor.add(b)
		}
	}
}

// brk separates words or lines.
func (s *scan) brk(g gap) {
	if s.skip == inline {
		s.text.brk(g)
	}
	if s.collect {
		s.anchor.brk(space)
	}
}

func (s *scan) startTag(e element, closed bool) {
	if len(s.islands) > 0 && s.foreign() {
		if !s.foreignTag(e, closed) {
			return
		}
	}
	if s.skip == templateElem {
		if e == templateElem {
			s.depth++
		}
		return
	}
	switch e {
	case inline, inlineBreakout, fontElem:
	case block, blockBreakout, paragraphElem, xmpElem:
		s.brk(newline)
	case cell:
		s.brk(space)
	case anchorElem:
		s.anchorTag()
	case areaElem:
		a := s.attrs()
		s.link(a.href, a.alt, a.nofollow())
	case baseElem:
		s.baseTag()
	case bodyElem:
		s.inBody = true
		s.brk(newline)
	case htmlElem:
		if a := s.attrs(); len(a.lang) > 0 && len(s.out.Meta) == 0 {
			s.meta("lang", a.lang)
		}
	case frameElem:
		a := s.attrs()
		s.link(a.src, a.title, false)
	case iframeElem:
		s.want = hidden
		a := s.attrs()
		s.link(a.src, a.title, false)
	case imgElem, imageElem:
		a := s.attrs()
		if s.collect {
			s.alt.brk(space)
			s.alt.add(a.alt)
		}
		if s.lim.images {
			s.link(a.src, a.alt, false)
		}
	case linkElem:
		s.linkTag()
	case metaElem:
		s.metaTag()
	case embedElem, mediaElem:
		if s.lim.resources {
			s.link(s.attrs().src, nil, false)
		}
	case objectElem:
		if s.lim.resources {
			s.link(s.attrs().data, nil, false)
		}
	case scriptElem:
		s.want = hidden
		if s.lim.resources {
			s.link(s.attrs().src, nil, false)
		}
	case rawElem:
		s.want = hidden
	case titleElem:
		s.want = hidden
		if len(s.title.buf) == 0 && s.skip == inline {
			s.want = asTitle
		}
	case noscriptElem, noframesElem:
		s.notRaw()
		if s.skip == inline {
			s.skip = e
		}
	case templateElem:
		if !s.attrs().shadow {
			s.skip, s.depth = e, 1
		}
	case svgElem:
		s.island('s', closed)
	case mathElem:
		s.island('m', closed)
	}
}

func (s *scan) endTag(e element) {
	if len(s.islands) > 0 && s.foreignEnd(e) {
		return
	}
	if s.skip != inline && e == s.skip {
		if s.depth--; s.depth <= 0 {
			s.skip, s.depth = inline, 0
		}
		return
	}
	switch e {
	case block, blockBreakout, paragraphElem, xmpElem, bodyElem, iframeElem:
		s.brk(newline)
	case cell:
		s.brk(space)
	case anchorElem:
		s.endAnchor()
	}
}

// attrs are the attributes of a tag that matter here.
type attrs struct {
	href, src, data         []byte
	rel, typ, alt, title    []byte
	name, property          []byte
	content, pragma         []byte
	lang, encoding          []byte
	hasHref, linked, shadow bool // linked: href is that of XLink
	font                    bool // has one of the attributes of font that end foreign content
}

func (s *scan) attrs() (a attrs) {
	for i := range s.z.attr {
		at := &s.z.attr[i]
		var lower [16]byte
		if len(at.name) > len(lower) {
			continue
		}
		for i, c := range at.name {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			lower[i] = c
		}
		switch string(lower[:len(at.name)]) {
		case "href":
			if !a.hasHref || a.linked {
				a.href, a.hasHref, a.linked = s.z.value(at.value), true, false
			}
		case "xlink:href":
			if !a.hasHref {
				a.href, a.hasHref, a.linked = s.z.value(at.value), true, true
			}
		case "src":
			s.first(&a.src, at)
		case "data":
			s.first(&a.data, at)
		case "rel":
			s.first(&a.rel, at)
		case "type":
			s.first(&a.typ, at)
		case "alt":
			s.first(&a.alt, at)
		case "title":
			s.first(&a.title, at)
		case "name":
			s.first(&a.name, at)
		case "property":
			s.first(&a.property, at)
		case "content":
			s.first(&a.content, at)
		case "http-equiv":
			s.first(&a.pragma, at)
		case "lang":
			s.first(&a.lang, at)
		case "encoding":
			s.first(&a.encoding, at)
		case "color", "face", "size":
			a.font = true
		case "shadowrootmode":
			a.shadow = true
		}
	}
	if a.name == nil {
		a.name = a.property
	}
	return a
}

// first sets a value that was not set: of several attributes of the same name
// the first counts.
func (s *scan) first(value *[]byte, at *attribute) {
	if *value == nil {
		*value = s.z.value(at.value)
	}
}

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

func (s *scan) metaTag() {
	a := s.attrs()
	switch {
	case equalFold(a.pragma, "refresh"):
		if !s.refreshed && s.skip == inline {
			s.refresh(a.content)
		}
	case equalFold(a.pragma, "content-language"):
		s.meta("content-language", a.content)
	}
	name := bytes.TrimSpace(a.name)
	if len(name) == 0 || len(name) > 256 {
		return
	}
	if directives.IsMeta(string(name), s.lim.products) {
		s.out.Directives = s.out.And(directives.List(string(a.content)))
	}
	if s.skip == inline {
		f := folder{max: 256}
		f.add(name)
		s.meta(strings.ToLower(string(f.buf)), a.content)
	}
}

const maxMetaValue = 4096

func (s *scan) meta(name string, value []byte) {
	if len(s.out.Meta) >= s.lim.meta {
		return
	}
	f := folder{max: maxMetaValue}
	f.add(value)
	s.out.Meta = append(s.out.Meta, page.Property{Name: name, Value: string(f.buf)})
}

// refresh reads a refresh; only the first counts.
func (s *scan) refresh(content []byte) {
	delay, target, ok := refresh(content)
	if !ok {
		return
	}
	u, ok := s.resolve(target)
	if !ok {
		return
	}
	s.refreshed = true
	if s.page != nil && string(u) == s.page.String() {
		return
	}
	s.out.Refresh, s.out.RefreshDelay = string(u), delay
}

func (s *scan) finish() page.Parsed {
	s.endAnchor()
	s.out.Title = string(s.title.buf)
	s.out.Text = string(s.text.buf)
	s.out.Truncated = s.text.cut
	expire(&s.out, s.time)
	if s.out.NoFollow {
		for i := range s.out.Outlinks {
			s.out.Outlinks[i].NoFollow = true
		}
	}
	return s.out
}
