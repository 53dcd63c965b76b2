package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/schedule/simulate"
)

const (
	toPages  = "The pages"
	toBudget = "The crawl"
	toYours  = "Your own schedule, beside the others"
)

func (a *app) simulate() *cli.Command {
	yours := scheduleFlags()
	for _, f := range yours {
		f.(cli.CategorizableFlag).SetCategory(toYours)
	}
	return &cli.Command{
		Name: "simulate", Usage: "compare schedules over many pages and a budget",
		Description: `Crawls a population of pages for years of simulated time, within a budget of
fetches: by each of the built-in schedules, and by schedules that are told how often
each page changes, which no crawl can know; the optimum is the best of those. It
prints how much was fresh and how old the copies were. It runs the same code as a
crawl, but needs neither a crawl nor a network.

  recrawl schedule simulate
  recrawl schedule simulate -population lognorm -every 7d -svg plot
  recrawl schedule simulate -history changes.tsv -every 14d -cold
  recrawl schedule simulate -kind adaptive -inc 0.2 -dec 0.1 -only yours,optimum
  recrawl schedule simulate -kind learned -limit 60d -only learned,optimum
  recrawl schedule simulate -curve 90d,30d,7d,1d -pages 2000
  recrawl schedule simulate -signals recall=.8,precision=.5,delay=6h
  recrawl schedule simulate -reference

A history has the format of recrawl schedule; a field w=2.5 in a line gives the
importance of its page relative to others. Its events may say what signatures see:
:B is a change of the bytes only, :T one of the text but not of its more frequent
words. Or it lists pages as they were found at certain times, under a header that
names the columns, such as

  url time status md5 textmd5

Columns may be separated by commas, and a column named event may hold A, M and D.
Lines of a web archive index (CDX) need no header. The file may be gzipped. The
output shows what each signature sees, and the effect on the crawl.

"important fresh" is the share of the importance whose copy matched the page, from
-measure on; "at first" is the same before that. The constant interval visits the
pages that exist at the time in turn, and uses all of the budget. With -signals
there are signs of changes, which come some time after a change, or without one:
what they are worth is learned as in a crawl, and one optimum knows it. With -svg
the pictures are NAME-time.svg, freshness over time, NAME-rates.svg, intervals by
rate of change, and with -curve NAME-budget.svg. With -reference it repeats
published results and checks the goals of the project, and fails if a figure is off.`,
		Flags: flags.Join(
			&cli.StringFlag{Name: "population", Category: toPages, Value: string(simulate.Cho5), Usage: "pages that change at random as often as in `KIND`: cho5, a histogram of 720,000 pages, lognorm, equal (once in 30 days), hourly, daily, weekly, yearly, static, two (half daily, half once a year), weekdays (once from Monday to Friday) or seasonal (ten times as often in three months of the year) (default cho5)"},
			&cli.StringFlag{Name: "history", Category: toPages, Usage: "instead, read pages and their changes from `FILE`; - is standard input"},
			&cli.StringFlag{Name: "signature", Category: toPages, Usage: "for a history with signatures: the `NAME` of the one that the crawl compares, md5, textmd5 or textprofile (default textmd5)"},
			&cli.StringFlag{Name: "truth", Category: toPages, Usage: "count a copy as fresh while the signature `NAME` of its page is the same, whatever the crawl compares (default textmd5)"},
			&cli.StringFlag{Name: "importance", Category: toPages, Value: string(simulate.Zipf), Usage: "how importance is distributed, a `KIND`: zipf, uniform, correlated (zipf, where pages that change often are more important) or anticorrelated (default zipf)"},
			&cli.IntFlag{Name: "pages", Category: toPages, Value: 10_000, Usage: "a population of `N` pages (default 10000)"},
			&cli.Uint64Flag{Name: "seed", Category: toPages, Value: 1, Usage: "the random seed, a `NUMBER` (default 1)"},
			&cli.BoolFlag{Name: "last-modified", Category: toPages, Usage: "the servers say when the content last changed"},
			&cli.BoolFlag{Name: "conditional", Category: toPages, Usage: "the servers answer \"not modified\" instead of sending the content again"},
			&cli.StringSliceFlag{Name: "signals", Category: toPages, Usage: "signs of changes, as sitemaps give: `precision=.8,recall=.6`; also share= of the hosts, flood= meaningless signs per page and day, and delay=. May be repeated for other hosts"},
			&cli.Float64Flag{Name: "shift", Category: toPages, Usage: "from the middle of the measured time on, pages that change at random do so `N` times as often"},

			flags.Span(toBudget, "every", "the budget: as many fetches as all pages take every `TIME` (default 30d)"),
			&cli.Float64Flag{Name: "budget", Category: toBudget, Usage: "the budget: `N` fetches a day"},
			&cli.StringFlag{Name: "curve", Category: toBudget, Usage: "compare several budgets, given as for -every: `TIMES` separated by commas"},
			&cli.BoolFlag{Name: "cold", Category: toBudget, Usage: "start without a copy of any page; by default the copies are fresh, but nothing is known about rates of change"},
			flags.Span(toBudget, "cycle", "look for what is due every `TIME` (default 6h)"),
			flags.Span(toBudget, "for", "simulate `TIME` (default 1080d, or until the last change of a history)"),
			flags.Span(toBudget, "measure", "measure from `TIME` on (default: a third of the whole)"),
			yours,

			&cli.StringFlag{Name: "only", Category: flags.OutputGroup, Usage: "only the schedules whose names contain one of these `WORDS`, separated by commas"},
			&cli.StringFlag{Name: "svg", Category: flags.OutputGroup, Usage: "also draw pictures, to files whose names start with `NAME`"},
			&cli.BoolFlag{Name: "json", Category: flags.OutputGroup, Usage: "print JSON, an object a line, instead of text"},
			&cli.BoolFlag{Name: "reference", Category: flags.OutputGroup, Usage: "repeat published results, and check the goals of the project"},
		),
		Action: a.runSimulate,
	}
}

