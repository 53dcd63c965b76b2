package crawldbtest

import (
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

type dueFunc func(context.Context, crawldb.Store, crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error]

// bare hides the optional interfaces of a Store.
type bare struct{ crawldb.Store }

func byScan(ctx context.Context, s crawldb.Store, q crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error] {
	return crawldb.Due(ctx, bare{s}, q)
}

// dueEpoch is the time around which the records of these rules are due.
var dueEpoch = time.Date(2024, 6, 1, 12, 0, 0, 0, time.UTC)

// randomDatum returns a record that may be due, late, leased or far from due.
func randomDatum(rnd *rand.Rand, url string) crawldb.Datum {
	d := crawldb.Datum{URL: url, Status: crawldb.Unfetched}
	d.FetchTime = []time.Time{
		{}, time.UnixMilli(0), dueEpoch.Add(-time.Duration(rnd.IntN(1e6)) * time.Second), dueEpoch.Add(-time.Millisecond), dueEpoch, dueEpoch.Add(time.Millisecond),
		dueEpoch.Add(time.Duration(rnd.IntN(1e6)) * time.Second), dueEpoch.AddDate(5, 0, 0), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC),
	}[rnd.IntN(9)]
	if rnd.IntN(4) == 0 {
		d.LeasedUntil = []time.Time{dueEpoch.Add(-time.Hour), dueEpoch, dueEpoch.Add(time.Millisecond), dueEpoch.Add(time.Hour)}[rnd.IntN(4)]
		d.LeasedBy = "20240601000000-000"
	}
	inf := float32(math.Inf(1))
	priorities := []float32{0, 1, -1, 1e-30, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, inf, -inf, float32(math.NaN())}
	if n := rnd.IntN(4 * len(priorities)); n < len(priorities) {
		d.Priority = priorities[n]
	} else {
		d.Priority = float32(math.Exp(rnd.NormFloat64() * 3))
	}
	d.Score = d.Priority
	return d
}

// isDue reports whether a record answers a query, apart from its limit.
func isDue(d crawldb.Datum, q crawldb.DueQuery) bool {
	return (!d.FetchTime.After(q.Now) || !q.DueBeyond.IsZero() && d.FetchTime.After(q.DueBeyond)) &&
		!d.LeasedUntil.After(q.Now) &&
		!(q.MinPriority > 0 && !(d.Priority >= q.MinPriority)) &&
		(q.WantHost == nil || q.WantHost(crawldb.Host(d.URL)))
}

// candidates collects the answers to a query.
func (c *check) candidates(s crawldb.Store, due dueFunc, q crawldb.DueQuery) []crawldb.Candidate {
	var all []crawldb.Candidate
	for cand, err := range due(c.Ctx, s, q) {
		c.Must(err, "Due")
		all = append(all, cand)
	}
	return all
}

// covers demands that Due yields every record of the model that is due.
func (c *check) covers(s crawldb.Store, due dueFunc, q crawldb.DueQuery, model map[string]crawldb.Datum) {
	got := map[string]bool{}
	for _, cand := range c.candidates(s, due, q) {
		got[cand.URL] = true
	}
	for url, d := range model {
		if isDue(d, q) && !got[url] {
			c.Failf("at %v, beyond %v: %s is due and was omitted; FetchTime %v, LeasedUntil %v, Priority %v",
				q.Now, q.DueBeyond, short(url), d.FetchTime, d.LeasedUntil, d.Priority)
		}
	}
}

// dueStore returns a store of n random records, and the records.
func (c *check) dueStore(n int) (crawldb.Store, map[string]crawldb.Datum, *rand.Rand) {
	rnd := rand.New(rand.NewPCG(c.h.Seed, 1))
	s, model := c.Store(), map[string]crawldb.Datum{}
	for _, url := range append(numbered(n), hostileURLs()...) {
		model[url] = randomDatum(rnd, url)
	}
	c.put(s, inOrder(model)...)
	return s, model, rnd
}

