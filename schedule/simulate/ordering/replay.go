package ordering

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/scoring/rank"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/update"
)

// replay is one crawl.
type replay struct {
	w      *Web
	order  Order
	o      Options
	truth  []float64
	places []uint32 // of the pages in the order of their keys
	rnd    *rand.Rand

	seeds    []int // all pages, in the order in which they are chosen
	known    []bool
	frontier []candidate
	found    uint32 // how many pages have become known
	trace    trace

	// Of a filter.
	records []crawldb.Datum
	u       update.Options
	now     time.Time
	graph   *rank.Graph // nil if there is nothing to rank
	number  []uint32    // of each page in the graph, from 1
	pages   []uint32    // of the graph, which page of the web it is

	ranking         time.Duration
	ranked, written int
}

// candidate is a page that is known but not fetched. It comes before others with a lower
// score and, with an equal score, before those with a higher turn.
type candidate struct {
	page  uint32
	turn  uint32
	score float64
}

func newReplay(w *Web, order Order, o Options, truth []float64, places []uint32, rnd *rand.Rand) *replay {
	n := w.Pages()
	r := &replay{w: w, order: order, o: o, truth: truth, places: places, rnd: rnd, seeds: rnd.Perm(n), known: make([]bool, n)}
	if order.by == byFilter {
		r.records = make([]crawldb.Datum, n)
		r.now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		r.u = order.Update
		r.u.Scoring = order.Filter
		r.u.Now = func() time.Time { return r.now }
		if f, ok := scoring.PageRankOf(order.Filter); ok {
			r.graph, r.number = rank.NewGraph(f, order.Rank.Memory), make([]uint32, n)
		}
	}
	return r
}

// crawl fetches all pages.
func (r *replay) crawl(ctx context.Context) error {
	n := r.w.Pages()
	size := max(1, int(r.o.Batch*float64(n)+0.5))
	held, downloaded := 0.0, 0
	r.trace.add(0, 0)
	for downloaded < n {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(r.frontier) == 0 {
			r.inject()
		}
		batch := r.take(size)
		if r.order.by == byFilter {
			r.now = r.now.Add(time.Duration(float64(r.o.Span) * float64(len(batch)) / float64(n)))
			if err := r.fetch(ctx, batch); err != nil {
				return err
			}
		} else {
			r.see(batch)
		}
		for _, p := range batch {
			held += r.truth[p]
		}
		downloaded += len(batch)
		r.trace.add(float64(downloaded)/float64(n), held)
	}
	return nil
}

// inject makes some pages known.
func (r *replay) inject() {
	for k := 0; k < r.o.Seeds && len(r.seeds) > 0; {
		p := uint32(r.seeds[0])
		r.seeds = r.seeds[1:]
		if r.known[p] {
			continue
		}
		k++
		if r.records != nil {
			d := crawldb.Datum{URL: r.w.urls[p], Status: crawldb.Unfetched, Score: 1}
			r.order.Filter.Injected(&d)
			d.Priority = r.order.Filter.Priority(&d, d.Score)
			r.records[p] = d
		}
		r.discover(p)
	}
}

// discover puts a page that is new among the candidates.
func (r *replay) discover(p uint32) {
	c := candidate{page: p, turn: r.found}
	switch r.order.by {
	case byFilter:
		c.turn = r.places[p]
	case byChance:
		c.score = r.rnd.Float64()
	case byTruth:
		c.score = r.truth[p]
	}
	r.known[p] = true
	r.found++
	r.frontier = append(r.frontier, c)
}

// take removes the best candidates and returns their pages: in the order of their keys if
// there is a filter, and best first otherwise.
func (r *replay) take(size int) []uint32 {
	for i := range r.frontier {
		if r.records != nil {
			r.frontier[i].score = float64(r.records[r.frontier[i].page].Priority)
		}
	}
	size = min(size, len(r.frontier))
	chosen := choose(r.frontier, size)
	r.frontier = r.frontier[:len(r.frontier)-size]
	pages := make([]uint32, size)
	for i, c := range chosen {
		pages[i] = c.page
	}
	if r.records != nil {
		slices.SortFunc(pages, func(a, b uint32) int { return cmp.Compare(r.places[a], r.places[b]) })
	}
	return pages
}

func (c candidate) compare(d candidate) int {
	if c := cmp.Compare(d.score, c.score); c != 0 {
		return c
	}
	return cmp.Compare(c.turn, d.turn)
}

