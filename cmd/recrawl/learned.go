package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/schedule"
)

// scheduling returns the flags that say when pages are fetched again. A crawl keeps them.
func scheduling() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "schedule", Category: toSelect, Usage: "fetch pages again on this `KIND` of schedule: learned (as often as each changes and matters), adaptive, or default (at the interval of each). The crawl remembers it until another is given; conf: as -conf says (default: adaptive)"},
		&cli.StringFlag{Name: "budget", Category: toSelect, Usage: "with -schedule learned: make at most `N/TIME` visits, such as 10000/day, 50000/week or 500/hour, or polite: as many as hosts and threads allow. The crawl remembers it. 0: no limit, and a visit to each page every 30 days on average (default: 0)"},
	}
}

// scheduled makes the schedule that a crawl keeps.
func scheduled(k kept, o *recrawl.Options) error {
	if k.Budget != "" && k.Schedule != "learned" {
		return usagef("-budget works only with -schedule learned")
	}
	if k.Schedule == "" {
		return nil
	}
	var base schedule.Default
	switch s := o.Schedule.(type) { // the schedule of a configuration
	case *schedule.Default:
		base = *s
	case schedule.Default:
		base = s
	case *schedule.Adaptive:
		base = s.Default
	case schedule.Adaptive:
		base = s.Default
	case *schedule.MimeAdaptive:
		base = s.Default
	case schedule.MimeAdaptive:
		base = s.Default
	}
	switch k.Schedule {
	case "default":
		o.Schedule = base
	case "adaptive":
		o.Schedule = schedule.Adaptive{Default: base}
	case "learned":
		perDay, err := parseBudget(k.Budget)
		if err != nil {
			return err
		}
		o.Schedule = schedule.Learned{Default: base, Budget: perDay}
	default:
		return usagef("-schedule: %q is not one of learned, adaptive and default", k.Schedule)
	}
	return nil
}

// parseBudget reads visits a day.
func parseBudget(text string) (float64, error) {
	switch text {
	case "":
		return 0, nil
	case "polite":
		return -1, nil
	}
	number, per, ok := strings.Cut(text, "/")
	n, err := strconv.ParseFloat(number, 64)
	days := map[string]float64{"hour": 1. / 24, "day": 1, "week": 7, "month": 30, "year": 365}[per]
	if !ok {
		days = 1
	}
	if err != nil || !(n > 0) || n > 1e12 || days == 0 {
		return 0, usagef("-budget: %q is neither a number of visits such as 10000/day, 50000/week or 500/hour, nor \"polite\"", text)
	}
	return n / days, nil
}

// printWorth shows how the learned schedule arrives at an interval.
func printWorth(w io.Writer, e *recrawl.Explanation) {
	x := e.Worth
	how := "expected of pages like it"
	if x.Alike {
		how = "as all pages do, which proved to be alike"
	} else if x.Learned {
		how = fmt.Sprintf("learned, %.3g of %.3g days", x.Rate.Shape, x.Rate.Days)
	}
	fmt.Fprintf(w, "changes      %.3g ± %.2g a day, once in %s: %s\n", x.Rate.PerDay(), x.Rate.Deviation(), inDays(1/x.Rate.PerDay()), how)
	if x.Fixed {
		fmt.Fprintf(w, "interval     %s, fixed\n", inDays(x.Interval.Hours()/24))
		printNext(w, e)
		return
	}
	if x.Noise {
		fmt.Fprintf(w, "visited      by importance alone, as if the page changed %.3g times a day: what visits find is noise\n", x.Pace)
	}
	if x.Even && !x.Alike {
		fmt.Fprintf(w, "visited      as often as all pages, as if it changed %.3g times a day: telling them apart is worth %+.1f %%\n", x.Pace, 100*x.Gain)
	}
	of := ""
	if x.OfHost {
		of = fmt.Sprintf(" (elsewhere %.3g: the host allows fewer visits than its pages are worth)", x.Elsewhere)
	}
	fmt.Fprintf(w, "worth        weight %.3g; a visit must be worth %.3g%s of the %.3g / %.3g = %.3g there is to lose, a share of %.3g\n", x.Weight, x.Threshold, of, x.Weight, x.Pace, x.Weight/x.Pace, x.Share)
	if g := x.Signals; g != (schedule.Signals{}) {
		fmt.Fprintf(w, "signs        %.3g of them are true, and they tell of %.3g of the changes: without one a visit can wait longer; each counts as %.3g changes, %d since the last visit\n", g.Precision, g.Recall, x.Sign, x.Signs)
	}
	wait := "never: no visit is worth so much"
	if !math.IsInf(x.Ratio, 1) {
		wait = fmt.Sprintf("after %.3g changes, %.3g / %.3g = %s", x.Ratio, x.Ratio, x.Pace, inDays(x.Ratio/x.Pace))
	}
	fmt.Fprintf(w, "interval     %s; from %s to %s: %s\n", wait, inDays(x.Least.Hours()/24), inDays(x.Most.Hours()/24), inDays(x.Interval.Hours()/24))
	switch most := x.Most.Hours() / 24; {
	case x.Stretch < 1:
		fmt.Fprintf(w, "greatest     %s\n", stretched(x.Set, x.Most))
	case x.Stretch > 1 && x.Interval == x.Most:
		fmt.Fprintf(w, "greatest     the budget is too small for %s: the next visit comes within %s\n", inDays(most), inDays(most*x.Stretch))
	}
	if e.Noisy != nil {
		fmt.Fprintf(w, "noise        %s\n", noise(*e.Noisy))
	}
	printNext(w, e)
}

