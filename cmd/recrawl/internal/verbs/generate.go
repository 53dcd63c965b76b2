package verbs

import (
	"context"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/generate"
)

func (a *app) generate() *cli.Command {
	return &cli.Command{
		Name: "generate", Category: flags.StageVerbs, Usage: "select what is due, and print the name of the new segment",
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
		Flags: flags.Join(flags.Dir(), flags.URLRules(), flags.Selection(), flags.Conditions(), flags.Scheduling(), flags.EndlessSites("no-traps", "exact", "max-per-part"), flags.Lists(),
			&cli.IntFlag{Name: "segments", Aliases: []string{"maxNumSegments"}, Category: flags.SelectionGroup, Usage: "make up to `N` segments", Value: 1},
			flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := flags.NoArgs(c); err != nil {
				return err
			}
			if c.Int("segments") < 1 {
				return flags.Usagef("-segments: %d is less than one", c.Int("segments"))
			}
			if err := flags.ApplyLists(c, &generate.Options{}); err != nil {
				return err
			}
			return a.withCrawl(ctx, c, access{}, func(s *session) error {
				return a.reportSegments(ctx, s, c.Name, "", func() (generate.Report, error) { return s.crawler.Generate(ctx) },
					func(r *generate.Report) error { return a.printGenerate(c, r) })
			}, func(all *recrawl.Options) {
				if c.IsSet("segments") {
					all.Generate.Segments = c.Int("segments")
				}
				flags.ApplyLists(c, &all.Generate) // its errors came up above
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
		out := map[string]any{"segments": render.NonNil(r.Segments), "selected": r.Selected, "rejected": rejected,
			"hosts_affected_per_host_overflow": r.HostsAffected, "expr_errors": r.ExprErrors}
		out["rejected_seeds"] = render.NonNil(r.RejectedSeeds)
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
	printRejected(a.err, r)
	for _, url := range r.RejectedSeeds[:min(len(r.RejectedSeeds), 20)] {
		fmt.Fprintf(a.err, "recrawl: the rules reject the seed %s\n", url)
	}
	return nil
}

// printRejected says how many records were rejected for each reason.
func printRejected(w io.Writer, r *generate.Report) {
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
