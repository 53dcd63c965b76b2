package segment_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

// A part is written in blocks, and is complete once it is committed.
func Example() {
	ctx := context.Background()
	store := new(memstore.Segments)

	name, err := segment.NewName(ctx, store, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if err != nil {
		log.Fatal(err)
	}
	w, err := segment.NewWriter[segment.Visit](ctx, store, name, 0)
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	err = w.Append(ctx, []segment.Visit{
		{URL: "http://example.com/", Outcome: protocol.Outcome{Code: protocol.Success, Status: 200}},
		{URL: "http://example.com/old", Outcome: protocol.Outcome{Code: protocol.NotFound, Status: 404}},
	})
	if err == nil {
		err = w.Commit(ctx)
	}
	if err != nil {
		log.Fatal(err)
	}
	for v, err := range segment.Records[segment.Visit](ctx, store, name) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(name, v.URL, v.Outcome.Code)
	}
	// Output:
	// 20260102030405-000 http://example.com/ success
	// 20260102030405-000 http://example.com/old not_found
}
