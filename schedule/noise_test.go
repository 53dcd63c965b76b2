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

// A host is noisy if visits that come soon find a change nearly each, and only then.
func TestNoisy(t *testing.T) {
	s := schedule.Learned{Budget: 10}
	visit := func(url string, gap int, changed func(i int) bool) crawldb.Datum {
		d := s.Init(crawldb.Datum{URL: url, Score: 1, Signature: []byte{1}, Status: crawldb.Fetched}, began)
		at := began
		d = s.Fetched(d, schedule.Visit{Time: at})
		for i := range 4 {
			d.LastFetch, at = at, at.AddDate(0, 0, gap)
			v := schedule.Visit{Time: at, PrevFetch: d.LastFetch, Change: schedule.Unchanged}
			if changed(i) {
				v.Change = schedule.Changed
			}
			d = s.Fetched(d, v)
		}
		d.LastFetch = at
		return d
	}
	always := func(int) bool { return true }
	for _, c := range []struct {
		name string
		make func(i int) crawldb.Datum
		want []schedule.Noisy
	}{
		{"soon and always", func(i int) crawldb.Datum { return visit(fmt.Sprintf("http://a.test/%d", i), 3, always) }, []schedule.Noisy{{Host: "a.test", Checked: 40, Changed: 40}}},
		{"seldom", func(i int) crawldb.Datum { return visit(fmt.Sprintf("http://a.test/%d", i), 30, always) }, nil},
		{"some do not", func(i int) crawldb.Datum {
			return visit(fmt.Sprintf("http://a.test/%d", i), 3, func(n int) bool { return i%10 > 0 || n < 3 })
		}, nil},
		{"one of forty does not", func(i int) crawldb.Datum {
			return visit(fmt.Sprintf("http://a.test/%d", i), 3, func(n int) bool { return i > 0 || n < 3 })
		}, []schedule.Noisy{{Host: "a.test", Checked: 40, Changed: 39}}},
		{"many hosts", func(i int) crawldb.Datum { return visit(fmt.Sprintf("http://h%d.test/", i), 3, always) }, []schedule.Noisy{{Checked: 40, Changed: 40}}},
		{"one of two hosts", func(i int) crawldb.Datum {
			return visit(fmt.Sprintf("http://h%d.test/%d", i%2, i), 3, func(int) bool { return i%2 == 0 })
		}, []schedule.Noisy{{Host: "h0.test", Checked: 20, Changed: 20}}},
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

// Where visits are far apart and always find a change, a few pages are visited sooner, to tell
// whether that is noise: twice if the first finds a change, too.
func TestNoiseIsLookedFor(t *testing.T) {
	s := schedule.Learned{Plan: &schedule.Plan{Mu: 12, Mean: 1, Budget: 20, Scale: 1, Pages: 600, Prior: schedule.Rate{Shape: 1, Days: 5}}}
	const pages = 1000
	for _, c := range []struct {
		name     string
		visits   []bool // whether each finds a change; they come when they are due
		shortest int    // which of the intervals behind them are of a day
		plan     func(p *schedule.Plan)
		least    int
		most     int
	}{
		{name: "always", visits: []bool{true, true, true, true, true}, shortest: 2, least: 25, most: 100},
		{name: "not when it is looked for", visits: []bool{true, false, true, true}, shortest: 1, least: 25, most: 100},
		{name: "not once", visits: []bool{false, true, true, true}},
		{name: "known to be noise", visits: []bool{true, true, true}, plan: func(p *schedule.Plan) { p.Noise = map[string]float64{"": 1. / 30} }},
		{name: "no large crawl", visits: []bool{true, true, true, true}, shortest: 2, plan: func(p *schedule.Plan) { p.Pages, p.Budget = 256, 8.5 }, least: 80, most: 200},
		{name: "a small crawl", visits: []bool{true, true, true, true}, plan: func(p *schedule.Plan) { p.Pages, p.Budget = 255, 8.5 }},
		{name: "nothing to choose", visits: []bool{true, true, true, true}, plan: func(p *schedule.Plan) { p.Budget = 7 }},
	} {
		s, p := s, *s.Plan
		if s.Plan = &p; c.plan != nil {
			c.plan(&p)
		}
		looked := 0
		for i := range pages {
			at := began
			d := s.Init(crawldb.Datum{URL: fmt.Sprintf("http://a.test/%d", i), Score: 1, Signature: []byte{1}, Status: crawldb.Fetched}, at)
			d = s.Fetched(d, schedule.Visit{Time: at})
			soon := 0
			for _, changed := range c.visits {
				gap := d.Interval
				if gap != aDay { // few visits, all late
					gap = 60 * aDay
				}
				d.LastFetch, at = at, at.Add(gap)
				v := schedule.Visit{Time: at, PrevFetch: d.LastFetch, Change: schedule.Unchanged}
				if changed {
					v.Change = schedule.Changed
				}
				if d = s.Fetched(d, v); d.Interval == aDay && d.FetchTime.Equal(at.Add(aDay)) {
					soon++
				}
			}
			if soon > 0 {
				if looked++; soon != c.shortest {
					t.Fatalf("%s: %d visits to page %d are to come a day later, want %d", c.name, soon, i, c.shortest)
				}
			}
		}
		if looked < c.least || looked > c.most {
			t.Errorf("%s: %d of %d pages are looked at", c.name, looked, pages)
		}
	}
}

// Hosts that are known to be quiet neither hide that others are noisy nor count as noisy.
func TestQuietHosts(t *testing.T) {
	s := schedule.Learned{Budget: 10}
	x := s.NewSample(began.AddDate(0, 0, 200))
	for i := range 60 {
		host, change := fmt.Sprintf("h%d.test", i), schedule.Changed
		if i >= 40 {
			host, change = "quiet.test", schedule.Unchanged
		}
		at := began
		d := s.Init(crawldb.Datum{URL: fmt.Sprintf("http://%s/%d", host, i), Score: 1, Signature: []byte{1}, Status: crawldb.Fetched}, at)
		d = s.Fetched(d, schedule.Visit{Time: at})
		for range 4 {
			d.LastFetch, at = at, at.AddDate(0, 0, 3)
			d = s.Fetched(d, schedule.Visit{Time: at, PrevFetch: d.LastFetch, Change: change})
		}
		d.LastFetch = at
		x.Add(&d)
	}
	p := x.Plan(schedule.PlanOptions{Outlook: true})
	text, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if p, err = schedule.DecodePlan(text); err != nil {
		t.Fatal(err)
	}
	p.Uniform = false
	if quiet, ok := p.Noise["quiet.test"]; !ok || quiet != 0 || !(p.Noise[""] > 0) || len(p.Noise) != 2 {
		t.Fatalf("noise is %v", p.Noise)
	}
	if p.Noisy("http://quiet.test/x") != nil || p.Noisy("http://h1.test/x") == nil {
		t.Errorf("of the quiet host %v, of another %v", p.Noisy("http://quiet.test/x"), p.Noisy("http://h1.test/x"))
	}
	s.Plan = p
	for url, want := range map[string]bool{"http://quiet.test/x": false, "http://h1.test/x": true, "http://new.test/x": true} {
		if w := s.Explain(&crawldb.Datum{URL: url, Score: 1}); w.Noise != want {
			t.Errorf("%s: noise is %v", url, w.Noise)
		}
	}
}

// Pages of a noisy host are visited by their importance, whatever visits have found, as if each
// changed once in a mean interval; others are not.
func TestNoisyPagesGoByImportance(t *testing.T) {
	s := schedule.Learned{Budget: 10}
	at := began.AddDate(0, 0, 100)
	visits := func(url string, gaps ...int) crawldb.Datum {
		d := s.Init(crawldb.Datum{URL: url, Score: 1, Signature: []byte{1}, Status: crawldb.Fetched}, began)
		now := began
		d = s.Fetched(d, schedule.Visit{Time: now})
		for _, gap := range gaps {
			d.LastFetch, now = now, now.AddDate(0, 0, gap)
			d = s.Fetched(d, schedule.Visit{Time: now, PrevFetch: d.LastFetch, Change: schedule.Changed})
		}
		d.LastFetch = now
		return d
	}
	plan := func(o schedule.PlanOptions) *schedule.Plan {
		x := s.NewSample(at)
		for i := range 40 {
			d := visits(fmt.Sprintf("http://noisy.test/%d", i), 3, 3, 3+i%4)
			d.Score = float32(1 + i%3)
			x.Add(&d)
			q := visits(fmt.Sprintf("http://quiet.test/%d", i), 30)
			x.Add(&q)
		}
		return x.Plan(o)
	}
	p := plan(schedule.PlanOptions{})
	if len(p.Noise) != 1 || p.Noise["noisy.test"] != 10./80 {
		t.Fatalf("noise is %v, want ten visits a day over 80 pages", p.Noise)
	}
	if p := plan(schedule.PlanOptions{Hosts: func(string) float64 { return 2 }}); p.Noise["noisy.test"] != 2./40 {
		t.Errorf("of a host that may be asked twice a day: %v", p.Noise)
	}
	for _, budget := range []float64{5e-324, 1e-300, 1e300, math.Inf(1)} { // whatever it is, the plan can be kept
		odd := s
		odd.Budget = budget
		x := odd.NewSample(at)
		for i := range 40 {
			d := visits(fmt.Sprintf("http://noisy.test/%d", i), 3, 3, 3)
			x.Add(&d)
		}
		text, err := x.Plan(schedule.PlanOptions{Hosts: func(string) float64 { return budget }}).Encode()
		if err != nil {
			t.Fatalf("budget %g: %v", budget, err)
		}
		if odd.Plan, err = schedule.DecodePlan(text); err != nil || len(odd.Plan.Noise) != 1 {
			t.Fatalf("budget %g: %v, %v", budget, odd.Plan, err)
		}
		for _, odd.Plan.Uniform = range []bool{true, false} {
			d := visits("http://noisy.test/x", 3, 3, 3)
			if w := odd.Explain(&d); w.Interval < w.Least || w.Interval > w.Most {
				t.Errorf("budget %g, even %v: %v is not from %v to %v", budget, odd.Plan.Uniform, w.Interval, w.Least, w.Most)
			}
		}
	}
	text, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if s.Plan, err = schedule.DecodePlan(text); err != nil {
		t.Fatal(err)
	}
	if !s.Plan.Uniform {
		t.Error("nothing is known of how often pages change, and they are told apart")
	}
	next := func(host string, score float32, gaps ...int) schedule.Worth {
		d := visits("http://"+host+"/x", gaps...)
		d.Score = score
		return s.Explain(&d)
	}
	noisy, quiet := next("noisy.test", 1, 1, 1, 1), next("quiet.test", 1, 30)
	if noisy.Pace != quiet.Pace || noisy.Pace > 10./80 || noisy.Noise {
		t.Errorf("not told apart: %+v, %+v", noisy, quiet)
	}
	s.Plan.Uniform = false
	often, seldom, more := next("noisy.test", 1, 1, 1, 1, 1, 1, 1), next("noisy.test", 1, 6, 6, 6), next("noisy.test", 3, 6, 6, 6)
	if often.Interval != seldom.Interval || !often.Noise || often.Pace != 10./80 {
		t.Errorf("each day %v by %g a day, each six days %v", often.Interval, often.Pace, seldom.Interval)
	}
	if more.Interval >= seldom.Interval {
		t.Errorf("three times as important %v, else %v", more.Interval, seldom.Interval)
	}
	if w := next("quiet.test", 1, 30); w.Noise || w.Pace == 10./80 {
		t.Errorf("of another host: %+v", w)
	}
}

// What was noisy is so until clearly fewer pages always change.
func TestNoiseEndsLate(t *testing.T) {
	for _, c := range []struct {
		unchanged int
		before    map[string]float64
		want      bool
	}{{1, nil, true}, {4, nil, false}, {4, map[string]float64{"a.test": 1}, true}, {7, map[string]float64{"a.test": 1}, false}} {
		s := schedule.Learned{Budget: 10}
		s.Plan = &schedule.Plan{Noise: c.before}
		x := s.NewSample(began.AddDate(0, 0, 100))
		for i := range 40 {
			d := s.Init(crawldb.Datum{URL: fmt.Sprintf("http://a.test/%d", i), Score: 1, Signature: []byte{1}, Status: crawldb.Fetched}, began)
			at := began
			d = s.Fetched(d, schedule.Visit{Time: at})
			for range 3 {
				d.LastFetch, at = at, at.AddDate(0, 0, 3)
				v := schedule.Visit{Time: at, PrevFetch: d.LastFetch, Change: schedule.Changed}
				if i < c.unchanged {
					v.Change = schedule.Unchanged
				}
				d = s.Fetched(d, v)
			}
			d.LastFetch = at
			x.Add(&d)
		}
		if p := x.Plan(schedule.PlanOptions{}); (len(p.Noise) > 0) != c.want {
			t.Errorf("%d of 40 unchanged, before %v: %v", c.unchanged, c.before, p.Noise)
		}
	}
}

// Noisy returns the entry for the host of a page, or that for all.
func TestPlanNoisy(t *testing.T) {
	of := func(n ...schedule.Noisy) *schedule.Plan { return &schedule.Plan{Outlook: &schedule.Outlook{Noisy: n}} }
	for _, c := range []struct {
		plan *schedule.Plan
		want string
	}{
		{nil, ""},
		{&schedule.Plan{}, ""},
		{of(schedule.Noisy{Host: "b.test"}), ""},
		{of(schedule.Noisy{Host: "b.test"}, schedule.Noisy{Host: "a.test", Changed: 10}), "{a.test 0 10}"},
		{of(schedule.Noisy{Changed: 12}), "{ 0 12}"},
	} {
		got := ""
		if n := c.plan.Noisy("http://a.test/x"); n != nil {
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
