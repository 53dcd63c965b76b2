package schedule_test

import (
	"fmt"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
)

// Two pages are visited as often as the schedule says. One has changed each time, and
// a visit to it is soon worth nothing; the other never, and is left alone for nearly as
// long as any page is.
func ExampleLearned() {
	var s schedule.Learned // without a plan, around the interval of Default
	for _, change := range []schedule.Change{schedule.Changed, schedule.Unchanged} {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		d := s.Init(crawldb.Datum{URL: "http://example.com/", Score: 1}, now)
		d = s.Fetched(d, schedule.Visit{Time: now})
		d.LastFetch = now // an update notes that
		for range 4 {
			now = d.FetchTime
			d = s.Fetched(d, schedule.Visit{Time: now, PrevFetch: d.LastFetch, Change: change})
			d.LastFetch = now
		}
		rate, _ := schedule.RateOf(&d)
		fmt.Printf("%s: once in %.0f days, fetched every %.0f\n", change, 1/rate.PerDay(), s.Explain(&d).Interval.Hours()/24)
	}
	// Output:
	// changed: once in 9 days, fetched every 33
	// unchanged: once in 436 days, fetched every 89
}

// Without a Crawler, make a plan from a sample of the records. This one has 400 visits a day
// for a thousand pages. Their servers have said once when each last changed: a day ago, ten
// days, or a year.
func ExampleSample_Plan() {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := schedule.Learned{Budget: 100}
	records := make([]crawldb.Datum, 1000)
	for i := range records {
		d := &records[i]
		*d = crawldb.Datum{URL: fmt.Sprintf("http://example.com/%d", i), Status: crawldb.Fetched, Score: 1, LastFetch: now}
		days := []float64{1, 10, 365}[i%3]
		*d = s.Fetched(*d, schedule.Visit{Time: now, Modified: now.Add(-time.Duration(days * 24 * float64(time.Hour)))})
	}
	sample := s.NewSample(now)
	for i := range records {
		sample.Add(&records[i])
	}
	s.Plan = sample.Plan(schedule.PlanOptions{})

	fmt.Printf("%.0f pages, %.0f of %.0f visits a day\n", s.Plan.Pages, s.Plan.Needed, s.Plan.Budget)
	for i := range 3 {
		w := s.Explain(&records[i])
		fmt.Printf("changes once in %.0f days or so: fetched every %.1f\n", 1/w.Rate.PerDay(), w.Interval.Hours()/24)
	}
	text, err := s.Plan.Encode() // to be kept with the crawl
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := schedule.DecodePlan(text)
	fmt.Println(again.Mu == s.Plan.Mu, err)
	// Output:
	// 1000 pages, 100 of 100 visits a day
	// changes once in 11 days or so: fetched every 7.0
	// changes once in 17 days or so: fetched every 8.3
	// changes once in 253 days or so: fetched every 28.5
	// true <nil>
}

func ExampleRate() {
	r := schedule.Rate{Shape: 0.5, Days: 15} // expected of any page: once in 30 days
	for range 3 {
		r = r.Changed(24 * time.Hour)
	}
	fmt.Printf("three changes found in three days: %.2f ± %.2f a day\n", r.PerDay(), r.Deviation())
	r = r.Unchanged(30 * 24 * time.Hour)
	fmt.Printf("and none in thirty more: %.2f ± %.2f a day\n", r.PerDay(), r.Deviation())
	// Output:
	// three changes found in three days: 0.21 ± 0.11 a day
	// and none in thirty more: 0.08 ± 0.04 a day
}
