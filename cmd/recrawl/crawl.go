package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb/dedup"
	"github.com/recrawl/recrawl/protocol"
)

// seedFile explains the format of a seed file.
const seedFile = `A seed file has one URL a line, optionally followed by name=value pairs, with tabs
between. nutch.score and nutch.fetchInterval (in seconds) mean what they mean to
Nutch. The other pairs become metadata. Empty lines and those that begin with # are
skipped.`

func (a *app) crawl() *cli.Command {
	return &cli.Command{
		Name:      "crawl",
		Category:  "All in one",
		Usage:     "inject seeds, if any, and run rounds of the crawl cycle",
		ArgsUsage: "[URL...]",
		Description: `Each round selects what is due, fetches and parses it, folds the outcome into
the crawl db, and inverts the links. The directory is created if it does not
exist. An interrupted round is finished first.

  recrawl crawl -d crawl -agent mybot -rounds 3 https://example.com/
  recrawl crawl -d crawl -agent mybot -seeds seeds.txt
  recrawl crawl -d crawl -agent mybot -adddays 31

The last also visits everything that is due within 31 days. With

  recrawl crawl -d crawl -agent mybot -schedule learned -budget 10000/day

it learns how often each page changes, and makes at most that many visits a day,
where they are worth most. The crawl remembers -schedule, -budget and -scoring:
later verbs on the same directory need not repeat them, and a verb that changes
them says so. To crawl a test server:

  recrawl crawl -d crawl -agent mybot -allow-private -delay 0 \
      -connect-to ::127.0.0.1:8080 http://site.example/

` + seedFile + "\n\n" + urlRulesFile + "\n\n" + hostRulesFile,
		Flags: flags(dirFlag(), seedsFlag(), networking(), sparing(), limiting(), urlRulesFlag(), stayFlag(), noSitemaps(), scoringFlag(), scheduling(),
			&cli.IntFlag{Name: "keep-segments", Usage: "after each round, keep only the newest `N` finished segments; index and readseg cannot read those removed (0: keep all)"},
			&cli.IntFlag{Name: "rounds", Category: toSelect, Usage: "stop after `N` rounds (0: when nothing is due)"},
			&cli.DurationFlag{Name: "round-time", Category: toSelect, Usage: "select no more URLs of a host per round than can be visited in this `TIME`, given the pauses between requests (0: no limit; default: 1h, unless -conf, -adddays or a limit for hosts is given)"},
			dedupFlag(), visitMetaFlag(),
			selecting(), conditions(), bounding(), memoryFlag(), minFreeFlag(), reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			seeds, err := a.seeds(c)
			if err != nil {
				return err
			}
			run := crawlRun{seeds: seeds}
			return a.untilRoom(ctx, func() error {
				return a.with(ctx, c, access{network: true, create: run.seeds != nil}, func(s *session) error { return a.runCrawl(ctx, c, s, &run) }, func(o *recrawl.Options) {
					o.Rounds, o.KeepSegments = c.Int("rounds"), c.Int("keep-segments")
					roundTime(c, &o.RoundTime)
					given(c, "visit-meta", &o.Update.VisitMeta)
					switch {
					case c.Bool("dedup") && o.Dedup == nil:
						o.Dedup = &dedup.Options{}
					case c.IsSet("dedup") && !c.Bool("dedup"):
						o.Dedup = nil
					}
				})
			})
		},
	}
}

// roundTime sets how long a round should take.
func roundTime(c *cli.Command, t *time.Duration) {
	if !c.IsSet("round-time") {
		return
	}
	if *t = c.Duration("round-time"); *t == 0 {
		*t = -1 // here 0 means no bound
	}
}

// crawlRun is what is left to inject, and which seeds could not be injected.
type crawlRun struct {
	seeds *seedSource
	bad   error
}

func (a *app) runCrawl(ctx context.Context, c *cli.Command, s *session, run *crawlRun) error {
	if run.seeds != nil {
		var err error
		if run.bad, err = a.injectSeeds(ctx, c, s, run.seeds); err != nil {
			if noRoom(err) && c.String("seeds") == "-" {
				return finalError{err} // standard input cannot be read again
			}
			return err
		}
		run.seeds = nil
	}
	stop := a.watched(c, s)
	report, err := s.crawler.Run(ctx)
	stop()
	if noRoom(err) && ctx.Err() == nil {
		return err
	}
	s.trouble.tell(a.err, c.Bool("v"))
	s.tellDamage(a.err)
	if e := a.printCrawl(c, &report, err == nil); err == nil {
		err = e
	}
	if e := a.printed(); e != nil {
		return finalError{e}
	}
	if err == nil {
		err = run.bad
	}
	return err
}

// injectSeeds injects the seeds that can be used. The second error ends the verb; the
// first, for the end of the run, says that some seeds could not be used.
func (a *app) injectSeeds(ctx context.Context, c *cli.Command, s *session, seeds *seedSource) (bad, err error) {
	r, err := s.crawler.InjectSeeds(ctx, seeds.all, s.injecting(c))
	if err != nil {
		return nil, err
	}
	if r.Seeds == 0 {
		return nil, fmt.Errorf("%s: it has no seeds", seeds.name)
	}
	const shown = 20
	bads := r.Bad[:min(len(r.Bad), shown)]
	for _, b := range bads {
		fmt.Fprintf(a.err, "recrawl: %v\n", b)
	}
	left := r.Filtered + r.Invalid
	if n := left - len(bads); n > 0 {
		fmt.Fprintf(a.err, "recrawl: and %d more\n", n)
	}
	if left > 0 {
		bad = fmt.Errorf("%d of %d seeds could not be used", left, r.Seeds)
		if left < r.Seeds {
			bad = fmt.Errorf("%w; the others were injected", bad)
		}
	}
	if c.Name == "inject" {
		if c.Bool("json") {
			return bad, a.printJSON(map[string]int{"seeds": r.Seeds, "new": r.New, "merged": r.Merged, "known": r.Known, "duplicate": r.Duplicate, "filtered": r.Filtered, "invalid": r.Invalid, "purged": r.Purged})
		}
		fmt.Fprintf(a.out, "%d seeds: %d new, %d merged, %d known, %d duplicate, %d filtered, %d invalid\n", r.Seeds, r.New, r.Merged, r.Known, r.Duplicate, r.Filtered, r.Invalid)
	}
	return bad, nil
}

