package htmlparse

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/internal/javaurl"
	"github.com/recrawl/recrawl/page"
	"golang.org/x/net/html"
)

// nutchScan reads the tokens of one page as Nutch's parse-html reads its tree.
// Of the tree it keeps the open elements, as a tag balancer would have them.
type nutchScan struct {
	p    *Parser
	lim  *limits
	z    *html.Tokenizer
	out  page.Parsed
	page *javaurl.URL
	base *javaurl.URL

	root   nutchElem // the parent of everything
	open   []nutchElem
	places map[string][]int // of the elements in open, by name
	body   bool             // the body has begun: meta elements in it are ignored
	ended  bool             // and its end tag was seen
	based  bool
	titled bool

	text, title nutchText
	links       []*nutchLink // those whose text is being read and is not full
	lined       bool         // all texts end with a line end, and nothing came since
	altsLined   bool         // and so do the alternative texts
	kept        []*nutchLink // those that may turn out to be links
	linkBytes   int
}

// nutchElem is an element that is open.
type nutchElem struct {
	name      string
	lastBlock bool // the last child separates lines
	link      *nutchLink
}

// nutchLink is a link that is being read.
type nutchLink struct {
	url      string
	elem     string
	text     nutchText
	alt      nutchText
	anchors  int // a elements around the text
	children bool
	gone     bool
}

// maxOpen limits the elements that are tracked; anything nested deeper has no
// children.
const maxOpen = 512

func (p *Parser) parseNutch(c *page.Content, lim *limits, r io.Reader) (page.Parsed, error) {
	base, err := parseNutchURL(nil, c.URL)
	if err != nil {
		return page.Parsed{}, fmt.Errorf("htmlparse: %s: %w", c.URL, err)
	}
	s := &nutchScan{p: p, lim: lim, page: base, base: base, places: map[string][]int{}}
	s.text.max, s.title.max = lim.text, lim.title
	s.run(r)
	return s.finish(), nil
}

// largeTag is the length of a tag after which the tokenizer is replaced. The
// tokenizer keeps the attribute names of a tag in a map that never shrinks and
// is cleared at each tag: after a tag of a million attributes every other one
// would pay for them.
const largeTag = 16 << 10

func (s *nutchScan) run(r io.Reader) {
	s.z = html.NewTokenizer(r)
	large, raw := false, false
	for {
		if large && !raw {
			s.z = html.NewTokenizer(io.MultiReader(bytes.NewReader(s.z.Buffered()), r))
			large = false
		}
		t := s.z.Next()
		raw = false
		switch t {
		case html.ErrorToken:
			return
		case html.TextToken:
			s.textNode(s.z.Text())
		case html.CommentToken:
			s.child(false)
		case html.StartTagToken, html.SelfClosingTagToken:
			large = large || len(s.z.Raw()) > largeTag
			name, _ := s.z.TagName()
			raw = s.start(string(name), t == html.SelfClosingTagToken)
		case html.EndTagToken:
			large = large || len(s.z.Raw()) > largeTag
			name, _ := s.z.TagName()
			s.end(string(name))
		}
	}
}

func (s *nutchScan) top() *nutchElem {
	if len(s.open) == 0 {
		return &s.root
	}
	return &s.open[len(s.open)-1]
}

// child records another child of the innermost element, and ends a line if that
// child or its neighbour separates lines.
func (s *nutchScan) child(block bool) {
	e := s.top()
	before := e.lastBlock
	if e.lastBlock = block; e.link != nil {
		e.link.children = true
	}
	if before || block {
		s.line()
	}
}

// line ends a line in all texts being read.
func (s *nutchScan) line() {
	if s.lined {
		return
	}
	s.lined = true
	s.text.line()
	for _, l := range s.links {
		if l.anchors <= 1 {
			l.text.line()
		}
	}
}

// add adds a text node to all texts being read; one of white space ends a line.
// A link that is full is no longer read.
func (s *nutchScan) add(b []byte, white bool) {
	if white {
		s.line()
		for _, l := range s.links {
			if s.altsLined {
				break
			}
			l.alt.line()
		}
		s.altsLined = true
		return
	}
	s.lined, s.altsLined = false, false
	s.text.add(b)
	s.links = slices.DeleteFunc(s.links, func(l *nutchLink) bool {
		if l.anchors <= 1 {
			l.text.add(b)
		}
		l.alt.add(b)
		return l.alt.cut && (l.text.cut || l.anchors > 1)
	})
}

func (s *nutchScan) textNode(b []byte) {
	if len(b) == 0 {
		return
	}
	in := s.top().name
	white := len(bytes.TrimFunc(b, func(r rune) bool { return r < 0x80 && javaWhite(byte(r)) })) == 0
	switch between := in == "" || in == "html"; {
	case white && (s.ended || between && !s.body):
		return
	case !white && (between || in == "head" || !nutchHead(in)):
		s.beginBody()
	}
	s.child(false)
	if in == "script" || in == "style" {
		return
	}
	if in == "title" && !s.body && !s.titled {
		s.title.add(b)
	}
	s.add(b, white)
}

