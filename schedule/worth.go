package schedule

import (
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// Worth is how a [Learned] schedule comes to the interval of a page.
type Worth struct {
	// Rate is what is known of its changes; Learned says that the page itself has
	// shown some of it, and is not only expected to be like others.
	Rate    Rate
	Learned bool
	// Alike says that Rate is that of all pages, which have proved to be alike: see
	// [Likeness].
	Alike bool
	// Even says that all pages are visited as if they changed alike, Pace times a day, since
	// telling them apart would keep only a share of Gain more fresh; else Pace is that of Rate.
	Even       bool
	Pace, Gain float64
	// Noise says that the host is noisy, so that Pace is what its pages are taken to change
	// whatever visits find: see [Plan].Noise.
	Noise bool
	// Weight is its importance, Threshold what a visit must be worth.
	Weight, Threshold float64
	// OfHost says that Threshold is that of the host, which may be visited less often than
	// its pages would be by the threshold of all others, Elsewhere.
	OfHost    bool
	Elsewhere float64
	// Signals is what the signs of its changes are worth, zero if there are none that say
	// anything; Signs is how many there were since the last visit.
	Signals Signals
	Signs   int
	// Share is Threshold·Pace/Weight, what of all that there is to lose, Weight/Pace,
	// makes a visit worth while; Ratio is h⁻¹(Share), the changes for which to wait
	// on average, infinite if no visit is worth while; with Signals it is the inverse of what
	// visits are worth with them, and a sign counts as so many changes: Sign.
	Share, Ratio, Sign float64
	// Interval is what comes of it, within Least and Most; Fixed says that the page
	// has one of its own.
	Interval, Least, Most time.Duration
	Fixed                 bool
	// Stretch is what the budget makes of the greatest interval of the page, which was set to
	// be Set: see [Plan].Stretch. If it is less than 1, Most is so much shorter than Set, but
	// not shorter than Least; if it is more, pages with that interval are visited when so
	// much more has passed.
	Stretch float64
	Set     time.Duration
}

// Fresh returns the probability that the copy is what the page is now, and how long ago it
// was made; zero if there is no copy.
func (s Learned) Fresh(d *crawldb.Datum, now time.Time) (probability float64, elapsed time.Duration) {
	at := standingOf(d, now)
	if !at.copied {
		return 0, 0
	}
	l, _ := s.rate(d)
	rate, trust := s.Plan.unsigned(d, l.Rate)
	return trust * rate.Fresh(at.elapsed), at.elapsed
}

// Explain says how the schedule comes to the interval of a page, as of now: that in
// the record is as of the last visit.
func (s Learned) Explain(d *crawldb.Datum) Worth {
	s.NutchCompat = false
	l, ok := s.rate(d)
	w := Worth{Rate: l.Rate, Learned: ok, Weight: s.weight(d, float64(d.Score)), Threshold: s.threshold(d.URL)}
	w.Alike = s.Plan != nil && s.Plan.Likeness.Shape >= AllAlike
	w.Elsewhere = s.threshold("")
	w.OfHost = w.Threshold > w.Elsewhere
	w.Least, w.Most = s.within(d.URL)
	_, w.Set = s.bounds(d.URL)
	if w.Stretch = s.Plan.stretch(); w.Stretch < 1 && s.Plan.own(d.URL) {
		w.Stretch = 1
	}
	pace := s.Plan.pace(d.URL, l.Rate)
	w.Pace = pace.PerDay()
	if s.Plan != nil {
		w.Even, w.Gain = s.Plan.Even, s.Plan.Gain
		w.Noise = !w.Even && s.Plan.noiseAt(d.URL) > 0
	}
	w.Share = w.Threshold * w.Pace / w.Weight
	g := s.Plan.signs(d)
	w.Ratio = g.inverse(w.Share)
	if g != nil {
		w.Signals, w.Signs, w.Sign = g.Signals, signsSince(d, since(d, d.LastFetch)), g.beta
	}
	w.Interval = s.wait(d, pace, w.Least, w.Most)
	if fixed, ok := fixedInterval(*d); ok {
		w.Fixed, w.Interval, w.Stretch = true, wholeSeconds(fixed, s.max()), 1
	}
	return w
}

// Greatest returns the greatest interval that is set, but for hosts with bounds of their own,
// and what the budget makes of it: how long a page is left alone at most. See [Plan].Stretch.
func (s Learned) Greatest() (set, inForce time.Duration) {
	_, set = s.bounds("")
	if by := s.Plan.stretch(); by > 1 {
		return set, fromDays(days(set) * by)
	}
	_, inForce = s.within("")
	return set, inForce
}
