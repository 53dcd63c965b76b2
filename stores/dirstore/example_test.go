package dirstore_test

import (
	"context"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/dirstore"
)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "segments-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	store, err := dirstore.Open(dir, dirstore.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	texts, err := segment.NewWriter[segment.Text](ctx, store, "20260102030405-000", 0)
	if err != nil {
		log.Fatal(err)
	}
	if err := texts.Append(ctx, []segment.Text{{URL: "http://example.com/", Text: "Hello"}}); err != nil {
		log.Fatal(err)
	}
	list := func() {
		err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
			if !d.IsDir() {
				fmt.Println(filepath.ToSlash(path))
			}
			return err
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	list()
	if err := texts.Commit(ctx); err != nil {
		log.Fatal(err)
	}
	list()
	for text, err := range segment.Records[segment.Text](ctx, store, "20260102030405-000") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(text.URL, text.Text)
	}
	// Output:
	// 20260102030405-000/parse_text.open
	// 20260102030405-000/parse_text
	// http://example.com/ Hello
}
