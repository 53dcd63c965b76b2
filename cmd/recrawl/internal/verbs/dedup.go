package verbs

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/crawldb/dedup"
)

func dedupFlag() cli.Flag {
	return &cli.BoolFlag{Name: "dedup", Category: flags.SelectionGroup, Usage: "mark duplicates in each round, as the verb dedup does"}
}

func (a *app) dedup() *cli.Command {
	return &cli.Command{
		Name: "dedup", Category: flags.StageVerbs, Usage: "mark pages that have the same content as another page as duplicates",
		Description: `Of the pages that share a signature, one stays and the others become
db_duplicate: index leaves them out, but they are fetched as before. The order
of comparison decides which one stays, and then the URL. A duplicate whose
original has changed or is gone gets its status back. crawl -dedup marks
duplicates in each round. If the configuration makes updates purge, normalize or
filter, dedup does so too, as in Nutch.

  recrawl dedup -d crawl
  recrawl dedup -d crawl -group domain -compareOrder httpsOverHttp,score`,
		Flags: flags.Join(flags.Dir(),
			&cli.StringFlag{Name: "group", Usage: "compare the pages of each `GROUP`: host, domain, or none for all pages together (default none)", Value: "none"},
			&cli.StringFlag{Name: "compareOrder", Usage: "choose the original by these `CRITERIA` in turn, separated by commas: score, fetchTime, httpsOverHttp, urlLength (default score,fetchTime,urlLength)"},
			&cli.BoolFlag{Name: "nutch-compat", Usage: "mark as Nutch does: by the time of the next fetch, keeping both of two equals and ignoring existing duplicates"},
			flags.NutchConf(), flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			conf, err := flags.ReadNutchConf(c)
			if err != nil {
				return err
			}
			var o dedup.Options
			if conf != nil {
				o = conf.Dedup
			}
			if conf == nil || c.IsSet("group") {
				if o.Group, err = dedup.ParseGroup(c.String("group")); err != nil {
					return flags.Usagef("-group: %w", err)
				}
			}
			if c.IsSet("compareOrder") {
				if o.Order, err = dedup.ParseOrder(c.String("compareOrder")); err != nil {
					return flags.Usagef("-compareOrder: %w", err)
				}
			}
			flags.SetBool(c, "nutch-compat", &o.NutchCompat)
			if err := flags.NoArgs(c); err != nil {
				return err
			}
			return a.withCrawl(ctx, c, access{}, func(s *session) error {
				r, err := s.crawler.Dedup(ctx)
				if err != nil {
					return err
				}
				if c.Bool("json") {
					return a.printJSON(map[string]any{"candidates": r.Candidates, "groups": r.Groups, "duplicates": r.Duplicates, "restored": r.Restored, "resumed": r.Resumed})
				}
				fmt.Fprintf(a.out, "%d pages, %d contents shared by several: %d marked as duplicates, %d restored\n", r.Candidates, r.Groups, r.Duplicates, r.Restored)
				return nil
			}, func(all *recrawl.Options) { all.Dedup = &o })
		},
	}
}
