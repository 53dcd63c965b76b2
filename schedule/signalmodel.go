package schedule

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// SignalQuality is what signals are worth for the pages of a host. Precision is the
// share of signals that are true, beyond those that come when a page happens to have
// changed anyway, Recall the share of changes that have a signal. The zero value is that of
// a host without signals, or whose signals say nothing.
type SignalQuality struct{ Precision, Recall float64 }

// Of the changes of a page, those with a signal come at the rate q·λ, where q is the recall,
// among signals that come at g = q·λ/p, p being the precision; those without come at
// α = (1-q)·λ. After a time t in which there were n signals the copy is fresh with the
// probability exp(-α·t)·(1-p)^n, as it would be without a signal after the effective time
//
//	τ = t + n·β,  β = -ln(1-p)/α
//
// So the page is visited when τ reaches a threshold ι. Between two visits there is a time
// ψ(ι) on average, and the copy is fresh for W(ι) of it; one more visit is worth
//
//	V(ι) = weight · (W - ψ·exp(-α·ι))
//
// (Busa-Fekete et al., Crawling with noisy change signals, 2025, arXiv:2502.02430; Azar et
// al., PNAS 2018, and Kolobov et al., NeurIPS 2019, for signals without noise). Without
// signals that is the same as in gain. In units of 1/λ it depends on p and q alone:
//
//	ψ'(x) = 1 - g·(ψ(x) - ψ(x-β)),  λV/weight = G,  G'(x) = α·ψ(x)·exp(-α·x)
//
// which is integrated once for each p and q: see worthOf.

const (
	// Signals that are rarely true, or rare, are ignored: they are worth less than a wrong
	// estimate of their worth costs.
	leastPrecision, leastRecall = 0.1, 0.05
	mostSignal                  = 0.98
)

// rounded returns the signals that represent a class, which are zero if signals are not worth
// using.
func (g SignalQuality) rounded() SignalQuality {
	if !(g.Precision >= leastPrecision && g.Recall >= leastRecall) {
		return SignalQuality{}
	}
	round := func(x float64) float64 {
		if x > 0.91 {
			return min(math.Round(50*x)/50, mostSignal)
		}
		return math.Round(20*x) / 20
	}
	return SignalQuality{round(g.Precision), round(g.Recall)}
}

// worthPoints is the number of points in the tables of a class, equidistant in the logarithm
// of x from worthFrom on.
const (
	worthPoints = 160
	worthFrom   = 3e-2
)

// signalModel is what visits to pages with signals are worth, in units of 1/λ. A nil one is
// for pages without: then worth is gain.
type signalModel struct {
	SignalQuality
	alpha, beta float64
	step        float64 // of the logarithm of x
	g, psi      [worthPoints]float64
}

func worthOf(s SignalQuality) *signalModel {
	p, q := s.Precision, s.Recall
	w := &signalModel{SignalQuality: s, alpha: 1 - q}
	w.beta = -math.Log1p(-p) / w.alpha
	gamma := q / p
	most := 9.5 / w.alpha // nothing is left to lose there
	w.step = math.Log(most/worthFrom) / (worthPoints - 1)
	// A whole number of steps is β, and a step is short compared with everything else.
	h := min(w.beta, 1/gamma, 1/w.alpha, worthFrom*2) / 12
	delay := int(math.Ceil(w.beta / h))
	if float64(delay) < most/h {
		h = w.beta / float64(delay)
	}
	n := int(most/h) + 2
	psi := make([]float64, n)
	keep := math.Exp(-gamma * h)
	gain := -math.Expm1(-gamma*h) / gamma
	before := func(i int) float64 { // ψ of i steps, minus β
		if i -= delay; i < 0 {
			return 0
		}
		return psi[i]
	}
	sum, last, k := 0.0, 0.0, 0
	fresh, decay := w.alpha, math.Exp(-w.alpha*h) // α·exp(-αx)
	for i := range n {
		if i > 0 {
			psi[i] = psi[i-1]*keep + gain*(1+gamma*(before(i-1)+before(i))/2)
		}
		x := float64(i) * h
		now := psi[i] * fresh
		fresh *= decay
		next := sum
		if i > 0 {
			next += (last + now) / 2 * h
		}
		for ; k < worthPoints && i > 0 && w.x(k) <= x; k++ {
			part := 1 - (x-w.x(k))/h
			w.psi[k] = psi[i-1] + part*(psi[i]-psi[i-1])
			w.g[k] = sum + part*(next-sum)
		}
		sum, last = next, now
	}
	for ; k < worthPoints; k++ { // rounding
		w.psi[k], w.g[k] = psi[n-1], sum
	}
	return w
}

