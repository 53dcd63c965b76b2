package schedule

import (
	"math"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// A PrioritySchedule orders the due records itself, as [Learned] does, so that visits go
// where they are worth most.
type PrioritySchedule interface {
	FetchSchedule
	// Priority returns the priority of a record when it is due, given the one that the
	// scoring computed. It is stored whenever the record is written, so it depends only
	// on the record and the schedule.
	Priority(d *crawldb.Datum, priority float32) float32
}

// Priority returns the priority that a schedule gives a record: the one that the scoring
// computed, unless the schedule is a [PrioritySchedule].
func Priority(s FetchSchedule, d *crawldb.Datum, priority float32) float32 {
	if o, ok := s.(PrioritySchedule); ok {
		return o.Priority(d, priority)
	}
	return priority
}

// Priority orders the pages that are due. Those visited before form one line, ordered by the
// latest moment for their next visit: a quarter of the interval after it is due, and before the
// greatest interval is over. So a waiting page moves up whatever becomes due in the meantime, all
// are late by the same share of their intervals, and pages with time left wait for those with
// none. Pages gone for long come after all of them: see [Learned.Gone].
//
// A page that was never fetched is worth its importance divided by its rate, which is all that
// there is to lose. If that is clearly more than the threshold, or than a visit to a page of
// average importance that is made only because the greatest interval is over, it goes before
// that line, otherwise after it. Such pages are ordered by what they are worth.
//
// The stored priority does not change while a page waits, so it encodes a time, not a
// duration.
func (s Learned) Priority(d *crawldb.Datum, priority float32) float32 {
	if !d.LastFetch.IsZero() {
		return linePriority(s.latest(d, 24))
	}
	l, _ := s.rate(d)
	perDay := s.Plan.pace(d.URL, l.Rate).PerDay()
	worth := s.weight(d, float64(priority)) / perDay
	if worth > 1.5*min(s.threshold(d.URL), s.Plan.mean()/perDay*gain(perDay*s.longest(d.URL))) {
		return float32(math.Exp2(lineEnd+8) * math.Sqrt(max(1e-2, min(worth, 1e4))))
	}
	if !(worth > 0) {
		return 0
	}
	return float32(min(worth, 1<<(lineBegin-1)))
}

// longest returns for how many days a page with the greatest interval goes unvisited.
func (s Learned) longest(url string) float64 {
	_, most := s.within(url)
	return ofMost * days(most) * max(s.Plan.stretch(), 1)
}

// The line takes an octave of priorities per year.
const (
	lineBegin = 20 // as a power of two
	lineEnd   = lineBegin + 90
)

// InLine reports whether a page that was visited before is in the line described at
// [Learned.Priority]. If not, its priority comes from another schedule, and if the line
// never empties the page would wait forever. A page that was never visited is not in the
// line.
func (s Learned) InLine(d *crawldb.Datum) bool {
	return d.LastFetch.IsZero() || d.Priority >= 1<<lineBegin
}

func linePriority(latest time.Time) float32 {
	const year = 365.25 * 24 * 3600
	left := lineEnd - float64(latest.Unix()-631152000)/year // since 1990
	return float32(math.Exp2(max(lineBegin, min(left, lineEnd))))
}

// goneFor reports whether a page has been gone for at least the greatest interval (see
// Learned.Gone), and no signal says that it is back.
func goneFor(d *crawldb.Datum, most time.Duration) bool {
	return d.Status == crawldb.Gone && d.Interval >= most && SignalsOf(d) == 0 && !d.FetchTime.Before(d.LastFetch.Add(d.Interval))
}

// patience returns for how long such a page is left alone at most: see [Learned.Gone]. If the
// budget stretches the greatest intervals, it stretches this as well.
func (p *Plan) patience(most time.Duration) time.Duration {
	return time.Duration(min(4*max(p.stretch(), 1)*float64(most), math.MaxInt64/4))
}

// latest returns the latest moment at which a page that was visited before should be visited
// again, with a part of the greatest interval to spare: if there are few visits a day, all
// may be some days late.
func (s Learned) latest(d *crawldb.Datum, part time.Duration) time.Time {
	at := d.FetchTime
	if SignalsOf(d) == 0 || !at.Before(d.LastFetch.Add(d.Interval)) {
		at = at.Add(d.Interval / 4)
	} // a signal makes a visit worth more than the threshold at once, so do not wait
	if _, ok := fixedInterval(*d); ok {
		return at
	}
	_, most := s.bounds(d.URL)
	if goneFor(d, most) {
		return d.LastFetch.Add(s.Plan.patience(most))
	}
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
