package crawldbtest

import (
	"iter"
	"slices"

	"github.com/recrawl/recrawl/crawldb"
)

func missingRecordIsErrNotFound(c *check) {
	s := c.Store()
	c.missing(s, "http://example.com/")
	c.put(s, plain("http://example.com/", 1))
	for _, url := range []string{"", "http://example.com", "http://example.com/a", "https://example.com/", "http://example.com/\x00", "com,example)http:/"} {
		c.missing(s, url)
	}
}

func everyFieldIsKept(c *check) {
	s, want := c.Store(), samples()
	c.put(s, want...)
	c.Twice(s, func(s crawldb.Store) { c.holds(s, crawldb.Range{}, want) })
}

func anyStringIsURL(c *check) {
	s := c.Store()
	var want []crawldb.Datum
	for i, url := range hostileURLs() {
		want = append(want, plain(url, i))
	}
	c.put(s, want...)
	c.Twice(s, func(s crawldb.Store) { c.holds(s, crawldb.Range{}, want) })
}

func recordReplacesWholeRecord(c *check) {
	s := c.Store()
	url := "http://example.com/"
	for _, d := range samples() {
		d.URL = url
		c.put(s, d)
		if err := same(c.get(s, url), d); err != nil {
			c.Failf("%w", err)
		}
	}
	bare := crawldb.Datum{URL: url, Status: crawldb.Gone}
	c.put(s, bare)
	c.Twice(s, func(s crawldb.Store) { c.holds(s, crawldb.Range{}, []crawldb.Datum{bare}) })
}

func callerOwnsWhatItGets(c *check) {
	s := c.Store()
	want := plain("http://example.com/", 42)
	c.put(s, want)
	spoil := func(d crawldb.Datum) {
		clear(d.Signature)
		d.Meta.Set("n", "spoiled")
	}
	spoil(c.get(s, want.URL))
	c.holds(s, crawldb.Range{}, []crawldb.Datum{want})
	for _, d := range c.scan(s, crawldb.Range{}) {
		spoil(d)
	}
	c.Twice(s, func(s crawldb.Store) { c.holds(s, crawldb.Range{}, []crawldb.Datum{want}) })
}

func storeKeepsNothingThatItGets(c *check) {
	s := c.Store()
	want := []crawldb.Datum{plain("http://example.com/a", 1), plain("http://example.com/b", 2)}
	urls := []string{want[0].URL, want[1].URL}
	given := []*crawldb.Datum{new(crawldb.Datum), new(crawldb.Datum)}
	for i, d := range want {
		*given[i] = d
		given[i].Signature = slices.Clone(d.Signature)
	}
	c.Must(s.Update(c.Ctx, crawldb.Batch{
		URLs: urls,
		Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return given[i], nil },
	}), "Update")
	for i, d := range given {
		clear(d.Signature)
		*d = crawldb.Datum{Status: crawldb.Gone}
		urls[i] = "http://example.com/spoiled"
	}
	c.Twice(s, func(s crawldb.Store) { c.holds(s, crawldb.Range{}, want) })
}

func emptyStoreYieldsNothing(c *check) {
	c.Twice(c.Store(), func(s crawldb.Store) { c.holds(s, crawldb.Range{}, nil) })
}

func scanIsInKeyOrder(c *check) {
	s := c.Store()
	urls := append(numbered(3000), hostileURLs()...)
	all := map[string]crawldb.Datum{}
	// Interleaved batches, so that key order is not the order of writing.
	for from := range 5 {
		var batch []crawldb.Datum
		for i := from; i < len(urls); i += 5 {
			batch = append(batch, plain(urls[i], i))
			all[urls[i]] = batch[len(batch)-1]
		}
		c.put(s, batch...)
	}
	c.Twice(s, func(s crawldb.Store) { c.holds(s, crawldb.Range{}, inOrder(all)) })
}

func rangeHasFirstKeyButNotLast(c *check) {
	s := c.Store()
	var all []crawldb.Datum
	urls := append(numbered(30), hostileURLs()...)
	slices.SortFunc(urls, crawldb.Compare)
	for i, url := range urls {
		all = append(all, plain(url, i))
	}
	c.put(s, all...)
	bounds := []string{"", "!", "\xff\xff\xff\xff"}
	for i := 0; i < len(urls); i += 7 {
		key := crawldb.Key(urls[i])
		bounds = append(bounds, key, key+"\x00", key[:len(key)-1])
	}
	for _, from := range bounds {
		for _, to := range bounds {
			r := crawldb.Range{From: from, To: to}
			want := slices.DeleteFunc(slices.Clone(all), func(d crawldb.Datum) bool { return !r.Contains(crawldb.Key(d.URL)) })
			got := c.scan(s, r)
			if !slices.EqualFunc(got, want, func(a, b crawldb.Datum) bool { return a.URL == b.URL }) {
				c.Failf("Scan from %s to %s yielded %d records, want %d; the first difference is %s",
					short(from), short(to), len(got), len(want), firstDifference(got, want))
			}
		}
	}
}

