// Package dom builds a tree of a page for extraction: nodes of golang.org/x/net/html, so that selectors and
// converters for those read it, made in time and memory that grow with the length of the page alone. It
// follows the HTML standard where pages need it: implied elements, implied end tags, scopes, tables. It does not
// reconstruct formatting elements or move content out of tables, by which html.Parse can make a tree that
// is hundreds of times as large as the page. Start with [Read].
package dom

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/parse/htmlparse"
)

// Limits of a tree.
const (
	// MaxDepth is how deep elements nest. Those below become siblings.
	MaxDepth = 250
	// maxNodes and maxAttrs are how many nodes, and attributes in all, a tree has. Then it ends.
	maxNodes, maxAttrs = 300_000, 600_000
	// maxURL is how many bytes a reference has, also one that becomes the base of others.
	maxURL = 4096
	// checkEvery is how many tokens are read between two checks of the context.
	checkEvery = 512
)

// Page is a page of HTML.
type Page struct {
	// UTF8 is its body in UTF-8, which must not be changed.
	UTF8 []byte
	// Doc is its document: an html element with head and body.
	Doc *html.Node
	// Base is the URL to which its references are relative.
	Base string
	// Truncated says that Doc was cut at a limit, or when the context was done.
	Truncated bool
}

// Read reads a page of HTML or XHTML. Others are an error that is parse.ErrUnsupported.
func Read(ctx context.Context, c *page.Content) (*Page, error) {
	if t := parse.MediaType(c); t != "text/html" && t != "application/xhtml+xml" {
		return nil, fmt.Errorf("%w %q", parse.ErrUnsupported, t)
	}
	p := &Page{UTF8: htmlparse.Decode(c), Base: c.URL}
	b := newBuilder(p.UTF8)
	p.Doc, p.Truncated = b.doc, b.build(ctx)
	if b.base != nil {
		if base, ok := p.Resolve(Attr(b.base, "href")); ok {
			p.Base = base
		}
	}
	return p, nil
}

// Resolve returns the absolute URL of a reference in the page. ok is false if it is not one of http or https, or
// too long.
func (p *Page) Resolve(ref string) (absolute string, ok bool) {
	if len(ref) > maxURL {
		return "", false
	}
	return parse.Resolve(p.Base, ref, "http", "https")
}

// Fragment returns the document of a piece of HTML in UTF-8, cut at a limit or when the context is done.
func Fragment(ctx context.Context, utf8 []byte) *html.Node {
	b := newBuilder(utf8)
	b.build(ctx)
	return b.doc
}

func newBuilder(utf8 []byte) *builder {
	b := &builder{z: html.NewTokenizer(bytes.NewReader(utf8)), doc: &html.Node{Type: html.DocumentNode}}
	b.html = b.element(atom.Html, "html")
	b.head = b.element(atom.Head, "head")
	b.body = b.element(atom.Body, "body")
	b.doc.AppendChild(b.html)
	b.html.AppendChild(b.head)
	b.html.AppendChild(b.body)
	b.stack = append(b.stack, b.html, b.head)
	return b
}

// build adds the page to the document until it ends, a limit is reached or the context is done.
func (b *builder) build(ctx context.Context) (truncated bool) {
	for n := 1; ; n++ {
		if b.nodes > maxNodes || b.attrs > maxAttrs || n%checkEvery == 0 && ctx.Err() != nil {
			return true
		}
		switch t := b.z.Next(); t {
		case html.ErrorToken:
			return false
		case html.TextToken:
			b.text(b.z.Text())
		case html.StartTagToken, html.SelfClosingTagToken:
			b.start(t == html.SelfClosingTagToken)
		case html.EndTagToken:
			name, _ := b.z.TagName()
			b.end(atom.Lookup(name), name)
		}
	}
}

type builder struct {
	z                    *html.Tokenizer
	doc                  *html.Node
	html, head, body     *html.Node
	base                 *html.Node   // the first base element with a href
	stack                []*html.Node // the open elements, html first
	arena                []html.Node
	attrArena            []html.Attribute
	nodes, attrs         int
	openP, openA, opened int // how many p and a are open; opened is of svg and math
	inBody               bool
}

// element makes an element. Nodes are allocated many at once.
func (b *builder) element(a atom.Atom, name string) *html.Node {
	n := b.node()
	n.Type, n.DataAtom, n.Data = html.ElementNode, a, name
	return n
}

func (b *builder) node() *html.Node {
	if len(b.arena) == 0 {
		b.arena = make([]html.Node, min(max(64, b.nodes), 4096))
	}
	n := &b.arena[0]
	b.arena = b.arena[1:]
	b.nodes++
	return n
}

func (b *builder) top() *html.Node { return b.stack[len(b.stack)-1] }

func (b *builder) pop() {
	switch b.top().DataAtom {
	case atom.P:
		b.openP--
	case atom.A:
		b.openA--
	case atom.Svg, atom.Math:
		b.opened--
	}
	b.stack = b.stack[:len(b.stack)-1]
}

