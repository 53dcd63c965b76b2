package schedule

import (
	"math"

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

// Priority returns what a visit is worth when the record is due and a little later:
// importance times the days for which the copy will not have been fresh. For a page
// that was never fetched, and for one with an interval of its own, that is all there
// is to lose: importance over the rate. One that is due because no page is left
// alone for longer, or is gone, is worth the threshold at least, or just that.
func (s Learned) Priority(d *crawldb.Datum, priority float32) float32 {
	l, _ := s.rate(d)
	perDay := l.PerDay()
	all := s.weight(d, float64(priority)) / perDay
	if d.LastFetch.IsZero() {
		return priorityOf(all)
	}
	if _, ok := fixedInterval(*d); ok {
		return priorityOf(all)
	}
	mu := s.threshold(d.URL)
	switch d.Status {
	case crawldb.Gone, crawldb.ParseFailed:
		return priorityOf(mu)
	}
	// A sign that the page has changed moves its visit to an earlier time: what that
	// is worth is what the page would be if it were as much later.
	wait := d.Interval
	late := wait / 4
	if d.Retries == 0 {
		if sooner := d.LastFetch.Add(wait).Sub(d.FetchTime); sooner > late {
			late = min(sooner, wait)
		}
	}
	v := all * gain(perDay*days(wait+late))
	// What is due only because no page is left alone for longer is worth the threshold.
	_, most := s.bounds(d.URL)
	if wait >= most*2/5 && all*gain(perDay*days(most)) <= mu { // see spread
		v = max(v, mu)
	}
	// Those that are worth least would wait for as long as others become due. While the
	// budget is enough, pages with long intervals, which are few of a day, go first: what
	// waits then comes by again long before the greatest interval is over. Those that have
	// little time left go before them.
	if wait >= most/6 && s.Plan.enough() {
		if v *= 1e3; wait >= most/2 {
			v *= 1e6
		}
	}
	return priorityOf(v)
}

func priorityOf(v float64) float32 {
	if !(v > 0) {
		return 0
	}
	return float32(min(v, math.MaxFloat32))
}
