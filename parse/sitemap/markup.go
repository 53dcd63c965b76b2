package sitemap

import (
	"bytes"
	"strconv"

	"github.com/recrawl/recrawl/internal/weburl"
)

const (
	// rootWithin is how far the first element of a sitemap or feed is searched.
	rootWithin = 1 << 20

	// maxField limits dates, words and numbers.
	maxField = 128
)

// field is an element of an entry that matters.
type field uint8

const (
	noField field = iota
	locField
	linkField
	guidField
	dateField // the date that counts
	oldField  // one that counts if there is no better one
	freqField
	priorityField
	bareField // the text of an entry without elements, which may be its URL
)

// markup reads XML. Its state is its position: before the root, between
// entries, in an entry, or in a field of one.
type markup struct {
	r *Reader
	s *scanner
	urls

	first  bool // no element was read yet
	format Format
	root   uint32 // its name
	closed bool   // the root is
	feed   *weburl.Base

	within bool // an entry
	entry  uint32
	prefix uint32 // of the name of the entry
	open   nest   // the elements within the entry; the first is the field
	field  field
	val    value

	e     Entry
	rank  int   // of the element that provided e.URL
	dated field // the element that provided e.Modified
}

// markup reads a document of XML.
func (r *Reader) markup() {
	m := &markup{r: r, s: &r.scan, urls: newURLs(r.opts), first: true}
	m.feed = m.base
	r.parse = m.next
}

func (m *markup) next() (Entry, bool) {
	for {
		var v *value
		if m.field != noField {
			v = &m.val
		}
		var e Entry
		var ok bool
		switch m.s.next(v) {
		case startTag:
			e, ok = m.start()
		case endTag:
			e, ok = m.end()
		case endOfInput:
			if m.within {
				// The field is incomplete, but the URL may be whole.
				m.field, m.closed, m.within = noField, false, false
				e, ok = m.e, m.e.URL != ""
				break
			}
			if m.format != NoFormat && !m.closed {
				m.r.unfinished = "the document ends before its last tag"
			}
			return Entry{}, false
		}
		if ok {
			return e, true
		}
		if m.format == NoFormat && (m.r.text.n > rootWithin || isHTML(m.s.local)) {
			return Entry{}, false
		}
	}
}

// isHTML reports whether a name is that of an element of a web page, which is
// no document of ours and contains none.
func isHTML(local []byte) bool {
	switch string(local) {
	case "html", "head", "body":
		return true
	}
	return false
}

func (m *markup) start() (Entry, bool) {
	name, prefix, local := m.name()
	if m.format == NoFormat && !m.begin(name, local) {
		return Entry{}, false
	}
	if !m.within {
		switch {
		case name == m.root:
			m.closed = m.s.empty
			if m.format == Atom {
				m.base = m.xmlBase(m.feed)
				m.feed = m.base
			}
		case m.isEntry(local):
			m.enter(name, prefix)
		}
		return Entry{}, false
	}
	if name == m.entry {
		// The last one was not closed.
		m.s.faults++
		m.leaveField()
		e, ok := m.finish()
		m.enter(name, prefix)
		return e, ok
	}
	if m.field == bareField {
		m.field = noField
	}
	f := m.fieldOf(prefix, local)
	if f != noField && m.field != noField {
		m.s.faults++
		m.leaveField()
		m.open = nest{}
	}
	if m.open.n > 0 {
		f = noField
	} else if string(local) == "link" {
		m.link(prefix)
	}
	if f == guidField && m.notPermanent() {
		f = noField
	}
	if m.s.empty {
		return Entry{}, false
	}
	m.open.push(name)
	if f != noField {
		m.field = f
		m.val.reset(maxField)
		if f == locField || f == linkField || f == guidField {
			// A reference of six bytes may stand for one.
			m.val.reset(6*m.max + maxField)
		}
	}
	return Entry{}, false
}