// moments returns queries at different times, not in order: a clock may go back.
func moments() []crawldb.DueQuery {
	return []crawldb.DueQuery{
		{Now: dueEpoch},
		{Now: dueEpoch.Add(time.Millisecond)},
		{Now: dueEpoch.Add(26 * time.Hour), AheadOfClock: 25 * time.Hour, DueBeyond: dueEpoch.AddDate(1, 0, 0)},
		{Now: dueEpoch.AddDate(1, 0, 0)},
		{Now: dueEpoch.AddDate(0, -1, 0)},
		{Now: dueEpoch, DueBeyond: dueEpoch.AddDate(1, 0, 0)},
		{Now: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
		{Now: time.UnixMilli(-1)},
		{Now: dueEpoch},
	}
}

func dueOmitsNothing(c *check, due dueFunc) {
	empty := c.Store()
	if got := c.candidates(empty, due, crawldb.DueQuery{Now: dueEpoch}); len(got) > 0 {
		c.Failf("an empty store yielded %d candidates", len(got))
	}
	s, model, _ := c.dueStore(1500)
	for _, q := range moments() {
		c.covers(s, due, q, model)
	}
}

func dueIsDue(c *check, due dueFunc) {
	s, model, _ := c.dueStore(1500)
	for _, q := range moments() {
		for _, cand := range c.candidates(s, due, q) {
			if d := model[cand.URL]; cand.Due && !isDue(d, q) {
				c.Failf("at %v, beyond %v: %s is called due, but is not; FetchTime %v, LeasedUntil %v", q.Now, q.DueBeyond, short(cand.URL), d.FetchTime, d.LeasedUntil)
			}
		}
	}
}

func dueNext(c *check, due dueFunc) {
	next := func(d *crawldb.Datum) time.Time {
		if d.LeasedUntil.After(d.FetchTime) {
			return d.LeasedUntil
		}
		return d.FetchTime
	}
	s, model, _ := c.dueStore(300)
	for _, q := range moments() {
		if !q.DueBeyond.IsZero() {
			continue // the bound itself is a time at which records become due
		}
		var want, got time.Time
		earlier := func(least *time.Time, d *crawldb.Datum) {
			if at := next(d); at.After(q.Now) && (least.IsZero() || at.Before(*least)) {
				*least = at
			}
		}
		for _, d := range model {
			earlier(&want, &d)
		}
		q.NotDue = func(d *crawldb.Datum) { earlier(&got, d) }
		c.candidates(s, due, q)
		if !got.Equal(want) {
			c.Failf("at %v: the next is due at %v, want %v", q.Now, got, want)
		}
	}
}

func dueBestFirst(c *check, due dueFunc) {
	s, model, _ := c.dueStore(1500)
	// A level is at most an eighth of an octave wide, plus a little for rounding.
	const width = 1.0905078 * 1.0001
	least := float32(math.Inf(1)) // of the candidates so far
	for _, cand := range c.candidates(s, due, crawldb.DueQuery{Now: dueEpoch}) {
		d, ok := model[cand.URL]
		if !ok {
			c.Failf("%s was yielded, but was never written", short(cand.URL))
		}
		p := d.Priority
		switch {
		case p != p: // NaN has no order
			continue
		case cand.Priority != p:
			c.Failf("%s was yielded with priority %v, want %v", short(cand.URL), cand.Priority, p)
		case p > 0 && p > max(least, math.SmallestNonzeroFloat32)*width && p >= 1e-37:
			// Below 1e-37 floats are too coarse for levels.
			c.Failf("%s with priority %v came after %v", short(cand.URL), p, least)
		}
		least = min(least, p)
	}
}

func dueLimit(c *check, due dueFunc) {
	s, model, _ := c.dueStore(300)
	q := crawldb.DueQuery{Now: dueEpoch}
	total := 0
	for _, d := range model {
		if isDue(d, q) {
			total++
		}
	}
	for _, n := range []int{1, 2, 100, total, 10 * total} {
		q.Limit = n
		if got := len(c.candidates(s, due, q)); got > n || got < min(n, total) {
			c.Failf("limit %d: got %d candidates; %d records are due", n, got, total)
		}
	}
	c.covers(s, due, crawldb.DueQuery{Now: dueEpoch, Limit: 10 * len(model)}, model)
}

func dueMinPriority(c *check, due dueFunc) {
	s, model, _ := c.dueStore(600)
	for _, least := range []float32{-1, 0, 1e-30, 0.5, 1, 1.05, 2, 1000, math.MaxFloat32} {
		q := crawldb.DueQuery{Now: dueEpoch, MinPriority: least}
		c.covers(s, due, q, model)
		if least <= 0 {
			continue
		}
		for _, cand := range c.candidates(s, due, q) {
			if p := model[cand.URL].Priority; !(p >= least) {
				c.Failf("%s with priority %v was yielded; MinPriority is %v", short(cand.URL), p, least)
			}
		}
	}
}

func dueWant(c *check, due dueFunc) {
	s, model, _ := c.dueStore(600)
	hosts := map[string]bool{}
	for url := range model {
		hosts[crawldb.Host(url)] = true
	}
	var strange string
	q := crawldb.DueQuery{Now: dueEpoch, WantHost: func(host string) bool {
		if !hosts[host] {
			strange = host
		}
		return host != "h1.example.com" && host != "h2.example.com"
	}}
	c.covers(s, due, q, model)
	if strange != "" {
		c.Failf("Want was asked about %q, which is the host of no record", strange)
	}
	// A host that is full before the sequence ends takes nothing from others: neither
	// their candidates nor their share of the limit.
	for _, limit := range []int{0, 10, 25, 30, 1000} {
		taken := map[string]int{}
		full := func(host string) bool { return taken[host] >= 3 }
		got := map[string]bool{}
		for cand, err := range due(c.Ctx, s, crawldb.DueQuery{Now: dueEpoch, Limit: limit, WantHost: func(host string) bool { return !full(host) }}) {
			c.Must(err, "Due")
			taken[crawldb.Host(cand.URL)]++
			got[cand.URL] = true
		}
		if limit > 0 && len(got) == limit {
			continue
		}
		for url, d := range model {
			if isDue(d, crawldb.DueQuery{Now: dueEpoch}) && !got[url] && !full(crawldb.Host(url)) {
				c.Failf("limit %d: the sequence ended after %d candidates without %s, whose host is still wanted", limit, len(got), short(url))
			}
		}
	}
}

func dueWrites(c *check, due dueFunc) {
	s, model, _ := c.dueStore(600)
	q := crawldb.DueQuery{Now: dueEpoch}
	c.Within("a sequence of due records whose loop writes", func() {
		for n := 1; n <= 5; n++ {
			c.breaks(errorsOf(due(c.Ctx, s, q)), n)
		}
		n := 0
		got := map[string]bool{}
		for cand, err := range due(c.Ctx, s, q) {
			c.Must(err, "Due")
			got[cand.URL] = true
			if n++; n%20 == 0 { // as generate does
				d, err := s.Get(c.Ctx, cand.URL)
				c.Must(err, "Get")
				d.LeasedUntil, d.LeasedBy = dueEpoch.Add(time.Hour), "20240601120000-000"
				c.put(s, d)
			}
		}
		for url, d := range model {
			if isDue(d, q) && !got[url] {
				c.Failf("%s was omitted while the loop wrote other records", short(url))
			}
		}
	})
}

func dueFollows(c *check, due dueFunc) {
	s, model, rnd := c.dueStore(200)
	c.changes(s, due, model, rnd, 25)
}

// changes makes random changes and asks what is due after each step.
func (c *check) changes(s crawldb.Store, due dueFunc, model map[string]crawldb.Datum, rnd *rand.Rand, steps int) {
	urls := append(numbered(200), hostileURLs()...)
	slices.SortFunc(urls, crawldb.Compare)
	defer func() { c.Prefix = "" }()
	for step := range steps {
		c.Prefix = fmt.Sprintf("seed %d, step %d: ", c.h.Seed, step)
		batch := slices.DeleteFunc(slices.Clone(urls), func(string) bool { return rnd.IntN(3) > 0 })
		next := make([]*crawldb.Datum, len(batch))
		for i, url := range batch {
			old, ok := model[url]
			switch n := rnd.IntN(6); {
			case n == 0:
				delete(model, url)
				continue
			case n == 1 && ok: // the lease ends, nothing else changes
				old.LeasedUntil = time.Time{}
			case n == 2 && ok: // only the priority changes
				old.Priority *= 1.5
			case n == 3 && ok:
				old.FetchTime = dueEpoch
			default:
				old = randomDatum(rnd, url)
			}
			model[url], next[i] = old, &old
		}
		c.Must(s.Update(c.Ctx, crawldb.Batch{URLs: batch, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
			return next[i], nil
		}}), "Update")
		for _, q := range moments() {
			c.covers(s, due, q, model)
		}
	}
}

