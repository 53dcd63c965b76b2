package schedule

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Telling pages apart gains little if rates hardly matter, and less than it seems while they
// are not well known: visits then follow what is half chance. So a plan computes how much
// importance it expects to keep fresh, over all possible rates, and how much a constant
// interval would keep with as many visits. If the difference is too small, all pages are visited
// as if they changed alike, while their rates are learned. Every crawl in which pages matter
// alike begins so; in others, importance alone is gain enough.
//
// If pages have always changed by the next visit, visits at one interval do not tell how often
// they change, nor what could be gained. So some pages are visited in pairs (see uneven), and the
// gain is estimated as if as much were known of all pages.
const (
	// enoughGain is the relative gain in freshness needed for pages to be told
	// apart.
	enoughGain = 0.015
	// gainDoubt is what the gain that the estimates of a single page promise is uncertain by: a few pages may
	// seem to differ by chance.
	gainDoubt = 0.05
	// littleGain is the gain below which they no longer are: uneven visits show the real
	// gain. It is checked after some mean intervals, since at first many visits serve only to
	// tell pages apart. After that has proved to be worth so little, it is not tried again
	// for less than secondGain.
	littleGain     = 0.01
	secondGain     = 0.05
	apartIntervals = 5.
	// doubt is the number of standard deviations by which the rate of a page may be higher
	// than estimated, if visits cannot tell.
	doubt = 0.5
	// alikeWeights is the variance, relative to the square of the mean, up to which weights
	// count as alike.
	alikeWeights = 0.01
)

// pace returns the rate that sets the interval of a page whose expected rate is r. If visits tell
// nothing about that, it is taken to change once in two mean intervals: then it is visited about as often as at a
// constant interval, however often it really changes.
func (p *Plan) pace(l *learned, r Rate, seen bool) Rate {
	switch {
	case p == nil:
	case p.Uniform:
		return Rate{fullyHomogeneous, fullyHomogeneous / p.same()}
	case seen && !p.believes(l) && p.Budget > 0:
		return Rate{fullyHomogeneous, fullyHomogeneous / min(r.PerDay(), p.cautiousRate())}
	}
	return r
}

// effectiveWeight returns the weight that sets the interval of a page. If visits tell nothing about its rate, that
// is its distance from the mean halved, as a logarithm: the important pages may be those that change so often
// that visits are in vain.
func (p *Plan) effectiveWeight(l *learned, seen bool, weight float64) float64 {
	if seen && !p.believes(l) {
		return math.Sqrt(weight * p.mean())
	}
	return weight
}

// same returns the rate at which all pages are taken to change if they are not told apart:
// their common one, but at most once in two mean intervals.
func (p *Plan) same() float64 {
	return min(p.common().PerDay(), p.cautiousRate())
}

// common returns the common rate of all pages, if they are not told apart.
func (p *Plan) common() Rate {
	r := p.Homogeneity.Common
	if !r.Known() {
		r = p.prior("", kindUnknown)
	}
	return Rate{fullyHomogeneous, fullyHomogeneous / r.PerDay()}
}

// pairs reports whether visits to a page may come in pairs, to tell how often it changes: see
// uneven. If pages are not told apart, only those to pages that probe do. Pages of noisy hosts
// would tell nothing.
func (p *Plan) pairs(url string) bool {
	return p == nil || !p.Uniform || p.probes(url)
}

// One page in probeEvery probes. Probing costs a page up to a sixth of its freshness.
const probeEvery = 8

// probes reports whether a page belongs to the sample that shows what telling all pages apart would
// gain, and whether signatures see noise.
func (p *Plan) probes(url string) bool { return hash(url)>>8%probeEvery == 0 }

// beat returns a common interval made 2 to 5 % longer or shorter, by a different amount for each
// page. Otherwise a page that changes once a week would forever be visited at the same, random,
// point of its week.
func beat(url string, interval time.Duration) time.Duration {
	by := 0.95 + 0.06*float64(hash(url)>>16&0xffff)/0x10000
	if by >= 0.98 {
		by += 0.04
	}
	return time.Duration(float64(interval) * by)
}

