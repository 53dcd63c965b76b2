// Package schedule decides when a page is fetched again. Its contract is
// [FetchSchedule]. The stock schedules are [Default], which keeps every interval
// as it is, [Adaptive], which shortens the interval of a page that has changed
// and lengthens that of one that has not, [MimeAdaptive], which does so at rates
// that depend on the content type, and [Learned], which estimates how often each
// page changes and spends a budget of visits where they are worth most.
//
// The package does not know which pages go on a fetch list, nor when a host may be asked:
// packages generate and fetch do. Start with [FetchSchedule]; to follow a plan of the whole crawl,
// see [Planner].
//
// Schedules are pure: they read no clock and keep no state except in the record. What
// Learned needs to know of the crawl as a whole is a [Plan], made from a [Sample] of
// the records.
package schedule

import (
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// A FetchSchedule decides when a page is due.
//
// Its methods are pure functions: given the same record and visit they return
// the same record, and any number of goroutines may call them. They change
// FetchTime, Interval, Modified, Retries and Meta entries under their own name,
// and Status, Signature and the validators where the method says so; all other
// fields are returned as given. They do not change the bytes of Signature.
//
// Laws: after Fetched, Retry and Gone the next fetch lies after the visit, and the
// page is not due at the visit; an interval is never zero or negative; what Force
// returns is due. They hold for any record, whatever its interval: one that is doubled
// must not overflow. A schedule that wraps a stock one must not move a fetch time
// beyond the MaxInterval of that, whose Due would take it for the mistake of a clock,
// and have the page fetched without end.
type FetchSchedule interface {
	// Init sets the first fetch time and interval of a record that is new: due
	// at now. An interval that is already set, by a seed, is kept. (Nutch:
	// initializeSchedule.)
	Init(d crawldb.Datum, now time.Time) crawldb.Datum

	// Fetched sets the next fetch after a visit that brought content, a
	// redirect or "not modified". It ends a run of failures: Retries becomes
	// zero. If it sets Modified, that is not after the visit. (Nutch:
	// setFetchSchedule.)
	Fetched(d crawldb.Datum, v Visit) crawldb.Datum

	// Retry sets the next fetch after a transient failure, and counts it in
	// Retries. (Nutch: setPageRetrySchedule.)
	Retry(d crawldb.Datum, v Visit) crawldb.Datum

	// Gone sets the next fetch after the page was found missing or forbidden, or
	// could not be parsed. (Nutch: setPageGoneSchedule.)
	Gone(d crawldb.Datum, v Visit) crawldb.Datum

	// Force returns the record such that it is fetched as soon as possible and
	// without validators, as if its content were unknown: unfetched, and without
	// Signature and Modified. (Nutch: forceRefetch.)
	Force(d crawldb.Datum, now time.Time) crawldb.Datum

	// Due reports whether the page should be fetched at now. (Nutch: shouldFetch.)
	// See [HorizonSchedule] for schedules that answer by FetchTime alone. Due is not
	// the place for hours in which nothing is to be fetched, since what Init and
	// Force return is due at once, at any hour: a schedule may move FetchTime, and
	// fetch.Options.Politeness.HostRule decides when a host is asked.
	Due(d *crawldb.Datum, now time.Time) bool
}

// A HorizonSchedule answers Due by the fetch time alone, so that an index of fetch
// times can replace it. Another schedule is asked about every record, which is slower
// but never wrong. So a schedule that embeds a stock one and replaces Due must replace
// Horizon, too, or not embed it.
type HorizonSchedule interface {
	FetchSchedule
	// Horizon returns how far ahead of now a fetch time may lie: a record with a later
	// one counts as due, since no schedule sets such a time and a clock must have been
	// wrong. Zero means any distance.
	Horizon() time.Duration
}

// Horizon reports whether a schedule is a [HorizonSchedule], and its Horizon.
func Horizon(s FetchSchedule) (ahead time.Duration, indexable bool) {
	h, ok := s.(HorizonSchedule)
	if !ok {
		return 0, false
	}
	return h.Horizon(), true
}

// A SelectedSchedule changes the records that go on a fetch list, as the stock ones do
// with NutchCompat: in Nutch, shouldFetch corrects a record whose fetch time lies beyond
// the horizon, but only the copy on the list.
type SelectedSchedule interface {
	FetchSchedule
	// Selected returns the record as it goes on a fetch list made at now.
	Selected(d crawldb.Datum, now time.Time) crawldb.Datum
}

// Selected returns what the schedule makes of a record that goes on a fetch list: the
// record itself unless that is a [SelectedSchedule].
func Selected(s FetchSchedule, d crawldb.Datum, now time.Time) crawldb.Datum {
	if c, ok := s.(SelectedSchedule); ok {
		return c.Selected(d, now)
	}
	return d
}

// Visit describes a visit to a schedule.
type Visit struct {
	// Time is when the visit was made.
	Time time.Time
	// Change says whether the content changed.
	Change Change
	// PrevFetch is when the visit before was made; zero if there was none.
	PrevFetch time.Time
	// PrevModified is when the content had last been seen to change before this
	// visit; zero if that is not known.
	PrevModified time.Time
	// Modified is the Last-Modified of the content, never after Time; zero if
	// the server sent none.
	Modified time.Time
	// ContentType is the media type of the content, in lower case and without
	// parameters; empty if unknown.
	ContentType string
	// Skipped says that the visit was put off before the page was asked for; it is
	// set for Retry only.
	Skipped bool
}

// Change is what a visit says about the content of a page.
type Change uint8

const (
	Unknown   Change = iota // nothing to compare with, or nothing to compare
	Changed                 // another signature than before
	Unchanged               // the same signature, or the server said so
)

// String returns "unknown", "changed" or "unchanged".
func (c Change) String() string {
	return [...]string{"unknown", "changed", "unchanged"}[min(c, Unchanged)]
}
