package nutchconf

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/dedup"
	"github.com/recrawl/recrawl/crawldb/inject"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/hostdb/hoststat"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/nutch/expression"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/update"
	"github.com/recrawl/recrawl/urlfilter"
)

// generate sets the options of generate.
func (b *builder) generate(o *generate.Options) {
	o.MaxPerHost = max(b.int("generate.max.count"), 0)
	o.By = b.by("generate.count.mode", "host", "domain")
	if o.MinScore = b.float("generate.min.score"); math.IsNaN(float64(o.MinScore)) {
		o.MinScore = float32(math.Inf(-1)) // off
	}
	switch n := b.int("generate.min.interval"); {
	case n > 0:
		o.MaxInterval = time.Duration(n) * time.Second
	case n != -1:
		b.note("generate.min.interval", "a bound below every interval is not supported; there is no bound")
	}
	if s := b.word("generate.restrict.status"); s != "" {
		status, err := crawldb.ParseStatus(s)
		if err != nil {
			b.fail("generate.restrict.status", "%w", err)
		}
		o.Status = status
	}
	o.Lease = b.positive("crawl.gen.delay", b.millis("crawl.gen.delay"))
	partition, err := hostdb.ParseBy(b.word("partition.url.mode"))
	if err != nil {
		b.fail("partition.url.mode", "%w", err)
	}
	o.Lists.By = partition
	o.Lists.Seed = int32(b.int("partition.url.seed"))

	// Only whether there is a host db matters, not where.
	_, hosts := b.text("generate.hostdb")
	compile := expression.Options{NutchCompat: b.compat()}
	for name, f := range map[string]*func(*hostdb.Host) (float64, error){
		"generate.max.count.expr": &o.HostLimit, "generate.fetch.delay.expr": &o.HostDelay,
	} {
		src := b.word(name)
		switch {
		case src == "":
		case !hosts:
			b.note(name, "it has no effect without generate.hostdb, as in Nutch")
		default:
			if *f, err = compile.HostNumber(src); err != nil {
				b.fail(name, "%w", err)
			}
		}
	}
	if src := b.word("generate.expr"); src != "" {
		if o.Where, err = compile.RecordFilter(src); err != nil {
			b.fail("generate.expr", "%w", err)
		}
	}
	o.NutchCompat = b.compat()
}

// update sets the options of update, of its sweep, and of what it makes of sitemaps.
func (b *builder) update(o *update.Options) {
	if o.MaxRetries = b.int("db.fetch.retry.max"); o.MaxRetries <= 0 {
		o.MaxRetries = 1 // the first failure is already too many
	}
	o.NoAdditions = !b.bool("db.update.additions.allowed")
	o.MaxInlinks = b.limit("db.update.max.inlinks")
	o.MaxInterval = b.wholeSeconds("db.fetch.interval.max")
	o.ParseFailed = b.bool("fetcher.parse") && b.bool("parser.delete.failed.parse")
	if o.VisitMeta = b.bool("http.store.responsetime"); !o.VisitMeta && b.compat() {
		b.note("http.store.responsetime", "the response time is noted anyway, as is everything that Nutch notes of a visit; under the corrected rules false means that none of it is")
	}
	o.NutchCompat = b.compat()
	const adaptive = "db.fetch.schedule.adaptive."
	o.Sitemaps = update.SitemapOptions{
		Overwrite: b.bool("sitemap.url.overwrite.existing"),
		Bounds:    schedule.Bounds{Min: b.seconds(adaptive + "min_interval"), Max: b.seconds(adaptive + "max_interval")},
	}
	o.Sweep = update.SweepOptions{
		PurgeGone:    b.bool("db.update.purge.404"),
		PurgeOrphans: b.bool("db.update.purge.orphans"),
		Normalize:    b.bool("crawldb.url.normalizers"),
		Filter:       b.bool("crawldb.url.filters"),
		Scope:        urlfilter.Scope(b.word("crawldb.url.normalizers.scope")),
		NutchCompat:  b.compat(),
	}
	if !slices.Contains(urlfilter.Scopes(), o.Sweep.Scope) {
		b.fail("crawldb.url.normalizers.scope", "unknown scope %q", o.Sweep.Scope)
	}
}

