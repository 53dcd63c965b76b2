package schedule_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
)

const aDay = 24 * time.Hour

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// records returns records of pages on two hosts, the second with the faster ones.
func records(n int) []crawldb.Datum {
	r := rand.New(rand.NewPCG(1, 2))
	all := make([]crawldb.Datum, n)
	s := schedule.Learned{}
	for i := range all {
		host, every := "slow.test", 60.0
		if i%4 == 0 {
			host, every = "fast.test", 3
		}
		d := s.Init(crawldb.Datum{URL: fmt.Sprintf("http://%s/%d", host, i), Score: float32(r.ExpFloat64()), Signature: []byte{1}, Status: crawldb.Fetched}, began)
		at := began
		d = s.Fetched(d, schedule.Visit{Time: at, ContentType: "text/html"})
		for range 10 {
			d.LastFetch = at
			at = at.Add(10 * aDay)
			v := schedule.Visit{Time: at, PrevFetch: d.LastFetch, Change: schedule.Unchanged, ContentType: "text/html"}
			if r.Float64() < 1-math.Exp(-10/every) {
				v.Change = schedule.Changed
			}
			d = s.Fetched(d, v)
		}
		d.LastFetch = at
		all[i] = d
	}
	return all
}

func plan(s schedule.Learned, all []crawldb.Datum, o schedule.PlanOptions) *schedule.Plan {
	x := s.NewSample(began.Add(101 * aDay))
	for i := range all {
		x.Add(&all[i])
	}
	return x.Plan(o)
}

func TestPlanSpendsTheBudget(t *testing.T) {
	all := records(3000)
	s := schedule.Learned{Budget: 300}
	p := plan(s, all, schedule.PlanOptions{})
	if p.Pages != 3000 || p.Budget != 300 || math.Abs(p.Needed/300-1) > 1e-3 || !(p.Mu > 0) {
		t.Fatalf("%+v", p)
	}
	// The resulting intervals take the budget, up to rounding.
	s.Plan = p
	sum := 0.0
	for i := range all {
		sum += 24 * float64(time.Hour) / float64(s.Explain(&all[i]).Interval)
	}
	if math.Abs(sum/300-1) > 0.05 {
		t.Errorf("%v visits a day", sum)
	}
	if less := plan(schedule.Learned{Budget: 100}, all, schedule.PlanOptions{}); !(less.Mu > p.Mu) {
		t.Errorf("less budget, and the threshold is %v after %v", less.Mu, p.Mu)
	}
	if none := plan(schedule.Learned{}, all, schedule.PlanOptions{}); math.Abs(none.Budget-100) > 1e-9 {
		t.Errorf("by default %v visits a day for 3000 pages", none.Budget)
	}
	if polite := plan(schedule.Learned{Budget: -1}, all, schedule.PlanOptions{Allowed: 50}); polite.Budget != 50 {
		t.Errorf("what is allowed: %v", polite.Budget)
	}
	if empty := plan(s, nil, schedule.PlanOptions{}); empty.Mu != 0 {
		t.Errorf("of nothing: %+v", empty)
	}
	// A budget that is not enough for the greatest intervals is still spent where it is worth
	// most.
	tiny := plan(schedule.Learned{Budget: 10}, all, schedule.PlanOptions{})
	if !(tiny.Needed > 30) || !(tiny.Mu > p.Mu) {
		t.Errorf("a budget of 10: %+v", tiny)
	}
}

func TestPlanDoesNotDependOnTheOrder(t *testing.T) {
	all := records(30_000) // more than a sample keeps
	s := schedule.Learned{Budget: 3000}
	hosts := func(string) float64 { return 1000 }
	want := plan(s, all, schedule.PlanOptions{Hosts: hosts})
	r := rand.New(rand.NewPCG(3, 4))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if got := plan(s, all, schedule.PlanOptions{Hosts: hosts}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, in another order %+v", want, got)
	}
	text, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if back, err := schedule.DecodePlan(text); err != nil || !reflect.DeepEqual(back, want) {
		t.Errorf("%v: %+v as %s, want %+v", err, back, text, want)
	}
}

func TestPlanOfHosts(t *testing.T) {
	all := records(3000)
	p := plan(schedule.Learned{Budget: 300}, all, schedule.PlanOptions{Hosts: func(host string) float64 {
		if host == "fast.test" {
			return 20
		}
		return math.Inf(1)
	}})
	if mu := p.HostMu["fast.test"]; !(mu > 2*p.Mu) || len(p.HostMu) != 1 || math.Abs(p.Needed/300-1) > 1e-3 {
		t.Errorf("a host that allows little: %+v", p)
	}
	fast, slow := p.HostPrior["fast.test"], p.HostPrior["slow.test"]
	if !(fast.PerDay() > 0.2) || !(slow.PerDay() < 0.04) || p.KindPrior != nil {
		t.Errorf("expected of hosts: %v and %v a day", fast.PerDay(), slow.PerDay())
	}
	s := schedule.Learned{Plan: p}
	new := crawldb.Datum{URL: "http://fast.test/new"}
	if w := s.Explain(&new); w.Learned || w.Rate != fast {
		t.Errorf("a new page of the fast host: %+v", w)
	}
}

