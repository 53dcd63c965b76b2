package htmlparse

import (
	"slices"
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
	// are no longer distinguished.
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

func (s *scan) finish() page.Parsed {
	s.endAnchor()
	s.out.Title = string(s.title.buf)
	s.out.Text = string(s.text.buf)
	s.out.Truncated = s.text.cut
	s.out.Directives = s.out.At(s.time)
	if s.out.NoFollow {
		for i := range s.out.Outlinks {
			s.out.Outlinks[i].NoFollow = true
		}
	}
	return s.out
}
