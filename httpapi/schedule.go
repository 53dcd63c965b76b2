package httpapi

import (
	"math"
	"strconv"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/schedule"
)

// scheduleReport is what the schedule has learned, and what budgets achieve.
type scheduleReport struct {
	Freshness *freshness `json:"freshness,omitempty"` // nil if there is no plan
	// Learned counts the copies of pages that have shown how often they change; Estimated also counts those
	// for which it is estimated from other pages.
	Learned   int `json:"learned"`
	Estimated int `json:"estimated"`
	// Ages is how long copies have been out of date, Visited how long ago pages were visited, Late how long
	// they have been due.
	Ages    percentiles    `json:"out_of_date_seconds"`
	Visited percentiles    `json:"visited_ago_seconds"`
	Late    percentiles    `json:"overdue_seconds"`
	Curve   []curvePoint   `json:"curve"`
	Needs   []budgetNeeded `json:"needs"`
	// Asked is the budget of the request, and Reaches what it achieves.
	Asked   float64     `json:"asked_budget_per_day,omitempty"`
	Reaches float64     `json:"asked_budget_reaches,omitempty"`
	Hosts   []hostFresh `json:"hosts"` // those that lose most
	Noisy   []noisyHost `json:"noisy"` // where nearly every visit finds a change
}

type percentiles struct {
	P10 float64 `json:"p10"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

type curvePoint struct {
	PerDay    float64 `json:"per_day"`
	Freshness float64 `json:"fresh_by_importance"`
}

type budgetNeeded struct {
	Fresh    float64 `json:"fresh_by_importance"`
	Possible bool    `json:"possible"`
	PerDay   float64 `json:"per_day"`
	Lacks    float64 `json:"lacks"` // negative if the budget is more than enough
}

type hostFresh struct {
	Host     string  `json:"host"`
	Pages    int     `json:"pages"`
	Never    int     `json:"never_visited"`
	Overdue  int     `json:"overdue"`
	Weighted float64 `json:"fresh_by_importance"`
	Lost     float64 `json:"lost"`
}

type noisyHost struct {
	Host    string `json:"host"`
	Checked int    `json:"checked"`
	Changed int    `json:"changed"`
}

// Chart is a picture of the curve.
func (s scheduleReport) Chart() chart {
	if s.Freshness == nil {
		return chart{}
	}
	return curveChart(s.Curve, s.Freshness.Budget)
}

func (h *Handler) schedule(q *request) (any, error) {
	s := scheduleReport{Curve: []curvePoint{}, Needs: []budgetNeeded{}, Hosts: []hostFresh{}, Noisy: []noisyHost{}}
	f := h.planned(q.Context())
	if f == nil {
		return s, nil
	}
	s.Freshness = newFreshness(f)
	s.Learned, s.Estimated = f.Learned, f.Estimated
	s.Ages, s.Visited, s.Late = newPercentiles(f.Ages), newPercentiles(f.Visited), newPercentiles(f.Late)
	for _, c := range f.Hosts {
		s.Hosts = append(s.Hosts, hostFresh{c.Host, c.Pages, c.Never, c.Overdue, c.Weighted, c.Lost})
	}
	for _, n := range f.Noisy {
		s.Noisy = append(s.Noisy, noisyHost(n))
	}
	if f.Forecast == nil {
		return s, nil
	}
	for _, p := range f.Forecast.Curve {
		s.Curve = append(s.Curve, curvePoint(p))
	}
	for _, want := range []float64{0.5, 0.8, 0.9, 0.95, 0.99} {
		s.Needs = append(s.Needs, need(f, want))
	}
	if text := q.URL.Query().Get("budget"); text != "" {
		budget, err := strconv.ParseFloat(text, 64)
		if err != nil || !(budget > 0) || math.IsInf(budget, 0) {
			return nil, badRequestf("budget is %q, not a number of visits a day", text)
		}
		s.Asked, s.Reaches = budget, f.Forecast.Reaches(budget)
	}
	return s, nil
}

func need(f *recrawl.Freshness, want float64) budgetNeeded {
	lacks, ok := f.Lacks(want)
	if !ok {
		return budgetNeeded{Fresh: want}
	}
	return budgetNeeded{want, true, f.Budget + lacks, lacks}
}

func newPercentiles(p schedule.Percentiles) percentiles {
	s := func(d time.Duration) float64 { return d.Seconds() }
	return percentiles{s(p.P10), s(p.P50), s(p.P90), s(p.P99), s(p.Max)}
}
