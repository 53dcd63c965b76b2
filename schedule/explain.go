package schedule

import (
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// Worth is how a [Learned] schedule arrives at the interval of a page.
type Worth struct {
	// Rate is what is known of its changes; Learned says that some of it was
	// learned from the page itself, and not just from others like it.
	Rate    Rate
	Learned bool
	// Homogeneous says that Rate is that of all pages, which have proved to be alike: see
	// [Homogeneity].
	Homogeneous bool
	// Uniform says that all pages are visited as if they changed alike, Pace times a day, since
	// telling them apart would keep only a share of Gain more fresh; otherwise Pace is that of
	// Rate.
	Uniform    bool
	Pace, Gain float64
	// Noise says that the page has changed at each visit, however soon, so that Pace is how often it is taken to
	// change, whatever visits find, and Weight is drawn to the mean: see [NoisyHost].
	Noise bool
	// Weight is its importance, Threshold what a visit must be worth.
	Weight, Threshold float64
	// ThresholdOfHost says that Threshold is that of the host, which may be visited less often than
	// its pages would be by the threshold of all others, CommonThreshold.
	ThresholdOfHost bool
	CommonThreshold float64
	// SignalQuality is what the signals of its changes are worth, zero if there are none that say
	// anything; Signals is how many there were since the last visit.
	SignalQuality SignalQuality
	Signals       int
	// Share is Threshold·Pace/Weight, the part of all that there is to lose, Weight/Pace,
	// that makes a visit worthwhile. Ratio is h⁻¹(Share), the number of changes to wait for
	// on average, infinite if no visit is worthwhile; with signals it is the inverse of what
	// visits are worth with them. ChangesPerSignal is how many changes a signal counts as.
	Share, Ratio, ChangesPerSignal float64
	// Interval is the result, within Least and Most; Fixed says that the page has
	// its own.
	Interval, Least, Most time.Duration
	Fixed                 bool
	// Stretch is the factor that the budget applies to the greatest interval of the page,
	// which was set to Set: see [Plan].Stretch. If it is less than 1, Most is shorter than
	// Set by that factor, but not shorter than Least; if it is more, pages with that interval
	// are visited later by that factor.
	Stretch float64
	MaxSet  time.Duration
}

// Fresh returns the probability that the copy still matches the page, and how long ago it
// was made; both are zero if there is no copy.
func (s Learned) Fresh(d *crawldb.Datum, now time.Time) (probability float64, elapsed time.Duration) {
	at := standingOf(d, now)
	if !at.copied {
		return 0, 0
	}
	l, _ := s.rate(d)
	rate, trust := s.Plan.unsigned(d, l.Rate)
	return trust * rate.Fresh(at.elapsed), at.elapsed
}

// Explain says how the schedule arrives at the interval of a page, as of now: the
// one in the record is as of the last visit.
func (s Learned) Explain(d *crawldb.Datum) Worth {
	s.NutchCompat = false
	l, ok := s.rate(d)
	w := Worth{Rate: l.Rate, Learned: ok, Weight: s.Plan.effectiveWeight(&l, ok, s.weight(d, float64(d.Score))), Threshold: s.threshold(d.URL)}
	w.Homogeneous = s.Plan != nil && s.Plan.Homogeneity.Shape >= fullyHomogeneous
	w.CommonThreshold = s.threshold("")
	w.ThresholdOfHost = w.Threshold > w.CommonThreshold
	w.Least, w.Most = s.within(d.URL)
	_, w.MaxSet = s.bounds(d.URL)
	if w.Stretch = s.Plan.stretch(); w.Stretch < 1 && s.Plan.own(d.URL) {
		w.Stretch = 1
	}
	pace := s.Plan.pace(&l, l.Rate, ok)
	w.Pace = pace.PerDay()
	if s.Plan != nil {
		w.Uniform, w.Gain = s.Plan.Uniform, s.Plan.Gain
		w.Noise = !w.Uniform && ok && l.noisy()
	}
	w.Share = w.Threshold * w.Pace / w.Weight
	g := s.Plan.signalModelOf(d)
	w.Ratio = g.inverse(w.Share)
	if g != nil {
		w.SignalQuality, w.Signals, w.ChangesPerSignal = g.SignalQuality, signalsSince(d, since(d, d.LastFetch)), g.beta
	}
	w.Interval = s.wait(d, pace, w.Weight, w.Least, w.Most)
	if fixed, ok := fixedInterval(*d); ok {
		w.Fixed, w.Interval, w.Stretch = true, wholeSeconds(fixed, s.max()), 1
	}
	return w
}

// MaxIntervals returns the greatest interval that is set, leaving aside hosts with their own
// bounds, and the one in force given the budget: how long a page goes unvisited at most. See
// [Plan].Stretch.
func (s Learned) MaxIntervals() (set, inForce time.Duration) {
	_, set = s.bounds("")
	if by := s.Plan.stretch(); by > 1 {
		return set, fromDays(days(set) * by)
	}
	_, inForce = s.within("")
	return set, inForce
}
