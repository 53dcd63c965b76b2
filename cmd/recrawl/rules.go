package main

import (
	"slices"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/nutch/nutchconf"
	"github.com/recrawl/recrawl/urlfilter"
)

// ruleFlags returns the flags of verbs that apply the URL rules on request.
func ruleFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "normalize", Usage: "normalize URLs"},
		&cli.BoolFlag{Name: "filter", Usage: "leave out URLs that the filters reject"},
		urlRulesFlag(),
	}
}

func urlRulesFlag() cli.Flag {
	return &cli.StringFlag{Name: "url-rules", Category: toSelect, Usage: "take only URLs that the rules in `FILE` accept, each + or - and a regular expression: see recrawl crawl --help. For a verb with -filter, the rules that it applies"}
}

// urlRulesFile explains the format of the file that -url-rules names.
const urlRulesFile = `A -url-rules file is like Nutch's regex-urlfilter.txt: each line is + or - and a
regular expression. The first that matches a URL accepts or rejects it; a URL that
none matches is rejected. The file is read again for each round, but the crawl does
not remember its name: give it to each verb, including recrawl check filter.

  -^https://example\.com/(login|cart)
  +^https://example\.com/
  +^https://docs\.example\.com/`

// ruled returns rules with the filter of -url-rules added at the end.
func ruled(c *cli.Command, rules *urlfilter.Rules) (*urlfilter.Rules, error) {
	if !c.IsSet("url-rules") {
		return rules, nil
	}
	file, err := urlfilter.RegexFile(c.String("url-rules"), urlfilter.FileOptions{})
	if err != nil {
		return nil, usagef("-url-rules: %w", err)
	}
	with := *ownRules(rules)
	with.Filters = append(slices.Clone(with.Filters), file)
	return &with, nil
}

// rulesOf returns the rules of the crawl.
func rulesOf(c *cli.Command, conf *nutchconf.Options) (*urlfilter.Rules, error) {
	if conf != nil {
		return ruled(c, conf.Crawl.Rules)
	}
	return ruled(c, urlfilter.Default())
}

// compat reports whether a verb decides as Nutch does, by its flag or, without it, by
// the configuration.
func compat(c *cli.Command, conf *nutchconf.Options) bool {
	if c.IsSet("nutch-compat") {
		return c.Bool("nutch-compat")
	}
	return conf != nil && !c.Bool("corrected")
}

// accepting makes a function of these flags that returns the form of a URL to use, and
// whether it is kept; nil if neither was given.
func accepting(c *cli.Command, conf *nutchconf.Options, scope urlfilter.Scope) (func(string) (string, bool), error) {
	return acceptingBy(c, conf, scope, c.Bool("normalize"), c.Bool("filter"))
}

func acceptingBy(c *cli.Command, conf *nutchconf.Options, scope urlfilter.Scope, normalize, filter bool) (func(string) (string, bool), error) {
	if !normalize && !filter {
		return nil, nil
	}
	all, err := rulesOf(c, conf)
	if err != nil {
		return nil, err
	}
	rules := *all
	if !normalize {
		rules.Normalizers = nil
	}
	if !filter {
		rules.Filters = nil
	}
	return func(url string) (string, bool) {
		u, err := rules.Apply(scope, url)
		return u, err == nil
	}, nil
}
