package verbs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/schedule/simulate"
	"github.com/recrawl/recrawl/update"
)

// The groups of flags of the verb schedule.
const (
	toSchedule = "The schedule"
	toHistory  = "The history"
)

func (a *app) schedule() *cli.Command {
	return &cli.Command{
		Name: "schedule", Category: flags.ReadVerbs, Usage: "try a schedule on the history of a page, in simulated time",
		Description: `Visits pages whose changes are known, and prints a table of the visits and a plot
of the intervals: what a schedule would have done, what it would have missed, and
how old the copy would have been. It runs the same code as a crawl, but needs
neither a crawl nor a network.

  recrawl schedule -every 7d
  recrawl schedule -poisson 3d -for 2y -sync 0 -svg plot.svg
  recrawl schedule -kind adaptive -nutch -never -step 1d
  recrawl schedule -history changes.tsv -min 1d -max 60d

A history has one page a line: its URL and its events. An event is a time (RFC
3339, a date, or seconds since 1970), followed by :A (the page appears), :M (it is
modified; the default) or :D (it is deleted):

  https://example.org/ 2026-01-01:A 2026-03-01T09:30:00Z 1780000000:D

To compare schedules over many pages and a budget, see
recrawl schedule simulate --help.

Durations look like 90s, 15m, 12h, 30d, 4w or 1y, or 1h30m.`,
		Flags: flags.Join(scheduleFlags(), historyFlags(),
			flags.Span(flags.OutputGroup, "step", "look for what is due every `TIME` (default 1h)"),
			flags.Span(flags.OutputGroup, "for", "simulate `TIME` (default: until the last change, or a year if that is longer)"),
			&cli.IntFlag{Name: "rows", Category: flags.OutputGroup, Value: 40, Usage: "print at most `N` visits or pages; 0 for all (default 40)"},
			&cli.IntFlag{Name: "width", Category: flags.OutputGroup, Value: 80, Usage: "draw a plot `N` columns wide; 0 for none (default 80)"},
			&cli.StringFlag{Name: "svg", Category: flags.OutputGroup, Usage: "also draw the plot to `FILE`"},
			flags.JSON(),
		),
		Commands: []*cli.Command{a.simulate()},
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := flags.NoArgs(c); err != nil {
				return err
			}
			s, err := scheduleOf(c)
			if err != nil {
				return err
			}
			o := simulate.Options{
				LastModified: c.Bool("last-modified"), Conditional: c.Bool("conditional"),
				Update: update.Options{NutchCompat: c.Bool("nutch")},
			}
			spans := flags.Spans{C: c}
			o.Step, o.Duration = spans.Get("step"), spans.Get("for")
			if spans.Err != nil {
				return spans.Err
			}
			pages, err := historyOf(c, &o)
			if err != nil {
				return err
			}
			if o.Step > 0 && o.Duration/o.Step > 10_000_000 {
				return flags.Usagef("-step: %s is too short for so long a time", c.String("step"))
			}
			if err := checkPictures(c, ""); err != nil {
				return err
			}
			done := render.ShowWork(a.err, "simulating")
			defer done()
			r, err := simulate.Run(ctx, pages, s, o)
			if err != nil {
				return err
			}
			if name := c.String("svg"); name != "" {
				if err := writeSVG(name, &r); err != nil {
					return err
				}
			}
			return a.printSimulation(c, &r)
		},
	}
}

// scheduleFlags describe a schedule, for scheduleOf.
func scheduleFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "kind", Category: toSchedule, Value: "adaptive", Usage: "`KIND`: default (keeps the interval), adaptive, mime (adaptive, at rates by content type), or learned (estimates how often a page changes) (default adaptive)"},
		&cli.BoolFlag{Name: "nutch", Category: toSchedule, Usage: "do exactly what Nutch does, faults included"},
		flags.Span(toSchedule, "interval", "start with an interval of `TIME` (default 30d)"),
		flags.Span(toSchedule, "min", "adapt down to `TIME` (default 1m; 1h for -kind learned)"),
		flags.Span(toSchedule, "max", "adapt up to `TIME` (default 1y)"),
		flags.Span(toSchedule, "limit", "let no interval exceed `TIME`, whatever -max says (default 90d)"),
		&cli.FloatFlag{Name: "inc", Category: toSchedule, Value: 0.4, Usage: "lengthen the interval by this `SHARE` when nothing has changed (default 0.4)"},
		&cli.FloatFlag{Name: "dec", Category: toSchedule, Value: 0.2, Usage: "shorten the interval by this `SHARE` when something has (default 0.2)"},
		&cli.FloatFlag{Name: "sync", Category: toSchedule, Value: 0.3, Usage: "move the next visit by this `SHARE` of the age of a change; 0 for not at all (default 0.3)"},
		&cli.FloatFlag{Name: "keep", Category: toSchedule, Value: 0.98, Usage: "for -kind learned: at each visit, keep this `SHARE` of what was known; 1 forgets nothing (default 0.98)"},
		&cli.StringFlag{Name: "hosts", Category: toSchedule, Usage: "bounds by host, from `FILE` (Nutch's adaptive-host-specific-intervals.txt)"},
		&cli.StringFlag{Name: "types", Category: toSchedule, Usage: "rates by content type for -kind mime, from `FILE` (Nutch's adaptive-mimetypes.txt)"},
	}
}

