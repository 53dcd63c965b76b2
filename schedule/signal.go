package schedule

import (
	"math"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// Sign is a sign that a page has changed since its last visit: what a sitemap or a
// feed says, or a service.
type Sign struct {
	// Time is the earliest time of a visit because of it.
	Time time.Time
	// Precision is the share of such signs that are true, Recall the share of
	// changes of which there is one.
	Precision, Recall float64
}

// Signalled returns the record as a sign leaves it, and whether the schedule knows
// what to do with one. One that does has a method
//
//	Signalled(d crawldb.Datum, g Sign) crawldb.Datum
//
// as [Learned] has; it may change FetchTime.
func Signalled(s FetchSchedule, d crawldb.Datum, g Sign) (crawldb.Datum, bool) {
	l, ok := s.(interface {
		Signalled(crawldb.Datum, Sign) crawldb.Datum
	})
	if !ok {
		return d, false
	}
	return l.Signalled(d, g), true
}

// Signalled moves the next fetch to an earlier time: a sign counts as much as time
// that has passed, namely as long as it would take, at the rate of the changes of
// which there is no sign, until the page is as likely to have changed as the sign
// says:
//
//	β = -ln(1-precision) / ((1-recall)·rate)
//
// (Busa-Fekete et al., 2025, arXiv:2502.02430.) So several signs add up, and false
// ones count for little. A page of which nobody sees the changes but by visits has
// its rate from these; one that is visited early because of a sign, and has changed,
// has changed once.
func (s Learned) Signalled(d crawldb.Datum, g Sign) crawldb.Datum {
	if _, ok := fixedInterval(d); ok || d.LastFetch.IsZero() || !(g.Precision > 0) {
		return d
	}
	l, ok := s.known(&d)
	if !ok {
		l.Rate = s.Plan.prior(d.URL, kindUnknown)
	}
	unseen := 1 - max(0, min(g.Recall, 0.99))
	beta := -math.Log1p(-min(g.Precision, 1)) / (unseen * l.PerDay())
	least, most := s.bounds(d.URL)
	at := d.FetchTime.Add(-seconds(beta*day.Seconds(), 0, most))
	for _, no := range []time.Time{g.Time, d.LastFetch.Add(least)} {
		if at.Before(no) {
			at = no
		}
	}
	if at.Before(d.FetchTime) {
		d.FetchTime = at
	}
	return d
}
