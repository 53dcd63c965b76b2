package simulate

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/recrawl/recrawl/schedule"
)

// Check is a figure and its required value.
type Check struct {
	What      string
	Got, Want float64
	// Within is the difference allowed; zero means that Got must be at least Want, and a
	// negative value that it must be at most Want.
	Within float64
}

// OK reports whether the figure is as required.
func (c Check) OK() bool {
	switch {
	case c.Within > 0:
		return math.Abs(c.Got-c.Want) <= c.Within
	case c.Within < 0:
		return c.Got <= c.Want
	}
	return c.Got >= c.Want
}

// String returns one line: whether the figure is OK, its value, the required value, and what
// it is.
func (c Check) String() string {
	state, want := "ok  ", fmt.Sprintf(">= %.4g", c.Want)
	if !c.OK() {
		state = "FAIL"
	}
	switch {
	case c.Within > 0:
		want = fmt.Sprintf("%.4g +- %.2g", c.Want, c.Within)
	case c.Within < 0:
		want = fmt.Sprintf("<= %.4g", c.Want)
	}
	return fmt.Sprintf("%s %9.4f  %-18s %s", state, c.Got, want, c.What)
}

// ReferencePages is the number of pages behind the published figures.
const ReferencePages = 10_000

// Reference repeats published results, and checks the goals of the schedule that learns, on
// made-up populations of a number of pages. Figures of single policies are compared only if
// pages is [ReferencePages]: in smaller populations a few pages decide. It matters which pages
// are drawn as important; seed 1 is the draw that has the published figures of the constant
// interval and the optimum.
//
// With that many pages it takes minutes. It ends with the first error.
func Reference(ctx context.Context, pages int) iter.Seq2[Check, error] {
	return func(yield func(Check, error) bool) {
		r := reference{ctx: ctx, pages: pages}
		for _, step := range []func() error{r.analytic, r.table, r.others, r.elsewhere, r.cold, r.fewer, r.drift, r.signals} {
			r.checks = nil
			err := step()
			for _, c := range r.checks {
				if !yield(c, nil) {
					return
				}
			}
			if err != nil {
				yield(Check{}, err)
				return
			}
		}
	}
}

type reference struct {
	ctx    context.Context
	pages  int
	checks []Check // of the current step
}

func (r *reference) add(got, want, within float64, format string, args ...any) {
	r.checks = append(r.checks, Check{fmt.Sprintf(format, args...), got, want, within})
}

// analytic is the table of Cho and Garcia-Molina, Effective Page Refresh Policies for Web
// Crawlers, TODS 2003: a fetch a month of each page, all of the same importance. They
// print .57 and 5.6 days, .12 and 400 days, .62 and 4.3 days.
func (r *reference) analytic() error {
	var weights, perDay []float64 // of n pages
	const n = 10_000
	for _, c := range cho5() {
		for range int(math.Round(c.share * n)) {
			weights, perDay = append(weights, 1), append(perDay, c.perDay)
		}
	}
	for _, c := range []struct {
		name           string
		a              Allocation
		freshness, age float64
	}{
		{"all alike", evenAllocation, .573, 5.61}, {"as often as they change", proportional, .129, 406},
		{"optimum", optimal, .616, 0}, {"optimum by age", ageOptimal, 0, 4.30},
	} {
		f, age := expectedFreshness(weights, perDay, c.a(weights, perDay, n/30.))
		if c.freshness > 0 {
			r.add(f, c.freshness, .001, "Cho and Garcia-Molina, cho5, 1/30d, %s: freshness", c.name)
		}
		if c.age > 0 {
			r.add(age, c.age, c.age/400, "Cho and Garcia-Molina, cho5, 1/30d, %s: age in days", c.name)
		}
	}
	return nil
}

// crawl compares policies on a population, within a budget of a fetch of each page in every
// days. best is what the optimum is worth analytically.
func (r *reference) crawl(kind Rates, importance Importance, every float64, o CrawlOptions, policies ...Policy) (best float64, out []Outcome, err error) {
	pages, err := Synthetic(kind, importance, r.pages, 1)
	if err != nil {
		return 0, nil, err
	}
	o.PerDay, o.Seed = float64(r.pages)/every, 1
	weights, perDay := pages.known(time.Time{}, time.Time{})
	if o.ShiftBy > 0 {
		for i := range perDay {
			perDay[i] *= o.ShiftBy
		}
	}
	best, _ = expectedFreshness(weights, perDay, optimal(weights, perDay, o.PerDay))
	out, err = Compare(r.ctx, pages, policies, o)
	return best, out, err
}

