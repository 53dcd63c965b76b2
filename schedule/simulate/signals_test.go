package simulate_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/schedule/simulate"
)

// With signs of changes more is fresh, by what theory says of those that know them, and what
// they are worth is learned.
func TestSignalsAreLearned(t *testing.T) {
	testlevel.SkipInRace(t)
	pages := synthetic(t, simulate.Cho5, simulate.Zipf, 250)
	without := crawl(t, pages, simulate.Learning("learned", schedule.Learned{}), simulate.CrawlOptions{PerDay: 250. / 30, Duration: 540 * day})
	for _, c := range []struct {
		signals simulate.Signals
		better  bool
	}{
		{simulate.Signals{Recall: .9, Precision: .9}, true}, {simulate.Signals{Recall: .9, Precision: .9, Delay: 6 * time.Hour}, true},
		{simulate.Signals{PerDay: 1}, false},
	} {
		o := simulate.CrawlOptions{PerDay: 250. / 30, Duration: 540 * day, Signals: []simulate.Signals{c.signals}}
		p, q, n := 0., 0., 0.
		l := simulate.Learning("learned", schedule.Learned{})
		plan := l.Plan
		l.Plan = func(old schedule.FetchSchedule, k simulate.PlanInput) (schedule.FetchSchedule, error) {
			if g, ok := k.Signals("h1.example"); ok && k.Now.Sub(start) > 360*day {
				p, q, n = p+g.Precision, q+g.Recall, n+1
			}
			return plan(old, k)
		}
		out, err := simulate.Compare(context.Background(), pages, []simulate.Policy{l, simulate.Optimum(), simulate.SignalOptimum()}, o)
		if err != nil {
			t.Fatal(err)
		}
		if p, q = p/n, q/n; !(n > 20) || math.Abs(p-c.signals.Precision) > .12 || c.better && math.Abs(q-c.signals.Recall) > .12 {
			t.Errorf("%+v: learned precision %.3f and recall %.3f by %v plans", c.signals, p, q, n)
		}
		gain := out[0].Weighted - without.Weighted
		if c.better && gain < .7*(out[2].Weighted-out[1].Weighted) || !c.better && gain < -.012 {
			t.Errorf("%+v: learned gains %.4f, the optimum %.4f", c.signals, gain, out[2].Weighted-out[1].Weighted)
		}
		if c.better && out[2].Weighted < out[1].Weighted+.04 {
			t.Errorf("%+v: the optimum gains %.4f", c.signals, out[2].Weighted-out[1].Weighted)
		}
		if again := crawl(t, pages, simulate.SignalOptimum(), o); again.Weighted != out[2].Weighted || again.Fetches != out[2].Fetches {
			t.Errorf("%+v: not the same again", c.signals)
		}
	}
}

// The expectation that is measured of pages that change at random is what real changes with
// the same signs come to.
func TestSignalsOfHistories(t *testing.T) {
	made := make([]simulate.Page, 300)
	random := make(simulate.Population, len(made))
	for i := range made {
		made[i] = simulate.Poisson("http://a.example/"+strings.Repeat("x", i), start, 300*day, 20*day, uint64(i))
		random[i] = simulate.Subject{URL: made[i].URL, Weight: 1, PerDay: 1. / 20}
	}
	drawn, err := simulate.Histories(made, simulate.Uniform, 1)
	if err != nil {
		t.Fatal(err)
	}
	o := simulate.CrawlOptions{Start: start, Duration: 300 * day, Measure: 100 * day, PerDay: 20, Cold: true, Signals: []simulate.Signals{{Recall: .7, Precision: .6}}}
	p := simulate.SignalOptimum()
	a, b := crawl(t, drawn, p, o), crawl(t, random, p, o)
	if math.Abs(a.Freshness-b.Freshness) > .015 || math.Abs((a.Age-b.Age).Hours()) > 4 {
		t.Errorf("drawn: %v, %v; expected: %v, %v", a.Freshness, a.Age, b.Freshness, b.Age)
	}
	o.Signals = nil
	if c := crawl(t, random, p, o); c.Freshness > b.Freshness-.03 {
		t.Errorf("without signs %v, with them %v", c.Freshness, b.Freshness)
	}
}

func TestParseSignals(t *testing.T) {
	s, err := simulate.ParseSignals("precision=.8, recall=0.6,share=.5,flood=2,delay=1.5d")
	if want := (simulate.Signals{Share: .5, Precision: .8, Recall: .6, PerDay: 2, Delay: 36 * time.Hour}); err != nil || s != want {
		t.Errorf("%+v, %v", s, err)
	}
	for text, want := range map[string]string{
		"": `"" is not of the form`, "recall": `"recall" is not of the form`, "recall=x": `recall="x" is not a number`, "recall=2": "2 is not a share", "recall=NaN": "NaN is not a share",
		"delay=x": `"x" is not a time`, "delay=-1h": `"-1h" is not a time`, "trust=1": `unknown name "trust"`, "flood=-1": "-1 signs a day",
	} {
		if _, err := simulate.ParseSignals(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
