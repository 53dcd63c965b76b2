package verbs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/control"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// runStatusJSON is what status -json reports about a running crawl, beside how fresh its
// copies were when it last planned.
type runStatusJSON struct {
	Verb       string         `json:"verb"`
	Process    int            `json:"process"`
	Began      time.Time      `json:"began"`
	AsOf       time.Time      `json:"as_of"`
	Stage      string         `json:"stage,omitempty"`
	StageSince *time.Time     `json:"stage_since,omitempty"`
	Segment    string         `json:"segment,omitempty"`
	Rounds     int            `json:"rounds_done"`
	Visits     int            `json:"visits"`
	Outcomes   map[string]int `json:"outcomes"`
	PerSecond  float64        `json:"visits_per_second"`
	Bytes      int64          `json:"bytes"`
	Listed     int            `json:"listed"`
	Done       int            `json:"listed_done"`
	Followed   int            `json:"followed"`
	InFlight   int            `json:"in_flight"`
	Hosts      int            `json:"hosts_active"`
	NextDue    *time.Time     `json:"next_due,omitempty"`
}

// LockedError needs no further hint about the process that holds the lock.
type LockedError struct{ error }

func (l LockedError) Unwrap() error { return l.error }

// printRunStatus reports the last note of the process that holds the directory, and
// returns locked if it has left none.
func (a *app) printRunStatus(c *cli.Command, wants []float64, locked error) error {
	w, asOf, err := control.ReadRunStatus(c.String("d"))
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return LockedError{errors.Join(locked, err)}
		}
		return LockedError{fmt.Errorf("%w; status can report on a running crawl or fetch only, and this is neither", locked)}
	}
	s := &w.Status
	if c.Bool("json") {
		j := struct {
			AtWork    runStatusJSON            `json:"at_work"`
			Consumers []recrawl.ConsumerStatus `json:"consumers"`
			*render.FreshnessJSON
		}{AtWork: runStatusJSON{
			Verb: w.Verb, Process: w.Process, Began: w.Began, AsOf: asOf.UTC(), Stage: s.Stage, StageSince: render.TimeOrNil(s.Since), Segment: s.Segment,
			Rounds: s.Rounds, Visits: s.Visited(), Outcomes: render.OutcomesJSON(s.Visits), PerSecond: w.PerSecond, Bytes: s.Bytes,
			Listed: s.Fetch.Listed, Done: s.Fetch.Done, Followed: s.Fetch.Followed, InFlight: s.Fetch.InFlight, Hosts: s.Fetch.Hosts, NextDue: render.TimeOrNil(s.NextDue),
		}, Consumers: append([]recrawl.ConsumerStatus{}, w.Consumers...)}
		if s.Freshness != nil {
			s.Freshness.Hosts = nil // the plan has only some of them, and they are old
			j.FreshnessJSON = render.NewFreshnessJSON(s.Freshness, wants)
		}
		return a.printJSON(j)
	}
	out := bufio.NewWriter(a.out)
	fmt.Fprintf(out, "at work:\t%s, process %d, since %s; as of %s\n", w.Verb, w.Process, render.Time(w.Began), render.Time(asOf))
	if s.Stage != "" {
		fmt.Fprintf(out, "stage:\t%s", s.Stage)
		if s.Segment != "" {
			fmt.Fprintf(out, " of %s", s.Segment)
		}
		fmt.Fprintf(out, ", since %s", render.Time(s.Since))
		fmt.Fprintf(out, "; %d rounds done\n", s.Rounds)
	}
	fmt.Fprintf(out, "visits:\t%d, %.0f a second, %s\n", s.Visited(), w.PerSecond, render.Size(s.Bytes))
	render.Outcomes(out, s.Visits)
	if s.Fetch != (fetch.Progress{}) {
		fmt.Fprintf(out, "list:\t%d of at least %d pages done, and %d others; %d under way, %d hosts active\n", s.Fetch.Done, s.Fetch.Listed, s.Fetch.Followed, s.Fetch.InFlight, s.Fetch.Hosts)
	}
	if !s.NextDue.IsZero() {
		fmt.Fprintf(out, "next due:\t%s\n", render.Time(s.NextDue))
	}
	render.Consumers(out, w.Consumers)
	if s.Freshness != nil {
		fmt.Fprintf(out, "The copies, when the crawl last planned, on %s:\n", render.Time(s.Freshness.At))
		render.Freshness(out, s.Freshness, wants)
	}
	return out.Flush()
}