// named returns the stock policies with these names.
func (r *reference) named(every float64, names ...string) []Policy {
	var p []Policy
	for _, name := range names {
		for _, s := range Stock(r.pages, float64(r.pages)/every) {
			if s.Name == name {
				p = append(p, s)
			}
		}
	}
	return p
}

const (
	learned  = "learned"
	constant = "constant interval"
	byScore  = "Nutch adaptive, by score"
)

// table repeats the simulation of the two populations at two budgets.
func (r *reference) table() error {
	// The results of adaptive schedules that fetch the oldest first depend on the draw in more
	// than the analytic figures: draws with the same analytic figures differ by a hundredth.
	const draw = .02
	rows := []struct {
		name   string
		want   [4]float64 // cho5 at 1/30d and 1/7d, lognorm at both; 0 is not checked
		within float64    // 0 is 0.01
	}{
		{"default, 30 days", [4]float64{.598, .598, .575, .575}, 0},
		{constant, [4]float64{.598, .751, .575, .779}, 0},
		{byScore, [4]float64{.477, .642, .467, .638}, 0},
		{"Nutch adaptive, no sync, by score", [4]float64{.468, .638, .463, .635}, 0},
		{"Nutch adaptive, oldest first", [4]float64{.556, .673, .525, .649}, draw},
		{"Nutch adaptive, no sync, oldest first", [4]float64{.570, .684, .549, .668}, draw},
		{"proportional, rates known", [4]float64{.141, .455, .170, .506}, 0},
		{"Azar, rates known", [4]float64{.730, .850, .728, .871}, 0},
		{"LambdaCrawl, rates known", [4]float64{.701, .846, .706, .869}, 0},
		{Optimum().Name, [4]float64{.734, .853, .732, .874}, 0},
		{learned, [4]float64{}, 0},
	}
	names := make([]string, len(rows))
	for i := range rows {
		names[i] = rows[i].name
	}
	k := 0
	for _, kind := range published() {
		for _, every := range []float64{30, 7} {
			best, out, err := r.crawl(kind, Zipf, every, CrawlOptions{}, r.named(every, names...)...)
			if err != nil {
				return err
			}
			where := fmt.Sprintf("%s, 1/%gd", kind, every)
			got := map[string]*Outcome{}
			for i := range out {
				got[out[i].Policy] = &out[i]
				if want := rows[i].want[k]; want > 0 && r.pages == ReferencePages {
					r.add(out[i].Weighted, want, max(.01, rows[i].within), "%s, %s", where, rows[i].name)
				}
			}
			share, times := .97, 1.45
			if every == 7 {
				share, times = .99, 1.3
			}
			l := got[learned]
			r.add(got[Optimum().Name].Weighted, best, .01, "%s, the optimum that is crawled by that with a pencil", where)
			r.add(l.Weighted/best, share, 0, "%s, learned, share of the optimum", where)
			r.add(l.First/got[Optimum().Name].First, .96, 0, "%s, learned, share of the optimum in the first year, in which nothing is known at first", where)
			r.add(l.Weighted/got[byScore].Weighted, times, 0, "%s, learned by Nutch adaptive by score", where)
			r.add(l.Weighted/got[constant].Weighted, 1, 0, "%s, learned by a constant interval", where)
			r.add(days(l.Longest), 90.3, -1, "%s, learned, days that a page was left alone; 90 is the bound, a round comes later", where)
			r.add(l.Starved, 0, -1, "%s, learned, share of pages never fetched", where)
			k++
		}
	}
	return nil
}

// others checks populations with other importance.
func (r *reference) others() error {
	for _, importance := range []Importance{Uniform, Correlated} {
		for _, kind := range published() {
			best, out, err := r.crawl(kind, importance, 30, CrawlOptions{}, r.named(30, learned, constant, byScore)...)
			if err != nil {
				return err
			}
			where := fmt.Sprintf("%s, importance %s, 1/30d", kind, importance)
			r.add(out[0].Weighted/out[1].Weighted, 1, 0, "%s, learned by a constant interval", where)
			r.add(out[0].Weighted/out[2].Weighted, 1.45, 0, "%s, learned by Nutch adaptive by score", where)
			r.add(out[0].Weighted/best, .90, 0, "%s, learned, share of the optimum", where)
		}
	}
	return nil
}

