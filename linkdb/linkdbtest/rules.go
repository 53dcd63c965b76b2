package linkdbtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/linkdb"
)

func pageWithoutInlinksIsNoError(c *check) {
	s, m := c.Store(), model{}
	c.merge(s, m, 0, page("http://example.com/a", "http://example.org/", "a"))
	c.Twice(s, func(s linkdb.Store) {
		for _, url := range []string{"", "http://example.com/", "http://example.com/a\x00", "http://example.com/A", "http://example.org/", "https://example.com/a"} {
			if in := c.get(s, url); len(in) != 0 {
				c.Failf("%s has %d inlinks, want none", short(url), len(in))
			}
		}
	})
}

func anyStringCanBeURLOrAnchor(c *check) {
	s, m := c.Store(), model{}
	hostile := hostileStrings()
	var all []linkdb.Entry
	for i, url := range hostile {
		e := linkdb.Entry{URL: url}
		for j, text := range hostile {
			if (i+j)%3 == 0 {
				e.Inlinks = append(e.Inlinks, linkdb.Inlink{From: text, Anchor: hostile[(i*j)%len(hostile)]}, linkdb.Inlink{From: url, Anchor: text})
			}
		}
		all = append(all, e)
	}
	c.merge(s, m, 0, all...)
	c.Twice(s, func(s linkdb.Store) { c.holds(s, m) })
}

func pageMayHaveManyInlinks(c *check) {
	s, m := c.Store(), model{}
	c.Must(s.Merge(c.Ctx, nil, 0), "Merge of nothing")
	e := linkdb.Entry{URL: "http://example.com/"}
	for i := range 10_000 {
		e.Inlinks = append(e.Inlinks, linkdb.Inlink{From: fmt.Sprintf("http://h%d.example.org/", i*7919%10_000), Anchor: "a link"})
	}
	c.merge(s, m, 0, append(pages(5000), e)...)
	c.Twice(s, func(s linkdb.Store) { c.holds(s, m) })
}

func callerOwnsWhatItGets(c *check) {
	s, m := c.Store(), model{}
	url := "http://example.com/"
	c.merge(s, m, 0, linkdb.Entry{URL: url, Inlinks: []linkdb.Inlink{link("example.org/a", "a"), link("example.org/b", "b")}})
	clear(c.get(s, url))
	c.holds(s, m)
	for _, e := range c.scan(s, crawldb.Range{}) {
		clear(e.Inlinks)
	}
	c.holds(s, m)
	in := c.get(s, url)
	_ = append(in[:1], linkdb.Inlink{From: "spoiled"})
	_ = append(in, linkdb.Inlink{From: "spoiled"})
	c.Twice(s, func(s linkdb.Store) { c.holds(s, m) })
}

func storeNeitherKeepsNorChangesWhatItGets(c *check) {
	s, m := c.Store(), model{}
	given := []linkdb.Entry{
		{URL: "http://example.com/a", Inlinks: []linkdb.Inlink{link("example.org/b", "b"), link("example.org/a", "a"), link("example.org/b", "b")}},
		page("http://example.com/b", "http://example.org/", "c"),
	}
	before := clone(given)
	m.merge(given, 0)
	c.Must(s.Merge(c.Ctx, given, 0), "Merge")
	for i, e := range given {
		if e.URL != before[i].URL || !slices.Equal(e.Inlinks, before[i].Inlinks) {
			c.Failf("Merge changed its argument to %+q; it was %+q", e, before[i])
		}
		clear(e.Inlinks)
	}
	clear(given)
	c.Twice(s, func(s linkdb.Store) { c.holds(s, m) })
}

func emptyStoreYieldsNothing(c *check) {
	c.Twice(c.Store(), func(s linkdb.Store) { c.holds(s, model{}) })
}

func pagesAreInKeyOrder(c *check) {
	s, m := c.Store(), model{}
	all := pages(1000)
	for i, url := range hostileStrings() {
		all = append(all, page(url, "http://example.org/", fmt.Sprint(i)))
	}
	for from := range 5 {
		var batch []linkdb.Entry
		for i := from; i < len(all); i += 5 {
			batch = append(batch, all[i])
		}
		c.merge(s, m, 0, batch...)
	}
	c.Twice(s, func(s linkdb.Store) { c.holds(s, m) })
}

