package hostdb

import "math"

// SignalStats counts how often sitemaps were right about changes of a host's pages,
// at visits to pages that they say something about. It is kept by package update.
// Visits that cannot tell, because the page was not known before, or because only
// a day is given and the page was visited on it, do not count.
type SignalStats struct {
	// Hits counts the visits to pages that were said to have changed since the
	// visit before and had, False those to pages that were said to and had not,
	// and Misses those to pages that had changed and were not said to have.
	Hits, False, Misses int64
	// The other fields say more about the visits, for a schedule that weighs signals: see
	// [SignalCheck]. Truth and Tests are the shape and the inverse scale of the Gamma distribution of
	// θ, where a signal is false with the probability exp(-θ); both are initially zero.
	Truth, Tests float64
	// Signals is the number of signals, and Expected that of changes expected between visits,
	// with signals or without; Unsignalled is the number of changes found where there was no
	// signal, and ExpectedUnsignalled that of changes expected there.
	Signals, Expected, Unsignalled, ExpectedUnsignalled float64
	// Segment is the last one that was counted.
	Segment string
}

const (
	// trustFrom is the precision from which on signals are believed. A sitemap that
	// always says of each page that it has just changed is right as often as visits
	// find a change anyway: in six of ten, with an adaptive schedule. So a lower
	// value would mean nothing, and honest sitemaps are well above.
	trustFrom = 0.75
	// The prior for a host about which nothing is known: seven of eight signals true.
	priorHits, priorAll = 7, 8
	// The same as a Gamma distribution, with the weight of one true signal.
	priorTruth, priorTests = 1., 1. / 7
	// knownFrom is the number of visits after which Precision and Recall are more than the
	// prior.
	knownFrom = 16
	// signalWindow is the number of visits after which earlier counts begin to
	// fade: everything is then halved, so that a site can change its ways.
	signalWindow = 100
	// maxSum is more than any of the sums can reach: a store keeps any value.
	maxSum = 1e12
)

// SignalCheck is what a visit reveals about the signals of a page since the visit
// before.
type SignalCheck struct {
	// Signals counts the signals, Changed says whether the page had changed.
	Signals int
	Changed bool
	// Chance is the probability of finding a change that had no signal, and Expected the
	// expected number of changes; zero if it is not known how often the page changes.
	Chance, Expected float64
}

// Precision is the share of signals that are true, as far as is known, beyond those
// true only because visits find changes that often anyway. It begins at seven eighths.
func (l SignalStats) Precision() float64 {
	a, b := l.truth()
	return 1 - math.Pow(b/(b+1), a)
}

func (l SignalStats) truth() (shape, tests float64) {
	if !(l.Truth > 0 && l.Truth < maxSum && l.Tests > 0 && l.Tests < maxSum) {
		return priorTruth, priorTests
	}
	return l.Truth, l.Tests
}

// Recall is the share of changes that have a signal, which begins at a half. It compares the
// number of changes with a signal, relative to the number expected, with the number without.
// Where it is not known how often pages change, it is Hits / (Hits + Misses).
func (l SignalStats) Recall() float64 {
	for _, f := range [...]float64{l.Signals, l.Unsignalled, l.ExpectedUnsignalled} {
		if !(f >= 0 && f < maxSum) {
			l.Expected = 0
		}
	}
	if !(l.Expected > 0 && l.Expected < maxSum) {
		return float64(l.Hits+1) / float64(l.Hits+l.Misses+2)
	}
	withSignal := (l.Precision()*l.Signals + 0.5) / (l.Expected + 1)
	without := (l.Unsignalled + 0.5) / (l.ExpectedUnsignalled + 1)
	return withSignal / (withSignal + without)
}

// Known reports whether enough signals were checked, or changes found without a signal, to tell
// Precision and Recall.
func (l SignalStats) Known() bool { return l.Hits+l.False+l.Misses >= knownFrom }

// Trusted reports whether signals are believed: whether three quarters of them or more are
// true, (Hits+7)/(Hits+False+8). A host about which nothing is known is trusted until two
// signals have been false.
func (l SignalStats) Trusted() bool {
	return float64(l.Hits+priorHits)/float64(l.Hits+l.False+priorAll) >= trustFrom
}

// With returns l with the visits of a segment counted, in an order that is always the
// same; l itself if that was done already. Earlier counts fade, over a window of a hundred
// visits.
func (l SignalStats) With(segment string, checks []SignalCheck) SignalStats {
	if l.Segment >= segment {
		return l
	}
	l.Segment = segment
	for _, c := range checks {
		l.count(c)
	}
	for l.Hits+l.False+l.Misses > signalWindow {
		l.Hits, l.False, l.Misses = l.Hits/2, l.False/2, l.Misses/2
		l.Signals, l.Expected, l.Unsignalled, l.ExpectedUnsignalled = l.Signals/2, l.Expected/2, l.Unsignalled/2, l.ExpectedUnsignalled/2
	}
	return l
}

func (l *SignalStats) count(c SignalCheck) {
	switch {
	case c.Signals > 0 && c.Changed:
		l.Hits++
	case c.Signals > 0:
		l.False++
	case c.Changed:
		l.Misses++
	}
	if c.Signals > 0 {
		l.test(float64(c.Signals), c.Changed, 1-c.Chance)
	}
	if !(c.Expected > 0) {
		return
	}
	l.Signals += float64(c.Signals)
	l.Expected += c.Expected
	if c.Signals > 0 {
		return
	}
	l.ExpectedUnsignalled += c.Expected
	if c.Changed && c.Chance > 0 { // there may have been several
		l.Unsignalled += -math.Log1p(-min(c.Chance, 0.999)) / c.Chance
	}
}

// test updates θ: the probability that a visit after n signals finds nothing is
// fresh·exp(-θn), where fresh is the probability of no change without a signal. After a
// visit that finds a change, the posterior is replaced by the Gamma distribution with the
// same mean and variance, as package schedule does with rates. Each time a fiftieth of what
// is known gives way to the prior.
func (l *SignalStats) test(n float64, changed bool, fresh float64) {
	const keep = 0.98
	a, b := l.truth()
	a, b = keep*a+(1-keep)*priorTruth, keep*b+(1-keep)*priorTests
	if !changed {
		l.Truth, l.Tests = a, b+n
		return
	}
	log := math.Log1p(n / b)
	z := func(k float64) float64 { return 1 - fresh*math.Exp(-(a+k)*log) }
	mean := a / b * z(1) / z(0)
	variance := a*(a+1)/(b*b)*z(2)/z(0) - mean*mean
	if next, scale := mean*mean/variance, mean/variance; next > 1e-6 && scale > 1e-6 && next < 1e6 && scale < 1e6 {
		a, b = next, scale
	}
	l.Truth, l.Tests = a, b
}
