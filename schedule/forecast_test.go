package schedule_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/schedule"
)

// Between the points of its curve a forecast goes with the logarithm of the budget,
// below the first in proportion, and above the last no further; what it says is
// needed for a freshness reaches that.
func TestForecastIsReadOffItsCurve(t *testing.T) {
	f := schedule.Forecast{Curve: []schedule.CurvePoint{{PerDay: 1, Freshness: 0.2}, {PerDay: 4, Freshness: 0.4}, {PerDay: 16, Freshness: 0.8}}}
	for _, c := range []struct{ perDay, freshness float64 }{
		{0.25, 0.05}, {0.5, 0.1}, {1, 0.2}, {2, 0.3}, {4, 0.4}, {8, 0.6}, {16, 0.8},
	} {
		if got := f.Reaches(c.perDay); math.Abs(got-c.freshness) > 1e-12 {
			t.Errorf("%v a day reach %v, want %v", c.perDay, got, c.freshness)
		}
		if got, ok := f.Needs(c.freshness); !ok || math.Abs(got-c.perDay) > 1e-9 {
			t.Errorf("%v needs %v, %v, want %v", c.freshness, got, ok, c.perDay)
		}
	}
	for perDay, want := range map[float64]float64{0: 0, -1: 0, math.NaN(): 0, 17: 0.8, math.Inf(1): 0.8} {
		if got := f.Reaches(perDay); got != want {
			t.Errorf("%v a day reach %v, want %v", perDay, got, want)
		}
	}
	for _, none := range []float64{0, -1, math.NaN()} {
		if got, ok := f.Needs(none); got != 0 || !ok {
			t.Errorf("%v needs %v, %v", none, got, ok)
		}
	}
	for _, much := range []float64{0.81, 1, math.Inf(1)} {
		if got, ok := f.Needs(much); ok {
			t.Errorf("%v is reached by %v", much, got)
		}
	}
	none := schedule.Forecast{}
	if got, ok := none.Needs(0.1); none.Reaches(5) != 0 || ok {
		t.Errorf("without a curve: %v, %v", got, none.Reaches(5))
	}
}

func TestWhenTheBacklogIsGone(t *testing.T) {
	for _, c := range []struct {
		never          int
		visited, found float64
		measured, ok   bool
		after          time.Duration
	}{
		{10, 5, 3, true, true, 5 * aDay},
		{10, 5, 0, true, true, 2 * aDay},
		{0, 0, 9, true, true, 0},
		{0, 0, 0, false, true, 0},
		{10, 5, 3, false, false, 0},
		{10, 5, 5, true, false, 0},
		{10, 5, 6, true, false, 0},
		{36500, 1, 0, true, true, 36500 * aDay},
		{36501, 1, 0, true, false, 0}, // in more than a hundred years
	} {
		o := schedule.Outlook{At: began, Trend: schedule.BacklogTrend{Visited: c.visited, Found: c.found}}
		o.Never = c.never
		if c.measured {
			o.Trend.Since = began.Add(-aDay)
		}
		if at, ok := o.BacklogEnd(); ok != c.ok || ok && !at.Equal(began.Add(c.after)) {
			t.Errorf("%+v: %v, %v", c, at.Sub(began), ok)
		}
	}
}

// The pace is that from one plan to the next: of pages that were found, and of those
// that have been visited since.
func TestPaceOfFirstVisits(t *testing.T) {
	look := func(at time.Time, pages, never int, old *schedule.Outlook) schedule.Outlook {
		s := schedule.Learned{Budget: 10}
		if old != nil {
			s.Plan = &schedule.Plan{Outlook: old}
		}
		x := s.NewSample(at)
		for i := range pages {
			d := crawldb.Datum{URL: fmt.Sprintf("http://a.test/%d", i), Score: 1, Status: crawldb.Unfetched, FetchTime: began}
			if i >= never {
				d.Status, d.LastFetch, d.FetchTime, d.Interval = crawldb.Fetched, began, began.Add(aDay), aDay
			}
			x.Add(&d)
		}
		return *x.Plan(schedule.PlanOptions{Outlook: true}).Outlook
	}
	first := look(began, 20, 12, nil)
	if first.Pages != 20 || first.Never != 12 || first.Trend != (schedule.BacklogTrend{}) {
		t.Fatalf("%+v", first)
	}
	if _, ok := first.BacklogEnd(); ok {
		t.Error("a pace is known from the beginning")
	}
	// Two days later there are six more, and nine were visited.
	next := look(began.Add(2*aDay), 26, 9, &first)
	if want := (schedule.BacklogTrend{Since: began, Visited: 4.5, Found: 3}); next.Trend != want {
		t.Errorf("%+v, want %+v", next.Trend, want)
	}
	if at, ok := next.BacklogEnd(); !ok || !at.Equal(began.Add(8*aDay)) {
		t.Errorf("gone %v, %v", at, ok)
	}
	// A quarter of an hour tells nothing, and neither does a clock that went back. But if there is
	// no earlier pace, a quarter of an hour has to do.
	for _, ago := range []time.Duration{15 * time.Minute, 0, -time.Hour} {
		if soon := look(next.At.Add(ago), 40, 1, &next); soon.Trend != next.Trend {
			t.Errorf("%v later: %+v", ago, soon.Trend)
		}
	}
	if soon := look(began.Add(15*time.Minute), 21, 12, &first); soon.Trend != (schedule.BacklogTrend{Since: began, Visited: 96, Found: 96}) {
		t.Errorf("%+v", soon.Trend)
	}
	// Pages that are gone were not found, and did not become visited ones.
	if fewer := look(began.Add(aDay), 10, 10, &first); fewer.Trend != (schedule.BacklogTrend{Since: began}) {
		t.Errorf("%+v", fewer.Trend)
	}
}
