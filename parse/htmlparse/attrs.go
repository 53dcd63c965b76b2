package htmlparse

// attrs are the attributes of a tag that matter here.
type attrs struct {
	href, src, data         []byte
	rel, typ, alt, title    []byte
	name, property          []byte
	content, pragma         []byte
	lang, encoding          []byte
	hasHref, linked, shadow bool // linked: href is that of XLink
	font                    bool // has one of the attributes of font that end foreign content
}

func (s *scan) attrs() (a attrs) {
	for i := range s.z.attr {
		at := &s.z.attr[i]
		var lower [16]byte
		if len(at.name) > len(lower) {
			continue
		}
		for i, c := range at.name {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			lower[i] = c
		}
		switch string(lower[:len(at.name)]) {
		case "href":
			if !a.hasHref || a.linked {
				a.href, a.hasHref, a.linked = s.z.value(at.value), true, false
			}
		case "xlink:href":
			if !a.hasHref {
				a.href, a.hasHref, a.linked = s.z.value(at.value), true, true
			}
		case "src":
			s.first(&a.src, at)
		case "data":
			s.first(&a.data, at)
		case "rel":
			s.first(&a.rel, at)
		case "type":
			s.first(&a.typ, at)
		case "alt":
			s.first(&a.alt, at)
		case "title":
			s.first(&a.title, at)
		case "name":
			s.first(&a.name, at)
		case "property":
			s.first(&a.property, at)
		case "content":
			s.first(&a.content, at)
		case "http-equiv":
			s.first(&a.pragma, at)
		case "lang":
			s.first(&a.lang, at)
		case "encoding":
			s.first(&a.encoding, at)
		case "color", "face", "size":
			a.font = true
		case "shadowrootmode":
			a.shadow = true
		}
	}
	if a.name == nil {
		a.name = a.property
	}
	return a
}

// first sets a value that was not set: of several attributes of the same name
// the first counts.
func (s *scan) first(value *[]byte, at *attribute) {
	if *value == nil {
		*value = s.z.value(at.value)
	}
}
