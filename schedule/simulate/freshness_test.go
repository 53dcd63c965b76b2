package simulate_test

import (
	"math"
	"os"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/schedule/simulate"
)

// learning crawls with a schedule that learns, and notes at each plan what it says of the
// freshness of the copies, by all of them, and at every tenth what it forecasts.
func learning(t *testing.T, pages simulate.Population, o simulate.CrawlOptions, every time.Duration) (simulate.Outcome, []schedule.Outlook) {
	t.Helper()
	var told []schedule.Outlook
	p := simulate.Learning("learned", schedule.Learned{})
	p.PlanEvery = every
	p.Plan = func(old schedule.FetchSchedule, k simulate.PlanInput) (schedule.FetchSchedule, error) {
		s := old.(schedule.Learned)
		s.Budget = k.PerDay
		sample, census := s.NewSample(k.Now), s.NewCensus(k.Now)
		for i := range k.Records {
			sample.Add(&k.Records[i])
			census.Add(&k.Records[i])
		}
		s.Plan = sample.Plan(schedule.PlanOptions{Visits: k.Visits, Outlook: len(told)%10 == 9})
		out := schedule.Outlook{At: k.Now}
		if s.Plan.Outlook != nil {
			out = *s.Plan.Outlook
		}
		out.Condition, out.Hosts = census.Condition(0)
		told = append(told, out)
		return s, nil
	}
	return crawl(t, pages, p, o), told
}

func history(t *testing.T, name string) simulate.Population {
	t.Helper()
	f, err := os.Open("testdata/histories/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := simulate.ParseHistory(f)
	if err != nil {
		t.Fatal(err)
	}
	p, err := simulate.Histories(h, simulate.Zipf, 1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What is said of freshness is true: at all times of what is, and in the long run of what
// the budget reaches, and of the budget that reaches more.
func TestFreshnessIsTrue(t *testing.T) {
	testlevel.SkipInRace(t)
	n := 200
	if testlevel.Exhaustive {
		n = 10_000
	}
	half := simulate.CrawlOptions{Duration: 600 * day, Measure: 300 * day, Cycle: 3 * time.Hour, Points: 12}
	for name, c := range map[string]struct {
		pages     simulate.Population
		interval  float64 // days, if all were fetched alike
		o         simulate.CrawlOptions
		plan      time.Duration
		tolerance float64 // at any time
		more      float64 // freshness to be reached
	}{
		"cho5":              {synthetic(t, simulate.Cho5, simulate.Zipf, n), 15, half, 0, 0.05, 0.05},
		"log-normal":        {synthetic(t, simulate.LogNormal, simulate.Zipf, n), 10, half, 0, 0.05, 0.05},
		"important changes": {synthetic(t, simulate.LogNormal, simulate.Correlated, n), 10, half, 0, 0.05, 0.05},
		// Changes of a real site come in bursts.
		"real": {history(t, "golang-website.tsv"), 30, simulate.CrawlOptions{Duration: 2000 * day, Points: 12}, 20 * day, 0.08, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := c.o
			o.PerDay = float64(len(c.pages)) / c.interval
			out, told := learning(t, c.pages, o, c.plan)
			near := func(what string, got, want, tolerance float64) {
				t.Helper()
				if t.Logf("%s: %.3f, said to be %.3f", what, want, got); !(math.Abs(got-want) <= tolerance) {
					t.Error("that is too much")
				}
			}
			var said, truth [3]float64 // freshness, by importance, and age
			parts := 0.0
			for _, part := range out.Timeline[len(out.Timeline)/3:] {
				var here [3]float64
				plans := 0.0
				for i := range told {
					if l := &told[i]; !l.At.Before(part.From) && l.At.Before(part.To) {
						here[0] += l.Freshness
						here[1] += l.Weighted
						here[2] += l.WeightedAge.Hours() / 24
						plans++
					}
				}
				if plans == 0 {
					continue
				}
				near("fresh at one time", here[0]/plans, part.Freshness, c.tolerance)
				near("important fresh at one time", here[1]/plans, part.Weighted, c.tolerance)
				for i := range said {
					said[i] += here[i] / plans
				}
				truth[0] += part.Freshness
				truth[1] += part.Weighted
				parts++
			}
			near("fresh", said[0]/parts, truth[0]/parts, 0.03)
			near("important fresh", said[1]/parts, truth[1]/parts, 0.03)
			age := out.WeightedAge.Hours() / 24
			near("days out of date", said[2]/parts, age, 0.3*age+0.02) // cycles are of 0.125 days and more
			f := told[len(told)/20*10+9].Forecast
			near("forecast", f.Freshness, out.Weighted, 0.04)
			if c.more == 0 {
				return
			}
			want := f.Freshness + c.more
			perDay, ok := f.Needs(want)
			if !ok {
				t.Fatalf("nothing reaches %v", want)
			}
			o.PerDay = perDay
			more, _ := learning(t, c.pages, o, c.plan)
			near("with the budget for more", want, more.Weighted, 0.04)
		})
	}
}
