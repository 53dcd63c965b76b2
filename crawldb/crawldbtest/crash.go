package crawldbtest

import (
	"fmt"
	"strconv"

	"github.com/recrawl/recrawl/crawldb"
)

func crashKeepsWhatWasSynced(c *check) {
	s := c.Store()
	model := map[string]crawldb.Datum{}
	urls := numbered(300)
	for round := range 4 {
		var batch []crawldb.Datum
		for i, url := range urls {
			if i%4 <= round {
				d := plain(url, round)
				batch, model[url] = append(batch, d), d
			}
		}
		mark := strconv.Itoa(round)
		c.Must(c.update(s, "job", mark, batch...), "Update")
		c.remove(s, urls[round])
		delete(model, urls[round])
		c.Must(s.Sync(c.Ctx), "Sync")
		s = c.Crash(s)
		c.holds(s, crawldb.Range{}, inOrder(model))
		c.marked(s, "job", mark)
	}
}

func crashKeepsWholeUpdates(c *check) {
	s := c.Store()
	// Update n writes n to three records of its own, to one that all updates
	// share, and to the mark.
	urls := func(n int) []string {
		return []string{fmt.Sprintf("http://a.example.com/%06d", n), fmt.Sprintf("http://b.example.com/%06d", n), fmt.Sprintf("http://c.example.com/%06d", n)}
	}
	const shared = "http://example.com/"
	synced, n := 0, 0
	for round := range 6 {
		for range 25 {
			n++
			batch := []crawldb.Datum{plain(shared, n)}
			for _, url := range urls(n) {
				batch = append(batch, plain(url, n))
			}
			c.Must(c.update(s, "job", strconv.Itoa(n), batch...), "Update")
			if n%10 == round {
				c.Must(s.Sync(c.Ctx), "Sync")
				synced = n
			}
		}
		s = c.Crash(s)
		cursor, err := s.Mark(c.Ctx, "job")
		c.Must(err, "Mark")
		last := 0
		if cursor != "" {
			last, err = strconv.Atoi(cursor)
			c.Must(err, "the mark after a crash")
		}
		if last < synced || last > n {
			c.Failf("the mark is %d after a crash; %d was synced, %d written", last, synced, n)
		}
		want := map[string]crawldb.Datum{}
		for i := 1; i <= last; i++ {
			want[shared] = plain(shared, i)
			for _, url := range urls(i) {
				want[url] = plain(url, i)
			}
		}
		c.holds(s, crawldb.Range{}, inOrder(want))
		n, synced = last, last
	}
}

func closeSyncs(c *check) {
	s := c.Store()
	a := plain("http://example.com/", 1)
	c.Must(c.update(s, "job", "cursor", a), "Update")
	s = c.Crash(c.Reopen(s))
	c.holds(s, crawldb.Range{}, []crawldb.Datum{a})
	c.marked(s, "job", "cursor")
}