func (a *app) runSimulate(ctx context.Context, c *cli.Command) error {
	if err := flags.NoArgs(c); err != nil {
		return err
	}
	if c.Bool("reference") {
		return a.reference(ctx, c)
	}
	history, pages, o, err := populationOf(c)
	if err != nil {
		return err
	}
	if text := c.String("curve"); text != "" {
		if c.IsSet("every") || c.IsSet("budget") {
			return flags.Usagef("-curve excludes -every and -budget")
		}
		return a.simulateCurve(ctx, c, pages, o, text)
	}
	policies, err := policiesOf(c, pages, o.PerDay)
	if err != nil {
		return err
	}
	if err := checkPictures(c, "-time.svg", "-rates.svg"); err != nil {
		return err
	}
	done := render.ShowWork(a.err, fmt.Sprintf("simulating %d schedules on %d pages", len(policies), len(pages)))
	defer done()
	outcomes, err := simulate.Compare(ctx, pages, policies, o)
	if err != nil {
		return err
	}
	sights := simulate.StatsOfSignatures(history)
	others, err := bySignatures(ctx, c, history, sights, policies, o)
	if err != nil {
		return err
	}
	outcomes = append(outcomes, others...)
	if name := c.String("svg"); name != "" {
		err := errors.Join(
			picture(name+"-time.svg", func(w io.Writer) error { return simulate.WriteTimelineSVG(w, outcomes) }),
			picture(name+"-rates.svg", func(w io.Writer) error { return simulate.WriteRatesSVG(w, outcomes) }))
		if err != nil {
			return err
		}
	}
	if c.Bool("json") {
		return a.printOutcomesJSON(outcomes, o.PerDay)
	}
	fmt.Fprintf(a.out, "%d pages, %.4g fetches a day\n%s\n\n", len(pages), o.PerDay, scopeOf(history, c.String("importance"), o, outcomes[0].Timeline))
	return a.printComparison(outcomes, sights, len(pages))
}

// printComparison prints the outcomes, and what signatures see of a history, if it says that.
func (a *app) printComparison(outcomes []simulate.Outcome, sights []simulate.SignatureStats, pages int) error {
	if len(sights) > 0 {
		if err := simulate.WriteSignatureStats(a.out, pages, sights); err != nil {
			return err
		}
		fmt.Fprintln(a.out)
	}
	if err := simulate.WriteComparison(a.out, outcomes); err != nil {
		return err
	}
	for _, s := range sights {
		if s.AlwaysDiffers > 0 {
			fmt.Fprintf(a.out, "\n%s differs at every visit of %d of %d pages, even if they have not changed: choose a signature that does not.\n", s.Signature, s.AlwaysDiffers, pages)
		}
	}
	return nil
}