func (w *signalModel) x(k int) float64 { return worthFrom * math.Exp(w.step*float64(k)) }

// place returns between which points x is: the first and how far from it.
func (w *signalModel) place(x float64) (k int, part float64) {
	at := min(math.Log(x/worthFrom)/w.step, worthPoints-1) // x may be infinite
	k = max(0, min(int(at), worthPoints-2))
	return k, at - float64(k)
}

// worth is G.
func (w *signalModel) worth(x float64) float64 {
	switch {
	case w == nil:
		return gain(x)
	case !(x > 0):
		return 0
	case x < worthFrom:
		return w.g[0] * (x / worthFrom) * (x / worthFrom)
	}
	k, part := w.place(x)
	return w.g[k] + part*(w.g[k+1]-w.g[k])
}

// inverse is where G is y; infinity from 1 on.
func (w *signalModel) inverse(y float64) float64 {
	switch {
	case w == nil:
		return gainInverse(y)
	case !(y > 0):
		return 0
	case y < w.g[0]:
		return worthFrom * math.Sqrt(y/w.g[0])
	case y >= w.g[worthPoints-1]:
		return math.Inf(1)
	}
	k, _ := slices.BinarySearch(w.g[:], y)
	k = max(k-1, 0)
	part := (y - w.g[k]) / (w.g[k+1] - w.g[k])
	return worthFrom * math.Exp(w.step*(float64(k)+part))
}

// between is ψ: the time between two visits.
func (w *signalModel) between(x float64) float64 {
	if x < worthFrom {
		return x
	}
	k, part := w.place(x)
	return w.psi[k] + part*(w.psi[k+1]-w.psi[k])
}

// freshness is W/ψ.
func (w *signalModel) freshness(x float64) float64 {
	if !(x > 0) {
		return 1
	}
	if x < worthFrom {
		return 1 - w.alpha*x/2
	}
	return min(w.worth(x)/w.between(x)+math.Exp(-w.alpha*x), 1)
}

// signalsKey is the Meta entry with the number of signals since the last visit.
const signalsKey = "schedule.signs"

