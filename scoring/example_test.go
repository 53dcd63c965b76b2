package scoring_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/scoring"
)

// A page is fetched and links to two others.
func ExampleOPIC() {
	now := time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)
	var f scoring.OPIC

	seed := crawldb.Datum{URL: "http://example.com/", Score: 1}
	f.Injected(&seed)

	links := []scoring.Link{
		{From: seed.URL, URL: "http://example.com/a"},
		{From: seed.URL, URL: "http://example.org/"},
	}
	gave := f.Distribute(scoring.Page{Datum: &seed}, links)

	old := seed
	f.Updated(&old, &seed, scoring.Flow{Visited: true, Gave: gave, Time: now})
	fmt.Println("seed: score", seed.Score, "cash", scoring.Cash(&seed))

	for _, l := range links {
		d := crawldb.Datum{URL: l.URL}
		f.Discovered(&d)
		f.Updated(nil, &d, scoring.Flow{In: []scoring.Link{l}, Time: now})
		fmt.Println(d.URL, "score", d.Score, "cash", scoring.Cash(&d))
	}
	// Output:
	// seed: score 1 cash 0
	// http://example.com/a score 0.5 cash 0.5
	// http://example.org/ score 0.5 cash 0.5
}

// A page without links gives what it has to a virtual page, which gives it to
// the pages visited in the same segment.
func ExampleOPIC_sink() {
	now := time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)
	var f scoring.OPIC
	sink := crawldb.Datum{URL: "http://example.com/end", Score: 1}
	other := crawldb.Datum{URL: "http://example.com/", Score: 1}
	f.Injected(&sink)
	f.Injected(&other)

	gave := f.Distribute(scoring.Page{Datum: &sink}, nil)
	shared := gave / 2 // two pages were visited
	for _, d := range []*crawldb.Datum{&sink, &other} {
		flow := scoring.Flow{Visited: true, Shared: shared, Time: now}
		if d == &sink {
			flow.Gave = gave
		}
		old := *d
		f.Updated(&old, d, flow)
		fmt.Println(d.URL, "score", d.Score, "cash", scoring.Cash(d))
	}
	// Output:
	// http://example.com/end score 1 cash 0.5
	// http://example.com/ score 1 cash 1.5
}

// At most two links from a seed, nearer pages first, and a tag of the seed for
// everything found from it.
func ExampleDepth() {
	f := scoring.Chain{scoring.Depth{Max: 3}, scoring.OPIC{}, scoring.URLMeta("topic")}
	d := crawldb.Datum{URL: "http://example.com/", Score: 1, Meta: crawldb.MetaOf("topic", "news")}
	f.Injected(&d)
	for {
		depth, _ := d.Meta.Get(scoring.DepthKey)
		topic, _ := d.Meta.Get("topic")
		fmt.Println("depth", depth, "topic", topic, "priority", f.Priority(&d, d.Score))

		links := []scoring.Link{{From: d.URL, URL: d.URL + "x"}}
		f.Distribute(scoring.Page{Datum: &d, Content: &page.Content{}, Parsed: &page.Parsed{}, Found: 1}, links)
		if links[0].Drop {
			break
		}
		d = crawldb.Datum{URL: links[0].URL, Meta: links[0].Meta}
		f.Discovered(&d)
		f.Updated(nil, &d, scoring.Flow{In: links, Time: time.Unix(0, 0)})
	}
	// Output:
	// depth 1 topic news priority 3
	// depth 2 topic news priority 2
	// depth 3 topic news priority 1
}

// A page to which no link leads any more is marked gone after a month, and an
// orphan ten days later.
func ExampleOrphan() {
	now := time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)
	var f scoring.Orphan
	d := crawldb.Datum{URL: "http://example.com/old", Status: crawldb.Fetched}
	f.Updated(nil, &d, scoring.Flow{In: []scoring.Link{{From: "http://example.com/"}}, Time: now})
	for _, days := range []int{30, 31, 41} {
		f.Orphaned(&d, now.AddDate(0, 0, days))
		fmt.Println(days, "days:", d.Status)
	}
	// Output:
	// 30 days: db_fetched
	// 31 days: db_gone
	// 41 days: db_orphan
}

// The tag of a seed is passed on to everything found from it.
func ExampleMetadata() {
	f := scoring.Metadata{DB: []string{"team"}, Parse: []string{"team", "author"}}
	d := crawldb.Datum{URL: "http://example.com/", Meta: crawldb.MetaOf("team", "search")}
	links := []scoring.Link{{From: d.URL, URL: "http://example.com/a"}}
	parsed := page.Parsed{Meta: []page.Property{{Name: "author", Value: "Ada"}}}
	f.Distribute(scoring.Page{Datum: &d, Content: &page.Content{}, Parsed: &parsed, Found: 1}, links)
	for name, value := range links[0].Meta.All() {
		fmt.Println(name, "=", value)
	}
	// Output:
	// author = Ada
	// team = search
}

// Scores that were computed elsewhere weigh a page in the index.
func ExampleLinkAnalysis() {
	f := scoring.LinkAnalysis{Normalize: 0.5}
	fmt.Println(f.Boost(&crawldb.Datum{Score: 3}, 1))
	// Output:
	// 1.5
}

// A custom filter embeds Base and overrides what it needs.
func ExampleChain() {
	f := scoring.Chain{scoring.OPIC{}, newsFirst{}}
	d := crawldb.Datum{URL: "http://example.com/news/today", Score: 2}
	fmt.Println(f.Priority(&d, d.Score))
	// Output:
	// 20
}

type newsFirst struct{ scoring.Base }

func (newsFirst) Priority(d *crawldb.Datum, priority float32) float32 {
	if strings.Contains(d.URL, "/news/") {
		return 10 * priority
	}
	return priority
}
