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
		var sample []*sampled
		for range 20 + rnd.IntN(300) {
			sample = append(sample, &sampled{PerDay: math.Exp(2*rnd.NormFloat64() - 3), Weight: math.Exp(2 * rnd.NormFloat64()), Least: time.Hour, Most: 90 * day, Multiple: 1 + rnd.Float64()})
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

// Of the pages visited before, the one with the least time left goes first, whatever its
// worth; pages never visited go before all of them or after.
func TestPriorityOrdersWaitingPages(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	page := func(score float32, last time.Time, interval time.Duration) *crawldb.Datum {
		return &crawldb.Datum{URL: "http://a/1", Score: score, Status: crawldb.Fetched, LastFetch: last, Interval: interval, FetchTime: last.Add(interval)}
	}
	moved := page(1, at, 40*day)
	moved.FetchTime = at.Add(2 * day)
	gone := page(1, at, 60*day)
	gone.Status = crawldb.Gone
	fixed := page(1, at, 200*day)
	fixed.Meta.Set(FixedKey, fmt.Sprint(200*day.Seconds()))
	never := func(score float32) *crawldb.Datum {
		return &crawldb.Datum{URL: "http://a/2", Status: crawldb.Unfetched, Score: score}
	}

	s := Learned{Plan: &Plan{Mu: 3, Mean: 1, Budget: 10, Scale: 1, Needed: 10}} // a page changes once in 30 days
	for name, order := range map[string][]*crawldb.Datum{
		"it waits for longer":          {page(0.001, at, 10*day), page(50, at.Add(time.Hour), 10*day)},
		"the shorter interval":         {page(1, at, 10*day), page(1, at.Add(-4*day), 20*day)},
		"the longer one, due for days": {page(1, at.Add(-13*day), 20*day), page(50, at, 10*day)},
		"the greatest interval":        {page(1, at, 66*day), page(1, at, 70*day), page(50, at.Add(3*day), 86*day)},
		"at a sign":                    {page(1, at, 9*day), moved, page(1, at, 10*day)},
		"gone":                         {page(1, at, 59*day), gone, page(1, at, 61*day)},
		"an interval of its own":       {page(1, at, 89*day), fixed},
		"never visited":                {never(4), never(0.2), page(0.001, at.Add(-90*day), 80*day), page(9, at, day), never(0.14), never(0.01)},
		"before 1990, after 2080":      {page(1, time.Unix(0, 0), day), page(1, at, day), page(1, at.AddDate(60, 0, 0), day), never(0.01)},
	} {
		for i := range order[1:] {
			if a, b := Priority(s, order[i], order[i].Score), Priority(s, order[i+1], order[i+1].Score); !(a > b) || math.IsInf(float64(a), 0) {
				t.Errorf("%s: %d has %v, the next %v", name, i, a, b)
			}
		}
	}
	// The line has a resolution of some seconds.
	if a, b := Priority(s, page(1, at, day), 1), Priority(s, page(1, at.Add(10*time.Second), day), 1); !(a > b) {
		t.Errorf("ten seconds: %v and %v", a, b)
	}
	// A page that has been gone for long waits for all due pages, but not forever, and not if a
	// sign says that it is back.
	long, back := page(1, at, 90*day), page(1, at, 90*day)
	long.Status, back.Status = crawldb.Gone, crawldb.Gone
	crawldb.SitemapEntry{Modified: at.Add(day), Span: time.Hour}.Set(&back.Meta)
	back.FetchTime = at.Add(10 * day)
	waits := []*crawldb.Datum{back, page(1, at.Add(200*day), 80*day), long, page(1, at.Add(290*day), 80*day), never(0.01)}
	for i := range waits[1:] {
		if a, b := Priority(s, waits[i], 1), Priority(s, waits[i+1], waits[i+1].Score); !(a > b) {
			t.Errorf("gone for long: %d has %v, the next %v", i, a, b)
		}
	}
	// Where no visit is worth as much as the plan says, since they all go to pages that have the
	// greatest interval, a new page is measured by what those visits are worth.
	bound := Learned{Plan: &Plan{Mu: 1e5, Mean: 1, Budget: 10, Scale: 1, Needed: 10, Prior: Rate{1, 2000}}}
	if a, b := Priority(bound, never(0.5), 0.5), Priority(bound, page(1, at.Add(-90*day), 80*day), 1); !(a > b) {
		t.Errorf("bound by greatest intervals: a new page has %v, one that is late %v", a, b)
	}
	// While the budget is not enough for the greatest intervals, pages with these wait.
	short := Learned{Plan: &Plan{Mu: 3, Mean: 1, Budget: 10, Scale: 1, Stretch: 3}}
	if a, b := Priority(short, page(1, at, 80*day), 1), Priority(short, page(1, at.Add(100*day), 40*day), 1); !(a < b) {
		t.Errorf("not enough: %v, %v", a, b)
	}
	// And pages that have been gone for long still wait for these, of which there may be many.
	short.Plan.Stretch = 5
	if a, b := Priority(short, page(1, at, 80*day), 1), Priority(short, long, 1); !(a > b) {
		t.Errorf("not enough: a page that is late has %v, one that is gone %v", a, b)
	}
}

// While pages are late, a plan is for less and less.
func TestPlanLeavesNothingLate(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	plan := func(old *Plan, late time.Duration, n int, visits int64) *Plan {
		sample := Learned{Budget: 10, Plan: old}.NewSample(at)
		for i := range 100 {
			d := crawldb.Datum{URL: fmt.Sprint("http://a/", i), Score: 1, Status: crawldb.Fetched, LastFetch: at.Add(-20 * day), Interval: 20 * day, FetchTime: at.Add(-late)}
			if i >= n {
				d.FetchTime = at.Add(day)
			}
			sample.Add(&d)
		}
		return sample.Plan(PlanOptions{Visits: visits})
	}
	first := plan(nil, 0, 0, 100)
	at = at.Add(day)
	for name, c := range map[string]struct {
		late        time.Duration
		n           int
		visits      int64
		least, most float64
	}{
		"late":                       {7 * day, 100, 110, 0.97, 0.999},
		"a little late":              {5 * day, 100, 110, 1, 1},
		"two are late":               {7 * day, 2, 110, 1, 1},
		"not all is used":            {0, 0, 105, 1.001, 1.02},
		"one visit less":             {0, 0, 109, 1, 1},
		"not all is used, many wait": {5 * day, 100, 105, 1, 1},
		"not all is used, and a few": {5 * day, 20, 105, 1.001, 1.02},
	} {
		if p := plan(first, c.late, c.n, c.visits); p.Scale < c.least || p.Scale > c.most {
			t.Errorf("%s: %v", name, p.Scale)
		}
	}
	// Not if they are because the budget is not enough for the greatest intervals.
	short := *first
	short.Needed = 20
	if p := plan(&short, 7*day, 100, 110); p.Scale != 1 {
		t.Errorf("not enough: %v", p.Scale)
	}
}

// A budget of few visits is used, too: they are counted over some plans.
func TestPlanOfFewVisits(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	scale := func(every float64) float64 {
		var p *Plan
		for at := begin; at.Before(begin.AddDate(2, 0, 0)); at = at.AddDate(0, 0, 5) {
			sample := Learned{Budget: 1. / 3, Plan: p}.NewSample(at)
			for i := range 10 {
				sample.Add(&crawldb.Datum{URL: fmt.Sprint("http://a/", i), Score: 1, Status: crawldb.Fetched, LastFetch: at.Add(-time.Hour), Interval: 30 * day, FetchTime: at.Add(day)})
			}
			p = sample.Plan(PlanOptions{Visits: 1 + int64(days(at.Sub(begin))/every)})
			text, err := p.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if p, err = DecodePlan(text); err != nil {
				t.Fatal(err)
			}
		}
		return p.Scale
	}
	if all, most := scale(3), scale(4); all > 1.1 || most < 1.5 {
		t.Errorf("the plan has %v of the budget where all is used, and %v where three quarters are", all, most)
	}
}

// A page that would wait for longer than the bound before the next plan goes before all others, and is out of line if
// its stored priority says otherwise. So does a new page, if the budget allows that.
func TestOwedPagesGoFirst(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	plan := func(p Plan) Learned {
		p.Mu, p.Mean, p.Budget, p.Scale, p.Made, p.Begun = 3, 1, 10, 1, at, at.AddDate(-1, 0, 0)
		return Learned{Plan: &p}
	}
	page := func(last time.Duration, status crawldb.Status) *crawldb.Datum {
		return &crawldb.Datum{URL: "http://a/1", Score: 1, Status: status, LastFetch: at.Add(-last), Interval: 30 * day, FetchTime: at.Add(30*day - last)}
	}
	never := func(waits time.Duration, score float32) *crawldb.Datum {
		return &crawldb.Datum{URL: "http://a/2", Status: crawldb.Unfetched, Score: score, FetchTime: at.Add(-waits)}
	}
	fixed := page(95*day, crawldb.Fetched)
	fixed.Meta.Set(FixedKey, fmt.Sprint(30*day.Seconds()))
	for _, c := range []struct {
		name string
		d    *crawldb.Datum
		plan Plan
		owed bool
	}{
		{"for long", page(95*day, crawldb.Fetched), Plan{}, true},
		{"a day to go", page(93*day, crawldb.NotModified), Plan{}, true},
		{"two days to go", page(91*day, crawldb.Fetched), Plan{}, false},
		{"failing", page(95*day, crawldb.Unfetched), Plan{}, true},
		{"gone", page(95*day, crawldb.Gone), Plan{}, false},
		{"own interval", fixed, Plan{}, false},
		{"small budget", page(95*day, crawldb.Fetched), Plan{Stretch: 1.5}, false},
		{"small budget, for long", page(145*day, crawldb.Fetched), Plan{Stretch: 1.5}, true},
		{"new", never(95*day, 0.01), Plan{AllNew: true}, true},
		{"new, not long ago", never(day, 0.01), Plan{AllNew: true}, false},
		{"new, of too many", never(95*day, 0.01), Plan{}, false},
	} {
		s := plan(c.plan)
		got := Priority(s, c.d, c.d.Score)
		if first := Priority(s, never(0, 1e30), 1e30); got > first != c.owed || math.IsInf(float64(got), 0) {
			t.Errorf("%s: %v, an important new page %v", c.name, got, first)
		}
		if c.d.Priority = 1 << (lineBegin + 1); s.InLine(c.d, at) == c.owed && !c.plan.AllNew {
			t.Errorf("%s: in line is %v", c.name, !c.owed)
		}
		if c.d.Priority = got; !s.InLine(c.d, at) {
			t.Errorf("%s: what the schedule gave is not in line", c.name)
		}
	}
	s := plan(Plan{AllNew: true})
	if a, b := Priority(s, never(0, 1e-3), 1e-3), Priority(s, page(80*day, crawldb.Fetched), 1); !(a > b) {
		t.Errorf("a new page has %v, one that waits %v", a, b)
	}
	if a, b := Priority(s, page(96*day, crawldb.Fetched), 1), Priority(s, page(96*day-time.Hour, crawldb.Fetched), 1); !(a > b) {
		t.Errorf("an hour: %v and %v", a, b)
	}
}

// What a plan had for few pages, which might be visited all the time, it has not for many.
func TestPlanOfACrawlThatGrows(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var p *Plan
	for _, n := range []int{1, 2, 20, 300, 5000} {
		sample := Learned{Budget: 48, Plan: p}.NewSample(at)
		for i := range n {
			sample.Add(&crawldb.Datum{URL: fmt.Sprint("http://a/", i), Score: 1, Status: crawldb.Fetched, LastFetch: at.Add(-time.Hour), Interval: day, FetchTime: at.Add(day)})
		}
		p = sample.Plan(PlanOptions{Visits: 48 * int64(at.Sub(time.Date(2025, 12, 31, 0, 0, 0, 0, time.UTC))/day)})
		if most := 1.02 * p.planned(); p.Needed > most && p.Stretch < 1 {
			t.Errorf("%d pages: %v visits a day are needed of %v, by greatest intervals multiplied by %v", n, p.Needed, most, p.Stretch)
		}
		at = at.Add(day)
	}
}

// A page that is gone, or fails, for the first time is asked for again as others are, whatever its
// interval was: what lasted for days is no reason to leave it alone for a year.
func TestPageThatIsGoneOnce(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, s := range []Learned{{}, {HostIntervals: map[string]Bounds{"a": {Min: 90 * day, Max: 90 * day}}}} {
		d := crawldb.Datum{URL: "http://a/", Status: crawldb.Gone, Interval: 80 * day}
		_, most := s.bounds(d.URL)
		for visit := range 3 {
			d = s.Gone(d, Visit{Time: at})
			d.LastFetch = at
			if days(d.FetchTime.Sub(at)) < 89.9 {
				t.Errorf("visit %d: asked for after %v", visit, d.FetchTime.Sub(at))
			}
			if got, want := goneFor(&d, most), visit > 0 || s.HostIntervals != nil; got != want {
				t.Errorf("visit %d: gone for long is %v", visit, got)
			}
			at = d.FetchTime
		}
	}
}

// Where there are few visits a page is late by chance, and a plan does not become smaller for that.
func TestPlanOfFewVisitsIsNotUpset(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for late, want := range map[time.Duration]bool{4 * day: false, 8 * day: true} {
		var old *Plan
		for n := range int64(20) {
			now := at.Add(time.Duration(n) * 3 * day)
			sample := Learned{Budget: 1. / 3, Plan: old}.NewSample(now)
			for i := range 10 {
				d := crawldb.Datum{URL: fmt.Sprint("http://a/", i), Score: 1, Status: crawldb.Fetched, LastFetch: now.Add(-10 * day), Interval: 40 * day, FetchTime: now.Add(30 * day)}
				if i < 2 {
					d.Interval, d.FetchTime = 8*day, now.Add(-2*day-late)
				}
				sample.Add(&d)
			}
			p := sample.Plan(PlanOptions{Visits: n + 1})
			if p.Begun = at.AddDate(-2, 0, 0); old != nil && (p.Scale < old.Scale) != want {
				t.Errorf("two pages are late by %v: plan %d has a scale of %v after %v", late, n, p.Scale, old.Scale)
			}
			if old == nil {
				p.Scale = 1.5
			}
			old = p
		}
	}
}

// Pages that are gone take little of the budget, and do not count as late; and what a crowd of
// pages took from the others is given back when only they wait.
func TestPlanOfPagesThatAreGone(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	plan := func(old *Plan, status crawldb.Status) *Plan {
		sample := Learned{Budget: 10, Plan: old}.NewSample(at)
		for i := range 1000 {
			d := crawldb.Datum{URL: fmt.Sprint("http://a/", i), Score: 1, Status: status, LastFetch: at.Add(-100 * day), Interval: 90 * day, FetchTime: at.Add(-10 * day)}
			if i < 200 {
				d.Status, d.LastFetch, d.FetchTime = crawldb.Fetched, at.Add(-80*day), at.Add(10*day)
			}
			sample.Add(&d)
		}
		return sample.Plan(PlanOptions{Visits: int64(at.Sub(time.Date(2025, 12, 1, 0, 0, 0, 0, time.UTC)) / day * 10)})
	}
	if p := plan(nil, crawldb.Gone); p.Stretch > 1 || p.Backlog != 0 {
		t.Errorf("%+v", p)
	}
	if p := plan(nil, crawldb.Fetched); !(p.Stretch > 1) || p.Backlog != 800 {
		t.Errorf("if they were not gone: %+v", p)
	}
	old := plan(nil, crawldb.Gone)
	old.Scale, old.Begun = 0.96, at.AddDate(-2, 0, 0)
	at = at.Add(day)
	if p := plan(old, crawldb.Gone); !(p.Scale > 0.97 && p.Scale < 0.975) {
		t.Errorf("only pages that are gone wait: %v", p.Scale)
	}
	old.Scale = 0.5
	if p := plan(old, crawldb.Gone); p.Scale < leastScale {
		t.Errorf("pages were late, and are no more: %v", p.Scale)
	}
	// Half of the pages are late, as after an outage, and stay so: they are given what two mean
	// intervals have, and no more, if signals do not take what is found.
	for _, signs := range []struct {
		of   int // one page in so many has some; 0 means none
		want float64
	}{
		{0, leastScale - 500./2000}, {2, (leastScale - 500./2000 + 0.5) / 2}, {1, 0.5},
	} {
		old := plan(nil, crawldb.Gone)
		old.Begun = at.AddDate(-2, 0, 0)
		at := at
		for range 60 {
			at = at.Add(day)
			sample := Learned{Budget: 20, Plan: old}.NewSample(at)
			for i := range 1000 {
				d := crawldb.Datum{URL: fmt.Sprint("http://a/", i), Score: 1, Status: crawldb.Fetched, LastFetch: at.Add(-30 * day), Interval: 50 * day, FetchTime: at.Add(20 * day)}
				if i < 500 {
					d.FetchTime, d.Interval = at.Add(-20*day), 10*day
				}
				if signs.of > 0 && i%signs.of == 0 {
					crawldb.SitemapEntry{Modified: at.Add(-40 * day)}.Set(&d.Meta)
				}
				sample.Add(&d)
			}
			old = sample.Plan(PlanOptions{Visits: old.Visits + 20, Signals: func(string) (SignalQuality, bool) { return SignalQuality{0.9, 0.9}, true }})
		}
		if math.Abs(old.Scale-signs.want) > 1e-4 {
			t.Errorf("half of the pages are late, one in %d has signs: %v, not %v", signs.of, old.Scale, signs.want)
		}
	}
}

// A host that may not be asked so often as its pages would be has all the visits that it allows,
// from one plan to the next, though the budget is not used by them.
func TestPlanOfHostsThatLeaveABudget(t *testing.T) {
	const allowed = 60.
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var old *Plan
	for n := range int64(5) {
		sample := Learned{Budget: 100, Plan: old}.NewSample(at)
		for i := range 900 {
			d := crawldb.Datum{URL: fmt.Sprint("http://a/", i), Score: 1, Status: crawldb.Fetched, LastFetch: at, Interval: day, FetchTime: at.Add(day)}
			(&learned{Rate: Rate{100, 100 * float64(1+i%50)}}).keep(&d)
			sample.Add(&d)
		}
		p := sample.Plan(PlanOptions{Visits: allowed*n + 1, Hosts: func(string) float64 { return allowed }})
		if !p.own("http://a/1") || math.Abs(p.Needed/allowed-1) > 0.01 {
			t.Errorf("plan %d comes to %.4g visits a day of %g", n, p.Needed, allowed)
		}
		old, at = p, at.Add(day)
	}
}

// The budget is used, whatever pages do, and what it is not enough for is stretched.
func TestStretchOfGreatestIntervals(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	hourly := learned{Rate: Rate{2400, 100}}
	plan := func(budget float64, hosts func(string) float64) *Plan {
		sample := Learned{Budget: budget}.NewSample(at)
		for i := range 900 {
			d := crawldb.Datum{URL: fmt.Sprint("http://a/", i), Score: 1, Status: crawldb.Fetched, LastFetch: at, Interval: day, FetchTime: at.Add(day)}
			hourly.keep(&d)
			sample.Add(&d)
		}
		return sample.Plan(PlanOptions{Hosts: hosts})
	}
	next := func(p *Plan) time.Duration {
		d := crawldb.Datum{URL: "http://a/1", Score: 1, Status: crawldb.Fetched, Signature: []byte{1}}
		hourly.keep(&d)
		return Learned{Plan: p}.Explain(&d).Interval
	}
	// All change each hour: no visit is worth more than another.
	hopeless := plan(100, nil)
	if math.Abs(hopeless.Needed/hopeless.planned()-1) > 0.01 {
		t.Errorf("pages that change each hour: %+v", hopeless)
	}
	if i := next(hopeless); i > 10*day || i < 8*day {
		t.Errorf("pages that change each hour: one in %v", i)
	}
	// A host that allows no more is asked no more.
	if p := plan(100, func(string) float64 { return 11 }); !p.own("http://a/1") || next(p) < 70*day {
		t.Errorf("a host that allows 11 visits a day: %+v, one in %v", p, next(p))
	}
	if p := plan(10, nil); p.Stretch != 0 || p.Needed < 10 || next(p) < 70*day {
		t.Errorf("just enough: %+v, one in %v", p, next(p))
	}
	if p := plan(4, nil); math.Abs(p.Stretch-5) > 1e-9 {
		t.Errorf("not enough by far: %+v", p)
	}
	if p := plan(9, nil); math.Abs(p.Stretch-100/81.) > 1e-9 || next(p) > 90*day {
		t.Errorf("not enough: %+v, one in %v", p, next(p))
	}
}

// Visits that nearly always find a change come in pairs, one sooner and one later, until the
// rate is certain.
func TestVisitsInPairs(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := Learned{Plan: &Plan{Mu: 4, Mean: 1, Budget: 10, Scale: 1}, Keep: 1}
	for _, c := range []struct {
		name     string
		r        Rate
		from, to float64 // pairs, of 1000 pages
		sooner   float64 // days
		now      time.Duration
	}{
		{"uncertain", Rate{3, 15}, 1000, 1000, 5, 20 * day},
		{"more certain", Rate{20, 100}, 200, 350, 5, 20 * day},
		{"changes seldom", Rate{3, 90}, 0, 0, 0, 20 * day},
		{"the second of the pair", Rate{3, 15}, 0, 0, 0, 5 * day},
	} {
		pairs := 0.0
		for i := range 1000 {
			d := crawldb.Datum{URL: fmt.Sprint("http://a/", i), Score: 1, Status: crawldb.Fetched, Signature: []byte{1}, Interval: 20 * day, LastFetch: at}
			learned{Rate: c.r, noiseState: trusted}.keep(&d)
			next := s.Fetched(d, Visit{Time: at.Add(c.now), PrevFetch: at})
			even := s.Explain(&next).Interval
			switch {
			case next.Interval < even:
				if pairs++; math.Abs(days(next.Interval)-c.sooner) > 0.01 {
					t.Fatalf("%s: sooner: %v", c.name, next.Interval)
				}
			case c.now < 10*day && days(next.Interval+5*day-2*even) > 0.01 || c.now >= 10*day && next.Interval != even:
				t.Fatalf("%s: %v, where %v is even", c.name, next.Interval, even)
			}
		}
		if pairs < c.from || pairs > c.to {
			t.Errorf("%s: %v pairs", c.name, pairs)
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

// Any plan can be written and read.
func TestPlanCanBeKept(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1e-300, 1e300, math.MaxFloat64}
	keep := func(what string, l Learned, o PlanOptions) {
		t.Helper()
		x := l.NewSample(now)
		for i := range 100 {
			d := crawldb.Datum{URL: fmt.Sprintf("http://h%d.test/%d", i%3, i), Status: crawldb.Fetched, Score: 1, LastFetch: now.Add(-day), FetchTime: now, Interval: day}
			crawldb.SitemapEntry{Modified: now.Add(-time.Hour)}.Set(&d.Meta)
			x.Add(&d)
		}
		o.Outlook = true
		p := x.Plan(o)
		text, err := p.Encode()
		if err == nil {
			_, err = DecodePlan(text)
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, f := range odd {
		for _, g := range []SignalQuality{{f, .5}, {.5, f}} {
			keep(fmt.Sprintf("signals %v", g), Learned{Budget: 100}, PlanOptions{Signals: func(string) (SignalQuality, bool) { return g, true }})
		}
		keep(fmt.Sprintf("%v allowed", f), Learned{Budget: -1}, PlanOptions{Allowed: f})
		keep(fmt.Sprintf("a budget of %v", f), Learned{Budget: f}, PlanOptions{})
		keep(fmt.Sprintf("%v of a host", f), Learned{Budget: 100}, PlanOptions{Hosts: func(string) float64 { return f }})
		keep(fmt.Sprintf("weight %v", f), Learned{Budget: 100, Weight: func(*crawldb.Datum) float64 { return f }}, PlanOptions{})
	}
}

// A plan is recognized as made for its budget, whatever number that is: otherwise a new one
// would be made before each selection, which reads the whole crawl db.
func TestPlanIsForItsBudget(t *testing.T) {
	budgets := []float64{0, 5, -1, 1e300, -1e300, math.Inf(1), math.Inf(-1), math.NaN()}
	for _, budget := range budgets {
		text, err := Learned{Budget: budget}.NewSample(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).Plan(PlanOptions{}).Encode()
		if err != nil {
			t.Fatalf("a budget of %v: %v", budget, err)
		}
		p, err := DecodePlan(text)
		if err != nil {
			t.Fatalf("a budget of %v: %v", budget, err)
		}
		if !p.For(budget) || p.For(7) {
			t.Errorf("a plan for %v: for %v %v, for 7 %v", budget, budget, p.For(budget), p.For(7))
		}
	}
}
