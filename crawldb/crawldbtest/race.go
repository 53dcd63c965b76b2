package crawldbtest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/testlevel"
)

func overlappingUpdatesLoseNothing(c *check) {
	s := c.Store()
	const workers, rounds = 8, 30
	urls := numbered(12)
	var group sync.WaitGroup
	errs := make([]error, workers)
	for w := range workers {
		group.Go(func() {
			for range rounds {
				// Each worker updates its own choice of URLs, in key order.
				var mine []string
				for i, url := range urls {
					if i%4 == 0 || (i+w)%3 == 0 {
						mine = append(mine, url)
					}
				}
				err := s.Update(c.Ctx, crawldb.Batch{URLs: mine, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
					n := 1
					if old != nil {
						n = old.Retries + 1
					}
					d := plain(mine[i], n)
					return &d, nil
				}})
				if err != nil {
					errs[w] = err
					return
				}
			}
		})
	}
	group.Wait()
	c.Must(errors.Join(errs...), "Update")
	var want []crawldb.Datum
	for i, url := range urls {
		n := 0
		for w := range workers {
			if i%4 == 0 || (i+w)%3 == 0 {
				n += rounds
			}
		}
		want = append(want, plain(url, n))
	}
	c.holds(s, crawldb.Range{}, want)
}

func readerSeesWholeRecords(c *check) {
	s := c.Store()
	urls := numbered(60)
	write := func(n int) error {
		return s.Update(c.Ctx, crawldb.Batch{URLs: urls, Marks: crawldb.Mark("job", fmt.Sprint(n)), Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
			if i%10 == n%10 {
				return nil, nil
			}
			d := plain(urls[i], n)
			return &d, nil
		}})
	}
	c.Must(write(0), "Update")
	whole := func(d crawldb.Datum) error { return same(d, plain(d.URL, d.Retries)) }
	var (
		group   sync.WaitGroup
		stop    atomic.Bool
		reads   atomic.Int64
		readers [3]error
	)
	group.Go(func() {
		for i := 0; !stop.Load(); i++ {
			reads.Add(1)
			d, err := s.Get(c.Ctx, urls[i%len(urls)])
			if err == nil {
				err = whole(d)
			}
			if err != nil && !errors.Is(err, crawldb.ErrNotFound) {
				readers[0] = err
				stop.Store(true)
			}
		}
	})
	group.Go(func() {
		for !stop.Load() && readers[1] == nil {
			last := ""
			for d, err := range s.Scan(c.Ctx, crawldb.Range{}) {
				if err == nil {
					err = whole(d)
				}
				if err == nil && last != "" && crawldb.Compare(last, d.URL) >= 0 {
					err = fmt.Errorf("%s came after %s", short(d.URL), short(last))
				}
				if last = d.URL; err != nil {
					readers[1] = err
					break
				}
			}
		}
	})
	group.Go(func() {
		for !stop.Load() && readers[2] == nil {
			_, readers[2] = s.Mark(c.Ctx, "job")
			readers[2] = errors.Join(readers[2], s.Sync(c.Ctx))
		}
	})
	var err error
	// Go on until the readers have read enough.
	for n := 1; (n <= testlevel.Pick(50, 150) || reads.Load() < 200) && !stop.Load() && err == nil; n++ {
		err = write(n)
	}
	stop.Store(true)
	group.Wait()
	c.Must(err, "Update")
	c.Must(errors.Join(readers[:]...), "a reader during the updates")
}
