package render

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/schedule"
)

// Freshness reports how fresh the copies are, a line for each figure, and what
// budget would keep shares of the importance fresh.
func Freshness(w io.Writer, f *recrawl.Freshness, wants []float64) {
	fmt.Fprintf(w, "copies:\t%d of %d pages, %.1f %% of the importance of all pages that have content or were never visited\n", f.Copies, f.Pages, 100*f.Covered)
	if f.Estimated > 0 {
		fmt.Fprintf(w, "fresh now:\t%.1f %% of the copies, %.1f %% by importance; estimated for %d, of which %d have shown how often they change\n", 100*f.Freshness, 100*f.Weighted, f.Estimated, f.Learned)
		fmt.Fprintf(w, "out of date for:\t%s; mean %s, by importance %s\n", percentiles(f.Ages), Age(f.Age), Age(f.WeightedAge))
	} else if f.Copies > 0 {
		fmt.Fprintln(w, "fresh now:\tunknown: no page has yet shown how often it changes; -schedule learned finds out")
	}
	if f.Copies > 0 {
		fmt.Fprintf(w, "visited ago:\t%s, at most %s\n", percentiles(f.Visited), Age(f.Visited.Max))
	}
	fmt.Fprintf(w, "overdue:\t%d", f.Overdue)
	if f.Overdue > 0 {
		fmt.Fprintf(w, "; late by %s, at most %s", percentiles(f.Late), Age(f.Late.Max))
		if f.Budget > 0 {
			fmt.Fprintf(w, "; %s of the budget", Days(float64(f.Overdue)/f.Budget))
		}
	}
	fmt.Fprintf(w, "\nnever visited:\t%s\n", backlog(f))
	if f.Budget > 0 {
		fmt.Fprintf(w, "budget:\t%s\n", budgetUsed(f))
	}
	if f.MaxIntervalInForce != f.MaxIntervalSet {
		fmt.Fprintf(w, "longest wait:\t%s\n", stretched(f.MaxIntervalSet, f.MaxIntervalInForce))
	}
	for _, n := range f.Noisy {
		fmt.Fprintf(w, "noise:\t%s\n", noise(n))
	}
	if f.Forecast == nil {
		return
	}
	fmt.Fprintf(w, "in the long run:\t%.1f %% of the importance fresh with that budget\n", 100*f.Forecast.Freshness)
	if f.Forecast.Least > f.Budget*1.01 {
		fmt.Fprintf(w, "greatest intervals:\tneed %s visits a day, %s more than the budget: pages are late\n", digits3(f.Forecast.Least), digits3(f.Forecast.Least-f.Budget))
	}
	for _, want := range wants {
		fmt.Fprintf(w, "%g %% fresh:\t%s\n", 100*want, wanted(f, want))
	}
}

// noise reports a host whose signature may see too much.
func noise(n schedule.NoisyHost) string {
	host := n.Host
	if host == "" {
		host = "hosts of few pages, together"
	}
	return fmt.Sprintf("%s: visits to %d of %d pages always find a change, however soon; the signature may see dates or tokens that TextProfile ignores", host, n.Changed, n.Checked)
}

// stretched says how the budget changes the greatest interval.
func stretched(set, inForce time.Duration) string {
	why := "the budget is too small for that"
	if inForce < set {
		why = "the budget has visits to spare"
	}
	return fmt.Sprintf("at most %s instead of the %s set: %s", Days(inForce.Hours()/24), Days(set.Hours()/24), why)
}

