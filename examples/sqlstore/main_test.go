package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/crawldbtest"
)

func TestCrawl(t *testing.T) {
	file := filepath.Join(t.TempDir(), "crawl.db")
	for _, want := range []string{"10 pages visited; 10 records, 0 due\n", "0 pages visited; 10 records, 0 due\n"} {
		var out strings.Builder
		if err := run(t.Context(), &out, file); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("got %swant %s", &out, want)
		}
	}
}

// Every rule of crawldb.Store, by name.
func TestStore(t *testing.T) {
	files := map[crawldb.Store]string{}
	open := func(file string) (crawldb.Store, error) {
		s, err := Open(file)
		if err != nil {
			return nil, err
		}
		files[s] = file
		return s, nil
	}
	reopen := func(s crawldb.Store) (crawldb.Store, error) { return open(files[s]) }
	// The same file without a Close is what a kill leaves behind.
	crawldbtest.Run(t, crawldbtest.Harness{
		Open:   func() (crawldb.Store, error) { return open(filepath.Join(t.TempDir(), "crawl.db")) },
		Reopen: reopen, Crash: reopen,
	})
}
