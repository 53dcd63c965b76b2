package simulate

import (
	"math"
	"slices"
	"time"
)

// This file computes what is known analytically if every rate of change is known: how fresh
// a copy is that is fetched at an interval, and how often each page should be fetched within
// a budget. It shares no code with the schedules, since it judges them.
//
// r is the rate of change times the interval: the number of changes between two visits.

// freshnessOfCopy returns the share of the time for which a copy is up to date, if it is fetched at an
// interval in days and the page changes perDay times a day (Cho and Garcia-Molina, Effective Page
// Refresh Policies for Web Crawlers, TODS 2003). With an infinite interval it is zero.
func freshnessOfCopy(perDay, interval float64) float64 {
	r := perDay * interval
	switch {
	case r < 1e-9:
		return 1
	case math.IsInf(r, 1):
		return 0
	}
	return -math.Expm1(-r) / r
}

// ageOfCopy returns for how many days such a copy has been out of date, as a mean over time.
func ageOfCopy(perDay, interval float64) float64 {
	r := perDay * interval
	if r < 1e-3 { // the differences below would have no digits left
		return interval * r * (1./6 - r/24)
	}
	return interval/2 - 1/perDay - math.Expm1(-r)/(perDay*r)
}

// gain is h: one more visit gains h(r)/rate.
func gain(r float64) float64 {
	if r < 1e-3 {
		return r * r * (1./2 - r*(1./3-r/8))
	}
	return -math.Expm1(math.Log1p(r) - r)
}

// gainInverse returns the r at which gain is y; infinity from 1 on.
func gainInverse(y float64) float64 {
	if y >= 1 {
		return math.Inf(1)
	}
	z := -math.Log1p(-y) // r - ln(1+r) = z
	return newton(math.Sqrt(2*z)+z, func(r float64) (float64, float64) { return r - math.Log1p(r) - z, r / (1 + r) })
}

// newton finds the root of an increasing convex function from above. The function returns
// its value and its slope.
func newton(r float64, f func(float64) (y, slope float64)) float64 {
	for range 30 {
		y, slope := f(r)
		if !(y > 1e-15) || !(slope > 0) {
			break
		}
		step := y / slope
		if r -= step; step < 1e-9*r {
			break
		}
	}
	return r
}

// An Allocation returns how often a day each page of a population should be fetched within a
// budget of fetches a day, given the weights of the pages and their rates of change, in changes
// a day.
type Allocation func(weights, perDay []float64, budget float64) []float64

// optimal is the allocation that keeps most of the importance fresh: one more visit is worth
// the same for all pages that are fetched at all.
func optimal(weights, perDay []float64, budget float64) []float64 {
	return level(weights, perDay, budget, func(mu, w, rate float64) float64 {
		if mu*rate >= w {
			return 0
		}
		return rate / gainInverse(mu*rate/w)
	})
}

// ageOptimal is the allocation that minimises age. It visits every page.
func ageOptimal(weights, perDay []float64, budget float64) []float64 {
	return level(weights, perDay, budget, func(mu, w, rate float64) float64 {
		// The gain in age of one more visit is (r²/2 - h(r))/rate².
		y := mu * rate * rate / w
		return rate / newton(math.Sqrt(2*y)+math.Cbrt(3*y)+1, func(r float64) (float64, float64) { return r*r/2 - gain(r) - y, r - r*math.Exp(-r) })
	})
}

// azar is the optimum for visits at random moments (azar, Horvitz, Lubetzky, Peres and
// Shahaf, Tractable near-optimal policies for crawling, PNAS 2018).
func azar(weights, perDay []float64, budget float64) []float64 {
	return level(weights, perDay, budget, func(mu, w, rate float64) float64 {
		return max(0, math.Sqrt(w*rate/mu)-rate)
	})
}

// lambdaCrawl minimises the harmonic number of unseen changes (Kolobov et al., Staying up
// to Date with Online Content Changes Using Reinforcement Learning for Scheduling,
// NeurIPS 2019). It, too, visits every page.
func lambdaCrawl(weights, perDay []float64, budget float64) []float64 {
	return level(weights, perDay, budget, func(mu, w, rate float64) float64 {
		return (math.Sqrt(rate*rate+4*w*rate/mu) - rate) / 2
	})
}

// proportional fetches a page in proportion to how often it changes, which seems
// right but is not.
func proportional(_, perDay []float64, budget float64) []float64 {
	return level(nil, perDay, budget, func(mu, _, rate float64) float64 { return rate / mu })
}

// evenAllocation fetches all pages equally often.
func evenAllocation(_, perDay []float64, budget float64) []float64 {
	f := make([]float64, len(perDay))
	for i := range f {
		f[i] = budget / float64(len(f))
	}
	return f
}

// level finds the multiplier at which the pages take the budget: visits decreases with it. A
// page that never changes needs no visit.
func level(weights, perDay []float64, budget float64, visits func(mu, weight, rate float64) float64) []float64 {
	f := make([]float64, len(perDay))
	fill := func(mu float64) (sum float64) {
		for i, rate := range perDay {
			w := 1.0
			if weights != nil {
				w = weights[i]
			}
			if f[i] = 0; rate > 0 && w > 0 {
				f[i] = visits(mu, w, rate)
			}
			sum += f[i]
		}
		return sum
	}
	low, high := math.Log(1e-30), math.Log(1e30)
	for range 80 {
		mid := (low + high) / 2
		if fill(math.Exp(mid)) > budget {
			low = mid
		} else {
			high = mid
		}
		if high-low < 1e-7 {
			break
		}
	}
	// If pages are all alike, one more visit is worth nearly the same at any long interval, and
	// there may be no multiplier at which they take exactly the budget: they take more below it
	// and nothing above. Between the two, they get the budget.
	more := fill(math.Exp(low))
	lower := slices.Clone(f)
	if less := fill(math.Exp(high)); less < budget && more > budget {
		part := (budget - less) / (more - less)
		for i := range f {
			f[i] += part * (lower[i] - f[i])
		}
	}
	return f
}

// expectedFreshness returns the result of an allocation if the visits to a page come at equal intervals:
// freshness, and age in days, by weight.
func expectedFreshness(weights, perDay, visits []float64) (freshness, age float64) {
	sum := 0.0
	for i, w := range weights {
		sum += w
		if perDay[i] <= 0 {
			freshness += w
			continue
		}
		freshness += w * freshnessOfCopy(perDay[i], 1/visits[i])
		age += w * ageOfCopy(perDay[i], 1/visits[i])
	}
	return freshness / sum, age / sum
}

// known returns the weights and rates of a population.
func (p Population) known(from, to time.Time) (weights, perDay []float64) {
	for i := range p {
		weights = append(weights, p[i].Weight)
		perDay = append(perDay, p[i].rate(from, to))
	}
	return weights, perDay
}
