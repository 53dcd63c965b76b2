package recrawl

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/crawldb/groups"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/stores/memstore"
)

// slowHosts takes a while before it updates a host.
type slowHosts struct {
	hostdb.Store
	takes time.Duration
}

func (s slowHosts) Update(ctx context.Context, name string, next func(*hostdb.Host) (*hostdb.Host, error)) error {
	time.Sleep(s.takes)
	return s.Store.Update(ctx, name, next)
}

func inheritedHostsFor(t *testing.T, s hostdb.Store) *inheritedHosts {
	t.Helper()
	table, err := groups.Divide(1, groups.Routing{})
	if err != nil {
		t.Fatal(err)
	}
	share := &groupShare{}
	share.member.Store(table.Member(table.Groups[0].ID, table.Routing.Router()))
	return &inheritedHosts{Store: s, share: share, pauseOf: fetch.Politeness{}.Pause, first: map[string]*firstUse{}}
}

// The request of the worker before began at the moment at which the pause before it was over, or is
// the first one, so that the record does not say how long the pause is.
func TestInheritedHostWithGrantIsLeftAloneForFullPause(t *testing.T) {
	for name, last := range map[string]time.Duration{"first request": 0, "request right after the pause": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				h := hostdb.Host{Name: "a.example", NextFetch: began, Grants: []time.Time{began.Add(hostdb.MaxGrant)}}
				if last > 0 {
					h.LastFetch = began.Add(-last)
				}
				time.Sleep(time.Second)
				db := new(memstore.Hosts)
				if err := db.Update(t.Context(), h.Name, func(*hostdb.Host) (*hostdb.Host, error) { return &h, nil }); err != nil {
					t.Fatal(err)
				}
				const takes = 8 * time.Second // longer than the pause
				hosts := inheritedHostsFor(t, slowHosts{db, takes})
				err := hosts.Update(t.Context(), h.Name, func(old *hostdb.Host) (*hostdb.Host, error) {
					if pause := time.Until(old.NextFetch); pause < 5*time.Second || len(old.Grants) > 0 {
						t.Errorf("the next request may begin in %v beside %d others, want 5s and 0", pause, len(old.Grants))
					}
					return old, nil
				})
				if err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func TestFirstUpdatesOfInheritedHostKeepEachOthersGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := new(memstore.Hosts)
		err := db.Update(t.Context(), "a.example", func(*hostdb.Host) (*hostdb.Host, error) { return &hostdb.Host{}, nil })
		if err != nil {
			t.Fatal(err)
		}
		hosts := inheritedHostsFor(t, slowHosts{db, time.Second})
		var updates sync.WaitGroup
		for n := range 2 {
			updates.Go(func() {
				err := hosts.Update(t.Context(), "a.example", func(old *hostdb.Host) (*hostdb.Host, error) {
					h := *old
					h.Grants = append(h.Grants, time.Now().Add(hostdb.MaxGrant-time.Duration(1-n)*time.Millisecond))
					return &h, nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		updates.Wait()
		h, err := db.Get(t.Context(), "a.example")
		if err != nil || len(h.Grants) != 2 {
			t.Errorf("grants %v, error %v; want two", h.Grants, err)
		}
	})
}
