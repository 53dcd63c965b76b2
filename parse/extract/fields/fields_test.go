package fields_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse/extract/fields"
	"github.com/recrawl/recrawl/parse/htmlparse"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/stores/memstore"
)

const shopRules = `
rules:
  - url: http*://shop.example/p/*
    fields:
      price: {css: "#main .price", as: number}
      name: {xpath: "//h1"}
      stock: {css: "link[itemprop=availability]", attr: href}
      sku: {jsonld: Product.sku}
      offer: {jsonld: "Product.offers[1].price"}
      offers: {jsonld: Product.offers.price, all: true}
      brand: {jsonld: Product.brand}
      tags: {css: ".tags a", all: true}
      links: {xpath: "//ul[@class='tags']//a/@href", as: url, all: true}
      count: {xpath: "count(//ul[@class='tags']/li)"}
      rate:
        - {jsonld: Product.aggregateRating.ratingValue}
        - {css: ".stars", regexp: "([0-9.]+) of 5"}
      build: {regexp: 'data-build="(\w+)"'}
      nothing: {css: ".not-there"}
  - url: [http://shop.example/*]
    fields:
      price: {css: ".never"}
      page: {xpath: "string(//title)"}
`

const shopPage = `<!doctype html><html data-build="a1b2"><head><title>Kettle</title><base href="/base/">
<meta name="field.price" content="0.01">
<script type="application/ld+json">{"@context":"https://schema.org","@graph":[{"@type":"BreadcrumbList"},{"@type":["Product"],"sku":"K-17","brand":{"@type":"Brand","name":"Exe &amp; Sons"},"offers":[{"price":34.90},{"price":"29.90"}]}]}</script>
<body><div class="price">1.00</div><div id=main><h1>Steel
  kettle</h1><p class="big price">Now: € 1.234,50 <b>only</b></p><link itemprop="availability" href="https://schema.org/InStock">
<ul class="tags"><li><a href="k?a=1&amp;b=2">kitchen</a><li><a href="/s">steel</a></ul><span class="stars">4.5 of 5</span></div>`

func TestFieldsAreExtracted(t *testing.T) {
	r, err := fields.Parse("shop.yaml", []byte(shopRules))
	if err != nil {
		t.Fatal(err)
	}
	p := fields.Parser{Rules: r, Parser: htmlparse.Mux(nil)}
	got, err := p.Parse(t.Context(), &page.Content{URL: "http://shop.example/p/1", Type: "text/html", Body: []byte(shopPage)})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"price": "1234.50", "name": "Steel kettle", "stock": "https://schema.org/InStock", "sku": "K-17", "offer": "29.90", "offers": "34.90|29.90",
		"brand": "Exe & Sons", "tags": "kitchen|steel", "links": "http://shop.example/base/k?a=1&b=2|http://shop.example/s", "count": "2", "rate": "4.5", "build": "a1b2", "page": "Kettle",
	}
	all := got.Fields()
	for name, v := range want {
		if s := strings.Join(all[name], "|"); s != v {
			t.Errorf("%s: %q, want %q", name, s, v)
		}
	}
	if len(all) != len(want) {
		t.Errorf("%v", all)
	}
	if got, err := p.Parse(t.Context(), &page.Content{URL: "http://other.example/p/1", Type: "text/html", Body: []byte(shopPage)}); err != nil || got.Fields() != nil || got.Title != "Kettle" {
		t.Errorf("a page without a rule: %v, %v", got, err)
	}
	if got, err := p.Parse(t.Context(), &page.Content{URL: "http://shop.example/p/1", Type: "text/plain", Body: []byte("a text")}); err != nil || got.Fields() != nil || got.Text != "a text" {
		t.Errorf("a text: %v, %v", got, err)
	}
}

