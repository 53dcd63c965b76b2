// Package fields extracts named values from pages, by rules in a YAML file: CSS selectors, XPath, paths of
// JSON-LD, regular expressions. [Parser] adds them to what a parser found, so that they are kept in segments
// and reach page events and index documents; [Signature] compares pages by them, so that a page changes when
// its price does, say. It guesses nothing: a field is where its rule says. Start with [Load]; [Rules] has
// the format of the file.
package fields

import (
	"context"
	"crypto/md5"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/parse/extract/internal/dom"
	"github.com/recrawl/recrawl/signature"
)

// timeout is how long the fields of a page may take.
const timeout = 10 * time.Second

// Limits of the fields of a page: values of a field with all, and bytes of a value.
const (
	maxValues = 100
	maxValue  = 4096
)

// Rules say which fields pages have. They are not changed once loaded; their methods may be called from many
// goroutines at once. In YAML:
//
//	rules:
//	  - url: https://shop.example/*          # or a list; * stands for any characters
//	    fields:
//	      price: {css: ".price", as: number}
//	      name:  {xpath: "//h1"}
//	      stock: {css: "link[itemprop=availability]", attr: href}
//	      sku:   {jsonld: Product.sku}
//	      tags:  {css: ".tags a", all: true}
//	      rate:                              # the first that finds something
//	        - {jsonld: Product.aggregateRating.ratingValue}
//	        - {css: ".stars", regexp: "([0-9.]+) of 5"}
//	      build: {regexp: 'data-build="(\w+)"'}
//
// A field has one source: css, xpath, jsonld, or regexp on the HTML of the page. Of an element the value is its
// text, with white space folded, or the attribute attr. A path of JSON-LD begins with the type of an object, if
// that begins with a capital, and names properties; arrays are looked through, and [0] picks an element. With
// another source, regexp picks a part of the value: its first group, or else the match. "as: number" makes
// "1234.5" of "€ 1.234,50", "as: url" an absolute URL. A field has the first value found, or with
// "all: true" up to 100; a value has up to 4096 bytes. Of several rules for a URL the first with a field counts.
type Rules struct {
	file  string
	rules []rule
}

type rule struct {
	urls   []*regexp.Regexp
	fields []field
}

type field struct {
	name    string
	sources []source
}

// Names returns the names of all fields, sorted.
func (r *Rules) Names() []string {
	var names []string
	for _, rule := range r.rules {
		for _, f := range rule.fields {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Has reports whether a rule has a field of that name.
func (r *Rules) Has(name string) bool { return slices.Contains(r.Names(), name) }

// fieldsOf returns the fields that a page has by its URL.
func (r *Rules) fieldsOf(url string) (all []*field) {
	for i := range r.rules {
		if !slices.ContainsFunc(r.rules[i].urls, func(re *regexp.Regexp) bool { return re.MatchString(url) }) {
			continue
		}
		for j := range r.rules[i].fields {
			f := &r.rules[i].fields[j]
			if !slices.ContainsFunc(all, func(g *field) bool { return g.name == f.name }) {
				all = append(all, f)
			}
		}
	}
	return all
}

// Extract returns the fields of a page, in the order of the rules; nil for a page that no rule is for. The error
// is context.DeadlineExceeded if it takes more than 10 seconds, ctx.Err() if the context is done, and
// parse.ErrUnsupported for a page that is not HTML.
func (r *Rules) Extract(ctx context.Context, c *page.Content) ([]page.Property, error) {
	fields := r.fieldsOf(c.URL)
	if fields == nil {
		return nil, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("fields: %s: %w", c.URL, err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	p, err := dom.Read(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("fields: %s: %w", c.URL, err)
	}
	d := &document{ctx: ctx, Page: p}
	all := []page.Property{}
	for _, f := range fields {
		for i := range f.sources {
			values := f.sources[i].values(d)
			for _, v := range values {
				all = append(all, page.Property{Name: f.name, Value: v})
			}
			if len(values) > 0 {
				break
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("fields: %s: %w", c.URL, err)
	}
	return all, nil
}

// document is a page that is being read.
type document struct {
	ctx context.Context
	*dom.Page
	data     []any // of JSON-LD
	dataRead bool
}

// jsonLD returns the JSON-LD of the page.
func (d *document) jsonLD() []any {
	if !d.dataRead {
		d.dataRead = true
		for n := range dom.Elements(d.Doc) {
			values, _ := dom.JSONLD(n)
			d.data = append(d.data, values...)
		}
	}
	return d.data
}

// Parser is a [parse.Parser] that adds the fields of a page to the properties that another parser found: see
// [page.Parsed.Fields].
type Parser struct {
	// Rules say which fields pages have, Parser reads everything else. Both are required.
	Rules  *Rules
	Parser parse.Parser
}

// Parse calls Parser, and adds the fields if it succeeds.
func (p Parser) Parse(ctx context.Context, c *page.Content) (page.Parsed, error) {
	parsed, err := p.Parser.Parse(ctx, c)
	if err != nil {
		return parsed, err
	}
	parsed.Meta = slices.DeleteFunc(parsed.Meta, func(q page.Property) bool { return strings.HasPrefix(q.Name, page.FieldPrefix) })
	found, err := p.Rules.Extract(ctx, c)
	if err != nil {
		// The page is of another type, or time is up: what was parsed is kept.
		parsed.Truncated = parsed.Truncated || ctx.Err() != nil
		return parsed, nil
	}
	for _, f := range found {
		parsed.Meta = append(parsed.Meta, page.Property{Name: page.FieldPrefix + f.Name, Value: f.Value})
	}
	return parsed, nil
}

// Signature is a [signature.Signature] of fields: a page has changed when one of them has, whatever else does.
// It needs a [Parser] that finds them.
type Signature struct {
	// Names are the names of the fields. None means all that a page has.
	Names []string
	// Else compares the pages that have none of these fields. Nil means signature.TextMD5.
	Else signature.Signature
}

var _ signature.Signature = Signature{}

// Name returns "Field(NAME,NAME)", followed by the name of Else.
func (s Signature) Name() string {
	return "Field(" + strings.Join(s.Names, ",") + ")/" + s.other().Name()
}

func (s Signature) other() signature.Signature {
	if s.Else == nil {
		return signature.TextMD5{}
	}
	return s.Else
}

// Sum returns 16 bytes for a page with the fields.
func (s Signature) Sum(c *page.Content, p *page.Parsed) []byte {
	h := md5.New()
	found := false
	if p != nil {
		for _, q := range p.Meta {
			if name, ok := strings.CutPrefix(q.Name, page.FieldPrefix); ok && (len(s.Names) == 0 || slices.Contains(s.Names, name)) {
				found = true
				fmt.Fprintf(h, "%q=%q\n", name, q.Value)
			}
		}
	}
	if !found {
		return s.other().Sum(c, p)
	}
	return h.Sum(nil)
}
