package documents_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/parse/documents"
	"github.com/recrawl/recrawl/parse/htmlparse"
	"github.com/recrawl/recrawl/parse/parsetest"
)

func content(t testing.TB, name string) page.Content {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return page.Content{URL: "http://h.example/" + name, Type: "application/zip", Body: body}
}

// archives are documents that python-docx, python-pptx, openpyxl, odfpy and ebooklib have written.
var archives = []string{"burrows.docx", "burrows.pptx", "burrows.xlsx", "burrows.odt", "burrows.epub"}

// check looks for what each of the documents in testdata says.
func check(t *testing.T, name string, p page.Parsed) {
	t.Helper()
	if p.Title != "Burrows of the prairie" || p.Truncated {
		t.Errorf("%s: title %q, truncated %v", name, p.Title, p.Truncated)
	}
	at := 0
	for _, text := range []string{"Burrows", "Gophers dig burrows & tunnels.", "the gopher page", "depth", "two metres"} {
		i := strings.Index(p.Text[at:], text)
		if i < 0 {
			t.Fatalf("%s: no %q behind %q in %q", name, text, p.Text[:at], p.Text)
		}
		at += i + len(text)
	}
	if len(p.Outlinks) != 1 || p.Outlinks[0].URL != "https://example.com/gophers" {
		t.Errorf("%s: links %v", name, p.Outlinks)
	}
	author := ""
	for _, m := range p.Meta {
		if m.Name == "creator" || m.Name == "author" {
			author = m.Value
		}
	}
	if author != "A. Gopher" {
		t.Errorf("%s: %v", name, p.Meta)
	}
}

func TestTitleTextAndLinksOfArchives(t *testing.T) {
	for _, name := range archives {
		c := content(t, name)
		p, err := (&documents.Parser{}).Mux().Parse(t.Context(), &c)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		check(t, name, p)
	}
}

func TestKit(t *testing.T) {
	var all []page.Content
	for _, name := range archives {
		all = append(all, content(t, name))
	}
	twoLinks := archiveOf(t, "mimetype", "", "content.xml", `<body><p><a href="http://a.example/">one</a> <a href="/two">two</a></p></body>`)
	parsetest.Run(t, parsetest.Harness{
		New: func() parse.Parser { return &documents.Parser{} }, Documents: append(all, twoLinks),
		Limited: func(n int) parse.Parser { return &documents.Parser{MaxOutlinks: n} },
	})
}

func TestLinksOfLLMsTxt(t *testing.T) {
	c := page.Content{URL: "https://h.example/llms.txt", Type: "text/plain; charset=utf-8", Body: []byte(`# Example *site*

> A site.

## Docs
- [Start](/start.md): how to [begin](https://other.example/a "Title")
- <https://third.example/?q=1> a<b ](x [none]( [a](mailto:b@c) [b](#top)
`)}
	p, err := (&documents.Parser{}).With(htmlparse.Mux(&htmlparse.Parser{})).Parse(t.Context(), &c)
	if err != nil || p.Title != "Example *site*" || !strings.Contains(p.Text, "how to") {
		t.Errorf("%+v, %v", p, err)
	}
	var links []string
	for _, l := range p.Outlinks {
		links = append(links, l.URL+" "+l.Anchor)
	}
	if got := strings.Join(links, ", "); got != "https://h.example/start.md Start, https://other.example/a begin, https://third.example/?q=1 " {
		t.Error(got)
	}
}

func TestTextOfSlidesOfOneNumberIsAlwaysTheSame(t *testing.T) {
	slide := func(text string) string { return "<sld><p><t>" + text + "</t></p></sld>" }
	c := archiveOf(t, "ppt/presentation.xml", "", "ppt/slides/slide2.xml", slide("d"), "ppt/slides/slide1.xml", slide("c"), "ppt/slides/slide01.xml", slide("b"), "ppt/slides/slide001.xml", slide("a"))
	for range 20 {
		p, err := (&documents.Parser{}).Parse(t.Context(), &c)
		if err != nil || p.Text != "a\nb\nc\nd" {
			t.Fatalf("%q, %v", p.Text, err)
		}
	}
}

// The links of a document are those of a page of HTML with the same references.
func TestLinksAreResolvedAsThoseOfHTML(t *testing.T) {
	md, html := page.Content{URL: "http://h.example/dir/a.md?b#c", Type: "text/markdown"}, page.Content{URL: "http://h.example/dir/a.md?b#c", Type: "text/html"}
	for _, ref := range []string{"/100%", `\a\b`, "http://exämple.com/", "HTTP:c", "/%zz?ü", "//h.example:80/x#y", "?q", "#top", "a.md?b", "http://[", "../d", "/Gopher_(animal)"} {
		md.Body = fmt.Appendf(md.Body, "[a](%s)\n", ref)
		html.Body = fmt.Appendf(html.Body, "<a href=\"%s\">a</a>\n", ref)
	}
	got, err := (&documents.Parser{}).Parse(t.Context(), &md)
	if err != nil {
		t.Fatal(err)
	}
	want, err := new(htmlparse.Parser).Parse(t.Context(), &html)
	if err != nil {
		t.Fatal(err)
	}
	if len(want.Outlinks) != 9 || !slices.Equal(got.Outlinks, want.Outlinks) {
		t.Errorf("%v, want %v", got.Outlinks, want.Outlinks)
	}
}

