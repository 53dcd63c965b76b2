package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/crawldbtest"
)

func TestCustomstore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "crawl")
	for _, visited := range []string{"10", "0"} { // the second run finds that nothing is due
		var out strings.Builder
		if err := run(t.Context(), &out, file); err != nil {
			t.Fatal(err)
		}
		want := visited + ` pages visited
db_fetched http://docs.example.test/
db_fetched http://docs.example.test/pages/1.html
db_fetched http://docs.example.test/pages/2.html
db_fetched http://docs.example.test/pages/3.html
db_fetched http://docs.example.test/pages/4.html
`
		if out.String() != want {
			t.Errorf("got %s\nwant %s", out.String(), want)
		}
	}
}

// Every rule of crawldb.Store, by name.
func TestStore(t *testing.T) {
	open := func() (crawldb.Store, error) { return Open(filepath.Join(t.TempDir(), "crawl")) }
	reopen := func(s crawldb.Store) (crawldb.Store, error) { return Open(s.(*Store).file) }
	// The same file without a Close is what a kill leaves behind.
	crawldbtest.Run(t, crawldbtest.Harness{Open: open, Reopen: reopen, Crash: reopen})
}
