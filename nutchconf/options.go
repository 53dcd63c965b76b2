package nutchconf

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/inject"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/parse/htmlparse"
	"github.com/recrawl/recrawl/protocol/fileproto"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/signature"
	"github.com/recrawl/recrawl/update"
)

// Options are what a configuration of Nutch comes to.
type Options struct {
	// Crawl are the options of a crawler. Its Protocol is nil, so that the crawler
	// makes requests as Crawl.HTTP says.
	Crawl recrawl.Options
	// Inject are for Crawler.InjectSeeds, Index for index.Run.
	Inject inject.Options
	Index  index.Options
	// File is for a fileproto.Client, should files be crawled. Nutch reads any
	// file of the machine then; here the caller says which directory.
	File fileproto.Options
	// ParseLater says that the fetch stage is to leave the parsing to the parse
	// stage: Crawler.FetchOnly and Parse instead of Fetch. A round does both at
	// once in any case. (Nutch: fetcher.parse, the other way round.)
	ParseLater bool
	// Notes are the properties that were set and have no effect, or another than
	// they have in Nutch, in the order in which they were set.
	Notes []Note
}

// Options maps the configuration. The rule files that it names are read; a
// crawler reads them again when they have changed.
//
// An error is about every mistake there is, one a line; each names the file, the
// line and the property or the rule.
func (c *Conf) Options() (*Options, error) {
	b := &builder{Conf: c, asked: map[string]bool{}}
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
	b.http(&o.Crawl.HTTP)
	b.file(o)
	o.Crawl.Parser = b.parser(o.Crawl.Agent, plugins)
	o.Crawl.Schedule = b.schedule()
	o.Crawl.Scoring = b.scoring(plugins)
	o.Crawl.Signature = b.signature()
	o.Crawl.Rules = b.rules(plugins)
	b.fetch(&o.Crawl.Fetch)
	o.ParseLater = !b.bool("fetcher.parse")
	b.generate(&o.Crawl.Generate)
	b.update(&o.Crawl.Update)
	b.invert(&o.Crawl.Invert)
	b.inject(&o.Inject)
	b.index(&o.Index)
	b.rest()
	o.Notes = b.notes
	return o
}

// rest notes the properties that nobody asked for.
func (b *builder) rest() {
	for _, name := range b.names {
		if b.asked[name] || !b.set(name) && b.values[name].file == "" {
			continue
		}
		v := b.values[name]
		p := row(name)
		switch {
		case v.text == "":
			// Not set, for Hadoop.
		case p == nil:
			b.unknown(name)
		case p.Support == NotHonoured && (v.text != p.Only || p.Only == ""):
			b.note(name, "not honoured: "+p.why())
		}
	}
	slices.SortStableFunc(b.notes, func(x, y Note) int {
		return cmp.Compare(slices.Index(b.names, x.Property), slices.Index(b.names, y.Property))
	})
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
		n.Text = "unknown: its name is " + now + " now"
	} else if like := nearest(name); like != "" {
		n.Text += "; is " + like + " meant?"
	}
	b.notes = append(b.notes, n)
}

// compat says whether policies are to decide as Nutch's do.
func (b *builder) compat() bool { return !b.Corrected }

// agent says who asks.
func (b *builder) agent(o *Options) {
	h := &o.Crawl.HTTP
	h.Agent = b.word("http.agent.name")
	o.Crawl.Agent = strings.Map(func(r rune) rune {
		if 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return -1
	}, h.Agent)
	if o.Crawl.Agent != h.Agent {
		b.note("http.agent.name", "the name is no product token, so that no robots.txt can name it; rules for \""+o.Crawl.Agent+"\" are obeyed instead")
	}
	h.Version = b.word("http.agent.version")
	var about []string
	for _, name := range []string{"http.agent.description", "http.agent.url", "http.agent.email"} {
		if text, ok := b.text(name); ok {
			about = append(about, text)
		}
	}
	if h.Agent == "" {
		return // another one may be given
	}
	// name/version (description; url; email)
	h.UserAgent = h.Agent
	if h.Version != "" {
		h.UserAgent += "/" + h.Version
	}
	if len(about) > 0 {
		h.UserAgent += " (" + strings.Join(about, "; ") + ")"
	}
}

// http says how requests are made.
func (b *builder) http(h *httpproto.Options) {
	timeout := b.millis("http.timeout")
	if timeout <= 0 {
		timeout = -1
	}
	h.ConnectTimeout, h.TLSTimeout, h.HeaderTimeout = timeout, timeout, timeout
	if h.TimeLimit = b.wholeSeconds("http.time.limit"); h.TimeLimit <= 0 {
		h.TimeLimit = -1
	}
	h.MaxBytes = int64(b.limit("http.content.limit"))
	h.Accept = b.header("http.accept")
	h.AcceptLanguage = b.header("http.accept.language")
	h.InsecureSkipVerify = !b.bool("http.tls.certificates.check")
}

// header returns the value of a request header.
func (b *builder) header(name string) string {
	s := b.word(name)
	if s == "" && b.set(name) {
		b.note(name, "a header cannot be left out: the default of "+field(name)+" holds")
	}
	return s
}

func (b *builder) file(o *Options) {
	o.File.MaxBytes = int64(b.limit("file.content.limit"))
}

