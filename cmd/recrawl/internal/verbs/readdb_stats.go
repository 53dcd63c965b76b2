package verbs

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/nutch/nutchtext"
)

// statsJSON is what readdb -stats -json prints.
type statsJSON struct {
	Total         int                       `json:"total"`
	Due           int                       `json:"due"`
	Leased        int                       `json:"leased"`
	Sitemaps      int                       `json:"sitemaps,omitempty"`
	Status        map[string]int            `json:"status"`
	Retry         map[string]int            `json:"retry"`
	Host          map[string]int            `json:"host"`
	HostStatus    map[string]map[string]int `json:"host_status"`
	Score         distributionJSON          `json:"score"`
	Interval      distributionJSON          `json:"interval_seconds"`
	NaN           int                       `json:"score_nan"`
	EarliestFetch *time.Time                `json:"earliest_fetch_time,omitempty"`
	MeanFetch     *time.Time                `json:"avg_fetch_time,omitempty"`
	LatestFetch   *time.Time                `json:"latest_fetch_time,omitempty"`
	Freshness     *render.FreshnessJSON     `json:"freshness"`
}

type distributionJSON struct {
	Min       float64            `json:"min"`
	Avg       float64            `json:"avg"`
	Max       float64            `json:"max"`
	Quantiles map[string]float64 `json:"quantiles,omitempty"`
}

func distribution(d crawldb.Distribution, asked []float64) distributionJSON {
	j := distributionJSON{Min: d.Min, Avg: d.Mean, Max: d.Max}
	for i, q := range d.Quantiles {
		if j.Quantiles == nil {
			j.Quantiles = map[string]float64{}
		}
		j.Quantiles[strconv.FormatFloat(asked[i], 'g', -1, 64)] = q
	}
	return j
}

// showingStore is a store that also passes each record it reads to a function.
type showingStore struct {
	crawldb.Store
	see func(*crawldb.Datum)
}

