package indextest_test

import (
	"context"
	"fmt"

	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/index/indextest"
)

// forgetful is a writer that takes everything and keeps nothing.
type forgetful struct{}

func (forgetful) Write(ctx context.Context, _ *index.Document) error { return ctx.Err() }
func (forgetful) Delete(ctx context.Context, _ string) error         { return ctx.Err() }
func (forgetful) Commit(ctx context.Context) error                   { return ctx.Err() }

func ExampleCheck() {
	err := indextest.Check(context.Background(), indextest.Harness{
		Open: func() (index.Writer, error) { return forgetful{}, nil },
		Read: func(index.Writer) (map[string]index.Document, error) { return nil, nil },
		// An index that keeps no text would compare less here.
		Same: func(want, got index.Document) error { return nil },
	})
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap()[:2] {
		fmt.Println(e)
	}
	// Output:
	// rule "a document is there after Commit" is broken: after Commit: no document of http://example.com/a
	// rule "every field is kept" is broken: after Commit: no document of http://example.com/a
}
