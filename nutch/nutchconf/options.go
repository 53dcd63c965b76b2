package nutchconf

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/dedup"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/hostdb/hoststat"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/inject"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/nutch/expression"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/parse/htmlparse"
	"github.com/recrawl/recrawl/protocol/fileproto"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/signature"
	"github.com/recrawl/recrawl/update"
	"github.com/recrawl/recrawl/urlfilter"
)

// Options are the options that a Nutch configuration asks for.
type Options struct {
	// Crawl are the options of a crawler, whose rounds do what those of Nutch's
	// bin/crawl do. Protocol is nil, so that the crawler makes requests as
	// Crawl.HTTP says.
	Crawl recrawl.Options
	// Inject are for Crawler.InjectSeeds, Index for index.Run, Hosts for
	// hoststat.Run, and Dedup for dedup.Run: Crawl.Dedup points to a copy.
	Inject inject.Options
	Index  index.Options
	Hosts  hoststat.Options
	Dedup  dedup.Options
	// Sitemaps are for Crawler.ReadSitemaps: what follows when robots.txt lists none.
	Sitemaps recrawl.SitemapOptions
	// Quantiles are what the statistics of a crawl db list of scores. (Nutch:
	// db.stats.score.quantiles.)
	Quantiles []float64
	// File is for a fileproto.Client, should files be crawled. Nutch reads any
	// file of the machine then; here the caller says which directory.
	File fileproto.Options
	// Notes are the properties that were set and have no effect, or another than
	// they have in Nutch, in the order in which they were set.
	Notes []Note
	// Unread are the files in the directory that Nutch reads without a property that names
	// them, and that have no effect: parse-plugins.xml and index-writers.xml. Nutch ships
	// both, so a report of them does not mean that they were edited.
	Unread []Note
}

// Options maps the configuration. The files that it names are read; those of
// filters, normalizers and exemptions a crawler reads again when they have changed.
//
// An error lists all mistakes, one a line; each names the file, the line and the property
// or the rule.
func (c *Conf) Options() (*Options, error) {
	b := newBuilder(c)
	o := b.options()
	if err := errors.Join(b.errs...); err != nil {
		return nil, err
	}
	return o, nil
}

func (b *builder) options() *Options {
	o := &Options{}
	plugins := b.plugins()
	b.agent(o)
	b.robots(o)
	b.http(&o.Crawl.HTTP)
	b.logins(plugins, &o.Crawl.HTTP)
	b.file(o)
	o.Crawl.Parser = b.parser(plugins)
	o.Crawl.Schedule = b.schedule()
	o.Crawl.Scoring = b.scoring(plugins)
	o.Crawl.Signature = b.signature()
	o.Crawl.Rules = b.rules(plugins)
	b.fetch(&o.Crawl.Fetch)
	if e := b.exempt(plugins); e != nil {
		o.Crawl.Fetch.Links.Exempt = e.Exempt
		o.Crawl.Reload = append(o.Crawl.Reload, e)
	}
	o.Crawl.ParseLater = !b.bool("fetcher.parse")
	b.generate(&o.Crawl.Generate)
	o.Crawl.Run.RoundTime = -1 // generate.max.count limits what a round takes of a host; if it does not, nothing does
	b.update(&o.Crawl.Update)
	o.Crawl.Update.Sweep.Orphans = plugins.has("scoring-orphan") // as in every updatedb
	b.invert(&o.Crawl.Invert)
	b.inject(&o.Inject)
	b.index(&o.Index)
	o.Index.Scoring = o.Crawl.Scoring
	b.hosts(&o.Hosts)
	o.Crawl.Dedup = b.dedup()
	o.Dedup = *o.Crawl.Dedup
	o.Sitemaps.Default = b.bool("sitemap.url.default.sitemap.xml")
	o.Quantiles = b.quantiles()
	if b.bool("hostdb.url.filter") || b.bool("hostdb.url.normalize") {
		o.Hosts.Rules = b.part(o.Crawl.Rules, b.bool("hostdb.url.normalize"), b.bool("hostdb.url.filter"))
	}
	b.rest()
	o.Notes = b.notes
	o.Unread = b.unread()
	return o
}

