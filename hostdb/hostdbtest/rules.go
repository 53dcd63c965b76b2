package hostdbtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/recrawl/recrawl/hostdb"
)

type host = hostdb.Host

func missingHostIsErrNotFound(c *check) {
	s := c.Store()
	c.missing(s, "example.com")
	c.put(s, plain("example.com", 1))
	for _, name := range []string{"", "example.co", "example.com.", "example.com\x00", "EXAMPLE.COM", "www.example.com"} {
		c.missing(s, name)
	}
}

func everyFieldIsKept(c *check) {
	s, want := c.Store(), samples()
	c.put(s, want...)
	c.Twice(s, func(s hostdb.Store) { c.holds(s, want...) })
}

func anyStringIsName(c *check) {
	s := c.Store()
	var want []host
	for i, name := range hostileNames() {
		want = append(want, plain(name, i))
	}
	c.put(s, want...)
	c.Twice(s, func(s hostdb.Store) { c.holds(s, want...) })
}

func recordReplacesWholeRecord(c *check) {
	s := c.Store()
	for _, h := range append(samples(), host{}) {
		h.Name = "example.com"
		c.put(s, h)
		if err := same(c.get(s, h.Name), h); err != nil {
			c.Failf("%w", err)
		}
	}
	c.Twice(s, func(s hostdb.Store) { c.holds(s, host{Name: "example.com"}) })
}

func callerOwnsWhatItGets(c *check) {
	s := c.Store()
	want := plain("example.com", 42)
	c.put(s, want)
	want = plain("example.com", 42)
	spoil(c.get(s, want.Name))
	c.holds(s, want)
	for _, h := range c.scan(s) {
		spoil(h)
	}
	c.Twice(s, func(s hostdb.Store) { c.holds(s, want) })
}

func storeKeepsNothingThatItGets(c *check) {
	s := c.Store()
	given := plain("example.com", 42)
	c.Must(s.Update(c.Ctx, given.Name, func(*host) (*host, error) { return &given, nil }), "Update")
	spoil(given)
	given = host{}
	c.Twice(s, func(s hostdb.Store) { c.holds(s, plain("example.com", 42)) })
}

// spoil changes whatever memory a record refers to.
func spoil(h host) {
	for k := range h.Fields {
		h.Fields[k]++
	}
	for i := range h.Robots {
		clear(h.Robots[i].Body)
		h.Robots[i].Origin = "spoiled"
	}
}

func emptyStoreYieldsNothing(c *check) {
	c.Twice(c.Store(), func(s hostdb.Store) { c.holds(s) })
}

func scanIsInOrderOfNames(c *check) {
	s, model := c.Store(), map[string]host{}
	names := hostileNames()
	for i := range 400 {
		names = append(names, fmt.Sprintf("%d.example.com", i*7919%400))
	}
	for i, name := range names {
		model[name] = plain(name, i)
		c.put(s, model[name])
	}
	c.Twice(s, func(s hostdb.Store) { c.holds(s, inOrder(model)...) })
}

func scanStopsWhenLoopBreaks(c *check) {
	s := c.Store()
	for i := range 20 {
		c.put(s, plain(fmt.Sprint(i), i))
	}
	c.Within("a scan that breaks", func() {
		for n := 1; n <= 9; n++ {
			// Called as a function: in a range loop, a sequence that goes on
			// would panic.
			calls := 0
			s.Scan(c.Ctx)(func(_ host, err error) bool {
				c.Must(err, "Scan")
				calls++
				return calls < n
			})
			if calls != n {
				c.Failf("the sequence yielded %d times although the loop broke at record %d", calls, n)
			}
			c.put(s, plain("after", n))
		}
	})
}

func scanCanBeRunAgain(c *check) {
	s := c.Store()
	c.put(s, plain("a", 1), plain("b", 2))
	seq := s.Scan(c.Ctx)
	for range 2 {
		n := 0
		for _, err := range seq {
			c.Must(err, "Scan")
			n++
		}
		if n != 2 {
			c.Failf("the loop saw %d records, want 2", n)
		}
	}
}