func (s showingStore) Scan(ctx context.Context, r crawldb.Range) iter.Seq2[crawldb.Datum, error] {
	return func(yield func(crawldb.Datum, error) bool) {
		for d, err := range s.Store.Scan(ctx, r) {
			if err == nil {
				s.see(&d)
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

func (a *app) stats(ctx context.Context, c *cli.Command, s *session, format string, ask []float64) error {
	census, err := s.crawler.NewCensus(ctx)
	if err != nil {
		return err
	}
	db := showingStore{s.db.Crawl(), census.Add}
	if format == "nutch" {
		db.see = func(*crawldb.Datum) {}
	}
	st, err := crawldb.ReadStats(ctx, db, s.now(), ask...)
	if err != nil {
		return err
	}
	if format == "nutch" {
		_, err := a.out.Write(nutchtext.AppendStats(nil, &st, c.Bool("sort")))
		return err
	}
	hosts := freshHosts
	if format == "json" {
		hosts = allHosts
	}
	fresh, err := census.Freshness(ctx, hosts)
	if err != nil {
		return err
	}
	if format == "json" {
		return a.printJSON(jsonOfStats(&st, &fresh))
	}
	return printStats(a.out, &st, &fresh, c.Bool("sort"))
}

func jsonOfStats(st *crawldb.Stats, fresh *recrawl.Freshness) statsJSON {
	j := statsJSON{Freshness: render.NewFreshnessJSON(fresh, defaultWants()), Total: st.Total, Due: st.Due, Leased: st.Leased, Sitemaps: st.Sitemaps, Status: map[string]int{}, Retry: map[string]int{}, Host: st.Hosts, HostStatus: map[string]map[string]int{},
		Score: distribution(st.Score, st.Asked), Interval: distribution(st.Interval, st.Asked), NaN: st.NaN,
		EarliestFetch: render.TimeOrNil(st.EarliestFetch), MeanFetch: render.TimeOrNil(st.MeanFetch), LatestFetch: render.TimeOrNil(st.LatestFetch)}
	for s, n := range st.Statuses {
		j.Status[s.String()] = n
	}
	for r, n := range st.Retries {
		j.Retry[strconv.Itoa(r)] = n
	}
	for h, m := range st.HostStatuses {
		j.HostStatus[h] = map[string]int{}
		for s, n := range m {
			j.HostStatus[h][s.String()] = n
		}
	}
	return j
}

// printStats prints statistics in Nutch's order, with the hosts of each status if byHost is set;
// what Nutch does not print comes last.
func printStats(out io.Writer, st *crawldb.Stats, fresh *recrawl.Freshness, byHost bool) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "TOTAL urls:\t%d\ndue now:\t%d\nleased:\t%d\n", st.Total, st.Due, st.Leased)
	if st.Sitemaps > 0 {
		fmt.Fprintf(w, "sitemaps:\t%d\n", st.Sitemaps)
	}
	if st.Total == 0 {
		return w.Flush()
	}
	fmt.Fprintf(w, "shortest fetch interval:\t%s\navg fetch interval:\t%s\nlongest fetch interval:\t%s\n", secs(st.Interval.Min), secs(st.Interval.Mean), secs(st.Interval.Max))
	fmt.Fprintf(w, "earliest fetch time:\t%s\navg of fetch times:\t%s\nlatest fetch time:\t%s\n", render.Time(st.EarliestFetch), render.Time(st.MeanFetch), render.Time(st.LatestFetch))
	for _, r := range slices.Sorted(maps.Keys(st.Retries)) {
		fmt.Fprintf(w, "retry %d:\t%d\n", r, st.Retries[r])
	}
	if st.NaN > 0 {
		fmt.Fprintf(w, "score == NaN:\t%d\n", st.NaN)
	}
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }
	quantiles(w, "score", st.Asked, st.Score, number)
	fmt.Fprintf(w, "min score:\t%s\navg score:\t%s\nmax score:\t%s\n", number(st.Score.Min), number(st.Score.Mean), number(st.Score.Max))
	for _, s := range crawldb.Statuses() {
		if st.Statuses[s] == 0 {
			continue
		}
		fmt.Fprintf(w, "status %d (%s):\t%d\n", s, s, st.Statuses[s])
		for _, h := range slices.Sorted(maps.Keys(st.HostStatuses)) {
			if n := st.HostStatuses[h][s]; n > 0 && byHost {
				fmt.Fprintf(w, "   %s :\t%d\n", h, n)
			}
		}
	}
	quantiles(w, "fetch interval", st.Asked, st.Interval, secs)
	printStatsOfHosts(w, st)
	render.Freshness(w, fresh, defaultWants())
	if err := render.HostConditions(w, fresh.Hosts); err != nil {
		return err
	}
	return w.Flush()
}

// printStatsOfHosts prints the hosts with the most records.
func printStatsOfHosts(w io.Writer, st *crawldb.Stats) {
	const most = 50
	hosts := slices.SortedFunc(maps.Keys(st.Hosts), func(x, y string) int {
		return cmp.Or(cmp.Compare(st.Hosts[y], st.Hosts[x]), strings.Compare(x, y))
	})
	for i, h := range hosts {
		if i == most {
			fmt.Fprintf(w, "and %d more hosts (-json shows all)\n", len(hosts)-most)
			break
		}
		var parts []string
		for _, s := range crawldb.Statuses() {
			if n := st.HostStatuses[h][s]; n > 0 {
				parts = append(parts, fmt.Sprintf("%s %d", strings.TrimPrefix(s.String(), "db_"), n))
			}
		}
		fmt.Fprintf(w, "host %s:\t%d\t(%s)\n", h, st.Hosts[h], strings.Join(parts, ", "))
	}
}

// freshHosts is the number of hosts whose freshness -stats shows.
const freshHosts = 10

func quantiles(w io.Writer, what string, asked []float64, d crawldb.Distribution, show func(float64) string) {
	for i, q := range d.Quantiles {
		fmt.Fprintf(w, "%s quantile %v:\t%s\n", what, asked[i], show(q))
	}
}

// parseQuantiles reads -quantiles.
func parseQuantiles(c *cli.Command) (asked []float64, err error) {
	if !c.IsSet("quantiles") {
		return nil, nil
	}
	for text := range strings.SplitSeq(c.String("quantiles"), ",") {
		q, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || !(q >= 0 && q <= 1) {
			return nil, flags.Usagef("-quantiles: %q is not a number from 0 to 1", text)
		}
		asked = append(asked, q)
	}
	slices.Sort(asked)
	return slices.Compact(asked), nil
}

// secs shows seconds as Nutch does: "30 days, 00:00:00".
func secs(f float64) string { return nutchtext.DaysHMS(int64(f + .5)) }
