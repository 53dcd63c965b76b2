package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/merge"
	"github.com/recrawl/recrawl/urlfilter"
)

// hasSegment returns an error if there is no segment of that name.
func (s *session) hasSegment(ctx context.Context, name string) error {
	for n, err := range s.db.Segments().List(ctx) {
		if err != nil || n == name {
			return err
		}
	}
	return fmt.Errorf("there is no segment %q", name)
}

func (a *app) mergesegs() *cli.Command {
	return &cli.Command{
		Name: "mergesegs", Category: merging, Usage: "merge segments into one", ArgsUsage: "[SEGMENT...]",
		Description: `Prints the name of the new segment, or of its slices. A page comes from one
visit with all that belongs to it, the newest that was not put off, did not fail
for now and brought content or other news. The segments are those named, or all that are
done; each must have been updated. With -remove they are removed afterwards.

  recrawl mergesegs -d crawl -remove
  recrawl mergesegs -d crawl -filter -slice 50000 20260105080000-000`,
		Flags: flags(dirFlag(), ruleFlags(),
			&cli.IntFlag{Name: "slice", Usage: "put at most `N` URLs into one segment (0: all)"},
			&cli.BoolFlag{Name: "remove", Usage: "remove the segments that were merged"},
			&cli.BoolFlag{Name: "nutch-compat", Usage: "merge each part by itself, and only parts that all segments have, as Nutch does"},
			confFlags(), reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if n := c.Int("slice"); n < 0 {
				return usagef("-slice: %d is negative", n)
			}
			return a.with(c, false, true, func(s *session) error {
				done, err := s.crawler.DoneSegments(ctx)
				if err != nil {
					return err
				}
				names := c.Args().Slice()
				for _, name := range names {
					if err := s.hasSegment(ctx, name); err != nil {
						return err
					}
				}
				if len(names) == 0 {
					names = done
				}
				if len(names) == 0 {
					return fmt.Errorf("there is no segment that is done")
				}
				o := merge.SegmentOptions{
					Accept: accepting(c, s.conf, urlfilter.AnyScope), Slice: c.Int("slice"),
					NutchCompat: compat(c, s.conf),
				}
				r, err := s.crawler.MergeSegments(ctx, o, names...)
				if err != nil {
					return err
				}
				if c.Bool("remove") {
					for _, name := range names {
						if err := s.crawler.RemoveSegment(ctx, name); err != nil {
							return err
						}
					}
				}
				if r.Unparsed > 0 {
					fmt.Fprintf(a.err, "recrawl: %d pages were never parsed, and cannot be any more; parse a segment before it is merged\n", r.Unparsed)
				}
				if c.Bool("json") {
					made := r.Segments
					if made == nil {
						made = []string{}
					}
					return a.printJSON(map[string]any{"segments": made, "urls": r.URLs, "visits": r.Visits, "superseded": r.Superseded, "rejected": r.Rejected, "unparsed": r.Unparsed})
				}
				for _, name := range r.Segments {
					fmt.Fprintln(a.out, name)
				}
				return nil
			})
		},
	}
}
