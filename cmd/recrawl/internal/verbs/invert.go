package verbs

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/nutch/nutchconf"
	"github.com/recrawl/recrawl/urlfilter"
)

func (a *app) invert() *cli.Command {
	return &cli.Command{
		Name: "invert", Aliases: []string{"invertlinks"}, Category: flags.StageVerbs, Usage: "add the links of a segment to the link db", ArgsUsage: "[SEGMENT]",
		Description: `The last stage of a round. The default is the newest segment. Inverting it again
changes nothing. A segment that was updated and inverted is done, and crawl no
longer resumes it. With -conf, -normalize and -filter are on, as in Nutch's
invertlinks, unless they are set to false or -noNormalize and -noFilter are given;
in the rounds of crawl they are off.

  recrawl invert -d crawl
  recrawl invert -d crawl -ignore-internal -max-anchor 200`,
		Flags: flags.Join(flags.Dir(), flags.Rules(),
			&cli.BoolFlag{Name: "noNormalize", Hidden: true}, &cli.BoolFlag{Name: "noFilter", Hidden: true},
			&cli.BoolFlag{Name: "ignore-internal", Usage: "leave out links within a host"},
			&cli.BoolFlag{Name: "ignore-external", Usage: "leave out links between hosts"},
			&cli.IntFlag{Name: "max-inlinks", Usage: "keep at most `N` links to a page, those from the first pages in key order (0: 10,000; -1: all)"},
			&cli.IntFlag{Name: "max-anchor", Usage: "cut the text of a link at `N` characters (0: 100; -1: never)"},
			&cli.BoolFlag{Name: "nutch-compat", Usage: "leave out links within a host unless -ignore-internal=false is given, and cut link texts as Nutch does"},
			flags.Memory(), flags.MinFree(), flags.NutchConf(), flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.Bool("ignore-internal") && c.Bool("ignore-external") {
				return flags.Usagef("-ignore-internal and -ignore-external together leave no link")
			}
			conf, err := flags.ReadNutchConf(c)
			if err != nil {
				return err
			}
			accept, err := acceptingLinks(c, conf)
			if err != nil {
				return err
			}
			return a.withCrawl(ctx, c, access{}, func(s *session) error {
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
	flags.SetBool(c, "nutch-compat", &o.NutchCompat)
	flags.SetBool(c, "ignore-external", &o.IgnoreExternal)
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
	normalize := conf != nil && flags.NutchCompat(c, conf)
	filter := normalize
	flags.SetBool(c, "normalize", &normalize)
	flags.SetBool(c, "filter", &filter)
	return flags.AcceptURLsIf(c, conf, urlfilter.LinkDB, normalize && !c.Bool("noNormalize"), filter && !c.Bool("noFilter"))
}