// dueTokens updates with tokens from any earlier selection.
func dueTokens(c *check, due dueFunc) {
	s, model, rnd := c.dueStore(200)
	tokens := map[string]string{}
	for step := range 12 {
		for _, q := range []crawldb.DueQuery{{Now: dueEpoch}, {Now: dueEpoch.AddDate(1, 0, 0)}}[:rnd.IntN(3)] {
			for _, cand := range c.candidates(s, due, q) {
				if step < 4 || rnd.IntN(2) > 0 {
					tokens[cand.URL] = cand.Token
				}
			}
		}
		b := crawldb.Batch{}
		for _, d := range inOrder(model) {
			if rnd.IntN(3) > 0 {
				b.URLs, b.Tokens = append(b.URLs, d.URL), append(b.Tokens, tokens[d.URL])
			}
		}
		found, next := make([]crawldb.Datum, len(b.URLs)), make([]crawldb.Datum, len(b.URLs))
		for i, url := range b.URLs {
			if next[i] = model[url]; rnd.IntN(2) > 0 {
				next[i] = randomDatum(rnd, url)
			}
		}
		b.Next = func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
			if old != nil {
				found[i] = *old
			}
			return &next[i], nil
		}
		if step%2 == 0 {
			c.Must(s.Update(c.Ctx, b), "Update")
		} else {
			c.Must(crawldb.UpdateAll(c.Ctx, s, func(yield func(crawldb.Batch, error) bool) { yield(b, nil) }), "UpdateAll")
		}
		for i, url := range b.URLs {
			if err := same(found[i], model[url]); err != nil {
				c.Failf("step %d: with the token %q, Next got a wrong record of %s: %v", step, b.Tokens[i], short(url), err)
			}
			model[url] = next[i]
		}
	}
}

