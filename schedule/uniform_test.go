package schedule

import (
	"fmt"
	"math"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
)

// A crawl of pages that matter alike begins at even intervals, and ends them when telling pages
// apart is worth it. Pages of two kinds for which that is hardly so are left at even intervals.
func TestPagesAreDistinguishedOnlyForAGain(t *testing.T) {
	for name, c := range map[string]struct {
		rates []float64
		even  bool
	}{
		"worth it":   {[]float64{1, 1. / 5, 1. / 30, 1. / 300}, false},
		"hardly":     {[]float64{1. / 20, 1. / 40}, true},
		"not at all": {[]float64{1. / 20}, true},
	} {
		x := newCrowd(func(i int) float64 { return c.rates[i%len(c.rates)] })
		x.crawl(t, 20)
		if p := x.s.Plan; !p.Uniform {
			t.Errorf("%s: told apart after 20 days, for %.3f", name, p.Gain)
		}
		if least, most := x.intervals(); most/least > 1.001 || math.Abs(most/10-1) > 0.2 {
			t.Errorf("%s: from %.2f to %.2f days, want about 10", name, least, most)
		}
		x.crawl(t, 180)
		p := x.s.Plan
		if p.Uniform != c.even || !c.even && !(p.Gain > littleGain) || c.even && !(p.Gain < enoughGain) {
			t.Errorf("%s: even %v, for %.3f", name, p.Uniform, p.Gain)
		}
		if p.Uniform != (p.Apart == 0) {
			t.Errorf("%s: even %v, told apart for %v days", name, p.Uniform, p.Apart)
		}
		least, most := x.intervals()
		if apart := most/least > 1.5; apart == c.even {
			t.Errorf("%s: from %.2f to %.2f days", name, least, most)
		}
		for i := range x.records {
			w := x.s.Explain(&x.records[i])
			if w.Uniform != c.even || !w.Homogeneous && !w.Noise && (w.Pace != w.Rate.PerDay()) != c.even {
				t.Fatalf("%s: %+v", name, w)
			}
		}
	}
}

// Where pages differ in importance, that is gain enough from the first plan on.
func TestPagesOfUnequalImportanceAreDistinguished(t *testing.T) {
	c := newCrowd(func(int) float64 { return 1. / 10 })
	for i := range c.records {
		c.records[i].Score = float32(math.Pow(10, float64(i%3)))
	}
	c.crawl(t, 1)
	if p := c.s.Plan; p.Uniform {
		t.Errorf("even, for %.3f", p.Gain)
	}
}

// Where the politeness to a host bounds the visits, what is gained there counts.
func TestGainCountsHostsThatAllowFewVisits(t *testing.T) {
	c := newCrowd(func(i int) float64 { return []float64{1, 1. / 5, 1. / 30, 1. / 300}[i%4] })
	c.crawl(t, 200)
	free := c.s.Plan.Gain
	s := c.s
	s.Budget = 300
	x := s.NewSample(c.at)
	for i := range c.records {
		x.Add(&c.records[i])
	}
	p := x.Plan(PlanOptions{Hosts: func(string) float64 { return 30 }})
	if p.Uniform || len(p.HostMu) != 1 || math.Abs(p.Gain/free-1) > 0.25 {
		t.Errorf("even %v, thresholds %v, for %.3f, where nothing bounds them %.3f", p.Uniform, p.HostMu, p.Gain, free)
	}
}

// What has proved not to be worth it is tried again only for more; and not before it was tried
// for a while it is given up.
func TestUniformPlanIsLeftAndTakenUpAgain(t *testing.T) {
	c := newCrowd(func(i int) float64 { return []float64{1. / 20, 1. / 40}[i%2] })
	c.crawl(t, 200)
	plan := func(old Plan) *Plan {
		s := c.s
		s.Plan = &old
		x := s.NewSample(c.at)
		for i := range c.records {
			x.Add(&c.records[i])
		}
		return x.Plan(PlanOptions{})
	}
	old := *c.s.Plan
	old.Uniform, old.Apart = false, 1
	if p := plan(old); p.Uniform || !(p.Apart > 1) {
		t.Errorf("given up at once, for %.3f", p.Gain)
	}
	old.Apart = 1000
	p := plan(old)
	if !p.Uniform || !p.Returned || p.Apart != 0 {
		t.Errorf("even %v, returned %v, for %.3f", p.Uniform, p.Returned, p.Gain)
	}
	if p = plan(*p); !p.Uniform || !p.Returned {
		t.Errorf("even %v, returned %v, for %.3f", p.Uniform, p.Returned, p.Gain)
	}
}

// A plan of a version that knew nothing of it is one that tells pages apart, and stays so until
// that was looked at for a while.
func TestUniformPlanOfFormerVersion(t *testing.T) {
	old, err := DecodePlan(`{"Made":"2026-01-01T00:00:00Z","Begun":"2025-01-01T00:00:00Z","Visits":1,"Budget":1,"Scale":1,"Mu":3,"Prior":{"Shape":1,"Days":30},"Pages":10,"Needed":1}`)
	if err != nil {
		t.Fatal(err)
	}
	x := Learned{Budget: 1, Plan: old}.NewSample(old.Made.Add(day))
	for i := range 10 {
		d := crawldb.Datum{URL: string(rune('a' + i)), Status: crawldb.Fetched, Score: 1, LastFetch: old.Made, Signature: []byte{1}}
		x.Add(&d)
	}
	if p := x.Plan(PlanOptions{}); p.Uniform || p.Apart != 1 {
		t.Errorf("even %v, told apart for %v days", p.Uniform, p.Apart)
	}
	for _, text := range []string{`{"Gain":1e300}`, `{"Apart":-1}`, `{"Likeness":{"Less":1.1}}`, `{"Likeness":{"Confirmed":-1}}`} {
		if _, err := DecodePlan(text); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// The gain of telling pages apart is what the pages that probe say, of which most is known, not
// what others seem to say.
func TestUniformPlanVisitsProbesInPairs(t *testing.T) {
	c := newCrowd(func(int) float64 { return 1. / 10 })
	c.crawl(t, 100)
	c.s.Plan.Homogeneity.Shape, c.s.Plan.Homogeneity.Some, c.s.Plan.Homogeneity.All, c.s.Plan.Homogeneity.Less = 0, -1000, -1000, 0
	for _, probes := range []bool{true, false} {
		x := c.s.NewSample(c.at)
		for i := range c.records {
			d := c.records[i]
			if c.s.Plan.probes(d.URL) == probes { // every second is worth no visit
				learned{Rate: Rate{20, 20 / []float64{24, 1. / 10}[i%2]}}.keep(&d)
			}
			x.Add(&d)
		}
		if p := x.Plan(PlanOptions{}); p.Uniform == probes || probes && p.Gain < 0.1 || !probes && p.Gain > enoughGain {
			t.Errorf("told by those that probe %v: even %v, for %.3f", probes, p.Uniform, p.Gain)
		}
	}
}

// One page in eight probes.
func TestShareOfPagesThatProbe(t *testing.T) {
	n := 0
	for i := range 10_000 {
		if (&Plan{}).probes(fmt.Sprintf("http://a/%d", i)) {
			n++
		}
	}
	if math.Abs(float64(n)-10_000/8) > 100 {
		t.Errorf("%d of 10,000", n)
	}
}