func loopMayWrite(c *check) {
	s := c.Store()
	const n = 500
	for i := range n {
		c.put(s, plain(fmt.Sprintf("%03d", i), 1))
	}
	c.Within("a scan whose loop writes", func() {
		seen := map[string]int{}
		for h, err := range s.Scan(c.Ctx) {
			c.Must(err, "Scan")
			if h.Backoff == 1 {
				seen[h.Name]++
			}
			if len(seen)%50 == 0 {
				c.put(s, plain(h.Name, 2), plain(h.Name+"a", 3))
				c.remove(s, "zzz")
				c.get(s, h.Name)
			}
		}
		for i := range n {
			if name := fmt.Sprintf("%03d", i); seen[name] != 1 {
				c.Failf("%s was seen %d times, want once", name, seen[name])
			}
		}
	})
}

func nextGetsStoredRecord(c *check) {
	s := c.Store()
	want := samples()[0]
	c.put(s, want)
	c.Twice(s, func(s hostdb.Store) {
		var none *host
		err := errors.New("nothing")
		c.Must(s.Update(c.Ctx, want.Name, func(old *host) (*host, error) {
			if old == nil {
				err = errors.New("no record of a host that has one")
			} else {
				err = same(*old, want) // old is valid only during this call
			}
			return old, nil
		}), "Update")
		if err != nil {
			c.Failf("next got a wrong record: %w", err)
		}
		c.Must(s.Update(c.Ctx, "none.example.com", func(old *host) (*host, error) {
			none = old
			return old, nil
		}), "Update")
		if none != nil {
			c.Failf("next got a record of a host that has none")
		}
		c.holds(s, want)
	})
}

func whatNextReturnsIsKept(c *check) {
	s, want := c.Store(), samples()[0]
	c.put(s, want)
	for n := range 3 {
		want.Backoff, want.Robots[1].Status = n, n
		c.Must(s.Update(c.Ctx, want.Name, func(old *host) (*host, error) {
			h := *old
			h.Backoff, h.Robots = n, slices.Clone(old.Robots)
			h.Robots[1].Status = n
			return &h, nil
		}), "Update")
		c.Must(s.Update(c.Ctx, want.Name, func(old *host) (*host, error) {
			h := *old
			return &h, nil
		}), "Update")
		s = c.Twice(s, func(s hostdb.Store) { c.holds(s, want) })
	}
}

func nilDeletesRecord(c *check) {
	s := c.Store()
	a, b := plain("a", 1), plain("b", 2)
	c.put(s, a, b)
	c.remove(s, "a")
	c.remove(s, "none")
	for _, name := range []string{"b", "none"} {
		c.Must(s.Update(c.Ctx, name, func(old *host) (*host, error) { return old, nil }), "Update")
	}
	c.Twice(s, func(s hostdb.Store) {
		c.missing(s, "a")
		c.missing(s, "none")
		c.holds(s, b)
	})
}

func recordIsStoredUnderNameOfUpdate(c *check) {
	s := c.Store()
	other := plain("other", 7)
	for _, name := range []string{"a", "b"} {
		c.Must(s.Update(c.Ctx, name, func(*host) (*host, error) { return &other, nil }), "Update")
	}
	c.Twice(s, func(s hostdb.Store) { c.holds(s, plain("a", 7), plain("b", 7)) })
}

func errorFromNextChangesNothing(c *check) {
	s := c.Store()
	a := plain("a", 1)
	c.put(s, a)
	for _, name := range []string{"a", "b"} {
		for _, result := range []*host{nil, {Backoff: 2}} {
			err := s.Update(c.Ctx, name, func(*host) (*host, error) { return result, errStop })
			c.Is(err, errStop, "Update whose next fails")
			c.holds(s, a)
		}
	}
	c.Twice(s, func(s hostdb.Store) { c.holds(s, a) })
}