// historyFlags describe the pages, for historyOf.
func historyFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "history", Category: toHistory, Usage: "the pages and their changes, from `FILE`; - is standard input"},
		flags.Span(toHistory, "every", "without a file: a page that changes every `TIME` (default 7d)"),
		flags.Span(toHistory, "poisson", "without a file: a page that changes at random, every `TIME` on average"),
		&cli.BoolFlag{Name: "never", Category: toHistory, Usage: "without a file: a page that never changes"},
		&cli.Uint64Flag{Name: "seed", Category: toHistory, Value: 1, Usage: "the random `NUMBER` of -poisson (default 1)"},
		&cli.StringFlag{Name: "url", Category: toHistory, Usage: "without a file: the `URL` of the page; with one: use only this page"},
		&cli.StringFlag{Name: "type", Category: toHistory, Usage: "the content `TYPE` of the pages (default: as the file says, or text/html)"},
		&cli.BoolFlag{Name: "last-modified", Category: toHistory, Usage: "the server says when the content last changed"},
		&cli.BoolFlag{Name: "conditional", Category: toHistory, Usage: "the server answers \"not modified\" instead of sending the content again"},
	}
}

func (a *app) printSimulation(c *cli.Command, r *simulate.Result) error {
	if c.Bool("json") {
		for i := range r.Pages {
			p := &r.Pages[i]
			visits := make([]map[string]any, len(p.Visits))
			for k, v := range p.Visits {
				visits[k] = map[string]any{"time": v.Time, "status": v.Status.String(), "changed": v.Changed, "missed": max(0, v.Events-1),
					"late_seconds": v.Late.Seconds(), "interval_seconds": v.Interval.Seconds(), "next": v.Next}
			}
			t := p.Total
			err := a.printLine(map[string]any{"url": p.Page.URL, "visits": visits, "news": t.News, "changes": t.Changes, "missed": t.Missed,
				"pending": t.Pending, "freshness": t.Freshness, "age_seconds": t.Age.Seconds()})
			if err != nil {
				return err
			}
		}
		return nil
	}
	rows := max(0, int(c.Int("rows")))
	var err error
	if len(r.Pages) == 1 {
		err = r.Pages[0].WriteTable(a.out, rows)
	} else {
		err = r.WriteTable(a.out, rows)
	}
	if width := int(c.Int("width")); err == nil && width > 0 {
		fmt.Fprintln(a.out)
		err = r.WritePlot(a.out, width)
	}
	return err
}

func writeSVG(name string, r *simulate.Result) error {
	if err := render.ReplaceFile(name, func(f *os.File) error { return r.WriteSVG(f) }); err != nil {
		return fmt.Errorf("-svg: %w", err)
	}
	return nil
}

// scheduleOf makes the schedule that the flags describe.
func scheduleOf(c *cli.Command) (schedule.FetchSchedule, error) {
	spans := flags.Spans{C: c}
	base := schedule.Default{DefaultInterval: spans.Get("interval"), MaxInterval: spans.Get("limit"), NutchCompat: c.Bool("nutch")}
	s := schedule.Adaptive{Default: base, MinInterval: spans.Get("min"), AdaptiveMax: spans.Get("max")}
	if spans.Err != nil {
		return nil, spans.Err
	}
	if !s.NutchCompat { // in Nutch, the least interval overrides the greatest
		for name, most := range map[string]time.Duration{"max": s.AdaptiveMax, "limit": s.MaxInterval} {
			if most > 0 && s.MinInterval > most {
				return nil, flags.Usagef("-min: %s is longer than -%s %s", c.String("min"), name, c.String(name))
			}
		}
	}
	for _, f := range []struct {
		name string
		to   *float64
		most float64
	}{{"inc", &s.IncRate, 1000}, {"dec", &s.DecRate, 1}, {"sync", &s.SyncRate, 1}} {
		v := c.Float(f.name)
		if !(v >= 0 && v <= f.most) {
			return nil, flags.Usagef("-%s: %g is not a share from 0 to %g", f.name, v, f.most)
		}
		if *f.to = v; v == 0 {
			*f.to = -1 // none; zero would mean the default
		}
	}
	if name := c.String("hosts"); name != "" {
		hosts, err := readFile(name, schedule.ParseHostIntervals)
		if err != nil {
			return nil, err
		}
		s.HostIntervals = hosts
	}
	kind := c.String("kind")
	if c.String("types") != "" && kind != "mime" {
		return nil, flags.Usagef("-types is for -kind mime")
	}
	if c.IsSet("keep") && kind != "learned" {
		return nil, flags.Usagef("-keep is for -kind learned")
	}
	switch kind {
	case "learned":
		return learnedOf(c, s)
	case "default":
		return base, nil
	case "adaptive":
		return s, nil
	case "mime":
		m := schedule.MimeAdaptive{Adaptive: s}
		if name := c.String("types"); name != "" {
			types, err := readFile(name, schedule.ParseMimeRates)
			if err != nil {
				return nil, err
			}
			m.Types = types
		}
		return m, nil
	}
	return nil, flags.Usagef("-kind: %q is not one of default, adaptive, mime and learned", kind)
}

