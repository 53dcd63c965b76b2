package verbs

import (
	"context"
	"fmt"
	"os"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/protocol/robots"
)

func (a *app) checkRobots() *cli.Command {
	return &cli.Command{
		Name: "robots", Usage: "say which line of robots.txt allows or forbids a URL", ArgsUsage: "[URL...]",
		Description: `Fetches the robots.txt of each URL's server once, or reads -file. It
prints "allowed:", "not allowed:" or "unavailable:", the URL, the line that
decides, and the Crawl-delay if there is one, with tabs between.

  recrawl check robots -agent mybot https://example.com/private/
  recrawl check robots -agent mybot -file robots.txt < urls.txt`,
		Flags: flags.Join(stdinFlag(), &cli.StringFlag{Name: "file", Usage: "read this `FILE` instead of fetching robots.txt"}, flags.Network(), flags.JSON(), flags.NutchConf()),
		Action: func(ctx context.Context, c *cli.Command) error {
			k, err := a.checker(c)
			if err != nil {
				return err
			}
			var fixed *robots.Rules
			ask := func(string) (*robots.Rules, error) { return fixed, nil }
			if name := c.String("file"); name != "" {
				body, err := os.ReadFile(name)
				if err != nil {
					return fmt.Errorf("-file: %w", err)
				}
				fixed = robots.Parse(body, append([]string{k.agent()}, k.policy().Aliases...)...)
			} else {
				client, err := k.client(a)
				if err != nil {
					return err
				}
				defer client.Close()
				cache := k.robots(client)
				ask = func(url string) (*robots.Rules, error) {
					if r, ok, err := cache.Cached(ctx, url); ok || err != nil {
						return r, err
					}
					return cache.Fetch(ctx, url)
				}
			}
			return a.each(ctx, c, func(url string) error {
				if err := absolute(url); err != nil {
					return err
				}
				rules, err := ask(url)
				if err != nil {
					return err
				}
				return a.printRobots(c, url, rules)
			})
		},
	}
}

func (a *app) printRobots(c *cli.Command, url string, rules *robots.Rules) error {
	allowed, line := rules.Explain(url)
	word := "not allowed"
	switch {
	case allowed:
		word = "allowed"
	case rules.Unavailable:
		word = "unavailable"
	}
	if !allowed {
		line = robotsReason(rules, line)
	}
	if c.Bool("json") {
		return a.printLine(map[string]any{"url": url, "allowed": allowed, "unavailable": rules.Unavailable, "line": line,
			"crawl_delay_seconds": rules.CrawlDelay.Seconds(), "has_crawl_delay": rules.HasCrawlDelay, "sitemaps": rules.Sitemaps, "usage": rules.Usage(url).String()})
	}
	out := word + ":\t" + tabbed(url, line)
	if rules.HasCrawlDelay {
		out += fmt.Sprintf("\tCrawl-delay: %v", rules.CrawlDelay)
	}
	if u := rules.Usage(url); len(u) > 0 {
		out += "\tusage: " + u.String()
	}
	_, err := fmt.Fprintln(a.out, out)
	return err
}

// robotsReason says why rules forbid something.
func robotsReason(r *robots.Rules, line string) string {
	switch {
	case line != "":
		return line
	case r.Reason != "":
		return r.Reason
	case r.Unavailable:
		return "robots.txt is unavailable"
	}
	return "robots.txt as a whole"
}
