package htmlparse

// An element is what the scan does with a tag.
type element uint8

const (
	inline element = iota // text goes on
	block                 // separates lines
	cell                  // separates words

	// A start tag of these ends foreign content: SVG or MathML (HTML, "the rules for
	// parsing tokens in foreign content").
	inlineBreakout
	blockBreakout
	paragraphElem // p, br: blocks whose end tag ends foreign content as well
	fontElem      // inline; with an attribute color, face or size

	anchorElem
	areaElem
	baseElem
	bodyElem
	embedElem
	frameElem
	htmlElem
	iframeElem
	imgElem
	imageElem // read as img, but not in SVG
	linkElem
	mediaElem // audio, video, source, track
	metaElem
	objectElem

	// The tokenizer reads the content of these as a single text, which is not
	// visible.
	scriptElem
	rawElem // style, textarea, noembed

	xmpElem // visible: xmp, plaintext
	titleElem

	// Their text is left out; the links of noscript and noframes are kept.
	noscriptElem
	noframesElem
	templateElem

	svgElem
	mathElem
	foreignObjectElem // an island of HTML in SVG
	annotationElem    // an island of HTML in MathML, if its encoding says so
	descElem          // desc and metadata of SVG: not visible
)

// elementOf returns what to do with a tag of that name. The bytes are as in the
// page: letter case does not matter.
func elementOf(name []byte) element {
	var lower [16]byte
	if len(name) > len(lower) {
		return inline
	}
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	switch string(lower[:len(name)]) {
	case "a":
		return anchorElem
	case "area":
		return areaElem
	case "base":
		return baseElem
	case "body":
		return bodyElem
	case "embed":
		return embedElem
	case "frame":
		return frameElem
	case "html":
		return htmlElem
	case "iframe":
		return iframeElem
	case "img":
		return imgElem
	case "image":
		return imageElem
	case "link":
		return linkElem
	case "audio", "video", "source", "track":
		return mediaElem
	case "meta":
		return metaElem
	case "object":
		return objectElem
	case "script":
		return scriptElem
	case "style", "textarea", "noembed":
		return rawElem
	case "xmp", "plaintext":
		return xmpElem
	case "title":
		return titleElem
	case "noscript":
		return noscriptElem
	case "noframes":
		return noframesElem
	case "template":
		return templateElem
	case "svg":
		return svgElem
	case "math":
		return mathElem
	case "foreignobject":
		return foreignObjectElem
	case "annotation-xml":
		return annotationElem
	case "desc", "metadata":
		return descElem
	case "td", "th", "option":
		return cell
	case "p", "br":
		return paragraphElem
	case "blockquote", "center", "dd", "div", "dl", "dt", "h1", "h2", "h3", "h4", "h5", "h6",
		"head", "hr", "li", "listing", "menu", "ol", "pre", "table", "ul":
		return blockBreakout
	case "address", "article", "aside", "button", "caption", "details", "dialog", "dir",
		"fieldset", "figcaption", "figure", "footer", "form", "frameset", "header", "hgroup",
		"legend", "main", "nav", "optgroup", "search", "section", "select", "summary",
		"tbody", "tfoot", "thead", "tr":
		return block
	case "font":
		return fontElem
	case "b", "big", "code", "em", "i", "nobr", "ruby", "s", "small", "span",
		"strike", "strong", "sub", "sup", "tt", "u", "var":
		return inlineBreakout
	}
	return inline
}

// raw reports whether the tokenizer treats the content of the element as text.
func (e element) raw() bool {
	switch e {
	case iframeElem, noframesElem, noscriptElem, rawElem, scriptElem, titleElem, xmpElem:
		return true
	}
	return false
}
