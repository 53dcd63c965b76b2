package crawldbtest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
)

func nextGetsStoredRecord(c *check) {
	s := c.Store()
	a, b := plain("http://example.com/a", 1), plain("http://example.com/c", 3)
	c.put(s, a, b)
	urls := []string{"http://example.com/", a.URL, "http://example.com/b", b.URL, "http://example.com/d"}
	want := []*crawldb.Datum{nil, &a, nil, &b, nil}
	c.Twice(s, func(s crawldb.Store) {
		got := make([]*crawldb.Datum, len(urls))
		called := make([]bool, len(urls))
		c.Must(s.Update(c.Ctx, crawldb.Batch{URLs: urls, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
			if i > 0 && !called[i-1] {
				return nil, fmt.Errorf("Next was called for %d before %d", i, i-1)
			}
			called[i] = true
			if got[i] = nil; old != nil {
				d := *old
				d.Signature = slices.Clone(d.Signature)
				got[i] = &d
			}
			return old, nil
		}}), "Update")
		for i := range urls {
			switch {
			case !called[i]:
				c.Failf("Next was not called for %d", i)
			case (got[i] == nil) != (want[i] == nil):
				c.Failf("Next for %s got a record: %v, want %v", short(urls[i]), got[i] != nil, want[i] != nil)
			case got[i] != nil:
				if err := same(*got[i], *want[i]); err != nil {
					c.Failf("Next got a wrong record: %w", err)
				}
			}
		}
		c.holds(s, crawldb.Range{}, []crawldb.Datum{a, b})
	})
}

func nilDeletesRecord(c *check) {
	s := c.Store()
	var want []crawldb.Datum
	urls := hostileURLs()
	for i, url := range urls {
		if i%4 != 3 {
			want = append(want, plain(url, i))
		}
	}
	c.put(s, want...)
	// Of each four, one stays, one is deleted, one changes, and one that does
	// not exist is left alone, deleted or made.
	next := func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
		d := plain(urls[i], i+1000)
		switch {
		case i%4 == 0, i%12 == 3:
			return old, nil
		case i%4 == 1, i%12 == 7:
			return nil, nil
		}
		return &d, nil
	}
	c.Must(s.Update(c.Ctx, crawldb.Batch{URLs: urls, Next: next}), "Update")
	want = nil
	for i, url := range urls {
		switch {
		case i%4 == 0:
			want = append(want, plain(url, i))
		case i%4 == 2, i%12 == 11:
			want = append(want, plain(url, i+1000))
		}
	}
	c.Twice(s, func(s crawldb.Store) {
		c.holds(s, crawldb.Range{}, want)
		for i, url := range urls {
			if i%4 == 1 {
				c.missing(s, url)
			}
		}
	})
}

func recordIsStoredUnderURLOfBatch(c *check) {
	s := c.Store()
	urls := []string{"http://example.com/a", "http://example.com/b"}
	other := plain("http://example.com/other", 7)
	c.Must(s.Update(c.Ctx, crawldb.Batch{URLs: urls, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) {
		return &other, nil
	}}), "Update")
	c.Twice(s, func(s crawldb.Store) {
		c.holds(s, crawldb.Range{}, []crawldb.Datum{plain(urls[0], 7), plain(urls[1], 7)})
	})
}

func batchOutOfOrderIsErrOrder(c *check) {
	s := c.Store()
	a := plain("http://example.com/b", 1)
	c.Must(c.update(s, "job", "before", a), "Update")
	for _, urls := range [][]string{
		{"http://example.com/a", "http://example.com/a"},
		{"http://example.com/b", "http://example.com/a"},
		{"http://example.com/a", "http://example.com/b", "http://example.com/c", "http://example.com/a"},
		{"", ""},
		{"http://example.com/\xff", "http://example.com/\xfe"},
		// In the order of strings, but not of keys.
		{"http://a.example.org/", "http://b.example.com/"},
		{"http://a.example.com/", "http://example.com/"},
	} {
		err := s.Update(c.Ctx, crawldb.Batch{URLs: urls, Marks: crawldb.Mark("job", "after"), Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
			d := plain(urls[i], 100)
			return &d, nil
		}})
		c.Is(err, crawldb.ErrOrder, "Update of %q", urls)
		c.holds(s, crawldb.Range{}, []crawldb.Datum{a})
		c.marked(s, "job", "before")
	}
	// In the order of keys, but not of strings.
	c.put(s, plain("http://b.example.com/", 2), plain("http://a.example.org/", 3))
}

