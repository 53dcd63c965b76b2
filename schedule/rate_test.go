package schedule

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/testlevel"
)

// posterior integrates the density of a Gamma distribution times a likelihood.
func posterior(r Rate, likelihood func(rate float64) float64) (mean, deviation float64) {
	var sum, first, second float64
	const steps = 400_000
	most := (r.Shape + 40*math.Sqrt(r.Shape) + 40) / r.Days
	for i := range steps {
		x := (float64(i) + 0.5) / steps
		x = most * x * x * x // more of them near zero, where the density has a pole
		w := math.Exp((r.Shape-1)*math.Log(x)-r.Days*x) * likelihood(x) * math.Pow(x/most, 2./3)
		sum, first, second = sum+w, first+w*x, second+w*x*x
	}
	mean = first / sum
	return mean, math.Sqrt(second/sum - mean*mean)
}

func TestRateIsTheBayesianOne(t *testing.T) {
	for _, r := range testlevel.Pick([]Rate{{0.5, 15}, {10, 100}}, []Rate{{0.5, 15}, {2, 3}, {10, 100}, {0.7, 1000}}) {
		for _, after := range []time.Duration{time.Hour, day, 9 * day, 300 * day} {
			days := after.Hours() / 24
			for name, c := range map[string]struct {
				got        Rate
				likelihood func(float64) float64
			}{
				"unchanged":     {r.Unchanged(after), func(x float64) float64 { return math.Exp(-x * days) }},
				"changed":       {r.Changed(after), func(x float64) float64 { return -math.Expm1(-x * days) }},
				"last modified": {r.ChangedAgo(after), func(x float64) float64 { return x * math.Exp(-x*days) }},
			} {
				mean, deviation := posterior(r, c.likelihood)
				if math.Abs(c.got.PerDay()/mean-1) > 2e-3 || math.Abs(c.got.Deviation()/deviation-1) > 5e-3 {
					t.Errorf("%v %s after %v: %v ± %v, want %v ± %v", r, name, after, c.got.PerDay(), c.got.Deviation(), mean, deviation)
				}
			}
		}
	}
}

// A rate that is watched for long enough is found. Bringing the posterior back to a
// Gamma distribution at each visit costs up to an eighth, if most visits find a
// change.
func TestRateIsFound(t *testing.T) {
	for _, perDay := range []float64{1. / 365, 1. / 30, 1, 5} {
		for _, every := range []time.Duration{6 * time.Hour, 5 * day, 30 * day} {
			if perDay*days(every) > 5 {
				continue // every visit finds a change: there is nothing to be learned
			}
			rnd := rand.New(rand.NewPCG(1, 2))
			var sum float64
			const pages = 20
			for range pages {
				r := Rate{0.5, 15}
				for range max(1000, int(20/(perDay*days(every)))) {
					if rnd.Float64() < -math.Expm1(-perDay*days(every)) {
						r = r.Changed(every)
					} else {
						r = r.Unchanged(every)
					}
				}
				sum += r.PerDay() / pages
			}
			if math.Abs(sum/perDay-1) > 0.15 {
				t.Errorf("%v a day, looked at every %v: %v", perDay, every, sum)
			}
		}
	}
}

func TestGainInverse(t *testing.T) {
	for r := 1e-6; r < 40; r *= 1.13 {
		y := gain(r)
		if y >= 1 {
			break
		}
		if got := gainInverse(y); math.Abs(got/r-1) > 1e-6+1e-15/(1-y) {
			t.Errorf("%v: %v", r, got)
		}
	}
	if gainInverse(0) != 0 || gainInverse(-1) != 0 || !math.IsInf(gainInverse(1), 1) || !math.IsInf(gainInverse(2), 1) || gainInverse(math.NaN()) != 0 {
		t.Error("outside of 0 to 1")
	}
}

func BenchmarkGainInverse(b *testing.B) {
	x := 0.0
	for i := 0; b.Loop(); i++ {
		x += gainInverse(float64(i%1000) / 1000)
	}
}

func BenchmarkRateChanged(b *testing.B) {
	r := Rate{0.5, 15}
	for b.Loop() {
		r = r.Changed(7 * day).forget(0.98)
	}
}

// A page that changes far more often than is expected of pages is not taken for a slower
// one because what it has shown is forgotten; one that changes as seldom is no dead one.
func TestForgettingKeepsWhatIsFast(t *testing.T) {
	s := Learned{Plan: &Plan{Mu: 1, Mean: 1, Budget: 1, Scale: 1, Prior: Rate{3, 180}}}
	for _, tt := range []struct {
		perDay, least, most float64
		every               time.Duration
	}{
		{8, 6, 12, 8 * time.Hour},
		{1. / 3650, 1. / 3650, 1. / 300, 30 * day},
	} {
		rnd := rand.New(rand.NewPCG(1, 2))
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		d := crawldb.Datum{URL: "http://a.example/", Status: crawldb.Fetched, LastFetch: at, Interval: tt.every}
		l := learned{Rate: Rate{tt.perDay * 100, 100}}
		l.keep(&d)
		for range 1000 {
			v := Visit{Time: at.Add(tt.every), PrevFetch: at, Change: Unchanged}
			if rnd.Float64() < -math.Expm1(-tt.perDay*days(tt.every)) {
				v.Change = Changed
			}
			d, at = s.Fetched(d, v), v.Time
			d.LastFetch = at
		}
		l, ok := learnedOf(&d)
		if got := l.PerDay(); !ok || got < tt.least || got > tt.most {
			t.Errorf("%g changes a day: %g after 1,000 visits, want %g to %g", tt.perDay, got, tt.least, tt.most)
		}
	}
}