// beginBody records that the body has begun.
func (s *nutchScan) beginBody() {
	if !s.body {
		s.body = true
		s.pop("head", "")
	}
}

// start opens an element, and reports whether its content is raw text.
func (s *nutchScan) start(name string, closed bool) (raw bool) {
	switch name {
	case "script", "style", "title", "textarea", "xmp", "plaintext":
		raw = true
	case "iframe", "noscript", "noframes", "noembed":
		s.z.NextIsNotRawText()
	case "image":
		name = "img"
	}
	if name == "body" || !nutchHead(name) {
		s.beginBody()
	}
	if ends, until := closes(name); ends != "" {
		s.pop(ends, until)
	}
	s.child(nutchBlock(name))
	e := nutchElem{name: name}
	switch name {
	case "meta":
		if !s.body {
			s.metaTag(s.nutchAttrs())
		}
	case "base":
		if a := s.nutchAttrs(); !s.body && !s.based && a["href"] != "" {
			s.based = true
			if u, err := parseNutchURL(s.page, a["href"]); err == nil {
				s.base = u
			}
		}
	case "a", "area", "form", "frame", "iframe", "script", "img", "source", "link":
		e.link = s.linkTag(name)
	}
	closed = closed && !unquotedEnd(s.z.Raw())
	if nutchVoid(name) || closed || len(s.open) >= maxOpen {
		s.close(&e)
		if raw && closed {
			raw = false
		}
		return raw
	}
	s.places[name] = append(s.places[name], len(s.open))
	s.open = append(s.open, e)
	return raw
}

// unquotedEnd reports whether the slash at the end of a tag is part of a value.
func unquotedEnd(tag []byte) bool {
	tag = tag[:max(len(tag)-2, 0)]
	word := tag[bytes.LastIndexAny(tag, " \t\r\n\f")+1:]
	_, value, ok := bytes.Cut(word, []byte("="))
	return ok && len(value) > 0 && value[0] != '"' && value[0] != '\'' && value[len(value)-1] != '"'
}

func (s *nutchScan) end(name string) {
	if name == "body" || name == "html" {
		s.ended = true // what follows still belongs to it
		return
	}
	until := " td th table "
	switch name {
	case "table":
		until = ""
	case "tr", "tbody", "thead", "tfoot", "td", "th", "div", "form":
		until = " table "
	}
	if !nutchVoid(name) {
		s.pop(" "+name+" ", until)
	}
}

// pop closes the innermost element with one of some names, and everything
// within it, unless an element with one of the other names is in between.
func (s *nutchScan) pop(names, until string) {
	at := s.innermost(names)
	if at < 0 || at < s.innermost(until) {
		return
	}
	for len(s.open) > at {
		e := s.top()
		places := s.places[e.name]
		s.places[e.name] = places[:len(places)-1]
		s.close(e)
		s.open = s.open[:len(s.open)-1]
	}
}

// innermost returns the index of the innermost open element with one of some
// names, or -1.
func (s *nutchScan) innermost(names string) int {
	at := -1
	for n := range strings.FieldsSeq(names) {
		if places := s.places[n]; len(places) > 0 {
			at = max(at, places[len(places)-1])
		}
	}
	return at
}

// close ends an element.
func (s *nutchScan) close(e *nutchElem) {
	if e.name == "title" && !s.body {
		s.titled = true // the first one counts, even if it is empty
	}
	if e.link == nil {
		return
	}
	if i := slices.Index(s.links, e.link); i >= 0 {
		s.links = slices.Delete(s.links, i, i+1)
	}
	// A link without content was inserted by a tag balancer, or leads nowhere.
	if (e.name == "a" || e.name == "form") && !e.link.children {
		e.link.gone = true
	}
}

func (s *nutchScan) nutchAttrs() map[string]string {
	a := map[string]string{}
	for more := true; more; {
		var key, val []byte
		if key, val, more = s.z.TagAttr(); len(key) > 0 {
			a[string(key)] = string(val)
		}
	}
	return a
}

