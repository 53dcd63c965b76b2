package verbs

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/hostdb/hoststat"
)

// none stands for a URL that has no such part.
const none = "(none)"

func (a *app) domainstats() *cli.Command {
	return &cli.Command{
		Name: "domainstats", Category: flags.ReadVerbs, Usage: "count what was fetched by host, domain, suffix or tld", ArgsUsage: "LEVEL",
		Description: `LEVEL is host, domain, suffix or tld. Each line is a number and what it counts:
FETCHED and NOT_FETCHED are the totals of all records, and (none) counts those
without such a part, as an IP address has no suffix.

  recrawl domainstats -d crawl domain | sort -nr | head`,
		Flags: flags.Join(flags.Dir(), flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			level, err := hoststat.ParseLevel(c.Args().First())
			if err != nil {
				return flags.Usagef("domainstats needs one of host, domain, suffix and tld, not %q", c.Args().First())
			}
			return a.readStore(ctx, c, func(db crawls.DB, _ func() time.Time) error {
				shares, err := hoststat.Shares(ctx, db.Crawl(), level)
				if err != nil {
					return err
				}
				counts := map[string]int64{}
				for key, s := range shares {
					if key == "" {
						key = none
					}
					if s.Fetched > 0 {
						counts[key] = s.Fetched
					}
				}
				all := total(shares)
				if c.Bool("json") {
					return a.printJSON(map[string]any{"level": level.String(), "fetched": all.Fetched, "not_fetched": all.Unfetched, "counts": counts})
				}
				counts["FETCHED"], counts["NOT_FETCHED"] = all.Fetched, all.Unfetched
				return a.printCounts(counts)
			})
		},
	}
}

func total(shares map[string]hoststat.Share) (all hoststat.Share) {
	for _, s := range shares {
		all.Fetched += s.Fetched
		all.Unfetched += s.Unfetched
	}
	return all
}

// printCounts prints a line for each key, in key order, as Nutch's statistics do.
func (a *app) printCounts(counts map[string]int64) error {
	w := bufio.NewWriter(a.out)
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(w, "%d\t%s\n", counts[key], key)
	}
	return w.Flush()
}
