package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/nutch/nutchconf"
	"github.com/recrawl/recrawl/update"
	"github.com/recrawl/recrawl/urlfilter"
)

func (a *app) inject() *cli.Command {
	return &cli.Command{
		Name: "inject", Category: stages, Usage: "put seeds into the crawl db", ArgsUsage: "[URL...]",
		Description: `Creates the directory if it does not exist. Existing records stay as they are,
unless -overwrite or -update says otherwise. A seed that cannot be used is
named on standard error; the others are injected, and the exit code is 1.

  recrawl inject -d crawl https://example.com/ https://example.org/
  recrawl inject -d crawl -seeds seeds.txt
  recrawl inject -d crawl -url-rules rules.txt -filter-normalize-all

The last injects nothing: it drops the records of all URLs that the rules leave
out, so that they are neither fetched nor indexed any more.

` + seedFile,
		Flags: flags(dirFlag(), seedsFlag(), minFreeFlag(),
			&cli.BoolFlag{Name: "overwrite", Usage: "replace existing records, and forget all that is known about them"},
			&cli.BoolFlag{Name: "update", Usage: "give existing records the metadata, score and interval of the seed"},
			&cli.BoolFlag{Name: "no-filter", Aliases: []string{"noFilter"}, Usage: "keep seeds that the URL filters reject"},
			&cli.BoolFlag{Name: "no-norm", Aliases: []string{"noNormalize"}, Usage: "do not normalize seeds"},
			&cli.BoolFlag{Name: "purge-gone", Usage: "forget what is known about a seed that is gone"},
			&cli.BoolFlag{Name: "filter-normalize-all", Aliases: []string{"filterNormalizeAll"}, Usage: "first normalize and filter all records; with -purge-gone, also drop those that are gone. Needs no seed"},
			urlRulesFlag(), scoringFlag(), scheduling(), reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			seeds, err := a.seeds(c)
			if err != nil {
				return err
			}
			all := c.Bool("filter-normalize-all")
			if seeds == nil && !all {
				return usagef("inject needs URLs, or -seeds FILE")
			}
			var policies recrawl.Options
			return a.with(ctx, c, access{create: seeds != nil}, func(s *session) error {
				if err := a.rulesForAll(ctx, c, s, &policies); err != nil || seeds == nil {
					return err
				}
				bad, err := a.injectSeeds(ctx, c, s, seeds)
				return errors.Join(err, bad)
			}, func(o *recrawl.Options) { policies = *o })
		},
	}
}

func (a *app) fetch() *cli.Command {
	return &cli.Command{
		Name: "fetch", Category: stages, Usage: "visit the pages of a segment", ArgsUsage: "[SEGMENT]",
		Description: `The second stage of a round. The default is the newest segment. Pages are parsed as
they arrive, unless -no-parse leaves that to the verb parse. An interrupted fetch
resumes where it stopped.

  recrawl fetch -d crawl -agent mybot
  recrawl fetch -d crawl -agent mybot -threads 200 20260131080000000`,
		Flags: flags(dirFlag(), networking(), sparing(), limiting(), urlRulesFlag(), stayFlag(), noSitemaps(), bounding("no-traps", "parse-timeout"), scoringFlag(), minFreeFlag(),
			&cli.IntSliceFlag{Name: "lists", Usage: "visit only lists number `N,N...`, from 0, of those made by generate -lists; other fetches may visit the others at the same time"},
			&cli.BoolFlag{Name: "no-parse", Usage: "leave the parsing to the verb parse"}, reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			some, err := lists(c)
			if err != nil {
				return err
			}
			return a.with(ctx, c, access{network: true}, func(s *session) error {
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
				s.trouble.tell(a.err, c.Bool("v"))
				if err != nil {
					return err
				}
				return a.printFetch(c, name, &r)
			}, func(o *recrawl.Options) { o.Fetch.Lists = some })
		},
	}
}

