package render

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/urlfilter"
)

// ExplanationJSON returns an explanation under the names of docs/json.md.
func ExplanationJSON(e *recrawl.Explanation) map[string]any {
	out := map[string]any{"url": e.URL, "normal": e.Normal, "verdict": e.Verdict, "due": e.Due, "leased": e.Leased,
		"robots_known": e.RobotsKnown, "robots_allowed": e.RobotsAllowed, "robots_unavailable": e.RobotsUnavailable, "crawl_delay_seconds": e.CrawlDelay.Seconds()}
	if e.Rejected != nil {
		out["rejected"] = e.Rejected.Error()
	}
	if !e.BudgetSpentUntil.IsZero() {
		out["budget_spent_until"] = e.BudgetSpentUntil
	}
	if e.Record != nil {
		out["record"] = NewRecordJSON(e.Record)
	}
	if e.Visit != nil {
		out["visit"] = VisitJSON(e.Visit)
	}
	if m := e.Sitemap; m != nil {
		out["sitemap"] = map[string]any{"depth": m.Depth, "listed_by": NonNil(m.Origins)}
	}
	if h := e.SitemapEntry; h != nil {
		out["signal"] = map[string]any{"modified": h.Modified, "span_seconds": h.Span.Seconds(), "verdict": e.SignalVerdict}
	}
	if e.Worth != nil {
		out["schedule"] = worthJSON(e)
	}
	if e.Host != nil {
		out["host"] = NewHostJSON(e.Host)
	}
	return out
}

// Explanation prints the verdict first, what robots.txt says next to it, and then the rest.
func Explanation(w io.Writer, e *recrawl.Explanation) error {
	fmt.Fprintf(w, "%s\n", e.Verdict)
	if e.Rejected == nil || errors.Is(e.Rejected, urlfilter.ErrRejected) {
		fmt.Fprintf(w, "robots.txt   %s\n", robots(e))
	}
	if e.Normal != e.URL {
		fmt.Fprintf(w, "\nnormal form  %s\n", e.Normal)
	}
	fmt.Fprintln(w)
	switch {
	case e.Rejected != nil && !errors.Is(e.Rejected, urlfilter.ErrRejected):
		return nil // it can have neither a host nor a record
	case e.Rejected != nil:
		fmt.Fprintf(w, "rules        %v\n", e.Rejected)
	default:
		fmt.Fprintln(w, "rules        accepted")
	}
	if h := e.Host; h != nil {
		fmt.Fprintf(w, "host         %s may be visited from %s; %d fetched, %d failed, %d in a row, back-off %d\n", h.Name, Time(h.NextFetch), h.Stats.Fetched, h.Stats.Failed, h.Stats.Failures, h.Backoff)
	} else {
		fmt.Fprintln(w, "host         never visited")
	}
	if e.Record == nil {
		fmt.Fprintln(w, "record       none")
		return nil
	}
	if v := e.Visit; v != nil {
		fmt.Fprintf(w, "last visit   %s\n", visitText(v))
	}
	if m := e.Sitemap; m != nil {
		fmt.Fprintf(w, "sitemap      at depth %d; listed by %s\n", m.Depth, cmp.Or(strings.Join(m.Origins, ", "), "nobody"))
	}
	if h := e.SitemapEntry; h != nil {
		fmt.Fprintf(w, "sitemaps say modified %s within %v: %s\n", Time(h.Modified), h.Span, e.SignalVerdict)
	}
	if e.Worth != nil {
		printWorth(w, e)
	}
	lease := "none"
	if e.Leased {
		lease = e.Record.LeasedBy + " until " + Time(e.Record.LeasedUntil)
	}
	fmt.Fprintf(w, "lease        %s\n\n", lease)
	return Record(w, e.Record)
}

