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

func recordRules() []rule {
	return []rule{
		{"a missing host is ErrNotFound", 0, func(c *check) {
			s := c.store()
			c.missing(s, "example.com")
			c.put(s, plain("example.com", 1))
			for _, name := range []string{"", "example.co", "example.com.", "example.com\x00", "EXAMPLE.COM", "www.example.com"} {
				c.missing(s, name)
			}
		}},
		{"every field is kept", 0, func(c *check) {
			s, want := c.store(), samples()
			c.put(s, want...)
			c.twice(s, func(s hostdb.Store) { c.holds(s, want...) })
		}},
		{"any string is a name", 0, func(c *check) {
			s := c.store()
			var want []host
			for i, name := range hostileNames() {
				want = append(want, plain(name, i))
			}
			c.put(s, want...)
			c.twice(s, func(s hostdb.Store) { c.holds(s, want...) })
		}},
		{"a record replaces the one before whole", 0, func(c *check) {
			s := c.store()
			for _, h := range append(samples(), host{}) {
				h.Name = "example.com"
				c.put(s, h)
				if err := same(c.get(s, h.Name), h); err != nil {
					c.failf("%w", err)
				}
			}
			c.twice(s, func(s hostdb.Store) { c.holds(s, host{Name: "example.com"}) })
		}},
		{"the caller owns what it is given", 0, func(c *check) {
			s := c.store()
			want := plain("example.com", 42)
			c.put(s, want)
			want = plain("example.com", 42)
			spoil(c.get(s, want.Name))
			c.holds(s, want)
			for _, h := range c.scan(s) {
				spoil(h)
			}
			c.twice(s, func(s hostdb.Store) { c.holds(s, want) })
		}},
		{"the store keeps nothing that it is given", 0, func(c *check) {
			s := c.store()
			given := plain("example.com", 42)
			c.must(s.Update(c.ctx, given.Name, func(*host) (*host, error) { return &given, nil }), "Update")
			spoil(given)
			given = host{}
			c.twice(s, func(s hostdb.Store) { c.holds(s, plain("example.com", 42)) })
		}},
	}
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

func scanRules() []rule {
	return []rule{
		{"an empty store yields nothing", 0, func(c *check) {
			c.twice(c.store(), func(s hostdb.Store) { c.holds(s) })
		}},
		{"a scan is in the order of the names", 0, func(c *check) {
			s, model := c.store(), map[string]host{}
			names := hostileNames()
			for i := range 400 {
				names = append(names, fmt.Sprintf("%d.example.com", i*7919%400))
			}
			for i, name := range names {
				model[name] = plain(name, i)
				c.put(s, model[name])
			}
			c.twice(s, func(s hostdb.Store) { c.holds(s, inOrder(model)...) })
		}},
		{"a scan stops when the loop breaks", 0, func(c *check) {
			s := c.store()
			for i := range 20 {
				c.put(s, plain(fmt.Sprint(i), i))
			}
			c.within("a scan that breaks", func() {
				for n := 1; n <= 9; n++ {
					// Called by hand: in a range loop, a sequence that goes on
					// would panic.
					calls := 0
					s.Scan(c.ctx)(func(_ host, err error) bool {
						c.must(err, "Scan")
						calls++
						return calls < n
					})
					if calls != n {
						c.failf("a loop that breaks at record %d was called %d times", n, calls)
					}
					c.put(s, plain("after", n))
				}
			})
		}},
		{"a scan can be run again", 0, func(c *check) {
			s := c.store()
			c.put(s, plain("a", 1), plain("b", 2))
			seq := s.Scan(c.ctx)
			for range 2 {
				n := 0
				for _, err := range seq {
					c.must(err, "Scan")
					n++
				}
				if n != 2 {
					c.failf("the loop saw %d records, want 2", n)
				}
			}
		}},
		{"the loop may write", 0, func(c *check) {
			s := c.store()
			const n = 500
			for i := range n {
				c.put(s, plain(fmt.Sprintf("%03d", i), 1))
			}
			c.within("a scan whose loop writes", func() {
				seen := map[string]int{}
				for h, err := range s.Scan(c.ctx) {
					c.must(err, "Scan")
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
						c.failf("%s was seen %d times, want once", name, seen[name])
					}
				}
			})
		}},
	}
}

