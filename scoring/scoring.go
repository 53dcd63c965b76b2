// Package scoring decides in which order due pages are fetched, by moving
// importance along the links of the web. Its contract is [Filter] (Nutch's
// ScoringFilter), several of which make a [Chain]; stock is OPIC.
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
	// it; Updated follows with those links. (Nutch: initialScore.)
	Discovered(d *crawldb.Datum)

	// Priority returns what to order a due record by, given what the filter
	// before made of it; the first is given the Score. The result is stored with
	// the record whenever it is written, so it must depend on nothing but the
	// record. (Nutch: generatorSortValue.)
	Priority(d *crawldb.Datum, priority float32) float32

	// Distribute sets the Score and Meta of each link of a page that was fetched
	// and parsed, or sets Drop to keep the target out of the crawl db, and
	// returns what the page gives away by that. Links are normalized and
	// accepted by the filters, in the order of the page, and distinct unless the
	// fetch was told otherwise. (Nutch: passScoreBeforeParsing,
	// passScoreAfterParsing and distributeScoreToOutlinks in one.)
	Distribute(p Page, links []Link) (gave float64)

	// Updated adjusts the Score of a record that is about to be written. old is
	// nil if the record is new; neither it nor the flow may be changed. (Nutch:
	// updateDbScore.)
	Updated(old, d *crawldb.Datum, f Flow)

	// Orphaned looks at a record that an update of the whole crawl db passes by
	// and that no segment touches. It may change Score, Status and Meta. (Nutch:
	// orphanedScore.)
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
	// Content and Parsed are what came back and what was read in it; nil for a
	// redirect. They are read only.
	Content *page.Content
	Parsed  *page.Parsed
	// Found counts the links of the page before any was left out.
	Found int
}

// Link is what one page gives to one other.
type Link struct {
	// From and URL are the two pages.
	From, URL string
	// Score is what is given.
	Score float64
	// Meta is what filters pass along the link, under names of their own. A
	// record that is new begins with that of its best link.
	Meta crawldb.Meta
	// Drop leaves the target out of the crawl db.
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
	// of their links received: the segment's visits have equal parts of it.
	Shared float64
	// Visited says that the segment visited the page; Time is when, and
	// otherwise the time of the update.
	Visited bool
	Time    time.Time
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
