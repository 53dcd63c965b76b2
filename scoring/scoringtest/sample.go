package scoringtest

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/scoring"
)

// sample is a set of arguments for the methods of a filter.
type sample struct {
	name   string
	record crawldb.Datum // after Injected or Discovered, and some updates
	links  []scoring.Link
	flow   scoring.Flow
	wild   bool // with extreme numbers
	kind   int  // of the result: see page
}

// out returns a copy of the links, to distribute to.
func (c *sample) out() []scoring.Link { return slices.Clone(c.links) }

// page returns the result of a visit: a parsed page, one that could not be parsed, or
// no content, as for a redirect.
func (c *sample) page(d *crawldb.Datum) scoring.Page {
	p := scoring.Page{Datum: d, Found: len(c.links)}
	if c.kind%3 != 2 {
		p.Content = &page.Content{URL: d.URL, Type: "text/html", Body: []byte("<p>"), Time: start}
	}
	if c.kind%3 == 0 {
		p.Parsed = &page.Parsed{Title: "t", Text: "x", Meta: []page.Property{{Name: "page.title", Value: "of the page"}, {Name: "parent", Value: "p"}}}
		p.Found += c.kind
	}
	return p
}

var start = time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)

var scores = []float32{0, 1, 0.25, 1e-3, 100, -1, math.SmallestNonzeroFloat32, math.MaxFloat32, -math.MaxFloat32}

var amounts = []float64{0, 1, 0.1, 1e-9, 1e6, math.SmallestNonzeroFloat64, math.MaxFloat32, math.MaxFloat64}

// samples yields the listed cases and some random ones.
func (h Harness) samples() iter.Seq[*sample] {
	return func(yield func(*sample) bool) {
		f := h.New()
		for i, score := range scores {
			for j, amount := range amounts {
				for n := range 4 {
					d := record("http://www.example.com/", score)
					f.Injected(&d)
					c := &sample{name: fmt.Sprintf("listed case %d.%d.%d", i, j, n), record: d, links: targets(n), wild: i > 4 || j > 3, kind: i + j + n}
					c.flow.Shared = amount / 2
					for k := range n {
						c.flow.In = append(c.flow.In, scoring.Link{From: fmt.Sprint("http://from.example/", k), URL: d.URL, Score: amount})
					}
					c.flow.Visited, c.flow.Time = n%2 == 0, start
					if c.flow.Visited {
						c.flow.Gave = f.Distribute(c.page(&d), c.out())
					}
					if !yield(c) {
						return
					}
				}
			}
		}
		r := rand.New(rand.NewPCG(h.Seed, 0))
		for i := range 300 {
			if !yield(random(r, f, fmt.Sprintf("seed %d, step %d", h.Seed, i))) {
				return
			}
		}
	}
}

func record(url string, score float32) crawldb.Datum {
	return crawldb.Datum{
		URL: url, Status: crawldb.Fetched, FetchTime: start, LastFetch: start.Add(-time.Hour), Interval: time.Hour, Modified: start.Add(-2 * time.Hour),
		Retries: 1, Score: score, Priority: 0.5, Signature: []byte{1, 2}, ETag: "e", LastModified: "l", LeasedUntil: start, LeasedBy: "s",
		Meta: crawldb.MetaOf("another.state", "x", "page.title", "y", "schedule.fixed", "60", "seed", "z"),
	}
}

func targets(n int) []scoring.Link {
	all := []string{"http://www.example.com/a", "http://other.example/", "https://www.example.com:8443/b", "nonsense", "http://third.example/?x", "ftp://www.example.com/"}
	var links []scoring.Link
	for _, u := range all[:min(n, len(all))] {
		links = append(links, scoring.Link{From: "http://www.example.com/", URL: u, Meta: crawldb.MetaOf("another.state", u)})
	}
	if n > 3 {
		links[2].Drop = true // by an earlier filter
	}
	return links
}

// random returns a record with a history of a few rounds.
func random(r *rand.Rand, f scoring.Filter, name string) *sample {
	d := record("http://www.example.com/", float32(r.ExpFloat64()))
	if r.IntN(2) == 0 {
		d.Score = 0
		f.Discovered(&d)
	} else {
		f.Injected(&d)
	}
	from := record("http://from.example/", 1)
	f.Injected(&from)
	now := start
	flow := func() scoring.Flow {
		now = now.Add(time.Duration(r.ExpFloat64() * float64(20*24*time.Hour)).Truncate(time.Millisecond))
		fl := scoring.Flow{Visited: r.IntN(2) == 0, Time: now}
		for k := range r.IntN(6) {
			l := []scoring.Link{{From: fmt.Sprint("http://from.example/", k), URL: d.URL}}
			f.Distribute(scoring.Page{Datum: &from, Content: &page.Content{}, Found: 1}, l)
			l[0].Score = r.ExpFloat64()
			fl.In = append(fl.In, l...)
		}
		slices.SortFunc(fl.In, func(a, b scoring.Link) int {
			if a.Score > b.Score {
				return -1
			}
			return 1
		})
		if fl.Visited {
			fl.Gave = f.Distribute(scoring.Page{Datum: &d, Content: &page.Content{}}, targets(r.IntN(7)))
			fl.Shared = r.ExpFloat64()
		}
		return fl
	}
	for range r.IntN(5) {
		old := d
		f.Updated(&old, &d, flow())
	}
	return &sample{name: name, record: d, links: targets(r.IntN(7)), flow: flow(), kind: r.IntN(9)}
}
