package extract

import (
	"encoding/json"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/recrawl/recrawl/parse/extract/internal/dom"
)

// JSONLD returns the values of the JSON-LD blocks of the page, as encoding/json decodes them; blocks that
// are not JSON are left out. The caller must not change them.
func (a *Article) JSONLD() []any { return a.data }

// dataFacts are the facts of an article, as JSON-LD says.
type dataFacts struct {
	headline, author, published, modified, description, image, site, language string
	rank                                                                      int
}

// rankOf orders the types of schema.org by how likely they are about the page as a whole.
func rankOf(types []string) int {
	best := 0
	for _, t := range types {
		r := 0
		switch {
		case strings.HasSuffix(t, "Article") || strings.HasSuffix(t, "Posting") || t == "Report" || t == "Recipe" || t == "Review" || t == "VideoObject" || t == "JobPosting" || t == "Event" || t == "Course" || t == "Book":
			r = 3
		case t == "Product" || t == "ProductGroup" || t == "SoftwareApplication":
			r = 2
		case strings.HasSuffix(t, "WebPage"):
			r = 1
		}
		best = max(best, r)
	}
	return best
}

func (a *Article) dataFacts() (f dataFacts) {
	for _, v := range a.data {
		eachObject(v, 0, func(o map[string]any) {
			r := rankOf(stringsOf(o["@type"]))
			if r == 0 || r <= f.rank {
				return
			}
			f.rank = r
			set := func(s *string, v string) {
				if v != "" {
					*s = dom.Fold(v)
				}
			}
			set(&f.headline, first(text(o["headline"]), text(o["name"])))
			set(&f.author, strings.Join(names(o["author"]), ", "))
			set(&f.published, text(o["datePublished"]))
			set(&f.modified, text(o["dateModified"]))
			set(&f.description, text(o["description"]))
			set(&f.image, urlOf(o["image"]))
			set(&f.site, strings.Join(names(o["publisher"]), ", "))
			set(&f.language, text(o["inLanguage"]))
		})
	}
	return f
}

// articleBody returns the text of an article as JSON-LD has it.
func (a *Article) articleBody() (body string) {
	for _, v := range a.data {
		eachObject(v, 0, func(o map[string]any) {
			if t := text(o["articleBody"]); len(t) > len(body) {
				body = t
			}
		})
	}
	if strings.Contains(body, "</") {
		body = textOfHTML(body)
	}
	var lines []string
	for l := range strings.Lines(body) {
		if l = dom.Fold(l); l != "" {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines, "\n")
}

// maxNesting is how deep objects are looked into.
const maxNesting = 6

// eachObject calls f for the objects of a value, outer ones first.
func eachObject(v any, depth int, f func(map[string]any)) {
	if depth > maxNesting {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			eachObject(e, depth+1, f)
		}
	case map[string]any:
		f(v)
		for _, k := range [...]string{"@graph", "mainEntity", "mainEntityOfPage"} {
			eachObject(v[k], depth+1, f)
		}
	}
}

func stringsOf(v any) (all []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			if s, ok := e.(string); ok {
				all = append(all, s)
			}
		}
	}
	return all
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return html.UnescapeString(v)
	case json.Number:
		return v.String()
	case []any:
		if len(v) > 0 {
			return text(v[0])
		}
	case map[string]any:
		return text(v["@value"])
	}
	return ""
}

// names returns the names of people or organizations.
func names(v any) (all []string) {
	switch v := v.(type) {
	case string:
		if v != "" && !strings.Contains(v, "://") {
			return []string{html.UnescapeString(v)}
		}
	case map[string]any:
		if n := text(v["name"]); n != "" {
			return []string{n}
		}
	case []any:
		for _, e := range v[:min(len(v), 10)] {
			if _, nested := e.([]any); !nested {
				all = append(all, names(e)...)
			}
		}
	}
	return all
}

func urlOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case map[string]any:
		return text(v["url"])
	case []any:
		if len(v) > 0 {
			if _, nested := v[0].([]any); !nested {
				return urlOf(v[0])
			}
		}
	}
	return ""
}

// Item is an item of microdata.
type Item struct {
	// Types are its types, mostly URLs of schema.org; ID is its global identifier.
	Types []string `json:"types,omitempty"`
	ID    string   `json:"id,omitempty"`
	// Properties are in the order of the page. A name may occur more than once.
	Properties []ItemProperty `json:"properties,omitempty"`
}

// ItemProperty is a property of an item: a value, or an item if Item is not nil.
type ItemProperty struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
	Item  *Item  `json:"item,omitempty"`
}

// maxItems limits items and properties of a page.
const maxItems = 5000

