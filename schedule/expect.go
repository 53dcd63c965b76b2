package schedule

import (
	"math"
	"time"
)

// If only a distribution of a page's rate is known, the expectation is the mean over
// all rates it may have, which is not the expectation at the mean rate: of pages
// about which the same is known, those that rarely change stay fresh for long. For a
// Gamma distribution with the shape a and the inverse scale b the mean of
// exp(-rate·t) is (b/(b+t))^a.

// Fresh returns the probability that nothing changes in that time.
func (r Rate) Fresh(after time.Duration) float64 {
	if after <= 0 {
		return 1
	}
	return math.Exp(-r.expect(after))
}

// freshness returns the expected share of the time for which a copy fetched every t days is up to
// date: the mean of Fresh over the interval, which may be infinite.
func (r Rate) freshness(t float64) float64 {
	switch {
	case !(t > 0):
		return 1
	case math.IsInf(t, 1):
		return 0
	case r.Shape*t < 1e-6*r.Days:
		return 1 - r.Shape*t/(2*r.Days)
	}
	return r.freshFor(t) / t
}

// freshFor returns for how many of the days after a visit the copy is expected to be up to
// date: the integral of Fresh, b·((1+t/b)^(1-a)-1)/(1-a), or b·log(1+t/b) if a is 1.
func (r Rate) freshFor(t float64) float64 {
	log := math.Log1p(t / r.Days)
	x := (1 - r.Shape) * log
	if math.Abs(x) < 1e-5 { // no digits would be left
		return r.Days * log * (1 + x/2)
	}
	return r.Days * math.Expm1(x) / (1 - r.Shape)
}

// staleFor returns for how many of its t days a copy is expected to have been out of date.
func (r Rate) staleFor(t float64) float64 {
	if !(t > 0) {
		return 0
	}
	if t < 1e-4*r.Days {
		return r.Shape * t * t / (2 * r.Days)
	}
	return max(t-r.freshFor(t), 0)
}

// fromDays converts a number of days to a Duration of at most a century.
func fromDays(n float64) time.Duration {
	const most = 100 * 365 * day
	if d := n * float64(day); d < float64(most) {
		return time.Duration(d)
	}
	return most
}
