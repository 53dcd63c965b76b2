package main

import (
	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/nutchconf"
	"github.com/recrawl/recrawl/urlfilter"
)

// ruleFlags returns the flags of verbs that apply the rules for URLs on request.
func ruleFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "normalize", Usage: "spell URLs as the normalizers do"},
		&cli.BoolFlag{Name: "filter", Usage: "leave out URLs that the filters reject"},
	}
}

// compat says whether a verb decides as Nutch does: by its flag or, unless that is
// given, by the configuration.
func compat(c *cli.Command, conf *nutchconf.Options) bool {
	if c.IsSet("nutch-compat") {
		return c.Bool("nutch-compat")
	}
	return conf != nil && !c.Bool("corrected")
}

// accepting makes of these flags a function that gives the spelling of a URL and
// says whether it is kept; nil if neither was given.
func accepting(c *cli.Command, conf *nutchconf.Options, scope urlfilter.Scope) func(string) (string, bool) {
	return acceptingBy(conf, scope, c.Bool("normalize"), c.Bool("filter"))
}

func acceptingBy(conf *nutchconf.Options, scope urlfilter.Scope, normalize, filter bool) func(string) (string, bool) {
	if !normalize && !filter {
		return nil
	}
	rules := *rulesOf(conf)
	if !normalize {
		rules.Normalizers = nil
	}
	if !filter {
		rules.Filters = nil
	}
	return func(url string) (string, bool) {
		u, err := rules.Apply(scope, url)
		return u, err == nil
	}
}
