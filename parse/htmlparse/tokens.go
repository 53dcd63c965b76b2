package htmlparse

import "bytes"

// A token is a piece of a page.
type token uint8

const (
	pageEnd token = iota // there is no more
	textToken
	startTag
	closedTag // <br/>
	endTag
	otherToken // a comment, a declaration, and anything read as one
)

// tokens splits a page into the tokens of the HTML standard (HTML, section
// 13.2.5) exactly as the tokenizer of golang.org/x/net/html does, against which
// it is tested. It reads the page in place, skips unwanted tokens by searching
// for their end, and allocates nothing for a tag.
type tokens struct {
	page []byte   // in UTF-8; it is only read
	stop *stopper // checked from time to time; may be nil
	look int      // where to check it next

	at   int // where the next token begins
	kind token

	// elem is what a tag opens or closes.
	elem element
	// attr are the named attributes of a start tag, in order, at most maxAttrs. A
	// name may occur twice: the first counts.
	attr []attribute

	// text is the text of the token: with character references unless verbatim, and
	// with NULs to be read as the replacement character if replace.
	text              []byte
	verbatim, replace bool

	// raw is the name of the element opened last if its content is a single text; rcdata
	// says that this has character references. Clearing raw makes the content be read as
	// markup.
	raw    []byte
	rcdata bool

	// cdata says that CDATA sections are allowed: in SVG and MathML.
	cdata bool

	// decoded is memory for what had to be decoded in the token.
	decoded []byte
}

// attribute is an attribute of a tag, as in the page.
type attribute struct{ name, value []byte }

// maxAttrs is how many attributes of a tag are reported, the first ones: a page of
// nothing else would take forty times its length.
const maxAttrs = 4096

// keptAttrs is how much room for attributes is kept from tag to tag.
const keptAttrs = 256

// Classes of the bytes in a tag.
const (
	inSpace   uint8 = 1 << iota
	endsTag         // white space, "/" and ">", which end the name of a tag
	endsName        // and "=": the name of an attribute
	endsValue       // white space and ">": a value without quotes
	decoded         // "&", NUL and CR, which need decoding in a value
)

var tagClasses = func() (t [256]uint8) {
	for _, c := range []byte(" \t\n\f\r") {
		t[c] = inSpace | endsTag | endsName | endsValue
	}
	t['/'] = endsTag | endsName
	t['>'] = endsTag | endsName | endsValue
	t['='] = endsName
	for _, c := range []byte("&\x00\r") {
		t[c] |= decoded
	}
	return t
}()