// linkTag returns the link of an element, nil if there is none.
func (s *nutchScan) linkTag(name string) *nutchLink {
	if name == "a" {
		for _, l := range s.links {
			l.anchors++
		}
	}
	a := s.nutchAttrs()
	if name == "img" {
		s.altsLined = false
		for _, l := range s.links {
			l.alt.add([]byte(a["alt"]))
		}
	}
	ref := map[string]string{"a": "href", "area": "href", "link": "href", "form": "action"}[name]
	if ref == "" {
		ref = "src"
	}
	target, ok := a[ref]
	if !ok || noFollowRel(a["rel"]) || strings.EqualFold(a["method"], "post") ||
		name == "form" && !s.p.FormAction || slices.ContainsFunc(s.p.IgnoreTags, func(t string) bool { return strings.EqualFold(t, name) }) {
		return nil
	}
	u, err := resolveNutchLink(s.base, target)
	if err != nil {
		return nil
	}
	l := &nutchLink{url: u.String(), elem: name}
	l.text.max, l.alt.max = s.lim.anchor, s.lim.anchor
	if len(l.url) > s.lim.url || len(s.kept) >= s.lim.outlinks || s.linkBytes+len(l.url) > maxLinkBytes {
		s.out.OutlinksCut++
		return nil
	}
	s.linkBytes += len(l.url)
	s.kept = append(s.kept, l)
	switch name {
	case "a":
		l.anchors = 1
		s.links = append(s.links, l)
	case "form":
		s.links = append(s.links, l)
	case "img":
		l.alt.add([]byte(a["alt"]))
	}
	return l
}

// noFollowRel looks for the word anywhere, like \bnofollow\b.
func noFollowRel(rel string) bool {
	const word = "nofollow"
	part := func(c byte) bool { return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' }
	for rel = strings.ToLower(rel); ; {
		i := strings.Index(rel, word)
		if i < 0 {
			return false
		}
		end := i + len(word)
		if (i == 0 || !part(rel[i-1])) && (end == len(rel) || !part(rel[end])) {
			return true
		}
		rel = rel[end-1:] // keep the character before the next occurrence
	}
}

func (s *nutchScan) metaTag(a map[string]string) {
	content, ok := a["content"]
	if !ok {
		return
	}
	if name := a["name"]; name != "" {
		if len(s.out.Meta) < s.lim.meta {
			s.out.Meta = append(s.out.Meta, page.Property{Name: strings.ToLower(name), Value: content[:min(len(content), maxMetaValue)]})
		}
		if strings.EqualFold(name, "robots") {
			c := strings.ToLower(content)
			none := strings.Contains(c, "none")
			s.out.NoIndex = s.out.NoIndex || none || strings.Contains(c, "noindex")
			s.out.NoFollow = s.out.NoFollow || none || strings.Contains(c, "nofollow")
			s.out.NoArchive = s.out.NoArchive || strings.Contains(c, "noarchive")
		}
	}
	switch equiv := a["http-equiv"]; {
	case strings.EqualFold(equiv, "refresh"):
		s.refresh(content)
	case strings.EqualFold(equiv, "pragma") && strings.Contains(strings.ToLower(content), "no-cache"):
		s.out.NoArchive = true
	}
}

// refresh parses a refresh. Its delay is a plain number; nothing is trimmed or
// unquoted.
func (s *nutchScan) refresh(content string) {
	seconds, rest, more := strings.Cut(content, ";")
	n, err := strconv.ParseInt(seconds, 10, 32)
	if err != nil {
		return
	}
	target := s.page
	if i := strings.Index(strings.ToLower(rest), "url="); i >= 0 && i+4 <= len(rest) {
		rest = rest[i+4:]
	}
	if more && rest != "" {
		if u, err := parseNutchURL(s.page, rest); err == nil {
			target = u
		}
	}
	s.out.Refresh = target.String()
	s.out.RefreshDelay = time.Duration(min(max(n, 0), maxRefresh)) * time.Second
}

func (s *nutchScan) finish() page.Parsed {
	for len(s.open) > 0 {
		s.close(s.top())
		s.open = s.open[:len(s.open)-1]
	}
	if !s.out.NoIndex {
		s.out.Text = string(s.text.buf)
		s.out.Title = strings.TrimSpace(string(s.title.buf))
		s.out.Truncated = s.text.cut
	}
	if s.out.NoFollow {
		return s.out
	}
	for _, l := range s.kept {
		if l.gone {
			continue
		}
		anchor := strings.TrimSpace(string(l.text.buf))
		if anchor == "" {
			anchor = strings.TrimSpace(string(l.alt.buf))
		}
		s.out.Outlinks = append(s.out.Outlinks, page.Outlink{URL: l.url, Anchor: anchor})
	}
	return s.out
}

// parseNutchURL resolves a reference against a base, which may be nil, as java.net.URL does inside
// of Nutch, whose factory of handlers refuses mailto.
func parseNutchURL(base *javaurl.URL, s string) (*javaurl.URL, error) {
	u, err := javaurl.Resolve(base, s, func(protocol string) bool {
		switch protocol {
		case "http", "https", "ftp", "file", "jar":
			return true
		}
		return false
	})
	if err != nil {
		return nil, err
	}
	return &u, nil
}

// resolveNutchLink resolves a link. A bare query is appended to the full path, as in browsers but
// not in Java.
func resolveNutchLink(base *javaurl.URL, link string) (*javaurl.URL, error) {
	link = strings.TrimFunc(link, javaurl.IsBlank)
	if strings.HasPrefix(link, "?") {
		link = base.Path[strings.LastIndexByte(base.Path, '/')+1:] + link
	}
	return parseNutchURL(base, link)
}