func dueContext(c *check, due dueFunc) {
	s, _, _ := c.dueStore(300)
	ctx, cancel := context.WithCancel(c.Ctx)
	cancel()
	c.ends(errorsOf(due(ctx, s, crawldb.DueQuery{Now: dueEpoch})), context.Canceled, "Due")
	c.Close(s)
	c.ends(errorsOf(due(c.Ctx, s, crawldb.DueQuery{Now: dueEpoch})), crawldb.ErrClosed, "Due of a closed store")
}

func dueReopened(c *check, due dueFunc) {
	s, model, rnd := c.dueStore(200)
	c.candidates(s, due, crawldb.DueQuery{Now: dueEpoch})
	s = c.Reopen(s)
	for _, q := range moments() {
		c.covers(s, due, q, model)
	}
	c.changes(s, due, model, rnd, 3)
}

func dueCrashed(c *check, due dueFunc) {
	s, model, rnd := c.dueStore(200)
	c.Must(s.Sync(c.Ctx), "Sync")
	// Entries that Due moves in an index need not survive; due records must.
	c.candidates(s, due, crawldb.DueQuery{Now: dueEpoch.AddDate(1, 0, 0)})
	s = c.Crash(s)
	for _, q := range moments() {
		c.covers(s, due, q, model)
	}
	c.changes(s, due, model, rnd, 3)
}
