package sitemap_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/recrawl/recrawl/parse/sitemap"
)

func ExampleReader() {
	const url = "https://example.com/news/sitemap.xml"
	body := strings.NewReader(`<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
  <url>
    <loc>https://example.com/news/today?id=1&amp;lang=en</loc>
    <lastmod>2024-05-03</lastmod>
    <changefreq>hourly</changefreq>
    <priority>0.9</priority>
  </url>
  <url><loc>https://example.com/shop/</loc></url>
  <url><loc>https://example.com/news/yesterday</loc></url>
  <url><loc>https://example.com/news/cut`)

	scope, err := sitemap.NewScope(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	r := sitemap.NewReader(body, sitemap.Options{URL: url, ContentType: "text/xml"})
	for e, err := range r.All(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if !scope.Contains(e) {
			fmt.Println("not for this sitemap to say:", e.URL)
			continue
		}
		priority := float32(sitemap.DefaultPriority)
		if e.HasPriority {
			priority = e.Priority
		}
		fmt.Println(e.URL, priority, e.Interval)
		if !e.Modified.IsZero() {
			fmt.Println("  changed between", e.Modified.Format("Jan 2 15:04"), "and", e.Modified.Add(e.Span).Format("Jan 2 15:04"))
		}
	}
	rep := r.Report()
	fmt.Println(rep.Format, rep.Entries, rep.Truncated, rep.Reason)
	// Output:
	// https://example.com/news/today?id=1&lang=en 0.9 1h0m0s
	//   changed between May 3 00:00 and May 4 00:00
	// not for this sitemap to say: https://example.com/shop/
	// https://example.com/news/yesterday 0.5 0s
	// urlset 3 true the document ends before its last tag
}

// A site whose robots.txt lists a sitemap elsewhere lets it speak of all its pages.
func ExampleNewScope() {
	scope, err := sitemap.NewScope("https://cdn.example.net/maps/shop.xml", "https://example.com/robots.txt")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, url := range []string{"https://example.com/shop/1", "https://cdn.example.net/maps/2", "https://cdn.example.net/3", "https://example.org/4"} {
		fmt.Println(scope.Contains(sitemap.Entry{URL: url}), url)
	}
	// Output:
	// true https://example.com/shop/1
	// true https://cdn.example.net/maps/2
	// false https://cdn.example.net/3
	// false https://example.org/4
}
