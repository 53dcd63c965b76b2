package verbs

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/urlfilter"
)

func outFlag() cli.Flag {
	return &cli.StringFlag{Name: "o", Usage: "write to `FILE`, which is replaced once the output is complete (default: standard output)"}
}

func (a *app) index() *cli.Command {
	const toDelete = "What is deleted (on by default; off with -conf or -nutch-compat)"
	const toIndex = "To a search engine"
	return &cli.Command{
		Name: "index", Category: flags.ReadVerbs, Usage: "write the pages as documents, one JSON object a line, or to a search engine", ArgsUsage: "[SEGMENT...]",
		Description: `Each page is taken from the newest segment that holds it, of those named or of
all. Pages that no longer exist or ask not to be indexed are lines with
"deleted": true. With -o and -json, a summary in JSON goes to standard output.

  recrawl index -d crawl -o pages.jsonl
  recrawl index -d crawl | jq -r .title
  recrawl index -d crawl -format markdown | jq -r .text
  recrawl index -d crawl -deleteGone=false 20260105080000-000

With -to, what has changed since the last call is written to an index, as a consumer
of the change feed: see changes. What the index has not confirmed is written again.

  recrawl index -d crawl -to bleve:pages
  recrawl search -d pages gopher
  recrawl index -d crawl -to opensearch+http://localhost:9200/pages -follow`,
		Flags: flags.Join(flags.Dir(), outFlag(), flags.Rules(),
			&cli.BoolFlag{Name: "skipNotModified", Usage: "leave out pages that have not changed since the last round"},
			&cli.StringFlag{Name: "format", Usage: "the `FORMAT` of the text of a document: text, all that a page shows, or markdown, its main content, with author, dates and language as fields", Value: "text"},
			&cli.BoolFlag{Name: "addBinaryContent", Usage: "include the fetched bytes in the document, in base64"},
			&cli.BoolFlag{Name: "nutch-compat", Usage: "decide as Nutch does: nothing is deleted unless its flag is given, duplicates and orphans are then indexed, and a visit that failed temporarily hides earlier ones"},
			&cli.BoolFlag{Name: "deleteGone", Category: toDelete, Usage: "pages that are gone, redirect, are duplicates or orphans"},
			&cli.BoolFlag{Name: "deleteNoIndex", Category: toDelete, Usage: "pages that ask not to be indexed"},
			&cli.BoolFlag{Name: "deleteFailedParse", Category: toDelete, Usage: "pages that could not be parsed"},
			&cli.StringFlag{Name: "to", Category: toIndex, Usage: "bring the index at `TARGET` up to date: bleve:DIR, opensearch+http://HOST:9200/NAME or elasticsearch+https://USER:PASSWORD@HOST/NAME"},
			&cli.BoolFlag{Name: "follow", Category: toIndex, Usage: "wait for more changes, until interrupted; also beside a crawl that is running"},
			&cli.BoolFlag{Name: "rebuild", Category: toIndex, Usage: "begin again, with all that the crawl has"},
			&cli.BoolFlag{Name: "clean", Category: toIndex, Usage: "also delete the pages that became duplicates or orphans without a visit, which lists the whole index"},
			&cli.StringFlag{Name: "consumer", Category: toIndex, Usage: "the `NAME` of the consumer of the change feed (default: made of the target)"},
			flags.Scoring(), flags.NutchConf(), flags.MinFree(), flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.IsSet("to") {
				return a.indexTo(ctx, c)
			}
			for _, name := range []string{"follow", "rebuild", "clean", "consumer"} {
				if c.IsSet(name) {
					return flags.Usagef("-%s needs -to", name)
				}
			}
			o, err := a.indexOptions(c)
			if err != nil {
				return err
			}
			// It asks for the record and the inlinks of each page, in the order of segments.
			return a.readStoreWithCache(ctx, c, 0, func(db crawls.DB) error {
				k, err := flags.ReadSavedFlags(ctx, db.Crawl())
				if err != nil {
					return err
				}
				if k = k.With(c); k.Scoring != "" {
					if o.Scoring, err = flags.ParseScoring(k.Scoring); err != nil {
						return err
					}
				}
				if c.Args().Present() {
					o.Segments = c.Args().Slice()
				}
				var r index.Report
				err = a.writing(c, func(w io.Writer) (err error) {
					r, err = index.Run(ctx, db.Crawl(), db.Links(), db.Segments(), markdownOf(c, index.NewJSONL(w)), o)
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
	if f := c.String("format"); f != "text" && f != "markdown" {
		return index.Options{}, flags.Usagef("-format: %q is not one of text and markdown", f)
	}
	conf, err := flags.ReadNutchConf(c)
	if err != nil {
		return index.Options{}, err
	}
	var o index.Options
	if conf != nil {
		o = conf.Index
		o.Scoring = conf.Crawl.Scoring
	}
	if err := flags.CheckSaved(c); err != nil {
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
	flags.SetBool(c, "skipNotModified", &o.SkipNotModified)
	flags.SetBool(c, "nutch-compat", &o.NutchCompat)
	accept, err := flags.AcceptURLs(c, conf, urlfilter.Indexer)
	if accept != nil {
		o.Accept = accept
	}
	o.AddBinaryContent = c.Bool("addBinaryContent") || c.String("format") == "markdown"
	return o, err
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
		return render.ReplaceFile(out, func(f *os.File) error { return buffered(f) })
	}
	return buffered(a.out)
}
