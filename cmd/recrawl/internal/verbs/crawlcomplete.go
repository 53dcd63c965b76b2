package verbs

import (
	"context"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/hostdb/hoststat"
)

func (a *app) crawlcomplete() *cli.Command {
	return &cli.Command{
		Name: "crawlcomplete", Category: flags.ReadVerbs, Usage: "count by host or domain what was fetched and what was not",
		Description: `Each line is a number, a host or domain, and FETCHED or UNFETCHED.

  recrawl crawlcomplete -d crawl -mode domain`,
		Flags: flags.Join(flags.Dir(), &cli.StringFlag{Name: "mode", Usage: "count by `MODE`: host or domain (default host)", Value: "host"}, flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			level, err := hoststat.ParseLevel(c.String("mode"))
			if err != nil || level > hoststat.Domain {
				return flags.Usagef("-mode: %q is not one of host and domain", c.String("mode"))
			}
			return a.readStore(ctx, c, func(db crawls.DB, _ func() time.Time) error {
				shares, err := hoststat.Shares(ctx, db.Crawl(), level)
				if err != nil {
					return err
				}
				type shareJSON struct {
					Fetched   int64 `json:"fetched"`
					Unfetched int64 `json:"unfetched"`
				}
				counts, objects := map[string]int64{}, map[string]shareJSON{}
				for key, s := range shares {
					if key == "" {
						key = none
					}
					objects[key] = shareJSON(s)
					if s.Fetched > 0 {
						counts[key+" FETCHED"] = s.Fetched
					}
					if s.Unfetched > 0 {
						counts[key+" UNFETCHED"] = s.Unfetched
					}
				}
				if c.Bool("json") {
					all := total(shares)
					return a.printJSON(map[string]any{"mode": level.String(), "fetched": all.Fetched, "unfetched": all.Unfetched, "counts": objects})
				}
				return a.printCounts(counts)
			})
		},
	}
}
