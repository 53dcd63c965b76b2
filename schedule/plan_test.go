package schedule

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// The threshold takes the budget, or is at an end of what is possible.
func TestSolveTakesTheBudget(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var sample []*Sampled
		for range 20 + rnd.IntN(300) {
			sample = append(sample, &Sampled{PerDay: math.Exp(2*rnd.NormFloat64() - 3), Weight: math.Exp(2 * rnd.NormFloat64()), Least: time.Hour, Most: 90 * day, Multiple: 1 + rnd.Float64()})
		}
		sum := func(mu float64) (s float64) {
			for _, p := range sample {
				s += p.visits(mu)
			}
			return s
		}
		least, most := sum(math.Inf(1)), sum(0)
		budget := least + (most-least)*math.Pow(rnd.Float64(), 3)
		mu := solve(sample, budget)
		if low, high := sum(mu*(1+1e-6)), sum(mu*(1-1e-6)); low > budget*(1+1e-4) || high < budget*(1-1e-4) {
			t.Errorf("a budget of %v: %v takes %v", budget, mu, sum(mu))
		}
		if got := sum(solve(sample, 2*most)); math.Abs(got/most-1) > 1e-6 {
			t.Errorf("more than all can take: %v, want %v", got, most)
		}
		if got := sum(solve(sample, least/2)); math.Abs(got/least-1) > 1e-6 {
			t.Errorf("less than all have to take: %v, want %v", got, least)
		}
	}
}

// A page with a long interval goes before one with a short one that is worth more, as long
// as the budget is enough for both: else it would wait for ever.
func TestTheGreatestIntervalIsKept(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	dull := crawldb.Datum{URL: "http://a/1", Score: 0.001, Status: crawldb.Fetched, LastFetch: at, Interval: 80 * day, FetchTime: at.Add(80 * day)}
	worthy := crawldb.Datum{URL: "http://a/2", Score: 50, Status: crawldb.Fetched, LastFetch: at, Interval: 10 * day, FetchTime: at.Add(10 * day)}
	enough := Learned{Plan: &Plan{Mu: 3, Mean: 1, Budget: 10, Scale: 1, Needed: 10}}
	short := Learned{Plan: &Plan{Mu: 3, Mean: 1, Budget: 10, Scale: 1, Needed: 20}}
	if a, b := Priority(enough, &dull, dull.Score), Priority(enough, &worthy, worthy.Score); !(a > b) {
		t.Errorf("enough: %v, %v", a, b)
	}
	behind := Learned{Plan: &Plan{Mu: 3, Mean: 1, Budget: 10, Scale: 1, Needed: 10, New: 100}}
	if a, b := Priority(behind, &dull, dull.Score), Priority(behind, &worthy, worthy.Score); !(a < b) {
		t.Errorf("much to catch up with: %v, %v", a, b)
	}
	if a, b := Priority(short, &dull, dull.Score), Priority(short, &worthy, worthy.Score); !(a < b) {
		t.Errorf("not enough: %v, %v", a, b)
	}
}

// While all of the budget is used and pages are late, a plan is for less and less.
func TestPlanLeavesNothingLate(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	plan := func(old *Plan, late time.Duration, visits int64) *Plan {
		sample := Learned{Budget: 10, Plan: old}.NewSample(at)
		for i := range 100 {
			d := crawldb.Datum{URL: fmt.Sprint("http://a/", i), Score: 1, Status: crawldb.Fetched, LastFetch: at.Add(-20 * day), Interval: 10 * day, FetchTime: at.Add(-late)}
			sample.Add(&d)
		}
		return sample.Plan(PlanOptions{Visits: visits})
	}
	first := plan(nil, 0, 100)
	at = at.Add(day)
	for name, c := range map[string]struct {
		late        time.Duration
		visits      int64
		least, most float64
	}{
		"late":            {11 * day, 110, 0.99, 0.999},
		"a little late":   {9 * day, 110, 1, 1},
		"not all is used": {11 * day, 105, 1.001, 1.02},
	} {
		if p := plan(first, c.late, c.visits); p.Scale < c.least || p.Scale > c.most {
			t.Errorf("%s: %v", name, p.Scale)
		}
	}
}

// A page that did not change for ten years may change tomorrow.
func TestNoPageIsTakenToBeDead(t *testing.T) {
	s, at := Learned{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	d := crawldb.Datum{URL: "http://a/1", Score: 1, Status: crawldb.Fetched}
	for range 520 {
		d = s.Fetched(d, Visit{Time: at.Add(7 * day), PrevFetch: at, Change: Unchanged})
		at = at.Add(7 * day)
	}
	if r, ok := RateOf(&d); !ok || r.PerDay() < 1./1000 || r.PerDay() > 1./500 {
		t.Errorf("%v, %v: a change in %v days", r, ok, 1/r.PerDay())
	}
}
