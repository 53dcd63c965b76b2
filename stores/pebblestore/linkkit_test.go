package pebblestore

import (
	"testing"

	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/linkdb/linkdbtest"
)

func TestLinkKit(t *testing.T) {
	t.Parallel()
	overEnds(t, func(t *testing.T, r *rig) {
		linkdbtest.Run(t, linkdbtest.Harness{
			Open:   func() (linkdb.Store, error) { return asLinks(r.open()) },
			Reopen: func(s linkdb.Store) (linkdb.Store, error) { return asLinks(s.(*linkHandle).h.reopen()) },
			Crash:  func(s linkdb.Store) (linkdb.Store, error) { return asLinks(s.(*linkHandle).h.crash()) },
		})
	})
}
