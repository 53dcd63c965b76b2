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

// Priority orders the pages that are due, in four classes.
//
// First come owed pages: those that would otherwise wait for longer than the bound, the greatest
// interval (see [Learned.InLine]), in the order in which they reach it.
//
// Then come pages that were never fetched, if the budget allows the bound for all of them
// ([Plan].AllNew), or if a visit is clearly worth more than the threshold, or than a visit to a
// page of average importance that is made only because the greatest interval is over. A first visit
// is worth the importance of the page divided by its rate, which is all that there is to lose; such
// pages are ordered by that.
//
// Then come pages visited before, in one line ordered by the latest moment for their next visit: a
// quarter of the interval after it is due, and before the greatest interval is over. So a waiting
// page moves up whatever becomes due in the meantime, all are late by the same time, and pages with
// time left wait for those with none. Pages gone for long come after all of them: see [Learned.Gone].
// Last come the other pages that were never fetched.
//
// The stored priority does not change while a page waits, so it encodes a time, not a
// duration.
func (s Learned) Priority(d *crawldb.Datum, priority float32) float32 {
	if s.Plan != nil {
		if end, ok := s.owed(d, s.Plan.Made); ok {
			return owedPriority(end)
		}
	}
	if !d.LastFetch.IsZero() {
		return linePriority(s.latest(d, 24))
	}
	l, seen := s.rate(d)
	perDay := s.Plan.pace(&l, l.Rate, seen).PerDay()
	worth := s.weight(d, float64(priority)) / perDay
	if s.Plan != nil && s.Plan.AllNew || worth > 1.5*min(s.threshold(d.URL), s.Plan.mean()/perDay*gain(perDay*s.longest(d.URL))) {
		return float32(newFirst * math.Sqrt(max(1, min(100*worth, 1e6))))
	}
	if !(worth > 0) {
		return 0
	}
	return float32(min(worth, 1<<(lineBegin-1)))
}

// owed reports whether a page should be visited before the plan made at a time is replaced, lest it
// wait for longer than the bound, and when it reaches the bound. Pages that are gone, and those with
// their own interval, have none.
func (s Learned) owed(d *crawldb.Datum, made time.Time) (end time.Time, ok bool) {
	holds := day // without a plan, which finds all such pages when it is made
	if s.Plan != nil {
		holds = s.Plan.Holds()
	}
	if d.Status == crawldb.Gone {
		return end, false
	}
	from := d.LastFetch
	if from.IsZero() {
		if from = d.FetchTime; s.Plan == nil || !s.Plan.AllNew || from.IsZero() {
			return end, false
		}
	}
	if _, fixed := fixedInterval(*d); fixed {
		return end, false
	}
	_, most := s.bounds(d.URL)
	end = from.Add(fromDays(days(most) * ofBound * max(s.Plan.stretch(), 1)))
	return end, !end.After(made.Add(holds))
}

// ofBound is the share of the greatest interval after which a page is owed a visit. That is some
// percent more than one, so that first visits have their place where the budget hardly allows the bound.
const ofBound = 1.04

// longest returns for how many days a page with the greatest interval goes unvisited.
func (s Learned) longest(url string) float64 {
	_, most := s.within(url)
	return ofMost * days(most) * max(s.Plan.stretch(), 1)
}

// The line takes an octave of priorities per year. The octaves from newFirst and from owedBegin on
// are for the classes before it.
const (
	lineBegin = 20 // as a power of two
	lineEnd   = lineBegin + 90
	newFirst  = 1 << (lineEnd + 4)
	owedBegin = lineEnd + 15
)

// InLine implements [Planner]. It reports whether a page is in its class: see [Learned.Priority]. A
// page that was visited before and is in none has a priority from another schedule. A page
// that is not among the owed ones although it will have waited for as long as the bound allows when
// the next plan is made, was kept back by other pages: because the plan was wrong about how often
// pages change, or because many pages appeared. A Crawler gives both their class when it makes a
// plan, so that no page waits for longer than the budget requires, however wrong the plan is.
func (s Learned) InLine(d *crawldb.Datum, now time.Time) bool {
	if _, ok := s.owed(d, now); ok {
		return d.Priority >= 1<<owedBegin
	}
	if d.LastFetch.IsZero() {
		return s.Plan == nil || !s.Plan.AllNew || d.Priority >= newFirst
	}
	return d.Priority >= 1<<lineBegin
}

func linePriority(latest time.Time) float32 {
	return float32(math.Exp2(lineBegin + left(latest)))
}

// owedPriority needs three octaves for the time of the line, and distinguishes some minutes.
func owedPriority(end time.Time) float32 {
	return float32(math.Exp2(owedBegin + left(end)*2.99/(lineEnd-lineBegin)))
}

// left returns the years from a moment to 2080, from zero to ninety.
func left(at time.Time) float64 {
	const year, lastYear = 365.25 * 24 * 3600, 631152000 + (lineEnd-lineBegin)*365.25*24*3600 // from 1990 on
	return max(0, min((lastYear-float64(at.Unix()))/year, lineEnd-lineBegin))
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
