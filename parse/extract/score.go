package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// valueOf says how much a run speaks for an element to hold the main content. Short runs and links speak
// against it.
func valueOf(r *run) float32 {
	chars, linked := float32(r.chars), float32(r.linked)
	v := chars - 2.2*linked
	switch {
	case r.heading:
		v = min(v, 20)
	case r.item:
		v -= 12
	default:
		v -= 25
	}
	if r.commas > 0 && v > 0 {
		v += 10 * float32(min(r.commas, 10))
	}
	return v
}

// choose returns the number of the element with the main content, which elements in it are left out, and the
// element with the highest sum, which may have the main content and a little more.
func (m *measurer) choose() (root int32, out []bool, wide int32) {
	out = make([]bool, len(m.elems))
	total := m.elems[0].chars
	m.findThread()
	for i := range m.elems {
		e := &m.elems[i]
		if e.parent >= 0 && out[e.parent] || m.isChrome(int32(i), total) {
			out[i] = true
		}
	}
	value := make([]float32, len(m.elems))
	for i := len(m.elems) - 1; i >= 0; i-- {
		e := &m.elems[i]
		if out[i] {
			continue
		}
		if value[i] += e.value; i > 0 {
			value[e.parent] += value[i]
		}
	}
	best := int32(0)
	bestValue := float32(0)
	for i := range m.elems {
		if out[i] {
			continue
		}
		e := &m.elems[i]
		v := value[i]
		if e.hints&hintContent != 0 {
			v *= 1.1
		}
		if v >= bestValue {
			best, bestValue = int32(i), v
		}
	}
	return m.descend(best, value, out), out, best
}

// descend goes on to the child that has nearly all of the value of an element.
func (m *measurer) descend(at int32, value []float32, out []bool) int32 {
	for {
		next := int32(-1)
		for i := at + 1; i < m.elems[at].end; i = m.elems[i].end {
			e := &m.elems[i]
			if out[i] || e.kind != block {
				continue
			}
			share := float32(0.85)
			if e.hints&hintContent != 0 {
				share = 0.7
			}
			if value[i] >= share*value[at] {
				next = i
				break
			}
		}
		if next < 0 {
			return at
		}
		at = next
	}
}

// chooseAll returns the element with the main content of a page that has little running text, such as a
// list: all that is not the frame of the page.
func (m *measurer) chooseAll() (root int32, out []bool) {
	out = make([]bool, len(m.elems))
	total := m.elems[0].chars
	for i := range m.elems {
		e := &m.elems[i]
		if e.parent >= 0 && out[e.parent] {
			out[i] = true
			continue
		}
		a := e.node.DataAtom
		chrome := e.hints&hintChrome != 0 && e.chars*2 < total || a == atom.Header && !m.inContent(int32(i)) && e.chars*2 < total
		out[i] = chrome
		if root == 0 && a == atom.Main && e.chars*5 > total {
			root = int32(i)
		}
	}
	return root, out
}

// facts returns the runs of the page that change when the page does: those of an element and, around it, those
// without links nearby, such as a headline, a price, or a cell of a table. What stands directly in the body, or
// in another part of it, is not around it.
func (m *measurer) facts(root int32, out []bool) []int {
	around := root
	for around > 0 && m.elems[around].parent > 0 {
		around = m.elems[around].parent
	}
	var kept []int
	last, end := m.elems[root].end, m.elems[around].end
	for i := range m.runs {
		r := &m.runs[i]
		if out[r.elem] || r.elem < around || r.elem >= end {
			continue
		}
		if r.elem >= root && r.elem < last {
			kept = append(kept, i)
			continue
		}
		near := &m.elems[max(0, m.elems[r.elem].parent)]
		if r.linked == 0 && near.linked*2 <= near.chars {
			kept = append(kept, i)
		}
	}
	return kept
}

// findThread finds out whether most of the page is what its readers wrote, as in a forum.
func (m *measurer) findThread() {
	comments := int32(0)
	for i := int32(0); i < int32(len(m.elems)); {
		e := &m.elems[i]
		if e.hints&hintComment == 0 {
			i++
			continue
		}
		comments += e.plain
		i = e.end
	}
	m.thread = comments*4 > m.elems[0].plain*3 && m.elems[0].plain-comments < 300
}

