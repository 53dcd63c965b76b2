package flags

import (
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/nutch/nutchconf"
)

// CheckNumbers refuses numbers that no crawl can have.
func CheckNumbers(c *cli.Command) error {
	for _, n := range []string{"topN", "max-per-host", "adddays", "threads", "rounds", "keep-segments"} {
		if c.Int(n) < 0 {
			return Usagef("-%s: %d is negative", n, c.Int(n))
		}
	}
	if t := c.Duration("round-time"); t < 0 {
		return Usagef("-round-time: %v is negative", t)
	}
	if n := c.Int("adddays"); n > maxDays {
		return Usagef("-adddays: %d is more than a hundred years", n)
	}
	return nil
}

// maxDays bounds -adddays; a time.Duration cannot hold much more.
const maxDays = 36525

// CrawlerOptions makes options from a configuration, if there is one, and from the flags
// that were given.
func CrawlerOptions(c *cli.Command, conf *nutchconf.Options) recrawl.Options {
	var o recrawl.Options
	if conf != nil {
		o = conf.Crawl
	}
	given := func(flag string) bool { return conf == nil || c.IsSet(flag) }
	if given("agent") {
		o.Agent = c.String("agent")
	}
	if given("topN") {
		o.Generate.TopN = c.Int("topN")
	}
	if given("max-per-host") {
		o.Generate.MaxPerHost = c.Int("max-per-host")
	}
	if given("adddays") {
		o.Generate.Ahead = time.Duration(c.Int("adddays")) * 24 * time.Hour
	}
	if given("threads") {
		o.Fetch.Threads = c.Int("threads")
	}
	if given("ignore-external") {
		o.Fetch.Links.IgnoreExternal = c.Bool("ignore-external")
	}
	if c.Bool("no-sitemaps") {
		o.Fetch.Sitemaps.NoDiscovery, o.Fetch.Sitemaps.NoFeeds = true, true
	}
	return o
}

// SetBool applies a flag that was given: it overrides a configuration.
func SetBool(c *cli.Command, flag string, o *bool) {
	if c.IsSet(flag) {
		*o = c.Bool(flag)
	}
}

// ApplyDelay sets the pause between requests to a host.
func ApplyDelay(c *cli.Command, conf *nutchconf.Options, d *time.Duration) error {
	if conf != nil && !c.IsSet("delay") {
		return nil
	}
	switch *d = c.Duration("delay"); {
	case *d < 0:
		return Usagef("-delay: %v is negative", *d)
	case *d == 0:
		*d = -1 // here 0 means none
	}
	return nil
}
