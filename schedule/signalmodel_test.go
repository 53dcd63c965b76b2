package schedule

import (
	"math"
	"testing"
	"time"
)

// poissonTail is the chance that there are more than k of z expected.
func poissonTail(k int, z float64) float64 {
	if z <= 0 {
		return 0
	}
	sum, term := 0.0, math.Exp(-z)
	for j := range k + 1 {
		sum += term
		term *= z / float64(j+1)
	}
	return 1 - sum
}

// closed is ψ and W as sums over how many signals there were.
func closed(s SignalQuality, x float64) (psi, fresh float64) {
	alpha := 1 - s.Recall
	gamma, beta := s.Recall/s.Precision, -math.Log1p(-s.Precision)/alpha
	for k := 0; float64(k)*beta < x; k++ {
		y := x - float64(k)*beta
		psi += poissonTail(k, gamma*y) / gamma
		fresh += math.Pow(gamma*(1-s.Precision), float64(k)) / math.Pow(alpha+gamma, float64(k+1)) * poissonTail(k, (alpha+gamma)*y)
	}
	return psi, fresh
}

// The table is what the sums say, and goes back where it came from.
func TestSignalledWorth(t *testing.T) {
	for _, s := range []SignalQuality{{.1, .05}, {.1, .98}, {.5, .5}, {.5, .8}, {.8, .8}, {.95, .95}, {.98, .98}, {.98, .05}, {.3, .6}} {
		w := worthOf(s)
		for _, x := range []float64{.03, .04, .1, .5, .9, 1.7, 3, 5} {
			psi, fresh := closed(s, x)
			want := fresh - psi*math.Exp(-(1-s.Recall)*x)
			got := w.worth(x)
			if math.Abs(got-want) > .004*want+1e-9 {
				t.Errorf("%v: at %v worth %v, want %v", s, x, got, want)
			}
			if got := w.between(x); math.Abs(got-psi) > .004*psi {
				t.Errorf("%v: at %v %v between visits, want %v", s, x, got, psi)
			}
			if got := w.freshness(x); math.Abs(got-fresh/psi) > .002 {
				t.Errorf("%v: at %v fresh %v, want %v", s, x, got, fresh/psi)
			}
			if back := w.inverse(got); math.Abs(back-x) > .002*x {
				t.Errorf("%v: %v comes back as %v", s, x, back)
			}
		}
		if !math.IsInf(w.inverse(1), 1) || w.inverse(0) != 0 || w.g[worthPoints-1] < .995 || w.g[worthPoints-1] > 1.002 {
			t.Errorf("%v: %v, %v, worth %v at most", s, w.inverse(1), w.inverse(0), w.g[worthPoints-1])
		}
		// More is worth more, and with signals a visit can wait longer.
		last := 0.0
		for i := range 99 {
			x := w.inverse(float64(i+1) / 100)
			if !(x > last) || x < gainInverse(float64(i+1)/100)*.995 {
				t.Errorf("%v: %v of what there is at %v, after %v", s, float64(i+1)/100, x, last)
			}
			last = x
		}
	}
}

func TestSignalsRounded(t *testing.T) {
	for from, want := range map[SignalQuality]SignalQuality{
		{}: {}, {math.NaN(), 1}: {}, {1, math.NaN()}: {}, {.09, 1}: {}, {1, .04}: {}, {1, 1}: {.98, .98}, {.81, .62}: {.8, .6}, {.9, .96}: {.9, .96}, {.12, .06}: {.1, .05},
	} {
		if got := from.rounded(); math.Abs(got.Precision-want.Precision) > 1e-9 || math.Abs(got.Recall-want.Recall) > 1e-9 {
			t.Errorf("%v is of %v, want %v", from, got, want)
		}
	}
}

// Many pages of one kind, visited at random: what is learned of their rate is right on
// average, whether signals are true or not.
func TestSignalledRate(t *testing.T) {
	for _, s := range []SignalQuality{{.9, .9}, {.5, .5}, {.8, .3}} {
		w := worthOf(s)
		const perDay = .1
		chance := newChances(7)
		sum, n := 0.0, 0
		for range 300 {
			r := Rate{.5, 15}
			for range 40 {
				// A visit at the first sign or after 12 days.
				signs, changed, at := 0, false, 12.
				if sign := chance.exp() / (perDay * s.Recall / s.Precision); sign < at {
					at, signs = sign, 1
					changed = chance.next() < s.Precision
				}
				changed = changed || chance.exp()/(perDay*(1-s.Recall)) < at
				after := fromDays(at)
				if changed {
					r = w.changed(r, after, signs)
				} else {
					r = r.Unchanged(after)
				}
			}
			sum += math.Log(r.PerDay() / perDay)
			n++
		}
		if bias := math.Exp(sum / float64(n)); math.Abs(bias-1) > .1 {
			t.Errorf("%v: rates are %v of what they are", s, bias)
		}
	}
	// Without signals it is what it was, as is a visit that finds nothing.
	if w, r := worthOf(SignalQuality{.98, .05}), (Rate{2, 30}); math.Abs(w.changed(r, 10*24*time.Hour, 0).PerDay()-r.Changed(10*24*time.Hour).PerDay()) > .004 {
		t.Errorf("%v, %v", w.changed(r, 10*24*time.Hour, 0), r.Changed(10*24*time.Hour))
	}
}

// chances are random numbers.
type chances struct{ x uint64 }

func newChances(seed uint64) *chances { return &chances{seed} }

func (c *chances) next() float64 {
	c.x += 0x9e3779b97f4a7c15
	x := c.x
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return (float64((x^x>>31)>>11) + .5) / (1 << 53)
}

func (c *chances) exp() float64 { return -math.Log(c.next()) }

// A visit after an infinite time gains everything.
func TestSignalledForEver(t *testing.T) {
	w := worthOf(SignalQuality{.5, .8})
	for _, x := range []float64{1e300, math.Inf(1)} {
		if got := w.worth(x); got != w.g[worthPoints-1] {
			t.Errorf("at %v worth %v, want %v", x, got, w.g[worthPoints-1])
		}
		if got := w.between(x); got != w.psi[worthPoints-1] {
			t.Errorf("at %v %v between visits, want %v", x, got, w.psi[worthPoints-1])
		}
	}
}
