package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/stores/pebblestore"
	"github.com/recrawl/recrawl/urlfilter"
)

func outFlag() cli.Flag {
	return &cli.StringFlag{Name: "o", Usage: "write to `FILE`, which is replaced once the output is complete (default: standard output)"}
}

func (a *app) index() *cli.Command {
	const toDelete = "What is deleted (on by default; off with -conf or -nutch-compat)"
	return &cli.Command{
		Name: "index", Category: looking, Usage: "write the pages as documents, one JSON object a line", ArgsUsage: "[SEGMENT...]",
		Description: `Each page is taken from the newest segment that holds it, of those named or of
all. Pages that no longer exist or ask not to be indexed are lines with
"deleted": true. With -o and -json, a summary in JSON goes to standard output.

  recrawl index -d crawl -o pages.jsonl
  recrawl index -d crawl | jq -r .title
  recrawl index -d crawl -deleteGone=false 20260105080000-000`,
		Flags: flags(dirFlag(), outFlag(), ruleFlags(),
			&cli.BoolFlag{Name: "skipNotModified", Usage: "leave out pages that have not changed since the last round"},
			&cli.BoolFlag{Name: "addBinaryContent", Usage: "include the fetched bytes in the document, in base64"},
			&cli.BoolFlag{Name: "nutch-compat", Usage: "decide as Nutch does: nothing is deleted unless its flag is given, duplicates and orphans are then indexed, and a visit that failed temporarily hides earlier ones"},
			&cli.BoolFlag{Name: "deleteGone", Category: toDelete, Usage: "pages that are gone, redirect, are duplicates or orphans"},
			&cli.BoolFlag{Name: "deleteNoIndex", Category: toDelete, Usage: "pages that ask not to be indexed"},
			&cli.BoolFlag{Name: "deleteFailedParse", Category: toDelete, Usage: "pages that could not be parsed"},
			scoringFlag(), confFlags(), reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			o, err := a.indexOptions(c)
			if err != nil {
				return err
			}
			// It asks for the record and the inlinks of each page, in the order of segments.
			return a.readingAll(ctx, c, 0, func(db *pebblestore.DB) error {
				k, err := keptOf(ctx, db)
				if err != nil {
					return err
				}
				if k = k.with(c); k.Scoring != "" {
					if o.Scoring, err = scoringOf(k.Scoring); err != nil {
						return err
					}
				}
				if c.Args().Present() {
					o.Segments = c.Args().Slice()
				}
				var r index.Report
				err = a.writing(c, func(w io.Writer) (err error) {
					r, err = index.Run(ctx, db.Crawl(), db.Links(), db.Segments(), index.NewJSONL(w), o)
					return err
				})
				if err != nil || c.String("o") == "" {
					return err
				}
				if c.Bool("json") {
					return a.printJSON(map[string]int{"documents": r.Documents, "deleted": r.Deleted, "gone": r.Gone, "redirects": r.Redirects, "duplicates": r.Duplicates, "orphans": r.Orphans,
						"failed_parse": r.FailedParse, "noindex": r.NoIndex, "unparsed": r.Unparsed, "not_modified": r.NotModified, "rejected": r.Rejected, "segments": r.Segments, "skipped": r.Skipped})
				}
				fmt.Fprintf(a.out, "%d documents, %d deletions from %d segments\n", r.Documents, r.Deleted, r.Segments)
				return nil
			})
		},
	}
}

// indexOptions makes options from the configuration, if there is one, and from the
// flags.
func (a *app) indexOptions(c *cli.Command) (index.Options, error) {
	conf, err := a.configured(c)
	if err != nil {
		return index.Options{}, err
	}
	var o index.Options
	if conf != nil {
		o = conf.Index
		o.Scoring = conf.Crawl.Scoring
	}
	if err := checkKept(c); err != nil {
		return o, err
	}
	if o.Scoring == nil {
		o.Scoring = scoring.OPIC{}
	}
	for name, s := range map[string]*index.Switch{"deleteGone": &o.DeleteGone, "deleteNoIndex": &o.DeleteRobotsNoIndex, "deleteFailedParse": &o.DeleteFailedParse} {
		if c.IsSet(name) {
			*s = index.SwitchOf(c.Bool(name))
		}
	}
	given(c, "skipNotModified", &o.SkipNotModified)
	given(c, "nutch-compat", &o.NutchCompat)
	accept, err := accepting(c, conf, urlfilter.Indexer)
	if accept != nil {
		o.Accept = accept
	}
	o.AddBinaryContent = c.Bool("addBinaryContent")
	return o, err
}

func (a *app) clean() *cli.Command {
	return &cli.Command{
		Name: "clean", Category: looking, Usage: "write deletions for all pages that no longer exist",
		Description: `Writes a line with "deleted": true for each page of the crawl db that is gone,
redirects, is a duplicate or an orphan, or could not be parsed, including those
that index missed because their segments were removed or not named. It is not for an
index made with -normalize, where the URL of a page that is gone may have become the
name of another. With -o and -json, a
summary in JSON goes to standard output.

  recrawl clean -d crawl -o deletions.jsonl`,
		Flags: flags(dirFlag(), outFlag(),
			&cli.BoolFlag{Name: "nutch-compat", Usage: "only pages that are gone or duplicates, as in Nutch"},
			confFlags(), reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			conf, err := a.configured(c)
			if err != nil {
				return err
			}
			o := index.CleanOptions{NutchCompat: compat(c, conf)}
			return a.reading(ctx, c, func(db *pebblestore.DB, _ func() time.Time) error {
				var r index.CleanReport
				err := a.writing(c, func(w io.Writer) error {
					out := index.NewJSONL(w)
					if r, err = index.Clean(ctx, db.Crawl(), out, o); err != nil {
						return err
					}
					return out.Commit(ctx)
				})
				if err != nil || c.String("o") == "" {
					return err
				}
				if c.Bool("json") {
					deleted := map[string]int{}
					for _, s := range crawldb.Statuses() {
						if r.Deleted[s] > 0 {
							deleted[s.String()] = r.Deleted[s]
						}
					}
					return a.printJSON(map[string]any{"deleted": deleted, "total": r.Total()})
				}
				fmt.Fprintf(a.out, "%d deletions\n", r.Total())
				return nil
			})
		},
	}
}

// writing writes to the file of -o, or to standard output.
func (a *app) writing(c *cli.Command, write func(io.Writer) error) error {
	buffered := func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 1<<16)
		if err := write(b); err != nil {
			return err
		}
		return b.Flush()
	}
	if out := c.String("o"); out != "" {
		return replaceFile(out, func(f *os.File) error { return buffered(f) })
	}
	return buffered(a.out)
}
