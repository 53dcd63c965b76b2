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

// beyond says what is visited besides the list, and what of it is not.
func (b *builder) beyond(o *fetch.Options) {
	const follow = "fetcher.follow.outlinks."
	depth, links, internal := b.int(follow+"depth"), b.int(follow+"num.links"), b.bool(follow+"ignore.external")
	if depth > 0 && links > 0 {
		o.FollowDepth, o.FollowLinks, o.FollowExternal = depth, links, !internal
	}
	o.NormalizeList = b.bool("fetcher.normalize.urls")
	o.FilterList = b.bool("fetcher.filter.urls")
}

// redirects says how far redirects are followed in the fetch that meets them.
func (b *builder) redirects(o *fetch.Options) {
	o.MaxRedirects = max(b.int("http.redirect.max"), 0)
	o.SkipExceeded = b.bool("http.redirect.max.exceeded.skip")
}

// robots says whose rules hold.
func (b *builder) robots(o *Options) {
	p := &o.Crawl.Robots
	p.Aliases = b.list("http.robots.agents")
	for _, host := range b.list("http.robot.rules.allowlist") {
		p.Exempt = append(p.Exempt, strings.ToLower(host))
	}
	if p.MaxHops = b.int("http.robots.redirect.max"); p.MaxHops <= 0 {
		p.MaxHops = -1
	}
	p.Deny403 = !b.bool("http.robots.403.allow")
}
