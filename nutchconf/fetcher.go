package nutchconf

import (
	"strings"
	"time"

	"github.com/recrawl/recrawl/fetch"
)

// limits say when a fetch ends before its list does.
func (b *builder) limits(o *fetch.Options) {
	switch n := b.int("fetcher.timelimit.mins"); {
	case n > 0:
		o.TimeLimit = time.Duration(n) * time.Minute
	case n == 0 && !b.failed["fetcher.timelimit.mins"]:
		o.TimeLimit = 1 // only what is under way in the first moment
	}
	const threshold = "fetcher.throughput.threshold."
	pages, retries, after := b.int(threshold+"pages"), b.int(threshold+"retries"), b.int(threshold+"check.after")
	if pages > 0 {
		o.MinRate = float64(pages)
		o.SlowSeconds = max(retries, 1)
		if o.SlowAfter = time.Duration(after) * time.Minute; after <= 0 {
			o.SlowAfter = -1
		}
	}
	// The default of Nutch is what a file has that only repeats it; the fetch here
	// looks further ahead.
	if n := b.count("fetcher.queue.depth.multiplier"); b.set("fetcher.queue.depth.multiplier") {
		o.QueueDepth = n
	}
}

// robots says whose rules hold.
func (b *builder) robots(o *Options) {
	p := &o.Crawl.Robots
	p.Aliases = b.list("http.robots.agents")
	for _, host := range b.list("http.robot.rules.allowlist") {
		p.Exempt = append(p.Exempt, strings.ToLower(host))
	}
	p.Deny403 = !b.bool("http.robots.403.allow")
}
