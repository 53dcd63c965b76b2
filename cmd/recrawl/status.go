package main

import (
	"bufio"
	"context"
	"errors"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/stores/pebblestore"
)

func (a *app) status() *cli.Command {
	return &cli.Command{
		Name: "status", Category: looking, Usage: "show how fresh the copies are, and what budget would keep them fresh",
		Description: `Reads all records. How fresh the copies are is an estimate, from when each was
visited and how often its page was seen to change, which a crawl learns with
-schedule learned. What other budgets would achieve is estimated from a sample of
20,000 records, for the long run and the known pages.

  recrawl status -d crawl
  recrawl status -d crawl -want 0.95
  recrawl status -d crawl -json | jq .forecast.wanted

A copy is what the last visit found, and fresh while the page is still the same. The
other pages were never visited, or have nothing to copy: they are gone, or redirect.
Importance is the score. A page is overdue if it was visited and is due again.

Hosts are sorted by what is lost there: the importance of copies that are not fresh,
as a share of what is lost on all hosts. stale is how long copies have been out of
date.

A running crawl locks its directory, but every two seconds notes what it is doing.
status then shows that note, and how fresh the copies were when the crawl last
planned, without hosts.`,
		Flags: flags(dirFlag(),
			&cli.FloatSliceFlag{Name: "want", Usage: "show what budget keeps this `SHARE` of the importance fresh, for example 0.95; may be repeated (default 0.8, 0.9 and 0.95)"},
			&cli.IntFlag{Name: "hosts", Value: 20, Usage: "show `N` hosts, the worst first (default 20; with -json all)"},
			scheduling(), reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := noArgs(c); err != nil {
				return err
			}
			wants, err := parseWants(c.FloatSlice("want"))
			if err != nil {
				return err
			}
			hosts := c.Int("hosts")
			if hosts < 0 {
				return usagef("-hosts: %d is negative", hosts)
			}
			if c.Bool("json") && !c.IsSet("hosts") {
				hosts = allHosts
			}
			err = a.with(ctx, c, access{}, func(s *session) error {
				f, err := s.crawler.Freshness(ctx, hosts)
				if err != nil {
					return err
				}
				if c.Bool("json") {
					return a.printJSON(jsonOfFreshness(&f, wants))
				}
				w := bufio.NewWriter(a.out)
				printFreshness(w, &f, wants)
				if err := printHosts(w, f.Hosts); err != nil {
					return err
				}
				return w.Flush()
			})
			if errors.Is(err, pebblestore.ErrLocked) {
				return a.statusAtWork(c, wants, err)
			}
			return err
		},
	}
}

// allHosts is more than there are.
const allHosts = 1 << 30
