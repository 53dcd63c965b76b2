package htmlparse

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/page"
	"golang.org/x/net/html"
)

// docPage is a page of documentation of about 30 kB with some 80 links, which
// is the mean of the documentation of large projects.
func docPage() *page.Content {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\"><head>\n<meta charset=\"utf-8\">\n<title>12.4. Controlling Text Search</title>\n" +
		"<link rel=\"stylesheet\" type=\"text/css\" href=\"stylesheet.css\"><link rel=\"prev\" href=\"textsearch-tables.html\" title=\"12.2. Tables and Indexes\">\n" +
		"<link rel=\"canonical\" href=\"https://docs.example.org/15/textsearch-controls.html\"></head>\n<body id=\"docContent\" class=\"container-fluid\">\n")
	for i := range 16 {
		fmt.Fprintf(&b, "<div class=\"sect2\" id=\"SECT-%d\"><div class=\"titlepage\"><div><div><h3 class=\"title\">12.%d. Parsing Documents &amp; Queries</h3></div></div></div>\n", i, i)
		for j := range 5 {
			fmt.Fprintf(&b, "<p>\n  The function <code class=\"function\">to_tsvector</code> parses a textual document into tokens, reduces the tokens\n"+
				"  to lexemes, and returns a <a class=\"link\" href=\"section-%d/topic-%d.html#FRAG\" title=\"A title\"><span class=\"type\">tsvector</span> number %d</a>\n"+
				"  which lists the lexemes together with their positions in the document &#8212; the document is processed\n according to the specified <em class=\"firstterm\">configuration</em>.</p>\n", i, j, j)
		}
		b.WriteString("<pre class=\"screen\">\nSELECT to_tsvector(&#39;english&#39;, &#39;a fat  cat sat on a mat - it ate a fat rats&#39;);\n</pre>\n</div>\n")
	}
	b.WriteString("</body></html>\n")
	return &page.Content{URL: "https://docs.example.org/15/textsearch-controls.html", Type: "text/html", Body: []byte(b.String())}
}

// BenchmarkParse30KBPage parses a page of documentation, and for comparison only reads its
// tokens with the tokenizer of x/net: a parser made of that cannot be faster.
func BenchmarkParse30KBPage(b *testing.B) {
	c := docPage()
	b.Run("tokens", func(b *testing.B) {
		b.SetBytes(int64(len(c.Body)))
		b.ReportAllocs()
		for b.Loop() {
			z := html.NewTokenizer(bytes.NewReader(c.Body))
			for z.Next() != html.ErrorToken {
			}
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.SetBytes(int64(len(c.Body)))
		b.ReportAllocs()
		var p Parser
		for b.Loop() {
			if _, err := p.Parse(b.Context(), c); err != nil {
				b.Fatal(err)
			}
		}
	})
}
