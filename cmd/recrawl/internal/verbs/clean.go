package verbs

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/index"
)

func (a *app) clean() *cli.Command {
	return &cli.Command{
		Name: "clean", Category: flags.ReadVerbs, Usage: "write deletions for all pages that no longer exist",
		Description: `Writes a line with "deleted": true for each page of the crawl db that is gone,
redirects, is a duplicate or an orphan, or could not be parsed, including those
that index missed because their segments were removed or not named. It is not for an
index made with -normalize, where the URL of a page that is gone may have become the
name of another. With -o and -json, a
summary in JSON goes to standard output.

  recrawl clean -d crawl -o deletions.jsonl`,
		Flags: flags.Join(flags.Dir(), outFlag(),
			&cli.BoolFlag{Name: "nutch-compat", Usage: "only pages that are gone or duplicates, as in Nutch"},
			flags.NutchConf(), flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			conf, err := flags.ReadNutchConf(c)
			if err != nil {
				return err
			}
			o := index.CleanOptions{NutchCompat: flags.NutchCompat(c, conf)}
			return a.readStore(ctx, c, func(db crawls.DB, _ func() time.Time) error {
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
