package memstore_test

import (
	"testing"

	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/linkdb/linkdbtest"
	"github.com/recrawl/recrawl/stores/memstore"
)

func TestLinks(t *testing.T) {
	linkdbtest.Run(t, linkdbtest.Harness{
		Open: func() (linkdb.Store, error) { return new(memstore.Links), nil },
	})
}