// Microdata returns the items of the page that are in no other item. References by itemref are not followed.
func (a *Article) Microdata() []Item {
	var top []*Item
	left := maxItems
	var walk func(n *html.Node, in *Item)
	walk = func(n *html.Node, in *Item) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if c.Type != html.ElementNode {
				continue
			}
			inner := in
			prop := dom.Attr(c, "itemprop")
			if dom.HasAttr(c, "itemscope") {
				inner = &Item{Types: strings.Fields(dom.Attr(c, "itemtype")), ID: dom.Attr(c, "itemid")}
			}
			switch {
			case left <= 0:
				return
			case prop != "" && in != nil:
				for name := range strings.FieldsSeq(prop) {
					left--
					p := ItemProperty{Name: name}
					if inner != in {
						p.Item = inner
					} else {
						p.Value = a.itemValue(c)
					}
					in.Properties = append(in.Properties, p)
				}
			case inner != in:
				left--
				top = append(top, inner)
			}
			walk(c, inner)
		}
	}
	walk(a.page.Doc, nil)
	items := make([]Item, len(top))
	for i := range top {
		items[i] = *top[i]
	}
	return items
}

// itemValue returns the value of a property, as the HTML standard has it.
func (a *Article) itemValue(n *html.Node) string {
	if dom.HasAttr(n, "content") {
		return dom.Clip(dom.Fold(dom.Attr(n, "content")), maxValue)
	}
	switch n.DataAtom {
	case atom.A, atom.Area, atom.Link:
		return a.resolve(dom.Attr(n, "href"))
	case atom.Img, atom.Audio, atom.Video, atom.Embed, atom.Iframe, atom.Source, atom.Track:
		return a.resolve(dom.Attr(n, "src"))
	case atom.Data, atom.Meter:
		return dom.Attr(n, "value")
	case atom.Time:
		if v := dom.Attr(n, "datetime"); v != "" {
			return v
		}
	}
	return dom.Text(n, maxValue)
}

// Table is a table of the page.
type Table struct {
	// Caption is its caption. Header has the cells of its first row if all of them are th.
	Caption string   `json:"caption,omitempty"`
	Header  []string `json:"header,omitempty"`
	// Rows are the other rows. A cell that spans columns is repeated.
	Rows [][]string `json:"rows"`
}

// Limits of tables: how many, cells of all together, columns that a cell may span, and bytes of a cell.
const (
	maxTables, maxCells = 200, 20_000
	maxSpan, maxCell    = 100, 2000
)

// Tables returns the tables of the page that have more than one row and column and no table inside, in the
// order of the page, which leaves out those for layout. At most 200, with 20,000 cells in all.
func (a *Article) Tables() []Table {
	var tables []Table
	left := maxCells
	for n := range dom.Elements(a.page.Doc) {
		if left <= 0 || len(tables) >= maxTables {
			break
		}
		if n.DataAtom != atom.Table || hasTable(n) {
			continue
		}
		t := Table{}
		wide := 0
		for c := range dom.Elements(n) {
			switch c.DataAtom {
			case atom.Caption:
				t.Caption = dom.Text(c, maxCell)
			case atom.Tr:
				cells, heads := cellsOf(c, &left)
				wide = max(wide, len(cells))
				if heads && t.Header == nil && t.Rows == nil {
					t.Header = cells
				} else if len(cells) > 0 {
					t.Rows = append(t.Rows, cells)
				}
			}
			if left <= 0 {
				break
			}
		}
		if wide > 1 && len(t.Rows) > 0 && (len(t.Rows) > 1 || t.Header != nil) {
			tables = append(tables, t)
		}
	}
	return tables
}

func hasTable(n *html.Node) bool {
	for c := range dom.Elements(n) {
		if c.DataAtom == atom.Table {
			return true
		}
	}
	return false
}

func cellsOf(tr *html.Node, left *int) (cells []string, heads bool) {
	heads = true
	for c := tr.FirstChild; c != nil && *left > 0; c = c.NextSibling {
		if c.DataAtom != atom.Td && c.DataAtom != atom.Th {
			continue
		}
		heads = heads && c.DataAtom == atom.Th
		s := dom.Text(c, maxCell)
		for range max(1, min(atoi(dom.Attr(c, "colspan")), maxSpan)) {
			cells = append(cells, s)
			*left--
		}
	}
	return cells, heads && len(cells) > 0
}

func atoi(s string) (n int) {
	for _, c := range strings.TrimSpace(s) {
		if c < '0' || c > '9' || n > maxSpan {
			break
		}
		n = 10*n + int(c-'0')
	}
	return n
}
