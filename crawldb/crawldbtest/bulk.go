package crawldbtest

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/testlevel"
)

type bulkFunc func(context.Context, crawldb.Store, iter.Seq2[crawldb.Batch, error]) error

func oneByOne(ctx context.Context, s crawldb.Store, batches iter.Seq2[crawldb.Batch, error]) error {
	return crawldb.UpdateAll(ctx, bare{s}, batches)
}

// seq yields batches and then an error, if there is one.
func seq(batches []crawldb.Batch, err error) iter.Seq2[crawldb.Batch, error] {
	return func(yield func(crawldb.Batch, error) bool) {
		for _, b := range batches {
			if !yield(b, nil) {
				return
			}
		}
		if err != nil {
			yield(crawldb.Batch{}, err)
		}
	}
}

// writing returns a batch that writes the records, which are in key order.
func writing(mark, value string, data ...crawldb.Datum) crawldb.Batch {
	b := crawldb.Batch{Marks: crawldb.Mark(mark, value)}
	for _, d := range data {
		b.URLs = append(b.URLs, d.URL)
	}
	b.Next = func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
		d := data[i]
		return &d, nil
	}
	return b
}

// numberedBatches returns n batches of ascending records, each with its number in
// the mark of "job", and the records of all.
func numberedBatches(n, each int) (batches []crawldb.Batch, data []crawldb.Datum) {
	for i, url := range numbered(n * each) {
		data = append(data, plain(url, i))
	}
	for i := range n {
		batches = append(batches, writing("job", strconv.Itoa(i+1), data[i*each:(i+1)*each]...))
	}
	return batches, data
}

func bulkLeaves(c *check, all bulkFunc) {
	rnd := rand.New(rand.NewPCG(c.h.Seed, 2))
	s, model, marks := c.Store(), map[string]crawldb.Datum{}, map[string]string{}
	urls := append(numbered(1000), hostileURLs()...)
	slices.SortFunc(urls, crawldb.Compare)
	for step := range testlevel.Pick(2, 4) {
		c.Prefix = fmt.Sprintf("seed %d, step %d: ", c.h.Seed, step)
		var batches []crawldb.Batch
		rest := urls
		for n := 0; len(rest) > 0; n++ {
			// Most batches come one after another; a few go back to the start.
			part := rest[:min(len(rest), rnd.IntN(120))]
			if rest = rest[len(part):]; rnd.IntN(6) == 0 {
				part = urls[:rnd.IntN(50)]
			}
			next := make([]*crawldb.Datum, len(part))
			for i, url := range part {
				next[i] = nil
				delete(model, url)
				if rnd.IntN(4) > 0 {
					d := plain(url, rnd.IntN(1e6))
					model[url], next[i] = d, &d
				}
			}
			b := crawldb.Batch{URLs: part, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return next[i], nil }}
			job, cursor := fmt.Sprint("job ", rnd.IntN(3)), fmt.Sprint(step, n)
			switch rnd.IntN(4) {
			case 0:
				b.Marks, marks[job] = crawldb.Mark(job, cursor), cursor
			case 1:
				b.Marks, marks[job] = crawldb.Mark(job, ""), ""
			case 2:
				b.Marks = func() map[string]string { return map[string]string{job: cursor, "gone": ""} }
				marks[job] = cursor
			}
			batches = append(batches, b)
		}
		c.Must(all(c.Ctx, s, seq(batches, nil)), "UpdateAll")
		prefix := c.Prefix
		s = c.Twice(s, func(s crawldb.Store) {
			c.holds(s, crawldb.Range{}, inOrder(model))
			for job, cursor := range marks {
				c.marked(s, job, cursor)
			}
			c.marked(s, "gone", "")
		})
		c.Prefix = prefix
	}
	c.Prefix = ""
	c.Must(all(c.Ctx, s, seq(nil, nil)), "UpdateAll of nothing")
	c.Must(all(c.Ctx, s, seq([]crawldb.Batch{{}, {Marks: crawldb.Mark("job", "alone")}, {}}, nil)), "UpdateAll of a mark")
	c.marked(s, "job", "alone")
	// Enough for an engine to write it in bulk, and then to replace it.
	var data []crawldb.Datum
	for i, url := range numbered(5000) {
		d := plain(url, i)
		data, model[url] = append(data, d), d
	}
	var batches []crawldb.Batch
	for part := range slices.Chunk(data, 1500) {
		batches = append(batches, writing("job", "", part...))
	}
	for range 2 {
		c.Must(all(c.Ctx, s, seq(batches, nil)), "UpdateAll")
		c.holds(s, crawldb.Range{}, inOrder(model))
	}
}

