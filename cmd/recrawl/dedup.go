package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/dedup"
)

func dedupFlag() cli.Flag {
	return &cli.BoolFlag{Name: "dedup", Category: toSelect, Usage: "mark duplicates in each round, as the verb dedup does by itself"}
}

func (a *app) dedup() *cli.Command {
	return &cli.Command{
		Name: "dedup", Category: stages, Usage: "mark pages with the content of another page as duplicates",
		Description: `Of the pages that share a signature one stays, and the others become
db_duplicate: index leaves them out, and they are fetched as before. Who stays
is decided by the order of comparison, and then by the URL. A duplicate whose
original has changed or is gone gets back. crawl -dedup does so in each round.
With a configuration that has updates purge, normalize or filter, dedup does so
too, as in Nutch.

  recrawl dedup -d crawl
  recrawl dedup -d crawl -group domain -compareOrder httpsOverHttp,score`,
		Flags: flags(dirFlag(),
			&cli.StringFlag{Name: "group", Usage: "what is compared with what: `GROUP` is none for all pages, host or domain (default none)", Value: "none"},
			&cli.StringFlag{Name: "compareOrder", Usage: "compare by these `CRITERIA` in turn, with commas between them: score, fetchTime, httpsOverHttp, urlLength (default score,fetchTime,urlLength)"},
			&cli.BoolFlag{Name: "nutch-compat", Usage: "mark as Nutch does: by the time of the next fetch, leaving both of two equals, and duplicates as they are"},
			confFlags(), reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			conf, err := a.configured(c)
			if err != nil {
				return err
			}
			var o dedup.Options
			if conf != nil {
				o = conf.Dedup
			}
			if conf == nil || c.IsSet("group") {
				if o.Group, err = dedup.ParseGroup(c.String("group")); err != nil {
					return usagef("-group: %w", err)
				}
			}
			if c.IsSet("compareOrder") {
				if o.Order, err = dedup.ParseOrder(c.String("compareOrder")); err != nil {
					return usagef("-compareOrder: %w", err)
				}
			}
			given(c, "nutch-compat", &o.NutchCompat)
			if err := noArgs(c); err != nil {
				return err
			}
			return a.with(ctx, c, false, true, func(s *session) error {
				r, err := s.crawler.Dedup(ctx)
				if err != nil {
					return err
				}
				if c.Bool("json") {
					return a.printJSON(map[string]any{"candidates": r.Candidates, "groups": r.Groups, "duplicates": r.Duplicates, "restored": r.Restored, "resumed": r.Resumed})
				}
				fmt.Fprintf(a.out, "%d pages, %d contents that several have: %d became duplicates, %d got back\n", r.Candidates, r.Groups, r.Duplicates, r.Restored)
				return nil
			}, func(all *recrawl.Options) { all.Dedup = &o })
		},
	}
}