// crawlJSON is what crawl -json prints.
type crawlJSON struct {
	Finished  bool           `json:"finished"`
	Rounds    int            `json:"rounds"`
	Selected  int            `json:"selected"`
	Visits    int            `json:"visits"`
	Outcomes  map[string]int `json:"outcomes"`
	Bytes     int64          `json:"bytes"`
	Links     int            `json:"links"`
	Overgrown int            `json:"overgrown"`
	Redirect  map[string]int `json:"redirects"`
	Segments  []string       `json:"segments"`
	Damaged   []string       `json:"damaged,omitempty"`
	NextDue   *time.Time     `json:"next_due,omitempty"`
	Seconds   float64        `json:"seconds"`
	Freshness *freshnessJSON `json:"freshness,omitempty"`
}

func (a *app) printCrawl(c *cli.Command, r *recrawl.Report, finished bool) error {
	if c.Bool("json") {
		j := crawlJSON{Finished: finished, Rounds: r.Rounds, Selected: r.Selected, Visits: r.Visited(), Outcomes: outcomes(r.Visits),
			Bytes: r.Bytes, Links: r.Links, Overgrown: r.Overgrown, Redirect: redirects(&r.Redirects), Segments: listed(r.Segments), Damaged: r.Damaged, Seconds: r.Elapsed.Seconds()}
		if !r.NextDue.IsZero() {
			j.NextDue = &r.NextDue
		}
		if r.Freshness != nil {
			j.Freshness = jsonOfFreshness(r.Freshness, defaultWants())
		}
		return a.printJSON(j)
	}
	fmt.Fprintf(a.out, "%d rounds, %d visits, %s, %d links in %v\n", r.Rounds, r.Visited(), size(r.Bytes), r.Links, r.Elapsed.Round(time.Millisecond))
	printOutcomes(a.out, r.Visits)
	if t := redirectText(&r.Redirects); t != "" {
		fmt.Fprintf(a.out, "  redirects     %s\n", t)
	}
	if s := &r.Sitemaps; s.Files > 0 {
		fmt.Fprintf(a.out, "  sitemaps      %d read, %d pages: %d new, %d due sooner\n", s.Files, s.URLs, r.SitemapEffects.New, r.SitemapEffects.Due)
	}
	if r.Freshness != nil {
		printFreshnessBriefly(a.out, r.Freshness)
	}
	if !r.NextDue.IsZero() {
		fmt.Fprintf(a.out, "  next due      %s\n", r.NextDue.Format(time.RFC3339))
	}
	return nil
}

func outcomes(visits map[protocol.Code]int) map[string]int {
	m := map[string]int{}
	for code, n := range visits {
		m[code.String()] = n
	}
	return m
}

func printOutcomes(w io.Writer, visits map[protocol.Code]int) {
	codes := make([]protocol.Code, 0, len(visits))
	for code := range visits {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	for _, code := range codes {
		fmt.Fprintf(w, "  %-13s %d\n", code, visits[code])
	}
}

func size(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n == 0:
		return "0 B"
	default:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
}

// showProgress keeps a line on a terminal up to date until stop is called;
// elsewhere it prints nothing.
func (a *app) showProgress(c *cli.Command, crawler *recrawl.Crawler) (stop func()) {
	f, ok := a.err.(*os.File)
	if !ok || c.Bool("json") {
		return func() {}
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func() {}
	}
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		var rate meter
		for {
			select {
			case <-quit:
				fmt.Fprint(f, "\r\x1b[K")
				return
			case now := <-tick.C:
				s := crawler.Status()
				fmt.Fprintf(f, "\r\x1b[K%s", progressLine(&s, rate.perSecond(now, s.Visited())))
			}
		}
	})
	return func() { close(quit); wg.Wait() }
}

// progressLine is one line about a crawl under way.
func progressLine(s *recrawl.Status, perSecond float64) string {
	bad := 0
	for code, n := range s.Visits {
		if code.Transient() {
			bad += n
		}
	}
	line := fmt.Sprintf("round %d %-8s %d pages, %.0f/s, %s, %d errors, %d hosts active", s.Rounds+1, s.Stage, s.Visited(), perSecond, size(s.Bytes), bad, s.Fetch.Hosts)
	if s.Fetch.Listed > s.Fetch.Done {
		line += fmt.Sprintf(", %d waiting", s.Fetch.Listed-s.Fetch.Done)
	}
	if !s.NextDue.IsZero() {
		line += ", next due " + s.NextDue.Format(time.DateTime)
	}
	return line
}

// meter measures a rate over the last ten seconds.
type meter struct {
	at []time.Time
	n  []int
}

func (m *meter) perSecond(now time.Time, n int) float64 {
	m.at, m.n = append(m.at, now), append(m.n, n)
	for len(m.at) > 2 && now.Sub(m.at[0]) > 10*time.Second {
		m.at, m.n = m.at[1:], m.n[1:]
	}
	if d := now.Sub(m.at[0]).Seconds(); d > 0 {
		return float64(n-m.n[0]) / d
	}
	return 0
}