// begin checks whether an element is the root of a known kind of document.
func (m *markup) begin(name uint32, local []byte) bool {
	first := m.first
	m.first = false
	switch string(local) {
	case "urlset":
		m.format = URLSet
	case "sitemapindex":
		m.format = Index
	case "rss":
		m.format = RSS
	case "rdf":
		m.format = RDF
	case "feed":
		m.format = Atom
	}
	m.root = name
	if m.format == NoFormat && first {
		// The root may have been left out.
		switch string(local) {
		case "url":
			m.format, m.root, m.closed = URLSet, 0, true
		case "sitemap":
			m.format, m.root, m.closed = Index, 0, true
		case "channel":
			m.format = RSS
		}
	}
	m.r.report.Format = m.format
	return m.format != NoFormat
}

func (m *markup) isEntry(local []byte) bool {
	switch m.format {
	case URLSet, Index:
		return string(local) == "url" || string(local) == "sitemap"
	case RSS, RDF:
		return string(local) == "item"
	default:
		return string(local) == "entry"
	}
}

// enter begins an entry.
func (m *markup) enter(name, prefix uint32) {
	m.e, m.rank, m.dated = Entry{Sitemap: string(m.s.local) == "sitemap"}, 0, noField
	m.within, m.entry, m.prefix, m.open, m.field = true, name, prefix, nest{}, noField
	switch m.format {
	case URLSet, Index:
		m.field = bareField
		m.val.reset(6*m.max + maxField)
	case Atom:
		m.base = m.xmlBase(m.feed)
	case RDF:
		for {
			name, val, ok := m.s.attr()
			if !ok {
				break
			}
			if string(name) == "rdf:about" || string(name) == "about" {
				m.found(1, unescape(val))
			}
		}
	}
	if m.s.empty {
		m.finish() // as if it were not there
	}
}

func (m *markup) fieldOf(prefix uint32, local []byte) field {
	own := prefix == m.prefix
	switch m.format {
	case URLSet, Index:
		if !own {
			return noField
		}
		switch string(local) {
		case "loc":
			return locField
		case "lastmod":
			return dateField
		case "changefreq":
			return freqField
		case "priority":
			return priorityField
		}
	case RSS, RDF:
		switch string(local) {
		case "link":
			if own {
				return linkField
			}
		case "guid":
			if own {
				return guidField
			}
		case "pubdate":
			if own {
				return dateField
			}
		case "date", "updated": // of Dublin Core and of Atom
			return oldField
		}
	case Atom:
		if !own {
			return noField
		}
		switch string(local) {
		case "updated", "modified":
			return dateField
		case "published", "issued", "created":
			return oldField
		}
	}
	return noField
}

func (m *markup) end() (Entry, bool) {
	name, _, _ := m.name()
	switch {
	case !m.within:
		if name == m.root {
			m.closed = true
		}
		return Entry{}, false
	case name == m.entry || name == m.root:
		if m.open.n > 0 || name == m.root {
			m.s.faults++
		}
		m.closed = m.closed || name == m.root
		m.leaveField()
		return m.finish()
	}
	if closed := m.open.pop(name); closed != 1 {
		m.s.faults++
	}
	if m.open.n == 0 {
		m.leaveField()
	}
	return Entry{}, false
}

// finish ends an entry and returns it if it is one.
func (m *markup) finish() (Entry, bool) {
	m.within, m.base = false, m.feed
	if m.e.URL == "" {
		m.r.report.BadURLs++
		return Entry{}, false
	}
	return m.e, true
}

// leaveField evaluates the field that ends.
func (m *markup) leaveField() {
	f, v := m.field, bytes.TrimSpace(m.val.buf)
	m.field = noField
	if f == noField || len(v) == 0 {
		return
	}
	bad := m.val.over
	switch f {
	case locField, linkField:
		if !bad {
			m.found(4, v)
		}
		return
	case bareField:
		if !bad && absolute(v) {
			m.s.faults++
			m.found(1, v)
		}
		return
	case guidField:
		if !bad && absolute(v) {
			m.found(2, v)
		}
		return
	case dateField, oldField:
		if m.dated == dateField || m.dated == f {
			return
		}
		t, span, ok := parseDate(v)
		if ok && !bad {
			m.e.Modified, m.e.Span, m.dated = t, span, f
		}
		bad = bad || !ok
	case freqField:
		freq := string(bytes.ToLower(v))
		every := interval(freq)
		if every > 0 && m.e.ChangeFreq == "" {
			m.e.ChangeFreq, m.e.Interval = freq, every
		}
		bad = every == 0
	case priorityField:
		p, ok := priority(v)
		if ok && !bad && !m.e.HasPriority {
			m.e.Priority, m.e.HasPriority = p, true
		}
		bad = bad || !ok
	}
	if bad {
		m.r.report.BadFields++
	}
}