func (a *app) parse() *cli.Command {
	return &cli.Command{
		Name: "parse", Category: stages, Usage: "parse the pages of a segment that was fetched with -no-parse", ArgsUsage: "[SEGMENT]",
		Description: `The default is the newest segment.

  recrawl fetch -d crawl -agent mybot -no-parse
  recrawl parse -d crawl -agent mybot`,
		Flags: flags(dirFlag(), &cli.StringFlag{Name: "agent", Usage: "the crawler `NAME` that meta robots are matched against"}, urlRulesFlag(), stayFlag(), bounding("no-traps", "parse-timeout"), scoringFlag(), reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			return a.with(ctx, c, access{}, func(s *session) error {
				name, err := segmentArg(ctx, c, s)
				if err != nil {
					return err
				}
				r, err := s.crawler.Parse(ctx, name)
				if err != nil {
					return err
				}
				return a.printFetch(c, name, &r)
			})
		},
	}
}

func (a *app) printFetch(c *cli.Command, name string, r *fetch.Report) error {
	if c.Bool("json") {
		return a.printJSON(tally(r, map[string]any{"segment": name, "already": r.Already, "lists_left": r.Left, "listed": r.Listed, "resumed": r.Resumed, "outcomes": outcomes(r.Visits),
			"parsed": r.Parsed, "parse_failed": r.ParseFailed, "parse_cut": r.ParseCut, "links": r.Links, "links_rejected": r.LinksRejected, "links_cut": r.LinksCut, "robots": r.Robots, "bytes": r.Bytes, "redirects": redirects(&r.Redirects)}))
	}
	if r.Already {
		fmt.Fprintf(a.out, "%s was complete\n", name)
		if r.Left > 0 {
			fmt.Fprintf(a.out, "but %d of its other lists are not\n", r.Left)
		}
		return nil
	}
	fmt.Fprintf(a.out, "%s: %d visits, %s, %d parsed, %d parse failures, %d parsed in part, %d links (%d rejected, %d cut)\n", name, r.Visited(), size(r.Bytes), r.Parsed, r.ParseFailed, r.ParseCut, r.Links, r.LinksRejected, r.LinksCut)
	printOutcomes(a.out, r.Visits)
	if t := redirectText(&r.Redirects); t != "" {
		fmt.Fprintf(a.out, "redirects: %s\n", t)
	}
	a.printTally(r)
	if r.Left > 0 {
		fmt.Fprintf(a.out, "%d lists of %s are still to be fetched\n", r.Left, name)
	}
	return nil
}

func visitMetaFlag() cli.Flag {
	return &cli.BoolFlag{Name: "visit-meta", Usage: "store the HTTP status, media type and response time of the last visit in each record, for protocolstats, updatehostdb and expressions"}
}

