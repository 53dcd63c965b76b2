package scoring

import "github.com/recrawl/recrawl/crawldb"

// LinkAnalysis is for scores that were computed elsewhere, such as a PageRank
// of the whole link db, and written to the records: it orders and weighs by
// them and changes none. New pages start at zero. The zero value is ready to
// use. (Nutch: scoring-link.)
//
// In Nutch a page that is fetched gets back the score it had when it was
// selected, which undoes what was computed in between. Here the current record
// counts, unless update.Options.NutchCompat asks for Nutch's way.
type LinkAnalysis struct {
	// Base leaves the order of due pages to the score.
	Base
	// Normalize is the factor of the score in the weight of a page in an index;
	// zero means 1, negative that the score makes no difference. (Nutch:
	// link.analyze.normalize.score.)
	Normalize float32
	// NutchCompat ignores the weight that earlier filters computed.
	NutchCompat bool
}

var _ Filter = LinkAnalysis{}

// Discovered sets the score to zero.
func (LinkAnalysis) Discovered(d *crawldb.Datum) { d.Score = 0 }

// Boost returns the boost times the score.
func (l LinkAnalysis) Boost(d *crawldb.Datum, boost float32) float32 {
	if d == nil || l.Normalize < 0 {
		return boost
	}
	weight := finite(d.Score)
	if l.Normalize != 0 {
		weight = finite(finite(l.Normalize) * weight)
	}
	if l.NutchCompat {
		return weight
	}
	return finite(weight * finite(boost))
}