// invert sets the options of the link db.
func (b *builder) invert(o *linkdb.InvertOptions) {
	o.MaxInlinks = b.limit("linkdb.max.inlinks")
	o.IgnoreInternal = b.bool("linkdb.ignore.internal.links")
	o.KeepInternal = !o.IgnoreInternal
	o.IgnoreExternal = b.bool("linkdb.ignore.external.links")
	if b.Corrected && o.IgnoreInternal && o.IgnoreExternal {
		b.fail("linkdb.ignore.external.links", "together with linkdb.ignore.internal.links this leaves no links")
	}
	o.MaxAnchor = b.limit("linkdb.max.anchor.length")
	o.NutchCompat = b.compat()
}

// inject sets the options of inject.
func (b *builder) inject(o *inject.Options) {
	if o.Score = b.number("db.score.injected"); o.Score == 0 {
		b.note("db.score.injected", "0 is not supported; the score is 1")
	}
	o.PurgeGone = b.bool("db.update.purge.404")
	o.NutchCompat = b.compat()
}

// index sets the options of index.
func (b *builder) index(o *index.Options) {
	o.DeleteGone = index.SwitchOf(b.bool("indexer.delete"))
	o.DeleteRobotsNoIndex = index.SwitchOf(b.bool("indexer.delete.robots.noindex"))
	o.DeleteFailedParse = index.SwitchOf(b.bool("parser.delete.failed.parse"))
	o.SkipNotModified = b.bool("indexer.skip.notmodified")
	o.DeleteFiltered = b.bool("indexer.delete.skipped.by.indexingfilter")
	if once := "anchorIndexingFilter.deduplicate"; b.bool(once) == b.compat() {
		b.note(once, "not honoured: "+row(once).why())
	}
	o.NutchCompat = b.compat()
}

// hosts sets the options of host statistics.
func (b *builder) hosts(o *hoststat.Options) {
	o.By = b.queueMode() // there are no statistics by address
	if o.By == hostdb.ByIP {
		o.By = hostdb.ByHost
	}
	o.URLLimit = max(b.integer("hostdb.url.limit", 64), 0)
	o.Numbers = b.list("hostdb.numeric.fields")
	o.Texts = b.list("hostdb.string.fields")
	for _, s := range b.list("hostdb.percentiles") {
		p, err := strconv.ParseFloat(s, 64)
		if err != nil || !(p >= 0 && p <= 100) {
			b.fail("hostdb.percentiles", "%q is not a number from 0 to 100", s)
			break
		}
		o.Percentiles = append(o.Percentiles, p)
	}
	const overdue, recheck = "crawl.datum.processor.overdue.time.limit", "hostdb.recheck.interval"
	o.OverdueAfter = b.positive(overdue, b.millis(overdue))
	o.Recheck = b.positive(recheck, b.millis(recheck))
	if o.PurgeAfter = b.integer("hostdb.purge.failed.hosts.threshold", 64); o.PurgeAfter <= 0 {
		o.PurgeAfter = -1
	}
	o.Resolvers = b.count("hostdb.num.resolvers.threads")
	o.Force = b.bool("hostdb.force.check")
	o.NutchCompat = b.compat()
}

// dedup makes the options of deduplication.
func (b *builder) dedup() *dedup.Options {
	o := new(dedup.Options)
	var err error
	if o.Group, err = dedup.ParseGroup(b.word("deduplication.group.mode")); err != nil {
		b.fail("deduplication.group.mode", "%w", err)
	}
	if o.Order, err = dedup.ParseOrder(b.word("deduplication.compare.order")); err != nil {
		b.fail("deduplication.compare.order", "%w", err)
	}
	for _, c := range []dedup.Criterion{dedup.Score, dedup.FetchTime, dedup.URLLength} {
		if b.compat() && err == nil && !slices.Contains(o.Order, c) {
			b.fail("deduplication.compare.order", "%v is missing, which Nutch requires", c)
		}
	}
	o.NutchCompat = b.compat()
	return o
}

// quantiles returns the quantiles of readdb -stats.
func (b *builder) quantiles() []float64 {
	const name = "db.stats.score.quantiles"
	var all []float64
	for _, s := range b.list(name) {
		q, err := strconv.ParseFloat(s, 64)
		if err != nil || !(q >= 0 && q <= 1) {
			b.fail(name, "%q is not a number from 0 to 1", s)
			break
		}
		all = append(all, q)
	}
	return all
}