// elsewhere checks populations without published figures: for each, the worst case tried. A
// budget of a fetch of each page in 90 days is just enough for the greatest interval, and
// leaves nothing to gain over a constant one.
func (r *reference) elsewhere() error {
	crowd := r.pages
	defer func() { r.pages = crowd }()
	sizes, budgets := []int{100, 1000}, []float64{7, 30, 90}
	if crowd < 1000 {
		sizes, budgets = []int{crowd}, []float64{30}
	}
	for _, n := range sizes {
		r.pages = n
		for _, kind := range AllRates() {
			importances := []Importance{Zipf, Uniform, Correlated, Anticorrelated}
			if kind != Cho5 && kind != LogNormal && kind != TwoKinds { // all change alike
				importances = importances[:2]
			}
			type worst struct {
				figure float64
				where  string
			}
			ratio, first, longest := worst{math.Inf(1), ""}, worst{math.Inf(1), ""}, worst{}
			for _, importance := range importances {
				for _, every := range budgets {
					_, out, err := r.crawl(kind, importance, every, CrawlOptions{}, r.named(every, learned, constant)...)
					if err != nil {
						return err
					}
					where := fmt.Sprintf("importance %s, 1/%gd", importance, every)
					if got := out[0].Weighted / out[1].Weighted; got < ratio.figure {
						ratio = worst{got, where}
					}
					if got := out[0].First / out[1].First; importance == Uniform && got < first.figure {
						first = worst{got, where}
					}
					if got := days(out[0].Longest); got > longest.figure {
						longest = worst{got, where}
					}
				}
			}
			// If all pages are alike nothing can be better than a constant interval. With two kinds,
			// pages of one kind are not taken to be alike. A history is only one course of events, and
			// of a hundred pages a few with large weights decide.
			least, ok := map[Rates]float64{TwoKinds: 0.98, Weekdays: 0.95, Seasonal: 0.99}[kind]
			if !ok {
				least = 0.999
			}
			r.add(ratio.figure, least, 0, "%d pages, %s, learned by a constant interval where that is least: %s", r.pages, kind, ratio.where)
			r.add(first.figure, 0.96, 0, "%d pages, %s, all as important, learned by a constant interval in the first year where that is least: %s", r.pages, kind, first.where)
			r.add(longest.figure, 90.6, -1, "%d pages, %s, learned, days that a page was left alone where that is longest: %s", r.pages, kind, longest.where)
		}
	}
	return nil
}

// cold checks the first year of a crawl that begins with nothing, not even copies. The
// optimum begins without copies, too.
func (r *reference) cold() error {
	for _, kind := range published() {
		for _, every := range []float64{30, 7} {
			o := CrawlOptions{Cold: true, Duration: 365 * 24 * time.Hour, Measure: -1}
			_, out, err := r.crawl(kind, Zipf, every, o, r.named(every, learned, Optimum().Name)...)
			if err != nil {
				return err
			}
			r.add(out[0].Weighted/out[1].Weighted, .959, 0, "%s, 1/%gd, first year from nothing, learned, share of the optimum", kind, every)
		}
	}
	return nil
}

// fewer gives the schedule that learns a seventh of the fetches that Nutch's makes without a
// budget.
func (r *reference) fewer() error {
	for _, kind := range published() {
		pages, err := Synthetic(kind, Zipf, r.pages, 1)
		if err != nil {
			return err
		}
		nutch, err := Crawl(r.ctx, pages, r.named(30, "Nutch adaptive, no sync, by score")[0], CrawlOptions{Seed: 1})
		if err != nil {
			return err
		}
		every := 7 * days(nutch.Every)
		_, out, err := r.crawl(kind, Zipf, every, CrawlOptions{}, r.named(every, learned)...)
		if err != nil {
			return err
		}
		r.add(out[0].Weighted/nutch.Weighted, 1, 0, "%s, learned with 1/%.1fd by Nutch adaptive with 1/%.2fd, which nothing bounds", kind, every, days(nutch.Every))
	}
	return nil
}