// SignalsOf returns the number of signals since the last visit that the page has changed, as far
// as the schedule was told: see [Signalled].
func SignalsOf(d *crawldb.Datum) int {
	text, ok := d.Meta.Get(signalsKey)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(text, 36, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int(n)
}

// mostSignals is a number of signals beyond which more make no difference.
const mostSignals = 1 << 20

func setSignals(d *crawldb.Datum, n int) {
	d.Meta.Set(signalsKey, strconv.FormatInt(int64(min(n, mostSignals)), 36))
}

// signalsSince returns the number of signals since the content was last seen. A claim of a
// sitemap that was not acted on counts as one.
func signalsSince(d *crawldb.Datum, seen time.Time) int {
	n := SignalsOf(d)
	if hint, ok := crawldb.SitemapEntryOf(d.Meta); ok && n == 0 && hint.Modified.After(seen) {
		return 1
	}
	return n
}

// hasSignals reports whether a page has ever had a signal.
func hasSignals(d *crawldb.Datum) bool {
	hint, ok := crawldb.SitemapEntryOf(d.Meta)
	return ok && !hint.Modified.IsZero()
}

// signalModelOf returns what is known of the signals of a page; nil if there are none, or they say
// nothing.
func (p *Plan) signalModelOf(d *crawldb.Datum) *signalModel {
	if p == nil || len(p.signalModels) == 0 {
		return nil
	}
	w := p.signalModels[crawldb.Host(d.URL)]
	if w == nil || !hasSignals(d) {
		return nil
	}
	return w
}

// unsigned returns what is known of how often a page changes without a signal, and the
// probability that all signals since the last visit were false.
func (p *Plan) unsigned(d *crawldb.Datum, r Rate) (Rate, float64) {
	w := p.signalModelOf(d)
	if w == nil {
		return r, 1
	}
	return w.unsigned(r), w.none(signalsSince(d, since(d, d.LastFetch)))
}

// prepare makes the tables for hosts that have signals, or takes them from the earlier plan.
func (p *Plan) prepare(old *Plan) {
	classes := map[SignalQuality]*signalModel{}
	if old != nil {
		for _, w := range old.signalModels {
			classes[w.SignalQuality] = w
		}
	}
	p.signalModels = nil
	for host, s := range p.HostSignals {
		s = s.rounded()
		if s == (SignalQuality{}) {
			continue
		}
		w := classes[s]
		if w == nil {
			w = worthOf(s)
			classes[s] = w
		}
		if p.signalModels == nil {
			p.signalModels = map[string]*signalModel{}
		}
		p.signalModels[host] = w
	}
}

// changed returns what is known of a rate after a visit that found a change, given the time
// and the number of signals since the visit before. If signals are true, their number tells how
// many changes with a signal there were. Of changes without, the visit tells only whether there
// was one, and only if no signal was true.
func (w *signalModel) changed(r Rate, after time.Duration, signs int) Rate {
	t := days(after)
	unsigned := Rate{r.Shape, r.Days + w.Recall*t}.Changed(time.Duration(w.alpha * float64(after)))
	if signs == 0 {
		return unsigned
	}
	none := w.none(signs)
	fresh := math.Exp(-r.Shape * math.Log1p(w.alpha*t/r.Days))
	share := (1 - none) / (1 - none*fresh) // the probability that a signal is true
	signed := Rate{r.Shape + float64(signs)*w.Precision/(1-none), r.Days + w.Recall*t}
	mean := share*signed.PerDay() + (1-share)*unsigned.PerDay()
	square := func(r Rate) float64 { return r.PerDay()*r.PerDay() + r.Deviation()*r.Deviation() }
	variance := share*square(signed) + (1-share)*square(unsigned) - mean*mean
	next := Rate{mean * mean / variance, mean / variance}
	if !next.Known() {
		return r
	}
	return next
}

// expect returns the number of changes without a signal expected in a time without signals, which
// itself says something about the rate: see [Rate].expect.
func (w *signalModel) expect(r Rate, after time.Duration) float64 {
	return Rate{r.Shape, (r.Days + w.Recall*days(after)) / w.alpha}.expect(after)
}

// none returns the probability that none of n signals is true.
func (w *signalModel) none(signs int) float64 { return math.Pow(1-w.Precision, float64(signs)) }

// unsigned returns what is known of the rate of changes without a signal.
func (w *signalModel) unsigned(r Rate) Rate { return Rate{r.Shape, r.Days / w.alpha} }

// Weigh returns what to expect of a visit to a page, given how long after the one before it
// comes, how many signals there were in between, and what signals are known to be worth: chance
// is the probability of finding a change without a signal, expected the expected number of
// changes, with signals or without. Both are zero if no rate was learned for the page.
func Weigh(d *crawldb.Datum, after time.Duration, signs int, g SignalQuality) (chance, expected float64) {
	r, ok := RateOf(d)
	t := days(after)
	if !ok || t <= 0 {
		return 0, 0
	}
	p, q := max(0, min(g.Precision, 1)), max(0, min(g.Recall, mostSignal))
	// That there was no signal says something about the rate; the number of signals does so
	// only if they are true, which cannot be inferred from itself.
	seen := r.Days
	if signs == 0 {
		seen += q * t
	}
	chance = -math.Expm1(-r.Shape * math.Log1p((1-q)*t/seen))
	return chance, (r.Shape + p*float64(signs)) / (r.Days + q*t) * t
}
