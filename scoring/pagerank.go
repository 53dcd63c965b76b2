package scoring

import (
	"strconv"

	"github.com/recrawl/recrawl/crawldb"
)

// PageRank orders pages by their PageRank in the part of the web that the crawl knows (Page,
// Brin, Motwani, Winograd: The PageRank Citation Ranking, 1999; as an order of fetching:
// Cho, Garcia-Molina, Page: Efficient Crawling through URL Ordering, WWW 1998). The zero
// value is ready to use.
//
// The work is divided. Package rank keeps the known graph, computes the ranks anew whenever
// the graph has changed by some percent, and writes them to the records. The filter only
// estimates the score of a new page until it is ranked, from the scores of the pages that
// link to it. Without package rank that estimate is all there is.
//
// The score of a page is what it receives along links, plus, for a seed, the score it was
// injected with. A page has 1 of its own, a seed 1 and that score, and each page gives
// Damping times all that it has to the pages it links to, in equal parts. So scores do not
// shrink as the graph grows, and a page keeps its score while nothing that leads to it
// changes. Pages that were not fetched yet give nothing; if they gave it to all pages in
// equal parts, the order would be the same.
//
// If much of a host was fetched, most links to its other pages are known; of a host that was
// just found, few are. So what an unfetched page receives is multiplied by the cube root of
// a ratio, the number of pages fetched from the host with the most to the number fetched
// from its own, and by the same for its directory. That finds what matters earlier, and
// limits what pages that link to each other can gain, be it a calendar or a link farm. A
// fetched page has what it receives.
//
// The state is in the Meta of a seed, under "pagerank.seed". A record from before PageRank
// was used keeps its score until the page is ranked.
type PageRank struct {
	// Base leaves the order of due pages to the score.
	Base
	// Damping is the share of what a page has that it gives away; zero, and
	// anything not between 0 and 1, means 0.85.
	Damping float64
	// ScorePower is the exponent of the score in the weight of a page in an index;
	// zero means 0.5, negative that the score makes no difference.
	ScorePower float64
	// HostPower is the exponent of the ratios that raise the scores of unfetched pages, of
	// the largest number of pages fetched from any host to that of their own, and the same
	// for directories. At most 1; zero means a third, the cube root, negative that neither
	// makes a difference.
	HostPower float64
}

var _ Filter = PageRank{}

const seedKey = "pagerank.seed"

// maxRank limits what a record can be given, so that everything computed from
// it is finite.
const maxRank = 1e30

// PageRankOf returns the PageRank that f is or contains, if there is one.
func PageRankOf(f Filter) (PageRank, bool) {
	switch f := f.(type) {
	case PageRank:
		return f, true
	case *PageRank:
		if f != nil {
			return *f, true
		}
	case Chain:
		for _, f := range f {
			if p, ok := PageRankOf(f); ok {
				return p, true
			}
		}
	}
	return PageRank{}, false
}

// DampingFactor returns Damping or its default.
func (f PageRank) DampingFactor() float64 {
	if !(f.Damping > 0 && f.Damping < 1) {
		return 0.85
	}
	return f.Damping
}

// HostExponent returns HostPower or its default, zero if hosts and directories make no
// difference.
func (f PageRank) HostExponent() float64 {
	switch {
	case f.HostPower < 0:
		return 0
	case f.HostPower > 0:
		return min(f.HostPower, 1)
	}
	return 1.0 / 3
}

// SeedRank returns the score that a record was injected with under [PageRank];
// zero if it is no seed.
func SeedRank(d *crawldb.Datum) float64 {
	v, ok := d.Meta.Get(seedKey)
	if !ok {
		return 0
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil {
		return 0
	}
	return min(amount(f), maxRank)
}

// Rank gives a record the score that follows from what links give it, already multiplied
// by the factors of its host and directory.
func (f PageRank) Rank(d *crawldb.Datum, given float64) {
	d.Score = float32(min(SeedRank(d)+min(amount(given), maxRank), maxRank))
}

func setSeedRank(d *crawldb.Datum, score float32) {
	d.Score = float32(min(amount(float64(score)), maxRank))
	d.Meta.Set(seedKey, strconv.FormatFloat(float64(d.Score), 'g', -1, 32))
}

// Injected keeps the score of the seed as its own. A record that already has
// one is left alone.
func (f PageRank) Injected(d *crawldb.Datum) {
	if _, ok := d.Meta.Get(seedKey); !ok {
		setSeedRank(d, d.Score)
	}
}

// Discovered sets the score to zero: a new page has what its links give.
func (f PageRank) Discovered(d *crawldb.Datum) {
	d.Score = 0
	d.Meta.Delete(seedKey) // in case the Meta that came along a link is another page's
}

// Distribute gives each link its part of what the page has. The page keeps its
// score.
func (f PageRank) Distribute(p Page, links []Link) float64 {
	n := 0
	for i := range links {
		links[i].Score = 0
		if !links[i].Drop {
			n++
		}
	}
	if n == 0 {
		return 0
	}
	part := f.DampingFactor() * (1 + min(amount(float64(p.Datum.Score)), maxRank)) / float64(n)
	for i := range links {
		if !links[i].Drop {
			links[i].Score = part
		}
	}
	return 0
}

// Updated gives a new page what its links give. That of other pages is counted
// when the ranks are computed.
func (f PageRank) Updated(old, d *crawldb.Datum, flow Flow) {
	if old != nil {
		return
	}
	var in sum
	for _, l := range flow.In {
		in.add(min(amount(l.Score), maxRank))
	}
	f.Rank(d, in.value())
}

// Boost returns the boost times a power of the score.
func (f PageRank) Boost(d *crawldb.Datum, boost float32) float32 {
	return OPIC{ScorePower: f.ScorePower}.Boost(d, boost)
}
