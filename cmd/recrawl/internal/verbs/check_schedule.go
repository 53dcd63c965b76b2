package verbs

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/nutch/nutchconf"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/urlfilter"
)

func (a *app) checkSchedule() *cli.Command {
	return &cli.Command{
		Name: "schedule", Usage: "say when a URL would be visited next", ArgsUsage: "[URL...]",
		Description: `Prints the new interval and the next visit for each outcome of a visit at -now:
the page changed, unchanged, with nothing to compare with, failed or gone. The
record is that of a new page, unless -d DIR names a crawl: then the record and
the schedule are the crawl's.

  recrawl check schedule https://example.com/
  recrawl check schedule -conf conf -interval 30d https://example.com/
  recrawl check schedule -d crawl https://example.com/`,
		Flags: flags.Join(stdinFlag(), &cli.StringFlag{Name: "d", Usage: "take the record of the URL from the crawl in `DIR`"},
			flags.Span("", "interval", "the interval of the record before the visit, a `TIME` such as 12h or 30d (default: that of a new page)"),
			flags.Span("", "modified", "the page was last seen to change this `TIME` before the visit (default: never)"),
			&cli.StringFlag{Name: "type", Usage: "the media `TYPE` of the content", Value: "text/html"},
			&cli.StringFlag{Name: "now", Category: flags.OutputGroup, Usage: "the time of the visit, an RFC 3339 `TIME`"}, flags.JSON(), flags.NutchConf()),
		Action: func(ctx context.Context, c *cli.Command) (err error) {
			k, err := a.checker(c)
			if err != nil {
				return err
			}
			now, err := flags.Clock(c)
			if err != nil {
				return err
			}
			spans := flags.Spans{C: c}
			interval, modified := spans.Get("interval"), spans.Get("modified")
			if spans.Err != nil {
				return spans.Err
			}
			var store crawldb.Store
			if c.String("d") != "" {
				db, err := a.openToRead(ctx, c, onceCache)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, db.Close()) }()
				store = db.Crawl()
				if k.policies, err = savedPolicies(ctx, db, k.conf); err != nil {
					return err
				}
			}
			return a.each(ctx, c, func(url string) error {
				if err := absolute(url); err != nil {
					return err
				}
				return a.printSchedule(ctx, k, store, url, now().Truncate(time.Millisecond), interval, modified)
			})
		},
	}
}

// savedPolicies returns the policies of a crawl by its saved flags, with the plan of a learned
// schedule.
func savedPolicies(ctx context.Context, db crawls.DB, conf *nutchconf.Options) (o recrawl.Options, err error) {
	if conf != nil {
		o = conf.Crawl
	}
	k, err := flags.ReadSavedFlags(ctx, db.Crawl())
	if err == nil {
		err = k.Apply(&o)
	}
	planner, ok := o.Schedule.(schedule.Planner)
	if err != nil || !ok {
		return o, err
	}
	plan, err := recrawl.ReadPlan(ctx, db.Crawl())
	if err != nil {
		return o, err
	}
	o.Schedule, err = schedule.ReplacePlan(planner, plan)
	return o, err
}

// schedule returns the schedule of the crawl, and its bounds for a host.
func (k *checker) schedule(url string) (s schedule.FetchSchedule, name, bounds string) {
	s = &schedule.Adaptive{}
	if k.conf != nil {
		s = k.conf.Crawl.Schedule
	}
	if k.policies.Schedule != nil {
		s = k.policies.Schedule
	}
	var a *schedule.Adaptive
	switch s := s.(type) {
	case schedule.Planner:
		return s, "learned", ""
	case schedule.Default:
		return s, "default", ""
	case schedule.Adaptive:
		name, a = "adaptive", &s
	case *schedule.Adaptive:
		name, a = "adaptive", s
	case *schedule.MimeAdaptive:
		name, a = "adaptive by media type", &s.Adaptive
	case *schedule.Default:
		return s, "default", ""
	default:
		return s, fmt.Sprintf("%T", s), ""
	}
	if b, ok := a.HostIntervals[hostdb.ByHost.Key(url)]; ok {
		bounds = fmt.Sprintf("%v to %v, from adaptive-host-specific-intervals.txt", bound(b.Min, a.MinInterval), bound(b.Max, a.AdaptiveMax))
	}
	return s, name, bounds
}

func bound(d, common time.Duration) string {
	if d == 0 {
		d = common
	}
	switch {
	case d == 0:
		return "the default"
	case d < 0:
		return "none"
	}
	return render.Span(d)
}

func (a *app) printSchedule(ctx context.Context, k *checker, store crawldb.Store, url string, now time.Time, interval, modified time.Duration) error {
	if n, err := k.rules.Apply(urlfilter.Inject, url); err == nil {
		url = n
	}
	s, name, bounds := k.schedule(url)
	d := crawldb.Datum{URL: url, Interval: interval}
	known := false
	if store != nil {
		switch old, err := store.Get(ctx, url); {
		case err == nil:
			known, d = true, old
			if interval > 0 {
				d.Interval = interval
			}
		case errors.Is(err, crawldb.ErrNotFound):
			return badURL{fmt.Errorf("%s: not in the crawl db", url)}
		default:
			return err
		}
	}
	if !known {
		d = s.Init(d, now)
	}
	v := schedule.Visit{Time: now, ContentType: k.c.String("type"), PrevFetch: d.LastFetch, PrevModified: d.Modified}
	if modified > 0 {
		v.PrevModified = now.Add(-modified)
	}
	outcome := func(c schedule.Change) crawldb.Datum { v.Change = c; return s.Fetched(d, v) }
	after := []struct {
		name string
		d    crawldb.Datum
	}{
		{"changed", outcome(schedule.Changed)}, {"unchanged", outcome(schedule.Unchanged)}, {"unknown", outcome(schedule.Unknown)},
		{"failed", s.Retry(d, v)}, {"gone", s.Gone(d, v)},
	}
	if k.c.Bool("json") {
		next := map[string]any{}
		for _, o := range after {
			next[o.name] = map[string]any{"interval_seconds": o.d.Interval.Seconds(), "next": o.d.FetchTime.UTC()}
		}
		return a.printLine(map[string]any{"url": url, "schedule": name, "bounds": bounds, "interval_seconds": d.Interval.Seconds(), "now": now.UTC(), "after": next})
	}
	fmt.Fprintf(a.out, "%s\n  schedule   %s\n", url, name)
	if bounds != "" {
		fmt.Fprintf(a.out, "  bounds     %s\n", bounds)
	}
	fmt.Fprintf(a.out, "  interval   %s\n", render.Span(d.Interval))
	w := tabwriter.NewWriter(a.out, 0, 8, 3, ' ', 0)
	for _, o := range after {
		fmt.Fprintf(w, "  %-10s interval %s\tnext %s\tin %s\n", o.name, render.Span(o.d.Interval), render.Time(o.d.FetchTime), render.Span(o.d.FetchTime.Sub(now)))
	}
	return w.Flush()
}
