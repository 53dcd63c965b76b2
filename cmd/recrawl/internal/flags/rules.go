package flags

import (
	"slices"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/nutch/nutchconf"
	"github.com/recrawl/recrawl/urlfilter"
)

// Rules returns the flags of verbs that apply the URL rules on request.
func Rules() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "normalize", Usage: "normalize URLs"},
		&cli.BoolFlag{Name: "filter", Usage: "leave out URLs that the filters reject"},
		URLRules(),
	}
}

// URLRules returns the flag -url-rules.
func URLRules() cli.Flag {
	return &cli.StringFlag{Name: "url-rules", Category: SelectionGroup, Usage: "take only URLs that the rules in `FILE` accept, each + or - and a regular expression: see recrawl crawl --help-all. For a verb with -filter, the rules that it applies"}
}

// URLRulesFormat explains the format of the file that -url-rules names.
const URLRulesFormat = `A -url-rules file is like Nutch's regex-urlfilter.txt: each line is + or - and a
regular expression. The first that matches a URL accepts or rejects it; a URL that
none matches is rejected. The file is read again for each round, but the crawl does
not remember its name: give it to each verb, including recrawl check filter.

  -^https://example\.com/(login|cart)
  +^https://example\.com/
  +^https://docs\.example\.com/`

// WithURLRules returns rules with the filter of -url-rules added at the end.
func WithURLRules(c *cli.Command, rules *urlfilter.Rules) (*urlfilter.Rules, error) {
	if !c.IsSet("url-rules") {
		return rules, nil
	}
	file, err := urlfilter.OpenFilter(c.String("url-rules"), urlfilter.ParseRegex, urlfilter.Options{})
	if err != nil {
		return nil, Usagef("-url-rules: %w", err)
	}
	with := *RulesOrDefault(rules)
	with.Filters = append(slices.Clone(with.Filters), file)
	return &with, nil
}

// RulesOf returns the rules of the crawl.
func RulesOf(c *cli.Command, conf *nutchconf.Options) (*urlfilter.Rules, error) {
	if conf != nil {
		return WithURLRules(c, conf.Crawl.Rules)
	}
	return WithURLRules(c, urlfilter.Default())
}

// NutchCompat reports whether a verb decides as Nutch does, by its flag or, without it, by
// the configuration.
func NutchCompat(c *cli.Command, conf *nutchconf.Options) bool {
	if c.IsSet("nutch-compat") {
		return c.Bool("nutch-compat")
	}
	return conf != nil && !c.Bool("corrected")
}

// AcceptURLs makes a function of these flags that returns the form of a URL to use, and
// whether it is kept; nil if neither was given.
func AcceptURLs(c *cli.Command, conf *nutchconf.Options, scope urlfilter.Scope) (func(string) (string, bool), error) {
	return AcceptURLsIf(c, conf, scope, c.Bool("normalize"), c.Bool("filter"))
}

// AcceptURLsIf is AcceptURLs for a verb that decides by itself what to do.
func AcceptURLsIf(c *cli.Command, conf *nutchconf.Options, scope urlfilter.Scope, normalize, filter bool) (func(string) (string, bool), error) {
	if !normalize && !filter {
		return nil, nil
	}
	all, err := RulesOf(c, conf)
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
