package hostdbtest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/recrawl/recrawl/hostdb"
)

func oneOfManyRivalsTakesGrant(c *check) {
	s := c.Store()
	const rivals, rounds = 6, 40
	errs := make([]error, rivals)
	busy := time.Date(2024, 1, 1, 0, 1, 0, 0, time.UTC)
	for round := range rounds {
		name := fmt.Sprintf("h%d.example.com", round%3)
		took := make([]bool, rivals)
		var group sync.WaitGroup
		for r := range rivals {
			group.Go(func() {
				errs[r] = s.Update(c.Ctx, name, func(old *host) (*host, error) {
					took[r] = false
					var h host
					if old != nil {
						if h = *old; len(h.Grants) > 0 {
							return old, nil
						}
					}
					took[r] = true
					h.Grants = []time.Time{busy}
					h.Stats.Fetched++
					return &h, nil
				})
			})
		}
		group.Wait()
		c.Must(errors.Join(errs...), "Update")
		n := 0
		for _, t := range took {
			if t {
				n++
			}
		}
		if n != 1 {
			c.Failf("round %d: %d rivals got the grant, want 1", round, n)
		}
		h := c.get(s, name)
		if want := int64(round/3 + 1); h.Stats.Fetched != want || len(h.Grants) != 1 || !h.Grants[0].Equal(busy) {
			c.Failf("round %d: the record counts %d grants and is busy until %v, want %d and %v", round, h.Stats.Fetched, h.Grants, want, busy)
		}
		h.Grants = nil
		c.put(s, h)
	}
}

func overlappingUpdatesLoseNothing(c *check) {
	s := c.Store()
	const workers, rounds = 6, 40
	errs := make([]error, workers)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := range rounds {
				name := fmt.Sprint((i + w) % 4)
				err := s.Update(c.Ctx, name, func(old *host) (*host, error) {
					n := 1
					if old != nil {
						n = old.Backoff + 1
					}
					h := plain(name, n)
					return &h, nil
				})
				if err != nil {
					errs[w] = err
					return
				}
			}
		})
	}
	group.Wait()
	c.Must(errors.Join(errs...), "Update")
	const each = workers * rounds / 4
	c.holds(s, plain("0", each), plain("1", each), plain("2", each), plain("3", each))
}

func readerSeesWholeRecords(c *check) {
	s := c.Store()
	names := []string{"a", "b", "c", "d"}
	var (
		group   sync.WaitGroup
		stop    atomic.Bool
		reads   atomic.Int64
		readers [3]error
	)
	whole := func(h host) error { return same(h, plain(h.Name, h.Backoff)) }
	group.Go(func() {
		for i := 0; !stop.Load(); i++ {
			reads.Add(1)
			h, err := s.Get(c.Ctx, names[i%len(names)])
			if err == nil {
				err = whole(h)
			}
			if err != nil && !errors.Is(err, hostdb.ErrNotFound) {
				readers[0] = err
				stop.Store(true)
			}
		}
	})
	group.Go(func() {
		for !stop.Load() && readers[1] == nil {
			for h, err := range s.Scan(c.Ctx) {
				if err == nil {
					err = whole(h)
				}
				if err != nil {
					readers[1] = err
					break
				}
			}
		}
	})
	group.Go(func() {
		for !stop.Load() && readers[2] == nil {
			readers[2] = s.Sync(c.Ctx)
		}
	})
	var err error
	// Go on until the readers have read enough.
	for n := 0; (n < 600 || reads.Load() < 200) && !stop.Load() && err == nil; n++ {
		name := names[n%len(names)]
		err = s.Update(c.Ctx, name, func(*host) (*host, error) {
			if n%9 == 0 {
				return nil, nil
			}
			h := plain(name, n)
			return &h, nil
		})
	}
	stop.Store(true)
	group.Wait()
	c.Must(err, "Update")
	c.Must(errors.Join(readers[:]...), "a reader during the updates")
}

func crashKeepsWhatWasSynced(c *check) {
	s, model := c.Store(), map[string]host{}
	for round := range 4 {
		for i := range 40 {
			if i%4 <= round {
				h := plain(fmt.Sprint(i), round)
				model[h.Name] = h
				c.put(s, h)
			}
		}
		c.remove(s, fmt.Sprint(round))
		delete(model, fmt.Sprint(round))
		c.Must(s.Sync(c.Ctx), "Sync")
		s = c.Crash(s)
		c.holds(s, inOrder(model)...)
	}
}