func errorFromNextChangesNothing(c *check) {
	s := c.Store()
	urls := numbered(200)
	want := []crawldb.Datum{plain(urls[0], 1), plain(urls[1], 2), plain(urls[150], 3)}
	c.Must(c.update(s, "job", "before", want...), "Update")
	for _, at := range []int{0, 1, 100, 199} {
		err := s.Update(c.Ctx, crawldb.Batch{URLs: urls, Marks: crawldb.Mark("job", "after"), Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
			if i == at {
				return nil, errStop
			}
			d := plain(urls[i], 100)
			if i == 1 {
				return nil, nil
			}
			return &d, nil
		}})
		c.Is(err, errStop, "Update whose Next fails at %d", at)
		c.holds(s, crawldb.Range{}, want)
		c.marked(s, "job", "before")
	}
	c.Twice(s, func(s crawldb.Store) {
		c.holds(s, crawldb.Range{}, want)
		c.marked(s, "job", "before")
	})
}

func batchMayBeEmptyOrLarge(c *check) {
	s := c.Store()
	c.Must(s.Update(c.Ctx, crawldb.Batch{}), "Update of an empty batch")
	c.Must(s.Sync(c.Ctx), "Sync")
	urls := numbered(20_000)
	all := make([]crawldb.Datum, len(urls))
	for i, url := range urls {
		all[i] = crawldb.Datum{URL: url, Status: crawldb.Unfetched, Score: float32(i), Priority: float32(i)}
	}
	c.put(s, all...)
	c.Must(s.Sync(c.Ctx), "Sync")
	s = c.Twice(s, func(s crawldb.Store) { c.holds(s, crawldb.Range{}, all) })
	c.remove(s, urls...)
	c.holds(s, crawldb.Range{}, nil)
}

func markIsWrittenWithItsBatch(c *check) {
	s := c.Store()
	c.marked(s, "job", "")
	url := "http://example.com/"
	c.Must(c.update(s, "job", "one", plain(url, 1)), "Update with a mark")
	c.marked(s, "job", "one")
	c.put(s, plain(url, 2)) // a batch without marks leaves them as they are
	c.marked(s, "job", "one")
	c.marked(s, "", "")
	c.Must(c.update(s, "job", "two"), "Update with a mark and no URLs")
	c.Twice(s, func(s crawldb.Store) {
		c.marked(s, "job", "two")
		c.holds(s, crawldb.Range{}, []crawldb.Datum{plain(url, 2)})
	})
}

func marksAreThoseAfterLastNext(c *check) {
	s := c.Store()
	c.Must(c.update(s, "old", "one", plain("http://example.com/0001", 1)), "Update")
	urls := numbered(300)
	found := make([]bool, len(urls))
	b := crawldb.Batch{URLs: urls, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
		found[i] = true
		d := plain(urls[i], 2)
		return &d, nil
	}}
	b.Marks = func() map[string]string {
		n := 0
		for _, f := range found {
			if f {
				n++
			}
		}
		return map[string]string{"count": fmt.Sprint(n), "\x00\xff": "\xff\x00", "old": "", "none": "", "job": "at"}
	}
	c.Must(s.Update(c.Ctx, b), "Update with several marks")
	want := map[string]string{"count": "300", "\x00\xff": "\xff\x00", "old": "", "none": "", "job": "at"}
	s = c.Twice(s, func(s crawldb.Store) {
		for job, cursor := range want {
			c.marked(s, job, cursor)
		}
	})
	c.Must(s.Update(c.Ctx, crawldb.Batch{Marks: func() map[string]string { return map[string]string{"count": "0"} }}), "Update with nothing else")
	c.marked(s, "count", "0")
	b.Next = func(int, *crawldb.Datum) (*crawldb.Datum, error) { return nil, errStop }
	c.Is(s.Update(c.Ctx, b), errStop, "Update whose Next fails")
	c.marked(s, "count", "0")
}

func emptyValueRemovesMark(c *check) {
	s := c.Store()
	c.Must(c.update(s, "job", "one"), "Update with a mark")
	c.Must(c.update(s, "other", "two"), "Update with a mark")
	c.Must(c.update(s, "job", ""), "Update that removes a mark")
	c.Must(c.update(s, "none", ""), "Update that removes a mark that is not there")
	c.Twice(s, func(s crawldb.Store) {
		c.marked(s, "job", "")
		c.marked(s, "none", "")
		c.marked(s, "other", "two")
	})
}