func rangeHasFirstKeyButNotLast(c *check) {
	s, m := c.Store(), model{}
	c.merge(s, m, 0, pages(40)...)
	bounds := []string{"", "!", "\xff\xff"}
	for i, e := range m.entries() {
		if i%7 == 0 {
			key := crawldb.Key(e.URL)
			bounds = append(bounds, key, key+"\x00", key[:len(key)-1])
		}
	}
	for _, from := range bounds {
		for _, to := range bounds {
			c.scans(s, crawldb.Range{From: from, To: to}, m)
		}
	}
	c.scans(s, crawldb.HostRange("h3.example.com"), m)
	c.scans(s, crawldb.DomainRange("example.com"), m)
}

func scanStopsWhenLoopBreaks(c *check) {
	s, m := c.Store(), model{}
	c.merge(s, m, 0, pages(30)...)
	c.Within("a scan that breaks", func() {
		for n := 1; n <= 9; n++ {
			// Called as a function: in a range loop, a sequence that goes on
			// would panic.
			calls := 0
			s.Scan(c.Ctx, crawldb.Range{})(func(_ linkdb.Entry, err error) bool {
				c.Must(err, "Scan")
				calls++
				return calls < n
			})
			if calls != n {
				c.Failf("the sequence yielded %d times although the loop broke at page %d", calls, n)
			}
			c.merge(s, m, 0, page("http://example.com/after", "http://example.org/", fmt.Sprint(n)))
		}
	})
}

func scanCanBeRunAgain(c *check) {
	s, m := c.Store(), model{}
	c.merge(s, m, 0, pages(2)...)
	seq := s.Scan(c.Ctx, crawldb.Range{})
	for range 2 {
		n := 0
		for _, err := range seq {
			c.Must(err, "Scan")
			n++
		}
		if n != 2 {
			c.Failf("the loop saw %d pages, want 2", n)
		}
	}
}

func loopMayWrite(c *check) {
	s, m := c.Store(), model{}
	all := pages(600)
	c.merge(s, m, 0, all...)
	c.Within("a scan whose loop writes", func() {
		seen := map[string]int{}
		for e, err := range s.Scan(c.Ctx, crawldb.Range{}) {
			c.Must(err, "Scan")
			seen[e.URL]++
			if len(seen)%50 == 0 && len(e.URL) < 40 {
				c.merge(s, m, 0, page(e.URL, "http://example.org/new", "new"), page(e.URL+"/new/and/longer/than/the/others", "http://example.org/", ""))
				c.get(s, e.URL)
			}
		}
		for _, e := range all {
			if seen[e.URL] != 1 {
				c.Failf("%s was seen %d times, want once", short(e.URL), seen[e.URL])
			}
		}
	})
	c.holds(s, m)
}

// target is the page of most rules, and linked returns an entry of it.
const target = "http://example.com/"

func linked() linkdb.Entry { return page(target, "http://example.org/", "a") }

func inlinksAreDistinctAndInOrder(c *check) {
	s, m := c.Store(), model{}
	c.merge(s, m, 0, linkdb.Entry{URL: target, Inlinks: []linkdb.Inlink{
		// In key order b.example.com is before a.example.org.
		link("a.example.org", "z"), link("b.example.com", "y"), link("a.example.org", "a"), link("b.example.com", "y"), link("a.example.org", ""), link("example.com", "y"),
	}})
	c.holds(s, m)
	c.merge(s, m, 0, linkdb.Entry{URL: target, Inlinks: []linkdb.Inlink{link("a.example.com", ""), link("b.example.com", "y"), link("a.example.org", "b")}})
	c.Twice(s, func(s linkdb.Store) { c.holds(s, m) })
}

func mergingAgainChangesNothing(c *check) {
	s, m := c.Store(), model{}
	for _, limit := range []int{0, 5} {
		all := randomEntries(rand.New(rand.NewPCG(c.h.Seed, 2)), 60)
		c.merge(s, m, limit, all...)
		c.merge(s, m, limit, all...)
		s = c.Twice(s, func(s linkdb.Store) { c.holds(s, m) })
	}
}