// popTo pops the element at a place of the stack and all above it.
func (b *builder) popTo(i int) {
	for len(b.stack) > max(i, 2) {
		b.pop()
	}
}

// enterBody ends the head.
func (b *builder) enterBody() {
	if !b.inBody {
		b.inBody = true
		b.stack = append(b.stack[:1], b.body)
	}
}

func (b *builder) text(text []byte) {
	if !b.inBody {
		if t := b.top(); t == b.head {
			if len(bytes.TrimLeft(text, " \t\r\n\f")) == 0 {
				return
			}
			b.enterBody()
		}
	}
	if len(text) == 0 {
		return
	}
	n := b.node()
	n.Type, n.Data = html.TextNode, string(bytes.ToValidUTF8(text, []byte("\uFFFD")))
	b.top().AppendChild(n)
}

// headOnly are elements that do not end the head.
func headOnly(a atom.Atom) bool {
	switch a {
	case atom.Title, atom.Meta, atom.Link, atom.Base, atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Basefont, atom.Bgsound, atom.Noframes:
		return true
	}
	return false
}

func isVoid(a atom.Atom) bool {
	switch a {
	case atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input, atom.Link, atom.Meta, atom.Param, atom.Source, atom.Track, atom.Wbr, atom.Basefont, atom.Bgsound, atom.Frame, atom.Keygen:
		return true
	}
	return false
}

// closesP are the elements that end an open paragraph.
func closesP(a atom.Atom) bool {
	switch a {
	case atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Center, atom.Details, atom.Dialog, atom.Dir, atom.Div, atom.Dl, atom.Dd, atom.Dt,
		atom.Fieldset, atom.Figcaption, atom.Figure, atom.Footer, atom.Form, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Header, atom.Hgroup, atom.Hr,
		atom.Li, atom.Listing, atom.Main, atom.Menu, atom.Nav, atom.Ol, atom.P, atom.Plaintext, atom.Pre, atom.Section, atom.Summary, atom.Table, atom.Ul, atom.Xmp:
		return true
	}
	return false
}

// isScope reports whether an element hides the open elements outside it from those inside.
func isScope(a atom.Atom) bool {
	switch a {
	case atom.Applet, atom.Caption, atom.Html, atom.Body, atom.Table, atom.Td, atom.Th, atom.Marquee, atom.Object, atom.Template:
		return true
	}
	return false
}

func isFormatting(a atom.Atom) bool {
	switch a {
	case atom.A, atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.Nobr, atom.S, atom.Small, atom.Strike, atom.Strong, atom.Tt, atom.U, atom.Span:
		return true
	}
	return false
}

func isHeading(a atom.Atom) bool {
	switch a {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return true
	}
	return false
}

// find returns the place of the nearest open element among some, or -1 if an element that stops the search
// comes first.
func (b *builder) find(is, stop func(atom.Atom) bool) int {
	for i := len(b.stack) - 1; i > 0; i-- {
		switch a := b.stack[i].DataAtom; {
		case is(a):
			return i
		case stop(a):
			return -1
		}
	}
	return -1
}

func one(want atom.Atom) func(atom.Atom) bool { return func(a atom.Atom) bool { return a == want } }

func either(want ...atom.Atom) func(atom.Atom) bool {
	return func(a atom.Atom) bool {
		for _, w := range want {
			if a == w {
				return true
			}
		}
		return false
	}
}

// endIf pops the nearest open element among some, if there is one in scope.
func (b *builder) endIf(is, stop func(atom.Atom) bool) {
	if i := b.find(is, stop); i > 1 {
		b.popTo(i)
	}
}

// implyEnds ends the open elements that a start tag ends.
func (b *builder) implyEnds(a atom.Atom) {
	if b.openP > 0 && closesP(a) {
		b.endIf(one(atom.P), func(a atom.Atom) bool { return a == atom.Button || isScope(a) })
	}
	switch a {
	case atom.Li:
		b.endIf(one(atom.Li), func(a atom.Atom) bool { return a == atom.Ul || a == atom.Ol || a == atom.Menu || isScope(a) })
	case atom.Dd, atom.Dt:
		b.endIf(either(atom.Dd, atom.Dt), func(a atom.Atom) bool { return a == atom.Dl || isScope(a) })
	case atom.Option, atom.Optgroup:
		if b.top().DataAtom == atom.Option {
			b.pop()
		}
		if a == atom.Optgroup && b.top().DataAtom == atom.Optgroup {
			b.pop()
		}
	case atom.A:
		if b.openA == 0 {
			break
		}
		for i := len(b.stack) - 1; i > 1 && isFormatting(b.stack[i].DataAtom); i-- {
			if b.stack[i].DataAtom == atom.A {
				b.popTo(i)
				break
			}
		}
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		if isHeading(b.top().DataAtom) {
			b.pop()
		}
	case atom.Td, atom.Th:
		b.endIf(either(atom.Td, atom.Th), either(atom.Tr, atom.Table))
	case atom.Tr:
		b.endIf(one(atom.Tr), either(atom.Table))
	case atom.Tbody, atom.Thead, atom.Tfoot, atom.Colgroup, atom.Caption:
		b.endIf(either(atom.Tbody, atom.Thead, atom.Tfoot, atom.Colgroup, atom.Caption), either(atom.Table))
	}
}

