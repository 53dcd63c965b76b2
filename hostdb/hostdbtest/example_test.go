package hostdbtest_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/hostdb/hostdbtest"
	"github.com/recrawl/recrawl/stores/memstore"
)

// hasty forgets which requests are under way.
type hasty struct{ hostdb.Store }

func (s hasty) Get(ctx context.Context, name string) (hostdb.Host, error) {
	h, err := s.Store.Get(ctx, name)
	h.Grants = nil
	return h, err
}

// Check tells a program which rules an engine breaks.
func ExampleCheck() {
	err := hostdbtest.Check(context.Background(), hostdbtest.Harness{
		Open: func() (hostdb.Store, error) { return hasty{new(memstore.Hosts)}, nil },
	})
	rule, _, _ := strings.Cut(err.Error(), " is broken")
	fmt.Println(rule)
	// Output: rule "every field is kept"
}
