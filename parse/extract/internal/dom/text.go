package dom

import (
	"iter"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Text returns the text below a node with white space folded, cut at max bytes. Scripts, styles, templates and
// what is for browsers without scripts are left out.
func Text(n *html.Node, max int) string {
	var b strings.Builder
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		for c := n.FirstChild; c != nil && b.Len() < max; c = c.NextSibling {
			switch {
			case c.Type == html.TextNode:
				b.WriteString(c.Data)
			case c.DataAtom == atom.Script || c.DataAtom == atom.Style || c.DataAtom == atom.Noscript || c.DataAtom == atom.Template:
			case closesP(c.DataAtom) || isTablePart(c.DataAtom) || c.DataAtom == atom.Br:
				b.WriteByte(' ')
				walk(c)
				b.WriteByte(' ')
			default:
				walk(c)
			}
		}
	}
	walk(n)
	return Clip(Fold(b.String()), max)
}

// Fold folds white space.
func Fold(s string) string { return strings.Join(strings.Fields(s), " ") }

// Clip cuts a string at max bytes, between characters.
func Clip(s string, max int) string {
	if len(s) <= max {
		return s
	}
	return strings.TrimSpace(strings.ToValidUTF8(s[:max], ""))
}

// Elements yields the elements below a node in document order.
func Elements(n *html.Node) iter.Seq[*html.Node] {
	return func(yield func(*html.Node) bool) {
		for c := range n.Descendants() {
			if c.Type == html.ElementNode && !yield(c) {
				return
			}
		}
	}
}

// Attr returns the value of an attribute; empty if there is none.
func Attr(n *html.Node, name string) string {
	for i := range n.Attr {
		if n.Attr[i].Key == name {
			return n.Attr[i].Val
		}
	}
	return ""
}

// HasAttr reports whether an element has an attribute.
func HasAttr(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}
