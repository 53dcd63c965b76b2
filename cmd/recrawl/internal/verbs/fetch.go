package verbs

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/fetch"
)

// parsesLater reports whether the verb fetch leaves the parsing to the verb parse.
func (s *session) parsesLater(c *cli.Command) bool {
	if s.conf != nil && !c.IsSet("no-parse") {
		return s.conf.Crawl.ParseLater
	}
	return c.Bool("no-parse")
}

func (a *app) fetch() *cli.Command {
	return &cli.Command{
		Name: "fetch", Category: flags.StageVerbs, Usage: "visit the pages of a segment", ArgsUsage: "[SEGMENT]",
		Description: `The second stage of a round. The default is the newest segment. Pages are parsed as
they arrive, unless -no-parse leaves that to the verb parse. An interrupted fetch
resumes where it stopped.

  recrawl fetch -d crawl -agent mybot
  recrawl fetch -d crawl -agent mybot -threads 200 20260131080000000`,
		Flags: flags.Join(flags.Dir(), flags.Network(), flags.Archive(), flags.Rendering(), flags.Documents(), flags.Politeness(), flags.FetchLimits(), flags.URLRules(), flags.IgnoreExternal(), noSitemaps(), flags.EndlessSites("no-traps", "parse-timeout"), flags.Extraction(), flags.Scoring(), flags.MinFree(),
			&cli.IntSliceFlag{Name: "lists", Usage: "visit only lists number `N,N...`, from 0, of those made by generate -lists; other fetches may visit the others at the same time"},
			&cli.BoolFlag{Name: "no-parse", Usage: "leave the parsing to the verb parse"}, flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			some, err := flags.ListNumbers(c)
			if err != nil {
				return err
			}
			return a.withCrawl(ctx, c, access{network: true}, func(s *session) error {
				name, err := segmentArg(ctx, c, s)
				if err != nil {
					return err
				}
				stage := s.crawler.Fetch
				if s.parsesLater(c) {
					stage = s.crawler.FetchOnly
				}
				stop := a.watched(c, s)
				r, err := stage(ctx, name)
				stop()
				s.failures.Report(a.err, c.Bool("v"))
				render.RefusedSeeds(a.err, r.RefusedSeeds)
				if err != nil {
					return err
				}
				return a.printFetch(c, name, &r)
			}, func(o *recrawl.Options) { o.Fetch.Lists = some })
		},
	}
}

func (a *app) printFetch(c *cli.Command, name string, r *fetch.Report) error {
	if c.Bool("json") {
		return a.printJSON(render.FetchReportJSON(r, map[string]any{"segment": name, "already": r.Already, "lists_left": r.Left, "listed": r.Listed, "resumed": r.Resumed, "outcomes": render.OutcomesJSON(r.Visits),
			"parsed": r.Parsed, "parse_failed": r.ParseFailed, "parse_cut": r.ParseCut, "links": r.Links, "links_rejected": r.LinksRejected, "links_cut": r.LinksCut, "robots": r.Robots, "bytes": r.Bytes, "redirects": render.RedirectsJSON(&r.Redirects)}))
	}
	if r.Already {
		fmt.Fprintf(a.out, "%s was complete\n", name)
		if r.Left > 0 {
			fmt.Fprintf(a.out, "but %d of its other lists are not\n", r.Left)
		}
		return nil
	}
	fmt.Fprintf(a.out, "%s: %d visits, %s, %d parsed, %d parse failures, %d parsed in part, %d links (%d rejected, %d cut)\n", name, r.Visited(), render.Size(r.Bytes), r.Parsed, r.ParseFailed, r.ParseCut, r.Links, r.LinksRejected, r.LinksCut)
	render.Outcomes(a.out, r.Visits)
	if t := render.Redirects(&r.Redirects); t != "" {
		fmt.Fprintf(a.out, "redirects: %s\n", t)
	}
	render.FetchReport(a.out, r)
	if r.Left > 0 {
		fmt.Fprintf(a.out, "%d lists of %s are still to be fetched\n", r.Left, name)
	}
	return nil
}