// parser makes the parser of the pages.
func (b *builder) parser(agent string, plugins *plugins) parse.Parser {
	p := &htmlparse.Parser{Agent: agent}
	if p.Timeout = b.wholeSeconds("parser.timeout"); p.Timeout < 0 {
		p.Timeout = -1
	}
	if p.MaxURL = b.int("db.max.outlink.length"); p.MaxURL < 0 {
		p.MaxURL = -1
	}
	mux := htmlparse.Mux(p)
	if !plugins.has("parse-tika") {
		delete(mux, "text/plain") // which parse-html does not read
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
		AdaptiveMax: b.seconds(adaptive + "max_interval"),
		SyncRate:    b.share(adaptive + "sync_delta_rate"),
	}
	if !b.bool(adaptive + "sync_delta") {
		a.SyncRate = -1
	}
	name := "db.fetch.schedule.class"
	mimeFile := b.word("db.fetch.schedule.mime.file")
	switch s := b.word(name); class(s) {
	case "DefaultFetchSchedule":
		return &base
	case "AdaptiveFetchSchedule", "MimeAdaptiveFetchSchedule":
		// The name of the file is fixed, and it need not be there.
		if path := b.path("adaptive-host-specific-intervals.txt"); exists(path) {
			a.HostIntervals = readFile(b, name, path, schedule.ParseHostIntervals)
		}
		if class(s) == "AdaptiveFetchSchedule" {
			return &a
		}
		return &schedule.MimeAdaptive{Adaptive: a, Types: readFile(b, "db.fetch.schedule.mime.file", b.path(mimeFile), schedule.ParseMimeRates)}
	default:
		b.fail(name, "there is no schedule %s: DefaultFetchSchedule, AdaptiveFetchSchedule and MimeAdaptiveFetchSchedule are there", s)
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
		b.fail(name, "there is no signature %s: MD5Signature, TextMD5Signature and TextProfileSignature are there", s)
		return signature.MD5{}
	}
}

func (b *builder) fetch(o *fetch.Options) {
	if o.Threads = b.int("fetcher.threads.fetch"); o.Threads <= 0 {
		b.fail("fetcher.threads.fetch", "%d is not above zero", o.Threads)
	}
	if o.Delay = b.seconds("fetcher.server.delay"); o.Delay <= 0 {
		o.Delay = -1
	}
	o.MaxCrawlDelay = never(b.wholeSeconds("fetcher.max.crawl.delay"))
	switch o.MaxFailures = b.int("fetcher.max.exceptions.per.queue"); {
	case o.MaxFailures < 0:
		o.MaxFailures = -1
	case o.MaxFailures == 0:
		o.MaxFailures = 1
	}
	o.By = b.by("fetcher.queue.mode", "byHost", "byDomain")
	o.NoContent = !b.bool("fetcher.store.content")

	o.IgnoreExternal = b.bool("db.ignore.external.links")
	o.IgnoreInternal = b.bool("db.ignore.internal.links")
	o.IgnoreNoRedirects = !b.bool("db.ignore.also.redirects")
	o.LinksBy = b.by("db.ignore.external.links.mode", "byHost", "byDomain")
	if o.MaxOutlinks = b.int("db.max.outlinks.per.page"); o.MaxOutlinks == 0 {
		b.note("db.max.outlinks.per.page", "0, which keeps no link, cannot be had: all are kept; db.update.additions.allowed adds no page")
	}
	o.MaxOutlinkLength = b.limit("db.max.outlink.length")
	o.NoFilter = !b.bool("parse.filter.urls")
	o.NoNormalize = !b.bool("parse.normalize.urls")
	o.SkipTruncated = b.bool("parser.skip.truncated")
	o.NutchCompat = b.compat()
}

func (b *builder) generate(o *generate.Options) {
	o.MaxPerHost = max(b.int("generate.max.count"), 0)
	o.By = b.by("generate.count.mode", "host", "domain")
	if o.MinScore = b.float("generate.min.score"); math.IsNaN(float64(o.MinScore)) {
		o.MinScore = 0
	}
	o.Lease = b.positive("crawl.gen.delay", b.millis("crawl.gen.delay"))
}

func (b *builder) update(o *update.Options) {
	if o.MaxRetries = b.int("db.fetch.retry.max"); o.MaxRetries <= 0 {
		o.MaxRetries = 1 // the first failure is one too many
	}
	o.NoAdditions = !b.bool("db.update.additions.allowed")
	o.MaxInlinks = b.limit("db.update.max.inlinks")
	o.MaxInterval = b.wholeSeconds("db.fetch.interval.max")
	o.ParseFailed = b.bool("parser.delete.failed.parse")
	o.NutchCompat = b.compat()
}

func (b *builder) invert(o *linkdb.InvertOptions) {
	o.MaxInlinks = b.limit("linkdb.max.inlinks")
	o.IgnoreInternal = b.bool("linkdb.ignore.internal.links")
	o.KeepInternal = !o.IgnoreInternal
	o.IgnoreExternal = b.bool("linkdb.ignore.external.links")
	o.MaxAnchor = b.limit("linkdb.max.anchor.length")
	o.NutchCompat = b.compat()
}

func (b *builder) inject(o *inject.Options) {
	if o.Score = b.number("db.score.injected"); o.Score == 0 {
		b.note("db.score.injected", "0 cannot be had: the score is 1")
	}
}

func (b *builder) index(o *index.Options) {
	o.DeleteGone = index.Set(b.bool("indexer.delete"))
	o.DeleteRobotsNoIndex = index.Set(b.bool("indexer.delete.robots.noindex"))
	o.DeleteFailedParse = index.Set(b.bool("parser.delete.failed.parse"))
	o.DeleteFiltered = b.bool("indexer.delete.skipped.by.indexingfilter")
	o.SkipNotModified = b.bool("indexer.skip.notmodified")
	o.NutchCompat = b.compat()
}
