package htmlparse

// nutchText joins texts as Nutch does: the white space in each is folded, a
// space separates them unless a line ends there, and consecutive line ends are
// one.
type nutchText struct {
	max int
	buf []byte
	cut bool
}

func (t *nutchText) line() {
	if t.cut {
		return
	}
	for n := len(t.buf); n > 0 && t.buf[n-1] == ' '; n-- {
		t.buf = t.buf[:n-1]
	}
	if n := len(t.buf); n > 0 && n < t.max && t.buf[n-1] != '\n' {
		t.buf = append(t.buf, '\n')
	}
}

// add adds a text node; one of white space ends a line.
func (t *nutchText) add(s []byte) {
	first := true
	for len(s) > 0 && !t.cut {
		start := 0
		for start < len(s) && javaWhite(s[start]) {
			start++
		}
		end := start
		for end < len(s) && end-start <= t.max && !javaWhite(s[end]) {
			end++
		}
		word := s[start:end]
		s = s[end:]
		if len(word) == 0 {
			break
		}
		first = false
		if n := len(t.buf); n > 0 && n < t.max && t.buf[n-1] != ' ' && t.buf[n-1] != '\n' {
			t.buf = append(t.buf, ' ')
		}
		if len(t.buf)+len(word) > t.max {
			t.cut = true
			return
		}
		t.buf = append(t.buf, word...)
	}
	if first {
		t.line()
	}
}

// javaWhite is \s of Java's regular expressions.
func javaWhite(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// nutchBlock reports whether an element separates lines. (Nutch:
// parser.html.line.separators.)
func nutchBlock(name string) bool {
	switch name {
	case "article", "aside", "blockquote", "canvas", "dd", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer",
		"form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "noscript", "ol", "output", "p",
		"pre", "section", "table", "tfoot", "ul", "video":
		return true
	}
	return false
}

// nutchVoid reports whether an element has no content.
func nutchVoid(name string) bool {
	switch name {
	case "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "isindex", "keygen",
		"link", "meta", "param", "source", "spacer", "track", "wbr":
		return true
	}
	return false
}

// nutchHead reports whether an element may come before the body.
func nutchHead(name string) bool {
	switch name {
	case "html", "head", "title", "meta", "base", "link", "script", "style", "noscript", "isindex", "object", "basefont", "bgsound", "frameset", "frame", "noframes":
		return true
	}
	return false
}

// closes returns which elements a start tag ends, and which enclosing elements
// stop the search for them.
func closes(name string) (ends, until string) {
	switch name {
	case "a":
		return " a ", " td th table object "
	case "li":
		return " li ", " ul ol menu dir table td th "
	case "dt", "dd":
		return " dt dd ", " dl table td th "
	case "option", "optgroup":
		return " option ", " select table td th "
	case "td", "th":
		return " td th ", " tr table "
	case "tr":
		return " tr ", " table "
	case "tbody", "thead", "tfoot":
		return " tbody thead tfoot ", " table "
	case "body", "frameset":
		return " head ", ""
	case "p", "div", "ul", "ol", "dl", "table", "form", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "pre", "blockquote", "center", "address", "menu", "dir", "fieldset":
		return " p ", " td th table object "
	}
	return "", ""
}
