package dirstoretest_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/dirstore"
	"github.com/recrawl/recrawl/stores/dirstore/dirstoretest"
)

// What is there of a part when the power goes.
func ExampleDisk_Crash() {
	ctx := context.Background()
	disk := dirstoretest.NewDisk()
	store, err := dirstore.Open("segments", dirstore.Options{FS: disk})
	if err != nil {
		log.Fatal(err)
	}
	w, err := segment.NewWriter[segment.Text](ctx, store, "20260102030405-000", 0)
	if err != nil {
		log.Fatal(err)
	}
	err = errors.Join(
		w.Append(ctx, []segment.Text{{URL: "http://example.org/a", Text: "it is synced"}}), w.Sync(ctx),
		w.Append(ctx, []segment.Text{{URL: "http://example.org/b", Text: "it is not"}}))
	if err != nil {
		log.Fatal(err)
	}

	after, err := dirstore.Open("segments", dirstore.Options{FS: disk.Crash(0, nil)})
	if err != nil {
		log.Fatal(err)
	}
	for block, err := range segment.Partial[segment.Text](ctx, after, "20260102030405-000", 0) {
		fmt.Println(block, err)
	}
	// Output: [{http://example.org/a it is synced}] <nil>
}