func doneContextChangesNothing(c *check) {
	s := c.Store()
	a := plain("a", 1)
	c.put(s, a)
	ctx, cancel := context.WithCancel(c.Ctx)
	cancel()
	_, err := s.Get(ctx, a.Name)
	c.Is(err, context.Canceled, "Get")
	c.Is(s.Update(ctx, a.Name, func(*host) (*host, error) { return nil, nil }), context.Canceled, "Update")
	c.Is(s.Sync(ctx), context.Canceled, "Sync")
	c.ends(s.Scan(ctx), context.Canceled, "Scan")
	c.Twice(s, func(s hostdb.Store) { c.holds(s, a) })
}

func closedStoreIsErrClosed(c *check) {
	s := c.Store()
	a := plain("a", 1)
	c.put(s, a)
	c.Close(s)
	c.Must(s.Close(), "second Close")
	_, err := s.Get(c.Ctx, a.Name)
	c.Is(err, hostdb.ErrClosed, "Get")
	c.Is(s.Update(c.Ctx, a.Name, func(*host) (*host, error) { return nil, nil }), hostdb.ErrClosed, "Update")
	c.Is(s.Sync(c.Ctx), hostdb.ErrClosed, "Sync")
	c.ends(s.Scan(c.Ctx), hostdb.ErrClosed, "Scan")
}

func storesAreIndependent(c *check) {
	s, other := c.Store(), c.Store()
	c.put(s, plain("a", 1))
	c.holds(other)
}

func everythingIsThereAfterReopen(c *check) {
	s, model := c.Store(), map[string]host{}
	for round := range 4 {
		for i := range 60 {
			if i%4 <= round {
				h := plain(fmt.Sprint(i), round)
				model[h.Name] = h
				c.put(s, h)
			}
		}
		c.remove(s, fmt.Sprint(round))
		delete(model, fmt.Sprint(round))
		s = c.Reopen(s)
		c.holds(s, inOrder(model)...)
	}
}

func randomStepsAgreeWithMap(c *check) {
	for seed := c.h.Seed; seed < c.h.Seed+3; seed++ {
		c.model(seed)
	}
}

// model takes the same random steps on a store and on a map, and compares the two.
func (c *check) model(seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	names := hostileNames()
	templates := slices.DeleteFunc(samples(), func(h host) bool { return len(h.Robots) > 0 && len(h.Robots[0].Body) > 10_000 })
	// A crash changes such times; see the rules about crashes.
	for i := range templates {
		templates[i].LastFetch, templates[i].Grants = host{}.LastFetch, nil
	}
	s, model := c.Store(), map[string]host{}
	defer func() { c.Prefix = "" }()
	for step := range 400 {
		c.Prefix = fmt.Sprintf("seed %d, step %d: ", seed, step)
		name := names[rnd.IntN(len(names))]
		want, ok := model[name]
		switch op := rnd.IntN(20); {
		case op < 13:
			h := templates[rnd.IntN(len(templates))]
			h.Name = name
			result, fail := [...]*host{nil, &h, &h, &h}[rnd.IntN(4)], rnd.IntN(5) == 0
			err := s.Update(c.Ctx, name, func(old *host) (*host, error) {
				if ok != (old != nil) {
					return nil, fmt.Errorf("next got a record: %v, want %v", old != nil, ok)
				}
				if ok {
					if err := same(*old, want); err != nil {
						return nil, fmt.Errorf("next got a wrong record: %w", err)
					}
				}
				if fail {
					return nil, errStop
				}
				return result, nil
			})
			switch {
			case fail:
				c.Is(err, errStop, "Update whose next fails")
				continue
			case result == nil:
				delete(model, name)
			default:
				model[name] = h
			}
			c.Must(err, "Update")
		case op < 17:
			if !ok {
				c.missing(s, name)
			} else if err := same(c.get(s, name), want); err != nil {
				c.Failf("Get: %w", err)
			}
		case op < 18:
			c.holds(s, inOrder(model)...)
		case op < 19:
			c.Must(s.Sync(c.Ctx), "Sync")
		case c.h.Reopen != nil && rnd.IntN(4) == 0:
			s = c.Reopen(s)
		case c.h.Crash != nil && rnd.IntN(4) == 0:
			c.Must(s.Sync(c.Ctx), "Sync")
			s = c.Crash(s)
		}
	}
	c.holds(s, inOrder(model)...)
}
