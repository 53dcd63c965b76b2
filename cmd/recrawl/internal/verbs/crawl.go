package verbs

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/crawldb/dedup"
)

func (a *app) crawl() *cli.Command {
	return &cli.Command{
		Name:      "crawl",
		Category:  flags.AllInOne,
		Usage:     "inject seeds, if any, and run rounds of the crawl cycle",
		ArgsUsage: "[URL...]",
		Description: `Each round selects what is due, fetches and parses it, folds the outcome into
the crawl db, and inverts the links. The directory is created if it does not
exist. An interrupted round is finished first. A seed that cannot be used, or is not
requested because robots.txt or a rule of this crawler forbids it, is named on standard
error, and the exit code is 1.

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

` + render.MoreHelp + seedFileFormat + "\n\n" + flags.URLRulesFormat + "\n\n" + flags.HostRulesFormat,
		Flags: flags.Join(flags.Dir(), flags.Seeds(), flags.Network(), flags.Archive(), flags.Rendering(), flags.Documents(), flags.Politeness(), flags.FetchLimits(), flags.URLRules(), flags.IgnoreExternal(), noSitemaps(), flags.Extraction(), flags.Scoring(), flags.Scheduling(), flags.Retention(),
			&cli.IntFlag{Name: "rounds", Category: flags.SelectionGroup, Usage: "stop after `N` rounds (0: when nothing is due)"},
			&cli.DurationFlag{Name: "round-time", Category: flags.SelectionGroup, Usage: "select no more URLs of a host per round than can be visited in this `TIME`, given the pauses between requests (0: no limit; default: 1h, unless -conf, -adddays or a limit for hosts is given)"},
			dedupFlag(), visitMetaFlag(), metricsFlag(), groupFlags(),
			flags.Selection(), flags.Conditions(), flags.EndlessSites(), flags.Memory(), flags.MinFree(), flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			seeds, err := seedsOf(c)
			if err != nil {
				return err
			}
			retention, err := flags.ReadRetention(c)
			if err != nil {
				return err
			}
			metrics, err := a.serveMetrics(c)
			if err != nil {
				return err
			}
			defer metrics.close()
			adjust := func(o *recrawl.Options) {
				metrics.observe(o)
				o.Run.Rounds, o.Retention = c.Int("rounds"), retention
				roundTime(c, &o.Run.RoundTime)
				flags.SetBool(c, "visit-meta", &o.Update.VisitMeta)
				switch {
				case c.Bool("dedup") && o.Dedup == nil:
					o.Dedup = &dedup.Options{}
				case c.IsSet("dedup") && !c.Bool("dedup"):
					o.Dedup = nil
				}
			}
			if done, err := a.crawlAsWorker(ctx, c, seeds, adjust); done || err != nil {
				return err
			}
			run := crawlRun{metrics: metrics, seeds: seeds, fromArchive: seeds == nil && c.IsSet("replay")}
			return a.retryWhileFull(ctx, func() error {
				return a.withCrawl(ctx, c, access{network: true, create: run.seeds != nil || run.fromArchive}, func(s *session) error { return a.runCrawl(ctx, c, s, &run) }, adjust)
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
	seeds       *seedSource
	fromArchive bool // the seeds are the URLs of the archive
	bad         error
	metrics     *metricsServer
}

func (a *app) runCrawl(ctx context.Context, c *cli.Command, s *session, run *crawlRun) error {
	if run.fromArchive {
		run.seeds, run.fromArchive = archivedSeeds(s.archive), false
	}
	if run.seeds != nil {
		var err error
		if run.bad, err = a.injectSeeds(ctx, c, s, run.seeds); err != nil {
			if DiskFull(err) && c.String("seeds") == "-" {
				return finalError{err} // standard input cannot be read again
			}
			return err
		}
		run.seeds = nil
	}
	unwatch := run.metrics.watch(ctx, s)
	stop := a.watched(c, s)
	report, err := s.crawler.Run(ctx)
	stop()
	unwatch()
	if DiskFull(err) && ctx.Err() == nil {
		return err
	}
	s.failures.Report(a.err, c.Bool("v"))
	render.RefusedSeeds(a.err, report.RefusedSeeds)
	s.reportDamage(a.err)
	if e := a.printCrawl(c, &report, err == nil); err == nil {
		err = e
	}
	if e := a.printed(); e != nil {
		return finalError{e}
	}
	if err == nil {
		err = run.bad
	}
	if n := len(report.RefusedSeeds); err == nil && n > 0 {
		err = fmt.Errorf("%d of the seeds were not requested", n)
	}
	return err
}

// crawlJSON is what crawl -json prints.
type crawlJSON struct {
	Finished  bool                  `json:"finished"`
	Rounds    int                   `json:"rounds"`
	Selected  int                   `json:"selected"`
	Visits    int                   `json:"visits"`
	Outcomes  map[string]int        `json:"outcomes"`
	Bytes     int64                 `json:"bytes"`
	Links     int                   `json:"links"`
	Overgrown int                   `json:"overgrown"`
	Redirect  map[string]int        `json:"redirects"`
	Segments  []string              `json:"segments"`
	Damaged   []string              `json:"damaged,omitempty"`
	Refused   []map[string]string   `json:"refused_seeds"`
	NextDue   *time.Time            `json:"next_due,omitempty"`
	Seconds   float64               `json:"seconds"`
	Freshness *render.FreshnessJSON `json:"freshness,omitempty"`
}

func (a *app) printCrawl(c *cli.Command, r *recrawl.Report, finished bool) error {
	if c.Bool("json") {
		j := crawlJSON{Finished: finished, Rounds: r.Rounds, Selected: r.Selected, Visits: r.Visited(), Outcomes: render.OutcomesJSON(r.Visits),
			Bytes: r.Bytes, Links: r.Links, Overgrown: r.Overgrown, Redirect: render.RedirectsJSON(&r.Redirects), Segments: render.NonNil(r.Segments), Damaged: r.Damaged, Refused: render.RefusedSeedsJSON(r.RefusedSeeds), Seconds: r.Elapsed.Seconds()}
		if !r.NextDue.IsZero() {
			j.NextDue = &r.NextDue
		}
		if r.Freshness != nil {
			j.Freshness = render.NewFreshnessJSON(r.Freshness, defaultWants())
		}
		return a.printJSON(j)
	}
	fmt.Fprintf(a.out, "%d rounds, %d visits, %s, %d links in %v\n", r.Rounds, r.Visited(), render.Size(r.Bytes), r.Links, r.Elapsed.Round(time.Millisecond))
	render.Outcomes(a.out, r.Visits)
	if t := render.Redirects(&r.Redirects); t != "" {
		fmt.Fprintf(a.out, "  redirects     %s\n", t)
	}
	if s := &r.Sitemaps; s.Files > 0 {
		fmt.Fprintf(a.out, "  sitemaps      %d read, %d pages: %d new, %d due sooner\n", s.Files, s.URLs, r.SitemapEffects.New, r.SitemapEffects.Due)
	}
	if r.Freshness != nil {
		render.FreshnessInBrief(a.out, r.Freshness)
	}
	if !r.NextDue.IsZero() {
		fmt.Fprintf(a.out, "  next due      %s\n", r.NextDue.Format(time.RFC3339))
	}
	return nil
}
