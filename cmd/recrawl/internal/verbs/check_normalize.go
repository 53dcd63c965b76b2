package verbs

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
)

func (a *app) checkNormalize() *cli.Command {
	return &cli.Command{
		Name: "normalize", Usage: "show the normal form of a URL, and what changes it", ArgsUsage: "[URL...]",
		Description: `Prints the normal form, then a tab and the normalizers and rules that changed the
URL. If the URL is refused, the normal form is empty, as in Nutch's
normalizerchecker, and the reason follows the tab.

  recrawl check normalize 'HTTP://Example.COM:80/a/../b?c#d'
  recrawl check normalize -conf conf -scope outlink < urls.txt`,
		Flags: flags.Join(stdinFlag(), scopeFlag(), flags.JSON(), flags.NutchConf()),
		Action: func(ctx context.Context, c *cli.Command) error {
			rules, scope, err := a.rulesAndScope(c)
			if err != nil {
				return err
			}
			rules.Filters = nil
			return a.each(ctx, c, func(url string) error {
				steps := rules.Explain(scope, url)
				ok, out, why := verdict(url, steps)
				var changed []string
				for _, s := range steps {
					if s.Accepted && s.In != s.Out {
						changed = append(changed, cmp.Or(s.Rule, s.Name))
					}
				}
				if ok {
					why = strings.Join(changed, "; ")
				}
				if c.Bool("json") {
					return a.printLine(map[string]any{"url": url, "normal": out, "ok": ok, "by": why, "steps": stepsJSON(steps)})
				}
				_, err := fmt.Fprintln(a.out, tabbed(out, why))
				return err
			})
		},
	}
}