func defaultWants() []float64 { return []float64{0.8, 0.9, 0.95} }

// parseWants reads shares such as 0.95.
func parseWants(given []float64) ([]float64, error) {
	if len(given) == 0 {
		return defaultWants(), nil
	}
	for _, want := range given {
		if !(want > 0 && want < 1) {
			return nil, flags.Usagef("-want: %g is not a share between 0 and 1, such as 0.95", want)
		}
	}
	slices.Sort(given)
	return slices.Compact(given), nil
}

func (a *app) status() *cli.Command {
	return &cli.Command{
		Name: "status", Category: flags.ReadVerbs, Usage: "show how fresh the copies are, and what budget would keep them fresh",
		Description: `Reads all records. How fresh the copies are is an estimate, from when each was
visited and how often its page was seen to change, which a crawl learns with
-schedule learned. What other budgets would achieve is estimated from a sample of
20,000 records, for the long run and the known pages.

  recrawl status -d crawl
  recrawl status -d crawl -want 0.95
  recrawl status -d crawl -json | jq .forecast.wanted

A copy is what the last visit found, and fresh while the page is still the same. The
other pages were never visited, or have nothing to copy: they are gone, or redirect.
Importance is the score. A page is overdue if it was visited and is due again.

Hosts are sorted by what is lost there: the importance of copies that are not fresh,
as a share of what is lost on all hosts. stale is how long copies have been out of
date.

A running crawl locks its directory, but every two seconds notes what it is doing.
status then shows that note, and how fresh the copies were when the crawl last
planned, without hosts.`,
		Flags: flags.Join(flags.Dir(),
			&cli.FloatSliceFlag{Name: "want", Usage: "show what budget keeps this `SHARE` of the importance fresh, for example 0.95; may be repeated (default 0.8, 0.9 and 0.95)"},
			&cli.IntFlag{Name: "hosts", Value: 20, Usage: "show `N` hosts, the worst first (default 20; with -json all)"},
			flags.Scheduling(), flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := flags.NoArgs(c); err != nil {
				return err
			}
			wants, err := parseWants(c.FloatSlice("want"))
			if err != nil {
				return err
			}
			hosts := c.Int("hosts")
			if hosts < 0 {
				return flags.Usagef("-hosts: %d is negative", hosts)
			}
			if c.Bool("json") && !c.IsSet("hosts") {
				hosts = allHosts
			}
			err = a.withCrawl(ctx, c, access{}, func(s *session) error {
				f, err := s.crawler.Freshness(ctx, hosts)
				if err != nil {
					return err
				}
				consumers, err := s.crawler.Consumers(ctx)
				if err != nil {
					return err
				}
				if c.Bool("json") {
					return a.printJSON(struct {
						*render.FreshnessJSON
						Consumers []recrawl.ConsumerStatus `json:"consumers"`
					}{render.NewFreshnessJSON(&f, wants), consumers})
				}
				w := bufio.NewWriter(a.out)
				render.Consumers(w, consumers)
				render.Freshness(w, &f, wants)
				if err := render.HostConditions(w, f.Hosts); err != nil {
					return err
				}
				return w.Flush()
			})
			if errors.Is(err, pebblestore.ErrLocked) {
				return a.printRunStatus(c, wants, err)
			}
			return err
		},
	}
}

// allHosts is more than there are.
const allHosts = 1 << 30
