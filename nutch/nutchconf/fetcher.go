package nutchconf

import (
	"strings"
	"time"

	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/parse/htmlparse"
)

// fetch sets the options of the fetch.
func (b *builder) fetch(o *fetch.Options) {
	o.Threads = b.count("fetcher.threads.fetch")
	o.NoContent = !b.bool("fetcher.store.content")
	o.NormalizeList = b.bool("fetcher.normalize.urls")
	o.FilterList = b.bool("fetcher.filter.urls")
	o.Unconditional = !b.bool("http.enable.if.modified.since.header")
	o.NutchCompat = b.compat()
	b.politeness(&o.Politeness)
	b.limits(&o.Limits)
	b.following(&o.Following)
	b.links(&o.Links)
	b.parsing(&o.Parsing)
	b.sitemaps(&o.Sitemaps)
}

// politeness sets the load on hosts and on the network.
func (b *builder) politeness(p *fetch.Politeness) {
	p.By = b.queueMode()
	p.ThreadsPerHost = b.count("fetcher.threads.per.queue")
	if p.Delay = b.seconds("fetcher.server.delay"); p.Delay <= 0 {
		p.Delay = -1
	}
	if p.MinDelay = b.seconds("fetcher.server.min.delay"); p.MinDelay <= 0 {
		p.MinDelay = -1
	}
	p.MinCrawlDelay = b.secondsLike("fetcher.min.crawl.delay", "fetcher.server.delay")
	p.MaxCrawlDelay = never(b.wholeSeconds("fetcher.max.crawl.delay"))
	if p.FailureDelay = b.secondsLike("fetcher.exceptions.per.queue.delay", "fetcher.server.delay"); p.FailureDelay <= 0 {
		p.FailureDelay = -1
	}
	switch p.MaxFailures = b.int("fetcher.max.exceptions.per.queue"); {
	case p.MaxFailures < 0:
		p.MaxFailures = -1
	case p.MaxFailures == 0:
		p.MaxFailures = 1
	}
	p.MaxPause = -1
	p.ForgetAfter = max(b.wholeSeconds("fetcher.exceptions.per.queue.clear.after"), 1)
	if kbits := b.int("fetcher.bandwidth.target"); kbits > 0 {
		p.Limiter = &fetch.Limiter{Bytes: float64(kbits) * 1000 / 8}
	}
	const unavailable = "http.robots.503.defer.visits."
	p.RobotsRetries = max(b.int(unavailable+"retries"), 0)
	if p.RobotsWait = b.millis(unavailable + "delay"); p.RobotsWait <= 0 {
		p.RobotsWait = 1 // at once
	}
}

// limits sets when a fetch ends early.
func (b *builder) limits(l *fetch.Limits) {
	switch n := b.int("fetcher.timelimit.mins"); {
	case n > 0:
		l.TimeLimit = time.Duration(n) * time.Minute
	case n == 0 && !b.failed["fetcher.timelimit.mins"]:
		l.TimeLimit = 1 // ends at once: only visits that have started are made
	}
	const threshold = "fetcher.throughput.threshold."
	pages, retries, after := b.int(threshold+"pages"), b.int(threshold+"retries"), b.int(threshold+"check.after")
	if pages > 0 {
		l.MinRate = float64(pages)
		l.MinRateSeconds = max(retries, 1)
		if l.MinRateAfter = time.Duration(after) * time.Minute; after <= 0 {
			l.MinRateAfter = -1
		}
	}
	// Only a value that was set counts: the fetch looks further ahead than Nutch does
	// by default.
	if n := b.count("fetcher.queue.depth.multiplier"); b.set("fetcher.queue.depth.multiplier") {
		l.QueueDepth = n
	}
}

// following sets which links and redirects the fetch follows itself.
func (b *builder) following(f *fetch.Following) {
	const follow = "fetcher.follow.outlinks."
	depth, links, internal := b.int(follow+"depth"), b.int(follow+"num.links"), b.bool(follow+"ignore.external")
	if depth > 0 && links > 0 {
		f.Depth, f.MaxLinks, f.External = depth, links, !internal
	}
	f.MaxRedirects = max(b.int("http.redirect.max"), 0)
	f.SkipExceeded = b.bool("http.redirect.max.exceeded.skip")
	f.ExemptRedirects = !b.bool("db.ignore.also.redirects")
}

// links sets which links of a page are kept.
func (b *builder) links(l *fetch.Links) {
	l.IgnoreExternal = b.bool("db.ignore.external.links")
	l.IgnoreInternal = b.bool("db.ignore.internal.links")
	l.By = b.by("db.ignore.external.links.mode", "byHost", "byDomain")
	if l.MaxPerPage = b.int("db.max.outlinks.per.page"); l.MaxPerPage == 0 {
		b.note("db.max.outlinks.per.page", "0, which keeps no links, is not supported: all are kept; db.update.additions.allowed adds no page")
	}
	l.MaxLength = b.limit("db.max.outlink.length")
	l.NoFilter = !b.bool("parse.filter.urls")
	l.NoNormalize = !b.bool("parse.normalize.urls")
}

// parsing sets how pages are parsed; parser makes the parser.
func (b *builder) parsing(p *fetch.Parsing) {
	if p.Timeout = b.wholeSeconds("parser.timeout"); p.Timeout < 0 {
		p.Timeout = -1
	}
	p.SignUnparsed = b.bool("fetcher.signature")
	p.SkipTruncated = b.bool("parser.skip.truncated")
	p.Meta = b.list("db.parsemeta.to.crawldb")
}

// sitemaps sets how sitemaps are read.
func (b *builder) sitemaps(s *fetch.SitemapOptions) {
	*s = fetch.SitemapOptions{
		NoDiscovery: true, NoFeeds: true, // Nutch's rounds read no sitemaps
		NoStrict:     !b.bool("sitemap.strict.parsing"),
		NoFilter:     !b.bool("sitemap.url.filter"),
		NoNormalize:  !b.bool("sitemap.url.normalize"),
		MaxRedirects: b.int("sitemap.redir.max"),
		MaxBytes:     int64(b.limit("sitemap.size.max")),
	}
	if s.MaxRedirects <= 0 {
		s.MaxRedirects = -1
	}
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

// parser makes the parser of pages. Under NutchCompat it finds the links that Nutch
// finds, and leaves limits to the fetch.
func (b *builder) parser(plugins *plugins) parse.Parser {
	p := &htmlparse.Parser{
		Agent:       b.word("http.agent.name"),
		NutchCompat: b.compat(),
		FormAction:  b.bool("parser.html.form.use_action"),
		IgnoreTags:  b.list("parser.html.outlinks.ignore_tags"),
	}
	b.compatOnly("parser.html.form.use_action", !p.FormAction)
	b.compatOnly("parser.html.outlinks.ignore_tags", len(p.IgnoreTags) == 0)
	if b.compat() {
		p.MaxOutlinks, p.MaxURL, p.MaxAnchor = -1, -1, -1
	}
	if p.Timeout = b.wholeSeconds("parser.timeout"); p.Timeout < 0 {
		p.Timeout = -1
	}
	mux := htmlparse.Mux(p)
	if plugins.has("parse-tika") {
		b.note("plugin.includes", "parse-tika stands for HTML and plain text only: pages in other formats, such as PDF, are fetched but not parsed; parse.Mux takes parsers")
	} else {
		delete(mux, "text/plain") // parse-html does not read it
		if !plugins.has("parse-html") {
			b.note("plugin.includes", "neither parse-html nor parse-tika is active: no page is parsed")
			mux = parse.Mux{}
		}
	}
	return mux
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
