package recrawl_test

import (
	"context"
	"fmt"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/stores/memstore"
)

// fourPages is a site of four pages.
type fourPages struct{}

func (fourPages) Fetch(_ context.Context, r protocol.Request) (protocol.Response, error) {
	body, ok := map[string]string{
		"http://a.example/":      `<a href=/news>news</a> <a href=/about>about</a> <a href=/terms>terms</a>`,
		"http://a.example/news":  `<a href=/about>about</a>`,
		"http://a.example/about": `<a href=/>home</a>`,
		"http://a.example/terms": `<a href=/about>about</a>`,
	}[r.URL]
	if !ok {
		return protocol.Response{Outcome: protocol.Outcome{Code: protocol.NotFound}}, nil
	}
	return protocol.Response{Outcome: protocol.Outcome{Code: protocol.Success}, Content: page.Content{Type: "text/html", Body: []byte(body)}}, nil
}

// A crawl that orders by PageRank needs no more than the filter: its rounds do the rest.
func Example_pageRank() {
	db, ctx := new(memstore.DB), context.Background()
	c, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Segments: db.Segments()}, recrawl.Options{
		Protocol: fourPages{}, Scoring: scoring.PageRank{}, Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	if _, err = c.Inject(ctx, "http://a.example/"); err == nil {
		_, err = c.Run(ctx)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	for d, err := range db.Crawl().Scan(ctx, crawldb.Range{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s %.1f\n", d.URL, d.Score)
	}
	// Output:
	// http://a.example/ 9.9
	// http://a.example/about 9.7
	// http://a.example/news 3.0
	// http://a.example/terms 3.0
}
