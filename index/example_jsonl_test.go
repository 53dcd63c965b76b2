package index_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/recrawl/recrawl/index"
)

func ExampleJSONL() {
	ctx := context.Background()
	w := index.NewJSONL(os.Stdout)
	if err := w.Write(ctx, &index.Document{
		URL: "http://example.com/", Title: "Example & more", Host: "example.com",
		Fetched: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Score: 1,
	}); err != nil {
		fmt.Println(err)
	}
	if err := w.Delete(ctx, "http://example.com/old"); err != nil {
		fmt.Println(err)
	}
	if err := w.Commit(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"url":"http://example.com/","title":"Example & more","host":"example.com","fetched":"2026-01-02T03:04:05Z","score":1}
	// {"url":"http://example.com/old","deleted":true}
}
