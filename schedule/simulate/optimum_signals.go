package simulate

import (
	"math"
	"sort"
)

// signalWorth computes what visits to pages with signs are worth, in units of one over the rate
// of change: the sums of Busa-Fekete et al. (arXiv:2502.02430) over the number of signs, without
// the code of package schedule. A visit is made when the time since the last one, plus beta for
// each sign, is x: psi is the time between two, and fresh the part of it for which the copy is
// fresh.
type signalWorth struct {
	alpha, beta   float64
	x, psi, fresh []float64
}

func newSignalWorth(precision, recall float64) *signalWorth {
	// The limits are singular, and little is lost by staying away from them.
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

// moreThan returns the probability of more than k events if z are expected.
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

// value returns what one more visit is worth.
func (w *signalWorth) value(i int) float64 { return w.fresh[i] - w.psi[i]*math.Exp(-w.alpha*w.x[i]) }

// gain is value for any x.
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

// optimalSignals is [optimal] for pages some of which have signs; worth is nil for the others.
// It returns the number of days between two visits, a sign counting as beta, and what that
// keeps fresh.
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
			sum += w * freshnessOfCopy(rate, intervals[i])
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
