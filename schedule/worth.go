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
	// Weight is its importance, Threshold what a visit must be worth.
	Weight, Threshold float64
	// OfHost says that Threshold is that of the host, which may be visited less often than
	// its pages would be by the threshold of all others, Elsewhere.
	OfHost    bool
	Elsewhere float64
	// Fresh is the probability that the copy is what the page is now, Elapsed how long ago
	// it was made; both are zero if there is none.
	Fresh   float64
	Elapsed time.Duration
	// Share is Threshold·rate/Weight, what of all that there is to lose, Weight/rate,
	// makes a visit worth while; Ratio is h⁻¹(Share), the changes for which to wait
	// on average, infinite if no visit is worth while.
	Share, Ratio float64
	// Interval is what comes of it, within Least and Most; Fixed says that the page
	// has one of its own.
	Interval, Least, Most time.Duration
	Fixed                 bool
}

// Explain says how the schedule comes to the interval of a page, by the plan it has at now:
// the interval in the record is as of the last visit.
func (s Learned) Explain(d *crawldb.Datum, now time.Time) Worth {
	s.NutchCompat = false
	l, ok := s.known(d)
	if !ok {
		l.Rate = s.Plan.prior(d.URL, kindUnknown)
	}
	w := Worth{Rate: l.Rate, Learned: ok, Weight: s.weight(d, float64(d.Score)), Threshold: s.threshold(d.URL)}
	w.Elsewhere = s.threshold("")
	w.OfHost = w.Threshold > w.Elsewhere
	if at := standingOf(d, now); at.copied {
		w.Elapsed, w.Fresh = at.elapsed, l.Fresh(at.elapsed)
	}
	w.Least, w.Most = s.bounds(d.URL)
	w.Share = w.Threshold * l.PerDay() / w.Weight
	w.Ratio = gainInverse(w.Share)
	w.Interval = s.wait(d, l.Rate, w.Least, w.Most)
	if fixed, ok := fixedInterval(*d); ok {
		w.Fixed, w.Interval = true, wholeSeconds(fixed, s.max())
	}
	return w
}
