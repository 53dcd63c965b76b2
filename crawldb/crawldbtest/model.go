package crawldbtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/testlevel"
)

func randomStepsAgreeWithMap(c *check) {
	for seed := c.h.Seed; seed < c.h.Seed+testlevel.Pick[uint64](1, 3); seed++ {
		c.model(seed)
	}
}

// model takes the same random steps on a store and on a map, and compares the two.
func (c *check) model(seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	urls := append(numbered(60), hostileURLs()...)
	slices.SortFunc(urls, crawldb.Compare)
	templates := samples()
	s := c.Store()
	model, marks := map[string]crawldb.Datum{}, map[string]string{}
	defer func() { c.Prefix = "" }()
	for step := range 300 {
		c.Prefix = fmt.Sprintf("seed %d, step %d: ", seed, step)
		switch op := rnd.IntN(20); {
		case op < 11:
			c.modelUpdate(rnd, s, urls, templates, model, marks)
		case op < 14:
			url := urls[rnd.IntN(len(urls))]
			want, ok := model[url]
			if !ok {
				c.missing(s, url)
			} else if err := same(c.get(s, url), want); err != nil {
				c.Failf("Get: %w", err)
			}
		case op < 17:
			r := crawldb.Range{From: crawldb.Key(urls[rnd.IntN(len(urls))]), To: crawldb.Key(urls[rnd.IntN(len(urls))])}
			want := slices.DeleteFunc(inOrder(model), func(d crawldb.Datum) bool { return !r.Contains(crawldb.Key(d.URL)) })
			c.holds(s, r, want)
		case op < 18:
			for job, cursor := range marks {
				c.marked(s, job, cursor)
			}
		case op < 19:
			c.Must(s.Sync(c.Ctx), "Sync")
		case c.h.Reopen != nil && rnd.IntN(4) == 0:
			s = c.Reopen(s)
		case c.h.Crash != nil && rnd.IntN(4) == 0:
			c.Must(s.Sync(c.Ctx), "Sync")
			s = c.Crash(s)
		}
	}
	c.holds(s, crawldb.Range{}, inOrder(model))
}

func (c *check) modelUpdate(rnd *rand.Rand, s crawldb.Store, urls []string, templates []crawldb.Datum, model map[string]crawldb.Datum, marks map[string]string) {
	density := 1 + rnd.IntN(40)
	var batch []string
	for _, url := range urls {
		if rnd.IntN(density) == 0 {
			batch = append(batch, url)
		}
	}
	result := make([]*crawldb.Datum, len(batch))
	pick := make([]int, len(batch)) // Next must be pure
	for i := range pick {
		pick[i] = rnd.IntN(6 * len(templates))
	}
	failAt := -1
	if len(batch) > 0 && rnd.IntN(5) == 0 {
		failAt = rnd.IntN(len(batch))
	}
	var written map[string]string
	if rnd.IntN(2) == 0 {
		written = map[string]string{string(rune('a' + rnd.IntN(3))): []string{"", "x", "y\x00"}[rnd.IntN(3)]}
	}
	err := s.Update(c.Ctx, crawldb.Batch{URLs: batch, Marks: func() map[string]string { return written }, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
		want, ok := model[batch[i]]
		if ok != (old != nil) {
			return nil, fmt.Errorf("Next for %s got a record: %v, want %v", short(batch[i]), old != nil, ok)
		}
		if ok {
			if err := same(*old, want); err != nil {
				return nil, fmt.Errorf("Next got a wrong record: %w", err)
			}
		}
		if i == failAt {
			return nil, errStop
		}
		switch n := pick[i] / len(templates); {
		case n == 0:
			result[i] = nil
		case n == 1:
			result[i] = old
			return old, nil
		case n == 2 && old != nil:
			d := *old
			d.Retries /= 2
			d.FetchTime = d.FetchTime.Add(time.Hour)
			result[i] = &d
		default:
			d := templates[pick[i]%len(templates)]
			result[i] = &d
		}
		return result[i], nil
	}})
	if failAt >= 0 {
		c.Is(err, errStop, "Update whose Next fails")
		return
	}
	c.Must(err, "Update")
	for i, d := range result {
		if d == nil {
			delete(model, batch[i])
			continue
		}
		kept := *d
		kept.URL = batch[i]
		model[batch[i]] = kept
	}
	maps.Copy(marks, written)
	if rnd.IntN(10) == 0 {
		for job, cursor := range marks {
			c.marked(s, job, cursor)
		}
	}
}
