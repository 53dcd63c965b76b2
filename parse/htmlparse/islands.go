package htmlparse

import "bytes"

// island opens SVG, MathML, or HTML in one of them.
func (s *scan) island(kind byte, closed bool) {
	if !closed && len(s.islands) < maxIslands {
		s.islands = append(s.islands, kind)
	}
	s.cdata()
}

func (s *scan) foreign() bool {
	return len(s.islands) > 0 && s.islands[len(s.islands)-1] != 'h'
}

// leave closes the islands from the last one of that kind on.
func (s *scan) leave(kind byte) {
	if i := bytes.LastIndexByte(s.islands, kind); i >= 0 {
		s.islands = s.islands[:i]
	}
	s.cdata()
}

func (s *scan) cdata() { s.z.cdata = s.foreign() }

// foreignTag reads a start tag in SVG or MathML. It reports whether the tag
// should be read as HTML after all.
func (s *scan) foreignTag(e element, closed bool) bool {
	switch e {
	case svgElem, mathElem, anchorElem:
		return true
	case foreignObjectElem:
		s.island('h', closed)
	case annotationElem:
		if a := s.attrs(); equalFold(a.encoding, "text/html") || equalFold(a.encoding, "application/xhtml+xml") {
			s.island('h', closed)
		}
	case titleElem, descElem, scriptElem, rawElem:
		// Inside these, tags count as tags, and nothing is visible.
		s.notRaw()
		if !closed && s.skip == inline {
			s.skip, s.depth = e, 1
		}
	case inlineBreakout, blockBreakout, paragraphElem, bodyElem, imgElem, metaElem, embedElem:
		s.breakOut()
		return true
	case fontElem:
		if s.attrs().font {
			s.breakOut()
		}
	case iframeElem, xmpElem, noscriptElem, noframesElem:
		s.notRaw()
	}
	return false
}

// breakOut ends SVG and MathML where HTML begins, up to the innermost island of HTML.
func (s *scan) breakOut() {
	for s.foreign() {
		s.islands = s.islands[:len(s.islands)-1]
	}
	s.skip, s.depth = inline, 0
	s.cdata()
}

// foreignEnd reads an end tag where an island is open. It reports whether that
// is all there is to do.
func (s *scan) foreignEnd(e element) bool {
	switch e {
	case svgElem:
		s.leave('s')
	case mathElem:
		s.leave('m')
	case foreignObjectElem, annotationElem:
		s.leave('h')
	case paragraphElem:
		if s.foreign() {
			s.breakOut()
		}
		return false
	default:
		return false
	}
	if s.skip == titleElem || s.skip == descElem || s.skip == scriptElem || s.skip == rawElem {
		s.skip, s.depth = inline, 0
	}
	return true
}
