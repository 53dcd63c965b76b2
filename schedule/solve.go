package schedule

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// sampled is a page of the sample for which a threshold is solved.
type sampled struct {
	Host string
	// PerDay is how many times a day the page changes.
	PerDay float64
	// Weight is its importance, above zero.
	Weight float64
	// Least and Most are the bounds of its interval; a Most of zero means none, so
	// that the page is left alone if no visit is worth it.
	Least, Most time.Duration
	// Gone says that the page is gone.
	Gone bool
	// Multiple is how many pages of the crawl it stands for.
	Multiple float64

	signs *signalModel // nil if there are none
}

// visits returns how many times a day such pages are fetched at a threshold.
func (p *sampled) visits(mu float64) float64 { return p.Multiple / p.interval(mu) }

// ofMost is the mean interval of pages that have the greatest, relative to it: see spread.
const ofMost = 0.92

// interval returns the number of days between two visits.
func (p *sampled) interval(mu float64) float64 {
	if p.signs != nil {
		return p.signalled(mu)
	}
	interval := gainInverse(mu*p.PerDay/p.Weight) / p.PerDay
	if p.Most > 0 {
		interval = min(interval, ofMost*days(p.Most))
	}
	return max(days(p.Least), interval)
}

// signalled is interval for pages with signals. If the greatest interval cuts longer ones short,
// the times until the next visit are taken to be distributed like those until the first sign.
func (p *sampled) signalled(mu float64) float64 {
	x := p.signs.inverse(mu * p.PerDay / p.Weight)
	interval := math.Inf(1)
	if !math.IsInf(x, 1) {
		interval = p.signs.between(x) / p.PerDay
	}
	if most := ofMost * days(p.Most); p.Most > 0 && x > most*p.PerDay {
		if math.IsInf(interval, 1) {
			interval = most
		} else {
			interval *= -math.Expm1(-most / interval)
		}
	}
	return max(days(p.Least), interval)
}

// freshness returns the share of the time for which such a page is fresh, given a threshold
// and the number of days between visits.
func (p *sampled) freshness(mu float64, r Rate, interval float64) float64 {
	if p.signs == nil {
		return r.freshness(interval)
	}
	// With signals, visits come when there is something to fetch. If something else makes
	// intervals longer, freshness is lost in the ratio of the intervals.
	x := p.signs.inverse(mu * p.PerDay / p.Weight)
	if most := ofMost * days(p.Most) * p.PerDay; math.IsInf(x, 1) || p.Most > 0 && x > most {
		return r.freshness(interval)
	}
	lost := (1 - p.signs.freshness(x)) * interval * p.PerDay / p.signs.between(x)
	return max(1-lost, r.freshness(interval))
}

// solve returns the threshold at which the pages take the given visits a day. If they take
// more at any, it is the one at which no page is visited more often than its bounds say; if
// they take more below one and less above, it is above.
func solve(sample []*sampled, perDay float64) float64 {
	least, most := math.Inf(1), 0.0
	for _, p := range sample {
		v := p.Weight / p.PerDay
		most = max(most, v)
		least = min(least, v*p.signs.worth(p.PerDay*days(p.Least)))
	}
	if most == 0 {
		return 0
	}
	// over returns the logarithm of the factor by which visits exceed the budget.
	over := func(x float64) float64 {
		mu, sum := math.Exp(x), 0.0
		for _, p := range sample {
			sum += p.visits(mu)
		}
		return math.Log(max(sum, math.SmallestNonzeroFloat64) / perDay)
	}
	low, high := math.Log(max(least, math.SmallestNonzeroFloat64)), math.Log(most)
	above, below := over(low), over(high)
	switch {
	case !(above > 0):
		return math.Exp(low)
	case !(below < 0):
		return most
	}
	return math.Exp(zero(over, low, high, above, below))
}

// zero returns where a falling function, which is above zero at low and below zero at high,
// is zero, or passes it. It goes by false position (the rule of Anderson and Björck), since
// between logarithms the function is nearly a line, and by bisection where that gains nothing.
func zero(f func(float64) float64, low, high, above, below float64) float64 {
	from := high - low // three steps ago
	side := 0.0        // of the last step: an end that stays twice gets less weight
	for i := range 100 {
		x := low + (high-low)*above/(above-below)
		if i%3 == 2 {
			if high-low > from/2 {
				x = (low + high) / 2
			}
			from = high - low
		}
		x = max(low+1e-7, min(x, high-1e-7))
		y := f(x)
		if math.Abs(y) < 1e-6 {
			return x
		}
		if high-low < 1e-6 { // there is no zero: it drops here
			break
		}
		if y > 0 {
			if side > 0 {
				below *= lighter(y / above)
			}
			low, above = x, y
		} else {
			if side < 0 {
				above *= lighter(y / below)
			}
			high, below = x, y
		}
		side = y
	}
	return high
}

func lighter(ratio float64) float64 {
	if ratio < 1 {
		return 1 - ratio
	}
	return 0.5
}

// solveAll returns the threshold at which the sampled pages together take a budget of
// visits a day, and separate thresholds for hosts that would take more visits a day than
// hosts allows (nil and infinity mean no limit): what they leave goes to the others
// (Kolobov et al., Optimal Freshness Crawl Under Politeness Constraints, SIGIR 2019). own
// are the same pages as they are where their host has its own threshold. The order of the
// sample affects only the last digits.
func solveAll(sample, own []sampled, perDay float64, hosts func(host string) float64) (mu float64, hostMu map[string]float64) {
	type page struct{ free, own *sampled }
	pages := make([]page, len(sample))
	for i := range sample {
		pages[i] = page{&sample[i], &own[i]}
	}
	if hosts != nil {
		slices.SortStableFunc(pages, func(a, b page) int { return cmp.Compare(a.free.Host, b.free.Host) })
	}
	free := make([]*sampled, len(pages))
	for {
		free = free[:0]
		for _, p := range pages {
			free = append(free, p.free)
		}
		mu = solve(free, perDay)
		if hosts == nil {
			return mu, nil
		}
		var rest []page
		for from := 0; from < len(pages); {
			to, sum := from, 0.0
			host := pages[from].free.Host
			for ; to < len(pages) && pages[to].free.Host == host; to++ {
				sum += pages[to].free.visits(mu)
			}
			if most := hosts(host); sum > most*(1+1e-9) {
				if hostMu == nil {
					hostMu = map[string]float64{}
				}
				capped, sum := make([]*sampled, 0, to-from), 0.0
				for _, p := range pages[from:to] {
					capped = append(capped, p.own)
				}
				hostMu[host] = max(solve(capped, most), mu)
				for _, p := range capped {
					sum += p.visits(hostMu[host])
				}
				perDay -= min(sum, most)
			} else {
				rest = append(rest, pages[from:to]...)
			}
			from = to
		}
		if len(rest) == len(pages) || len(rest) == 0 || perDay <= 0 {
			return mu, hostMu
		}
		pages = rest
	}
}
