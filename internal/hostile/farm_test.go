package hostile_test

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

// farm is a web of an honest host, whose pages link to the next ones, and of one
// whose pages all link to each other, to themselves, and to one that they push.
type farm struct{ pages int }

func (f farm) Fetch(_ context.Context, req protocol.Request) (protocol.Response, error) {
	u, err := url.Parse(req.URL)
	var n int
	if err != nil || u.Path == "/robots.txt" {
		return protocol.Response{Outcome: protocol.Outcome{Code: protocol.NotFound, Status: 404}}, nil
	}
	fmt.Sscanf(u.Path, "/%d", &n)
	var b strings.Builder
	fmt.Fprintf(&b, "<meta name=scoring.cash content=1e300><meta name=nutch.score content=NaN><p>%s</p>", req.URL)
	for i := range 20 {
		if u.Hostname() == "honest.c7.test" {
			fmt.Fprintf(&b, "<a href=/%d>x</a>", (n+i+1)%f.pages)
		} else {
			fmt.Fprintf(&b, "<a href=/%d>x</a><a href=/%d>x</a><a href=/pushed>x</a>", (n*20+i)%f.pages, n)
		}
	}
	return protocol.Response{
		Outcome: protocol.Outcome{Code: protocol.Success, Status: 200},
		Content: page.Content{URL: req.URL, Type: "text/html", Body: []byte(b.String())},
	}, nil
}

func c7() row {
	const perHost, topN, rounds = 25, 60, 12
	return row{
		id: "C7", input: "a host of 5,000 pages that link to each other, to themselves and to one that they push, with made-up scores in meta elements",
		outcome: "a host gets no more than its share of a fetch list, and the total score stays what the seeds brought",
		figure:  fmt.Sprintf("%d rounds: ≤ %d of %d pages of a list, sum of the cash constant to 1e-9", rounds, perHost, topN),
		alone: func(t *testing.T) {
			db := &memstore.DB{}
			o := recrawl.Options{
				Agent: "recrawl-hostile", Protocol: farm{5000}, Run: recrawl.RunOptions{Rounds: rounds},
				Generate: generate.Options{TopN: topN, MaxPerHost: perHost},
				Fetch:    fetch.Options{Politeness: fetch.Politeness{Delay: -1}, Parsing: fetch.Parsing{Meta: []string{"scoring.cash", "nutch.score"}}},
			}
			o.Update.MaxGrowth = -1 // a page that is left out takes with it what links give to it
			crawler, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Segments: db.Segments()}, o)
			if err != nil {
				t.Fatal(err)
			}
			defer crawler.Close()
			if _, err := crawler.Inject(t.Context(), "http://honest.c7.test/0", "http://farm.c7.test/0"); err != nil {
				t.Fatal(err)
			}
			if _, err := crawler.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			most, lists, honest := 0, 0, 0
			for name, err := range db.Segments().List(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				of := map[string]int{}
				for d, err := range segment.Records[crawldb.Datum](t.Context(), db.Segments(), name) {
					if err != nil {
						t.Fatal(err)
					}
					of[crawldb.Host(d.URL)]++
				}
				lists, most, honest = lists+1, max(most, of["farm.c7.test"]), honest+of["honest.c7.test"]
			}
			if lists != rounds || most != perHost || honest < perHost*(rounds-4) {
				t.Errorf("%d lists with up to %d pages of the farm, and %d honest ones in all", lists, most, honest)
			}
			cash := 0.0
			for d, err := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
				if err != nil {
					t.Fatal(err)
				}
				if s := float64(d.Score); math.IsNaN(s) || math.IsInf(s, 0) || s < 0 {
					t.Errorf("%s: score %v", d.URL, s)
				}
				cash += scoring.Cash(&d)
			}
			if math.Abs(cash-2) > 1e-9 {
				t.Errorf("the cash of two seeds has become %v", cash)
			}
		},
	}
}
