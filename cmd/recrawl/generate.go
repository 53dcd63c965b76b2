package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/nutch/expression"
)

// selecting returns the selection flags that verbs share.
func selecting() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "topN", Category: toSelect, Usage: "select at most `N` URLs per round, best first (0: 50,000)"},
		&cli.IntFlag{Name: "max-per-host", Category: toSelect, Usage: "select at most `N` URLs of a host per round (0: no limit)"},
		&cli.IntFlag{Name: "adddays", Category: toSelect, Usage: "also select what is due within `N` days"},
	}
}

// conditions returns the further selection flags of the verbs that select.
func conditions() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "by", Category: toSelect, Usage: "apply -max-per-host to each `host|domain`", Value: "host"},
		&cli.FloatFlag{Name: "min-score", Category: toSelect, Usage: "select no record with a priority below `X`"},
		spanFlag(toSelect, "max-interval", "select no record with an interval longer than `TIME`, such as 12h or 30d"),
		&cli.StringFlag{Name: "status", Category: toSelect, Usage: "select only records with this `STATUS`, such as unfetched"},
		&cli.StringFlag{Name: "expr", Category: toSelect, Usage: "select only records that meet `CONDITION`, such as \"score > 0.5 && url.startsWith('https:')\""},
		&cli.StringFlag{Name: "host-limit-expr", Category: toSelect, Usage: "compute -max-per-host for each known host: a `NUMBER` such as \"gone > 100 ? 10 : 1000\"; 0 selects none of the host, -1 means no limit"},
		&cli.StringFlag{Name: "host-delay-expr", Category: toSelect, Usage: "compute the pause between requests for each known host: `MILLISECONDS` such as \"avg._rs_ * 10\""},
	}
}

// selection adds the conditions of the flags to those of a configuration.
func selection(c *cli.Command, o *generate.Options) (err error) {
	if c.Name != "generate" && c.Name != "crawl" {
		return nil // there, flags of these names mean something else
	}
	if c.IsSet("by") {
		switch by := c.String("by"); by {
		case "host":
			o.By = hostdb.ByHost
		case "domain":
			o.By = hostdb.ByDomain
		default:
			return usagef("-by: %q is neither host nor domain", by)
		}
	}
	if c.IsSet("min-score") {
		if o.MinScore = float32(c.Float("min-score")); math.IsNaN(float64(o.MinScore)) {
			return usagef("-min-score: NaN is not a score")
		}
	}
	if c.IsSet("max-interval") {
		spans := spans{c: c}
		if o.MaxInterval = spans.get("max-interval"); spans.err != nil {
			return spans.err
		}
	}
	if c.IsSet("status") {
		if o.Status, err = crawldb.ParseStatus(c.String("status")); err != nil {
			return usagef("-status: %w", err)
		}
	}
	compile := expression.Options{NutchCompat: o.NutchCompat}
	if c.IsSet("expr") {
		if o.Where, err = compile.RecordFilter(c.String("expr")); err != nil {
			return usagef("-expr: %w", err)
		}
	}
	if c.IsSet("host-limit-expr") {
		if o.HostLimit, err = compile.HostNumber(c.String("host-limit-expr")); err != nil {
			return usagef("-host-limit-expr: %w", err)
		}
	}
	if c.IsSet("host-delay-expr") {
		if o.HostDelay, err = compile.HostNumber(c.String("host-delay-expr")); err != nil {
			return usagef("-host-delay-expr: %w", err)
		}
	}
	return nil
}

// spreading returns the flags about fetch lists.
func spreading() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "lists", Aliases: []string{"numFetchers"}, Category: toSelect, Usage: "spread the URLs of a segment over `N` lists, for fetch -lists", Value: 1},
		&cli.StringFlag{Name: "partition", Category: toSelect, Usage: "keep all URLs of one `host|domain|ip` on one list", Value: "host"},
		&cli.Int32Flag{Name: "seed", Category: toSelect, Usage: "spread the URLs over the lists differently for each `N`"},
		&cli.BoolFlag{Name: "no-filter", Aliases: []string{"noFilter"}, Category: toSelect, Usage: "do not apply the URL filters"},
		&cli.BoolFlag{Name: "no-norm", Aliases: []string{"noNorm"}, Category: toSelect, Usage: "do not normalize URLs"},
	}
}

// spread adds those flags to a configuration.
func spread(c *cli.Command, o *generate.Options) (err error) {
	if c.IsSet("lists") {
		if o.Lists = c.Int("lists"); o.Lists < 1 {
			return usagef("-lists: %d is less than one", o.Lists)
		}
	}
	if c.IsSet("partition") {
		if o.Partition, err = hostdb.ParseBy(c.String("partition")); err != nil {
			return usagef("-partition: %w", err)
		}
	}
	if c.IsSet("seed") {
		o.Seed = c.Int32("seed")
	}
	given(c, "no-filter", &o.NoFilter)
	given(c, "no-norm", &o.NoNormalize)
	return nil
}

