package schedule

import "math"

// Homogeneity is how similarly pages change, as visits have shown. What a single page has shown
// is half chance, and if few visits tell much, following it is worse than visiting at even
// intervals. So a plan compares three predictions of what each visit finds: one from what the
// page itself has shown, with its prior; one that gives more weight to what is expected of
// other pages; and one that takes all pages to be the same. The best predictor so far sets the
// intervals. What is learned of each page is not affected.
//
// Where pages change their ways one by one, what they have shown differs more than what they do
// next: a rate that was high has fallen by then, and one that was low has risen. So a plan also
// keeps book of how much of the differences later visits confirm, and goes back toward one rate as
// far as they do not.
type Homogeneity struct {
	// Shape is how many changes the expectation for any page counts for, besides what a
	// page has shown and its prior. Zero means none. From fullyHomogeneous on, all pages are
	// taken to change as Common says.
	Shape float64
	// Common is what would be known of a single page if all visits had been to it.
	Common Rate
	// Some and All are the gains in log-likelihood of what visits found, each page having
	// the same weight, with a Shape of 4 and of fullyHomogeneous over a Shape of zero.
	Some, All float64
	// Less is the share of the differences between pages, as logarithms of their rates, that later
	// visits did not confirm; Confirmed is the information that they gave about it.
	Less      float64 `json:",omitempty"`
	Confirmed float64 `json:",omitempty"`
}

// fullyHomogeneous is the [Homogeneity].Shape of pages that are all the same.
const fullyHomogeneous = 1e6

const (
	someAlike = 4.
	// leastGain is the gain from which one prediction counts as better than another, and
	// leastGainOfPage is the gain per page below which it is not worth telling pages apart.
	leastGain       = 5.
	leastGainOfPage = 0.1
	// comparedPages is the share of the pages with a copy for which two visits must have
	// been compared: the first visited are important pages, which may be alike and unlike the rest.
	comparedPages = 0.5
	// comparedVisits is the number of visits to each page after which what they say counts
	// for a third.
	comparedVisits = 20.
	// Less counts from leastLess on, if it is lessSigmas deviations from zero. What visits say of it
	// is forgotten after lessVisits to each page, and begins with the information of a few.
	leastLess, lessSigmas   = 0.1, 3.
	lessVisits, lessAtFirst = 4., 10.
)

// valid reports whether it yields finite rates: JSON has no NaN or infinity.
func (l *Homogeneity) valid() bool {
	const most = 1e15
	r := l.Common
	return l.Less >= 0 && l.Less <= 1 && l.Confirmed >= 0 && l.Confirmed <= most && l.Shape >= 0 && l.Shape <= most && math.Abs(l.Some) <= most && math.Abs(l.All) <= most &&
		(r == Rate{} || r.Shape > 1/most && r.Shape < most && r.Days > 1/most && r.Days < most)
}

// homogenized returns the expected rate of a page with a known rate, given how similar
// pages are.
func (p *Plan) homogenized(url string, k kind, r Rate) Rate {
	if p == nil {
		return r
	}
	like := r
	switch l := &p.Homogeneity; {
	case l.Shape >= fullyHomogeneous:
		like = Rate{fullyHomogeneous, fullyHomogeneous / l.Common.PerDay()}
	case l.Shape > 0:
		like = Rate{r.Shape + l.Shape, r.Days + l.Shape/p.prior(url, k).PerDay()}
	}
	if l := &p.Homogeneity; l.Shape < fullyHomogeneous && l.Common.Known() && l.Less > leastLess && l.Less*math.Sqrt(l.Confirmed) > lessSigmas {
		like.Days *= math.Pow(like.PerDay()/l.Common.PerDay(), l.Less)
	}
	if !like.Known() {
		return r
	}
	return like
}

// confirmed adds up what visits say about the differences between pages: the derivative of their
// log-likelihood by Less, and its variance. What a shift of all rates explains, they do not say.
type confirmed struct{ score, shift, information, both, ofShift float64 }

// add adds a visit, given how many changes are expected of a page with the common rate.
func (c *confirmed) add(o outcome, common, less float64) {
	apart := math.Log(o.expected / common)
	expected := common * math.Exp((1-less)*apart)
	if !(o.expected <= mostExpected && expected <= mostExpected && math.Abs(apart) < 20) {
		return
	}
	grown := math.Expm1(expected)
	by := -expected
	if o.changed {
		by = expected / grown
	}
	variance := expected * expected / grown
	c.score -= apart * by
	c.shift += by
	c.information += apart * apart * variance
	c.both += apart * variance
	c.ofShift += variance
}

