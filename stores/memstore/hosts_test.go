package memstore_test

import (
	"testing"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/hostdb/hostdbtest"
	"github.com/recrawl/recrawl/stores/memstore"
)

func TestHosts(t *testing.T) {
	hostdbtest.Run(t, hostdbtest.Harness{
		Open: func() (hostdb.Store, error) { return new(memstore.Hosts), nil },
	})
}