// FreshnessInBrief prints what matters most at the end of a crawl.
func FreshnessInBrief(w io.Writer, f *recrawl.Freshness) {
	if f.Estimated > 0 {
		fmt.Fprintf(w, "  fresh         %.1f %% of the copies, %.1f %% by importance, on %s", 100*f.Freshness, 100*f.Weighted, f.At.UTC().Format(time.RFC3339))
		if f.Forecast != nil {
			fmt.Fprintf(w, "; %.1f %% in the long run", 100*f.Forecast.Freshness)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "  budget        %s\n", budgetUsed(f))
	if f.Overdue > 0 || f.Never > 0 {
		fmt.Fprintf(w, "  waiting       %d overdue, %d never visited, on %s\n", f.Overdue, f.Never, f.At.UTC().Format(time.RFC3339))
	}
}

// backlog says when the pages never visited will have been visited.
func backlog(f *recrawl.Freshness) string {
	s := fmt.Sprint(f.Never)
	if f.Never == 0 {
		return s
	}
	if f.Forecast != nil && f.Budget > 0 {
		s += fmt.Sprintf("; %d are worth a visit within the budget, which takes at least %s", f.Forecast.Worth, Days(float64(f.Forecast.Worth)/f.Budget))
	}
	if f.Trend.Since.IsZero() {
		return s
	}
	gone := ", so the backlog never clears"
	if at, ok := f.BacklogEnd(); ok {
		gone = fmt.Sprintf(", so the backlog clears in %s, on %s", Age(at.Sub(f.At)), at.UTC().Format(time.DateOnly))
	}
	if f.At.Sub(f.Trend.Since) < time.Hour {
		gone = "" // the links of the first pages say nothing about the days to come
	}
	return s + fmt.Sprintf("; since %s, %s a day were visited for the first time and %s found%s", Time(f.Trend.Since), digits3(f.Trend.Visited), digits3(f.Trend.Found), gone)
}

func budgetUsed(f *recrawl.Freshness) string {
	s := digits3(f.Budget) + " visits a day"
	if !f.BudgetGiven {
		s = "no bound; planned for " + s
	}
	if !f.UsedSince.IsZero() {
		s += fmt.Sprintf("; %s made in the last day, since %s", digits3(f.Used), Time(f.UsedSince))
		if f.BudgetGiven {
			s += fmt.Sprintf(", %.0f %%", 100*f.Used/f.Budget)
		}
	}
	return s
}

func wanted(f *recrawl.Freshness, want float64) string {
	short, ok := f.Lacks(want)
	switch {
	case !ok:
		return fmt.Sprintf("no budget is enough: the least intervals and politeness allow only %.1f %%", 100*f.Forecast.Reaches(math.Inf(1)))
	case short > 0:
		return fmt.Sprintf("needs %s visits a day: the budget is too small by %s", digits3(f.Budget+short), digits3(short))
	}
	return fmt.Sprintf("needs %s visits a day: the budget is enough", digits3(f.Budget+short))
}

// HostConditions prints a table of the hosts where most is lost.
func HostConditions(w io.Writer, hosts []schedule.HostCondition) error {
	if len(hosts) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "pages\tcopies\tnever\toverdue\tfresh\tby import.\tof all lost\tstale p50\tp90\tvisited p50\tp90\t  host")
	for i := range hosts {
		h := &hosts[i]
		fresh := "-\t-\t-\t-\t-"
		if h.Estimated > 0 {
			fresh = fmt.Sprintf("%.1f%%\t%.1f%%\t%.1f%%\t%s\t%s", 100*h.Freshness, 100*h.Weighted, 100*h.Lost, Age(h.Ages.P50), Age(h.Ages.P90))
		}
		visited := "-\t-"
		if h.Copies > 0 {
			visited = Age(h.Visited.P50) + "\t" + Age(h.Visited.P90)
		}
		fmt.Fprintf(t, "%d\t%d\t%d\t%d\t%s\t%s\t  %s\n", h.Pages, h.Copies, h.Never, h.Overdue, fresh, visited, h.Host)
	}
	return t.Flush()
}

func percentiles(p schedule.Percentiles) string {
	return fmt.Sprintf("p10 %s, p50 %s, p90 %s, p99 %s", Age(p.P10), Age(p.P50), Age(p.P90), Age(p.P99))
}

// FreshnessJSON is a Freshness; durations are in seconds.
type FreshnessJSON struct {
	At      time.Time `json:"at"`
	Sampled int       `json:"sampled,omitempty"`
	conditionJSON
	BudgetPerDay *float64            `json:"budget_per_day,omitempty"`
	UsedPerDay   *float64            `json:"used_per_day,omitempty"`
	UsedSince    *time.Time          `json:"used_since,omitempty"`
	Greatest     *float64            `json:"greatest_interval_seconds,omitempty"`
	InForce      *float64            `json:"greatest_interval_in_force_seconds,omitempty"`
	Backlog      backlogJSON         `json:"backlog"`
	Noisy        []noisyJSON         `json:"noisy,omitempty"`
	Forecast     *forecastJSON       `json:"forecast,omitempty"`
	Hosts        []hostFreshnessJSON `json:"hosts,omitempty"`
}

type hostFreshnessJSON struct {
	Host string  `json:"host"`
	Lost float64 `json:"lost"`
	conditionJSON
}

// noisyJSON is a host where nearly every visit finds a change; no name stands for the
// hosts of few pages, together.
type noisyJSON struct {
	Host    string `json:"host,omitempty"`
	Checked int    `json:"checked"`
	Changed int    `json:"changed"`
}

type conditionJSON struct {
	Pages     int              `json:"pages"`
	Copies    int              `json:"copies"`
	Never     int              `json:"never_visited"`
	Learned   int              `json:"learned"`
	Estimated int              `json:"estimated"`
	Overdue   int              `json:"overdue"`
	Leased    int              `json:"leased"`
	Covered   float64          `json:"covered"`
	Fresh     *float64         `json:"fresh,omitempty"`
	Weighted  *float64         `json:"fresh_by_importance,omitempty"`
	Age       *float64         `json:"age_seconds,omitempty"`
	Important *float64         `json:"age_by_importance_seconds,omitempty"`
	Ages      *percentilesJSON `json:"age_percentiles_seconds,omitempty"`
	Visited   *percentilesJSON `json:"visited_ago_percentiles_seconds,omitempty"`
	Late      *percentilesJSON `json:"overdue_by_percentiles_seconds,omitempty"`
}

