package robots_test

import (
	"context"
	"fmt"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/stores/memstore"
)

func ExampleParse() {
	rules := robots.Parse([]byte(`
User-agent: *
Disallow: /

User-agent: recrawl
Crawl-delay: 2
Disallow: /*?print=
Allow: /about?print=

Sitemap: https://example.com/sitemap.xml
`), "recrawl/1.0")

	for _, url := range []string{"https://example.com/", "https://example.com/news?print=1", "/about?print=1"} {
		fmt.Println(rules.Allowed(url), url)
	}
	fmt.Println(rules.CrawlDelay, rules.Sitemaps)
	// Output:
	// true https://example.com/
	// false https://example.com/news?print=1
	// true /about?print=1
	// 2s [https://example.com/sitemap.xml]
}

// If you have your own fetcher, fetch the file yourself.
func ExampleParseResponse() {
	for _, status := range []int{200, 404, 503} {
		rules := robots.ParseResponse(status, []byte("User-agent: *\nDisallow: /private/\n"), "recrawl")
		fmt.Println(status, rules.Allowed("/private/diary"), rules.Unavailable)
	}
	// Output:
	// 200 false false
	// 404 true false
	// 503 false true
}

// A tiny web of one server, which has only a robots.txt.
type tinyWeb struct{}

func (tinyWeb) Fetch(_ context.Context, req protocol.Request) (protocol.Response, error) {
	fmt.Println("GET", req.URL)
	return protocol.Response{
		Outcome: protocol.Outcome{Code: protocol.Success, Status: 200},
		Content: page.Content{URL: req.URL, Body: []byte("User-agent: *\nDisallow: /private/\n")},
	}, nil
}

func ExampleCache() {
	ctx := context.Background()
	cache := &robots.Cache{Protocol: tinyWeb{}, Hosts: new(memstore.Hosts), Product: "recrawl"}
	for _, url := range []string{"http://example.com/", "http://example.com/private/diary"} {
		rules, known, err := cache.Cached(ctx, url)
		if err == nil && !known {
			rules, err = cache.Fetch(ctx, url)
		}
		switch {
		case err != nil:
			fmt.Println(err)
		case rules.Unavailable:
			fmt.Println("later:", url)
		default:
			fmt.Println(rules.Allowed(url), url)
		}
	}
	// Output:
	// GET http://example.com/robots.txt
	// true http://example.com/
	// false http://example.com/private/diary
}

func ExampleParseHeader() {
	d := robots.ParseHeader([]string{
		"noarchive, unavailable_after: Wed, 03 Oct 2029 10:00:00 GMT",
		"otherbot: noindex, nofollow",
	}, "recrawl")
	d = d.And(robots.ParseMeta("robots", "nofollow", "recrawl"))
	fmt.Println(d.NoIndex, d.NoFollow, d.NoArchive, d.UnavailableAfter)
	// Output: false true true 2029-10-03 10:00:00 +0000 UTC
}

// movedWeb is a web whose first server has its robots.txt at the second.
type movedWeb struct{}

func (movedWeb) Fetch(_ context.Context, r protocol.Request) (protocol.Response, error) {
	if r.URL == "https://example.com/robots.txt" {
		return protocol.Response{Outcome: protocol.Outcome{Code: protocol.MovedPerm, Status: 301, Location: "https://www.example.com/robots.txt"}}, nil
	}
	return protocol.Response{
		Outcome: protocol.Outcome{Code: protocol.Success, Status: 200},
		Content: page.Content{Body: []byte("User-agent: *\nDisallow: /private/\n")},
	}, nil
}

// If you pause between the requests to a server, make the steps yourself.
func ExampleCache_BeginFetch() {
	c := &robots.Cache{Protocol: movedWeb{}, Hosts: new(memstore.Hosts), Product: "recrawl"}
	f := c.BeginFetch("https://example.com/private/diary")
	for f.Next() != "" {
		fmt.Println("request", f.Next())
		if f.NextElsewhere() && !f.NextIsFile() {
			f.GiveUp("that is far enough")
			break
		}
		if err := f.Step(context.Background()); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(f.Rules().Allowed("/private/diary"))
	// Output:
	// request https://example.com/robots.txt
	// request https://www.example.com/robots.txt
	// false
}
