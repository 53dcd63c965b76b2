package simulate_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/schedule/simulate"
)

func synthetic(t *testing.T, kind simulate.Rates, importance simulate.Importance, n int) simulate.Population {
	t.Helper()
	p, err := simulate.Synthetic(kind, importance, n, 1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func crawl(t *testing.T, pages simulate.Population, p simulate.Policy, o simulate.CrawlOptions) simulate.Outcome {
	t.Helper()
	out, err := simulate.Crawl(context.Background(), pages, p, o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What is crawled by intervals that are known is what a pencil says.
func TestCrawlAgreesWithFormulas(t *testing.T) {
	for _, kind := range []simulate.Rates{simulate.Cho5, simulate.LogNormal} {
		pages := synthetic(t, kind, simulate.Zipf, 100)
		var weights, perDay []float64
		for _, p := range pages {
			weights, perDay = append(weights, p.Weight), append(perDay, p.PerDay)
		}
		for name, a := range map[string]simulate.Allocation{"even": simulate.EvenAllocation, "LambdaCrawl": simulate.LambdaCrawl, "by age": simulate.AgeOptimal} {
			visits := a(weights, perDay, 100./10)
			fresh, age := simulate.Expected(weights, perDay, visits)
			// The budget is not to matter here, only the intervals are.
			p := simulate.Policy{Name: name, Order: simulate.OldestFirst, Allocation: func(_, _ []float64, _ float64) []float64 { return visits }}
			out := crawl(t, pages, p, simulate.CrawlOptions{PerDay: 4000, Duration: 1200 * day, Measure: 400 * day, Cycle: 2 * time.Hour})
			if math.Abs(out.Weighted-fresh) > 0.004 || math.Abs(out.WeightedAge.Hours()/24-age) > 0.02*age+0.02 {
				t.Errorf("%s, %s: fresh %.4f, %.3f days old; want %.4f and %.3f", kind, name, out.Weighted, out.WeightedAge.Hours()/24, fresh, age)
			}
		}
	}
}

// An allocation takes its budget, and the optimum is one.
func TestAllocations(t *testing.T) {
	pages := synthetic(t, simulate.LogNormal, simulate.Zipf, 300)
	var weights, perDay []float64
	for _, p := range pages {
		weights, perDay = append(weights, p.Weight), append(perDay, p.PerDay)
	}
	best, _ := simulate.Expected(weights, perDay, simulate.Optimal(weights, perDay, 20))
	_, least := simulate.Expected(weights, perDay, simulate.AgeOptimal(weights, perDay, 20))
	for name, a := range map[string]simulate.Allocation{"even": simulate.EvenAllocation, "optimal": simulate.Optimal, "by age": simulate.AgeOptimal, "Azar": simulate.Azar, "LambdaCrawl": simulate.LambdaCrawl, "proportional": simulate.Proportional} {
		visits := a(weights, perDay, 20)
		sum := 0.0
		for _, f := range visits {
			sum += f
		}
		if math.Abs(sum-20) > 0.001 {
			t.Errorf("%s takes %v", name, sum)
		}
		fresh, age := simulate.Expected(weights, perDay, visits)
		if fresh > best+1e-9 || age < least-1e-6 {
			t.Errorf("%s: fresh %v, optimum %v; age %v, optimum %v", name, fresh, best, age, least)
		}
	}
}

// A population of real histories is measured as its pages are one by one.
func TestCrawlOfHistoriesAgreesWithRun(t *testing.T) {
	at := func(days float64) time.Time { return start.Add(time.Duration(days * float64(day))) }
	p := simulate.Page{URL: "http://example.org/", Events: []simulate.Event{
		{Time: at(-1), Kind: simulate.Appears}, {Time: at(5), Kind: simulate.Modified}, {Time: at(6), Kind: simulate.Modified}, {Time: at(20), Kind: simulate.Modified}, {Time: at(38), Kind: simulate.Modified},
	}}
	one := simulated(t, []simulate.Page{p}, schedule.Default{DefaultInterval: 10 * day}, simulate.Options{Start: start, Duration: 40 * day})
	pages, err := simulate.Histories([]simulate.Page{p}, simulate.Uniform, 1)
	if err != nil {
		t.Fatal(err)
	}
	out := crawl(t, pages, simulate.Policy{Schedule: schedule.Default{DefaultInterval: 10 * day}}, simulate.CrawlOptions{Start: start, Duration: 40 * day, Measure: -1, Cold: true})
	want := one.Total
	if math.Abs(out.Freshness-want.Freshness) > 1e-9 || math.Abs((out.Age-want.Age).Seconds()) > 1 || out.Fetches != want.Visits || out.Weighted != out.Freshness {
		t.Errorf("fresh %v, age %v, %d fetches; want %v", out.Freshness, out.Age, out.Fetches, want)
	}
}

// Time in which a page is not there, and known not to be, has nothing to do with freshness.
func TestPagesThatComeAndGo(t *testing.T) {
	at := func(days float64) time.Time { return start.Add(time.Duration(days * float64(day))) }
	pages, err := simulate.Histories([]simulate.Page{
		{URL: "a", Events: []simulate.Event{{Time: at(0), Kind: simulate.Appears}, {Time: at(15), Kind: simulate.Deleted}, {Time: at(55), Kind: simulate.Appears}}},
		{URL: "b", Weight: 1, Events: []simulate.Event{{Time: at(85), Kind: simulate.Appears}}},
		{URL: "c", Weight: 3, Events: []simulate.Event{{Time: at(200), Kind: simulate.Appears}}},
	}, simulate.Zipf, 1)
	if err != nil {
		t.Fatal(err)
	}
	if pages[0].Weight != 1 || pages[2].Weight != 1.5 {
		t.Errorf("%v", pages)
	}
	out := crawl(t, pages, simulate.Policy{Schedule: schedule.Default{DefaultInterval: 10 * day}}, simulate.CrawlOptions{Start: start, Duration: 100 * day, Measure: -1, Cold: true, Points: 1})
	// The first is visited on days 0, 10, 20, 35, 57.5 and 67.5 or so: gone makes intervals longer. It is
	// stale from 15 to 20 and from 55 on until it is found; in between there is nothing to be fresh.
	f := out.Pages[0]
	gone := crawl(t, pages[:1], simulate.Policy{Schedule: schedule.Default{DefaultInterval: 10 * day}}, simulate.CrawlOptions{Start: start, Duration: 20 * day, Measure: -1, Cold: true})
	if math.Abs(gone.Freshness-15./20) > 1e-9 {
		t.Errorf("until it is gone: fresh %v", gone.Freshness)
	}
	if !(f.Freshness > 0.7 && f.Freshness < 0.95) || f.Visits < 5 {
		t.Errorf("%+v", f)
	}
	if out.Pages[1].Freshness != 1 || out.Pages[1].Visits != 2 || out.Pages[2].Visits != 0 || out.Starved != 0 {
		t.Errorf("%+v, starved %v", out.Pages, out.Starved)
	}
}

// aSiteThatGrows has one page in the first month and many after ten years, a third of which are
// gone by then.
func aSiteThatGrows(t *testing.T) simulate.Population {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	const years = 10 * 365
	var pages []simulate.Page
	for i := range 240 {
		p := simulate.Page{URL: fmt.Sprint("http://example.org/", i)}
		at := years * (float64(i) + rnd.Float64()) / 240
		end := years * 1.5 * (1 - math.Log(1-rnd.Float64()))
		if i%3 == 0 {
			end = at + (years-at)*rnd.Float64()
		}
		every := 60 * math.Exp(rnd.NormFloat64())
		kind := simulate.Appears
		for ; at < min(end, years); at += rnd.ExpFloat64() * every {
			p.Events = append(p.Events, simulate.Event{Time: start.Add(time.Duration(at * float64(day))), Kind: kind})
			kind = simulate.Modified
		}
		if end < years {
			p.Events = append(p.Events, simulate.Event{Time: start.Add(time.Duration(end * float64(day))), Kind: simulate.Deleted})
		}
		pages = append(pages, p)
	}
	population, err := simulate.Histories(pages, simulate.Uniform, 1)
	if err != nil {
		t.Fatal(err)
	}
	return population
}

// On a site that begins with one page and has a budget for many, pages are unknown before they
// appear: each is found, and the budget is used, but not for pages that are gone.
func TestASiteThatGrows(t *testing.T) {
	pages := aSiteThatGrows(t)
	born := map[string]time.Time{}
	for i := range pages {
		born[pages[i].URL] = pages[i].Events[0].Time
	}
	for _, every := range []float64{30, 90} {
		perDay := float64(len(pages)) / every
		learned := simulate.Learning("learned", schedule.Learned{})
		plan, known, longest := learned.Plan, 0, 0.
		learned.Plan = func(old schedule.FetchSchedule, k simulate.PlanInput) (schedule.FetchSchedule, error) {
			if len(k.Records) < known {
				t.Errorf("1/%gd, %v: %d pages, %d before", every, k.Now, len(k.Records), known)
			}
			known = len(k.Records)
			for i := range k.Records {
				d := &k.Records[i]
				waits := k.Now.Sub(born[d.URL])
				if waits < 0 {
					t.Fatalf("1/%gd, %v: %s appears in %v", every, k.Now, d.URL, -waits)
				}
				if d.LastFetch.IsZero() {
					longest = max(longest, waits.Hours()/24)
				}
			}
			return plan(old, k)
		}
		out, err := simulate.Compare(t.Context(), pages, []simulate.Policy{learned, simulate.Constant(len(pages), perDay), simulate.Optimum()},
			simulate.CrawlOptions{PerDay: perDay, Measure: 360 * day})
		if err != nil {
			t.Fatal(err)
		}
		l, c, best := out[0], out[1], out[2]
		var text bytes.Buffer
		if err := simulate.WriteComparison(&text, out); err != nil {
			t.Fatal(err)
		}
		t.Logf("1/%gd\n%s", every, text.String())
		if known != len(pages) || longest > 3 {
			t.Errorf("1/%gd: %d pages were found, one after %.1f days", every, known, longest)
		}
		if l.Weighted < 0.98*c.Weighted || l.First < 0.95*c.First {
			t.Errorf("1/%gd: learned %.4f, at first %.4f; constant interval %.4f and %.4f", every, l.Weighted, l.First, c.Weighted, c.First)
		}
		if best.Weighted < c.Weighted || best.Weighted < l.Weighted {
			t.Errorf("1/%gd: the optimum %.4f, learned %.4f, constant interval %.4f", every, best.Weighted, l.Weighted, c.Weighted)
		}
		days := out[0].Timeline[len(out[0].Timeline)-1].To.Sub(start).Hours()/24 - 360
		for _, o := range out {
			if used := float64(o.Fetches) / (days * perDay); used < 0.95 || used > 1.0001 {
				t.Errorf("1/%gd: %s uses %.3f of the budget", every, o.Policy, used)
			}
		}
		// It is the mean over what there was at each moment, not over all that there ever were.
		if got := l.Every.Hours() / 24; got > 0.7*every {
			t.Errorf("1/%gd: a page every %v days", every, got)
		}
		if every == 30 && l.Longest > 90*day+6*time.Hour {
			t.Errorf("a page with a copy was left alone for %v", l.Longest)
		}
	}
}

// The expectation of an interval is what many draws of it are on average, also when rates
// change in the middle.
func TestShiftedRates(t *testing.T) {
	const n = 300
	made := make([]simulate.Page, n)
	random := make(simulate.Population, n)
	for i := range made {
		first := simulate.Poisson("x", start, 100*day, 20*day, uint64(i))
		second := simulate.Poisson("x", start.Add(100*day), 100*day, 5*day, uint64(i+n))
		made[i] = simulate.Page{URL: string(rune('a' + i)), Events: append(first.Events, second.Events[1:]...)}
		random[i] = simulate.Subject{URL: made[i].URL, Weight: 1, PerDay: 1. / 20}
	}
	drawn, err := simulate.Histories(made, simulate.Uniform, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := simulate.Policy{Schedule: schedule.Default{DefaultInterval: 7 * day}}
	o := simulate.CrawlOptions{Start: start, Duration: 200 * day, Measure: 100 * day, Cold: true, ShiftBy: 4, ShiftAfter: 100 * day}
	a, b := crawl(t, drawn, p, o), crawl(t, random, p, o)
	if math.Abs(a.Freshness-b.Freshness) > 0.015 || math.Abs(a.First-b.First) > 0.015 || math.Abs((a.Age-b.Age).Hours()) > 3 {
		t.Errorf("drawn: %v, %v, %v; expected: %v, %v, %v", a.First, a.Freshness, a.Age, b.First, b.Freshness, b.Age)
	}
	adaptive := simulate.Policy{Schedule: schedule.Adaptive{}}
	a, b = crawl(t, drawn, adaptive, o), crawl(t, random, adaptive, o)
	if math.Abs(float64(a.Fetches)/float64(b.Fetches)-1) > 0.06 || math.Abs(a.Freshness-b.Freshness) > 0.03 {
		t.Errorf("adaptive, drawn: %d, %v; expected: %d, %v", a.Fetches, a.Freshness, b.Fetches, b.Freshness)
	}
}

// A budget is kept, and the same arguments give the same outcome.
func TestCompare(t *testing.T) {
	pages := synthetic(t, simulate.Cho5, simulate.Zipf, 300)
	o := simulate.CrawlOptions{PerDay: 10, Duration: 90 * day, Seed: 3, LastModified: true, Conditional: true}
	policies := simulate.Stock(len(pages), o.PerDay)
	a, err := simulate.Compare(context.Background(), pages, policies, o)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range policies {
		if b := crawl(t, pages, p, o); !reflect.DeepEqual(a[i], b) {
			t.Errorf("%s: not the same again", p.Name)
		}
		if most := 10 * 60; a[i].Fetches > most || a[i].Fetches < most/2 || a[i].Policy != p.Name {
			t.Errorf("%s: %d fetches", p.Name, a[i].Fetches)
		}
		sum := 0
		for _, c := range a[i].Timeline {
			sum += c.Fetches
		}
		for _, f := range a[i].Pages {
			sum -= f.Visits
		}
		if before := 10 * 30; sum < before/3 || sum > before {
			t.Errorf("%s: %d fetches before it counts", p.Name, sum)
		}
	}
}

func TestCrawlRefuses(t *testing.T) {
	pages := synthetic(t, simulate.Cho5, simulate.Uniform, 3)
	s := simulate.Policy{Name: "x", Schedule: schedule.Default{}}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for want, c := range map[string]struct {
		ctx   context.Context
		pages simulate.Population
		p     simulate.Policy
		o     simulate.CrawlOptions
	}{
		"simulate: x: context canceled":                                    {ctx, pages, s, simulate.CrawlOptions{}},
		"simulate: x: the population has no pages":                         {nil, nil, s, simulate.CrawlOptions{}},
		"simulate: x: no schedule":                                         {nil, pages, simulate.Policy{Name: "x"}, simulate.CrawlOptions{}},
		"simulate: x: a budget of NaN fetches a day":                       {nil, pages, s, simulate.CrawlOptions{PerDay: math.NaN()}},
		"simulate: x: an allocation of an unbounded budget":                {nil, pages, simulate.Policy{Name: "x", Allocation: simulate.EvenAllocation}, simulate.CrawlOptions{}},
		"simulate: x: nothing is left to measure after 48h0m0s of 24h0m0s": {nil, pages, s, simulate.CrawlOptions{Duration: day, Measure: 2 * day}},
		"simulate: x: a duration of 24h0m0s in cycles of 48h0m0s":          {nil, pages, s, simulate.CrawlOptions{Duration: day, Cycle: 2 * day}},
	} {
		if c.ctx == nil {
			c.ctx = context.Background()
		}
		if _, err := simulate.Crawl(c.ctx, c.pages, c.p, c.o); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := simulate.Compare(ctx, pages, []simulate.Policy{s}, simulate.CrawlOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	for _, err := range []error{
		func() error { _, err := simulate.Synthetic("x", simulate.Zipf, 1, 1); return err }(),
		func() error { _, err := simulate.Synthetic(simulate.Cho5, "x", 1, 1); return err }(),
		func() error { _, err := simulate.Synthetic(simulate.Cho5, simulate.Zipf, 0, 1); return err }(),
		func() error { _, err := simulate.Histories(nil, simulate.Zipf, 1); return err }(),
	} {
		if err == nil {
			t.Error("it is taken")
		}
	}
}

// The pictures are XML, with a line for each schedule.
func TestCharts(t *testing.T) {
	pages := synthetic(t, simulate.LogNormal, simulate.Correlated, 50)
	policies := func(perDay float64) []simulate.Policy {
		return append(simulate.Stock(len(pages), perDay)[:2], simulate.Policy{Name: "a < b & c", Allocation: simulate.Azar})
	}
	o := simulate.CrawlOptions{PerDay: 3, Duration: 90 * day}
	outcomes, err := simulate.Compare(context.Background(), pages, policies(3), o)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := simulate.Curve(context.Background(), pages, policies, o, []float64{1, 10})
	if err != nil {
		t.Fatal(err)
	}
	if !(curve[0].Outcomes[0].Weighted < curve[1].Outcomes[0].Weighted) {
		t.Errorf("ten times as many fetches: %v, then %v", curve[0].Outcomes[0].Weighted, curve[1].Outcomes[0].Weighted)
	}
	var text bytes.Buffer
	if err := errors.Join(simulate.WriteComparison(&text, outcomes), simulate.WriteCurve(&text, len(pages), curve)); err != nil || strings.Count(text.String(), "a < b & c") != 2 {
		t.Errorf("%v\n%s", err, text.String())
	}
	for name, draw := range map[string]func(io.Writer) error{
		"over time": func(w io.Writer) error { return simulate.WriteTimelineSVG(w, outcomes) },
		"rates":     func(w io.Writer) error { return simulate.WriteRatesSVG(w, outcomes) },
		"curve":     func(w io.Writer) error { return simulate.WriteCurveSVG(w, len(pages), curve) },
		"nothing":   func(w io.Writer) error { return simulate.WriteRatesSVG(w, nil) },
	} {
		var b bytes.Buffer
		if err := draw(&b); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
			t.Errorf("%s: a place that is none:\n%s", name, b.String())
		}
		named := strings.Count(b.String(), "a &lt; b &amp; c")
		if named != 1 && name != "nothing" {
			t.Errorf("%s: %d names", name, named)
		}
		d := xml.NewDecoder(&b)
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if err := draw(full{}); err == nil {
			t.Errorf("%s: a disk that is full is no error", name)
		}
	}
}

// The reference results. With few pages, those that a few pages decide are not asked for:
// the exhaustive form asks for all, with as many pages as are behind the published figures.
func TestReference(t *testing.T) {
	testlevel.SkipInRace(t)
	n := 30
	if testlevel.Exhaustive {
		n = simulate.ReferencePages
	}
	checks := 0
	for c, err := range simulate.Reference(context.Background(), n) {
		if err != nil {
			t.Fatal(err)
		}
		checks++
		if testlevel.Exhaustive {
			t.Log(c)
		} else if c.Within == 0 {
			c.Want *= 0.8
		} else if c.Within < 0 && c.Want > 0 {
			c.Want *= 2
		} else {
			c.Within *= 3
		}
		if !c.OK() {
			t.Error(c)
		}
	}
	if checks < 40 {
		t.Errorf("%d checks", checks)
	}
}

// On real histories, the schedule that learns is not below a constant interval, except by what
// chance does to a single course of events.
func TestReferenceHistories(t *testing.T) {
	for _, name := range []string{"golang-website", "curl-www"} {
		f, err := os.Open("testdata/histories/" + name + ".tsv")
		if err != nil {
			t.Fatal(err)
		}
		all, err := simulate.ParseHistory(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		importances, budgets := []simulate.Importance{simulate.Zipf}, []float64{30}
		if testlevel.Exhaustive {
			importances, budgets = simulate.Importances(), []float64{90, 30, 7}
		}
		for _, importance := range importances {
			pages, err := simulate.Histories(all, importance, 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, every := range budgets {
				o := simulate.CrawlOptions{PerDay: float64(len(pages)) / every, Cycle: day}
				if !testlevel.Exhaustive { // the last years
					last := all[0].Events[0].Time
					for _, p := range all {
						if e := p.Events[len(p.Events)-1].Time; e.After(last) {
							last = e
						}
					}
					o.Start, o.Duration = last.Add(-2*365*day), 2*365*day
				}
				stock := simulate.Stock(len(pages), o.PerDay)
				out, err := simulate.Compare(context.Background(), pages, []simulate.Policy{stock[0], stock[2], simulate.Optimum()}, o)
				if err != nil {
					t.Fatal(err)
				}
				var text bytes.Buffer
				if err := simulate.WriteComparison(&text, out); err != nil {
					t.Fatal(err)
				}
				if t.Logf("%s, importance %s, 1/%gd\n%s", name, importance, every, text.String()); out[0].Weighted < 0.998*out[1].Weighted {
					t.Errorf("%s, importance %s, 1/%gd: learned %.4f, constant interval %.4f", name, importance, every, out[0].Weighted, out[1].Weighted)
				}
			}
		}
	}
}

// If no visit is worth more than another, the schedule that learns and the optimum still use the
// budget, at any budget.
func TestPagesThatChangeTooOften(t *testing.T) {
	t.Parallel()
	const n = 100
	pages, err := simulate.Synthetic(simulate.Hourly, simulate.Uniform, n, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, every := range []float64{1, 30} {
		stock := simulate.Stock(n, n/every)
		policies := []simulate.Policy{stock[0], stock[2], simulate.Optimum()}
		out, err := simulate.Compare(t.Context(), pages, policies, simulate.CrawlOptions{PerDay: n / every, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got := out[0].Weighted / out[1].Weighted; got < 0.85 {
			t.Errorf("1/%gd: learned has %.3f of the freshness of a constant interval", every, got)
		}
		if got := out[2].Weighted / out[1].Weighted; got < 0.99 || got > 1.01 {
			t.Errorf("1/%gd: the optimum has %.3f of the freshness of a constant interval, which nothing exceeds", every, got)
		}
	}
}

// All stock policies can be distinguished, and 25 years are not counted in days.
func TestPicturesOfManyPolicies(t *testing.T) {
	var outcomes []simulate.Outcome
	for _, p := range simulate.Stock(10, 1) {
		o := simulate.Outcome{Policy: p.Name, Pages: []simulate.PageOutcome{{PerDay: 1, Visits: 1, Every: day}}}
		for year := range 25 {
			o.Timeline = append(o.Timeline, simulate.TimelinePoint{From: start.AddDate(year, 0, 0), To: start.AddDate(year+1, 0, 0), Weighted: .5})
		}
		outcomes = append(outcomes, o)
	}
	var b bytes.Buffer
	if err := simulate.WriteTimelineSVG(&b, outcomes); err != nil {
		t.Fatal(err)
	}
	styles := map[string]bool{}
	for line := range strings.Lines(b.String()) {
		if _, style, ok := strings.Cut(line, `h12" `); ok {
			style, _, _ = strings.Cut(style, "/>")
			styles[style] = true
		}
	}
	if len(styles) != len(outcomes) {
		t.Errorf("%d styles for %d policies", len(styles), len(outcomes))
	}
	if text := b.String(); !strings.Contains(text, ">years<") || !strings.Contains(text, ">20<") || strings.Contains(text, ">30<") {
		t.Errorf("the marks are not years:\n%s", text)
	}
	b.Reset()
	if err := simulate.WriteRatesSVG(&b, outcomes); err != nil {
		t.Fatal(err)
	}
	if rings := strings.Count(b.String(), `r="1.6" fill="none"`); rings != len(outcomes)-12 {
		t.Errorf("%d rings", rings)
	}
}
