package simulate

import (
	"math"
	"sort"
)

// signalWorth is what visits are worth of pages with signs of their changes, in units of one
// over the rate of change: the sums of Busa-Fekete et al. (arXiv:2502.02430) over how many
// signs there were, apart from what package schedule makes of them. A visit is made when the
// time since the last, and beta for each sign, is x: psi is the time between two, and fresh
// for how much of it the copy is.
type signalWorth struct {
	alpha, beta   float64
	x, psi, fresh []float64
}

func newSignalWorth(precision, recall float64) *signalWorth {
	// The limits are singular, and what is lost in front of them is little.
	precision, recall = min(precision, .999), max(1e-6, min(recall, .999))
	w := &signalWorth{alpha: 1 - recall}
	gamma := recall / precision
	w.beta = -math.Log1p(-precision) / w.alpha
	for x := 1e-3; x < 14/w.alpha; x *= 1.06 {
		psi, fresh := 0.0, 0.0
		for k := 0; float64(k)*w.beta < x; k++ {
			y := x - float64(k)*w.beta
			more := moreThan(k, gamma*y)
			if more < 1e-14 {
				break
			}
			psi += more / gamma
			fresh += math.Pow(gamma*(1-precision)/(w.alpha+gamma), float64(k)) / (w.alpha + gamma) * moreThan(k, (w.alpha+gamma)*y)
		}
		w.x, w.psi, w.fresh = append(w.x, x), append(w.psi, psi), append(w.fresh, fresh)
	}
	return w
}

// moreThan is the chance that there are more than k where z are expected.
func moreThan(k int, z float64) float64 {
	if z < float64(k+1)/2 { // the tail, without cancellation
		log := -z + float64(k+1)*math.Log(z)
		lg, _ := math.Lgamma(float64(k + 2))
		term, sum := math.Exp(log-lg), 0.0
		for j := k + 2; term > 1e-18 && j < k+200; j++ {
			sum += term
			term *= z / float64(j)
		}
		return sum
	}
	sum, log := 0.0, -z
	for j := range k + 1 {
		sum += math.Exp(log)
		log += math.Log(z) - math.Log(float64(j+1))
	}
	return max(1-sum, 0)
}

// value is what one more visit is worth.
func (w *signalWorth) value(i int) float64 { return w.fresh[i] - w.psi[i]*math.Exp(-w.alpha*w.x[i]) }

// gain is value anywhere.
func (w *signalWorth) gain(x float64) float64 {
	i := sort.SearchFloat64s(w.x, x)
	switch {
	case i == 0:
		return w.alpha * x * x / 2
	case i == len(w.x):
		return w.value(i - 1)
	}
	part := (x - w.x[i-1]) / (w.x[i] - w.x[i-1])
	return w.value(i-1) + part*(w.value(i)-w.value(i-1))
}

// at returns where a visit is worth y, and psi and fresh there; x is infinite if none is.
func (w *signalWorth) at(y float64) (x, psi, fresh float64) {
	n := len(w.x)
	if y >= w.value(n-1) {
		return math.Inf(1), math.Inf(1), 0
	}
	i := sort.Search(n, func(i int) bool { return w.value(i) >= y })
	if i == 0 {
		x = math.Sqrt(2 * y / w.alpha)
		return x, x, x * (1 - x/2)
	}
	low, high := w.value(i-1), w.value(i)
	part := (y - low) / (high - low)
	mix := func(of []float64) float64 { return of[i-1] + part*(of[i]-of[i-1]) }
	return mix(w.x), mix(w.psi), mix(w.fresh)
}

// optimalSignals is [Optimal] for pages of which some have signs: worth is nil for the
// others. It returns how many days there are to be between two visits, a sign counting for
// beta, and what it keeps fresh.
func optimalSignals(weights, perDay []float64, worth []*signalWorth, budget float64) (intervals []float64, freshness float64) {
	intervals = make([]float64, len(perDay))
	sum, all := 0.0, 0.0
	visits := func(i int, mu, w, rate float64) float64 {
		y := mu * rate / w
		if worth[i] == nil {
			if y >= 1 {
				intervals[i] = math.Inf(1)
				return 0
			}
			intervals[i] = gainInverse(y) / rate
			sum += w * Freshness(rate, intervals[i])
			return 1 / intervals[i]
		}
		x, psi, fresh := worth[i].at(y)
		intervals[i] = x / rate
		if math.IsInf(x, 1) {
			return 0
		}
		sum += w * fresh / psi
		return rate / psi
	}
	low, high := math.Log(1e-30), math.Log(1e30)
	for range 80 {
		mid := (low + high) / 2
		used := 0.0
		sum, all = 0, 0
		for i, rate := range perDay {
			all += weights[i]
			if rate <= 0 {
				intervals[i] = math.Inf(1)
				sum += weights[i]
				continue
			}
			used += visits(i, math.Exp(mid), weights[i], rate)
		}
		if used > budget {
			low = mid
		} else {
			high = mid
		}
	}
	return intervals, sum / all
}
