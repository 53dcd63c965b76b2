// Package ordering replays crawls over a link graph, to show how early an order of
// fetching finds the pages that matter: what share of the PageRank of all pages a
// crawl holds when it has downloaded a given share of them.
//
// The orders of package scoring are those of a crawl: records, filters, update.Next
// and the known graph of package rank are the code that a crawl runs, a batch for
// each round. They are compared with breadth first, random, the number of links seen,
// and two that no crawler can have: the best known page by its true PageRank, and the
// best page of all.
//
// No host has to be waited for, and no page fails or changes.
package ordering

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/scoring/rank"
	"github.com/recrawl/recrawl/update"
)

// An Order is a way to choose among the known pages.
type Order struct {
	// Name is its name in tables.
	Name string
	// Filter orders records by the priority that it gives them; equal ones by key.
	Filter scoring.Filter
	// Update says how records change under Filter; its Scoring is not used.
	Update update.Options
	// Rank says how often ranks are computed, if Filter has a scoring.PageRank.
	Rank rank.Options

	by kind
}

// kind is an order without a filter.
type kind byte

const (
	byFilter kind = iota
	byDiscovery
	byChance
	byLinks
	byTruth
)

// BreadthFirst takes pages in the order in which they became known.
func BreadthFirst() Order { return Order{Name: "breadth first", by: byDiscovery} }

// Random takes any known page.
func Random() Order { return Order{Name: "random", by: byChance} }

// Backlinks takes the page to which most links were seen; of equal ones, the first known.
func Backlinks() Order { return Order{Name: "backlinks", by: byLinks} }

// Omniscient takes the known page with the highest PageRank in the whole graph.
func Omniscient() Order { return Order{Name: "omniscient", by: byTruth} }

// Stock returns all orders: the crawler's own, and those to compare them with.
func Stock() []Order {
	return []Order{
		BreadthFirst(), Random(), Backlinks(),
		{Name: "OPIC of Nutch", Filter: scoring.OPIC{NutchCompat: true}, Update: update.Options{NutchCompat: true}},
		{Name: "OPIC", Filter: scoring.OPIC{}},
		{Name: "PageRank", Filter: scoring.PageRank{}},
		Omniscient(),
	}
}

// Options say which crawl is replayed.
type Options struct {
	// Batch is the share of all pages that is fetched in a round; zero means 0.005.
	Batch float64
	// Seeds is how many pages, chosen at random, a crawl begins with. When it knows no
	// more pages, it gets as many again. Zero means 20.
	Seeds int
	// Runs is the number of choices of seeds over which the result is the mean; zero
	// means 1.
	Runs int
	// Seed is the seed of the random numbers.
	Seed uint64
	// Damping is the damping factor of the PageRank to hold; zero means 0.85.
	Damping float64
	// Span is how long a crawl of all pages takes, for filters that depend on time; zero
	// means 30 days.
	Span time.Duration
	// Told, if not nil, is called after each run.
	Told func(order string, run int, area float64)
}

func (o Options) withDefaults() Options {
	if !(o.Batch > 0) {
		o.Batch = 0.005
	}
	o.Batch = min(o.Batch, 1)
	if o.Seeds <= 0 {
		o.Seeds = 20
	}
	if o.Runs <= 0 {
		o.Runs = 1
	}
	if !(o.Damping > 0 && o.Damping < 1) {
		o.Damping = 0.85
	}
	if o.Span <= 0 {
		o.Span = 30 * 24 * time.Hour
	}
	return o
}

// Result is the result of Run.
type Result struct {
	// Pages and Links are those of the graph.
	Pages, Links int
	// Curves has the curves of the orders and, last, the best possible one.
	Curves []Curve
}

// Curve is the share of the PageRank that an order holds.
type Curve struct {
	Name string
	// Held[i] is the share held when i of len(Held)-1 equal parts of the pages were
	// downloaded, as the mean of all runs.
	Held []float64
	// Area is the area under the curve, as the mean of all runs: what is held on average
	// during the crawl. Low and High are the extremes of the runs.
	Area, Low, High float64
	// Elapsed is the time that all runs took. Ranking is the part of it in which ranks were
	// computed and written to records, Ranked how often that was done, and Written the
	// number of records written.
	Elapsed, Ranking time.Duration
	Ranked, Written  int
}

// parts is the number of steps of a curve.
const parts = 200

// At returns the share held when a share of the pages was downloaded.
func (c *Curve) At(share float64) float64 {
	x := min(max(share, 0), 1) * float64(len(c.Held)-1)
	i := min(int(x), len(c.Held)-2)
	return c.Held[i] + (x-float64(i))*(c.Held[i+1]-c.Held[i])
}

// Run replays crawls over a graph. The same arguments give the same result, except for the
// times.
func Run(ctx context.Context, w *Web, orders []Order, o Options) (Result, error) {
	o = o.withDefaults()
	r := Result{Pages: w.Pages(), Links: w.Links()}
	truth := w.PageRank(o.Damping)
	places := w.keyOrder()
	for _, order := range orders {
		c := Curve{Name: order.Name, Held: make([]float64, parts+1), Low: 1}
		for run := range o.Runs {
			rnd := rand.New(rand.NewPCG(o.Seed, uint64(run)))
			began := time.Now()
			j := newReplay(w, order, o, truth, places, rnd)
			if err := j.crawl(ctx); err != nil {
				return r, fmt.Errorf("ordering: %s: %w", order.Name, err)
			}
			c.Elapsed += time.Since(began)
			area := j.trace.area()
			c.add(&j.trace, area, o.Runs)
			c.Ranking, c.Ranked, c.Written = c.Ranking+j.ranking, c.Ranked+j.ranked, c.Written+j.written
			if o.Told != nil {
				o.Told(order.Name, run, area)
			}
		}
		r.Curves = append(r.Curves, c)
	}
	r.Curves = append(r.Curves, best(truth))
	return r, nil
}

// add adds one of several runs to the mean.
func (c *Curve) add(t *trace, area float64, runs int) {
	for i := range c.Held {
		c.Held[i] += t.at(float64(i)/parts) / float64(runs)
	}
	c.Area += area / float64(runs)
	c.Low, c.High = min(c.Low, area), max(c.High, area)
}

// best returns what is held if the pages come in the order of their true PageRank.
func best(truth []float64) Curve {
	sorted := slices.Clone(truth)
	slices.Sort(sorted)
	slices.Reverse(sorted)
	var t trace
	held := 0.0
	t.add(0, 0)
	for i, r := range sorted {
		held += r
		t.add(float64(i+1)/float64(len(sorted)), held)
	}
	c := Curve{Name: "upper bound", Held: make([]float64, parts+1), Low: 1}
	c.add(&t, t.area(), 1)
	return c
}

// trace says what was held when, in ascending order.
type trace struct{ downloaded, held []float64 }

func (t *trace) add(downloaded, held float64) {
	t.downloaded, t.held = append(t.downloaded, downloaded), append(t.held, held)
}

func (t *trace) area() (a float64) {
	for i := 1; i < len(t.held); i++ {
		a += (t.downloaded[i] - t.downloaded[i-1]) * (t.held[i] + t.held[i-1]) / 2
	}
	return a
}

func (t *trace) at(x float64) float64 {
	i, found := slices.BinarySearch(t.downloaded, x)
	switch {
	case found || i == 0:
		return t.held[i]
	case i == len(t.held):
		return t.held[i-1]
	}
	x0, x1 := t.downloaded[i-1], t.downloaded[i]
	return t.held[i-1] + (t.held[i]-t.held[i-1])*(x-x0)/(x1-x0)
}
