package scoring

import "slices"

// Metadata hands properties of a page on to the pages it links to. A record
// that is new keeps what its best link brings; one that exists is not changed.
// The zero value hands on nothing.
//
// A property comes from the record of the page, which has it from a seed or
// from a link; or from the page itself, which a parser finds in its meta
// elements. What it does on its way is said by three lists of names:
//
//	record  --DB-->  content  --Content-->  parse  --Parse-->  links
//
// So a property of the record is handed on if its name is in DB and Parse, and
// one of the page itself if it is in Parse. Where a name is in both, the page
// counts, unless Content has the name too. The names are matched exactly.
//
// Headers of the answer are no properties of the page here, as they are in Nutch.
//
// A page may say anything of itself: do not list names under which a policy
// keeps its state. (Nutch: scoring-metadata.)
type Metadata struct {
	// Base scores nothing.
	Base
	// DB are the names that are taken from the record of the page. (Nutch:
	// scoring.db.md.)
	DB []string
	// Content are those of DB that go before what the page says of itself.
	// (Nutch: scoring.content.md.)
	Content []string
	// Parse are the names that links are given. (Nutch: scoring.parse.md.)
	Parse []string
	// NutchCompat gives the target of a redirect nothing: in Nutch it has a copy
	// of the whole record, which is up to fetch.Options.NutchCompat.
	NutchCompat bool
}

var _ Filter = Metadata{}

// URLMeta returns the filter that hands tags of seeds on to all that is found
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