func updateRules() []rule {
	return []rule{
		{"next is given what is kept", 0, func(c *check) {
			s := c.store()
			want := samples()[0]
			c.put(s, want)
			c.twice(s, func(s hostdb.Store) {
				var none *host
				err := errors.New("nothing")
				c.must(s.Update(c.ctx, want.Name, func(old *host) (*host, error) {
					if old == nil {
						err = errors.New("no record of a host that has one")
					} else {
						err = same(*old, want) // which is lent, and so must be looked at here
					}
					return old, nil
				}), "Update")
				if err != nil {
					c.failf("next was given: %w", err)
				}
				c.must(s.Update(c.ctx, "none.example.com", func(old *host) (*host, error) {
					none = old
					return old, nil
				}), "Update")
				if none != nil {
					c.failf("next was given a record of a host that has none")
				}
				c.holds(s, want)
			})
		}},
		{"what next leaves is kept", 0, func(c *check) {
			s, want := c.store(), samples()[0]
			c.put(s, want)
			for n := range 3 {
				want.Backoff, want.Robots[1].Status = n, n
				c.must(s.Update(c.ctx, want.Name, func(old *host) (*host, error) {
					h := *old
					h.Backoff, h.Robots = n, slices.Clone(old.Robots)
					h.Robots[1].Status = n
					return &h, nil
				}), "Update")
				c.must(s.Update(c.ctx, want.Name, func(old *host) (*host, error) {
					h := *old
					return &h, nil
				}), "Update")
				s = c.twice(s, func(s hostdb.Store) { c.holds(s, want) })
			}
		}},
		{"nil deletes and old leaves", 0, func(c *check) {
			s := c.store()
			a, b := plain("a", 1), plain("b", 2)
			c.put(s, a, b)
			c.remove(s, "a")
			c.remove(s, "none")
			for _, name := range []string{"b", "none"} {
				c.must(s.Update(c.ctx, name, func(old *host) (*host, error) { return old, nil }), "Update")
			}
			c.twice(s, func(s hostdb.Store) {
				c.missing(s, "a")
				c.missing(s, "none")
				c.holds(s, b)
			})
		}},
		{"a record is kept under the name of the update", 0, func(c *check) {
			s := c.store()
			other := plain("other", 7)
			for _, name := range []string{"a", "b"} {
				c.must(s.Update(c.ctx, name, func(*host) (*host, error) { return &other, nil }), "Update")
			}
			c.twice(s, func(s hostdb.Store) { c.holds(s, plain("a", 7), plain("b", 7)) })
		}},
		{"an error of next changes nothing", 0, func(c *check) {
			s := c.store()
			a := plain("a", 1)
			c.put(s, a)
			for _, name := range []string{"a", "b"} {
				for _, result := range []*host{nil, {Backoff: 2}} {
					err := s.Update(c.ctx, name, func(*host) (*host, error) { return result, errStop })
					c.is(err, errStop, "Update whose next fails")
					c.holds(s, a)
				}
			}
			c.twice(s, func(s hostdb.Store) { c.holds(s, a) })
		}},
	}
}

func lifeRules() []rule {
	return []rule{
		{"a done context changes nothing", 0, func(c *check) {
			s := c.store()
			a := plain("a", 1)
			c.put(s, a)
			ctx, cancel := context.WithCancel(c.ctx)
			cancel()
			_, err := s.Get(ctx, a.Name)
			c.is(err, context.Canceled, "Get")
			c.is(s.Update(ctx, a.Name, func(*host) (*host, error) { return nil, nil }), context.Canceled, "Update")
			c.is(s.Sync(ctx), context.Canceled, "Sync")
			c.ends(s.Scan(ctx), context.Canceled, "Scan")
			c.twice(s, func(s hostdb.Store) { c.holds(s, a) })
		}},
		{"a closed store is ErrClosed", 0, func(c *check) {
			s := c.store()
			a := plain("a", 1)
			c.put(s, a)
			c.close(s)
			c.must(s.Close(), "second Close")
			_, err := s.Get(c.ctx, a.Name)
			c.is(err, hostdb.ErrClosed, "Get")
			c.is(s.Update(c.ctx, a.Name, func(*host) (*host, error) { return nil, nil }), hostdb.ErrClosed, "Update")
			c.is(s.Sync(c.ctx), hostdb.ErrClosed, "Sync")
			c.ends(s.Scan(c.ctx), hostdb.ErrClosed, "Scan")
		}},
		{"stores are independent", 0, func(c *check) {
			s, other := c.store(), c.store()
			c.put(s, plain("a", 1))
			c.holds(other)
		}},
		{"everything is there after Reopen", needsReopen, func(c *check) {
			s, model := c.store(), map[string]host{}
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
				s = c.reopen(s)
				c.holds(s, inOrder(model)...)
			}
		}},
	}
}

func modelRules() []rule {
	return []rule{{"random steps agree with a map", 0, func(c *check) {
		for seed := c.h.Seed; seed < c.h.Seed+3; seed++ {
			c.model(seed)
		}
	}}}
}

// model does random steps on a store and on a map and compares the two.
func (c *check) model(seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	names := hostileNames()
	templates := slices.DeleteFunc(samples(), func(h host) bool { return len(h.Robots) > 0 && len(h.Robots[0].Body) > 10_000 })
	// Of other times a crash makes what it must; see the rules about crashes.
	for i := range templates {
		templates[i].LastFetch, templates[i].Busy = host{}.LastFetch, nil
	}
	s, model := c.store(), map[string]host{}
	defer func() { c.prefix = "" }()
	for step := range 400 {
		c.prefix = fmt.Sprintf("seed %d, step %d: ", seed, step)
		name := names[rnd.IntN(len(names))]
		want, ok := model[name]
		switch op := rnd.IntN(20); {
		case op < 13:
			h := templates[rnd.IntN(len(templates))]
			h.Name = name
			result, fail := [...]*host{nil, &h, &h, &h}[rnd.IntN(4)], rnd.IntN(5) == 0
			err := s.Update(c.ctx, name, func(old *host) (*host, error) {
				if ok != (old != nil) {
					return nil, fmt.Errorf("next was given a record: %v, want %v", old != nil, ok)
				}
				if ok {
					if err := same(*old, want); err != nil {
						return nil, fmt.Errorf("next was given: %w", err)
					}
				}
				if fail {
					return nil, errStop
				}
				return result, nil
			})
			switch {
			case fail:
				c.is(err, errStop, "Update whose next fails")
				continue
			case result == nil:
				delete(model, name)
			default:
				model[name] = h
			}
			c.must(err, "Update")
		case op < 17:
			if !ok {
				c.missing(s, name)
			} else if err := same(c.get(s, name), want); err != nil {
				c.failf("Get: %w", err)
			}
		case op < 18:
			c.holds(s, inOrder(model)...)
		case op < 19:
			c.must(s.Sync(c.ctx), "Sync")
		case c.h.Reopen != nil && rnd.IntN(4) == 0:
			s = c.reopen(s)
		case c.h.Crash != nil && rnd.IntN(4) == 0:
			c.must(s.Sync(c.ctx), "Sync")
			s = c.crash(s)
		}
	}
	c.holds(s, inOrder(model)...)
}
