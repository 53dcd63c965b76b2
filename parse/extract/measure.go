package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// element is an element of the page in document order, with what it holds.
type element struct {
	node   *html.Node
	parent int32
	end    int32 // the elements of its subtree are those before end
	// chars counts the characters of its visible text, linked those in links, plain those
	// of its paragraphs: blocks of running text.
	chars, linked, plain int32
	blocks               int32 // blocks of text
	value                float32
	hints                hint
	kind                 kind
}

// hint is what the names of an element say of it.
type hint uint8

const (
	hintContent hint = 1 << iota // it holds the main content
	hintChrome                   // it is part of the frame of the page
	hintHidden                   // it is not shown
	hintComment                  // a comment of a reader
	hintWeak                     // perhaps it is part of the frame
)

// kind says how an element takes part in the layout.
type kind uint8

const (
	inline kind = iota
	block
	skipped // its content is no text
)

// kindOf returns the kind of an element.
func kindOf(n *html.Node) kind {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Iframe, atom.Svg, atom.Math, atom.Object, atom.Embed, atom.Canvas, atom.Video, atom.Audio,
		atom.Select, atom.Option, atom.Datalist, atom.Textarea, atom.Input, atom.Button, atom.Head, atom.Title, atom.Noembed, atom.Noframes, atom.Link, atom.Meta, atom.Map, atom.Rp:
		return skipped
	case atom.A, atom.Abbr, atom.Acronym, atom.B, atom.Bdi, atom.Bdo, atom.Big, atom.Cite, atom.Code, atom.Data, atom.Del, atom.Dfn, atom.Em, atom.Font, atom.I, atom.Img,
		atom.Ins, atom.Kbd, atom.Label, atom.Mark, atom.Nobr, atom.Picture, atom.Q, atom.Rb, atom.Rt, atom.Ruby, atom.S, atom.Samp, atom.Small, atom.Source, atom.Span, atom.Strike, atom.Strong,
		atom.Sub, atom.Sup, atom.Time, atom.Tt, atom.U, atom.Var, atom.Wbr, atom.Area, atom.Output, atom.Progress, atom.Meter, atom.Slot:
		return inline
	}
	if n.DataAtom == 0 && !strings.Contains(n.Data, "-") {
		return inline
	}
	return block
}

func (m *measurer) kindOf(n *html.Node) kind {
	if m.all && n.DataAtom == atom.Noscript {
		return block
	}
	return kindOf(n)
}

// run is a run of text of one block, uninterrupted by other blocks.
type run struct {
	elem          int32 // the innermost block
	first         *html.Node
	chars, linked int32
	commas, words int32
	heading       bool
	item          bool // in a list, a table or a heading, where text is short
}

// measurer walks the page.
type measurer struct {
	// all includes what browsers show only without scripts, or hide at first.
	all    bool
	elems  []element
	runs   []run
	open   *run
	thread bool // comments are the content
}

// measure lists the elements and runs of text of a body.
func measure(body *html.Node, all bool) *measurer {
	m := &measurer{all: all}
	m.walk(body, -1, -1, false, false, false)
	m.endRun()
	m.sum()
	return m
}

func (m *measurer) endRun() {
	if r := m.open; r != nil {
		if r.chars == 0 {
			m.runs = m.runs[:len(m.runs)-1]
		}
		m.open = nil
	}
}

func (m *measurer) walk(n *html.Node, parent, blockElem int32, linked, heading, item bool) {
	k := m.kindOf(n)
	if k == skipped {
		return
	}
	at := int32(len(m.elems))
	m.elems = append(m.elems, element{node: n, parent: parent, kind: k, hints: hintsOf(n)})
	if m.all {
		m.elems[at].hints &^= hintHidden
	}
	if m.elems[at].hints&hintHidden != 0 {
		m.elems[at].end = at + 1
		return
	}
	switch n.DataAtom {
	case atom.A:
		linked = true
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		heading = true
	case atom.Li, atom.Td, atom.Th, atom.Dd, atom.Dt:
		item = true
	}
	if k == block {
		m.endRun()
		blockElem = at
	}
	brs := 0
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch c.Type {
		case html.TextNode:
			if chars, words, commas := countText(c.Data); chars > 0 {
				brs = 0
				if m.open == nil {
					m.runs = append(m.runs, run{elem: blockElem, first: c, heading: heading, item: item})
					m.open = &m.runs[len(m.runs)-1]
				}
				m.open.chars += chars
				m.open.words += words
				m.open.commas += commas
				if linked {
					m.open.linked += chars
				}
			}
		case html.ElementNode:
			if c.DataAtom == atom.Br {
				if brs++; brs == 2 {
					m.endRun()
				}
				continue
			}
			m.walk(c, at, blockElem, linked, heading, item)
		}
	}
	if k == block {
		m.endRun()
	}
	m.elems[at].end = int32(len(m.elems))
}

// countText counts the characters of a text without white space, its words, and commas and full stops.
func countText(s string) (chars, words, commas int32) {
	in := false
	for i := 0; i < len(s); {
		c := rune(s[i])
		n := 1
		if c >= utf8.RuneSelf {
			c, n = utf8.DecodeRuneInString(s[i:])
		}
		i += n
		if c <= ' ' || c >= 0x80 && unicode.IsSpace(c) {
			in = false
			continue
		}
		if !in {
			in = true
			words++
		}
		chars++
		if c >= 0x2e80 && (c < 0xa000 || c >= 0xac00 && c < 0xd800) {
			chars += 2 // an ideograph says as much as a few letters
		}
		switch c {
		case ',', '.', ';', '?', '!', '、', '。', '，', '．', '：', '؟', '،', '।':
			commas++
		}
	}
	return chars, words, commas
}

// sum adds what the runs have to the elements that hold them.
func (m *measurer) sum() {
	for i := range m.runs {
		r := &m.runs[i]
		e := &m.elems[r.elem]
		e.chars += r.chars
		e.linked += r.linked
		e.blocks++
		if isPlain(r) {
			e.plain += r.chars - r.linked
		}
		e.value += valueOf(r)
	}
	for i := len(m.elems) - 1; i > 0; i-- {
		e := &m.elems[i]
		p := &m.elems[e.parent]
		p.chars += e.chars
		p.linked += e.linked
		p.plain += e.plain
		p.blocks += e.blocks
	}
}

// isPlain reports whether a run is running text.
func isPlain(r *run) bool {
	return !r.heading && r.chars >= 60 && r.commas > 0 && r.linked*3 < r.chars
}