// printOutcomesJSON prints outcomes within a budget, an object a line.
func (a *app) printOutcomesJSON(outcomes []simulate.Outcome, perDay float64) error {
	for i := range outcomes {
		if err := a.printLine(outcomeJSON(&outcomes[i], perDay)); err != nil {
			return err
		}
	}
	return nil
}

// scopeOf says which time the figures are for, and what importance they weigh pages by: if a
// history has none it is drawn, and says nothing of these pages.
func scopeOf(history []simulate.Page, importance string, o simulate.CrawlOptions, course []simulate.TimelinePoint) string {
	from, to := course[0].From, course[len(course)-1].To
	measure := o.Measure
	if measure == 0 {
		measure = to.Sub(from) / 3
	}
	date := func(t time.Time) string { return t.UTC().Format(time.DateOnly) }
	switch {
	case slices.ContainsFunc(history, func(p simulate.Page) bool { return p.Weight > 0 }):
		importance = "as the history says"
	case len(history) > 0 && importance != string(simulate.Uniform):
		importance += ", drawn at random: the history has no column weight, or w="
	}
	return fmt.Sprintf("from %s to %s, measured from %s on; importance: %s", date(from), date(to), date(from.Add(measure)), importance)
}

// bySignatures returns what the learned schedule would achieve on a history with each of the
// signatures that the crawl does not compare. It is empty if the learned schedule is left out.
func bySignatures(ctx context.Context, c *cli.Command, history []simulate.Page, sights []simulate.SignatureStats, policies []simulate.Policy, o simulate.CrawlOptions) ([]simulate.Outcome, error) {
	i := slices.IndexFunc(policies, func(p simulate.Policy) bool { return p.Name == "learned" })
	if i < 0 || len(sights) < 2 {
		return nil, nil
	}
	compared, truth, err := simulate.SignatureAndTruth(history, c.String("signature"), c.String("truth"))
	if err != nil {
		return nil, err
	}
	var all []simulate.Outcome
	for _, s := range sights {
		if s.Signature == compared {
			continue
		}
		seen, err := simulate.BySignature(history, s.Signature, truth)
		if err != nil {
			return nil, err
		}
		pages, err := simulate.Histories(seen, simulate.Importance(c.String("importance")), c.Uint64("seed"))
		if err != nil {
			return nil, err
		}
		out, err := simulate.Crawl(ctx, pages, policies[i], o)
		if err != nil {
			return nil, err
		}
		out.Policy += ", if " + s.Signature + " is compared"
		all = append(all, out)
	}
	return all, nil
}

func outcomeJSON(o *simulate.Outcome, perDay float64) map[string]any {
	course := make([]map[string]any, len(o.Timeline))
	for i, p := range o.Timeline {
		course[i] = map[string]any{"from": p.From, "to": p.To, "freshness": p.Freshness, "weighted": p.Weighted, "fetches": p.Fetches}
	}
	return map[string]any{"policy": o.Policy, "budget": perDay, "weighted": o.Weighted, "freshness": o.Freshness, "first": o.First,
		"weighted_age_seconds": o.WeightedAge.Seconds(), "age_seconds": o.Age.Seconds(), "fetches": o.Fetches, "every_seconds": o.Every.Seconds(),
		"starved": o.Starved, "longest_seconds": o.Longest.Seconds(), "backlog": o.Backlog, "course": course}
}