func hostsAndDomainsAreRanges(c *check) {
	s := c.Store()
	hosts := []string{"example.com", "www.example.com", "a.www.example.com", "example.com.au", "xample.com", "examplee.com", "192.0.2.1", "[2001:db8::1]"}
	var all []crawldb.Datum
	for i, host := range hosts {
		all = append(all, plain("http://"+host+"/", i), plain("https://"+host+":8443/a?b", i))
	}
	slices.SortFunc(all, func(a, b crawldb.Datum) int { return crawldb.Compare(a.URL, b.URL) })
	c.put(s, all...)
	only := func(hosts ...string) []crawldb.Datum {
		return slices.DeleteFunc(slices.Clone(all), func(d crawldb.Datum) bool { return !slices.Contains(hosts, crawldb.Host(d.URL)) })
	}
	for _, host := range hosts {
		c.holds(s, crawldb.HostRange(host), only(host))
	}
	c.holds(s, crawldb.DomainRange("example.com"), only("example.com", "www.example.com", "a.www.example.com"))
}

func scanStopsWhenLoopBreaks(c *check) {
	s := c.Store()
	for i, url := range numbered(1000) {
		if i%100 == 0 {
			c.put(s, plain(url, i))
		}
	}
	c.Within("a scan that breaks", func() {
		for n := 1; n <= 9; n++ {
			c.breaks(errorsOf(s.Scan(c.Ctx, crawldb.Range{})), n)
			c.put(s, plain("http://example.com/after", n))
		}
	})
}

func scanCanBeRunAgain(c *check) {
	s := c.Store()
	c.put(s, plain("http://example.com/a", 1), plain("http://example.com/b", 2))
	seq := s.Scan(c.Ctx, crawldb.Range{})
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
	urls := numbered(2000)
	var all []crawldb.Datum
	for i, url := range urls {
		all = append(all, plain(url, i))
	}
	c.put(s, all...)
	c.Within("a scan whose loop writes", func() {
		seen := map[string]int{}
		last := ""
		for d, err := range s.Scan(c.Ctx, crawldb.Range{}) {
			c.Must(err, "Scan")
			if last != "" && crawldb.Compare(last, d.URL) >= 0 {
				c.Failf("%s came after %s", short(d.URL), short(last))
			}
			last = d.URL
			if d.Status != crawldb.Unfetched {
				continue // written by the loop
			}
			seen[d.URL]++
			if n := len(seen); n%50 == 0 {
				// This record, a new one after it, and one far ahead.
				d.Status = crawldb.Fetched
				c.put(s, d)
				c.put(s, crawldb.Datum{URL: d.URL + "/new", Status: crawldb.Gone})
				c.remove(s, "http://zzz.example.net/none")
				c.get(s, d.URL)
			}
		}
		for _, url := range urls {
			if seen[url] != 1 {
				c.Failf("%s was seen %d times, want once", short(url), seen[url])
			}
		}
	})
}

// errorsOf keeps only the errors of a sequence.
func errorsOf[T any](seq iter.Seq2[T, error]) iter.Seq[error] {
	return func(yield func(error) bool) {
		seq(func(_ T, err error) bool { return yield(err) })
	}
}

// breaks demands that the sequence yields n times if the loop then breaks. It calls the
// sequence as a function: in a range loop, one that goes on would panic.
func (c *check) breaks(seq iter.Seq[error], n int) {
	calls := 0
	seq(func(err error) bool {
		c.Must(err, "a sequence before the break")
		calls++
		return calls < n
	})
	if calls != n {
		c.Failf("the sequence yielded %d times although the loop broke at record %d", calls, n)
	}
}

func firstDifference(got, want []crawldb.Datum) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return short(want[i].URL) + ", which is missing"
		case i >= len(want):
			return short(got[i].URL) + ", which should not be there"
		case got[i].URL != want[i].URL:
			return short(got[i].URL) + " instead of " + short(want[i].URL)
		}
	}
	return "none"
}
