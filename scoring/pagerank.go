package scoring

import (
	"strconv"

	"github.com/recrawl/recrawl/crawldb"
)

// PageRank orders pages by the PageRank that they have in the part of the web that
// the crawl knows (Page, Brin, Motwani, Winograd: The PageRank Citation Ranking,
// 1999; as an order of fetching Cho, Garcia-Molina, Page: Efficient Crawling through
// URL Ordering, WWW 1998). The zero value is ready to use.
//
// The work is done in two places. Package rank keeps the known graph, computes the ranks anew
// whenever that has grown by some percent, and writes them into the records. The
// filter does what is left: a page that is new has what the links that led to it
// give, reckoned from the scores that their pages had, until its turn to be ranked
// comes. Without package rank that is all there is.
//
// The score of a page is what it receives along links, in shares of what a page has
// of itself, and for a seed what it was injected with besides: a page has 1 of
// itself, a seed that and its score, and each page gives Damping times what it has
// to those it links to, in equal parts. So the scores do not shrink as the graph
// grows, and a page keeps its own while nothing that leads to it changes. Pages that
// were not fetched yet give nothing; to give it to all pages in equal parts would
// change no order.
//
// Of a host of which much was fetched most links to its other pages were seen, and of
// one that has just been found few were. So what a page receives that was not fetched
// yet is multiplied by the cube root of how many times as many pages were fetched of the
// host of which most were, and by the same of its directory. That finds what matters earlier, and bounds what pages get
// that link to each other, be it a calendar or a farm of links. A page that was fetched
// has what it receives.
//
// The state is in the Meta of a seed, under "pagerank.seed". In a record from before
// PageRank was used the score is what it was until the page is ranked.
type PageRank struct {
	// Base leaves the order of due pages to the score.
	Base
	// Damping is the part of what a page has that it gives away; zero means 0.85.
	// What is not between 0 and 1 means that too.
	Damping float64
	// ScorePower is the exponent of the score in the weight of a page in an index;
	// zero means 0.5, negative that the score makes no difference.
	ScorePower float64
	// HostPower is the exponent of how many times as many pages were fetched of the host
	// of which most were, and of the directory of which most were, for pages that were not
	// fetched yet: up to 1; zero means a third, the cube root, negative that neither makes a
	// difference.
	HostPower float64
}

var _ Filter = PageRank{}

const seedKey = "pagerank.seed"

// maxRank bounds what a record can be given, so that all that is made of it is
// finite.
const maxRank = 1e30

// PageRankOf returns the PageRank that f is or that is in its chain, if there is one.
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

// Rate returns Damping or its default.
func (f PageRank) Rate() float64 {
	if !(f.Damping > 0 && f.Damping < 1) {
		return 0.85
	}
	return f.Damping
}

// HostRate returns HostPower or its default, zero if hosts and directories make no difference.
func (f PageRank) HostRate() float64 {
	switch {
	case f.HostPower < 0:
		return 0
	case f.HostPower > 0:
		return min(f.HostPower, 1)
	}
	return 1.0 / 3
}

// SeedRank returns what a record was injected with under [PageRank]; zero if it is
// no seed.
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

// Rank gives a record the score that it has if links give it so much, with what its host
// and directory make of that.
func (f PageRank) Rank(d *crawldb.Datum, given float64) {
	d.Score = float32(min(SeedRank(d)+min(amount(given), maxRank), maxRank))
}

func setSeedRank(d *crawldb.Datum, score float32) {
	d.Score = float32(min(amount(float64(score)), maxRank))
	d.Meta.Set(seedKey, strconv.FormatFloat(float64(d.Score), 'g', -1, 32))
}

// Injected notes the score of the seed as its own. A record that has one already is
// left alone.
func (f PageRank) Injected(d *crawldb.Datum) {
	if _, ok := d.Meta.Get(seedKey); !ok {
		setSeedRank(d, d.Score)
	}
}

// Discovered sets the score to zero: a new page has what its links give.
func (f PageRank) Discovered(d *crawldb.Datum) {
	d.Score = 0
	d.Meta.Delete(seedKey) // in case what came along a link is another page's
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
	part := f.Rate() * (1 + min(amount(float64(p.Datum.Score)), maxRank)) / float64(n)
	for i := range links {
		if !links[i].Drop {
			links[i].Score = part
		}
	}
	return 0
}

// Updated gives a page that is new what its links give. That of others is counted
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
