package nutchconf

import (
	"errors"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb/dedup"
	"github.com/recrawl/recrawl/crawldb/inject"
	"github.com/recrawl/recrawl/hostdb/hoststat"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/protocol/fileproto"
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

// compat reports whether policies should decide as Nutch does.
func (b *builder) compat() bool { return !b.Corrected }
