package flags

import (
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/urlfilter"
)

// EndlessSites returns the flags about endless sites, or only those named.
func EndlessSites(names ...string) []cli.Flag {
	all := []cli.Flag{
		&cli.BoolFlag{Name: "no-traps", Category: endlessSitesGroup, Usage: "keep session ids in URLs, and URLs that look like a maze"},
		&cli.BoolFlag{Name: "exact", Category: endlessSitesGroup, Usage: "select the best, even if it is all in one part of a site"},
		&cli.IntFlag{Name: "max-per-part", Category: endlessSitesGroup, Usage: "per round, select at most `N` URLs of a part of a host, such as a directory (0: no limit)"},
		&cli.IntFlag{Name: "max-growth", Category: endlessSitesGroup, Usage: "beyond its first 2000 records, add at most `N` to a domain for each page of it that is visited (0: no limit)", Value: 10},
		&cli.DurationFlag{Name: "parse-timeout", Category: endlessSitesGroup, Usage: "stop parsing a page after this `TIME`, and keep what was found (0: no limit)", Value: 30 * time.Second},
	}
	if len(names) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(f cli.Flag) bool { return !slices.Contains(names, f.Names()[0]) })
}

// ApplyEndlessSites adds those flags to a configuration.
func ApplyEndlessSites(c *cli.Command, o *recrawl.Options) error {
	if c.Bool("no-traps") {
		rules := *RulesOrDefault(o.Rules)
		rules.Normalizers = slices.DeleteFunc(slices.Clone(rules.Normalizers), func(n urlfilter.Normalizer) bool { _, is := n.(urlfilter.SessionIDs); return is })
		rules.Filters = slices.DeleteFunc(slices.Clone(rules.Filters), func(f urlfilter.Filter) bool { _, is := f.(urlfilter.Traps); return is })
		o.Rules = &rules
	}
	SetBool(c, "exact", &o.Generate.ExactTopN)
	if c.IsSet("max-per-part") {
		if o.Generate.MaxPerPart = c.Int("max-per-part"); o.Generate.MaxPerPart < 0 {
			return Usagef("-max-per-part: %d is negative", o.Generate.MaxPerPart)
		}
	}
	if c.IsSet("max-growth") {
		switch o.Update.MaxGrowth = c.Int("max-growth"); {
		case o.Update.MaxGrowth < 0:
			return Usagef("-max-growth: %d is negative", o.Update.MaxGrowth)
		case o.Update.MaxGrowth == 0:
			o.Update.MaxGrowth = -1 // here 0 means none
		}
	}
	if c.IsSet("parse-timeout") {
		switch o.Fetch.Parsing.Timeout = c.Duration("parse-timeout"); {
		case o.Fetch.Parsing.Timeout < 0:
			return Usagef("-parse-timeout: %v is negative", o.Fetch.Parsing.Timeout)
		case o.Fetch.Parsing.Timeout == 0:
			o.Fetch.Parsing.Timeout = -1
		}
	}
	return nil
}

// RulesOrDefault returns the given rules, or the default ones if there are none.
func RulesOrDefault(r *urlfilter.Rules) *urlfilter.Rules {
	if r == nil {
		return urlfilter.Default()
	}
	return r
}
