package verbs

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/merge"
	"github.com/recrawl/recrawl/nutch/nutchconf"
	"github.com/recrawl/recrawl/stores/pebblestore"
	"github.com/recrawl/recrawl/urlfilter"
)

func (a *app) mergedb() *cli.Command {
	return &cli.Command{
		Name: "mergedb", Category: flags.MergeVerbs, Usage: "merge the crawl dbs of other crawls into this one", ArgsUsage: "DIR...",
		Description: `If several crawls know a page, the record with the latest visit wins, and its
metadata is completed from the others. The order of the directories does not
matter, and merging again changes nothing. The crawl of -d is created if it does
not exist; otherwise its records take part. Links and segments are not merged: see
mergelinkdb and mergesegs.

  recrawl mergedb -d crawl crawl1 crawl2
  recrawl mergedb -d only-mine -filter -normalize everything`,
		Flags: flags.Join(flags.Dir(), flags.Rules(),
			&cli.BoolFlag{Name: "purge-gone", Usage: "leave out pages that are gone"},
			&cli.BoolFlag{Name: "purge-orphans", Usage: "leave out orphans"},
			&cli.BoolFlag{Name: "nutch-compat", Usage: "decide as Nutch does: by the time of the next fetch minus the interval, and on a tie for the first directory"},
			flags.NutchConf(), flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			return a.mergeInto(ctx, c, func(conf *nutchconf.Options, dst crawls.DB, srcs []crawls.DB) error {
				accept, err := flags.AcceptURLs(c, conf, urlfilter.CrawlDB)
				if err != nil {
					return err
				}
				o := merge.CrawlDBOptions{Accept: accept, NutchCompat: flags.NutchCompat(c, conf)}
				if conf != nil {
					o.PurgeGone, o.PurgeOrphans = conf.Crawl.Update.Sweep.PurgeGone, conf.Crawl.Update.Sweep.PurgeOrphans
				}
				flags.SetBool(c, "purge-gone", &o.PurgeGone)
				flags.SetBool(c, "purge-orphans", &o.PurgeOrphans)
				var stores []crawldb.Store
				for _, s := range srcs {
					stores = append(stores, s.Crawl())
				}
				r, err := merge.CrawlDBs(ctx, dst.Crawl(), stores, o)
				if err != nil {
					return err
				}
				if c.Bool("json") {
					return a.printJSON(map[string]int{"records": r.Records, "rejected": r.Rejected, "purged": r.Purged, "pages": r.Pages})
				}
				fmt.Fprintf(a.out, "%d records of %d pages were merged, %d rejected, %d purged\n", r.Records-r.Rejected-r.Purged, r.Pages, r.Rejected, r.Purged)
				return nil
			})
		},
	}
}

// mergeInto opens the crawls that the arguments name, and that of -d.
func (a *app) mergeInto(ctx context.Context, c *cli.Command, do func(conf *nutchconf.Options, dst crawls.DB, srcs []crawls.DB) error) (err error) {
	if !c.Args().Present() {
		return flags.Usagef("%s needs the directories of the crawls to merge", c.Name)
	}
	if c.String("d") == "" {
		return flags.Usagef("-d DIR is required: the directory of the crawl")
	}
	if _, err := flags.Clock(c); err != nil {
		return err
	}
	conf, err := flags.ReadNutchConf(c)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, dir := range append([]string{c.String("d")}, c.Args().Slice()...) {
		real, err := filepath.Abs(dir)
		if err == nil {
			if r, err := filepath.EvalSymlinks(real); err == nil {
				real = r
			}
		}
		if seen[real] {
			return flags.Usagef("%s: %s is named twice", c.Name, dir)
		}
		seen[real] = true
	}
	var srcs []crawls.DB
	defer func() {
		for _, s := range srcs {
			if e := s.Close(); err == nil {
				err = e
			}
		}
	}()
	for _, dir := range c.Args().Slice() {
		err := a.waitForLock(ctx, dir, func() error {
			s, err := a.openToMerge(ctx, c, dir)
			if err == nil {
				srcs = append(srcs, s)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	dst, err := a.openToChange(ctx, c, false)
	if err != nil {
		return err
	}
	err = do(conf, dst, srcs)
	if e := dst.Close(); err == nil {
		err = e
	}
	return err
}

// openToMerge opens a crawl that an argument names.
func (a *app) openToMerge(ctx context.Context, c *cli.Command, name string) (crawls.DB, error) {
	if flags.IsURL(name) {
		return crawls.OpenURL(ctx, name, crawls.Options{ReadOnly: true, Logger: a.logger(c)})
	}
	if err := crawlIn(name); err != nil {
		return nil, err
	}
	db, err := pebblestore.Open(name, pebblestore.Options{Logger: a.logger(c), ReadOnly: true, CacheSize: onceCache})
	if err != nil {
		return nil, err
	}
	return db, nil
}