// drift doubles or halves all rates of change half way, and looks at the time when a page has
// been fetched ten more times on average: at how much is fresh, and how far the estimates are
// from the rates, compared with a crawl in which the rates stay: after few visits estimates
// are a little off in both.
func (r *reference) drift() error {
	for _, kind := range published() {
		for _, every := range []float64{30, 7} {
			const shift = 360.
			steady := 0.0
			for _, by := range []float64{1, 2, .5} {
				o := CrawlOptions{ShiftBy: by, ShiftAfter: inDays(shift), Measure: inDays(shift + 9*every), Duration: inDays(shift + 10*every)}
				best, out, err := r.crawl(kind, Zipf, every, o, Learning(learned, schedule.Learned{}))
				if err != nil {
					return err
				}
				off := estimated(&out[0], by)
				if by == 1 {
					steady = off
					continue
				}
				where, share, within := fmt.Sprintf("%s, 1/%gd, ten fetches of a page after rates are %g times what they were, learned", kind, every, by), .96, .15
				if every == 7 {
					share = .985
				} else if by < 1 {
					within = .4 // on cho5 what is followed stops half an octave short: 1.26 once, 1.34 since visits come in pairs
				}
				r.add(out[0].Weighted/best, share, 0, "%s, share of the new optimum", where)
				if r.pages == ReferencePages {
					r.add(off/steady, 1, within, "%s, estimates by rates, beside those of a crawl without", where)
				}
			}
		}
	}
	return nil
}

// estimated returns the geometric mean of the quotients of estimated and true rates, the true
// ones multiplied by a factor. Pages where nearly every visit finds a change are left out: no
// visits can tell their rates.
func estimated(o *Outcome, by float64) float64 {
	sum, n := 0.0, 0
	for i := range o.Records {
		d, perDay := &o.Records[i], by*o.Pages[i].PerDay
		if rate, ok := schedule.RateOf(d); ok && perDay*days(d.Interval) <= 2 {
			sum += math.Log(rate.PerDay() / perDay)
			n++
		}
	}
	return math.Exp(sum / float64(max(n, 1)))
}

// signals adds signs of changes, for all pages, of different quality. The optimum that knows
// them must gain what was published: from .734 without to .789 with a recall of .8 and a
// precision of .5, .803 with .8 and .8, and .836 with .95 and .95. The schedule that learns must
// gain the part of that which a greatest interval of 90 days leaves, and lose next to nothing by
// signs that say nothing.
func (r *reference) signals() error {
	const every = 30
	long := schedule.Learned{Default: schedule.Default{MaxInterval: 3 * 365 * 24 * time.Hour}}
	_, without, err := r.crawl(Cho5, Zipf, every, CrawlOptions{}, Learning(learned, schedule.Learned{}), Learning("no bound", long), Optimum())
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name           string
		signals        Signals
		gain           float64 // of the optimum; 0 if the signs are worth nothing
		bound, unbound float64 // shares of that gain that are learned
	}{
		{"recall .8, precision .5", Signals{Recall: .8, Precision: .5}, .055, .75, .8},
		{"recall .8, precision .8", Signals{Recall: .8, Precision: .8}, .069, .75, .8},
		{"recall .9, precision .9", Signals{Recall: .9, Precision: .9}, .089, .75, .8},
		{"recall .95, precision .95", Signals{Recall: .95, Precision: .95}, .102, .75, .8},
		{"a sign a day that says nothing", Signals{PerDay: 1}, 0, 0, 0},
		{"precision .05", Signals{Recall: .5, Precision: .05}, 0, 0, 0},
	} {
		o := CrawlOptions{Signals: []Signals{c.signals}}
		_, out, err := r.crawl(Cho5, Zipf, every, o, Learning(learned, schedule.Learned{}), Learning("no bound", long), SignalOptimum())
		if err != nil {
			return err
		}
		where := "cho5, 1/30d, signs of changes, " + c.name
		if c.gain == 0 {
			r.add(out[0].Weighted/without[0].Weighted, .99, 0, "%s: learned by learned without", where)
			r.add(out[0].First/without[0].First, .97, 0, "%s: learned by learned without, first year", where)
			continue
		}
		best := out[2].Weighted - without[2].Weighted
		if r.pages == ReferencePages {
			r.add(best, c.gain, .01, "%s: what the optimum gains", where)
		}
		r.add((out[0].Weighted-without[0].Weighted)/best, c.bound, 0, "%s: share of that gain that is learned, no page left alone for more than 90 days", where)
		r.add((out[1].Weighted-without[1].Weighted)/best, c.unbound, 0, "%s: the same without that bound", where)
	}
	return nil
}