func hostAskedBeforeCrashCountsAsAsked(c *check) {
	s := c.Store()
	now := time.Now().UTC().Truncate(time.Millisecond)
	hosts := map[string]host{
		"asked now":              {LastFetch: now, NextFetch: now.Add(5 * time.Second)},
		"asked with Crawl-delay": {LastFetch: now, NextFetch: now.Add(time.Second), CrawlDelay: 20 * time.Second},
		"asked half a minute ago": {LastFetch: now.Add(-30 * time.Second), NextFetch: now.Add(-25 * time.Second), Backoff: 2,
			Robots: plain("", 3).Robots, Stats: plain("", 4).Stats},
		"busy":                    {Grants: []time.Time{now.Add(time.Minute)}, LastFetch: now.Add(-time.Hour), NextFetch: now.Add(-time.Hour + 7*time.Second)},
		"busy since long ago":     {Grants: []time.Time{now.Add(-time.Hour)}, LastFetch: now.Add(-2 * time.Hour), NextFetch: now.Add(-2*time.Hour + 7*time.Second)},
		"busy for the first time": {Grants: []time.Time{now.Add(time.Minute)}, CrawlDelay: 3 * time.Second},
		"asked, and backing off":  {LastFetch: now, NextFetch: now.Add(30 * time.Minute)},
	}
	for name, h := range hosts {
		h.Name = name
		hosts[name] = h
		c.put(s, h)
	}
	c.Must(s.Sync(c.Ctx), "Sync")
	before := time.Now()
	s = c.Crash(s)
	after := time.Now()
	for name, h := range hosts {
		got := c.get(s, name)
		lo, hi := h.AfterCrash(now, before), h.AfterCrash(now, after)
		if d := got.NextFetch; d.Before(lo.NextFetch.Add(-time.Millisecond)) || d.After(hi.NextFetch.Add(time.Millisecond)) {
			c.Failf("%s: NextFetch is %v, want %v to %v", name, d, lo.NextFetch, hi.NextFetch)
		}
		lo.NextFetch = got.NextFetch
		if err := same(got, lo); err != nil {
			c.Failf("%w", err)
		}
	}
}

func hostNotAskedBeforeCrashStaysAsItWas(c *check) {
	s := c.Store()
	now := time.Now().UTC().Truncate(time.Millisecond)
	var want []host
	for i, h := range []host{
		{},
		{LastFetch: now.Add(-time.Hour), NextFetch: now.Add(-time.Hour + 5*time.Second), CrawlDelay: 10 * time.Second},
		{NextFetch: now.Add(time.Hour)},
	} {
		h.Name = fmt.Sprint(i)
		want = append(want, h)
	}
	c.put(s, want...)
	c.Must(s.Sync(c.Ctx), "Sync")
	s = c.Crash(s)
	c.holds(s, want...)
}

func crashLetsNoHostBeAskedSooner(c *check) {
	s := c.Store()
	now := time.Now().UTC().Truncate(time.Millisecond)
	asked := func(at time.Time) host {
		return host{Name: "example.com", LastFetch: at, NextFetch: at.Add(10 * time.Second)}
	}
	c.put(s, asked(now.Add(-20*time.Second)))
	c.Must(s.Sync(c.Ctx), "Sync")
	c.put(s, asked(now)) // may be lost
	before := time.Now()
	s = c.Crash(s)
	if got := c.get(s, "example.com").NextFetch; got.Before(before.Add(10*time.Second - time.Millisecond)) {
		c.Failf("a host was asked at %v, with a pause of 10 s; after a crash at %v it may be asked again at %v, too soon", now, before, got)
	}
}

func orderlyCloseChangesNoHost(c *check) {
	s := c.Store()
	now := time.Now().UTC().Truncate(time.Millisecond)
	want := []host{
		{Name: "asked", LastFetch: now, NextFetch: now.Add(-time.Second)},
		{Name: "busy", LastFetch: now, Grants: []time.Time{now.Add(time.Minute)}},
	}
	c.put(s, want...)
	c.holds(c.Reopen(s), want...)
}

func closeSyncs(c *check) {
	s := c.Store()
	c.put(s, plain("a", 1))
	c.holds(c.Crash(c.Reopen(s)), plain("a", 1))
}
