package linkdbtest_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/linkdb/linkdbtest"
	"github.com/recrawl/recrawl/stores/memstore"
)

// boundless keeps all links to a page.
type boundless struct{ linkdb.Store }

func (s boundless) Merge(ctx context.Context, entries []linkdb.Entry, _ int) error {
	return s.Store.Merge(ctx, entries, 0)
}

// Check tells a program which rules an engine breaks.
func ExampleCheck() {
	err := linkdbtest.Check(context.Background(), linkdbtest.Harness{
		Open: func() (linkdb.Store, error) { return boundless{new(memstore.Links)}, nil },
	})
	rule, _, _ := strings.Cut(err.Error(), " is broken")
	fmt.Println(rule)
	// Output: rule "merging again changes nothing"
}
