package extract_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/parse/extract"
)

// hostile are pages that cost some parser or converter more than their length.
func hostile(size int) map[string]string {
	rep := func(s string) string { return strings.Repeat(s, size/len(s)+1)[:size] }
	return map[string]string{
		"nested div":          rep("<div>"),
		"nested span":         "<p>" + rep("<span>a"),
		"nested list":         rep("<ul><li>word "),
		"nested quote":        rep("<blockquote>word, word. "),
		"quote of long text":  strings.Repeat("<blockquote>", 1000) + rep("word word, word. <br>"),
		"nested table":        rep("<table><tr><td>a"),
		"fonts and blocks":    strings.Repeat("<font a>", 600) + rep("<p>"),
		"distinct formatting": "<b a=1><b a=2><b a=3><i a=4><i b=5><u a=6>" + rep("<p>a"),
		"links below a base":  `<base href="/` + strings.Repeat("a/", size/4) + `">` + rep(`<p>a, b <a href=c>d</a>`)[:size/2],
		"links in links":      rep("<a href=x>"),
		"unclosed links":      rep("<div><a href=/>a</div>"),
		"end tags":            strings.Repeat("<div>", 300) + rep("</x>"),
		"end tags of p":       rep("</p>"),
		"attributes":          "<p " + rep("a b c d "),
		"many classes":        rep(`<p class="a b c d menu nav">text text</p>`),
		"one class":           `<p class="` + rep("nav-") + `">text</p>`,
		"one text":            "<p>" + rep("word, "),
		"one word":            "<p>" + rep("a"),
		"no end of comment":   "<!--" + rep("a"),
		"rows":                "<table>" + rep("<tr><td>a<td>b"),
		"wide row":            "<table><tr>" + rep("<td>a"),
		"spans":               "<table>" + rep("<tr><td colspan=99>a<td colspan=99999999>b"),
		"items":               rep("<p itemscope itemprop=a>"),
		"item names":          `<p itemscope><p itemprop="` + rep("a ") + `">b</p>`,
		"JSON":                `<script type="application/ld+json">` + rep("[") + "</script>",
		"JSON objects":        `<script type="application/ld+json">` + rep(`{"@graph":[{"@graph":`) + "</script>",
		"JSON blocks":         rep(`<script type="application/ld+json">{"@type":"Article"}</script>`),
		"NUL":                 rep("\x00"),
		"not UTF-8":           rep("\xff\xfe<p>\x80"),
		"references":          "<p>" + rep("&amp;&lt;&#120;"),
		"stars":               "<p>" + rep("*_`[]()#"),
		"bold":                "<p>" + rep("<b>a</b><i>b</i>"),
		"pre":                 "<pre>" + rep("```\n~~~\n"),
		"nested noscript":     rep("<noscript><p>text, text"),
		"breaks":              "<p>" + rep("<br>"),
		"headings":            rep("<h1>a<h2>b"),
		"images":              rep("<img src=a alt=b>"),
		"options":             "<select>" + rep("<option>a"),
		"svg":                 "<svg>" + rep("<path d=1/><g>"),
		"template":            rep("<template>a"),
	}
}

// TestHostilePagesAreBounded reads pages made to be expensive, and converts them.
func TestHostilePagesAreBounded(t *testing.T) {
	size := testlevel.Pick(50<<10, 2<<20)
	for name, body := range hostile(size) {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			a, err := extract.Extract(t.Context(), &page.Content{URL: "https://example.com/", Type: "text/html; charset=utf-8", Body: []byte(body)})
			if err != nil {
				t.Fatal(err)
			}
			md, err := a.Markdown()
			a.Tables()
			a.Microdata()
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if !utf8.ValidString(a.Text) || !utf8.ValidString(md) {
				t.Error("invalid UTF-8")
			}
			if limit := 2*time.Second + time.Duration(size)*time.Microsecond; took > limit {
				t.Errorf("took %v for %d bytes", took, size)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20+uint64(size)*2000 {
				t.Errorf("allocated %d MiB for %d KiB", used>>20, size>>10)
			}
			t.Logf("%v, %d MiB, text %d, markdown %d: %v", took.Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>20, len(a.Text), len(md), err)
		})
	}
}

func TestExtractRefusesOtherTypesAndDoneContexts(t *testing.T) {
	c := &page.Content{URL: "https://example.com/a.pdf", Type: "application/pdf", Body: []byte("%PDF")}
	if _, err := extract.Extract(t.Context(), c); !errors.Is(err, parse.ErrUnsupported) {
		t.Errorf("a PDF: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.Type = "text/html"
	if _, err := extract.Extract(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("a done context: %v", err)
	}
}

func FuzzExtract(f *testing.F) {
	for _, body := range hostile(300) {
		f.Add([]byte(body))
	}
	f.Add([]byte(`<title>T | Site</title><main><h1>T</h1><p>Some text, long enough to count as running text, of a page.</p><ul><li><a href=/x>x</a></ul><table><tr><th>a<th>b<tr><td>1<td>2</table></main><footer>f</footer>`))
	f.Fuzz(func(t *testing.T, body []byte) {
		c := &page.Content{URL: "https://example.com/", Type: "text/html", Body: body}
		a, err := extract.Extract(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{a.Title, a.Author, a.Text, a.Description, a.Language, a.Site} {
			if !utf8.ValidString(s) {
				t.Fatalf("invalid UTF-8 in %q", s)
			}
		}
		if _, err := a.Markdown(); err != nil {
			t.Fatal(err)
		}
		a.Tables()
		a.Microdata()
		if n := len((extract.MainContent{}).Sum(c, nil)); n != 16 {
			t.Fatalf("a sum of %d bytes", n)
		}
	})
}