// learnedOf makes a learned schedule with the bounds of an adaptive one.
func learnedOf(c *cli.Command, bounds schedule.Adaptive) (schedule.FetchSchedule, error) {
	keep := c.Float("keep")
	if !(keep > 0 && keep <= 1) {
		return nil, flags.Usagef("-keep: %g is not a share above 0 and up to 1", keep)
	}
	for _, name := range []string{"nutch", "max", "inc", "dec", "sync"} {
		if c.IsSet(name) {
			return nil, flags.Usagef("-kind learned has no -%s", name)
		}
	}
	return schedule.Learned{Default: bounds.Default, MinInterval: bounds.MinInterval, HostIntervals: bounds.HostIntervals, Keep: keep}, nil
}

// mostEvents bounds a generated history.
const mostEvents = 10_000_000

// historyOf returns the pages that the flags describe.
func historyOf(c *cli.Command, o *simulate.Options) ([]simulate.Page, error) {
	made := 0
	for _, name := range []string{"history", "every", "poisson", "never"} {
		if c.IsSet(name) {
			made++
		}
	}
	if made > 1 {
		return nil, flags.Usagef("-history, -every, -poisson and -never exclude each other")
	}
	spans := flags.Spans{C: c}
	every, mean := spans.Get("every"), spans.Get("poisson")
	if spans.Err != nil {
		return nil, spans.Err
	}
	var pages []simulate.Page
	var err error
	if name := c.String("history"); name != "" {
		pages, err = pagesIn(name, c.String("url"))
	} else {
		pages, err = madePage(c, o, every, mean)
	}
	if err != nil {
		return nil, err
	}
	if c.IsSet("type") {
		for i := range pages {
			pages[i].ContentType = strings.ToLower(c.String("type"))
		}
	}
	return pages, nil
}

// pagesIn returns the pages of a history, or only the one with a URL.
func pagesIn(name, url string) ([]simulate.Page, error) {
	pages, err := readHistory(name)
	if err != nil {
		return nil, err
	}
	pages = slices.DeleteFunc(pages, func(p simulate.Page) bool { return url != "" && p.URL != url })
	if len(pages) == 0 {
		return nil, fmt.Errorf("%s has no page %s", name, url)
	}
	return pages, nil
}

// madePage returns a page that changes as the flags say.
func madePage(c *cli.Command, o *simulate.Options, every, mean time.Duration) ([]simulate.Page, error) {
	o.Duration = cmp.Or(o.Duration, 365*24*time.Hour)
	for name, period := range map[string]time.Duration{"every": every, "poisson": mean} {
		if period > 0 && o.Duration/period > mostEvents {
			return nil, flags.Usagef("-%s: %s is too short for so long a time", name, c.String(name))
		}
	}
	url := cmp.Or(c.String("url"), "http://www.example.com/")
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := simulate.Never(url, start)
	switch {
	case c.Bool("never"):
	case mean > 0:
		p = simulate.Poisson(url, start, o.Duration, mean, c.Uint64("seed"))
	default:
		p = simulate.Every(url, start, o.Duration, cmp.Or(every, 7*24*time.Hour))
	}
	return []simulate.Page{p}, nil
}

func readHistory(name string) ([]simulate.Page, error) {
	if name == "-" {
		return simulate.ParseHistory(os.Stdin)
	}
	return readFile(name, simulate.ParseHistory)
}

// readFile passes a file to a parser.
func readFile[T any](name string, parse func(r io.Reader) (T, error)) (T, error) {
	f, err := os.Open(name)
	if err != nil {
		var none T
		return none, err
	}
	defer f.Close()
	return parse(f)
}
