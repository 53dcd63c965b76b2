package verbs

import (
	"context"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
)

func (a *app) explain() *cli.Command {
	return &cli.Command{
		Name: "explain", Category: flags.ReadVerbs, Usage: "say why a URL is or is not fetched next", ArgsUsage: "URL",
		Description: `Makes no request: what it says about robots.txt and the host is what the last
rounds learned. -agent is the name that robots.txt is matched against.

  recrawl explain -d crawl -agent mybot https://example.com/page

With -schedule learned it shows the arithmetic behind the interval:

  changes   how often the page changes, give or take a standard deviation: so
            many changes seen in so many days, or what pages like it do
  worth     weight / changes is what there is to lose, and the threshold of a
            visit, which follows from the budget, a share of it
  signs     what those of sitemaps, feeds and Signal are worth on this host
  interval  after r changes that share is lost: 1 - (1 + r) / exp(r), less where
            there are signs; r / changes is the time until then, within bounds
  next      the last visit, and the interval that was set then. The threshold
            may have changed since: a visit now would set the interval above`,
		Flags: flags.Join(flags.Dir(), &cli.StringFlag{Name: "agent", Usage: "the `NAME` of the crawler"},
			&cli.StringFlag{Name: "host-rules", Usage: "the `FILE` of host rules, to know which hosts are closed: see recrawl crawl --help-all"}, flags.URLRules(), flags.Scheduling(), flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.Args().Len() != 1 {
				return flags.Usagef("explain needs one URL")
			}
			return a.withCrawl(ctx, c, access{}, func(s *session) error {
				e, err := s.crawler.Explain(ctx, c.Args().First())
				if err != nil {
					return err
				}
				if c.Bool("json") {
					return a.printJSON(render.ExplanationJSON(&e))
				}
				return render.Explanation(a.out, &e)
			})
		},
	}
}
