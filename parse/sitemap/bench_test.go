package sitemap_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/parse/sitemap"
)

// full is a sitemap of as many URLs as one may have.
func full(n int) []byte {
	var b bytes.Buffer
	b.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n")
	for i := range n {
		fmt.Fprintf(&b, "  <url>\n    <loc>https://www.example.com/catalog/item-%d?lang=en&amp;page=%d</loc>\n"+
			"    <lastmod>2024-05-%02dT12:30:00+00:00</lastmod>\n    <changefreq>weekly</changefreq>\n    <priority>0.8</priority>\n  </url>\n", i, i%7, i%28+1)
	}
	b.WriteString("</urlset>\n")
	return b.Bytes()
}

// BenchmarkRead50000URLs reads a full sitemap, and for comparison only its tokens with
// encoding/xml.
func BenchmarkRead50000URLs(b *testing.B) {
	doc := full(50_000)
	read := func(b *testing.B, in []byte, size, want int) {
		b.SetBytes(int64(size))
		b.ReportAllocs()
		for b.Loop() {
			n := 0
			for _, err := range sitemap.NewReader(bytes.NewReader(in), sitemap.Options{}).All(context.Background()) {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
			if n != want {
				b.Fatal(n)
			}
		}
	}
	b.Run("xml", func(b *testing.B) { read(b, doc, len(doc), 50_000) })
	b.Run("gzip", func(b *testing.B) { read(b, pack(doc), len(doc), 50_000) })
	lines := []byte(strings.Repeat("https://www.example.com/catalog/item-4711?lang=en&page=3\n", 50_000))
	b.Run("text", func(b *testing.B) { read(b, lines, len(lines), 50_000) })
	b.Run("encoding-xml", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			d := xml.NewDecoder(bytes.NewReader(doc))
			d.Strict = false
			for {
				if _, err := d.RawToken(); err == io.EOF {
					break
				} else if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
