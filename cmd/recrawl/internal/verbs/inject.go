package verbs

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/crawldb/inject"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/update"
	"github.com/recrawl/recrawl/urlfilter"
)

// injecting returns how to inject: as the configuration, if there is one, and the
// flags say. Only flags decide what happens to existing records, as in Nutch.
func (s *session) injecting(c *cli.Command) (o inject.Options) {
	if s.conf != nil {
		o = s.conf.Inject
	}
	o.Overwrite, o.Update = c.Bool("overwrite"), c.Bool("update")
	flags.SetBool(c, "no-filter", &o.NoFilter)
	flags.SetBool(c, "no-norm", &o.NoNormalize)
	flags.SetBool(c, "purge-gone", &o.PurgeGone)
	return o
}

// rulesForAll applies the rules of the crawl to the existing records, if asked to.
// (With db.update.purge.404, Nutch purges them in any case.)
func (a *app) rulesForAll(ctx context.Context, c *cli.Command, s *session, o *recrawl.Options) error {
	how, apply := s.injecting(c), c.Bool("filter-normalize-all")
	if !apply && !(how.PurgeGone && how.NutchCompat) {
		return nil
	}
	all := update.SweepOptions{
		Normalize: apply && !how.NoNormalize, Filter: apply && !how.NoFilter, PurgeGone: how.PurgeGone,
		Rules: o.Rules, Scope: urlfilter.Inject, Scoring: o.Scoring, NutchCompat: o.Update.NutchCompat, Now: s.now,
	}
	if all.Rules == nil {
		all.Rules = urlfilter.Default()
	}
	if all.Scoring == nil {
		all.Scoring = scoring.OPIC{}
	}
	r, err := update.Sweep(ctx, s.db.Crawl(), all)
	if err != nil {
		return err
	}
	switch {
	case !c.Bool("json"):
		fmt.Fprintf(a.out, "of %d records %d filtered, %d invalid, %d gone purged, %d moved (%d merged)\n", r.Records, r.Filtered, r.Invalid, r.Gone, r.Moved, r.Merged)
	case c.String("seeds") == "" && !c.Args().Present(): // nothing else is printed
		return a.printJSON(map[string]int{"records": r.Records, "filtered": r.Filtered, "invalid": r.Invalid, "gone": r.Gone, "moved": r.Moved, "merged": r.Merged})
	}
	return nil
}

func (a *app) inject() *cli.Command {
	return &cli.Command{
		Name: "inject", Category: flags.StageVerbs, Usage: "put seeds into the crawl db", ArgsUsage: "[URL...]",
		Description: `Creates the directory if it does not exist. Existing records stay as they are,
unless -overwrite or -update says otherwise. A seed that cannot be used is
named on standard error; the others are injected, and the exit code is 1.

  recrawl inject -d crawl https://example.com/ https://example.org/
  recrawl inject -d crawl -seeds seeds.txt
  recrawl inject -d crawl -url-rules rules.txt -filter-normalize-all

The last injects nothing: it drops the records of all URLs that the rules leave
out, so that they are neither fetched nor indexed any more.

` + seedFileFormat,
		Flags: flags.Join(flags.Dir(), flags.Seeds(), flags.MinFree(),
			&cli.BoolFlag{Name: "overwrite", Usage: "replace existing records, and forget all that is known about them"},
			&cli.BoolFlag{Name: "update", Usage: "give existing records the metadata, score and interval of the seed"},
			&cli.BoolFlag{Name: "no-filter", Aliases: []string{"noFilter"}, Usage: "keep seeds that the URL filters reject"},
			&cli.BoolFlag{Name: "no-norm", Aliases: []string{"noNormalize"}, Usage: "do not normalize seeds"},
			&cli.BoolFlag{Name: "purge-gone", Usage: "forget what is known about a seed that is gone"},
			&cli.BoolFlag{Name: "filter-normalize-all", Aliases: []string{"filterNormalizeAll"}, Usage: "first normalize and filter all records; with -purge-gone, also drop those that are gone. Needs no seed"},
			flags.URLRules(), flags.Scoring(), flags.Scheduling(), flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			seeds, err := seedsOf(c)
			if err != nil {
				return err
			}
			all := c.Bool("filter-normalize-all")
			if seeds == nil && !all {
				return flags.Usagef("inject needs URLs, or -seeds FILE")
			}
			var policies recrawl.Options
			return a.withCrawl(ctx, c, access{create: seeds != nil}, func(s *session) error {
				if err := a.rulesForAll(ctx, c, s, &policies); err != nil || seeds == nil {
					return err
				}
				bad, err := a.injectSeeds(ctx, c, s, seeds)
				return errors.Join(err, bad)
			}, func(o *recrawl.Options) { policies = *o })
		},
	}
}
