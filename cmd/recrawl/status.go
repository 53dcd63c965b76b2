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
		Name: "status", Category: looking, Usage: "say how up to date the copies are, and what budget would keep them so",
		Description: `Reads all records. How fresh copies are is expected of them, given when each was
visited and how often its page was seen to change; a crawl finds that out with
-schedule learned. What other budgets would reach is estimated from a sample of
20,000 records, for the long run and the pages that are known.

  recrawl status -d crawl
  recrawl status -d crawl -want 0.95
  recrawl status -d crawl -json | jq .forecast.wanted

Hosts are told of in the order of what is lost there: the importance of copies
that are not fresh.

A crawl that is at work has its directory to itself, and notes every two seconds
what it does. Beside it status tells that, and how fresh the copies were when the
crawl made its last plan, without hosts.`,
		Flags: flags(dirFlag(),
			&cli.FloatSliceFlag{Name: "want", Usage: "say what budget keeps this `SHARE` of the importance fresh, for example 0.95; may be given again (default 0.8, 0.9 and 0.95)"},
			&cli.IntFlag{Name: "hosts", Value: 20, Usage: "tell of `N` hosts, the worst first (default 20; -json all)"},
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
			err = a.with(ctx, c, false, true, func(s *session) error {
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