// simulateCurve compares the schedules at several budgets.
func (a *app) simulateCurve(ctx context.Context, c *cli.Command, pages simulate.Population, o simulate.CrawlOptions, text string) error {
	var budgets []float64
	for word := range strings.SplitSeq(text, ",") {
		every, ok := flags.ParseSpan(word)
		if !ok {
			return flags.Usagef("-curve: %q is not a time such as 12h or 30d", word)
		}
		budgets = append(budgets, float64(len(pages))/(every.Hours()/24))
	}
	slices.Sort(budgets)
	if err := checkPictures(c, "-budget.svg"); err != nil {
		return err
	}
	var wrong error
	done := render.ShowWork(a.err, fmt.Sprintf("simulating %d budgets on %d pages", len(budgets), len(pages)))
	defer done()
	curve, err := simulate.Curve(ctx, pages, func(perDay float64) []simulate.Policy {
		p, err := policiesOf(c, pages, perDay)
		if err != nil {
			wrong = err
		}
		return p
	}, o, budgets)
	if wrong != nil {
		return wrong
	}
	if err != nil {
		return err
	}
	if name := c.String("svg"); name != "" {
		if err := picture(name+"-budget.svg", func(w io.Writer) error { return simulate.WriteCurveSVG(w, len(pages), curve) }); err != nil {
			return err
		}
	}
	if !c.Bool("json") {
		return simulate.WriteCurve(a.out, len(pages), curve)
	}
	for _, b := range curve {
		if err := a.printOutcomesJSON(b.Outcomes, b.PerDay); err != nil {
			return err
		}
	}
	return nil
}

// mostPages bounds a generated population.
const mostPages = 10_000_000

// populationOf returns the pages that the flags describe, the history they are from, if any, and
// how to crawl them.
func populationOf(c *cli.Command) ([]simulate.Page, simulate.Population, simulate.CrawlOptions, error) {
	spans := flags.Spans{C: c}
	o := simulate.CrawlOptions{
		Duration: spans.Get("for"), Measure: spans.Get("measure"), Cycle: spans.Get("cycle"), PerDay: c.Float64("budget"),
		Cold: c.Bool("cold"), LastModified: c.Bool("last-modified"), Conditional: c.Bool("conditional"), Seed: c.Uint64("seed"),
	}
	every := spans.Get("every")
	if spans.Err != nil {
		return nil, nil, o, spans.Err
	}
	if o.Duration > 0 && o.Measure >= o.Duration {
		return nil, nil, o, flags.Usagef("-measure: nothing is left to measure from %s on: the crawl ends after %s; give a longer -for", render.Span(o.Measure), render.Span(o.Duration))
	}
	for _, text := range c.StringSlice("signals") {
		g, err := simulate.ParseSignals(text)
		if err != nil {
			return nil, nil, o, flags.Usagef("-signals: %v", err)
		}
		o.Signals = append(o.Signals, g)
	}
	history, pages, err := pagesOf(c)
	if err != nil {
		return nil, nil, o, err
	}
	switch {
	case c.IsSet("budget") && every > 0:
		return nil, nil, o, flags.Usagef("-budget and -every exclude each other")
	case !c.IsSet("budget"):
		o.PerDay = float64(len(pages)) / (cmp.Or(every, 30*24*time.Hour).Hours() / 24)
	case !(o.PerDay > 0 && o.PerDay < 1e12):
		return nil, nil, o, flags.Usagef("-budget: %g is not a number of fetches a day", o.PerDay)
	}
	if o.Cycle > 0 && o.Duration/o.Cycle > 1_000_000 {
		return nil, nil, o, flags.Usagef("-cycle: %s is too short for so long a time", c.String("cycle"))
	}
	if f := c.Float64("shift"); c.IsSet("shift") {
		if !(f > 0 && f <= 1e6) {
			return nil, nil, o, flags.Usagef("-shift: %g is not a factor above zero", f)
		}
		duration := cmp.Or(o.Duration, 1080*24*time.Hour)
		o.ShiftBy, o.ShiftAfter = f, (duration+cmp.Or(o.Measure, duration/3))/2
	}
	return history, pages, o, nil
}

