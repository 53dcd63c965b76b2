package hostdb

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func TestLastmod(t *testing.T) {
	var l SignalStats
	if !l.Trusted() || l.Precision() != 0.875 || l.Recall() != 0.5 {
		t.Errorf("of a host that nothing is known of: %+v", l)
	}
	for i, trusted := range []bool{true, false, false} {
		l = l.With("s"+string(rune('1'+i)), checks(0, 1, 0))
		if l.Trusted() != trusted {
			t.Errorf("after %d false signals: %v", i+1, l.Trusted())
		}
	}
	if again := l.With("s3", checks(100, 0, 0)); again != l {
		t.Errorf("a segment counted twice: %+v", again)
	}
	if again := l.With("s2", checks(100, 0, 0)); again != l {
		t.Errorf("a segment from before: %+v", again)
	}
	// A site that lied a thousand times and then tells the truth is believed again
	// after as many visits as it takes to be three quarters of the last hundred.
	l = SignalStats{}.With("s", checks(0, 1000, 0))
	n := 0
	for name := "s"; !l.Trusted() && n < 100; n++ {
		name += "x"
		l = l.With(name, checks(1, 0, 0))
	}
	if n < 30 || n > 99 {
		t.Errorf("trusted again after %d signals that were true: %+v", n, l)
	}
	if l = (SignalStats{}).With("s", checks(60, 20, 30)); l.Hits != 30 || l.False != 10 || l.Misses != 15 {
		t.Errorf("%+v", l)
	}
	if l.Recall() != 31.0/47 {
		t.Errorf("recall %v", l.Recall())
	}
}

// checks counts signals of each kind.
func checks(hits, wrong, misses int) (all []SignalCheck) {
	for range hits {
		all = append(all, SignalCheck{Signals: 1, Changed: true})
	}
	for range wrong {
		all = append(all, SignalCheck{Signals: 1})
	}
	for range misses {
		all = append(all, SignalCheck{Changed: true})
	}
	return all
}

// Changes that visits would have found anyway add nothing to the worth of signals. Pages of
// two kinds change every day and every hundred days; a visit comes at a claim, or after ten
// days.
func TestLastmodFollowsChange(t *testing.T) {
	for _, c := range []struct{ precision, recall, flood float64 }{
		{.8, .8, 0}, {.95, .95, 0}, {.5, .6, 0}, {.9, .2, 0}, {0, 0, 1}, {0, 0, .05}, {.05, .5, 0},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		var l SignalStats
		p, q, n := 0., 0., 0.
		for i := range 1000 {
			var all []SignalCheck
			for _, perDay := range []float64{.3, .01} {
				rate := c.flood
				if c.precision > 0 {
					rate += c.recall * perDay / c.precision
				}
				visit := SignalCheck{}
				at := 10.
				if rate > 0 {
					if sign := r.ExpFloat64() / rate; sign < at && c.precision > .1 {
						at, visit.Signals = sign, 1
					} else if c.precision <= .1 { // it does not come for that
						for sum := sign; sum < at; sum += r.ExpFloat64() / rate {
							visit.Signals++
						}
					}
				}
				hidden := (1 - c.recall) * perDay
				for range visit.Signals {
					visit.Changed = visit.Changed || r.Float64() < c.recall*perDay/rate
				}
				visit.Changed = visit.Changed || r.ExpFloat64()/hidden < at
				visit.Expected = perDay * at
				visit.Chance = 1 - math.Exp(-(1-l.Recall())*perDay*at)
				all = append(all, visit)
			}
			if l = l.With(fmt.Sprintf("%04d", i), all); i >= 200 {
				p, q, n = p+l.Precision(), q+l.Recall(), n+1
			}
		}
		if p, q = p/n, q/n; math.Abs(p-c.precision) > .08 || math.Abs(q-c.recall) > .08 && c.precision > .1 || !l.Known() {
			t.Errorf("%+v: precision %.3f, recall %.3f", c, p, q)
		}
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, math.MaxFloat64, math.SmallestNonzeroFloat64} {
		for _, l := range []SignalStats{
			{Truth: f, Tests: 1}, {Truth: 1, Tests: f}, {Truth: f, Tests: f}, {Signals: f, Expected: 1}, {Expected: f},
			{Unsignalled: f, Expected: 1}, {ExpectedUnsignalled: f, Expected: 1}, {Truth: f, Tests: f, Signals: f, Expected: f, Unsignalled: f, ExpectedUnsignalled: f},
		} {
			l = l.With("1", []SignalCheck{{Signals: 1, Changed: true, Chance: .5, Expected: 1}})
			if p, q := l.Precision(), l.Recall(); !(p >= 0 && p <= 1 && q >= 0 && q <= 1) {
				t.Errorf("%+v: precision %v, recall %v", l, p, q)
			}
		}
	}
	if (SignalStats{Hits: 10, Misses: 5}).Known() {
		t.Error("fifteen visits tell")
	}
}