// implyStarts opens the elements of a table that a start tag needs.
func (b *builder) implyStarts(a atom.Atom) {
	switch t := b.top().DataAtom; {
	case a == atom.Tr && t == atom.Table:
		b.push(b.element(atom.Tbody, "tbody"))
	case (a == atom.Td || a == atom.Th) && t == atom.Table:
		b.push(b.element(atom.Tbody, "tbody"))
		b.push(b.element(atom.Tr, "tr"))
	case (a == atom.Td || a == atom.Th) && (t == atom.Tbody || t == atom.Thead || t == atom.Tfoot):
		b.push(b.element(atom.Tr, "tr"))
	}
}

// push appends an element, and opens it unless elements nest too deep.
func (b *builder) push(n *html.Node) {
	b.top().AppendChild(n)
	if len(b.stack) >= MaxDepth {
		return
	}
	b.stack = append(b.stack, n)
	switch n.DataAtom {
	case atom.P:
		b.openP++
	case atom.A:
		b.openA++
	case atom.Svg, atom.Math:
		b.opened++
	}
}

func (b *builder) start(selfClosing bool) {
	raw, hasAttr := b.z.TagName()
	a := atom.Lookup(raw)
	switch a {
	case atom.Html:
		b.addAttrs(b.html, hasAttr)
		return
	case atom.Head:
		b.addAttrs(b.head, hasAttr)
		return
	case atom.Body:
		b.addAttrs(b.body, hasAttr)
		b.enterBody()
		return
	}
	name := a.String()
	if a == 0 {
		name = strings.ToValidUTF8(string(raw), "\uFFFD")
	}
	if !b.inBody && (b.top() == b.head && !headOnly(a)) {
		b.enterBody()
	}
	if b.inBody && b.opened == 0 {
		b.implyEnds(a)
		b.implyStarts(a)
	}
	n := b.element(a, name)
	b.addAttrs(n, hasAttr)
	if a == atom.Base && b.base == nil && HasAttr(n, "href") {
		b.base = n
	}
	if isVoid(a) || selfClosing && b.opened > 0 {
		b.top().AppendChild(n)
		return
	}
	if a == atom.Noscript {
		b.z.NextIsNotRawText() // some pages have their content there
	}
	b.push(n)
}

func (b *builder) addAttrs(n *html.Node, more bool) {
	if n.Attr != nil {
		return // a second html or body
	}
	first := len(b.attrArena)
	for more {
		var key, value []byte
		key, value, more = b.z.TagAttr()
		if len(b.attrArena) == cap(b.attrArena) {
			grown := make([]html.Attribute, len(b.attrArena)-first, max(256, 2*(len(b.attrArena)-first)))
			copy(grown, b.attrArena[first:])
			b.attrArena, first = grown, 0
		}
		k := ""
		if a := atom.Lookup(key); a != 0 {
			k = a.String()
		} else {
			k = strings.ToValidUTF8(string(key), "\uFFFD")
		}
		b.attrArena = append(b.attrArena, html.Attribute{Key: k, Val: strings.ToValidUTF8(string(value), "\uFFFD")})
		if b.attrs++; b.attrs > maxAttrs {
			break
		}
	}
	if last := len(b.attrArena); last > first {
		n.Attr = b.attrArena[first:last:last]
	}
}

func (b *builder) end(a atom.Atom, raw []byte) {
	switch a {
	case atom.Head:
		b.enterBody()
		return
	case atom.Html, atom.Body:
		return
	case atom.Br: // as browsers do
		b.top().AppendChild(b.element(atom.Br, "br"))
		return
	case atom.P:
		if b.openP == 0 {
			return
		}
	case atom.A:
		if b.openA == 0 {
			return
		}
	}
	for i := len(b.stack) - 1; i > 1; i-- {
		n := b.stack[i]
		if n.DataAtom == a && (a != 0 || n.Data == string(raw)) || isHeading(a) && isHeading(n.DataAtom) {
			if isFormatting(a) && !b.onlyFormattingAbove(i) {
				// What is open inside stays open.
				if a == atom.A {
					b.openA--
				}
				b.stack = append(b.stack[:i], b.stack[i+1:]...)
				return
			}
			b.popTo(i)
			return
		}
		if isTablePart(a) {
			if n.DataAtom == atom.Table {
				return
			}
		} else if isScope(n.DataAtom) {
			return
		}
	}
}

func (b *builder) onlyFormattingAbove(i int) bool {
	for _, n := range b.stack[i+1:] {
		if !isFormatting(n.DataAtom) {
			return false
		}
	}
	return true
}

func isTablePart(a atom.Atom) bool {
	switch a {
	case atom.Table, atom.Td, atom.Th, atom.Tr, atom.Tbody, atom.Thead, atom.Tfoot, atom.Caption, atom.Colgroup:
		return true
	}
	return false
}
