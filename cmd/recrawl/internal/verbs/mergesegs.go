package verbs

import (
	"context"
	"fmt"
	"slices"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/crawldb/merge"
	"github.com/recrawl/recrawl/urlfilter"
)

// hasSegment returns an error if there is no segment of that name.
func hasSegment(ctx context.Context, db crawls.DB, name string) error {
	for n, err := range db.Segments().List(ctx) {
		if err != nil || n == name {
			return err
		}
	}
	return fmt.Errorf("no segment %q", name)
}

func (a *app) mergesegs() *cli.Command {
	return &cli.Command{
		Name: "mergesegs", Category: flags.MergeVerbs, Usage: "merge segments into one", ArgsUsage: "[SEGMENT...]",
		Description: `Prints the name of the new segment, or of its slices. Everything about a page is
taken from one visit: the newest that was not postponed, did not fail temporarily,
and brought content or other news. The segments are those named, or all that are
done; each must have been updated. With -remove they are removed afterwards.

  recrawl mergesegs -d crawl -remove
  recrawl mergesegs -d crawl -filter -slice 50000 20260105080000-000`,
		Flags: flags.Join(flags.Dir(), flags.Rules(),
			&cli.IntFlag{Name: "slice", Usage: "put at most `N` URLs into one segment (0: all)"},
			&cli.BoolFlag{Name: "remove", Usage: "remove the merged segments"},
			&cli.BoolFlag{Name: "nutch-compat", Usage: "as Nutch does, merge each part separately, and only parts that all segments have"},
			flags.NutchConf(), flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if n := c.Int("slice"); n < 0 {
				return flags.Usagef("-slice: %d is negative", n)
			}
			return a.withCrawl(ctx, c, access{}, func(s *session) error {
				accept, err := flags.AcceptURLs(c, s.conf, urlfilter.AnyScope)
				if err != nil {
					return err
				}
				o := merge.SegmentOptions{Accept: accept, Slice: c.Int("slice"), NutchCompat: flags.NutchCompat(c, s.conf)}
				return a.mergeSegments(ctx, c, s, o)
			})
		},
	}
}

func (a *app) mergeSegments(ctx context.Context, c *cli.Command, s *session, o merge.SegmentOptions) error {
	before, err := s.resumeMerge(ctx, c.Args().Slice())
	if err != nil {
		return err
	}
	r := merge.SegmentReport{Segments: before.Made}
	names := before.Sources
	if before.Whole {
		fmt.Fprintln(a.err, "recrawl: the segments were already merged, by a mergesegs that could not report it")
	} else {
		if names, err = s.toMerge(ctx, c.Args().Slice()); err != nil {
			return err
		}
		u := render.PendingOutput{Verb: c.Name, Sources: slices.Compact(slices.Sorted(slices.Values(names)))}
		o.Complete = func(ctx context.Context, name string) error {
			u.Made = append(u.Made, name)
			return u.Save(ctx, s.db.Crawl())
		}
		if r, err = s.crawler.MergeSegments(ctx, o, names...); err != nil {
			return err
		}
		u.Whole = true
		if err := u.Save(ctx, s.db.Crawl()); err != nil {
			return err
		}
	}
	if c.Bool("remove") {
		for _, name := range names {
			if err := s.crawler.RemoveSegment(ctx, name); err != nil {
				return err
			}
		}
	}
	if r.Unparsed > 0 {
		fmt.Fprintf(a.err, "recrawl: %d pages were never parsed, and no longer can be; parse a segment before merging it\n", r.Unparsed)
	}
	if c.Bool("json") {
		err = a.printJSON(map[string]any{"segments": render.NonNil(r.Segments), "urls": r.URLs, "visits": r.Visits, "superseded": r.Superseded, "rejected": r.Rejected, "unparsed": r.Unparsed})
	}
	if err != nil {
		return err
	}
	if !c.Bool("json") {
		for _, name := range r.Segments {
			fmt.Fprintln(a.out, name)
		}
	}
	return a.delivered(ctx, s)
}

// toMerge returns the named segments, which must exist, or all that are done.
func (s *session) toMerge(ctx context.Context, names []string) ([]string, error) {
	for _, name := range names {
		if err := hasSegment(ctx, s.db, name); err != nil {
			return nil, err
		}
	}
	if len(names) > 0 {
		return names, nil
	}
	names, err := s.crawler.DoneSegments(ctx)
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("no segment is done")
	}
	return names, err
}

// resumeMerge resumes a mergesegs that was killed: it removes what that made if it is
// incomplete, and reports it if it is complete and of these sources. No names stand for
// those named then.
func (s *session) resumeMerge(ctx context.Context, names []string) (render.PendingOutput, error) {
	u, err := render.ReadPendingOutput(ctx, s.db.Crawl(), "mergesegs")
	if err != nil {
		return u, err
	}
	sources := slices.Sorted(slices.Values(names))
	if u.Whole && (len(names) == 0 || slices.Equal(slices.Compact(sources), u.Sources)) {
		for _, name := range u.Made {
			if err := hasSegment(ctx, s.db, name); err != nil {
				return render.PendingOutput{}, nil // removed meanwhile
			}
		}
		return u, nil
	}
	if !u.Whole {
		for _, name := range u.Made {
			if err := s.crawler.RemoveSegment(ctx, name); err != nil {
				return u, err
			}
		}
	}
	return render.PendingOutput{}, nil
}