func eachNameHasItsOwnMark(c *check) {
	s := c.Store()
	names := []string{"", "a", "A", "a\x00", "a\x00b", "a/b", "ab", "\x00", "\xff", "\xff\xff", "é", "e\u0301", "'\"\\", "update 20240229235959-000", strings.Repeat("j", 1000), "http://example.com/", "com,example)http:/"}
	for i, name := range names {
		b := writing(name, name+"\x00\xff", plain("http://example.com/", i))
		c.Must(s.Update(c.Ctx, b), "Update with the mark %s", short(name))
	}
	c.Must(c.update(s, "large", strings.Repeat("c\x00", 50_000)), "Update with a large mark")
	want := []crawldb.Datum{plain("http://example.com/", len(names)-1)}
	c.Twice(s, func(s crawldb.Store) {
		for _, name := range names {
			c.marked(s, name, name+"\x00\xff")
		}
		c.marked(s, "large", strings.Repeat("c\x00", 50_000))
		c.holds(s, crawldb.Range{}, want) // a mark is not a record
	})
}

func marksListsEveryMarkInOrder(c *check) {
	s := c.Store()
	_, ok := s.(crawldb.MarkStore)
	c.Need(ok, "the store is no crawldb.MarkStore")
	all := map[string]string{"": "no name", "\xff\xff": "last", "a\x00b": "\x00", "large": strings.Repeat("c", 50_000)}
	for i := range 1000 {
		all[fmt.Sprintf("round/%d", i)] = fmt.Sprint(i)
	}
	write := func(marks map[string]string) {
		c.Must(s.Update(c.Ctx, crawldb.Batch{Marks: func() map[string]string { return marks }}), "Update with marks")
	}
	write(all)
	write(map[string]string{"round/7": "", "round/8": "again"})
	delete(all, "round/7")
	all["round/8"] = "again"
	c.put(s, plain("http://example.com/", 1)) // a record is not a mark
	c.Twice(s, func(s crawldb.Store) {
		last, n := "", 0
		for m, err := range crawldb.Marks(c.Ctx, s) {
			c.Must(err, "Marks")
			if n > 0 && m.Name <= last {
				c.Failf("Marks yields %s after %s", short(m.Name), short(last))
			}
			if want, ok := all[m.Name]; !ok || m.Value != want {
				c.Failf("Marks yields %s with %s, want %s", short(m.Name), short(m.Value), short(want))
			}
			last, n = m.Name, n+1
		}
		if n != len(all) {
			c.Failf("Marks yields %d marks, want %d", n, len(all))
		}
		for range crawldb.Marks(c.Ctx, s) {
			c.marked(s, "round/8", "again")
			break
		}
	})
}

func ambiguousCommitIsAppliedOnce(c *check) {
	c.Need(c.h.LoseAnswer != nil, "Harness.LoseAnswer is nil")
	s := c.Store()
	const url = "http://example.com/"
	applied := 0
	update := func(what string) {
		n := 0
		err := s.Update(c.Ctx, crawldb.Batch{
			URLs: []string{url},
			Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
				d := plain(url, 0)
				if old != nil {
					d = *old
				}
				d.Retries++
				n = d.Retries
				return &d, nil
			},
			Marks: func() map[string]string { return map[string]string{"count": fmt.Sprint(n)} },
		})
		if err == nil {
			applied++
		}
		d, e := s.Get(c.Ctx, url)
		c.Must(e, "Get after %s", what)
		if d.Retries != applied {
			c.Failf("after %s, which returned %v, %d updates were applied, want %d", what, err, d.Retries, applied)
		}
		c.marked(s, "count", fmt.Sprint(applied))
	}
	update("an update")
	for range 3 {
		for _, reached := range []bool{true, false} {
			c.h.LoseAnswer(s, reached)
			update(fmt.Sprintf("an update whose answer was lost (applied: %v)", reached))
			update("the update after that")
		}
	}
}

func doneContextChangesNothing(c *check) {
	s := c.Store()
	a := plain("http://example.com/", 1)
	c.Must(c.update(s, "job", "before", a), "Update")
	ctx, cancel := context.WithCancel(c.Ctx)
	cancel()
	_, err := s.Get(ctx, a.URL)
	c.Is(err, context.Canceled, "Get")
	_, err = s.Mark(ctx, "job")
	c.Is(err, context.Canceled, "Mark")
	c.Is(s.Sync(ctx), context.Canceled, "Sync")
	c.ends(errorsOf(s.Scan(ctx, crawldb.Range{})), context.Canceled, "Scan")
	err = s.Update(ctx, crawldb.Batch{URLs: []string{a.URL}, Marks: crawldb.Mark("job", "after"), Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) {
		return nil, nil
	}})
	c.Is(err, context.Canceled, "Update")
	c.Twice(s, func(s crawldb.Store) {
		c.holds(s, crawldb.Range{}, []crawldb.Datum{a})
		c.marked(s, "job", "before")
	})
}

