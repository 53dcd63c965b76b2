package extract_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse/extract"
	"github.com/recrawl/recrawl/parse/htmlparse"
	"github.com/recrawl/recrawl/signature"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func content(body string) *page.Content {
	return &page.Content{URL: "https://www.example.com/dir/page.html", Type: "text/html; charset=utf-8", Body: []byte(body)}
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "pages", name+".html"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPages compares what is found in pages with golden files.
func TestPages(t *testing.T) {
	files, err := filepath.Glob("testdata/pages/*.html")
	if err != nil || len(files) == 0 {
		t.Fatal("no pages", err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".html")
		t.Run(name, func(t *testing.T) {
			a, err := extract.Extract(t.Context(), content(readPage(t, name)))
			if err != nil {
				t.Fatal(err)
			}
			md, err := a.Markdown()
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			e := json.NewEncoder(&got)
			e.SetEscapeHTML(false)
			e.SetIndent("", "  ")
			if err := e.Encode(map[string]any{"article": a, "tables": a.Tables(), "microdata": a.Microdata(), "jsonld": a.JSONLD()}); err != nil {
				t.Fatal(err)
			}
			got.WriteString("\n" + md + "\n")
			golden := strings.TrimSuffix(f, ".html") + ".golden"
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s differs; -update rewrites it. Got:\n%s", golden, got.Bytes())
			}
		})
	}
}

