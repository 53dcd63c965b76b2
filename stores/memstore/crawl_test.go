package memstore_test

import (
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/crawldbtest"
	"github.com/recrawl/recrawl/stores/memstore"
)

func TestCrawl(t *testing.T) {
	crawldbtest.Run(t, crawldbtest.Harness{
		Open: func() (crawldb.Store, error) { return new(memstore.Crawl), nil },
	})
}
