package flags

import (
	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/fetch"
)

// FetchLimits returns the flags that end a fetch early, or extend it beyond its list.
func FetchLimits() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{Name: "time-limit", Category: limitsGroup, Usage: "end the fetch of a round after this `TIME`; what is left is due in the next round (0: no limit)"},
		&cli.Float64Flag{Name: "min-rate", Category: limitsGroup, Usage: "end the fetch, once it has run for 5 minutes, if it makes fewer than `N` visits a second for 5 seconds (0: never)"},
		&cli.IntFlag{Name: "follow-depth", Category: limitsGroup, Usage: "also visit, in the same round, pages of the same host up to `N` links away (0: none)"},
		&cli.IntFlag{Name: "follow-links", Category: limitsGroup, Usage: "with -follow-depth: follow the first `N` links of each page, not counting those visited anyway (0: 4)"},
		&cli.IntFlag{Name: "redirects", Category: limitsGroup, Usage: "follow up to `N` redirects in a row in the same fetch, once its list is done (0: leave them to a later round)"},
	}
}

// ApplyFetchLimits sets what those flags say.
func ApplyFetchLimits(c *cli.Command, o *fetch.Options) error {
	if c.IsSet("time-limit") {
		if o.Limits.TimeLimit = c.Duration("time-limit"); o.Limits.TimeLimit < 0 {
			return Usagef("-time-limit: %v is negative", o.Limits.TimeLimit)
		}
	}
	if c.IsSet("min-rate") {
		if o.Limits.MinRate = c.Float64("min-rate"); !(o.Limits.MinRate >= 0) {
			return Usagef("-min-rate: %v is not a rate", o.Limits.MinRate)
		}
	}
	for flag, n := range map[string]*int{"follow-depth": &o.Following.Depth, "follow-links": &o.Following.MaxLinks, "redirects": &o.Following.MaxRedirects} {
		if c.IsSet(flag) {
			if *n = c.Int(flag); *n < 0 {
				return Usagef("-%s: %d is negative", flag, *n)
			}
		}
	}
	return nil
}
