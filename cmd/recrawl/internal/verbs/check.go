package verbs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/nutch/nutchconf"
	"github.com/recrawl/recrawl/urlfilter"
)

func stdinFlag() cli.Flag {
	return &cli.BoolFlag{Name: "stdin", Usage: "read URLs from standard input, one a line; this is the default if none are given"}
}

func scopeFlag() cli.Flag {
	return &cli.StringFlag{Name: "scope", Usage: "apply the rules of this `SCOPE`, the place where the URL turned up: inject, outlink, fetcher, generate, crawldb, linkdb, indexer, partition, generate_host_count or default, which is the default", Value: string(urlfilter.AnyScope)}
}

// check is the verb of the checkers, each a verb below it.
func (a *app) check() *cli.Command {
	checkers := []*cli.Command{a.checkFilter(), a.checkNormalize(), a.checkParse(), a.checkExtract(), a.checkRobots(), a.checkSchedule(), a.checkConf()}
	return &cli.Command{
		Name: "check", Category: flags.ReadVerbs, Usage: "try filters, normalizers, parser, extraction, robots.txt and schedule on URLs",
		ArgsUsage: "[URL...]",
		Description: `Says what a crawl would do with a URL, and which rule decides, without touching
any crawl. WHAT to check is one of

  filter     do the filters accept it?       +URL or -URL, a tab, and the rule
  normalize  what is its normal form?        the URL, a tab, what changed it
  parse      what does the parser find?      fetches the page
  extract    main content, metadata, fields  fetches the page, or reads a file
  robots     does robots.txt allow it?       fetches it, or reads a file
  schedule   when would it be visited next?  for each outcome of a visit
  conf       which settings of a Nutch configuration have no effect?

URLs are arguments or, if there are none, lines of standard input.

  recrawl check filter https://example.com/a.gif
  recrawl check normalize -conf conf -scope outlink < urls.txt
  recrawl check robots -agent mybot https://example.com/private/

The exit code is 1 if any URL could not be checked, whatever the other answers.
The flags of each are in its own help: recrawl check filter --help.`,
		Commands: checkers,
		Action: func(_ context.Context, c *cli.Command) error {
			if c.Args().Present() {
				return flags.Usagef("check: no %q to check; choose filter, normalize, parse, extract, robots, schedule or conf", c.Args().First())
			}
			return flags.Usagef("check what? filter, normalize, parse, extract, robots, schedule or conf")
		},
	}
}

// checker is what one run of a checker works with.
type checker struct {
	c     *cli.Command
	conf  *nutchconf.Options // nil without -conf
	rules *urlfilter.Rules

	policies recrawl.Options // those of the crawl, by its saved flags, if there is one
}

func (a *app) checker(c *cli.Command) (*checker, error) {
	conf, err := flags.ReadNutchConf(c)
	if err != nil {
		return nil, err
	}
	rules, err := flags.RulesOf(c, conf)
	return &checker{c: c, conf: conf, rules: rules}, err
}

func (k *checker) scope() (urlfilter.Scope, error) {
	s := urlfilter.Scope(k.c.String("scope"))
	if !slices.Contains(urlfilter.Scopes(), s) {
		return "", flags.Usagef("-scope: unknown scope %q", s)
	}
	return s, nil
}

// each calls do for every URL to check. An error about one is reported and does not
// affect the others; the error at the end counts them.
func (a *app) each(ctx context.Context, c *cli.Command, do func(url string) error) error {
	checked, failed := 0, 0
	one := func(url string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if url = strings.TrimSpace(url); url == "" {
			return nil
		}
		checked++
		err := do(url)
		var bad badURL
		if errors.As(err, &bad) {
			failed++
			fmt.Fprintf(a.err, "recrawl: %v\n", err)
			return nil
		}
		return err
	}
	for _, url := range c.Args().Slice() {
		if err := one(url); err != nil {
			return err
		}
	}
	if c.Bool("stdin") || !c.Args().Present() {
		in := bufio.NewReaderSize(os.Stdin, 64<<10)
		for {
			line, err := readLine(in)
			if err != nil && err != io.EOF {
				return fmt.Errorf("standard input: %w", err)
			}
			if e := one(line); e != nil {
				return e
			}
			if err == io.EOF {
				break
			}
		}
	}
	switch {
	case failed > 0:
		return fmt.Errorf("%d of %d URLs could not be checked", failed, checked)
	case checked == 0:
		return flags.Usagef("check %s needs URLs, as arguments or as lines of standard input", c.Name)
	}
	return nil
}

// maxLine is the longest line of standard input, in bytes.
const maxLine = 1 << 20

func readLine(in *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return "", fmt.Errorf("a line is longer than %d bytes", maxLine)
		}
		line = append(line, part...)
		if err != bufio.ErrBufferFull {
			return string(line), err
		}
	}
}

// badURL is a URL that could not be checked.
type badURL struct{ error }

func (b badURL) Unwrap() error { return b.error }

// absolute refuses anything but an absolute URL with a host.
func absolute(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		var e *url.Error
		if errors.As(err, &e) {
			err = e.Err
		}
		return badURL{fmt.Errorf("%q is not a URL: %w", raw, err)}
	case u.Scheme == "" || u.Host == "":
		return badURL{fmt.Errorf("%q is not a URL; it should start with http:// or https://", raw)}
	}
	return nil
}

// rulesAndScope returns a copy of the rules of a crawl, and the scope of the flags.
func (a *app) rulesAndScope(c *cli.Command) (urlfilter.Rules, urlfilter.Scope, error) {
	k, err := a.checker(c)
	if err != nil {
		return urlfilter.Rules{}, "", err
	}
	scope, err := k.scope()
	return *k.rules, scope, err
}

func tabbed(s, t string) string {
	if t == "" {
		return s
	}
	return s + "\t" + t
}

// verdict reads the steps of rules: whether they accept the URL, what they made
// of it, and the rules that decided.
func verdict(url string, steps []urlfilter.Step) (accepted bool, out, rule string) {
	if len(steps) == 0 {
		return true, url, ""
	}
	last := steps[len(steps)-1]
	if !last.Accepted {
		switch {
		case last.Err != nil:
			return false, "", last.Err.Error()
		case last.Rule != "":
			return false, "", last.Rule
		}
		return false, "", last.Name
	}
	var deciding []string
	for _, s := range steps {
		if s.Filter && s.Rule != "" {
			deciding = append(deciding, s.Rule)
		}
	}
	return true, last.Out, strings.Join(deciding, "; ")
}

func stepsJSON(steps []urlfilter.Step) []map[string]any {
	all := []map[string]any{}
	for _, s := range steps {
		m := map[string]any{"name": s.Name, "filter": s.Filter, "in": s.In, "out": s.Out, "accepted": s.Accepted}
		if s.Rule != "" {
			m["rule"] = s.Rule
		}
		if s.Err != nil {
			m["error"] = s.Err.Error()
		}
		all = append(all, m)
	}
	return all
}
