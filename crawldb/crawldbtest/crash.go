package crawldbtest

import (
	"fmt"
	"strconv"

	"github.com/recrawl/recrawl/crawldb"
)

func crashRules() []rule {
	return []rule{
		{"a crash keeps what was synced", needsCrash, func(c *check) {
			s := c.store()
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
				c.must(c.update(s, "job", mark, batch...), "Update")
				c.remove(s, urls[round])
				delete(model, urls[round])
				c.must(s.Sync(c.ctx), "Sync")
				s = c.crash(s)
				c.holds(s, crawldb.Range{}, inOrder(model))
				c.progress(s, "job", mark)
			}
		}},
		{"a crash keeps whole updates and no later one without an earlier", needsCrash, func(c *check) {
			s := c.store()
			// Update n writes n into three records of its own, into one that all
			// share, and into the mark.
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
					c.must(c.update(s, "job", strconv.Itoa(n), batch...), "Update")
					if n%10 == round {
						c.must(s.Sync(c.ctx), "Sync")
						synced = n
					}
				}
				s = c.crash(s)
				cursor, err := s.Progress(c.ctx, "job")
				c.must(err, "Progress")
				last := 0
				if cursor != "" {
					last, err = strconv.Atoi(cursor)
					c.must(err, "the mark after a crash")
				}
				if last < synced || last > n {
					c.failf("the mark is %d after a crash; %d was synced, %d written", last, synced, n)
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
		}},
		{"Close syncs", needsCrash | needsReopen, func(c *check) {
			s := c.store()
			a := plain("http://example.com/", 1)
			c.must(c.update(s, "job", "cursor", a), "Update")
			s = c.crash(c.reopen(s))
			c.holds(s, crawldb.Range{}, []crawldb.Datum{a})
			c.progress(s, "job", "cursor")
		}},
	}
}