func cancelledUpdateChangesAllOrNothing(c *check) {
	s := c.Store()
	urls := numbered(3000)
	for round, at := range []int{0, 1500, 2999} {
		ctx, cancel := context.WithCancel(c.Ctx)
		err := s.Update(ctx, crawldb.Batch{URLs: urls, Marks: crawldb.Mark("job", "after"), Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
			if i == at {
				cancel()
			}
			d := plain(urls[i], round)
			return &d, nil
		}})
		cancel()
		if n := len(c.scan(s, crawldb.Range{})); err == nil && n != len(urls) || err != nil && n != 0 {
			c.Failf("Update returned %v, but %d of %d records are written", err, n, len(urls))
		}
		if err != nil {
			c.Is(err, context.Canceled, "Update")
			c.marked(s, "job", "")
			continue
		}
		c.Must(c.update(s, "job", ""), "Update")
		c.remove(s, urls...)
	}
}

func scanHeedsItsContext(c *check) {
	s := c.Store()
	var all []crawldb.Datum
	for i, url := range numbered(20_000) {
		all = append(all, crawldb.Datum{URL: url, Status: crawldb.Unfetched, Retries: i})
	}
	c.put(s, all...)
	ctx, cancel := context.WithCancel(c.Ctx)
	defer cancel()
	n, failed := 0, error(nil)
	for _, err := range s.Scan(ctx, crawldb.Range{}) {
		if failed != nil {
			c.Failf("the sequence went on after its error")
		}
		if failed = err; err == nil {
			n++
		}
		cancel()
	}
	if failed != nil {
		c.Is(failed, context.Canceled, "Scan")
	} else if n != len(all) {
		c.Failf("a scan that was cancelled yielded %d of %d records and no error", n, len(all))
	}
}

func closedStoreIsErrClosed(c *check) {
	s := c.Store()
	a := plain("http://example.com/", 1)
	c.put(s, a)
	c.Close(s)
	c.Must(s.Close(), "second Close")
	_, err := s.Get(c.Ctx, a.URL)
	c.Is(err, crawldb.ErrClosed, "Get")
	_, err = s.Mark(c.Ctx, "job")
	c.Is(err, crawldb.ErrClosed, "Mark")
	c.Is(s.Sync(c.Ctx), crawldb.ErrClosed, "Sync")
	c.ends(errorsOf(s.Scan(c.Ctx, crawldb.Range{})), crawldb.ErrClosed, "Scan")
	c.Is(c.update(s, "job", "cursor", a), crawldb.ErrClosed, "Update")
	c.ends(errorsOf(crawldb.Due(c.Ctx, s, crawldb.DueQuery{})), crawldb.ErrClosed, "Due")
	c.Must(s.Close(), "third Close")
}

func closeWaitsForNoOne(c *check) {
	s := c.Store()
	for i, url := range numbered(2000) {
		if i%200 == 0 {
			c.put(s, plain(url, i))
		}
	}
	c.Within("Close inside a scan", func() {
		var failed error
		for _, err := range s.Scan(c.Ctx, crawldb.Range{}) {
			if failed != nil {
				c.Failf("the sequence went on after its error")
			}
			if failed = err; err == nil {
				c.Close(s)
			}
		}
		if failed != nil {
			c.Is(failed, crawldb.ErrClosed, "Scan of a store that was closed meanwhile")
		}
	})
}

func storesAreIndependent(c *check) {
	s, other := c.Store(), c.Store()
	c.Must(c.update(s, "job", "cursor", plain("http://example.com/", 1)), "Update")
	c.holds(other, crawldb.Range{}, nil)
	c.marked(other, "job", "")
}

func everythingIsThereAfterReopen(c *check) {
	s := c.Store()
	model := map[string]crawldb.Datum{}
	for round := range 5 {
		var batch []crawldb.Datum
		for i, url := range numbered(500) {
			if i%5 <= round {
				d := plain(url, round)
				batch, model[url] = append(batch, d), d
			}
		}
		c.Must(c.update(s, "job", string(rune('a'+round)), batch...), "Update")
		s = c.Reopen(s)
		c.holds(s, crawldb.Range{}, inOrder(model))
		c.marked(s, "job", string(rune('a'+round)))
	}
}