// A plan whose visits come late, and are too few, is for more than the budget, and
// one whose pages wait for less.
func TestPlanCorrectsItself(t *testing.T) {
	all := records(3000)
	s := schedule.Learned{Budget: 300}
	s.Plan = &schedule.Plan{Made: began.Add(91 * aDay), Begun: began, Visits: 1000, Scale: 1}
	few := plan(s, all, schedule.PlanOptions{Visits: 1000 + 10*250})
	if !(few.Scale > 1) || few.Begun != began {
		t.Errorf("too few visits: %+v", few)
	}
	for i := range all {
		all[i].FetchTime = began
	}
	if late := plan(s, all, schedule.PlanOptions{Visits: 1000 + 10*300}); !(late.Scale < 1) || late.Backlog != 3000 {
		t.Errorf("all are late: %+v", late)
	}
	if uncounted := plan(s, all, schedule.PlanOptions{}); uncounted.Scale != 1 {
		t.Errorf("visits are not counted: %+v", uncounted)
	}
}

func TestWhatAVisitTeaches(t *testing.T) {
	s := schedule.Learned{Keep: 1}
	prior := schedule.Rate{Shape: 0.5, Days: 15}
	at := began.Add(20 * aDay)
	type visit = schedule.Visit
	for name, c := range map[string]struct {
		d    crawldb.Datum
		v    visit
		want schedule.Rate
	}{
		"unchanged":                      {v: visit{PrevFetch: began, Change: schedule.Unchanged}, want: prior.Unchanged(20 * aDay)},
		"changed":                        {v: visit{PrevFetch: began, Change: schedule.Changed}, want: prior.Changed(20 * aDay)},
		"changed, and we know when":      {v: visit{PrevFetch: began, Change: schedule.Changed, Modified: at.Add(-3 * aDay)}, want: prior.ChangedAgo(3 * aDay)},
		"changed just now":               {v: visit{PrevFetch: began, Change: schedule.Changed, Modified: at.Add(-time.Second)}, want: prior.Changed(20 * aDay)},
		"changed before the last visit?": {v: visit{PrevFetch: began, Change: schedule.Changed, Modified: began.Add(-aDay)}, want: prior.Changed(20 * aDay)},
		"the first visit":                {v: visit{Modified: at.Add(-9 * aDay)}, want: prior.ChangedAgo(9 * aDay)},
		"the first visit, of today":      {v: visit{Modified: at.Add(-time.Hour)}},
		"the first visit, no word":       {},
		"nothing to compare":             {v: visit{PrevFetch: began}},
		"a clock that went back":         {v: visit{PrevFetch: at.Add(aDay), Change: schedule.Changed}},
	} {
		c.d.URL = "http://a.test/"
		c.v.Time = at
		d := s.Fetched(c.d, c.v)
		got, ok := schedule.RateOf(&d)
		if ok != c.want.Known() || math.Abs(got.Shape-c.want.Shape) > 1e-6 || math.Abs(got.Days-c.want.Days) > 1e-5 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A server whose Last-Modified is newer though the content is the same is not
// believed any more.
func TestLastModifiedThatLies(t *testing.T) {
	s := schedule.Learned{Keep: 1}
	d := crawldb.Datum{URL: "http://a.test/"}
	at := began.Add(10 * aDay)
	d = s.Fetched(d, schedule.Visit{Time: at, PrevFetch: began, Change: schedule.Unchanged, Modified: at.Add(-time.Hour)})
	next := at.Add(10 * aDay)
	d = s.Fetched(d, schedule.Visit{Time: next, PrevFetch: at, Change: schedule.Changed, Modified: next.Add(-time.Hour)})
	want := schedule.Rate{Shape: 0.5, Days: 25}.Changed(10 * aDay)
	if got, _ := schedule.RateOf(&d); math.Abs(got.PerDay()/want.PerDay()-1) > 1e-5 {
		t.Errorf("%v, want %v", got, want)
	}
}

// The time that was watched begins with the last visit that brought content, not
// with one that failed.
func TestFailuresWatchNothing(t *testing.T) {
	s := schedule.Learned{Keep: 1}
	d := crawldb.Datum{URL: "http://a.test/", Signature: []byte{1}, LastFetch: began}
	failed := began.Add(10 * aDay)
	d = s.Retry(d, schedule.Visit{Time: failed, PrevFetch: began})
	again := failed.Add(aDay)
	d = s.Retry(d, schedule.Visit{Time: again, PrevFetch: failed})
	at := again.Add(aDay)
	d = s.Fetched(d, schedule.Visit{Time: at, PrevFetch: again, Change: schedule.Unchanged})
	if got, _ := schedule.RateOf(&d); got != (schedule.Rate{Shape: 0.5, Days: 27}) {
		t.Errorf("%v", got)
	}
	if d.Meta.Len() != 1 {
		t.Errorf("%d entries are left", d.Meta.Len())
	}
}

func TestLearnedKeepsToItsBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	s := schedule.Learned{MinInterval: 2 * time.Hour, Default: schedule.Default{MaxInterval: 40 * aDay},
		HostIntervals: map[string]schedule.Bounds{"b.test": {Min: 3 * aDay, Max: 5 * aDay}}}
	for range 20_000 {
		s.Plan = &schedule.Plan{Mu: math.Exp(r.NormFloat64() * 10), Mean: math.Exp(r.NormFloat64() * 5)}
		d := crawldb.Datum{URL: "http://a.test/", Score: float32(math.Exp(r.NormFloat64() * 10)), LastFetch: began}
		least, most := 2*time.Hour, 40*aDay
		if r.IntN(2) == 0 {
			d.URL, least, most = "http://b.test/", 3*aDay, 5*aDay
		}
		if r.IntN(5) == 0 {
			d.Score = float32(math.NaN())
		}
		at := began
		for range 5 {
			prev := at
			at = at.Add(time.Duration(math.Exp(r.Float64()*30)) * time.Millisecond)
			d = s.Fetched(d, schedule.Visit{Time: at, PrevFetch: prev, Change: schedule.Change(r.IntN(3)), Modified: at.Add(-time.Duration(r.Int64N(int64(aDay))))})
			d.LastFetch = at
			if gap := d.FetchTime.Sub(at); gap < least || gap > most || gap != d.Interval {
				t.Fatalf("next after %v, interval %v, bounds %v and %v: %+v", gap, d.Interval, least, most, d)
			}
			p := schedule.Priority(s, &d, d.Score)
			if !(p >= 0) || math.IsInf(float64(p), 0) {
				t.Fatalf("priority %v of %+v", p, d)
			}
		}
	}
}

// Whatever a store brings back is read or ignored.
func FuzzDecodePlan(f *testing.F) {
	text, _ := (&schedule.Plan{Mu: 3, HostMu: map[string]float64{"a.test": 4}, Prior: schedule.Rate{Shape: 1, Days: 2}}).Encode()
	seen, _ := (&schedule.Plan{Budget: 20, Outlook: &schedule.Outlook{
		At: began, Condition: schedule.Condition{Pages: 9, Never: 4}, Hosts: []schedule.HostCondition{{Host: "a.test", Lost: 1}},
		Forecast: &schedule.Forecast{Budget: 20, Freshness: 0.5, Curve: []schedule.CurvePoint{{PerDay: 10, Freshness: 0.4}, {PerDay: 30, Freshness: 0.6}}},
		Trend:    schedule.BacklogTrend{Since: began.Add(-aDay), Visited: 7, Found: 3},
	}}).Encode()
	if p, err := schedule.DecodePlan(seen); err != nil || p.Outlook.Forecast.Reaches(30) != 0.6 {
		f.Fatal(err)
	}
	for _, seed := range []string{
		text, seen, "", "{}", `{"Mu":-1}`, `{"Mean":1e308}`, `{"Prior":{"Shape":-1,"Days":1e300}}`, `{"Outlook":{"Forecast":{"Curve":[{}]}}}`,
		`{"Outlook":{"Forecast":{"Curve":[{"PerDay":1,"Freshness":0.5},{"PerDay":1,"Freshness":0.5}]},"Never":1,"Pace":{"Since":"2026-01-01T00:00:00Z","Visited":1e308}}}`,
	} {
		f.Add(seed, "12345678\x01\x10\x83")
	}
	f.Fuzz(func(t *testing.T, text, rate string) {
		p, err := schedule.DecodePlan(text)
		if err != nil {
			if p != nil || !errors.Is(err, schedule.ErrNotPlan) {
				t.Errorf("%s: %v, %v", text, p, err)
			}
			return
		}
		if o := p.Outlook; o != nil {
			o.BacklogEnd()
			if f := o.Forecast; f != nil {
				for _, x := range []float64{0, 0.3, 0.5, 1, 15, 1e9} {
					if r := f.Reaches(x); !(r >= 0 && r < 1.001) {
						t.Errorf("%s: %v a day reach %v", text, x, r)
					}
					if n, ok := f.Needs(x); ok && !(n >= 0) {
						t.Errorf("%s: %v needs %v", text, x, n)
					}
				}
			}
		}
		d := crawldb.Datum{URL: "http://a.test/", Score: 1, Meta: crawldb.MetaOf("schedule.rate", rate, "schedule.since", rate)}
		s := schedule.Learned{Plan: p}
		n := s.Fetched(d, schedule.Visit{Time: began.Add(aDay), PrevFetch: began, Change: schedule.Changed})
		if n.Interval < time.Hour || n.Interval > 90*aDay || n.FetchTime != began.Add(aDay).Add(n.Interval) {
			t.Errorf("%s, %q: interval %v", text, rate, n.Interval)
		}
		if r := schedule.Priority(s, &n, 1); !(r >= 0) {
			t.Errorf("%s, %q: priority %v", text, rate, r)
		}
	})
}