func orderOfMergesDoesNotMatter(c *check) {
	for _, limit := range []int{0, 1, 4} {
		rnd := rand.New(rand.NewPCG(c.h.Seed, 3))
		var parts [][]linkdb.Entry
		for range 6 {
			parts = append(parts, randomEntries(rnd, 40))
		}
		var first []linkdb.Entry
		for try := range 3 {
			s, m := c.Store(), model{}
			for _, part := range parts {
				c.merge(s, m, limit, part...)
			}
			got := c.scan(s, crawldb.Range{})
			if first == nil {
				first = got
			}
			if !slices.EqualFunc(got, first, func(a, b linkdb.Entry) bool { return a.URL == b.URL && slices.Equal(a.Inlinks, b.Inlinks) }) {
				c.Failf("limit %d: another order of merges, in try %d, left different links", limit, try)
			}
			rnd.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		}
	}
}

func limitKeepsFirstInlinks(c *check) {
	s, m := c.Store(), model{}
	c.merge(s, m, 3, linkdb.Entry{URL: target, Inlinks: []linkdb.Inlink{link("e", ""), link("d", ""), link("c", ""), link("b", "")}})
	c.holds(s, m)
	c.merge(s, m, 3, linkdb.Entry{URL: target, Inlinks: []linkdb.Inlink{link("a", ""), link("f", "")}})
	c.holds(s, m)
	c.merge(s, m, 2, linkdb.Entry{URL: target, Inlinks: []linkdb.Inlink{link("g", "")}})
	c.holds(s, m)
	c.merge(s, m, -1, linkdb.Entry{URL: target, Inlinks: []linkdb.Inlink{link("x", ""), link("y", ""), link("z", "")}})
	c.Twice(s, func(s linkdb.Store) { c.holds(s, m) })
}

func entryWithoutInlinksMakesNoPage(c *check) {
	s, m := c.Store(), model{}
	a := page(target, "http://example.org/", "a")
	c.merge(s, m, 0, a, linkdb.Entry{URL: "http://example.com/none"}, linkdb.Entry{URL: ""})
	c.merge(s, m, 0, linkdb.Entry{URL: target})
	c.Twice(s, func(s linkdb.Store) { c.holds(s, m) })
}

func entriesOutOfOrderAreErrOrder(c *check) {
	s, m := c.Store(), model{}
	c.merge(s, m, 0, page("http://example.com/b", "http://example.org/", "kept"))
	for _, urls := range [][]string{
		{"http://example.com/a", "http://example.com/a"},
		{"http://example.com/b", "http://example.com/a"},
		{"http://example.com/a", "http://example.com/b", "http://example.com/c", "http://example.com/a"},
		{"", ""},
		// In the order of strings, but not of keys.
		{"http://a.example.org/", "http://b.example.com/"},
	} {
		var all []linkdb.Entry
		for _, target := range urls {
			all = append(all, page(target, "http://example.org/", "new"))
		}
		c.Is(s.Merge(c.Ctx, all, 0), linkdb.ErrOrder, "Merge of %q", urls)
		c.holds(s, m)
	}
	// In the order of keys, but not of strings.
	c.merge(s, m, 0, page("http://b.example.com/", "http://example.org/", ""), page("http://a.example.org/", "http://example.org/", ""))
	c.Twice(s, func(s linkdb.Store) { c.holds(s, m) })
}

func overlappingMergesLoseNothing(c *check) {
	s, m := c.Store(), model{}
	const workers = 6
	var parts [workers][][]linkdb.Entry
	for w := range workers {
		rnd := rand.New(rand.NewPCG(c.h.Seed, uint64(w)))
		for range 15 {
			part := randomEntries(rnd, 20)
			sortEntries(part)
			parts[w] = append(parts[w], part)
			m.merge(part, 0)
		}
	}
	errs := make([]error, workers+1)
	var writers, reader sync.WaitGroup
	var stop atomic.Bool
	for w := range workers {
		writers.Go(func() {
			for _, part := range parts[w] {
				if errs[w] = s.Merge(c.Ctx, part, 0); errs[w] != nil {
					return
				}
			}
		})
	}
	reader.Go(func() {
		for !stop.Load() && errs[workers] == nil {
			for e, err := range s.Scan(c.Ctx, crawldb.Range{}) {
				if err == nil && !slices.IsSortedFunc(e.Inlinks, linkdb.CompareInlinks) {
					err = fmt.Errorf("the inlinks of %s are out of order", short(e.URL))
				}
				if err != nil {
					errs[workers] = err
					break
				}
			}
		}
	})
	writers.Wait()
	stop.Store(true)
	reader.Wait()
	c.Must(errors.Join(errs...), "Merge, or a scan during it")
	c.holds(s, m)
}

