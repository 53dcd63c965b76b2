// Package scoring decides in which order due pages are fetched, by moving
// importance along the links of the web. Its contract is [Filter] (Nutch's
// ScoringFilter), several of which make a [Chain].
//
// Stock are [OPIC], importance while crawling; [PageRank], that of the graph that is
// known, which package rank keeps up to date; [Depth], no further than so many
// links from a seed; [Orphan], what becomes of pages that no link leads to any
// more; [Metadata], what pages hand on to those they link to; and
// [LinkAnalysis], for scores that were computed elsewhere. Each corrects what is
// wrong in Nutch's filter of that name and has a NutchCompat that does not.
package scoring

import (
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
)

// A Filter takes part in the score of a page. Embed [Base] and override what
// matters.
//
// Its methods are functions of their arguments, called from many goroutines at
// once. They change only what is said to be theirs, keep state of their own only
// in Meta entries under their name, and never produce NaN or an infinity.
type Filter interface {
	// Injected adjusts the Score of a record made from a seed, after the seed's
	// metadata were applied. (Nutch: injectedScore.)
	Injected(d *crawldb.Datum)

	// Discovered sets the Score of a record that is new because a page links to
	// it, or because a page whose record was deleted was visited. It has the Meta
	// of its best link; Updated follows with all links. (Nutch: initialScore.)
	Discovered(d *crawldb.Datum)

	// Priority returns what to order a due record by, given what the filter
	// before made of it; the first is given the Score. The result is stored with
	// the record whenever it is written, so it must depend on nothing but the
	// record. (Nutch: generatorSortValue, whose first filter is given 1.)
	Priority(d *crawldb.Datum, priority float32) float32

	// Distribute sets the Score and Meta of each link of a page that was
	// visited, or sets Drop to keep the target out of the crawl db, and returns
	// what the page gives away by that. A filter leaves a link alone that one
	// before it dropped. Links are normalized and accepted by the URL filters, in
	// the order of the page, and distinct unless the fetch was told otherwise;
	// of a redirect, the target is the only one. There are none if the page has
	// none, if it could not be parsed, and if it is gone: it may give all the
	// same, to the visits of the segment in equal parts (see Flow.Shared), as it
	// does with what it gives for links that are dropped or for no link. (Nutch:
	// passScoreBeforeParsing, passScoreAfterParsing and
	// distributeScoreToOutlinks in one.)
	Distribute(p Page, links []Link) (gave float64)

	// Updated adjusts the Score of a record that is about to be written, and if
	// the filter is one that marks pages, its Status. old is the record as it is
	// in the crawl db, nil if it is new; neither it nor the flow may be changed.
	// (Nutch: updateDbScore.)
	Updated(old, d *crawldb.Datum, f Flow)

	// Orphaned looks at a record that an update of the whole crawl db passes by
	// and that no segment touches. It may change Score, Status and Meta. now is as
	// Flow.Clock if there is an [Orphan]. (Nutch: orphanedScore.)
	Orphaned(d *crawldb.Datum, now time.Time)

	// Boost returns the weight of the page in an index, given what the filter
	// before made of it; the first is given 1. d is nil if the page has no
	// record. (Nutch: indexerScore.)
	Boost(d *crawldb.Datum, boost float32) float32
}

// Page is what Distribute is told of the page that gives.
type Page struct {
	// Datum is the record as it was when the page was selected.
	Datum *crawldb.Datum
	// Content is what came back, nil unless the visit was a success; Parsed is
	// what was read in it, nil if nothing was. They are read only.
	Content *page.Content
	Parsed  *page.Parsed
	// Found counts the links that a parser found, before any was left out, those
	// that lead to the same accepted page once.
	Found int
}

// Link is what one page gives to one other.
type Link struct {
	// From and URL are the two pages.
	From, URL string
	// Score is what is given.
	Score float64
	// Meta is what filters pass along the link, under names of their own. A
	// record that is new begins with that of its best link; for one that exists
	// it is up to Updated of the filters what to make of it.
	Meta crawldb.Meta
	// Drop leaves the target out of the crawl db. What it was given goes to the
	// visits of the segment.
	Drop bool
}

// Flow is what one segment does to the importance of a page.
type Flow struct {
	// In are the links to the page, best first, equal ones by the key of From.
	In []Link
	// Gave is what the page itself gave away, the sum of what Distribute
	// returned for it.
	Gave float64
	// Shared is the page's part of what pages of the segment gave away and none
	// of their links received: the segment's visits have equal parts of it. With it
	// comes what links gave to pages of the domain for which there is no room in the
	// crawl db (update.Options.MaxGrowth), since the last visit.
	Shared float64
	// Visited says that the segment visited the page; Time is when, and
	// otherwise the time of the update.
	Visited bool
	Time    time.Time
	// Clock is the time of the update by a clock that stands still while the crawl does,
	// and never jumps: see [Orphan]. Zero means Time.
	Clock time.Time
}

// Base is a Filter that does nothing; in a chain it is neutral.
type Base struct{}

// Injected leaves the score of the seed as it is.
func (Base) Injected(*crawldb.Datum) {}

// Discovered leaves the score at zero.
func (Base) Discovered(*crawldb.Datum) {}

// Priority returns the priority it is given.
func (Base) Priority(_ *crawldb.Datum, priority float32) float32 { return priority }

// Distribute gives nothing.
func (Base) Distribute(Page, []Link) float64 { return 0 }

// Updated leaves the score as it is.
func (Base) Updated(_, _ *crawldb.Datum, _ Flow) {}

// Orphaned leaves the record as it is.
func (Base) Orphaned(*crawldb.Datum, time.Time) {}

// Boost returns the boost it is given.
func (Base) Boost(_ *crawldb.Datum, boost float32) float32 { return boost }

// Chain asks several filters in order. The links of a Distribute go through all
// of them, and what they gave is added up. An empty chain does what [Base] does.
type Chain []Filter

// Injected asks every filter in order.
func (c Chain) Injected(d *crawldb.Datum) {
	for _, f := range c {
		f.Injected(d)
	}
}

// Discovered asks every filter in order.
func (c Chain) Discovered(d *crawldb.Datum) {
	for _, f := range c {
		f.Discovered(d)
	}
}

// Priority hands the result of each filter to the next.
func (c Chain) Priority(d *crawldb.Datum, priority float32) float32 {
	for _, f := range c {
		priority = f.Priority(d, priority)
	}
	return priority
}

// Distribute asks every filter in order and adds up what they gave.
func (c Chain) Distribute(p Page, links []Link) (gave float64) {
	for _, f := range c {
		gave += f.Distribute(p, links)
	}
	return gave
}

// Updated asks every filter in order.
func (c Chain) Updated(old, d *crawldb.Datum, f Flow) {
	for _, g := range c {
		g.Updated(old, d, f)
	}
}

// Orphaned asks every filter in order.
func (c Chain) Orphaned(d *crawldb.Datum, now time.Time) {
	for _, f := range c {
		f.Orphaned(d, now)
	}
}

// Boost hands the result of each filter to the next.
func (c Chain) Boost(d *crawldb.Datum, boost float32) float32 {
	for _, f := range c {
		boost = f.Boost(d, boost)
	}
	return boost
}