func (a *app) generate() *cli.Command {
	return &cli.Command{
		Name: "generate", Category: stages, Usage: "select what is due, and print the name of the new segment",
		Description: `The first stage of a round. Standard output has only the names of segments, one a
line; standard error says what was selected, and why the rest was not. A round by
hand is

  s=$(recrawl generate -d crawl -topN 1000)
  recrawl fetch  -d crawl -agent mybot $s
  recrawl update -d crawl $s
  recrawl invert -d crawl $s

A segment may hold more of a host than can be visited soon, given the pauses between
requests, unless -max-per-host says otherwise; only crawl selects by -round-time.

Conditions are written in JEXL, as for Nutch, over url, status, fetchTime,
modifiedTime, retries, interval, score, signature and metadata; expressions for
hosts over the figures that the verb hosts shows. An expression that cannot be
parsed is an error.

  recrawl generate -d crawl \
      -expr "status == 'db_gone' && fetchTime < 2026-03-20T00:00:00Z"
  recrawl generate -d crawl -host-limit-expr "ok < 10 ? 5 : 100" -lists 4`,
		Flags: flags(dirFlag(), urlRulesFlag(), selecting(), conditions(), scheduling(), bounding("no-traps", "exact", "max-per-part"), spreading(),
			&cli.IntFlag{Name: "segments", Aliases: []string{"maxNumSegments"}, Category: toSelect, Usage: "make up to `N` segments", Value: 1},
			reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := noArgs(c); err != nil {
				return err
			}
			if c.Int("segments") < 1 {
				return usagef("-segments: %d is less than one", c.Int("segments"))
			}
			if err := spread(c, &generate.Options{}); err != nil {
				return err
			}
			return a.with(ctx, c, access{}, func(s *session) error {
				return a.generating(ctx, s, c.Name, "", func() (generate.Report, error) { return s.crawler.Generate(ctx) },
					func(r *generate.Report) error { return a.printGenerate(c, r) })
			}, func(all *recrawl.Options) {
				if c.IsSet("segments") {
					all.Generate.Segments = c.Int("segments")
				}
				spread(c, &all.Generate) // its errors came up above
			})
		},
	}
}

// printGenerate prints the names of the segments, and on standard error what was
// not selected.
func (a *app) printGenerate(c *cli.Command, r *generate.Report) error {
	if c.Bool("json") {
		rejected := map[generate.Reason]int{}
		maps.Copy(rejected, r.Rejected)
		out := map[string]any{"segments": listed(r.Segments), "selected": r.Selected, "rejected": rejected,
			"hosts_affected_per_host_overflow": r.HostsAffected, "expr_errors": r.ExprErrors}
		if !r.NextDue.IsZero() {
			out["next_due"] = r.NextDue
		}
		if r.ExprError != nil {
			out["expr_error"] = r.ExprError.Error()
		}
		return a.printJSON(out)
	}
	for _, name := range r.Segments {
		fmt.Fprintln(a.out, name)
	}
	if len(r.Segments) == 0 {
		next := ""
		if !r.NextDue.IsZero() {
			next = "; next at " + r.NextDue.Format(time.RFC3339)
		}
		nothing := "nothing is due"
		for why := range r.Rejected {
			if why != generate.Schedule && why != generate.WaitUpdate {
				nothing = "nothing was selected"
			}
		}
		fmt.Fprintf(a.err, "recrawl: %s%s\n", nothing, next)
	}
	tellRejected(a.err, r)
	return nil
}

// tellRejected says how many records were rejected for each reason.
func tellRejected(w io.Writer, r *generate.Report) {
	for _, why := range generate.Reasons() {
		if n := r.Rejected[why]; n > 0 {
			fmt.Fprintf(w, "%12d %s\n", n, why)
		}
	}
	if r.HostsAffected > 0 {
		fmt.Fprintf(w, "%12d hosts_affected_per_host_overflow\n", r.HostsAffected)
	}
	if r.ExprError != nil {
		fmt.Fprintf(w, "recrawl: an expression failed %d times, first with: %v\n", r.ExprErrors, r.ExprError)
	}
}

// lists reads -lists of fetch: numbers, sorted, each once.
func lists(c *cli.Command) ([]int, error) {
	if !c.IsSet("lists") {
		return nil, nil
	}
	seen := map[int]bool{}
	for _, n := range c.IntSlice("lists") {
		if n < 0 {
			return nil, usagef("-lists: %d is negative; lists are counted from 0", n)
		}
		seen[n] = true
	}
	return slices.Sorted(maps.Keys(seen)), nil
}