func TestRobotsHeaderOfADocumentCounts(t *testing.T) {
	c := content(t, "burrows.odt")
	c.Robots = "noindex,nofollow"
	p, err := (&documents.Parser{}).Parse(t.Context(), &c)
	if err != nil || !p.NoIndex || !p.Outlinks[0].NoFollow {
		t.Errorf("%+v, %v", p, err)
	}
	c.Robots, c.Time = "unavailable_after: 2026-01-02", time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)
	if p, err = (&documents.Parser{}).Parse(t.Context(), &c); err != nil || !p.NoIndex {
		t.Errorf("after that date: %+v, %v", p, err)
	}
}

// archiveOf packs files, given as names and contents in turn.
func archiveOf(t testing.TB, files ...string) page.Content {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		w, err := z.Create(files[i])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return page.Content{URL: "http://h.example/", Type: "application/zip", Body: b.Bytes()}
}

func TestArchiveThatIsNoDocumentIsUnsupported(t *testing.T) {
	c := archiveOf(t, "a.txt", "text")
	if _, err := (&documents.Parser{}).Parse(t.Context(), &c); !errors.Is(err, parse.ErrUnsupported) {
		t.Error(err)
	}
	c.Body = c.Body[:20]
	if _, err := (&documents.Parser{}).Parse(t.Context(), &c); !errors.Is(err, documents.ErrDocument) {
		t.Error(err)
	}
}

// Archives that grow a thousand times, nest without end or repeat a long text take little memory and time.
func TestBombsAreBounded(t *testing.T) {
	const mb = 1 << 20
	repeated := func(s string, n int) string { return strings.Repeat(s, n/len(s)) }
	shared := `<sst><si><t>` + repeated("long ", mb) + `</t></si></sst>`
	for name, c := range map[string]page.Content{
		"text":       archiveOf(t, "word/document.xml", "<p><t>start "+repeated("bomb ", 40*mb)+"</t></p>"),
		"empty tags": archiveOf(t, "word/document.xml", "<p><t>start</t></p>"+repeated("<p/>", 40*mb)),
		"nesting":    archiveOf(t, "word/document.xml", "<p><t>start</t>"+repeated("<p>", 30*mb)),
		"attributes": archiveOf(t, "word/document.xml", "<p><t>start</t></p><p "+repeated(`a="" `, 30*mb)),
		"repetition": archiveOf(t, "xl/workbook.xml", `<sheet name="start"/>`, "xl/sharedStrings.xml", shared, "xl/worksheets/sheet1.xml", repeated(`<c t="s"><v>0</v></c>`, mb)),
		"comment":    archiveOf(t, "mimetype", "", "content.xml", "<body><p>start</p><!--"+repeated("-comment ", 30*mb)),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			p, err := (&documents.Parser{MaxUnpacked: 4 * mb}).Parse(t.Context(), &c)
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			if err != nil || !p.Truncated || !strings.HasPrefix(p.Text, "start") || len(p.Text) > 4*mb {
				t.Errorf("%.20q (%d bytes), truncated %v, %v", p.Text, len(p.Text), p.Truncated, err)
			}
			if grown := after.Sys - before.Sys; grown > 150*mb {
				t.Errorf("%d MB more memory", grown/mb)
			}
			if took > 10*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestCancelledParseEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := content(t, "burrows.docx")
	if _, err := (&documents.Parser{}).Parse(ctx, &c); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func FuzzArchive(f *testing.F) {
	for _, name := range archives {
		f.Add(content(f, name).Body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if bytes.Contains(body, []byte("%PDF-")) {
			return
		}
		p, err := (&documents.Parser{}).Parse(t.Context(), &page.Content{URL: "http://h.example/", Body: body})
		if err == nil && p.Text != strings.ToValidUTF8(p.Text, "") {
			t.Error("not UTF-8")
		}
	})
}

// FuzzXML changes what is in an archive, which FuzzArchive cannot because of its checksums.
func FuzzXML(f *testing.F) {
	f.Add("word/document.xml", `<w:document><w:body><w:p><w:hyperlink r:id="a"><w:t>x</w:t></w:hyperlink></w:p></w:body></w:document>`, "")
	f.Add("xl/workbook.xml", `<sheets><sheet name="a"/></sheets>`, `<row><c t="s"><v>0</v></c></row>`)
	f.Add("META-INF/container.xml", `<rootfile full-path="content.xml"/>`, `<item id="a" href="content.xml"/><itemref idref="a"/>`)
	f.Add("mimetype", "", `<body><p><a href="//x">t</a></p></body>`)
	f.Fuzz(func(t *testing.T, name, one, other string) {
		if len(name) > 1000 {
			return
		}
		c := archiveOf(t, name, one, "content.xml", other, "xl/worksheets/sheet1.xml", other, "word/_rels/document.xml.rels", other, "docProps/core.xml", other)
		p, err := (&documents.Parser{}).Parse(t.Context(), &c)
		if err == nil && p.Text != strings.ToValidUTF8(p.Text, "") {
			t.Error("not UTF-8")
		}
	})
}

func ExampleParser_With() {
	p := &documents.Parser{}
	defer p.Close()
	body, err := os.ReadFile("testdata/burrows.epub")
	if err != nil {
		panic(err)
	}
	parser := p.With(htmlparse.Mux(&htmlparse.Parser{})) // for recrawl.Options.Parser
	parsed, err := parser.Parse(context.Background(), &page.Content{URL: "https://example.com/burrows.epub", Type: "application/epub+zip", Body: body})
	fmt.Println(parsed.Title, parsed.Outlinks[0].URL, err)
	// Output: Burrows of the prairie https://example.com/gophers <nil>
}