// tellApart solves the plan with pages told apart or, if that is not worth it, without: then
// the pages of the sample all have the common rate.
func (p *Plan) tellApart(old *Plan, sample []sampled, kept []page, most time.Duration, hosts func(string) float64) {
	even := *p
	p.solve(sample, most, hosts)
	gain, trials := even.expectedGain(p, sample, kept, most, hosts)
	p.Gain = gain
	least := enoughGain + gainDoubt/math.Sqrt(trials)
	if old != nil && old.Mu > 0 {
		passed := max(days(p.Made.Sub(old.Made)), 0)
		if p.Returned = old.Returned; p.Returned { // a few visits are not enough to try again
			p.Gain = old.Gain + (p.Gain-old.Gain)*min(passed*p.Budget/(2*p.live()), 1)
		}
		if !old.Uniform {
			p.Apart = old.Apart + passed
			if least = littleGain; p.Apart < apartIntervals*p.live()/p.Budget {
				return
			}
		} else if p.Returned {
			least = max(least, secondGain)
		}
	}
	if p.Gain >= least {
		return
	}
	even.Uniform, even.Gain = true, p.Gain
	even.Returned = p.Returned || p.Apart > 0
	same := even.same()
	for i := range sample {
		sample[i].PerDay = same
	}
	even.solve(sample, most, hosts)
	*p = even
}

// expectedGain returns what telling pages apart would gain, if as much were known of all as of
// those that probe. If pages differ in importance, few of them decide, and these may not probe:
// then it is the gain of a solved plan.
func (p *Plan) expectedGain(solved *Plan, sample []sampled, kept []page, most time.Duration, hosts func(string) float64) (gain, trials float64) {
	sum, squares := 0., 0.
	for i := range sample {
		sum += sample[i].Weight
		squares += sample[i].Weight * sample[i].Weight
	}
	if float64(len(sample))*squares > (1+alikeWeights)*sum*sum {
		return solved.gain(sample, kept), math.Inf(1)
	}
	var some []sampled
	var of []page
	for i := range sample {
		if p.probes(kept[i].url) {
			some, of = append(some, sample[i]), append(of, kept[i])
		}
	}
	if len(some) == 0 {
		return solved.gain(sample, kept), 1
	}
	for i := range some {
		some[i].Multiple *= float64(len(sample)) / float64(len(some))
	}
	trial := *p
	trial.solve(some, most, hosts)
	return trial.gain(some, of), float64(len(some))
}

// gain returns the relative increase in importance expected to be fresh, over as many visits at a
// constant interval (a separate one for each host with its own threshold). Pages for which the
// schedule has no choice do not count, and nothing is gained of pages that are not believed. A page that always
// changes between visits at a constant interval may change much more often than it seems, and not
// be worth earlier visits: so the rate expected of it there is half a standard deviation higher.
func (p *Plan) gain(sample []sampled, kept []page) float64 {
	type group struct {
		free          []int
		intervals     []float64
		pages, visits float64
	}
	groups := map[string]*group{}
	told, even, weight, doubted := 0., 0., 0., 0.
	for i := range sample {
		s := sample[i]
		if s.Most == s.Least || !kept[i].at.copied && !kept[i].at.never {
			continue
		}
		if weight += s.Weight; kept[i].known && !p.believes(&kept[i].learned) {
			doubted += s.Weight
			continue
		}
		host, mu := "", p.Mu
		if own, ok := p.HostMu[s.Host]; ok {
			host, mu = s.Host, max(mu, own)
		} else if s.Most > 0 {
			s.Most = max(s.Least, fromDays(days(s.Most)*p.stretch()))
		}
		g := groups[host]
		if g == nil {
			g = &group{}
			groups[host] = g
		}
		interval := s.interval(mu)
		g.free = append(g.free, i)
		g.pages += s.Multiple
		g.visits += s.Multiple / interval
		g.intervals = append(g.intervals, interval)
	}
	for _, host := range slices.Sorted(maps.Keys(groups)) { // in a fixed order, so that rounding is always the same
		g, mu := groups[host], p.muOf(host)
		for j, i := range g.free {
			s := &sample[i]
			every := max(g.pages/g.visits, days(s.Least))
			if s.Most > 0 {
				every = min(every, days(s.Most)*max(p.stretch(), 1))
			}
			r, interval := p.rateOf(&kept[i]), g.intervals[j]
			if s.signs == nil && interval < every && r.PerDay()*every > often {
				r.Days /= 1 + doubt/math.Sqrt(r.Shape)
			}
			told += s.Weight * s.freshness(mu, r, interval)
			even += s.Weight * r.freshness(every)
		}
	}
	return ratio(told-even, even) * ratio(weight-doubted, weight)
}
