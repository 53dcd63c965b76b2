package verbs

import (
	"context"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/hostdb/hoststat"
)

func (a *app) protocolstats() *cli.Command {
	return &cli.Command{
		Name: "protocolstats", Category: flags.ReadVerbs, Usage: "count the records by the HTTP status of their last visit",
		Description: `Each line is a number and a status. UNFETCHED counts the records without a stored
status: crawl and update store it with -visit-meta or with -conf.

  recrawl protocolstats -d crawl`,
		Flags: flags.Join(flags.Dir(), flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			return a.readStore(ctx, c, func(db crawls.DB, _ func() time.Time) error {
				counts, err := hoststat.Codes(ctx, db.Crawl())
				if err != nil {
					return err
				}
				if c.Bool("json") {
					return a.printJSON(map[string]any{"counts": counts})
				}
				return a.printCounts(counts)
			})
		},
	}
}
