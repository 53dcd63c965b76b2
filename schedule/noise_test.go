package schedule_test

import (
	"cmp"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
)

// visitedPage returns the record of a page after visits that are some days apart.
func visitedPage(s schedule.Learned, url string, days []float64, changed func(i int) bool) crawldb.Datum {
	at := began
	d := s.Init(crawldb.Datum{URL: url, Score: 1, Signature: []byte{1}, Status: crawldb.Fetched}, at)
	d = s.Fetched(d, schedule.Visit{Time: at})
	for i, gap := range days {
		d.LastFetch, at = at, at.Add(time.Duration(gap*float64(aDay)))
		v := schedule.Visit{Time: at, PrevFetch: d.LastFetch, Change: schedule.Unchanged}
		if changed(i) {
			v.Change = schedule.Changed
		}
		d = s.Fetched(d, v)
	}
	d.LastFetch = at
	return d
}

func always(int) bool { return true }

// A host is noisy if half of its pages have changed at each visit, however soon it came.
func TestNoisy(t *testing.T) {
	s := schedule.Learned{}
	visit := func(url string, gap float64, changed func(i int) bool) crawldb.Datum {
		return visitedPage(s, url, []float64{gap, gap, gap, gap}, changed)
	}
	for _, c := range []struct {
		name string
		make func(i int) crawldb.Datum
		want []schedule.NoisyHost
	}{
		{"soon and always", func(i int) crawldb.Datum { return visit(fmt.Sprintf("http://a.test/%d", i), 1, always) }, []schedule.NoisyHost{{Host: "a.test", Checked: 40, Changed: 40}}},
		{"seldom", func(i int) crawldb.Datum { return visit(fmt.Sprintf("http://a.test/%d", i), 30, always) }, nil},
		{"two of three do not", func(i int) crawldb.Datum {
			return visit(fmt.Sprintf("http://a.test/%d", i), 1, func(n int) bool { return i%3 == 0 || n < 3 })
		}, nil},
		{"one of forty does not", func(i int) crawldb.Datum {
			return visit(fmt.Sprintf("http://a.test/%d", i), 1, func(n int) bool { return i > 0 || n < 3 })
		}, []schedule.NoisyHost{{Host: "a.test", Checked: 40, Changed: 39}}},
		{"many hosts", func(i int) crawldb.Datum { return visit(fmt.Sprintf("http://h%d.test/", i), 1, always) }, []schedule.NoisyHost{{Checked: 40, Changed: 40}}},
		{"one of two hosts", func(i int) crawldb.Datum {
			return visit(fmt.Sprintf("http://h%d.test/%d", i%2, i), 1, func(int) bool { return i%2 == 0 })
		}, []schedule.NoisyHost{{Host: "h0.test", Checked: 20, Changed: 20}}},
	} {
		x := s.NewSample(began.AddDate(0, 0, 200))
		for i := range 40 {
			d := c.make(i)
			x.Add(&d)
		}
		p := x.Plan(schedule.PlanOptions{Outlook: true})
		if got := p.Outlook.Noisy; fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A page that has changed at each visit, however soon, is visited as if it changed once in two mean
// intervals; where pages are doubted, one that was never found unchanged is, too. Others have their own rate. Of
// pages that are not believed, importance counts half.
func TestPagesThatAreNotBelieved(t *testing.T) {
	s := schedule.Learned{Plan: &schedule.Plan{Mu: 12, Mean: 1, Budget: 20, Scale: 1, Pages: 600, Prior: schedule.Rate{Shape: 1, Days: 20}}}
	const taken = 0.5 * 20 / 600
	seldom, oft := []float64{30, 30, 30}, []float64{1, 1, 1, 1}
	unchangedOnce := func(i int) bool { return i > 0 }
	for _, c := range []struct {
		name    string
		days    []float64
		changed func(int) bool
		doubt   bool
		noise   bool
		taken   bool
	}{
		{"always, seldom", seldom, always, false, false, false},
		{"always, seldom, doubted", seldom, always, true, false, true},
		{"always, often", oft, always, false, true, true},
		{"unchanged once, doubted", seldom, unchangedOnce, true, false, false},
		{"not visited, doubted", nil, always, true, false, false},
	} {
		p := *s.Plan
		p.Doubt = c.doubt
		s := schedule.Learned{Plan: &p}
		d := visitedPage(s, "http://a.test/", c.days, c.changed)
		w := s.Explain(&d)
		if w.Noise != c.noise || (math.Abs(w.Pace-taken) < 1e-9) != c.taken {
			t.Errorf("%s: noise %v, %g changes a day; %g is for pages that are not believed", c.name, w.Noise, w.Pace, taken)
		}
		d.Score = 9
		want := 9.
		if c.taken {
			want = 3
		}
		if w := s.Explain(&d); math.Abs(w.Weight-want) > 1e-6 {
			t.Errorf("%s: weight %g, want %g", c.name, w.Weight, want)
		}
	}
	for _, budget := range []float64{5e-324, 1e-300, 1e300, math.Inf(1)} { // whatever it is, the plan can be kept
		odd := schedule.Learned{Budget: budget}
		x := odd.NewSample(began.AddDate(0, 0, 100))
		for i := range 40 {
			d := visitedPage(odd, fmt.Sprintf("http://noisy.test/%d", i), oft, always)
			x.Add(&d)
		}
		text, err := x.Plan(schedule.PlanOptions{Hosts: func(string) float64 { return budget }}).Encode()
		if err != nil {
			t.Fatalf("budget %g: %v", budget, err)
		}
		if odd.Plan, err = schedule.DecodePlan(text); err != nil || !odd.Plan.Doubt {
			t.Fatalf("budget %g: %v, %v", budget, odd.Plan, err)
		}
		for _, odd.Plan.Uniform = range []bool{true, false} {
			d := visitedPage(odd, "http://noisy.test/x", oft, always)
			if w := odd.Explain(&d); w.Interval < w.Least || w.Interval > w.Most {
				t.Errorf("budget %g, even %v: %v is not from %v to %v", budget, odd.Plan.Uniform, w.Interval, w.Least, w.Most)
			}
		}
	}
}

// A page about which visits tell nothing is visited sooner once in a while, ever sooner and ever less often, until it is
// found unchanged or is known to be noisy. Where pages are believed only those do so that probe.
func TestNoiseIsLookedFor(t *testing.T) {
	for _, doubt := range []bool{false, true} {
		s := schedule.Learned{Plan: &schedule.Plan{Mu: 5, Mean: 1, Budget: 20, Scale: 1, Pages: 600, Doubt: doubt, Prior: schedule.Rate{Shape: 1, Days: 20}}}
		looked, noisy, visits := 0, 0, 0
		const pages = 400
		for i := range pages {
			at := began
			d := s.Init(crawldb.Datum{URL: fmt.Sprintf("http://a.test/%d", i), Score: 1, Signature: []byte{1}, Status: crawldb.Fetched}, at)
			d = s.Fetched(d, schedule.Visit{Time: at})
			soon := 0
			for at.Before(began.AddDate(2, 0, 0)) {
				d.LastFetch, at = at, d.FetchTime
				d = s.Fetched(d, schedule.Visit{Time: at, PrevFetch: d.LastFetch, Change: schedule.Changed})
				if visits++; d.Interval < 3*aDay {
					soon++
				}
			}
			if soon > 0 {
				looked++
			}
			if s.Explain(&d).Noise {
				noisy++
			}
		}
		if doubt && noisy < pages*8/10 || !doubt && noisy < pages/20 {
			t.Errorf("doubt %v: %d of %d pages are known to be noisy after two years, %d were looked at", doubt, noisy, pages, looked)
		}
		if perPage := float64(visits) / pages; doubt && perPage > 40 {
			t.Errorf("%.1f visits to a page", perPage)
		}
	}
}

// The probing pages decide whether pages that have always changed are doubted.
func TestDoubt(t *testing.T) {
	s := schedule.Learned{Budget: 10}
	plan := func(old *schedule.Plan, noisy, quiet int) *schedule.Plan {
		s.Plan = old
		x := s.NewSample(began.AddDate(0, 0, 200))
		for i := range noisy + quiet {
			d := visitedPage(schedule.Learned{}, fmt.Sprintf("http://a.test/%d", i), []float64{1, 1, 1, 1}, func(int) bool { return i < noisy })
			x.Add(&d)
		}
		return x.Plan(schedule.PlanOptions{})
	}
	unknown := plan(nil, 0, 8)
	if !unknown.Doubt {
		t.Error("a few pages end doubt")
	}
	quiet, some := plan(unknown, 0, 400), plan(unknown, 100, 300)
	if quiet.Doubt || !some.Doubt {
		t.Errorf("doubt is %v of pages without noise, %v of pages with", quiet.Doubt, some.Doubt)
	}
	if few := plan(quiet, 6, 394); few.Doubt {
		t.Error("a few noisy pages raise doubt")
	}
}

// NoisyHost returns the entry for the host of a page, or that for all.
func TestPlanNoisy(t *testing.T) {
	of := func(n ...schedule.NoisyHost) *schedule.Plan {
		return &schedule.Plan{Outlook: &schedule.Outlook{Noisy: n}}
	}
	for _, c := range []struct {
		plan *schedule.Plan
		want string
	}{
		{nil, ""},
		{&schedule.Plan{}, ""},
		{of(schedule.NoisyHost{Host: "b.test"}), ""},
		{of(schedule.NoisyHost{Host: "b.test"}, schedule.NoisyHost{Host: "a.test", Changed: 10}), "{a.test 0 10}"},
		{of(schedule.NoisyHost{Changed: 12}), "{ 0 12}"},
	} {
		got := ""
		if n := c.plan.NoisyHost("http://a.test/x"); n != nil {
			got = fmt.Sprint(*n)
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.plan, got, c.want)
		}
	}
}

// The budget determines the greatest interval, and Explain says so.
func TestMaxIntervals(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		stretch         float64
		inForce, listed time.Duration
	}{{0, 90 * day, 90 * day}, {0.5, 45 * day, 45 * day}, {2, 180 * day, 90 * day}, {1e-4, time.Hour, time.Hour}} {
		s := schedule.Learned{Plan: &schedule.Plan{Stretch: c.stretch}}
		set, inForce := s.MaxIntervals()
		w := s.Explain(&crawldb.Datum{URL: "http://a.test/", Score: 1})
		if set != 90*day || inForce != c.inForce || w.Most != c.listed || w.MaxSet != set || w.Stretch != cmp.Or(c.stretch, 1) {
			t.Errorf("%v: %v, %v, explained as %v times %v", c.stretch, set, inForce, w.Most, w.Stretch)
		}
	}
	if w := (schedule.Learned{Plan: &schedule.Plan{Stretch: 0.5, HostMu: map[string]float64{"a.test": 9}}}).Explain(&crawldb.Datum{URL: "http://a.test/", Score: 1}); w.Stretch != 1 || w.Most != 90*day {
		t.Errorf("a host with a threshold of its own: %v times %v", w.Most, w.Stretch)
	}
}