// found sets the URL of the entry, unless it has a better one.
func (m *markup) found(rank int, ref []byte) {
	if rank <= m.rank {
		return
	}
	if u := m.resolve(ref, m.format != URLSet && m.format != Index); u != "" {
		m.e.URL, m.rank = u, rank
	}
}

// link reads the attributes of a link of Atom, or of a feed with Atom links in it.
func (m *markup) link(prefix uint32) {
	if m.format == URLSet || m.format == Index || prefix != m.prefix {
		return
	}
	var href []byte
	alternate, rank, base := true, 3, m.base
	based := false
	for {
		name, val, ok := m.s.attr()
		if !ok {
			break
		}
		switch string(name) {
		case "href":
			href = unescape(val)
		case "rel":
			alternate = hasWord(val, "alternate")
		case "type":
			if !bytes.Contains(val, []byte("html")) {
				rank = 2
			}
		case "xml:base":
			if !based {
				m.base, based = m.rebase(base, unescape(val)), true
			}
		}
	}
	if alternate && href != nil {
		m.found(rank, href)
	}
	m.base = base
}

// notPermanent reports whether a guid says that it is no URL.
func (m *markup) notPermanent() bool {
	for {
		name, val, ok := m.s.attr()
		if !ok {
			return false
		}
		if string(name) == "ispermalink" {
			return bytes.EqualFold(bytes.TrimSpace(val), []byte("false"))
		}
	}
}

func (m *markup) xmlBase(base *weburl.Base) *weburl.Base {
	for {
		name, val, ok := m.s.attr()
		if !ok {
			return base
		}
		if string(name) == "xml:base" {
			return m.rebase(base, unescape(val))
		}
	}
}

// name returns hashes (FNV-1a) of the name of the tag and of its prefix. A
// document whose names collide harms only itself.
func (m *markup) name() (name, prefix uint32, local []byte) {
	name = 2166136261
	for _, c := range m.s.prefix {
		name = (name ^ uint32(c)) * 16777619
	}
	prefix = name
	name = (name ^ ':') * 16777619
	for _, c := range m.s.local {
		name = (name ^ uint32(c)) * 16777619
	}
	return name, prefix, m.s.local
}

// nest holds the names of the open elements. Deep ones are only counted.
type nest struct {
	n     int
	names [16]uint32
}

func (s *nest) push(name uint32) {
	if s.n < len(s.names) {
		s.names[s.n] = name
	}
	s.n++
}

// pop closes the innermost element of that name, and those within. It returns
// how many that is: none if there is no such element.
func (s *nest) pop(name uint32) int {
	if s.n > len(s.names) {
		s.n--
		return 1
	}
	for i := s.n - 1; i >= 0; i-- {
		if s.names[i] == name {
			closed := s.n - i
			s.n = i
			return closed
		}
	}
	return 0
}

func hasWord(b []byte, word string) bool {
	for f := range bytes.FieldsSeq(b) {
		if bytes.EqualFold(f, []byte(word)) {
			return true
		}
	}
	return false
}

// priority parses a number from 0 to 1, in digits. Some write a comma.
func priority(b []byte) (float32, bool) {
	if len(b) > 32 {
		return 0, false
	}
	var buf [32]byte
	n := copy(buf[:], b)
	for i, c := range buf[:n] {
		switch {
		case c == ',':
			buf[i] = '.'
		case c != '.' && (c < '0' || c > '9') && !(i == 0 && c == '+'):
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(string(buf[:n]), 32)
	return float32(f), err == nil && f >= 0 && f <= 1
}
