package schedule

import (
	"math"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// Priority returns what to order a record by when it is due, given what the scoring
// makes of it. That is the same, but for schedules that have a method
//
//	Priority(d *crawldb.Datum, priority float32) float32
//
// such as [Learned], by which a visit goes where it is worth most. It is stored
// whenever the record is written, so it depends on nothing but the record and the
// schedule.
func Priority(s FetchSchedule, d *crawldb.Datum, priority float32) float32 {
	if o, ok := s.(interface {
		Priority(*crawldb.Datum, float32) float32
	}); ok {
		return o.Priority(d, priority)
	}
	return priority
}

// Priority orders the pages that are due. Those that were visited before stand in one
// line, in the order of the moments at which the next visit should have been made at
// the latest: a quarter of the interval after it is due, and before the greatest interval
// is over. So whoever waits comes nearer to the head of the line whatever becomes due in
// the meantime, all are late by as much of their intervals, and those that have time left
// wait for those that have none.
//
// A page that was never fetched is worth importance over the rate, which is all that there
// is to lose. If that is clearly more than the threshold it goes before that line, else
// behind it, and among its like in the order of what it is worth.
//
// What is stored does not change while a page waits, so it says when and not how long.
func (s Learned) Priority(d *crawldb.Datum, priority float32) float32 {
	if !d.LastFetch.IsZero() {
		return linePriority(s.latest(d, 24))
	}
	l, _ := s.rate(d)
	worth := s.weight(d, float64(priority)) / s.Plan.pace(d.URL, l.Rate).PerDay()
	if worth > 1.5*s.threshold(d.URL) {
		return float32(math.Exp2(lineEnd+8) * math.Sqrt(max(1e-2, min(worth, 1e4))))
	}
	if !(worth > 0) {
		return 0
	}
	return float32(min(worth, 1<<(lineBegin-1)))
}

// The line takes an octave of priorities for each year.
const (
	lineBegin = 20 // as a power of two
	lineEnd   = lineBegin + 90
)

// InLine reports whether a page that was visited before stands in the line of
// [Learned.Priority]. If not its priority is that of another schedule, and where there is
// always somebody in the line it would wait for ever. A page that was never visited has no
// place in it.
func (s Learned) InLine(d *crawldb.Datum) bool {
	return d.LastFetch.IsZero() || d.Priority >= 1<<lineBegin
}

func linePriority(latest time.Time) float32 {
	const year = 365.25 * 24 * 3600
	left := lineEnd - float64(latest.Unix()-631152000)/year // since 1990
	return float32(math.Exp2(max(lineBegin, min(left, lineEnd))))
}

// latest is when a page that was visited before should be visited at the latest, with a
// part of the greatest interval to spare: where there are few visits a day, all may be
// late by some days.
func (s Learned) latest(d *crawldb.Datum, part time.Duration) time.Time {
	at := d.FetchTime
	if SignsOf(d) == 0 || !at.Before(d.LastFetch.Add(d.Interval)) {
		at = at.Add(d.Interval / 4)
	} // a sign makes a visit worth more than it has to be, at once
	if _, ok := fixedInterval(*d); ok {
		return at
	}
	_, most := s.bounds(d.URL)
	end := most - most/part
	if stretch := s.Plan.stretch(); stretch > 1 && d.Interval >= most-most/5 {
		end = time.Duration(min(float64(end)*stretch, math.MaxInt64/4))
		at = d.LastFetch.Add(end)
	}
	if end := d.LastFetch.Add(end); at.After(end) {
		return end
	}
	return at
}