// apply corrects Less, keeping a share of what was known of it.
func (c *confirmed) apply(l *Homogeneity, keep float64) {
	l.Confirmed *= keep
	if !(c.ofShift > 0) {
		return
	}
	l.Confirmed += max(c.information-c.both*c.both/c.ofShift, 0)
	l.Less = max(0, min(l.Less+(c.score+c.shift*c.both/c.ofShift)/(l.Confirmed+lessAtFirst), 1))
}

// unseen returns the expected rate of a page without a visit.
func (p *Plan) unseen(url string, k kind) Rate { return p.homogenized(url, k, p.prior(url, k)) }

// rateOf returns what was learned of a page, or what is expected of it if nothing was.
func (p *Plan) rateOf(k *page) Rate {
	if k.known {
		return k.learned.Rate
	}
	return p.unseen(k.url, k.learned.kind)
}

// expected returns how many changes a Shape expected of the last visit to a page, given
// outcome.expected, which is for a Shape of zero.
func (p *Plan) expected(k *page, shape float64) float64 {
	o := k.learned.last
	if !(o.after > 0) || !p.Homogeneity.Common.Known() {
		return o.expected
	}
	switch {
	case shape >= fullyHomogeneous:
		return p.Homogeneity.Common.PerDay() * o.after
	case shape > 0:
		r := o.before(k.learned.Shape)
		return (r.Shape + shape) * math.Log1p(o.after/(r.Days+shape/p.prior(k.url, k.learned.kind).PerDay()))
	}
	return o.expected
}

// logChance is the log-likelihood of what a visit found, given the number of changes
// expected.
func (o outcome) logChance(expected float64) float64 {
	if o.changed {
		return math.Log(-math.Expm1(-max(expected, 1e-12)))
	}
	return -expected
}

// before returns what was known before a visit, given the shape after it. It inverts
// [Rate.Changed] by what that adds to a shape, which hardly depends on the shape.
func (o outcome) before(shape float64) Rate {
	a := shape
	if o.changed {
		for range 5 {
			after := Rate{a, 1}.Changed(fromDays(math.Expm1(min(o.expected/a, 20))))
			a = max(shape-(after.Shape-a), shape/3)
		}
	}
	return Rate{a, o.after / math.Expm1(o.expected/a)}
}

// setHomogeneity takes in what visits since the last plan found, and applies the result to the
// rates of the sample.
func (p *Plan) setHomogeneity(old *Plan, kept []page) {
	l := &p.Homogeneity
	copies, twice, known, visits := 0., 0., 0., 0.
	var apart confirmed
	if old != nil {
		*l = old.Homogeneity
		l.Common.Days *= math.Exp2(float64(int(old.Drift.Level)-int(p.Drift.Level)) / octave)
	}
	for i := range kept {
		k := &kept[i]
		if k.at.copied {
			copies++
		}
		if !k.known {
			continue
		}
		known++
		o := k.learned.last
		if !k.tells || !(o.after > 0) {
			continue
		}
		twice++
		if old == nil || !k.fetched.After(old.Made) || !old.Homogeneity.Common.Known() {
			continue
		}
		visits++
		// Pages count equally: a visit to a page that is visited twice as often has half
		// the weight.
		weight := o.after * old.Budget / old.live()
		own := o.logChance(o.expected)
		l.Some += weight * (o.logChance(old.expected(k, someAlike)) - own)
		common := old.expected(k, fullyHomogeneous)
		l.All += weight * (o.logChance(common) - own)
		apart.add(o, common, old.Homogeneity.Less)
		if after := fromDays(o.after); o.changed {
			l.Common = l.Common.Changed(after)
		} else {
			l.Common = l.Common.Unchanged(after)
		}
	}
	if visits > 0 {
		apart.apply(l, math.Exp(-visits/(lessVisits*known)))
		keep := math.Exp(-visits / (comparedVisits * known))
		l.Some *= keep
		l.All *= keep
		l.Common = l.Common.forget(keep)
	}
	if !l.Common.Known() && p.Prior.Known() {
		l.Common = Rate{1, 1 / p.Prior.PerDay()}
	}
	least := leastGain
	if l.Shape > 0 { // a finding stands until there is as much against it: visits may tell nothing
		least = -leastGain
	}
	if l.Shape = 0; !l.valid() {
		*l = Homogeneity{}
	}
	if best := max(l.Some, l.All); best >= least && twice >= comparedPages*copies {
		if l.Shape = someAlike; l.All >= max(least, best-max(leastGain, leastGainOfPage*known)) {
			l.Shape = fullyHomogeneous
		}
	}
	for i := range kept {
		if k := &kept[i]; k.known {
			k.learned.Rate = p.homogenized(k.url, k.learned.kind, k.learned.Rate)
			k.s.PerDay = k.learned.PerDay()
		}
	}
}
