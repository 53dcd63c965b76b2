package verbs

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/crawldb/merge"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/nutch/nutchconf"
	"github.com/recrawl/recrawl/urlfilter"
)

func (a *app) mergelinkdb() *cli.Command {
	return &cli.Command{
		Name: "mergelinkdb", Category: flags.MergeVerbs, Usage: "merge the link dbs of other crawls into this one", ArgsUsage: "DIR...",
		Description: `Each page gets the links that any of the crawls knows, within -max-inlinks. The
order of the directories does not matter, and merging again changes nothing. The
crawl of -d is created if it does not exist.

  recrawl mergelinkdb -d crawl crawl1 crawl2`,
		Flags: flags.Join(flags.Dir(), flags.Rules(),
			&cli.IntFlag{Name: "max-inlinks", Usage: "keep at most `N` links to a page, those from the first pages in key order (0: 10,000; -1: all)"},
			flags.NutchConf(), flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			return a.mergeInto(ctx, c, func(conf *nutchconf.Options, dst crawls.DB, srcs []crawls.DB) error {
				accept, err := flags.AcceptURLs(c, conf, urlfilter.LinkDB)
				if err != nil {
					return err
				}
				o := merge.LinkDBOptions{Accept: accept, MaxInlinks: c.Int("max-inlinks")}
				if conf != nil && !c.IsSet("max-inlinks") {
					o.MaxInlinks = conf.Crawl.Invert.MaxInlinks
				}
				var stores []linkdb.Store
				for _, s := range srcs {
					stores = append(stores, s.Links())
				}
				r, err := merge.LinkDBs(ctx, dst.Links(), stores, o)
				if err != nil {
					return err
				}
				if c.Bool("json") {
					return a.printJSON(map[string]int{"pages": r.Pages, "inlinks": r.Inlinks, "rejected": r.Rejected})
				}
				fmt.Fprintf(a.out, "%d links were merged, %d rejected\n", r.Inlinks-r.Rejected, r.Rejected)
				return nil
			})
		},
	}
}