// unread returns notes about the files that Nutch reads although no property names them.
func (b *builder) unread() (notes []Note) {
	for _, name := range []string{"parse.plugin.file", "indexer.indexwriters.file"} {
		p := row(name)
		if path := b.path(p.Default); !b.set(name) && exists(path) {
			notes = append(notes, Note{Property: name, Value: p.Default, File: path, Text: "this file is not read: " + p.why()})
		}
	}
	return notes
}

// part returns rules that only normalize, or only filter.
func (b *builder) part(r *urlfilter.Rules, normalize, filter bool) *urlfilter.Rules {
	some := *r
	if !normalize {
		some.Normalizers = nil
	}
	if !filter {
		some.Filters = nil
	}
	return &some
}

// rest notes the properties that no option was made of.
func (b *builder) rest() {
	for _, name := range b.names {
		if b.asked[name] || !b.set(name) && b.values[name].file == "" {
			continue
		}
		v := b.values[name]
		p := row(name)
		switch {
		case v.text == "":
			// For Hadoop it is not set.
		case p == nil && !b.variable(name):
			b.unknown(name)
		case p == nil:
		case strings.Contains(p.Name, "<") && p.Support != NotHonoured:
			n := b.noteOf(name, "unknown: Nutch has no such scope")
			n.Unknown = true
			b.notes = append(b.notes, n)
		case p.Support == NotHonoured && !p.only(v.text):
			text := "not honoured: " + p.why()
			if p.Flag != "" {
				text += "; the flag is " + p.Flag
			}
			b.note(name, text)
		}
	}
	slices.SortStableFunc(b.notes, func(x, y Note) int {
		return cmp.Compare(slices.Index(b.names, x.Property), slices.Index(b.names, y.Property))
	})
}

// variable reports whether the value of another property refers to this one.
func (b *builder) variable(name string) bool {
	for of, v := range b.values {
		if of != name && strings.Contains(v.text, "${"+name+"}") {
			return true
		}
	}
	return false
}

// unknown notes a property that Nutch does not have.
func (b *builder) unknown(name string) {
	n := b.noteOf(name, "")
	for _, f := range foreign {
		if strings.HasPrefix(name, f.prefix) {
			n.Text = "not honoured: " + f.why
			b.notes = append(b.notes, n)
			return
		}
	}
	n.Unknown, n.Text = true, "unknown: Nutch has no such property"
	if now, ok := renamed[name]; ok {
		n.Text = "unknown: it is now called " + now
	} else if like := nearest(name); like != "" {
		n.Text += "; did you mean " + like + "?"
	}
	b.notes = append(b.notes, n)
}

// compat reports whether policies should decide as Nutch does.
func (b *builder) compat() bool { return !b.Corrected }

