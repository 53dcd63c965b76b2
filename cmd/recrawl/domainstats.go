package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/hostdb/hoststat"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// none stands for a URL that has no such part.
const none = "(none)"

func (a *app) domainstats() *cli.Command {
	return &cli.Command{
		Name: "domainstats", Category: looking, Usage: "count what was fetched by host, domain, suffix or tld", ArgsUsage: "LEVEL",
		Description: `LEVEL is host, domain, suffix or tld. Each line is a number and what it counts:
FETCHED and NOT_FETCHED are the totals of all records, and (none) counts those
without such a part, as an IP address has no suffix.

  recrawl domainstats -d crawl domain | sort -nr | head`,
		Flags: flags(dirFlag(), reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			level, err := hoststat.ParseLevel(c.Args().First())
			if err != nil {
				return usagef("domainstats needs one of host, domain, suffix and tld, not %q", c.Args().First())
			}
			return a.reading(ctx, c, func(db *pebblestore.DB, _ func() time.Time) error {
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

func (a *app) crawlcomplete() *cli.Command {
	return &cli.Command{
		Name: "crawlcomplete", Category: looking, Usage: "count by host or domain what was fetched and what was not",
		Description: `Each line is a number, a host or domain, and FETCHED or UNFETCHED.

  recrawl crawlcomplete -d crawl -mode domain`,
		Flags: flags(dirFlag(), &cli.StringFlag{Name: "mode", Usage: "count by `MODE`: host or domain (default host)", Value: "host"}, reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			level, err := hoststat.ParseLevel(c.String("mode"))
			if err != nil || level > hoststat.Domain {
				return usagef("-mode: %q is not one of host and domain", c.String("mode"))
			}
			return a.reading(ctx, c, func(db *pebblestore.DB, _ func() time.Time) error {
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

func (a *app) protocolstats() *cli.Command {
	return &cli.Command{
		Name: "protocolstats", Category: looking, Usage: "count the records by the HTTP status of their last visit",
		Description: `Each line is a number and a status. UNFETCHED counts the records without a stored
status: crawl and update store it with -visit-meta or with -conf.

  recrawl protocolstats -d crawl`,
		Flags: flags(dirFlag(), reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			return a.reading(ctx, c, func(db *pebblestore.DB, _ func() time.Time) error {
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
