package verbs

import (
	"context"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
)

func (a *app) parse() *cli.Command {
	return &cli.Command{
		Name: "parse", Category: flags.StageVerbs, Usage: "parse the pages of a segment that was fetched with -no-parse", ArgsUsage: "[SEGMENT]",
		Description: `The default is the newest segment.

  recrawl fetch -d crawl -agent mybot -no-parse
  recrawl parse -d crawl -agent mybot`,
		Flags: flags.Join(flags.Dir(), &cli.StringFlag{Name: "agent", Usage: "the crawler `NAME` that meta robots are matched against"}, flags.URLRules(), flags.IgnoreExternal(), flags.EndlessSites("no-traps", "parse-timeout"), flags.Extraction(), flags.Scoring(), flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			return a.withCrawl(ctx, c, access{}, func(s *session) error {
				name, err := segmentArg(ctx, c, s)
				if err != nil {
					return err
				}
				r, err := s.crawler.Parse(ctx, name)
				if err != nil {
					return err
				}
				return a.printFetch(c, name, &r)
			})
		},
	}
}