// until returns the index of the first byte of a class, from i on.
func until(b []byte, i int, class uint8) int {
	for i < len(b) && tagClasses[b[i]]&class == 0 {
		i++
	}
	return i
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && tagClasses[b[i]]&inSpace != 0 {
		i++
	}
	return i
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// behind returns the index after the first c from i on, or the end.
func behind(b []byte, i int, c byte) int {
	if n := bytes.IndexByte(b[i:], c); n >= 0 {
		return i + n + 1
	}
	return len(b)
}

// next advances to the next token.
func (z *tokens) next() token {
	z.kind = z.read()
	return z.kind
}

func (z *tokens) read() token {
	if z.at >= z.look {
		if z.stop != nil && z.at < len(z.page) && z.stop.stop() {
			z.page = z.page[:z.at]
		}
		z.look = z.at + piece
	}
	z.decoded = z.decoded[:0]
	b, i := z.page, z.at
	if z.raw != nil {
		end := z.rawEnd(i)
		z.verbatim, z.replace = !z.rcdata, true
		z.raw = nil
		if end > i {
			return z.textTo(i, end)
		}
	}
	z.verbatim, z.replace = false, false
	for {
		if i < len(b) && b[i] != '<' {
			if n := bytes.IndexByte(b[i:], '<'); n >= 0 {
				i += n
			} else {
				i = len(b)
			}
		}
		if i+1 >= len(b) {
			break
		}
		c := b[i+1]
		if !isLetter(c) && c != '/' && c != '!' && c != '?' {
			i++
			continue
		}
		if i > z.at {
			return z.textTo(z.at, i)
		}
		switch {
		case isLetter(c):
			return z.startTag(i + 1)
		case c == '!':
			return z.declaration(i + 2)
		case c == '?':
			return z.other(behind(b, i+1, '>'))
		case i+2 == len(b):
			return z.textTo(i, len(b))
		case isLetter(b[i+2]):
			return z.endTag(i + 2)
		}
		return z.other(behind(b, i+2, '>'))
	}
	if z.at == len(b) {
		return pageEnd
	}
	return z.textTo(z.at, len(b))
}

func (z *tokens) textTo(from, to int) token {
	z.text, z.at = z.page[from:to], to
	return textToken
}

func (z *tokens) other(to int) token {
	z.at = to
	return otherToken
}

// over ends the page: a tag without an end does not count.
func (z *tokens) over() token {
	z.at = len(z.page)
	return pageEnd
}

// startTag reads the tag whose name begins at i.
func (z *tokens) startTag(i int) token {
	b := z.page
	end := until(b, i, endsTag)
	name := b[i:end]
	z.elem = elementOf(name)
	if cap(z.attr) > keptAttrs {
		z.attr = nil
	}
	z.attr = z.attr[:0]
	to, last := z.attributes(end, true)
	if to < 0 {
		return z.over()
	}
	z.at = to
	if z.elem.raw() {
		z.raw, z.rcdata = name, z.elem == titleElem || equalFold(name, "textarea")
	}
	if b[to-2] == '/' && last < to-1 {
		return closedTag
	}
	return startTag
}

func (z *tokens) endTag(i int) token {
	end := until(z.page, i, endsTag)
	z.elem = elementOf(z.page[i:end])
	to, _ := z.attributes(end, false)
	if to < 0 {
		return z.over()
	}
	z.at = to
	return endTag
}

// attributes reads from the end of the name of a tag to the end of the tag,
// which it returns, negative if there is none, and where the last value ends.
func (z *tokens) attributes(i int, keep bool) (to, last int) {
	b := z.page
	for {
		if i = skipSpace(b, i); i == len(b) {
			return -1, 0
		}
		switch b[i] {
		case '>':
			return i + 1, last
		case '/':
			i++
			continue
		}
		from := i
		if b[i] == '=' { // which belongs to the name at its beginning
			i++
		}
		i = until(b, i, endsName)
		name, value := b[from:i], b[i:i]
		last = i
		if i = skipSpace(b, i); i == len(b) {
			return -1, 0
		}
		if b[i] == '=' {
			if i = skipSpace(b, i+1); i == len(b) {
				return -1, 0
			}
			switch c := b[i]; c {
			case '>':
			case '"', '\'':
				n := bytes.IndexByte(b[i+1:], c)
				if n < 0 {
					return -1, 0
				}
				value = b[i+1 : i+1+n]
				last = i + 1 + n
				i += n + 2
			default:
				from := i
				i = until(b, i, endsValue)
				value, last = b[from:i], i
			}
		} else if b[i] == '/' {
			i++
		}
		if keep && len(z.attr) < maxAttrs {
			z.attr = append(z.attr, attribute{name, value})
		}
	}
}

// declaration reads what follows "<!".
func (z *tokens) declaration(i int) token {
	b := z.page
	switch rest := b[i:]; {
	case len(rest) < 2:
		return z.other(len(b))
	case rest[0] == '-' && rest[1] == '-':
		return z.other(commentEnd(b, i+2))
	case z.cdata && bytes.HasPrefix(rest, []byte("[CDATA[")):
		i += len("[CDATA[")
		z.replace = true
		n := bytes.Index(b[i:], []byte("]]>"))
		if n < 0 {
			return z.textTo(i, len(b))
		}
		z.textTo(i, i+n)
		z.at += len("]]>")
		return textToken
	}
	return z.other(behind(b, i, '>'))
}

// commentEnd returns where a comment ends whose text begins at i.
func commentEnd(b []byte, i int) int {
	text := b[i:]
	for n := 0; ; n++ {
		at := bytes.IndexByte(text[n:], '>')
		if at < 0 {
			return len(b)
		}
		n += at
		t := text[:n]
		if n == 0 || n == 1 && t[0] == '-' || bytes.HasSuffix(t, []byte("--")) || bytes.HasSuffix(t, []byte("--!")) {
			return i + n + 1
		}
	}
}

// rawEnd returns where the text content of an element ends.
func (z *tokens) rawEnd(i int) int {
	b := z.page
	if equalFold(z.raw, "plaintext") {
		return len(b)
	}
	end := rawEndTag(b, i, z.raw)
	if equalFold(z.raw, "script") && bytes.Contains(b[i:end], []byte("<!--")) {
		return scriptEnd(b, i)
	}
	return end
}

// rawEndTag returns where the first end tag of that name begins, or the end.
func rawEndTag(b []byte, i int, name []byte) int {
	for ; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '<')
		if n < 0 {
			break
		}
		if i += n; endsRaw(b[i:], name) {
			return i
		}
	}
	return len(b)
}

// endsRaw reports whether b begins with the end tag of that name.
func endsRaw(b, name []byte) bool {
	if n := 2 + len(name); len(b) <= n || b[1] != '/' || tagClasses[b[n]]&endsTag == 0 {
		return false
	}
	for i, c := range name {
		if c|0x20 != b[2+i]|0x20 { // only a letter is that of a letter
			return false
		}
	}
	return true
}

// scriptEnd returns where the content of a script ends: if a comment in it
// hides another script, not at the end of that one.
func scriptEnd(b []byte, i int) int {
	const (
		plain   = iota
		escaped // behind "<!--"
		double  // and behind "<script"
	)
	script := []byte("script")
	dashes := 0
	for state := plain; i < len(b); {
		c := b[i]
		if state == plain {
			if i = behind(b, i, '<') - 1; b[i] != '<' {
				return len(b)
			}
			switch {
			case endsRaw(b[i:], script):
				return i
			case bytes.HasPrefix(b[i:], []byte("<!--")):
				state, dashes = escaped, 2
				i += len("<!--")
			default:
				i++
			}
			continue
		}
		switch {
		case c == '-':
			dashes++
			i++
			continue
		case c == '>' && dashes >= 2:
			state = plain
			i++
		case c != '<':
			i++
		case state == double:
			if i++; i < len(b) && b[i] == '/' {
				if endsRaw(b[i-1:], script) {
					state = escaped
					i += len("/script>")
				} else {
					i += 1 + matching(b[i+1:], script)
				}
			}
		case i+1 == len(b):
			return len(b)
		case b[i+1] == '/':
			if endsRaw(b[i:], script) {
				return i
			}
			i += 2 + matching(b[i+2:], script)
		case isLetter(b[i+1]):
			i++
			n := matching(b[i:], script)
			if i += n; n == len(script) && i < len(b) && tagClasses[b[i]]&endsTag != 0 {
				state = double
				i++
			}
		default:
			state = plain
			i++
		}
		dashes = 0
	}
	return len(b)
}

// matching returns how many bytes of b equal the word, ignoring case.
func matching(b, word []byte) int {
	n := 0
	for n < len(b) && n < len(word) && b[n]|0x20 == word[n] {
		n++
	}
	return n
}
