package fields

import (
	"context"

	"github.com/antchfx/xpath"
	"golang.org/x/net/html"

	"github.com/recrawl/recrawl/parse/extract/internal/dom"
)

// maxMoves limits the moves of one XPath in one page, about a second: the cost of an expression may grow with
// the square of the page. Values found by then count, which depends on the page alone.
const maxMoves = 10_000_000

// navigator moves through a tree for package xpath. Once its budget is used or the context is done, every move
// fails, and the expression ends.
type navigator struct {
	root, node *html.Node
	attr       int // of the node; -1 for the node itself
	budget     *budget
}

type budget struct {
	ctx  context.Context
	left int
}

// spend reports whether a move may be made.
func (n *navigator) spend() bool {
	b := n.budget
	if b.left--; b.left&0xfff == 0 && b.ctx.Err() != nil {
		b.left = 0
	}
	return b.left > 0
}

func newNavigator(ctx context.Context, root *html.Node) *navigator {
	return &navigator{root: root, node: root, attr: -1, budget: &budget{ctx, maxMoves}}
}

func (n *navigator) NodeType() xpath.NodeType {
	switch {
	case n.attr >= 0:
		return xpath.AttributeNode
	case n.node.Type == html.TextNode:
		return xpath.TextNode
	case n.node.Type == html.DocumentNode:
		return xpath.RootNode
	}
	return xpath.ElementNode
}

func (n *navigator) LocalName() string {
	switch {
	case n.attr >= 0:
		return n.node.Attr[n.attr].Key
	case n.node.Type == html.ElementNode:
		return n.node.Data
	}
	return ""
}

func (n *navigator) Prefix() string { return "" }

func (n *navigator) Value() string {
	switch {
	case n.attr >= 0:
		return n.node.Attr[n.attr].Val
	case n.node.Type == html.TextNode:
		return n.node.Data
	}
	n.budget.left -= 1000 // it walks through the element
	if !n.spend() {
		return ""
	}
	return dom.Text(n.node, 16*maxValue)
}

func (n *navigator) Copy() xpath.NodeNavigator {
	c := *n
	return &c
}

func (n *navigator) MoveToRoot() { n.node, n.attr = n.root, -1 }

func (n *navigator) MoveToParent() bool {
	if !n.spend() {
		return false
	}
	if n.attr >= 0 {
		n.attr = -1
		return true
	}
	return n.moveTo(n.node.Parent)
}

func (n *navigator) MoveToNextAttribute() bool {
	if !n.spend() || n.node.Type != html.ElementNode || n.attr+1 >= len(n.node.Attr) {
		return false
	}
	n.attr++
	return true
}

func (n *navigator) MoveToChild() bool { return n.attr < 0 && n.moveTo(n.node.FirstChild) }

func (n *navigator) MoveToFirst() bool {
	return n.attr < 0 && n.node.Parent != nil && n.node.PrevSibling != nil && n.moveTo(n.node.Parent.FirstChild)
}

func (n *navigator) MoveToNext() bool { return n.attr < 0 && n.moveTo(n.node.NextSibling) }

func (n *navigator) MoveToPrevious() bool { return n.attr < 0 && n.moveTo(n.node.PrevSibling) }

func (n *navigator) moveTo(to *html.Node) bool {
	if to == nil || !n.spend() {
		return false
	}
	n.node = to
	return true
}

func (n *navigator) MoveTo(other xpath.NodeNavigator) bool {
	o, ok := other.(*navigator)
	if !ok || o.root != n.root {
		return false
	}
	n.node, n.attr = o.node, o.attr
	return true
}
