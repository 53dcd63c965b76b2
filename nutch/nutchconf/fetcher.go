package nutchconf

import (
	"strings"
	"time"

	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
)

// patience sets how long to wait for a host whose robots.txt is unavailable.
func (b *builder) patience(o *fetch.Options) {
	const visits = "http.robots.503.defer.visits."
	o.Politeness.RobotsRetries = max(b.int(visits+"retries"), 0)
	if o.Politeness.RobotsWait = b.millis(visits + "delay"); o.Politeness.RobotsWait <= 0 {
		o.Politeness.RobotsWait = 1 // at once
	}
}

// limits sets when a fetch ends early.
func (b *builder) limits(o *fetch.Options) {
	switch n := b.int("fetcher.timelimit.mins"); {
	case n > 0:
		o.Limits.TimeLimit = time.Duration(n) * time.Minute
	case n == 0 && !b.failed["fetcher.timelimit.mins"]:
		o.Limits.TimeLimit = 1 // ends at once: only visits that have started are made
	}
	const threshold = "fetcher.throughput.threshold."
	pages, retries, after := b.int(threshold+"pages"), b.int(threshold+"retries"), b.int(threshold+"check.after")
	if pages > 0 {
		o.Limits.MinRate = float64(pages)
		o.Limits.MinRateSeconds = max(retries, 1)
		if o.Limits.MinRateAfter = time.Duration(after) * time.Minute; after <= 0 {
			o.Limits.MinRateAfter = -1
		}
	}
	// Only a value that was set counts: the fetch looks further ahead than Nutch does
	// by default.
	if n := b.count("fetcher.queue.depth.multiplier"); b.set("fetcher.queue.depth.multiplier") {
		o.Limits.QueueDepth = n
	}
}

// beyond sets which pages are visited besides the list, and which of the list are not.
func (b *builder) beyond(o *fetch.Options) {
	const follow = "fetcher.follow.outlinks."
	depth, links, internal := b.int(follow+"depth"), b.int(follow+"num.links"), b.bool(follow+"ignore.external")
	if depth > 0 && links > 0 {
		o.Following.Depth, o.Following.MaxLinks, o.Following.External = depth, links, !internal
	}
	o.NormalizeList = b.bool("fetcher.normalize.urls")
	o.FilterList = b.bool("fetcher.filter.urls")
}

// redirects sets how far a fetch follows redirects itself.
func (b *builder) redirects(o *fetch.Options) {
	o.Following.MaxRedirects = max(b.int("http.redirect.max"), 0)
	o.Following.SkipExceeded = b.bool("http.redirect.max.exceeded.skip")
}

// robots sets whose robots.txt rules apply.
func (b *builder) robots(o *Options) {
	p := &o.Crawl.Robots
	p.Aliases = b.list("http.robots.agents")
	for _, host := range b.list("http.robot.rules.allowlist") {
		p.Exempt = append(p.Exempt, strings.ToLower(host))
	}
	if p.MaxRedirects = b.int("http.robots.redirect.max"); p.MaxRedirects <= 0 {
		p.MaxRedirects = -1
	}
	p.Deny403 = !b.bool("http.robots.403.allow")
}

// politeness sets the load on hosts and on the network.
func (b *builder) politeness(o *fetch.Options) {
	o.Politeness.By = b.queueMode()
	o.Politeness.ThreadsPerHost = b.count("fetcher.threads.per.queue")
	if o.Politeness.MinDelay = b.seconds("fetcher.server.min.delay"); o.Politeness.MinDelay <= 0 {
		o.Politeness.MinDelay = -1
	}
	o.Politeness.MinCrawlDelay = b.secondsLike("fetcher.min.crawl.delay", "fetcher.server.delay")
	if o.Politeness.FailureDelay = b.secondsLike("fetcher.exceptions.per.queue.delay", "fetcher.server.delay"); o.Politeness.FailureDelay <= 0 {
		o.Politeness.FailureDelay = -1
	}
	o.Politeness.MaxPause = -1
	o.Politeness.ForgetAfter = max(b.wholeSeconds("fetcher.exceptions.per.queue.clear.after"), 1)
	if kbits := b.int("fetcher.bandwidth.target"); kbits > 0 {
		o.Politeness.Limiter = &fetch.Limiter{Bytes: float64(kbits) * 1000 / 8}
	}
}

// secondsLike returns a time that defaults to that of another property.
func (b *builder) secondsLike(name, other string) time.Duration {
	if s := b.word(name); s == "${"+other+"}" || s == b.word(other) {
		return b.seconds(other)
	}
	return b.seconds(name)
}

// queueMode returns what the URLs of a queue share.
func (b *builder) queueMode() hostdb.By {
	const name = "fetcher.queue.mode"
	for _, by := range []hostdb.By{hostdb.ByHost, hostdb.ByDomain, hostdb.ByIP} {
		if strings.EqualFold(b.word(name), by.String()) {
			return by
		}
	}
	b.fail(name, "%q is not one of byHost, byDomain and byIP", b.word(name))
	return hostdb.ByHost
}