// pagesOf returns the pages that the flags describe, and the history they are from, if any.
func pagesOf(c *cli.Command) ([]simulate.Page, simulate.Population, error) {
	name := c.String("history")
	switch {
	case name != "" && (c.IsSet("population") || c.IsSet("pages")):
		return nil, nil, flags.Usagef("-history excludes -population and -pages")
	case name != "" && c.IsSet("shift"):
		return nil, nil, flags.Usagef("-history says when pages change, and excludes -shift")
	case name == "" && (c.IsSet("signature") || c.IsSet("truth")):
		return nil, nil, flags.Usagef("-signature and -truth are for a -history with signatures")
	}
	importance, seed := simulate.Importance(c.String("importance")), c.Uint64("seed")
	if !slices.Contains(simulate.Importances(), importance) {
		return nil, nil, flags.Usagef("-importance: %q is not one of %s", importance, list(simulate.Importances()))
	}
	if name != "" {
		history, err := readHistory(name)
		if err != nil {
			return nil, nil, err
		}
		all, err := simulate.BySignature(history, c.String("signature"), c.String("truth"))
		if err != nil {
			return nil, nil, flags.Usagef("%v", err)
		}
		pages, err := simulate.Histories(all, importance, seed)
		return history, pages, err
	}
	rates := simulate.Rates(c.String("population"))
	if !slices.Contains(simulate.AllRates(), rates) {
		return nil, nil, flags.Usagef("-population: %q is not one of %s", rates, list(simulate.AllRates()))
	}
	if c.IsSet("shift") && (rates == simulate.Weekdays || rates == simulate.Seasonal) {
		return nil, nil, flags.Usagef("-population %s says when pages change, and excludes -shift", rates)
	}
	n := int(c.Int("pages"))
	if n < 1 || n > mostPages {
		return nil, nil, flags.Usagef("-pages: %d is not a number from 1 to 10,000,000", n)
	}
	pages, err := simulate.Synthetic(rates, importance, n, seed)
	return nil, pages, err
}

func list[S ~string](of []S) string {
	words := make([]string, len(of))
	for i, w := range of {
		words[i] = string(w)
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// policiesOf returns the schedules to compare.
func policiesOf(c *cli.Command, pages simulate.Population, perDay float64) ([]simulate.Policy, error) {
	policies := simulate.Stock(len(pages), perDay)
	if c.IsSet("signals") && perDay > 0 {
		policies = slices.Insert(policies, len(policies)-1, simulate.SignalOptimum())
	}
	for _, f := range scheduleFlags() {
		if !c.IsSet(f.Names()[0]) {
			continue
		}
		s, err := scheduleOf(c)
		if err != nil {
			return nil, err
		}
		if l, ok := s.(schedule.Planner); ok {
			policies = slices.Insert(policies, 0, simulate.Learning("yours, learned", l))
			break
		}
		p := simulate.Policy{Name: "yours, by priority", Schedule: s, NutchCompat: c.Bool("nutch")}
		oldest := p
		oldest.Name, oldest.Order = "yours, oldest first", simulate.OldestFirst
		policies = slices.Insert(policies, 0, p, oldest)
		break
	}
	words := c.String("only")
	if words == "" {
		return policies, nil
	}
	all := policies
	policies = nil
	for _, p := range all {
		if slices.ContainsFunc(strings.Split(strings.ToLower(words), ","), func(w string) bool {
			w = strings.TrimSpace(w)
			return w != "" && strings.Contains(strings.ToLower(p.Name), w)
		}) {
			policies = append(policies, p)
		}
	}
	if len(policies) == 0 {
		return nil, flags.Usagef("-only: no schedule has a name with one of %s in it", strconv.Quote(words))
	}
	return policies, nil
}

// reference repeats published results.
func (a *app) reference(ctx context.Context, c *cli.Command) error {
	for _, f := range c.Flags {
		if name := f.Names()[0]; name != "reference" && name != "pages" && name != "help" && c.IsSet(name) {
			return flags.Usagef("-reference has its own pages and schedules, and excludes -%s", name)
		}
	}
	if n := c.Int("pages"); n < 1 || n > mostPages {
		return flags.Usagef("-pages: %d is not a number from 1 to 10,000,000", n)
	}
	done := render.ShowWork(a.err, "repeating published results")
	defer done()
	checks, failed := 0, 0
	for c, err := range simulate.Reference(ctx, int(c.Int("pages"))) {
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(a.out, c); err != nil {
			return err
		}
		if checks++; !c.OK() {
			failed++
		}
	}
	fmt.Fprintf(a.out, "%d checks, %d failed\n", checks, failed)
	if failed > 0 {
		return fmt.Errorf("%d of %d figures are off", failed, checks)
	}
	return nil
}