func TestNumbersAreReadInTheFormsOfManyCountries(t *testing.T) {
	for in, want := range map[string]string{
		"€34.90": "34.90", "34,90 €": "34.90", "1.234,50": "1234.50", "1,234.50": "1234.50", "1,234": "1234", "1.234": "1234", "12 345,6 kr": "12345.6",
		"1'234.50 CHF": "1234.50", "1,234,567": "1234567", "0.123": "0.123", "0,5": "0.5", "-3": "-3", "-€5": "-5", "about 7 days": "7", "1234.567": "1234.567", "no": "",
		"5 for 3": "5", "from 10 to 20": "10", "10-20": "10", "₹1,23,456.00": "123456.00", "1.": "1", "3.5.2026": "352026",
	} {
		r, err := fields.Parse("f", []byte("rules: [{url: '*', fields: {n: {css: p, as: number}}}]"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Extract(t.Context(), &page.Content{URL: "http://a.example/", Type: "text/html", Body: []byte("<p>" + in)})
		if err != nil {
			t.Fatal(err)
		}
		s := ""
		if len(got) > 0 {
			s = got[0].Value
		}
		if s != want {
			t.Errorf("%q: %q, want %q", in, s, want)
		}
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	const head = "rules:\n- url: 'http://a.example/*'\n  fields:\n"
	for text, want := range map[string]string{
		"":                                        "f.yaml: it is empty",
		"rules: [":                                "f.yaml:1: did not find expected node content",
		"a: 1":                                    `f.yaml:1: unknown key "a"; want rules`,
		"rules: 5":                                "f.yaml:1: rules must be a list",
		"rules: []":                               "f.yaml:1: there are no rules",
		"rules:\n- fields: {a: {css: p}}":         "f.yaml:2: the rule has no url",
		"rules:\n- url: x\n":                      "f.yaml:2: the rule has no fields",
		"rules:\n- url: x\n  field: y":            `f.yaml:3: unknown key "field" of a rule; want url and fields`,
		head + "    a b: {css: p}":                `f.yaml:4: "a b" is no name of a field: use letters, digits, _ and -`,
		head + "    a: {css: 'p['}":               "f.yaml:4: field a: css: ",
		head + "    a: {xpath: '//['}":            "f.yaml:4: field a: xpath: ",
		head + "    a:\n      regexp: '('":        "f.yaml:5: field a: regexp: error parsing regexp: missing closing ): `(`",
		head + "    a: {regexp: 'x*'}":            "f.yaml:4: field a: regexp: it matches the empty string",
		head + "    a: {jsonld: 'a..b'}":          `f.yaml:4: field a: jsonld: "a..b" is not a path such as Product.offers[0].price`,
		head + "    a: {jsonld: Product}":         `f.yaml:4: field a: jsonld: "Product" names no property of a Product`,
		head + "    a: {css: p, xpath: //p}":      "f.yaml:4: field a: css, xpath and jsonld exclude each other",
		head + "    a: {all: true}":               "f.yaml:4: field a: no source; want css, xpath, jsonld or regexp",
		head + "    a: {jsonld: b, attr: c}":      "f.yaml:4: field a: attr needs css or xpath",
		head + "    a: {css: p, as: int}":         `f.yaml:4: field a: as: "int" is not one of number and url`,
		head + "    a: {css: p, all: 1}":          `f.yaml:4: field a: all: "1" is not one of true and false`,
		head + "    a: {csss: p}":                 `f.yaml:4: field a: unknown key "csss"; want css, xpath, jsonld, regexp, attr, as or all`,
		head + "    a: {css: p}\n    a: {css: q}": `f.yaml:5: "a" is there twice`,
		head + "    a: []":                        "f.yaml:4: field a has no source",
		head + "    a: p":                         "f.yaml:4: field a must be a mapping",
	} {
		_, err := fields.Parse("f.yaml", []byte(text))
		var e *fields.Error
		if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
	if _, err := fields.Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestHostilePagesAreBounded uses selectors whose cost may grow faster than the page.
func TestHostilePagesAreBounded(t *testing.T) {
	r, err := fields.Parse("f", []byte(`
rules:
- url: '*'
  fields:
    a: {css: "li:nth-child(2)", all: true}
    b: {css: "div div div div .x", all: true}
    c: {xpath: "//div//div//a", all: true}
    d: {xpath: "//li[2]", all: true}
    e: {regexp: "(a+)+b", all: true}
    f: {jsonld: X.a.b, all: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	const size = 100 << 10
	for name, part := range map[string]string{"items": "<li>a", "divs": "<div>", "links": "<div><a>a</div>", "letters": "a", "JSON": `<script type="application/ld+json">[[[[[[[[[[[{"@type":"X"}]]]]]]]]]]]</script>`} {
		start := time.Now()
		if _, err := r.Extract(t.Context(), &page.Content{URL: "http://a.example/", Type: "text/html", Body: []byte(strings.Repeat(part, size/len(part)))}); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if took := time.Since(start); took > 12*time.Second {
			t.Errorf("%s: %v", name, took)
		} else {
			t.Log(name, took)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(shopRules, shopPage)
	f.Fuzz(func(t *testing.T, rules, body string) {
		r, err := fields.Parse("f", []byte(rules))
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r.Extract(ctx, &page.Content{URL: "http://shop.example/p/1", Type: "text/html", Body: []byte(body)})
	})
}

// TestOnlyThePriceIsAChange crawls a shop three times. Each time the page has other adverts, and the last time
// another price: then, and only then, it has changed. The field is in the segment, the event and the document.
func TestOnlyThePriceIsAChange(t *testing.T) {
	var visit atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/kettle" {
			http.NotFound(w, r)
			return
		}
		n := visit.Add(1)
		price := "34.90"
		if n == 3 {
			price = "29.90"
		}
		fmt.Fprintf(w, "<title>Kettle</title><p>Visitor %d of today, and an advert: buy %d kettles!</p><p class=price>€ %s</p>", n, n, price)
	}))
	defer server.Close()
	rules, err := fields.Parse("shop.yaml", []byte("rules: [{url: '*/kettle', fields: {price: {css: .price, as: number}}}]"))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var db memstore.DB
	defer db.Close()
	var events []string
	crawler, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Segments: db.Segments(), Links: db.Links()}, recrawl.Options{
		Agent: "example", HTTP: httpproto.Options{Guard: httpproto.Guard{AllowPrivate: true}}, Now: func() time.Time { return now },
		Fetch:     fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
		Parser:    fields.Parser{Rules: rules, Parser: htmlparse.Mux(nil)},
		Signature: fields.Signature{Names: []string{"price"}},
		OnPage: func(ctx context.Context, e recrawl.PageEvent) error {
			p, err := e.Parsed(ctx)
			events = append(events, fmt.Sprint(e.Kind, p.Fields()["price"]))
			return err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer crawler.Close()
	if _, err := crawler.Inject(t.Context(), server.URL+"/kettle"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := crawler.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		now = now.AddDate(1, 0, 0)
	}
	if got := strings.Join(events, " "); got != "new [34.90] changed [29.90]" || visit.Load() != 3 {
		t.Errorf("after %d visits: %s", visit.Load(), got)
	}
	var out strings.Builder
	if _, err := index.Run(t.Context(), db.Crawl(), db.Links(), db.Segments(), index.NewJSONL(&out), index.Options{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `"fields":{"price":["29.90"]}`) {
		t.Error(out.String())
	}
}
