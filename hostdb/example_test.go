package hostdb_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/stores/memstore"
)

// Two clients want to ask a host. The update is atomic, so one of them has the
// grant and the other sees that it has.
func ExampleStore() {
	ctx := context.Background()
	var store hostdb.Store = new(memstore.Hosts)
	now := time.Date(2024, 6, 1, 12, 0, 0, 0, time.UTC)

	take := func() (mine bool) {
		err := store.Update(ctx, "example.com", func(old *hostdb.Host) (*hostdb.Host, error) {
			var h hostdb.Host
			if old != nil {
				h = *old
			}
			if mine = !now.Before(h.NextFetch) && len(h.Grants) == 0; !mine {
				return old, nil
			}
			h.Grants = []time.Time{now.Add(time.Minute)}
			return &h, nil
		})
		if err != nil {
			log.Fatal(err)
		}
		return mine
	}
	fmt.Println(take(), take())
	// Output: true false
}

func ExampleBy_Key() {
	url := "https://news.example.co.uk:8443/today"
	fmt.Println(hostdb.ByHost.Key(url))
	fmt.Println(hostdb.ByDomain.Key(url))
	// Output:
	// news.example.co.uk
	// example.co.uk
}
