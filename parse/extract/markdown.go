package extract

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/recrawl/recrawl/parse/extract/internal/dom"
)

// Limits of what is converted: how deep it nests, which multiplies the work, bytes of text, and cells that
// spans add to tables.
const (
	markdownDepth = 40
	markdownText  = 1 << 20
	markdownSpans = 500
)

// Markdown returns the main content in Markdown (CommonMark with tables), with absolute links and images. It
// has no headline: that is Title. Content beyond one mebibyte of text is left out.
func (a *Article) Markdown() (string, error) {
	if a.main == nil {
		return strings.ReplaceAll(a.Text, "\n", "\n\n"), nil
	}
	p := a.pruned()
	conv := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
	b, err := conv.ConvertNode(p)
	if err != nil {
		return "", fmt.Errorf("extract: %s: markdown: %w", a.URL, err)
	}
	return strings.TrimSpace(string(b)), nil
}

// pruner copies the main content. It walks as the measurer did, so that it meets the same elements and runs.
type pruner struct {
	a           *Article
	m           *measurer
	kept        map[int]bool
	elem        int32
	run, cur    int
	left        int             // bytes of text
	spans       int             // cells added by spans
	first, last int             // numbers of the first and last run that are kept
	text        *html.Node      // the last text node, whose text is in buf
	buf         strings.Builder // joined here: the converter joins adjacent nodes in quadratic time
}

// pruned returns a copy of what is kept of the main content, with absolute URLs.
func (a *Article) pruned() *html.Node {
	p := &pruner{a: a, m: a.main, kept: map[int]bool{}, elem: a.root, cur: -1, left: markdownText, spans: markdownSpans}
	for _, i := range a.runs {
		p.kept[i] = true
	}
	if len(a.runs) > 0 {
		p.first, p.last = a.runs[0], a.runs[len(a.runs)-1]
	}
	for p.run < len(p.m.runs) && p.m.runs[p.run].elem < a.root {
		p.run++
	}
	// The first run in the root may begin in an element before it in the list, but not after it.
	p.cur = p.run - 1
	doc := &html.Node{Type: html.DocumentNode}
	p.copy(doc, p.m.elems[a.root].node, 0)
	p.endText()
	return doc
}

func (p *pruner) addText(to *html.Node, s string) {
	if p.text == nil || to.LastChild != p.text {
		p.endText()
		p.text = &html.Node{Type: html.TextNode}
		to.AppendChild(p.text)
	}
	p.buf.WriteString(s)
}

func (p *pruner) endText() {
	if p.text != nil {
		p.text.Data = p.buf.String()
		p.buf.Reset()
	}
}

func (p *pruner) copy(to, n *html.Node, depth int) {
	if p.m.kindOf(n) == skipped {
		return
	}
	at := p.elem
	p.elem++
	drop := p.a.out[at]
	c := to
	if !drop && depth < markdownDepth && n.DataAtom != atom.Span && n.DataAtom != atom.Font {
		c = &html.Node{Type: html.ElementNode, DataAtom: n.DataAtom, Data: n.Data, Attr: p.attrs(n)}
		if n.DataAtom == atom.Noscript {
			c.DataAtom, c.Data = atom.Div, "div"
		}
	}
	if p.m.elems[at].hints&hintHidden != 0 {
		return
	}
	for x := n.FirstChild; x != nil; x = x.NextSibling {
		switch x.Type {
		case html.TextNode:
			if p.run < len(p.m.runs) && p.m.runs[p.run].first == x {
				p.cur = p.run
				p.run++
			}
			if !drop && p.left > 0 && (p.kept[p.cur] || p.cur >= p.first && strings.TrimSpace(x.Data) == "") {
				p.left -= len(x.Data)
				p.addText(c, x.Data)
			}
		case html.ElementNode:
			if x.DataAtom == atom.Br {
				if !drop && p.kept[p.cur] {
					c.AppendChild(&html.Node{Type: html.ElementNode, DataAtom: atom.Br, Data: "br"})
				}
				continue
			}
			p.copy(c, x, depth+1)
		}
	}
	keep := c.FirstChild != nil || n.DataAtom == atom.Img && p.cur >= p.first && p.run <= p.last && dom.Attr(c, "src") != "" || n.DataAtom == atom.Hr
	if c != to && keep {
		to.AppendChild(c)
	}
}

// attrs returns the attributes that Markdown needs.
func (p *pruner) attrs(n *html.Node) (kept []html.Attribute) {
	set := func(name, value string) {
		if value != "" {
			kept = append(kept, html.Attribute{Key: name, Val: value})
		}
	}
	switch n.DataAtom {
	case atom.A:
		set("href", p.a.resolve(dom.Attr(n, "href")))
		set("title", dom.Attr(n, "title"))
	case atom.Img:
		src := dom.Attr(n, "src")
		if src == "" || strings.HasPrefix(src, "data:") {
			src = first(dom.Attr(n, "data-src"), dom.Attr(n, "data-lazy-src"), dom.Attr(n, "data-original"))
		}
		if src != "" {
			set("src", p.a.resolve(src))
		}
		set("alt", dom.Fold(dom.Attr(n, "alt")))
	case atom.Code, atom.Pre:
		set("class", dom.Attr(n, "class"))
	case atom.Ol:
		set("start", dom.Attr(n, "start"))
	case atom.Td, atom.Th:
		for _, name := range [...]string{"colspan", "rowspan"} {
			if span := atoi(dom.Attr(n, name)); 1 < span && span <= 20 && p.spans > 0 {
				p.spans -= span
				set(name, strconv.Itoa(span))
			}
		}
	}
	return kept
}

// textOfHTML returns the text of a fragment.
func textOfHTML(s string) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	m := measure(dom.Fragment(ctx, []byte(s)).FirstChild.LastChild, false)
	all := make([]int, len(m.runs))
	for i := range all {
		all[i] = i
	}
	return m.textOf(all)
}