// printWorth shows how the learned schedule arrives at an interval.
func printWorth(w io.Writer, e *recrawl.Explanation) {
	x := e.Worth
	how := "expected of pages like it"
	if x.Homogeneous {
		how = "as all pages do, which proved to be alike"
	} else if x.Learned {
		how = fmt.Sprintf("learned, %.3g of %.3g days", x.Rate.Shape, x.Rate.Days)
	}
	fmt.Fprintf(w, "changes      %.3g ± %.2g a day, once in %s: %s\n", x.Rate.PerDay(), x.Rate.Deviation(), Days(1/x.Rate.PerDay()), how)
	if x.Fixed {
		fmt.Fprintf(w, "interval     %s, fixed\n", Days(x.Interval.Hours()/24))
		printNext(w, e)
		return
	}
	if x.Noise {
		fmt.Fprintf(w, "visited      by importance alone, as if the page changed %.3g times a day: what visits find is noise\n", x.Pace)
	}
	if x.Uniform && !x.Homogeneous {
		fmt.Fprintf(w, "visited      as often as all pages, as if it changed %.3g times a day: telling them apart is worth %+.1f %%\n", x.Pace, 100*x.Gain)
	}
	of := ""
	if x.ThresholdOfHost {
		of = fmt.Sprintf(" (elsewhere %.3g: the host allows fewer visits than its pages are worth)", x.CommonThreshold)
	}
	fmt.Fprintf(w, "worth        weight %.3g; a visit must be worth %.3g%s of the %.3g / %.3g = %.3g there is to lose, a share of %.3g\n", x.Weight, x.Threshold, of, x.Weight, x.Pace, x.Weight/x.Pace, x.Share)
	if g := x.SignalQuality; g != (schedule.SignalQuality{}) {
		fmt.Fprintf(w, "signs        %.3g of them are true, and they tell of %.3g of the changes: without one a visit can wait longer; each counts as %.3g changes, %d since the last visit\n", g.Precision, g.Recall, x.ChangesPerSignal, x.Signals)
	}
	wait := "never: no visit is worth so much"
	if !math.IsInf(x.Ratio, 1) {
		wait = fmt.Sprintf("after %.3g changes, %.3g / %.3g = %s", x.Ratio, x.Ratio, x.Pace, Days(x.Ratio/x.Pace))
	}
	fmt.Fprintf(w, "interval     %s; from %s to %s: %s\n", wait, Days(x.Least.Hours()/24), Days(x.Most.Hours()/24), Days(x.Interval.Hours()/24))
	switch most := x.Most.Hours() / 24; {
	case x.Stretch < 1:
		fmt.Fprintf(w, "greatest     %s\n", stretched(x.MaxSet, x.Most))
	case x.Stretch > 1 && x.Interval == x.Most:
		fmt.Fprintf(w, "greatest     the budget is too small for %s: the next visit comes within %s\n", Days(most), Days(most*x.Stretch))
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
	fmt.Fprintf(w, "next         %s + %s, as of that visit, = %s", Time(d.LastFetch), Days(d.Interval.Hours()/24), Time(next))
	if !next.Equal(d.FetchTime) {
		fmt.Fprintf(w, "; moved to %s", Time(d.FetchTime))
	}
	fmt.Fprintln(w)
	if e.Elapsed > 0 {
		fmt.Fprintf(w, "fresh        with a probability of %.3g, %s after that\n", e.Fresh, Days(e.Elapsed.Hours()/24))
	}
}

func worthJSON(e *recrawl.Explanation) map[string]any {
	x := e.Worth
	j := map[string]any{"changes_per_day": x.Rate.PerDay(), "deviation": x.Rate.Deviation(), "shape": x.Rate.Shape, "days": x.Rate.Days, "learned": x.Learned, "alike": x.Homogeneous, "even": x.Uniform, "noise": x.Noise, "pace": x.Pace, "gain": x.Gain,
		"weight": x.Weight, "threshold": x.Threshold, "threshold_of_host": x.ThresholdOfHost, "threshold_elsewhere": x.CommonThreshold, "share": x.Share, "fixed": x.Fixed,
		"interval_seconds": x.Interval / time.Second, "least_seconds": x.Least / time.Second, "most_seconds": x.Most / time.Second, "most_set_seconds": x.MaxSet / time.Second, "stretch": x.Stretch}
	if n := e.Noisy; n != nil {
		j["noisy"] = noisyJSON(*n)
	}
	if g := x.SignalQuality; g != (schedule.SignalQuality{}) {
		j["signals"] = map[string]any{"precision": g.Precision, "recall": g.Recall, "counts_as": x.ChangesPerSignal, "since_last_visit": x.Signals}
	}
	if e.Elapsed > 0 {
		j["fresh"], j["elapsed_seconds"] = e.Fresh, e.Elapsed.Seconds()
	}
	if !math.IsInf(x.Ratio, 1) {
		j["ratio"] = x.Ratio
	}
	return j
}

// robots says what robots.txt means for a URL.
func robots(e *recrawl.Explanation) string {
	switch {
	case !e.RobotsKnown:
		return "unknown or expired; fetched first"
	case e.RobotsUnavailable:
		return "unavailable"
	case e.RobotsAllowed:
		return fmt.Sprintf("allows it, Crawl-delay %v", e.CrawlDelay)
	}
	return "forbids it"
}