// printNext says when the page is due, and why.
func printNext(w io.Writer, e *recrawl.Explanation) {
	d := e.Record
	if d.LastFetch.IsZero() {
		return
	}
	next := d.LastFetch.Add(d.Interval)
	fmt.Fprintf(w, "next         %s + %s, as of that visit, = %s", stamp(d.LastFetch), inDays(d.Interval.Hours()/24), stamp(next))
	if !next.Equal(d.FetchTime) {
		fmt.Fprintf(w, "; moved to %s", stamp(d.FetchTime))
	}
	fmt.Fprintln(w)
	if e.Elapsed > 0 {
		fmt.Fprintf(w, "fresh        with a probability of %.3g, %s after that\n", e.Fresh, inDays(e.Elapsed.Hours()/24))
	}
}

// inDays formats a number of days, in a more suitable unit where there is one.
func inDays(days float64) string {
	switch {
	case days*24*60 < 2:
		return fmt.Sprintf("%.3gs", days*86400)
	case days*24 < 2:
		return fmt.Sprintf("%.3gm", days*24*60)
	case days < 2:
		return fmt.Sprintf("%.3gh", days*24)
	case days >= 1000:
		return fmt.Sprintf("%.0fd", days)
	}
	return fmt.Sprintf("%.3gd", days)
}

func worthJSON(e *recrawl.Explanation) map[string]any {
	x := e.Worth
	j := map[string]any{"changes_per_day": x.Rate.PerDay(), "deviation": x.Rate.Deviation(), "shape": x.Rate.Shape, "days": x.Rate.Days, "learned": x.Learned, "alike": x.Alike, "even": x.Even, "noise": x.Noise, "pace": x.Pace, "gain": x.Gain,
		"weight": x.Weight, "threshold": x.Threshold, "threshold_of_host": x.OfHost, "threshold_elsewhere": x.Elsewhere, "share": x.Share, "fixed": x.Fixed,
		"interval_seconds": x.Interval / time.Second, "least_seconds": x.Least / time.Second, "most_seconds": x.Most / time.Second, "most_set_seconds": x.Set / time.Second, "stretch": x.Stretch}
	if n := e.Noisy; n != nil {
		j["noisy"] = noisyJSON(*n)
	}
	if g := x.Signals; g != (schedule.Signals{}) {
		j["signals"] = map[string]any{"precision": g.Precision, "recall": g.Recall, "counts_as": x.Sign, "since_last_visit": x.Signs}
	}
	if e.Elapsed > 0 {
		j["fresh"], j["elapsed_seconds"] = e.Fresh, e.Elapsed.Seconds()
	}
	if !math.IsInf(x.Ratio, 1) {
		j["ratio"] = x.Ratio
	}
	return j
}
