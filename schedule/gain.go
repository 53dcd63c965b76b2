package schedule

import "math"

// A copy fetched at regular intervals is fresh for a share of the time; what one
// more visit is worth is how much that share grows if the visits come a little
// closer together. With r = rate · interval and h(r) = 1 - (1+r)·exp(-r) that is
// h(r)/rate (Cho and Garcia-Molina, Effective Page Refresh Policies for Web
// Crawlers, TODS 2003). It is also what has been lost since a visit a time r/rate
// ago, beyond what each day of an older copy costs: the index of single visits of
// Olston and Pandey, Recrawl Scheduling Based on Information Longevity, WWW 2008.

// gain is h.
func gain(r float64) float64 {
	if r < 1e-3 { // 1 - (1+r)(1 - r + r²/2 - r³/6 + r⁴/24)
		return r * r * (1./2 - r*(1./3-r/8))
	}
	return -math.Expm1(math.Log1p(r) - r)
}

// gainInverse returns the r at which gain is y; infinity from 1 on.
func gainInverse(y float64) float64 {
	switch {
	case !(y > 0):
		return 0
	case y >= 1:
		return math.Inf(1)
	case y < 1e-8:
		s := math.Sqrt(2 * y)
		return s * (1 + s/3)
	}
	// r - ln(1+r) = -ln(1-y) by Newton, which comes down from above: the left side
	// is convex. It is less than r²/2, and more than r - 1 - ln r beyond.
	z := -math.Log1p(-y)
	r := math.Sqrt(2*z) + z
	for range 20 {
		step := (r - math.Log1p(r) - z) * (1 + r) / r
		r -= step
		if math.Abs(step) <= 1e-7*r { // and so the next would be 1e-14
			break
		}
	}
	return r
}