func bulkGives(c *check, all bulkFunc) {
	s := c.Store()
	urls := numbered(400)
	c.put(s, plain(urls[0], 1))
	add := func(url string, old *crawldb.Datum) *crawldb.Datum {
		n := 1
		if old != nil {
			n += old.Retries
		}
		d := plain(url, n)
		return &d
	}
	var batches []crawldb.Batch
	for _, part := range [][]string{urls[:100], urls[100:300], urls[200:], urls[:300], urls[299:300], urls} {
		batches = append(batches, crawldb.Batch{URLs: part, Next: func(i int, old *crawldb.Datum) (*crawldb.Datum, error) { return add(part[i], old), nil }})
	}
	c.Must(all(c.Ctx, s, seq(batches, nil)), "UpdateAll")
	want := map[string]crawldb.Datum{urls[0]: plain(urls[0], 1)}
	for _, b := range batches {
		for _, url := range b.URLs {
			n := want[url].Retries + 1
			want[url] = plain(url, n)
		}
	}
	c.holds(s, crawldb.Range{}, inOrder(want))
}

func bulkForgets(c *check, all bulkFunc) {
	s := c.Store()
	urls := numbered(2000)
	var want []crawldb.Datum
	for i, url := range urls {
		want = append(want, plain(url, i))
	}
	c.Must(all(c.Ctx, s, func(yield func(crawldb.Batch, error) bool) {
		// All batches share the same memory.
		part, data, valid := make([]string, 100), make([]crawldb.Datum, 100), true
		for at := 0; at < len(urls); at += len(part) {
			copy(part, urls[at:])
			copy(data, want[at:])
			valid = true
			ok := yield(crawldb.Batch{URLs: part, Marks: crawldb.Mark("job", fmt.Sprint(at)), Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
				if !valid {
					return nil, fmt.Errorf("Next was called after its batch")
				}
				return &data[i], nil
			}}, nil)
			if valid = false; !ok {
				return
			}
			clear(part)
			clear(data)
		}
	}), "UpdateAll")
	c.holds(s, crawldb.Range{}, want)
	c.marked(s, "job", "1900")
}

// bulkTells demands that the sequence can read the marks, and that they are those of an
// earlier batch, and never go back.
func bulkTells(c *check, all bulkFunc) {
	s := c.Store()
	batches, data := numberedBatches(40, 60)
	for i := range batches {
		n := strconv.Itoa(i + 1)
		batches[i].Marks = func() map[string]string { return map[string]string{"job": n, "other": n} }
	}
	last := 0
	c.Must(all(c.Ctx, s, func(yield func(crawldb.Batch, error) bool) {
		for i, b := range batches {
			at := make(map[string]int)
			for _, job := range []string{"job", "other"} {
				cursor, err := s.Mark(c.Ctx, job)
				c.Must(err, "Mark within the sequence")
				if cursor != "" {
					at[job], _ = strconv.Atoi(cursor)
				}
				if at[job] > i {
					c.Failf("the mark of %s is %s after only %d batches", job, cursor, i)
				}
			}
			if at["job"] < last || at["other"] < at["job"] {
				c.Failf("the marks are %v after that of \"job\" was %d", at, last)
			}
			last = at["job"]
			if !yield(b, nil) {
				return
			}
		}
	}), "UpdateAll")
	c.holds(s, crawldb.Range{}, data)
	c.marked(s, "job", "40")
}

