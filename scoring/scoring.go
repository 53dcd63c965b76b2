// Package scoring decides in which order due pages are fetched, by moving
// importance along the links of the web. Its contract is [Filter] (Nutch's
// ScoringFilter), several of which make a [Chain]; stock is OPIC.
package scoring

import (
	"time"

	"github.com/recrawl/recrawl/crawldb"
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

	// Distribute sets the Score of each link of a page that was fetched and
	// parsed, and returns what the page gives away by that. The record is as it
	// was when the page was selected. Links are distinct, normalized and
	// accepted by the filters, in the order of the page. (Nutch:
	// distributeScoreToOutlinks.)
	Distribute(from *crawldb.Datum, links []Link) (gave float64)

	// Updated adjusts the Score of a record that is about to be written. old is
	// nil if the record is new; neither it nor the flow may be changed. (Nutch:
	// updateDbScore.)
	Updated(old, d *crawldb.Datum, f Flow)
}

// Link is what one page gives to one other.
type Link struct {
	// From and URL are the two pages.
	From, URL string
	// Score is what is given.
	Score float64
}

// Flow is what one segment does to the importance of a page.
type Flow struct {
	// In are the links to the page, best first, equal ones by the key of From.
	In []Link
	// Gave is what the page itself gave away, the sum of what Distribute
	// returned for it.
	Gave float64
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
func (Base) Distribute(*crawldb.Datum, []Link) float64 { return 0 }

// Updated leaves the score as it is.
func (Base) Updated(_, _ *crawldb.Datum, _ Flow) {}

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
func (c Chain) Distribute(from *crawldb.Datum, links []Link) (gave float64) {
	for _, f := range c {
		gave += f.Distribute(from, links)
	}
	return gave
}

// Updated asks every filter in order.
func (c Chain) Updated(old, d *crawldb.Datum, f Flow) {
	for _, g := range c {
		g.Updated(old, d, f)
	}
}
