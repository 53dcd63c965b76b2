package render

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/recrawl/recrawl/fetch"
)

// FetchReportJSON adds to the JSON of a fetch what was left out and why, and how long visits
// took.
func FetchReportJSON(r *fetch.Report, to map[string]any) map[string]any {
	to["timed_out"], to["too_slow"] = r.TimedOut, r.TooSlow
	to["followed"], to["filtered"] = r.Followed, r.Filtered
	to["host_fails"], to["host_waits"], to["crawl_delay"] = r.Causes.HostFails, r.Causes.HostWaits, r.Causes.CrawlDelay
	to["refused_seeds"] = RefusedSeedsJSON(r.RefusedSeeds)
	failures := map[string]int{}
	maps.Copy(failures, r.Causes.Failed)
	to["failures"] = failures
	l := &r.Latency
	to["latency_ms"] = map[string]int64{"count": int64(l.Count), "sum": l.Sum.Milliseconds(), "max": l.Max.Milliseconds(),
		"p50": l.Quantile(.5).Milliseconds(), "p95": l.Quantile(.95).Milliseconds(), "p99": l.Quantile(.99).Milliseconds()}
	return to
}

// FetchReport prints the same as text, without what is zero.
func FetchReport(w io.Writer, r *fetch.Report) {
	say := func(n int, what string) {
		if n > 0 {
			fmt.Fprintf(w, "%d %s\n", n, what)
		}
	}
	c := &r.Causes
	if len(c.Failed) > 0 {
		var all []string
		for _, word := range slices.Sorted(maps.Keys(c.Failed)) {
			all = append(all, fmt.Sprintf("%s %d", word, c.Failed[word]))
		}
		fmt.Fprintf(w, "failures: %s\n", strings.Join(all, ", "))
	}
	if l := &r.Latency; l.Count > 0 && l.Max > 0 {
		ms := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
		fmt.Fprintf(w, "a visit took %v at the median, %v at the 95th percentile, %v at most\n", ms(l.Quantile(.5)), ms(l.Quantile(.95)), ms(l.Max))
	}
	say(r.Followed, "visits were to pages beyond the list")
	say(r.Filtered, "pages were skipped because the rules reject them")
	say(c.HostFails, "pages were skipped because their hosts failed too often")
	say(c.HostWaits, "pages were skipped because their hosts asked for a longer wait")
	say(c.CrawlDelay, "pages were denied because robots.txt asks for too long a Crawl-delay")
	say(r.TimedOut, "pages were left for the next round: the time limit was reached")
	say(r.TooSlow, "pages were left for the next round: the fetch was too slow")
}