type percentilesJSON struct {
	P10 float64 `json:"p10"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max,omitempty"`
}

type backlogJSON struct {
	Worth   *int       `json:"worth_a_visit,omitempty"`
	Since   *time.Time `json:"paced_since,omitempty"`
	Visited *float64   `json:"first_visits_per_day,omitempty"`
	Found   *float64   `json:"found_per_day,omitempty"`
	Gone    *time.Time `json:"gone_at,omitempty"`
}

type forecastJSON struct {
	Fresh    float64      `json:"fresh_by_importance"`
	Revisits float64      `json:"revisits_per_day"`
	Least    float64      `json:"greatest_intervals_take_per_day"`
	Wanted   []wantedJSON `json:"wanted"`
	Curve    []reachJSON  `json:"curve"`
}

type reachJSON struct {
	PerDay    float64 `json:"per_day"`
	Freshness float64 `json:"fresh_by_importance"`
}

type wantedJSON struct {
	Fresh float64  `json:"fresh_by_importance"`
	Takes *float64 `json:"takes_per_day"`
	Short *float64 `json:"too_small_by_per_day"`
}

// NewFreshnessJSON returns a report for JSON, with what keeps each of the wanted shares fresh.
func NewFreshnessJSON(f *recrawl.Freshness, wants []float64) *FreshnessJSON {
	j := &FreshnessJSON{At: f.At, Sampled: f.Sampled, conditionJSON: newConditionJSON(&f.Condition)}
	if f.Budget > 0 {
		j.BudgetPerDay = &f.Budget
	}
	if f.MaxIntervalSet > 0 {
		set, inForce := f.MaxIntervalSet.Seconds(), f.MaxIntervalInForce.Seconds()
		j.Greatest, j.InForce = &set, &inForce
	}
	if !f.UsedSince.IsZero() {
		j.UsedPerDay, j.UsedSince = &f.Used, &f.UsedSince
	}
	if !f.Trend.Since.IsZero() {
		j.Backlog.Since, j.Backlog.Visited, j.Backlog.Found = &f.Trend.Since, &f.Trend.Visited, &f.Trend.Found
	}
	if at, ok := f.BacklogEnd(); ok && f.Never > 0 {
		j.Backlog.Gone = &at
	}
	if g := f.Forecast; g != nil {
		j.Backlog.Worth = &g.Worth
		j.Forecast = &forecastJSON{Fresh: g.Freshness, Revisits: g.Revisits, Least: g.Least}
		for _, want := range wants {
			w := wantedJSON{Fresh: want}
			if short, ok := f.Lacks(want); ok {
				takes := f.Budget + short
				w.Takes, w.Short = &takes, &short
			}
			j.Forecast.Wanted = append(j.Forecast.Wanted, w)
		}
		for _, r := range g.Curve {
			j.Forecast.Curve = append(j.Forecast.Curve, reachJSON(r))
		}
	}
	for _, n := range f.Noisy {
		j.Noisy = append(j.Noisy, noisyJSON(n))
	}
	for i := range f.Hosts {
		h := &f.Hosts[i]
		j.Hosts = append(j.Hosts, hostFreshnessJSON{Host: h.Host, Lost: h.Lost, conditionJSON: newConditionJSON(&h.Condition)})
	}
	return j
}

func newConditionJSON(c *schedule.Condition) conditionJSON {
	j := conditionJSON{Pages: c.Pages, Copies: c.Copies, Never: c.Never, Learned: c.Learned, Estimated: c.Estimated, Overdue: c.Overdue, Leased: c.Leased, Covered: c.Covered}
	if c.Estimated > 0 {
		age, important := c.Age.Seconds(), c.WeightedAge.Seconds()
		j.Fresh, j.Weighted, j.Age, j.Important = &c.Freshness, &c.Weighted, &age, &important
		j.Ages = newPercentilesJSON(c.Ages)
	}
	if c.Copies > 0 {
		j.Visited = newPercentilesJSON(c.Visited)
	}
	if c.Overdue > 0 {
		j.Late = newPercentilesJSON(c.Late)
	}
	return j
}

func newPercentilesJSON(p schedule.Percentiles) *percentilesJSON {
	return &percentilesJSON{p.P10.Seconds(), p.P50.Seconds(), p.P90.Seconds(), p.P99.Seconds(), p.Max.Seconds()}
}