// randomEntries returns links between few pages, so that many have the same target.
func randomEntries(rnd *rand.Rand, n int) []linkdb.Entry {
	m := map[string][]linkdb.Inlink{}
	for range n {
		url := fmt.Sprintf("http://h%d.example.com/", rnd.IntN(15))
		m[url] = append(m[url], linkdb.Inlink{From: fmt.Sprintf("http://f%d.example.org/", rnd.IntN(12)), Anchor: string(rune('a' + rnd.IntN(3)))})
	}
	var all []linkdb.Entry
	for url, in := range m {
		all = append(all, linkdb.Entry{URL: url, Inlinks: in})
	}
	sortEntries(all)
	return all
}

func doneContextChangesNothing(c *check) {
	s, m := c.Store(), model{}
	c.merge(s, m, 0, linked())
	ctx, cancel := context.WithCancel(c.Ctx)
	cancel()
	_, err := s.Get(ctx, linked().URL)
	c.Is(err, context.Canceled, "Get")
	c.Is(s.Merge(ctx, []linkdb.Entry{page("http://example.com/b", "http://example.org/", "b")}, 0), context.Canceled, "Merge")
	c.ends(s.Scan(ctx, crawldb.Range{}), context.Canceled, "Scan")
	c.Twice(s, func(s linkdb.Store) { c.holds(s, m) })
}

func closedStoreIsErrClosed(c *check) {
	s := c.Store()
	c.merge(s, model{}, 0, linked())
	c.Close(s)
	c.Must(s.Close(), "second Close")
	_, err := s.Get(c.Ctx, linked().URL)
	c.Is(err, linkdb.ErrClosed, "Get")
	c.Is(s.Merge(c.Ctx, []linkdb.Entry{linked()}, 0), linkdb.ErrClosed, "Merge")
	c.ends(s.Scan(c.Ctx, crawldb.Range{}), linkdb.ErrClosed, "Scan")
}

func storesAreIndependent(c *check) {
	s, other := c.Store(), c.Store()
	c.merge(s, model{}, 0, linked())
	c.holds(other, model{})
}

func everythingIsThereAfterReopen(c *check) {
	s, m := c.Store(), model{}
	rnd := rand.New(rand.NewPCG(c.h.Seed, 4))
	for range 4 {
		c.merge(s, m, 6, randomEntries(rnd, 50)...)
		s = c.Reopen(s)
		c.holds(s, m)
	}
}

func crashKeepsEveryMergeThatReturned(c *check) {
	s, m := c.Store(), model{}
	rnd := rand.New(rand.NewPCG(c.h.Seed, 5))
	for range 4 {
		c.merge(s, m, 0, randomEntries(rnd, 50)...)
		c.merge(s, m, 0, linked())
		s = c.Crash(s)
		c.holds(s, m)
	}
}

func randomStepsAgreeWithMap(c *check) {
	for seed := c.h.Seed; seed < c.h.Seed+testlevel.Pick[uint64](1, 3); seed++ {
		c.random(seed)
	}
}

// random takes the same random steps on a store and on a model, and compares the two.
func (c *check) random(seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	hostile := hostileStrings()
	s, m := c.Store(), model{}
	defer func() { c.Prefix = "" }()
	for step := range 150 {
		c.Prefix = fmt.Sprintf("seed %d, step %d: ", seed, step)
		switch op := rnd.IntN(20); {
		case op < 9:
			c.merge(s, m, []int{0, 0, 1, 3, 10}[rnd.IntN(5)], randomEntries(rnd, 1+rnd.IntN(60))...)
		case op < 12:
			var all []linkdb.Entry
			for _, url := range hostile {
				if rnd.IntN(8) == 0 {
					all = append(all, page(url, hostile[rnd.IntN(len(hostile))], hostile[rnd.IntN(len(hostile))]))
				}
			}
			c.merge(s, m, 0, all...)
		case op < 15:
			url := hostile[rnd.IntN(len(hostile))]
			if err := same(url, c.get(s, url), m[url]); err != nil {
				c.Failf("Get: %w", err)
			}
		case op < 18:
			c.scans(s, crawldb.Range{From: crawldb.Key(hostile[rnd.IntN(len(hostile))]), To: crawldb.Key(hostile[rnd.IntN(len(hostile))])}, m)
		case op < 19 && c.h.Reopen != nil:
			s = c.Reopen(s)
		case op == 19 && c.h.Crash != nil:
			s = c.Crash(s)
		}
	}
	c.holds(s, m)
}
