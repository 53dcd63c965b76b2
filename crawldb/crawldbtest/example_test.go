package crawldbtest_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/crawldbtest"
	"github.com/recrawl/recrawl/stores/memstore"
)

// markless forgets marks.
type markless struct{ crawldb.Store }

func (s markless) Update(ctx context.Context, b crawldb.Batch) error {
	b.Marks = nil
	return s.Store.Update(ctx, b)
}

// Check tells a program which rules an engine breaks.
func ExampleCheck() {
	err := crawldbtest.Check(context.Background(), crawldbtest.Harness{
		Open:      func() (crawldb.Store, error) { return markless{new(memstore.Crawl)}, nil },
		Sequences: 1,
	})
	first, _, _ := strings.Cut(err.Error(), "\n")
	fmt.Println(first)
	// Output: rule "a batch out of order is ErrOrder and changes nothing" is broken: Mark "job" is "", want "before"
}