// isChrome reports whether an element is left out for what it is.
func (m *measurer) isChrome(i, total int32) bool {
	e := &m.elems[i]
	if e.hints&hintHidden != 0 {
		return true
	}
	if e.kind != block && e.hints == 0 {
		return false
	}
	a := e.node.DataAtom
	large := e.plain*5 > m.elems[0].plain*2 && e.plain > 400 && e.linked*2 < e.chars
	if large || a == atom.Main || a == atom.Article {
		return false
	}
	if e.hints&hintChrome != 0 || e.hints&hintComment != 0 && !m.thread {
		return true
	}
	if e.hints&hintWeak != 0 && e.plain == 0 && e.chars*5 < total {
		return true
	}
	switch a {
	case atom.Figcaption:
		return true
	case atom.Header:
		if !m.inContent(i) {
			return true
		}
	case atom.Form:
		return e.chars*2 < total && e.plain == 0
	case atom.Ul, atom.Ol, atom.Dl, atom.Div, atom.Section, atom.P, atom.Table, atom.Tr:
		// Lists of links.
		if e.linked*3 > e.chars*2 && e.blocks > 2 && e.chars < total/2 && e.plain == 0 {
			return true
		}
	}
	return false
}

func (m *measurer) inContent(i int32) bool {
	for p := m.elems[i].parent; p >= 0; p = m.elems[p].parent {
		if a := m.elems[p].node.DataAtom; a == atom.Article || a == atom.Main {
			return true
		}
	}
	return false
}

// selected returns the numbers of the runs of an element without those left out.
func (m *measurer) selected(root int32, out []bool) []int {
	var kept []int
	last := m.elems[root].end
	for i := range m.runs {
		r := &m.runs[i]
		if r.elem < root || r.elem >= last || out[r.elem] {
			continue
		}
		if r.linked*4 > r.chars*3 && r.chars < 20 && !r.heading && !r.item {
			continue
		}
		kept = append(kept, i)
	}
	return kept
}

// trim drops title, author and date at the start of an article, and short ends.
func (m *measurer) trim(kept []int) []int {
	first := 0
	for i, k := range kept {
		if r := &m.runs[k]; !r.heading && r.chars >= 70 && r.linked*2 < r.chars {
			first = i
			break
		}
	}
	if first > 12 {
		first = 0
	}
	// A section heading right before stays.
	for first > 0 {
		r := &m.runs[kept[first-1]]
		if !r.heading || m.isH1(r) {
			break
		}
		first--
	}
	kept = kept[first:]
	end := len(kept)
	for end > 1 {
		r := &m.runs[kept[end-1]]
		if r.chars >= 60 && r.linked*2 < r.chars || r.linked == 0 && r.commas > 0 && r.words >= 5 && !r.heading || r.item && !r.heading && r.linked*2 < r.chars || len(kept)-end > 8 {
			break
		}
		end--
	}
	if len(kept)-end > 8 {
		end = len(kept)
	}
	return kept[:end]
}

func (m *measurer) isH1(r *run) bool {
	for i := r.elem; i >= 0 && m.elems[i].kind == block; i = m.elems[i].parent {
		switch m.elems[i].node.DataAtom {
		case atom.H1:
			return true
		case atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
			return false
		}
	}
	return false
}

// textOf returns runs of text, a line each.
func (m *measurer) textOf(runs []int) string {
	var b strings.Builder
	for _, i := range runs {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		m.writeRun(&b, &m.runs[i])
	}
	return b.String()
}

// writeRun writes the text from its first node to the end of its block.
func (m *measurer) writeRun(b *strings.Builder, r *run) {
	stop := m.elems[r.elem].node
	left := r.chars
	space := false
	start := b.Len()
	for n := r.first; n != nil && left > 0; n = m.nextNode(n, stop) {
		if n.Type != html.TextNode {
			if n.DataAtom == atom.Br {
				space = true
			}
			continue
		}
		chars, _, _ := countText(n.Data)
		left -= chars
		s := n.Data
		if len(s) > 0 && isSpace(s[0]) {
			space = true
		}
		for f := range strings.FieldsSeq(s) {
			if space && b.Len() > start {
				b.WriteByte(' ')
			}
			b.WriteString(f)
			space = true
		}
		space = len(s) > 0 && isSpace(s[len(s)-1])
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }

// nextNode returns the next node in document order within stop, without what is in skipped elements.
func (m *measurer) nextNode(n, stop *html.Node) *html.Node {
	if n.FirstChild != nil && (n.Type != html.ElementNode || m.kindOf(n) != skipped && (m.all || hintsOf(n)&hintHidden == 0)) {
		return n.FirstChild
	}
	for n != nil && n != stop {
		if n.NextSibling != nil {
			return n.NextSibling
		}
		n = n.Parent
	}
	return nil
}
