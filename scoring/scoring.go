// Package scoring decides in which order due pages are fetched, by moving
// importance along the links of the web. Its contract is [Filter] (Nutch's
// ScoringFilter), several of which make a [Chain].
//
// The stock filters are [OPIC], importance computed while crawling; [PageRank], that
// of the known graph, which package rank keeps up to date; [Depth], which follows at
// most a given number of links from a seed; [Orphan], for pages that no link leads to
// any more; [Metadata], which passes properties of pages on to those they link to; and
// [LinkAnalysis], for scores that were computed elsewhere. Each corrects the faults
// of Nutch's filter of that name, and has a NutchCompat that does not.
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
// once. They change only what they are documented to change, keep state only in
// Meta entries under the filter's name, and never produce NaN or an infinity.
type Filter interface {
	// Injected adjusts the Score of a record made from a seed, after the
	// metadata of the seed were applied. (Nutch: injectedScore.)
	Injected(d *crawldb.Datum)

	// Discovered sets the Score of a record that is new because a page links to
	// it, or because a page whose record was deleted was visited. The record
	// has the Meta of its best link; Updated follows with all links. (Nutch:
	// initialScore.)
	Discovered(d *crawldb.Datum)

	// Priority returns the value that orders a due record, given that of the
	// filter before; the first is given the Score. The result is stored with
	// the record whenever it is written, so it must depend on nothing but the
	// record. (Nutch: generatorSortValue, whose first filter is given 1.)
	Priority(d *crawldb.Datum, priority float32) float32

	// Distribute sets the Score and Meta of each link of a visited page, or
	// sets Drop to keep the target out of the crawl db, and returns what the
	// page gives away in total. A filter leaves alone a link that an earlier
	// one dropped.
	//
	// Links are normalized and accepted by the URL filters, in the order of the
	// page, and distinct unless the fetch was told otherwise; a redirect has
	// its target as the only one. There are none if the page has none, could
	// not be parsed, or is gone. Even then the page may give, and what it gives
	// without links, or for dropped ones, goes to the visits of the segment in
	// equal parts (see Flow.Shared). (Nutch: passScoreBeforeParsing,
	// passScoreAfterParsing and distributeScoreToOutlinks in one.)
	Distribute(p Page, links []Link) (gave float64)

	// Updated adjusts the Score of a record that is about to be written and, in
	// a filter that marks pages, its Status. old is the record in the crawl db,
	// nil if it is new; neither it nor the flow may be changed. (Nutch:
	// updateDbScore.)
	Updated(old, d *crawldb.Datum, f Flow)

	// Orphaned is called, in an update of the whole crawl db, with each record
	// that no segment touches. It may change Score, Status and Meta. now is as
	// Flow.Clock if there is an [Orphan]. (Nutch: orphanedScore.)
	Orphaned(d *crawldb.Datum, now time.Time)

	// Boost returns the weight of the page in an index, given that of the
	// filter before; the first is given 1. d is nil if the page has no record.
	// (Nutch: indexerScore.)
	Boost(d *crawldb.Datum, boost float32) float32
}

// Page describes to Distribute the page that gives.
type Page struct {
	// Datum is the record as it was when the page was selected.
	Datum *crawldb.Datum
	// Content is what the visit returned, nil unless it was a success; Parsed
	// is the result of parsing it, nil if there is none. Both are read-only. The
	// Outlinks of Parsed are those that the crawl follows, spelled as the links
	// are: the one with the URL of a link has its anchor. A refresh has none.
	Content *page.Content
	Parsed  *page.Parsed
	// Found counts the links that a parser found, before any was left out;
	// links to the same accepted page count once.
	Found int
}

// Link is what one page gives to another.
type Link struct {
	// From and URL are the two pages.
	From, URL string
	// Score is what is given.
	Score float64
	// Meta is what filters pass along the link, under their own names. A new
	// record starts with that of its best link; for an existing one the
	// filters' Updated decides what to do with it.
	Meta crawldb.Meta
	// Drop keeps the target out of the crawl db. What it was given goes to the
	// visits of the segment.
	Drop bool
}

// Flow is what one segment does to the importance of a page.
type Flow struct {
	// In holds the links to the page, best first, equal ones by the key of
	// From.
	In []Link
	// Gave is what the page itself gave away, the sum of what Distribute
	// returned for it.
	Gave float64
	// Shared is the page's part of what pages of the segment gave away and none of
	// their links received: each visit of the segment has an equal part of it. It
	// includes what links have given since the last visit to pages of the domain for
	// which the crawl db has no room (update.Options.MaxGrowth).
	Shared float64
	// Visited says that the segment visited the page; Time is when, and
	// otherwise the time of the update.
	Visited bool
	Time    time.Time
	// Clock is the time of the update by a clock that stops while the crawl does, and
	// never jumps: see [Orphan]. Zero means Time.
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

// Chain applies several filters in order. The links of a Distribute go through
// all of them, and what they gave is added up. An empty chain does what [Base]
// does.
type Chain []Filter

// Injected calls every filter in order.
func (c Chain) Injected(d *crawldb.Datum) {
	for _, f := range c {
		f.Injected(d)
	}
}

// Discovered calls every filter in order.
func (c Chain) Discovered(d *crawldb.Datum) {
	for _, f := range c {
		f.Discovered(d)
	}
}

// Priority passes the result of each filter to the next.
func (c Chain) Priority(d *crawldb.Datum, priority float32) float32 {
	for _, f := range c {
		priority = f.Priority(d, priority)
	}
	return priority
}

// Distribute calls every filter in order and adds up what they gave.
func (c Chain) Distribute(p Page, links []Link) (gave float64) {
	for _, f := range c {
		gave += f.Distribute(p, links)
	}
	return gave
}

// Updated calls every filter in order.
func (c Chain) Updated(old, d *crawldb.Datum, f Flow) {
	for _, g := range c {
		g.Updated(old, d, f)
	}
}

// Orphaned calls every filter in order.
func (c Chain) Orphaned(d *crawldb.Datum, now time.Time) {
	for _, f := range c {
		f.Orphaned(d, now)
	}
}

// Boost passes the result of each filter to the next.
func (c Chain) Boost(d *crawldb.Datum, boost float32) float32 {
	for _, f := range c {
		boost = f.Boost(d, boost)
	}
	return boost
}