func sums(t *testing.T, body string) (main, text string) {
	t.Helper()
	c := content(body)
	p, err := new(htmlparse.Parser).Parse(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return string(extract.MainContent{}.Sum(c, &p)), string(signature.TextMD5{}.Sum(c, &p))
}

// TestMainContentIgnoresTheFrame lists changes that a reader of the page does not care about.
func TestMainContentIgnoresTheFrame(t *testing.T) {
	edits := []struct{ name, page, old, new string }{
		{"an entry of the menu", "article", `<li><a href="/help">Help</a></li>`, `<li><a href="/help">Help</a></li><li><a href="/games">Games</a></li>`},
		{"another advert", "article", `Buy two umbrellas, and get a third one for nothing, only this week at Rain and Sons.`, `Our winter tyres hold the road, even when there is none. Now at Wheel and Daughters, from 49.90 a piece.`},
		{"no advert", "article", `<div class="advert">Advertisement<p>Buy two umbrellas, and get a third one for nothing, only this week at Rain and Sons.</p></div>`, ``},
		{"a second advert", "article", `<h2>First results`, `<div class="ad-slot"><p>Learn a language in three weeks, it says here, with the app of the year, and pay nothing for the first.</p></div><h2>First results`},
		{"most read stories", "article", `A headline of another story, number 3, with some words`, `Something else that many people read today`},
		{"a related story", "article", `The bridges of the county are in worse shape than was known, a report says`, `A tunnel instead of the bridge, says a member of the council`},
		{"the form of the date", "article", `3 March 2026, 9:30`, `2 hours ago`},
		{"a time of update below the headline", "article", `<div class="share-buttons">`, `<p>Updated 3 March 2026, 12:45</p><div class="share-buttons">`},
		{"a line with the time in the text", "article", `<h2>First results`, `<p>Last updated: 3 March 2026 at 12:45</p><h2>First results`},
		{"a count of views", "article", `<h2>First results`, `<p>1,234 views</p><h2>First results`},
		{"the year of the copyright", "article", `Copyright 2026`, `Copyright 2027`},
		{"the text about cookies", "article", `to count visits, and to show adverts that fit`, `and to let 312 partners do so, too`},
		{"a count of shares", "article", `<a href="#">Share</a>`, `<a href="#">Share (17)</a>`},
		{"a token in a form", "article", `<footer>`, `<form><input type="hidden" name="csrf" value="abc"></form><footer>`},
		{"a class of the text", "article", `<article>`, `<article class="css-1a2b3c">`},
		{"white space", "article", `<p>Traffic is led`, "<p>\n\n  Traffic   is led"},
		{"the menu of a manual", "docs", `Chapter 7 of the guide`, `Chapter 7 of the new guide`},
		{"the year below a product", "product", `Copyright 2026`, `Copyright 2027`},
		{"the menu above a list", "list", `<li><a href="/shop">Shop</a></li>`, ``},
	}
	for _, e := range edits {
		t.Run(e.name, func(t *testing.T) {
			before := readPage(t, e.page)
			after := strings.Replace(before, e.old, e.new, 1)
			if after == before {
				t.Fatal("the edit changes nothing")
			}
			a, _ := sums(t, before)
			b, _ := sums(t, after)
			if a != b {
				t.Error("the page has changed")
			}
		})
	}
}

// TestMainContentMissesNoChange lists changes that a reader of the page does care about.
func TestMainContentMissesNoChange(t *testing.T) {
	edits := []struct{ name, page, old, new string }{
		{"the headline", "article", `Bridge closed after cracks are found`, `Bridge stays closed for a year`},
		{"a word", "article", `ten minutes longer`, `twelve minutes longer`},
		{"a number", "article", `14,000 vehicles`, `15,000 vehicles`},
		{"a point within a number", "article", `7.5 t`, `75 t`},
		{"a new paragraph", "article", `<h2>First results`, `<p>Update: the footbridge is closed, too.</p><h2>First results`},
		{"a new last paragraph", "article", `</article>`, `<p>The council meets on Friday to talk about the money for a new bridge.</p></article>`},
		{"a short new last paragraph", "article", `</article>`, `<p>The bridge reopened on Friday.</p></article>`},
		{"a correction with a date", "article", `</article>`, `<p>Correction, 4 March 2026: an earlier version of this article said that the bridge was built in 1913.</p></article>`},
		{"a missing paragraph", "article", `<p>Traffic is led`, `<p hidden>Traffic is led`},
		{"a section heading", "article", `First results this week`, `No results this week`},
		{"an item of a list", "article", `Footbridge: open.`, `Footbridge: closed.`},
		{"a new item of a list", "article", `<li>Footbridge: open.</li>`, `<li>Footbridge: open.</li><li>Ferry: every hour.</li>`},
		{"paragraphs that change places", "article", `<h2>First results this week</h2>`, ``},
		{"the first sentence", "article", `on Tuesday morning`, `on Monday morning`},
		{"a default value in a table", "docs", `<td>1s</td>`, `<td>2s</td>`},
		{"a new row of a table", "docs", `</table>`, `<tr><td>Jitter</td><td>0</td><td>what is added to the pause</td></tr></table>`},
		{"a line of code", "docs", `Retries: 3,`, `Retries: 5,`},
		{"the headline of a manual", "docs", `<h1>Retrying requests</h1>`, `<h1>Repeating requests</h1>`},
		{"a price", "product", `€34.90</span>`, `€29.90</span>`},
		{"an amount of a table", "product", `2200 W`, `2400 W`},
		{"in stock", "product", `>In stock<`, `>Out of stock<`},
		{"a name of a product", "product", `<h1 itemprop="name">Steel kettle 1.7 l`, `<h1 itemprop="name">Copper kettle 1.7 l`},
		{"a new entry of a list", "list", `<li><a href="/jobs/4">`, `<li><a href="/jobs/5">Gardener</a> <span>Exe Valley</span></li><li><a href="/jobs/4">`},
		{"an entry that is gone", "list", `<li><a href="/jobs/2">Editor</a> <span>at home</span></li>`, ``},
		{"a place in a list", "list", `<span>Exe Valley</span>`, `<span>Exampleton</span>`},
	}
	for _, e := range edits {
		t.Run(e.name, func(t *testing.T) {
			before := readPage(t, e.page)
			after := strings.ReplaceAll(before, e.old, e.new)
			if after == before {
				t.Fatal("the edit changes nothing")
			}
			a, _ := sums(t, before)
			b, _ := sums(t, after)
			if a == b {
				t.Error("the change is missed")
			}
		})
	}
}

// TestCharsetIsThatOfTheParser has pages whose charset is found in an unusual place.
func TestCharsetIsThatOfTheParser(t *testing.T) {
	late := "<!--" + strings.Repeat("x", 2000) + "-->"
	for name, c := range map[string]*page.Content{
		"byte order mark":          {Type: "text/html", Body: []byte("\ufeff<title>Grüße</title><p>Grüße")},
		"declared late":            {Type: "text/html", Body: []byte("<title>Gr\xf6\xdfe</title>" + late + "<meta charset=windows-1250><p>Gr\xf6\xdfe \xe8")},
		"cut within a character":   {Type: "text/html", Body: []byte("<title>Grüße</title><p>Grüße \xe2\x82")},
		"two types":                {Type: "text/html; charset=windows-1250, text/html", Body: []byte("<title>\xe8</title><p>\xe8")},
		"x-user-defined":           {Type: "text/html", Body: []byte("<meta charset=x-user-defined><title>\xe8</title><p>\xe8")},
		"neither declared nor cut": {Type: "text/html", Body: []byte("<title>\xe8</title><p>\xe8")},
	} {
		p, err := new(htmlparse.Parser).Parse(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		a, err := extract.Extract(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if a.Title != p.Title || a.Text != p.Text {
			t.Errorf("%s: %q and %q, want %q and %q", name, a.Title, a.Text, p.Title, p.Text)
		}
	}
}

// TestReferencesAreResolvedAsByTheParser has references that net/url reads otherwise than browsers.
func TestReferencesAreResolvedAsByTheParser(t *testing.T) {
	for _, ref := range []string{"/100%", `\a\b`, "http://exämple.com/", "HTTP:c", " /a b\n/c ", "/%zz?ü", "//h.example:80/x"} {
		for _, base := range []string{"", `<base href="/base/x">`, `<base target=a><base href=" /100%/ ">`, `<base href="mailto:a">`, `<base href="data:,a"><base href="/second/">`} {
			c := content("<!doctype html><head>" + base + `<link rel=canonical href="` + ref + `"><title>T</title><p>Text`)
			p, err := new(htmlparse.Parser).Parse(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			a, err := extract.Extract(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if a.Canonical != p.Canonical || a.Canonical == "" {
				t.Errorf("%s %q: %q, want %q", base, ref, a.Canonical, p.Canonical)
			}
		}
	}
}

// TestDateIsTheSameOnAllMachines has a date with the name of a zone that only some machines know.
func TestDateIsTheSameOnAllMachines(t *testing.T) {
	local := time.Local
	defer func() { time.Local = local }()
	var got []time.Time
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("PST", -8*3600)} {
		time.Local = zone
		a, err := extract.Extract(t.Context(), content(`<meta name=date content="Wed, 04 Mar 2026 05:06:07 PST">`))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, a.Published)
	}
	if got[0].IsZero() || !got[0].Equal(got[1]) {
		t.Error(got)
	}
}
