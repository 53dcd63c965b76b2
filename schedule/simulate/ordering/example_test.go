package ordering_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/recrawl/recrawl/schedule/simulate/ordering"
	"github.com/recrawl/recrawl/scoring"
)

// What does an order of fetching find first? Twenty pages in a row, and one to which
// all of them link.
func ExampleRun() {
	var links strings.Builder
	for i := range 20 {
		fmt.Fprintf(&links, "page%d\tpage%d\npage%d\thub\n", i, i+1, i)
	}
	web, err := ordering.Read(strings.NewReader(links.String()))
	if err != nil {
		fmt.Println(err)
		return
	}
	orders := []ordering.Order{
		ordering.BreadthFirst(),
		{Name: "PageRank", Filter: scoring.PageRank{}},
	}
	r, err := ordering.Run(context.Background(), web, orders, ordering.Options{Seeds: 1, Runs: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := r.WriteTable(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 22 pages, 40 links; share of the PageRank held when this share of the pages is downloaded:
	//
	// order             1%    5%   10%   20%   30%   50%   70%   area  lowest highest
	// breadth first   .007  .036  .127  .416  .492  .643  .795  0.611   0.592   0.614
	// PageRank        .007  .063  .341  .416  .492  .643  .795  0.624   0.605   0.627
	// upper bound     .066  .305  .343  .419  .495  .646  .798  0.639   0.639   0.639
}