func (a *app) update() *cli.Command {
	return &cli.Command{
		Name: "update", Aliases: []string{"updatedb"}, Category: stages, Usage: "fold a fetched segment into the crawl db", ArgsUsage: "[SEGMENT]",
		Description: `The third stage of a round. The default is the newest segment. A segment is applied
exactly once: applying it again changes nothing.

Flags that purge, normalize or filter also go over all other records of the crawl
db: they drop pages that are gone, move URLs to their normal form, and drop URLs that
the rules reject. The pages that the segment just visited are left alone.

  recrawl update -d crawl
  recrawl update -d crawl -memory 256M
  recrawl update -d crawl -purge-gone -filter`,
		Flags: flags(dirFlag(), urlRulesFlag(), scoringFlag(), scheduling(),
			&cli.BoolFlag{Name: "no-additions", Aliases: []string{"noAdditions"}, Usage: "add no records for pages known only by a link"},
			&cli.BoolFlag{Name: "normalize", Usage: "normalize the URLs of all records"},
			&cli.BoolFlag{Name: "filter", Usage: "drop all records whose URLs the rules reject"},
			&cli.BoolFlag{Name: "purge-gone", Usage: "drop the records of pages that were already gone"},
			&cli.BoolFlag{Name: "purge-orphans", Usage: "drop the records of orphans, which no page links to any more"},
			visitMetaFlag(), bounding("max-growth"), memoryFlag(), minFreeFlag(), reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			return a.with(ctx, c, access{}, func(s *session) error {
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
				given(c, "no-additions", &o.Update.NoAdditions)
				given(c, "visit-meta", &o.Update.VisitMeta)
				given(c, "normalize", &w.Normalize)
				given(c, "filter", &w.Filter)
				given(c, "purge-gone", &w.PurgeGone)
				given(c, "purge-orphans", &w.PurgeOrphans)
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

func (a *app) invert() *cli.Command {
	return &cli.Command{
		Name: "invert", Aliases: []string{"invertlinks"}, Category: stages, Usage: "add the links of a segment to the link db", ArgsUsage: "[SEGMENT]",
		Description: `The last stage of a round. The default is the newest segment. Inverting it again
changes nothing. A segment that was updated and inverted is done, and crawl no
longer resumes it. With -conf, -normalize and -filter are on, as in Nutch's
invertlinks, unless they are set to false or -noNormalize and -noFilter are given;
in the rounds of crawl they are off.

  recrawl invert -d crawl
  recrawl invert -d crawl -ignore-internal -max-anchor 200`,
		Flags: flags(dirFlag(), ruleFlags(),
			&cli.BoolFlag{Name: "noNormalize", Hidden: true}, &cli.BoolFlag{Name: "noFilter", Hidden: true},
			&cli.BoolFlag{Name: "ignore-internal", Usage: "leave out links within a host"},
			&cli.BoolFlag{Name: "ignore-external", Usage: "leave out links between hosts"},
			&cli.IntFlag{Name: "max-inlinks", Usage: "keep at most `N` links to a page, those from the first pages in key order (0: 10,000; -1: all)"},
			&cli.IntFlag{Name: "max-anchor", Usage: "cut the text of a link at `N` characters (0: 100; -1: never)"},
			&cli.BoolFlag{Name: "nutch-compat", Usage: "leave out links within a host unless -ignore-internal=false is given, and cut link texts as Nutch does"},
			memoryFlag(), minFreeFlag(), confFlags(), reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.Bool("ignore-internal") && c.Bool("ignore-external") {
				return usagef("-ignore-internal and -ignore-external together leave no link")
			}
			conf, err := a.configured(c)
			if err != nil {
				return err
			}
			accept, err := acceptingLinks(c, conf)
			if err != nil {
				return err
			}
			return a.with(ctx, c, access{}, func(s *session) error {
				name, err := segmentArg(ctx, c, s)
				if err != nil {
					return err
				}
				return a.invertSegment(ctx, c, s, name)
			}, func(o *recrawl.Options) { inverting(c, accept, &o.Invert) })
		},
	}
}

// invertSegment inverts the links of a segment, which is then done if it was updated.
func (a *app) invertSegment(ctx context.Context, c *cli.Command, s *session, name string) error {
	r, err := s.crawler.InvertLinks(ctx, name)
	if err != nil {
		return err
	}
	updated, err := s.crawler.Updated(ctx, name)
	if err != nil {
		return err
	}
	if updated {
		if err := s.crawler.Finish(ctx, name); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		return a.printJSON(map[string]any{"segment": name, "pages": r.Pages, "links": r.Links, "targets": r.Targets, "inlinks": r.Inlinks,
			"nofollow": r.NoFollow, "internal": r.Internal, "external": r.External, "rejected": r.Rejected, "repeated": r.Repeated, "over_limit": r.OverLimit, "anchors_cut": r.AnchorsCut})
	}
	fmt.Fprintf(a.out, "%s: %d links from %d pages to %d\n", name, r.Links, r.Pages, r.Targets)
	return nil
}

// inverting sets what the flags of invert say.
func inverting(c *cli.Command, accept func(string) (string, bool), o *linkdb.InvertOptions) {
	given(c, "nutch-compat", &o.NutchCompat)
	given(c, "ignore-external", &o.IgnoreExternal)
	if c.IsSet("ignore-internal") {
		o.IgnoreInternal = c.Bool("ignore-internal")
		o.KeepInternal = !o.IgnoreInternal
	}
	if c.IsSet("max-inlinks") {
		o.MaxInlinks = c.Int("max-inlinks")
	}
	if c.IsSet("max-anchor") {
		o.MaxAnchor = c.Int("max-anchor")
	}
	if accept != nil {
		o.Accept = accept
	}
}

// acceptingLinks returns what the flags of invert make of URLs; nil if nothing.
func acceptingLinks(c *cli.Command, conf *nutchconf.Options) (func(string) (string, bool), error) {
	normalize := conf != nil && compat(c, conf)
	filter := normalize
	given(c, "normalize", &normalize)
	given(c, "filter", &filter)
	return acceptingBy(c, conf, urlfilter.LinkDB, normalize && !c.Bool("noNormalize"), filter && !c.Bool("noFilter"))
}

func timePtr(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
