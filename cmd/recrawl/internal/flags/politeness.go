package flags

import (
	"os"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
)

// Politeness returns the flags that limit the load on hosts and the network, beside
// -delay and -threads.
func Politeness() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "queue-by", Category: politenessGroup, Usage: "pause between requests to the same `WHAT`: host, domain or ip (default host)"},
		&cli.IntFlag{Name: "threads-per-host", Category: politenessGroup, Usage: "make at most `N` requests to a host at once (0: 1); only one if it has a Crawl-delay or has failed"},
		&cli.DurationFlag{Name: "min-delay", Category: politenessGroup, Usage: "with -threads-per-host above 1: pause for `TIME`, instead of -delay, after the start and after the end of a request to a host; 0 for none"},
		&cli.Float64Flag{Name: "max-rate", Category: politenessGroup, Usage: "start at most `N` requests a second, over all hosts (0: no limit)"},
		&cli.StringFlag{Name: "max-bandwidth", Category: politenessGroup, Usage: "read at most `BYTES` of pages a second on average, such as 500K or 10M (0: no limit)"},
		&cli.StringSliceFlag{Name: "purpose", Category: politenessGroup, Usage: "what the crawl is for, such as `PURPOSE` search or train-ai: leave out pages that robots.txt reserves for other uses, in Content-Usage or Content-Signal"},
		&cli.StringFlag{Name: "host-rules", Category: politenessGroup, Usage: "read from `FILE` how many requests and bytes a day each host may get, at which times, and which hosts are closed: see recrawl crawl --help-all"},
	}
}

// HostRulesFormat explains the format of the file that -host-rules names.
const HostRulesFormat = `A -host-rules file has one rule a line. It starts with a host, a domain with a
leading dot for the domain and all below it, or * for all others. The limits follow:
requests=N and bytes=N a day (UTC), window=HH:MM-HH:MM for the hours in which the
host may be visited, which may be repeated, and zone=NAME for their time zone; or
closed, for a host to leave alone. Pages that must wait are due when their host may
be visited again, those of a closed host a day later.

  example.com   requests=1000 bytes=200M
  .example.org  window=22:00-06:00 zone=Europe/Berlin
  paused.test   closed`

// ApplyPoliteness sets what those flags say; ApplyHostRules is for -host-rules.
func ApplyPoliteness(c *cli.Command, o *fetch.Options) (err error) {
	if c.IsSet("queue-by") {
		if o.Politeness.By, err = hostdb.ParseBy(c.String("queue-by")); err != nil {
			return Usagef("-queue-by: %q is not one of host, domain and ip", c.String("queue-by"))
		}
	}
	if c.IsSet("threads-per-host") {
		if o.Politeness.ThreadsPerHost = c.Int("threads-per-host"); o.Politeness.ThreadsPerHost < 0 {
			return Usagef("-threads-per-host: %d is negative", o.Politeness.ThreadsPerHost)
		}
	}
	if c.IsSet("min-delay") {
		switch o.Politeness.MinDelay = c.Duration("min-delay"); {
		case o.Politeness.MinDelay < 0:
			return Usagef("-min-delay: %v is negative", o.Politeness.MinDelay)
		case o.Politeness.MinDelay == 0:
			o.Politeness.MinDelay = -1 // here 0 means none
		}
	}
	var requests, bytes float64
	if o.Politeness.Limiter != nil {
		requests, bytes = o.Politeness.Limiter.Requests, o.Politeness.Limiter.Bytes
	}
	if c.IsSet("max-rate") {
		if requests = c.Float64("max-rate"); !(requests >= 0) {
			return Usagef("-max-rate: %v is not a rate", requests)
		}
	}
	if c.IsSet("max-bandwidth") {
		bytes = 0
		if s := c.String("max-bandwidth"); s != "0" {
			n, err := fetch.ParseBytes(s)
			if err != nil {
				return Usagef("-max-bandwidth: %v", err)
			}
			bytes = float64(n)
		}
	}
	o.Politeness.Limiter = nil
	if requests > 0 || bytes > 0 {
		o.Politeness.Limiter = &fetch.Limiter{Requests: requests, Bytes: bytes}
	}
	return nil
}

// ApplyHostRules reads the file of -host-rules.
func ApplyHostRules(c *cli.Command, o *fetch.Options) error {
	if !c.IsSet("host-rules") {
		return nil
	}
	file, err := os.Open(c.String("host-rules"))
	if err != nil {
		return Usagef("-host-rules: %v", err)
	}
	defer file.Close()
	rules, err := fetch.ParseHostRules(file)
	if err != nil {
		return Usagef("-host-rules: %v", err)
	}
	o.Politeness.HostRule = rules.Rule
	return nil
}
