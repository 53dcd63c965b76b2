package scoring_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
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

// A filter of one's own embeds Base and replaces what matters to it.
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
