package verbs

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
)

func (a *app) checkFilter() *cli.Command {
	return &cli.Command{
		Name: "filter", Usage: "say which rule accepts or rejects a URL", ArgsUsage: "[URL...]",
		Description: `Prints + or - and the URL, as Nutch's filterchecker does, then a tab and the rule
that decides, if one does. The URL is checked as given, unless -normalize has it
normalized first, as every stage of a crawl does.

  recrawl check filter https://example.com/logo.gif
  recrawl check filter -conf conf < urls.txt`,
		Flags: flags.Join(stdinFlag(), scopeFlag(), &cli.BoolFlag{Name: "normalize", Usage: "normalize the URL first"}, flags.URLRules(), flags.JSON(), flags.NutchConf()),
		Action: func(ctx context.Context, c *cli.Command) error {
			rules, scope, err := a.rulesAndScope(c)
			if err != nil {
				return err
			}
			if !c.Bool("normalize") {
				rules.Normalizers = nil
			}
			return a.each(ctx, c, func(url string) error {
				steps := rules.Explain(scope, url)
				accepted, out, rule := verdict(url, steps)
				if c.Bool("json") {
					return a.printLine(map[string]any{"url": url, "accepted": accepted, "normal": out, "rule": rule, "steps": stepsJSON(steps)})
				}
				sign := "-"
				if accepted {
					sign = "+"
				} else {
					out = url
				}
				_, err := fmt.Fprintln(a.out, sign+tabbed(out, rule))
				return err
			})
		},
	}
}