// choose moves the n best to the end, and returns them sorted. It partitions until little is
// left to decide (Hoare's find).
func choose(all []candidate, n int) []candidate {
	lo, hi, cut := 0, len(all), len(all)-n
	for hi-lo > 32 {
		// The middle of three, so that sorted candidates do no harm.
		a, b, c := all[lo], all[(lo+hi)/2], all[hi-1]
		if a.compare(b) < 0 {
			a, b = b, a
		}
		if b.compare(c) < 0 {
			b = c
			if a.compare(b) < 0 {
				b = a
			}
		}
		// Worst first: candidates that come after the pivot go to the front.
		i, j := lo, hi-1
		for i <= j {
			for all[i].compare(b) > 0 {
				i++
			}
			for all[j].compare(b) < 0 {
				j--
			}
			if i <= j {
				all[i], all[j] = all[j], all[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case cut <= j:
			hi = j + 1
		case cut >= i:
			lo = i
		default:
			lo, hi = cut, cut
		}
	}
	slices.SortFunc(all[lo:hi], func(a, b candidate) int { return b.compare(a) })
	chosen := all[cut:]
	slices.SortFunc(chosen, candidate.compare)
	return chosen
}

// see follows the links of pages in an order without a filter.
func (r *replay) see(batch []uint32) {
	if r.order.by == byLinks && r.pages == nil {
		r.pages = make([]uint32, r.w.Pages()) // links seen to each page
	}
	for _, p := range batch {
		for _, t := range r.w.Out(int(p)) {
			if !r.known[t] {
				r.discover(t)
			}
			if r.pages != nil {
				r.pages[t]++
			}
		}
	}
	if r.pages != nil {
		for i := range r.frontier {
			r.frontier[i].score = float64(r.pages[r.frontier[i].page])
		}
	}
}

// given is a link in a batch.
type given struct {
	to, from uint32
	score    float64
	meta     crawldb.Meta
}

// fetch changes the records as a round does that visits the pages of a batch and finds them
// all.
func (r *replay) fetch(ctx context.Context, batch []uint32) error {
	var links []given
	var out []scoring.Link
	content, parsed := &page.Content{}, &page.Parsed{}
	gave := make([]float64, len(batch))
	lost := 0.0 // gifts that no link received
	for i, p := range batch {
		out = out[:0]
		for _, t := range r.w.Out(int(p)) {
			out = append(out, scoring.Link{From: r.w.urls[p], URL: r.w.urls[t]})
		}
		d := r.records[p]
		gave[i] = r.order.Filter.Distribute(scoring.Page{Datum: &d, Content: content, Parsed: parsed, Found: len(out)}, out)
		rest := gave[i]
		for k, t := range r.w.Out(int(p)) {
			if !out[k].Drop {
				rest -= out[k].Score
				links = append(links, given{to: t, from: p, score: out[k].Score, meta: out[k].Meta})
			}
		}
		if rest > 1e-12*gave[i] {
			lost += rest
		}
	}
	// By target, and for each the best first.
	slices.SortFunc(links, func(a, b given) int {
		if c := cmp.Compare(r.places[a.to], r.places[b.to]); c != 0 {
			return c
		}
		if c := cmp.Compare(b.score, a.score); c != 0 {
			return c
		}
		return cmp.Compare(r.places[a.from], r.places[b.from])
	})
	shared := lost / float64(len(batch))
	next := 0 // in the batch
	visit := func() {
		p := batch[next]
		r.update(p, r.visited(p, gave[next], shared, nil))
		next++
	}
	var in []scoring.Link
	for len(links) > 0 {
		to := links[0].to
		n := 1
		for n < len(links) && links[n].to == to {
			n++
		}
		in = in[:0]
		for _, l := range links[:n] {
			in = append(in, scoring.Link{From: r.w.urls[l.from], URL: r.w.urls[to], Score: l.score, Meta: l.meta})
		}
		links = links[n:]
		for next < len(batch) && r.places[batch[next]] < r.places[to] {
			visit()
		}
		if next < len(batch) && batch[next] == to {
			r.update(to, r.visited(to, gave[next], shared, in))
			next++
			continue
		}
		r.update(to, update.Input{URL: r.w.urls[to], Links: in})
	}
	for next < len(batch) {
		visit()
	}
	return r.rank(ctx, batch)
}

// visited is the input for a page that was fetched.
func (r *replay) visited(p uint32, gave, shared float64, in []scoring.Link) update.Input {
	d := r.records[p]
	return update.Input{
		URL: d.URL, Listed: &d, Links: in, Shared: shared,
		Visit: &segment.Visit{URL: d.URL, Time: r.now, Outcome: protocol.Outcome{Code: protocol.Success}},
		Parse: &segment.Parse{URL: d.URL, Gave: gave},
	}
}

// update changes a record as a crawl would.
func (r *replay) update(p uint32, in update.Input) {
	var old *crawldb.Datum
	if r.known[p] {
		old = &r.records[p]
	}
	d := update.Next(old, in, r.u)
	if d == nil {
		return
	}
	r.records[p] = *d
	if old == nil {
		r.discover(p)
	}
}

// rank adds the fetched pages to the graph, and computes the ranks if it is time to, as
// rank.Ranker does.
func (r *replay) rank(ctx context.Context, batch []uint32) error {
	if r.graph == nil {
		return nil
	}
	began := time.Now()
	defer func() { r.ranking += time.Since(began) }()
	var fresh []uint32
	for _, p := range batch {
		fresh = append(append(fresh, p), r.w.Out(int(p))...)
	}
	slices.SortFunc(fresh, func(a, b uint32) int { return cmp.Compare(r.places[a], r.places[b]) })
	for _, p := range slices.Compact(fresh) {
		if r.number[p] == 0 {
			if n, ok := r.graph.Page(r.w.urls[p]); ok {
				r.number[p] = n + 1
				r.pages = append(r.pages, p)
			}
		}
	}
	slices.SortFunc(batch, func(a, b uint32) int { return cmp.Compare(r.number[a], r.number[b]) })
	var to []uint32
	for _, p := range batch {
		if r.number[p] == 0 {
			continue
		}
		to = to[:0]
		for _, t := range r.w.Out(int(p)) {
			if n := r.number[t]; n > 0 {
				to = append(to, n-1)
			}
		}
		r.graph.Link(r.number[p]-1, scoring.SeedRank(&r.records[p]), len(r.w.Out(int(p))), to)
	}
	if !r.graph.Grown(r.order.Rank.Growth) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r.graph.Compute()
	for n, given := range r.graph.Changed() {
		old := &r.records[r.pages[n]]
		if d := rank.Record(r.order.Filter, old, given); d != old {
			r.records[r.pages[n]] = *d
			r.written++
		}
	}
	r.graph.MarkWritten()
	r.ranked++
	return nil
}