// compatOnly notes that a property has an effect only under Nutch's rules, unless its
// value is what the corrected rules do anyway.
func (b *builder) compatOnly(name string, agree bool) {
	if b.Corrected && !agree {
		b.note(name, "not honoured by the corrected rules: "+row(name).why())
	}
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

// schedule makes the schedule.
func (b *builder) schedule() schedule.FetchSchedule {
	base := schedule.Default{
		DefaultInterval: b.positive("db.fetch.interval.default", b.wholeSeconds("db.fetch.interval.default")),
		MaxInterval:     b.positive("db.fetch.interval.max", b.wholeSeconds("db.fetch.interval.max")),
		NutchCompat:     b.compat(),
	}
	const adaptive = "db.fetch.schedule.adaptive."
	a := schedule.Adaptive{
		Default:     base,
		IncRate:     b.share(adaptive + "inc_rate"),
		DecRate:     b.share(adaptive + "dec_rate"),
		MinInterval: b.seconds(adaptive + "min_interval"),
		AdaptiveMax: b.positive(adaptive+"max_interval", b.seconds(adaptive+"max_interval")),
		SyncRate:    b.share(adaptive + "sync_delta_rate"),
	}
	if a.MinInterval <= 0 {
		a.MinInterval = -1 // none: zero means a minute
	}
	switch {
	case !b.bool(adaptive + "sync_delta"):
		a.SyncRate = -1
	case a.SyncRate < 0:
		// A rate of zero moves no visit, but in Nutch the age of a page still
		// replaces its interval.
		a.SyncRate = math.SmallestNonzeroFloat64
	}
	if most := min(a.AdaptiveMax, a.MaxInterval); b.Corrected && most > 0 && a.MinInterval > most {
		b.fail(adaptive+"min_interval", "%v is longer than the longest interval, %v", a.MinInterval, most)
	}
	name := "db.fetch.schedule.class"
	mimeFile := b.word("db.fetch.schedule.mime.file")
	switch s := b.word(name); class(s) {
	case "DefaultFetchSchedule":
		return &base
	case "AdaptiveFetchSchedule", "MimeAdaptiveFetchSchedule":
		// The name of the file is fixed, and the file is optional.
		if path := b.path("adaptive-host-specific-intervals.txt"); exists(path) {
			a.HostIntervals = readFile(b, name, path, schedule.ParseHostIntervals)
		}
		if class(s) == "AdaptiveFetchSchedule" {
			return &a
		}
		return &schedule.MimeAdaptive{Adaptive: a, Types: readFile(b, "db.fetch.schedule.mime.file", b.path(mimeFile), schedule.ParseMimeRates)}
	default:
		b.fail(name, "unknown schedule %s; known are DefaultFetchSchedule, AdaptiveFetchSchedule and MimeAdaptiveFetchSchedule", s)
		return &base
	}
}

// scoring makes the chain of scoring filters.
func (b *builder) scoring(plugins *plugins) scoring.Filter {
	made := map[string]scoring.Filter{
		"scoring-opic": &scoring.OPIC{
			InternalFactor: float64(b.factor("db.score.link.internal")),
			ExternalFactor: float64(b.factor("db.score.link.external")),
			CountFiltered:  b.bool("db.score.count.filtered"),
			ScorePower:     float64(b.factor("indexer.score.power")),
			NutchCompat:    b.compat(),
		},
		"scoring-depth": b.depth(plugins),
		"scoring-link":  &scoring.LinkAnalysis{Normalize: b.factor("link.analyze.normalize.score"), NutchCompat: b.compat()},
		"scoring-metadata": &scoring.Metadata{
			DB: b.list("scoring.db.md"), Content: b.list("scoring.content.md"), Parse: b.list("scoring.parse.md"),
			NutchCompat: b.compat(),
		},
		"scoring-orphan": &scoring.Orphan{
			GoneAfter:   never(b.wholeSeconds("scoring.orphan.mark.gone.after")),
			OrphanAfter: never(b.wholeSeconds("scoring.orphan.mark.orphan.after")),
			NutchCompat: b.compat(),
		},
		"urlmeta": b.urlmeta(),
	}
	var chain scoring.Chain
	for _, id := range b.ordered("scoring.filter.order", scoringClasses[:], plugins, true) {
		chain = append(chain, made[id])
	}
	if len(chain) == 1 {
		return chain[0]
	}
	return chain
}

func (b *builder) urlmeta() scoring.Filter {
	m := scoring.URLMeta(b.list("urlmeta.tags")...)
	m.NutchCompat = b.compat()
	return &m
}

func (b *builder) depth(plugins *plugins) scoring.Filter {
	d := &scoring.Depth{Max: b.int("scoring.depth.max"), OverrideMax: b.int("scoring.depth.max.override"), NutchCompat: b.compat()}
	if d.OverrideMax == 0 {
		b.note("scoring.depth.max.override", "0 is not supported; the value is 10")
	}
	d.Override = b.pattern("scoring.depth.override.pattern")
	d.BreadthFirst = !plugins.has("scoring-opic") && !plugins.has("scoring-link")
	return d
}

// signature makes the signature.
func (b *builder) signature() signature.Signature {
	const profile = "db.signature.text_profile."
	t := signature.TextProfile{
		MinTokenLen: b.int(profile + "min_token_len"),
		QuantRate:   b.number(profile + "quant_rate"),
		Unsorted:    !b.bool(profile + "sec_sort_lex"),
		NutchCompat: b.compat(),
	}
	if t.MinTokenLen == 0 {
		t.MinTokenLen = -1
	}
	if t.QuantRate == 0 {
		t.QuantRate = -1
	}
	name := "db.signature.class"
	switch s := b.word(name); class(s) {
	case "MD5Signature":
		return signature.MD5{}
	case "TextMD5Signature":
		return signature.TextMD5{NutchCompat: b.compat()}
	case "TextProfileSignature":
		return t
	default:
		b.fail(name, "unknown signature %s; known are MD5Signature, TextMD5Signature and TextProfileSignature", s)
		return signature.MD5{}
	}
}

func (b *builder) fetch(o *fetch.Options) {
	o.Threads = b.count("fetcher.threads.fetch")
	if o.Politeness.Delay = b.seconds("fetcher.server.delay"); o.Politeness.Delay <= 0 {
		o.Politeness.Delay = -1
	}
	o.Politeness.MaxCrawlDelay = never(b.wholeSeconds("fetcher.max.crawl.delay"))
	switch o.Politeness.MaxFailures = b.int("fetcher.max.exceptions.per.queue"); {
	case o.Politeness.MaxFailures < 0:
		o.Politeness.MaxFailures = -1
	case o.Politeness.MaxFailures == 0:
		o.Politeness.MaxFailures = 1
	}
	if o.Parsing.Timeout = b.wholeSeconds("parser.timeout"); o.Parsing.Timeout < 0 {
		o.Parsing.Timeout = -1
	}
	b.politeness(o)
	o.NoContent = !b.bool("fetcher.store.content")
	o.Parsing.SignUnparsed = b.bool("fetcher.signature")
	b.limits(o)
	b.patience(o)
	b.beyond(o)
	b.redirects(o)

	o.Links.IgnoreExternal = b.bool("db.ignore.external.links")
	o.Links.IgnoreInternal = b.bool("db.ignore.internal.links")
	o.Following.ExemptRedirects = !b.bool("db.ignore.also.redirects")
	o.Links.By = b.by("db.ignore.external.links.mode", "byHost", "byDomain")
	if o.Links.MaxPerPage = b.int("db.max.outlinks.per.page"); o.Links.MaxPerPage == 0 {
		b.note("db.max.outlinks.per.page", "0, which keeps no links, is not supported: all are kept; db.update.additions.allowed adds no page")
	}
	o.Links.MaxLength = b.limit("db.max.outlink.length")
	o.Links.NoFilter = !b.bool("parse.filter.urls")
	o.Links.NoNormalize = !b.bool("parse.normalize.urls")
	o.Parsing.SkipTruncated = b.bool("parser.skip.truncated")
	o.Parsing.Meta = b.list("db.parsemeta.to.crawldb")
	o.Unconditional = !b.bool("http.enable.if.modified.since.header")
	o.NutchCompat = b.compat()
	o.Sitemaps = fetch.SitemapOptions{
		NoDiscovery: true, NoFeeds: true, // Nutch's rounds read no sitemaps
		NoStrict:     !b.bool("sitemap.strict.parsing"),
		NoFilter:     !b.bool("sitemap.url.filter"),
		NoNormalize:  !b.bool("sitemap.url.normalize"),
		MaxRedirects: b.int("sitemap.redir.max"),
		MaxBytes:     int64(b.limit("sitemap.size.max")),
	}
	if o.Sitemaps.MaxRedirects <= 0 {
		o.Sitemaps.MaxRedirects = -1
	}
}

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

func (b *builder) inject(o *inject.Options) {
	if o.Score = b.number("db.score.injected"); o.Score == 0 {
		b.note("db.score.injected", "0 is not supported; the score is 1")
	}
	o.PurgeGone = b.bool("db.update.purge.404")
	o.NutchCompat = b.compat()
}

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
