package scoring

import "slices"

// Metadata passes properties of a page on to the pages it links to. A new
// record keeps those of its best link; an existing one is not changed. The zero
// value passes on nothing.
//
// A property comes from the record of the page, which has it from a seed or
// from a link; or from the page itself, where a parser finds it in meta
// elements. Three lists of names say how far it goes:
//
//	record  --DB-->  content  --Content-->  parse  --Parse-->  links
//
// So a property of the record is passed on if its name is in DB and Parse, and
// one of the page itself if it is in Parse. If both have it, that of the page
// wins, unless the name is also in Content. Names are matched exactly.
//
// Response headers are not properties of the page here; in Nutch they are.
//
// A page may say anything about itself: do not list names under which a policy
// keeps its state. (Nutch: scoring-metadata.)
type Metadata struct {
	// Base leaves the score alone.
	Base
	// DB lists the names taken from the record of the page. (Nutch:
	// scoring.db.md.)
	DB []string
	// Content lists those of DB that override what the page says of itself.
	// (Nutch: scoring.content.md.)
	Content []string
	// Parse lists the names passed on to links. (Nutch: scoring.parse.md.)
	Parse []string
	// NutchCompat passes nothing to the target of a redirect: in Nutch the
	// target gets a copy of the whole record, which is the job of
	// fetch.Options.NutchCompat.
	NutchCompat bool
}

var _ Filter = Metadata{}

// URLMeta returns the filter that passes tags of seeds on to everything found
// from them. (Nutch: urlmeta, urlmeta.tags.)
func URLMeta(tags ...string) Metadata { return Metadata{DB: tags, Content: tags, Parse: tags} }

// Distribute gives each link the properties.
func (m Metadata) Distribute(p Page, links []Link) float64 {
	if len(links) == 0 || m.NutchCompat && p.Content == nil {
		return 0
	}
	for _, name := range m.Parse {
		value, ok := m.find(p, name)
		if !ok {
			continue
		}
		for i := range links {
			if !links[i].Drop {
				links[i].Meta.Set(name, value)
			}
		}
	}
	return 0
}

func (m Metadata) find(p Page, name string) (string, bool) {
	record, ok := "", false
	if slices.Contains(m.DB, name) {
		record, ok = p.Datum.Meta.Get(name)
	}
	if ok && slices.Contains(m.Content, name) || p.Parsed == nil {
		return record, ok
	}
	for _, prop := range p.Parsed.Meta {
		if prop.Name == name {
			return prop.Value, true
		}
	}
	return record, ok
}