// bulkEnds demands that after an error the store holds the batches up to the one that the
// mark names, and nothing of later ones.
func bulkEnds(c *check, all bulkFunc) {
	const n, each = 20, 60
	for place, at := range []int{0, 1, 13, n - 1} {
		for what := range 4 {
			if !testlevel.Exhaustive && (place+what)%2 != 0 {
				continue
			}
			s := c.Store()
			batches, data := numberedBatches(n, each)
			want, ctx, cancel := errStop, c.Ctx, func() {}
			var broken iter.Seq2[crawldb.Batch, error]
			switch what {
			case 0:
				b := &batches[at]
				next := b.Next
				b.Next = func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
					if i == each/2 {
						return nil, errStop
					}
					return next(i, old)
				}
				broken = seq(batches, nil)
			case 1:
				slices.Reverse(batches[at].URLs)
				want, broken = crawldb.ErrOrder, seq(batches, nil)
			case 2:
				broken = seq(batches[:at], errStop)
			case 3:
				ctx, cancel = context.WithCancel(c.Ctx)
				want = context.Canceled
				b := &batches[at]
				next := b.Next
				b.Next = func(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
					cancel()
					return next(i, old)
				}
				broken = seq(batches, nil)
			}
			err := all(ctx, s, broken)
			cancel()
			if what < 3 || err != nil || at < n-1 { // the last batch may succeed
				c.Is(err, want, "UpdateAll whose batch %d fails", at)
			}
			s = c.Twice(s, func(s crawldb.Store) {
				cursor, err := s.Mark(c.Ctx, "job")
				c.Must(err, "Mark")
				done, _ := strconv.Atoi(cursor)
				most := at
				if what == 3 {
					most++
				}
				if done > most {
					c.Failf("the mark is %d after an error in batch %d", done, at)
				}
				c.holds(s, crawldb.Range{}, data[:done*each])
			})
			// The store can still be used.
			batches, _ = numberedBatches(n, each)
			c.Must(all(c.Ctx, s, seq(batches, nil)), "UpdateAll after an error")
			c.holds(s, crawldb.Range{}, data)
			c.marked(s, "job", strconv.Itoa(n))
		}
	}
}

func bulkContext(c *check, all bulkFunc) {
	s := c.Store()
	batches, _ := numberedBatches(3, 10)
	ctx, cancel := context.WithCancel(c.Ctx)
	cancel()
	c.Is(all(ctx, s, seq(batches, nil)), context.Canceled, "UpdateAll")
	c.Is(all(ctx, s, seq(nil, nil)), context.Canceled, "UpdateAll of nothing")
	c.holds(s, crawldb.Range{}, nil)
	c.marked(s, "job", "")
	c.Close(s)
	c.Is(all(c.Ctx, s, seq(batches, nil)), crawldb.ErrClosed, "UpdateAll of a closed store")
	c.Is(all(c.Ctx, s, seq(nil, nil)), crawldb.ErrClosed, "UpdateAll of a closed store, of nothing")
}

// bulkSyncs demands that a crash loses neither an UpdateAll that returned nor an update
// before it, and keeps a later update whole or not at all.
func bulkSyncs(c *check, all bulkFunc) {
	s := c.Store()
	model := map[string]crawldb.Datum{}
	urls := numbered(600)
	for round := range 5 {
		a, z := plain(urls[round], 1000+round), plain(urls[599-round], 2000+round)
		c.Must(c.update(s, "before", fmt.Sprint(round), a), "Update")
		model[a.URL] = a
		var batches []crawldb.Batch
		for i, part := range slices.Collect(slices.Chunk(urls, 100)) {
			var data []crawldb.Datum
			for _, url := range part {
				d := plain(url, round)
				data, model[url] = append(data, d), d
			}
			batches = append(batches, writing("job", fmt.Sprint(round, i), data...))
		}
		c.Must(all(c.Ctx, s, seq(batches, nil)), "UpdateAll")
		c.Must(c.update(s, "behind", fmt.Sprint(round), z), "Update")
		s = c.Crash(s)
		c.marked(s, "before", fmt.Sprint(round))
		c.marked(s, "job", fmt.Sprint(round, 5))
		want := maps.Clone(model)
		if behind, err := s.Mark(c.Ctx, "behind"); err != nil {
			c.Must(err, "Mark")
		} else if behind == fmt.Sprint(round) {
			want[z.URL] = z
		}
		model = want
		c.holds(s, crawldb.Range{}, inOrder(want))
	}
}

func bulkDue(c *check, all bulkFunc) {
	s, model, rnd := c.dueStore(300)
	urls := append(numbered(1000), hostileURLs()...)
	slices.SortFunc(urls, crawldb.Compare)
	urls = slices.Compact(urls)
	for range 2 {
		for _, now := range []time.Time{dueEpoch, dueEpoch.Add(30 * time.Hour)} {
			c.candidates(s, crawldb.Due, crawldb.DueQuery{Now: now}) // lets an index move entries
			var batches []crawldb.Batch
			for part := range slices.Chunk(urls, 250) {
				next := make([]*crawldb.Datum, len(part))
				for i, url := range part {
					if rnd.IntN(5) == 0 {
						delete(model, url)
						continue
					}
					d := randomDatum(rnd, url)
					model[url], next[i] = d, &d
				}
				batches = append(batches, crawldb.Batch{URLs: part, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return next[i], nil }})
			}
			c.Must(all(c.Ctx, s, seq(batches, nil)), "UpdateAll")
			for _, q := range moments() {
				c.covers(s, crawldb.Due, q, model)
			}
		}
	}
}
