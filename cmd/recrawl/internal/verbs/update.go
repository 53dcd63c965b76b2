package verbs

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/update"
)

func visitMetaFlag() cli.Flag {
	return &cli.BoolFlag{Name: "visit-meta", Usage: "store the HTTP status, media type and response time of the last visit in each record, for protocolstats, updatehostdb and expressions"}
}

func (a *app) update() *cli.Command {
	return &cli.Command{
		Name: "update", Aliases: []string{"updatedb"}, Category: flags.StageVerbs, Usage: "fold a fetched segment into the crawl db", ArgsUsage: "[SEGMENT]",
		Description: `The third stage of a round. The default is the newest segment. A segment is applied
exactly once: applying it again changes nothing.

Flags that purge, normalize or filter also go over all other records of the crawl
db: they drop pages that are gone, move URLs to their normal form, and drop URLs that
the rules reject. The pages that the segment just visited are left alone.

  recrawl update -d crawl
  recrawl update -d crawl -memory 256M
  recrawl update -d crawl -purge-gone -filter`,
		Flags: flags.Join(flags.Dir(), flags.URLRules(), flags.Scoring(), flags.Scheduling(),
			&cli.BoolFlag{Name: "no-additions", Aliases: []string{"noAdditions"}, Usage: "add no records for pages known only by a link"},
			&cli.BoolFlag{Name: "normalize", Usage: "normalize the URLs of all records"},
			&cli.BoolFlag{Name: "filter", Usage: "drop all records whose URLs the rules reject"},
			&cli.BoolFlag{Name: "purge-gone", Usage: "drop the records of pages that were already gone"},
			&cli.BoolFlag{Name: "purge-orphans", Usage: "drop the records of orphans, which no page links to any more"},
			visitMetaFlag(), flags.EndlessSites("max-growth"), flags.Memory(), flags.MinFree(), flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			return a.withCrawl(ctx, c, access{}, func(s *session) error {
				name, err := segmentArg(ctx, c, s)
				if err != nil {
					return err
				}
				r, err := s.crawler.Update(ctx, name)
				if err != nil {
					return err
				}
				return a.printUpdate(c, name, &r)
			}, func(o *recrawl.Options) {
				w := &o.Update.Sweep
				flags.SetBool(c, "no-additions", &o.Update.NoAdditions)
				flags.SetBool(c, "visit-meta", &o.Update.VisitMeta)
				flags.SetBool(c, "normalize", &w.Normalize)
				flags.SetBool(c, "filter", &w.Filter)
				flags.SetBool(c, "purge-gone", &w.PurgeGone)
				flags.SetBool(c, "purge-orphans", &w.PurgeOrphans)
			})
		},
	}
}

func (a *app) printUpdate(c *cli.Command, name string, r *update.Report) error {
	w := &r.Swept
	if c.Bool("json") {
		return a.printJSON(map[string]any{"segment": name, "already": r.Already, "resumed": r.Resumed, "visits": r.Visits, "unvisited": r.Unvisited, "unparsed": r.Unparsed, "links": r.Links, "targets": r.Targets, "overgrown": r.Overgrown,
			"swept": w.Records, "gone": w.Gone, "orphans": w.Orphans, "filtered": w.Filtered, "invalid": w.Invalid, "moved": w.Moved, "merged": w.Merged, "leased": w.Leased})
	}
	if r.Already {
		fmt.Fprintf(a.out, "%s was already applied\n", name)
		return nil
	}
	fmt.Fprintf(a.out, "%s: %d visits, %d links to %d pages\n", name, r.Visits, r.Links, r.Targets)
	if r.Overgrown > 0 {
		fmt.Fprintf(a.out, "%d pages were left out: their domains have as many as -max-growth allows\n", r.Overgrown)
	}
	if w.Records > 0 {
		fmt.Fprintf(a.out, "of %d records %d gone and %d orphans purged, %d filtered, %d invalid, %d moved (%d merged), %d left alone on a fetch list\n",
			w.Records, w.Gone, w.Orphans, w.Filtered, w.Invalid, w.Moved, w.Merged, w.Leased)
	}
	if w.Trouble != nil {
		fmt.Fprintf(a.err, "recrawl: %d records were kept although a rule failed: %v\n", w.Troubled, w.Trouble)
	}
	return nil
}
