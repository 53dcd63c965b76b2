package rank_test

import (
	"fmt"

	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/scoring/rank"
)

// Three pages, two of which link to the third.
func ExampleGraph() {
	g := rank.NewGraph(scoring.PageRank{Damping: 0.5}, 0)
	a, _ := g.Page("http://a.example/")
	b, _ := g.Page("http://b.example/")
	hub, _ := g.Page("http://hub.example/")
	g.Link(a, 0, 2, []uint32{b, hub})
	g.Link(b, 0, 1, []uint32{hub})
	g.Compute()
	fmt.Println(g.Received(a), g.Received(b), g.Received(hub))
	// Output: 0 0.25 0.875
}
