package fetch

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/signature"
	"github.com/recrawl/recrawl/urlfilter"
)

// Options configure a fetch. Protocol and Hosts are required; the zero value of the rest
// is polite.
type Options struct {
	// Protocol makes the visits. Required.
	Protocol protocol.Protocol
	// Hosts keeps the time from which each host may be asked again. Required.
	Hosts hostdb.Store
	// Robots reads and caches robots.txt. Nil means a cache over Protocol and Hosts that
	// obeys the rules for all crawlers ("*"); to obey the rules for one name, provide a
	// cache with a Product.
	Robots *robots.Cache
	// Rules normalize and filter outlinks and the targets of redirects, in the scopes
	// urlfilter.Outlink and Fetcher. Nil accepts all as they are.
	Rules *urlfilter.Rules
	// Parser parses each page as soon as it is fetched. Nil leaves that to Parse.
	// (Nutch: fetcher.parse.)
	Parser parse.Parser
	// Signature fingerprints the content that was parsed. Nil means MD5 of the bytes.
	// (Nutch: db.signature.class.)
	Signature signature.Signature
	// Scoring gives the links of a page their share. Nil means none.
	Scoring scoring.Filter

	// Politeness limits the load on hosts.
	Politeness Politeness
	// Limits bound a run and a page.
	Limits Limits
	// Parsing configures the parsing of pages.
	Parsing Parsing
	// Links selects the outlinks of a page that are kept.
	Links Links
	// Following says how far pages that are not on the list are visited as well.
	Following Following
	// Sitemaps says how sitemaps are found and read.
	Sitemaps SitemapOptions

	// Threads is how many visits may be under way at once; zero means 50, and the maximum
	// is 16,384. (Nutch: fetcher.threads.fetch, 10.)
	Threads int
	// SlowVisit is the duration from which a visit counts as slow, and so does a host
	// whose visits take as long on average; zero means a second. SpareThreads is how many
	// slow visits there may be besides the Threads others; half of them are reserved for
	// hosts known to answer quickly, so that hosts that never answer do not delay these,
	// whatever their number. Zero means twice Threads, negative none, and the maximum is
	// 16,384. Workers are started as needed.
	SlowVisit    time.Duration
	SpareThreads int

	// Lists are the numbers, from zero, of the fetch lists to visit, if generate spread the
	// URLs of the segment over several; nil means all of them. A fetch that began with nil
	// must be finished with nil.
	//
	// Fetches of different lists may run at the same time, in any processes that can share
	// the stores; those of this module belong to one process at a time. They never share a
	// queue, and Politeness.By must not be coarser than the key by which the lists were
	// made. The segment is complete, and can be parsed and updated, when all lists are: the
	// fetch that completes the last one merges the results. (Nutch has a task for each list.)
	Lists []int
	// NormalizeList and FilterList apply the normalizers and the filters of Rules to the
	// list again, in the scope urlfilter.AnyScope, in case they have changed since
	// generate. URLs that they reject are skipped for this round, and so are those that
	// they respell: the new spelling is visited instead, which has to be in the same queue
	// if lists are fetched separately. (Nutch: fetcher.normalize.urls, fetcher.filter.urls;
	// it leaves no record of what it drops.)
	NormalizeList, FilterList bool
	// Unconditional requests each page as if it had never been fetched, without
	// validators, so that no server answers "not modified". (Nutch:
	// http.enable.if.modified.since.header=false.)
	Unconditional bool
	// NoContent keeps bodies out of the segment. (Nutch: fetcher.store.content.)
	NoContent bool
	// NutchCompat accepts links as Nutch does: each occurrence of a link counts and gets
	// its share; links are tested for length, for pointing to the page itself and for their
	// host before they are normalized; exemptions apply to hosts only; a redirect within a
	// host is internal whatever Links.By says, its target gets a copy of the page's metadata
	// as it is after the visit, with the URL that represents both under "_repr_", and a meta
	// refresh passes no score to its target. A parser has to find the links that Nutch's
	// finds: see htmlparse.Parser.NutchCompat. Validators are sent even for pages whose
	// content is not known, and a page that cannot be parsed has the signature of an empty
	// one.
	NutchCompat bool

	// Now is the time to record; nil means time.Now. Pauses do not depend on it.
	Now func() time.Time
	// OnVisit, if not nil, is called after every visit, from one goroutine. It must return
	// quickly.
	OnVisit func(segment.Visit, Progress)
	// Logger gets anything unusual, and the hosts that the fetch waits for; nil means no
	// logging.
	Logger *slog.Logger
}

// Politeness limits the load on hosts: the pauses between requests to a host, what a host
// may refuse, and how long a host that fails is left alone. The zero value makes one request
// at a time to a host, 5 seconds apart.
type Politeness struct {
	// Delay is the pause between the end of one request to a host and the beginning of the
	// next; zero means 5 seconds, negative none. The larger of it and the Crawl-delay of
	// robots.txt applies. A fetch list may ask for a different one for some hosts: see
	// generate.Options.HostDelay. (Nutch: fetcher.server.delay, _variableFetchDelay_.)
	Delay time.Duration
	// ThreadsPerHost is how many requests to a host may be under way at once, counting all
	// fetches that share Hosts; zero means one. With more than one, a request begins at
	// least MinDelay after the last one began and after the last one ended, instead of
	// Delay; a MinDelay of zero means the same as Delay, negative no pause. A host whose
	// robots.txt has a Crawl-delay, or that has failed, still gets one request at a time.
	// (Nutch: fetcher.threads.per.queue, fetcher.server.min.delay, which counts from the
	// end and replaces the Crawl-delay, too.)
	ThreadsPerHost int
	MinDelay       time.Duration
	// MaxCrawlDelay is the longest Crawl-delay that is honoured; the pages of a host that
	// asks for more are not visited. Zero means 30 seconds, negative no limit. (Nutch:
	// fetcher.max.crawl.delay.)
	MaxCrawlDelay time.Duration
	// MinCrawlDelay is the least pause for a host that asks for a shorter one than Delay: a
	// Crawl-delay between the two is used as it is. Zero means Delay. (Nutch:
	// fetcher.min.crawl.delay.)
	MinCrawlDelay time.Duration
	// By says which URLs share a queue, and so a pause: those of a host, a domain or an
	// address. By address, a worker looks up each host; one without an address fails with
	// the reason. (Nutch: fetcher.queue.mode.)
	By hostdb.By
	// Lookup finds the addresses of a host if By is ByIP; the least of them names the
	// queue. Nil means the system's resolver. It should be the one that Protocol uses,
	// which a recrawl.Crawler sees to for a protocol.LookupProtocol. If a host has several
	// addresses, or different ones with each answer, the address connected to may not be
	// the one that names the queue. A run remembers addresses until it ends.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// HostRule returns what an operator has decided for a host, given the name of its
	// queue: daily budgets, hours, and whether it may be asked at all. It may return a
	// different rule each time. If a host has to wait longer than MaxWait, its pages are
	// skipped for this round, with the reason, and are due when it may be asked again.
	// HostRule is called often, from many goroutines, and must be fast. Nil means no rules.
	// See HostRules.
	HostRule func(queue string) HostRule
	// Limiter limits requests and bytes per second over all hosts, for all fetches that
	// share it; nil means no limit.
	Limiter *Limiter

	// NoRobots neither requests nor obeys robots.txt: for your own servers only.
	NoRobots bool
	// RobotsRetries is how often a fetch waits for a host whose robots.txt cannot be
	// fetched, RobotsWait each time, before its pages are put off to another round; zero or
	// less means never, and a RobotsWait of zero means 5 minutes. The cache of Robots
	// decides when the file is requested again. (Nutch:
	// http.robots.503.defer.visits.retries, .delay.)
	RobotsRetries int
	RobotsWait    time.Duration

	// FailureDelay is the pause after a first failure: no connection, 5xx, 429. It doubles
	// with each failure, up to an hour, and halves with each answer. The longest applies of
	// it, the usual pause and what the server asks for (Retry-After, a day at most). Zero
	// means the usual pause, at least a second; negative means that failures lengthen no
	// pause. Failures are forgotten if the host is not asked for ForgetAfter beyond the
	// pause; zero means 30 minutes, negative never. (Nutch:
	// fetcher.exceptions.per.queue.delay, .clear.after.)
	FailureDelay, ForgetAfter time.Duration
	// MaxFailures is how many failures in a row, counted across rounds, cause the rest of a
	// host's pages to be skipped for this round; zero means 5, negative no limit. So a host
	// that is down costs later rounds at most one request. (Nutch:
	// fetcher.max.exceptions.per.queue, never.)
	MaxFailures int
	// MaxWait is how long a fetch waits, beyond the usual pause, for a host that fails or
	// asks it to wait; if that is not enough, the pages of the host are skipped for this
	// round. Zero or less means 5 minutes.
	MaxWait time.Duration
	// MaxPause limits the pause of a host that is down. After the first failure beyond
	// MaxFailures the host is left alone for an hour, and each further one makes the pause
	// half as long again, so that it is about half as long as the host has been down. After
	// the pause one page is requested, and the others of the host wait with it. The first
	// success ends all that. If the failures are errors that the server sends, or By is not
	// ByHost, the pause stays below a day. Zero means 30 days, which is also the most; less
	// than an hour, or negative, that there is no such pause, as in Nutch and under
	// NutchCompat.
	MaxPause time.Duration
	// GoneAfter is how long a host must have been down for its pages to be gone. Each that
	// was not visited for as long either is then Refused where it would be skipped, so that
	// OnPage and an index learn of it, and goes on waiting for the host, at no further
	// request. When the host answers again, its pages are visited as they are due, and are
	// new; those that update.SweepOptions.PurgeGone has dropped meanwhile are not. The time
	// is the sum of the pauses of MaxPause that ended with a failure; the 30 days in which
	// robots.txt is waited for and a time without crawls do not count: some five months in
	// all. Where these pauses stay below a day no page is gone. Zero means 90 days, negative
	// never. (Nutch: each page after db.fetch.retry.max failures.)
	GoneAfter time.Duration
}

// Limits bound what one run and one page may take.
type Limits struct {
	// TimeLimit is how long a run may take, from the start of Run; zero or less means no
	// limit. Pages not visited by then are left: update ends their leases, and they are due
	// in the next round. Visits under way are completed, and those that can begin at once
	// are always made. A run that resumes an interrupted one has the full time again.
	// (Nutch: fetcher.timelimit.mins.)
	TimeLimit time.Duration
	// End ends a run, as TimeLimit does, when it is closed; nil means never.
	End <-chan struct{}
	// MinRate ends a run, as TimeLimit does, that makes fewer visits per second than this
	// for MinRateSeconds seconds in a row (zero means 5); zero or less means never. The
	// first MinRateAfter of a run does not count; zero means 5 minutes, negative none.
	// (Nutch: fetcher.throughput.threshold.pages, .retries, .check.after.)
	MinRate        float64
	MinRateSeconds int
	MinRateAfter   time.Duration
	// MaxBytes limits the decoded body of a page; zero means the limit of the protocol.
	// (Nutch: http.content.limit.)
	MaxBytes int64
	// QueueDepth, times Threads, is how many URLs of the list wait in memory for their
	// hosts; zero means 50, and at least 10,000 URLs. If a list is not well mixed, URLs for
	// which there is no room are read again later, so that a host at the head of the list
	// does not keep the others waiting. (Nutch: fetcher.queue.depth.multiplier.)
	QueueDepth int
}

// Parsing configures the parsing of pages by Options.Parser.
type Parsing struct {
	// Timeout is how long parsing a page may take before the context of the parser is
	// cancelled. What a parser returns after that is kept, links and all, and counts as
	// ParseCut; an error fails the page. Zero means 30 seconds, negative no limit. A parser
	// that ignores its context keeps its worker for as long as it likes, which is logged:
	// nothing else can end it, and abandoning it would let each such page hold a processor
	// forever. (Nutch: parser.timeout.)
	Timeout time.Duration
	// SkipTruncated leaves truncated content unparsed. (Nutch: parser.skip.truncated, true.)
	SkipTruncated bool
	// Meta names the properties of a page that its record in the crawl db keeps, ignoring
	// case: the first value of each, up to a kilobyte. They go to segment.Parse.Meta, and
	// update puts them into the record. Nil keeps none. (Nutch: db.parsemeta.to.crawldb.)
	Meta []string
	// SignUnparsed fingerprints the raw content of pages that are not parsed during the
	// fetch, so that a crawl that never parses knows whether a page has changed. (Nutch:
	// fetcher.signature.)
	SignUnparsed bool
}

// Links selects the outlinks of a page that are kept.
type Links struct {
	// IgnoreExternal drops outlinks and redirects to other hosts, IgnoreInternal those
	// within a host. Hosts are compared by name or address alone, as Nutch does: neither
	// scheme nor port counts, so a link from http://a.example/ to https://a.example:8443/
	// is internal, and one to http://www.a.example/ is external. With By ByDomain the
	// registered domains are compared instead (see hostdb.By.Key), so that the latter is
	// internal too; ByIP compares hosts. URLs without a host, such as those of files, are
	// internal to each other and external to all others. (Nutch:
	// db.ignore.external.links, db.ignore.internal.links,
	// db.ignore.external.links.mode.)
	IgnoreExternal, IgnoreInternal bool
	By                             hostdb.By
	// Exempt reports whether a link is followed although it is external. Nil exempts none;
	// urlfilter has one that reads Nutch's file. (Nutch:
	// db.ignore.external.exemptions.file.)
	Exempt func(from, to string) bool
	// MaxPerPage is how many accepted links of a page are kept; zero or less means as many
	// as the parser found. (Nutch: db.max.outlinks.per.page, 100.)
	MaxPerPage int
	// MaxLength limits the length in bytes of a link or redirect target, as written in the
	// page; zero means 4096, negative no limit. (Nutch: db.max.outlink.length.)
	MaxLength int
	// NoNormalize and NoFilter accept outlinks without the normalizers or the filters of
	// Rules. Targets of redirects always go through both. (Nutch:
	// parse.normalize.urls=false, parse.filter.urls=false.)
	NoNormalize, NoFilter bool
}

// Following says how far a fetch visits pages that are not on its list: the targets of
// redirects, and the pages that listed pages link to. The zero value visits none.
type Following struct {
	// MaxRedirects is how many redirects in a row are followed in this fetch. Zero or less
	// follows none: a redirect is then just a link, and its target is visited when it is
	// selected.
	//
	// Targets that are not on the list are visited after it, then their targets, and so on,
	// each once in a segment and subject to the rules for links, robots.txt and the pauses
	// of its host. The fetch does not know the crawl db, so it visits a target whatever the
	// crawl db says of it, and without validators. It keeps all redirects that it meets in
	// memory.
	//
	// A redirect that is followed is a link as well. So is one beyond the limit, unless
	// SkipExceeded drops it. A meta refresh or Refresh header counts as a redirect if the
	// fetch parses. Where lists are fetched separately, redirects are followed only within
	// a host, or within a domain if the lists were made by domain. (Nutch:
	// http.redirect.max, http.redirect.max.exceeded.skip.)
	MaxRedirects int
	SkipExceeded bool
	// ExemptRedirects follows redirects to any host, whatever Links.IgnoreExternal and
	// IgnoreInternal say of links. (Nutch: db.ignore.also.redirects=false.)
	ExemptRedirects bool
	// Depth is how many links away from the list pages are visited: with 1 those that pages
	// on the list link to, with 2 those that these link to, and so on; zero or less visits
	// none. MaxLinks is how many links of a page are followed, the first of the accepted
	// ones that are not on the list; zero means 4. Only links within the host of the page
	// count, unless External is set.
	//
	// They are visited after the list, obey robots.txt, and are requested without
	// validators. This takes a Parser, and about 60 bytes of memory for each page listed or
	// followed. (Nutch: fetcher.follow.outlinks.depth, .num.links, .ignore.external.)
	Depth, MaxLinks int
	External        bool
	// Within, if not nil, says which pages beyond the list may be visited at all. It must be
	// pure. A redirect to another page is just a link.
	Within func(url string) bool
}

var (
	errNoProtocol = errors.New("fetch: Options.Protocol is required")
	errNoHosts    = errors.New("fetch: Options.Hosts is required")
)

// maxThreads limits the workers, for whose results there is always room in memory.
const maxThreads = 1 << 14

// withDefaults resolves zero values.
func (o Options) withDefaults() Options {
	o.Threads = min(aboveZero(o.Threads, 50), maxThreads)
	o.SpareThreads = max(0, min(cmp.Or(o.SpareThreads, 2*o.Threads), maxThreads))
	o.SlowVisit = aboveZero(o.SlowVisit, time.Second)
	o.Politeness = o.Politeness.withDefaults()
	if o.NutchCompat {
		o.Politeness.MaxPause = -1
	}
	o.Limits.MinRateSeconds = aboveZero(o.Limits.MinRateSeconds, 5)
	o.Limits.MinRateAfter = cmp.Or(o.Limits.MinRateAfter, 5*time.Minute)
	o.Following.MaxLinks = aboveZero(o.Following.MaxLinks, 4)
	o.Parsing.Timeout = cmp.Or(o.Parsing.Timeout, 30*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Signature == nil {
		o.Signature = signature.MD5{}
	}
	if o.Scoring == nil {
		o.Scoring = scoring.Base{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Robots == nil {
		o.Robots = &robots.Cache{Protocol: o.Protocol, Hosts: o.Hosts, Now: o.Now, Logger: o.Logger}
	}
	return o
}

func (p Politeness) withDefaults() Politeness {
	p.Delay = max(cmp.Or(p.Delay, 5*time.Second), 0)
	p.MinDelay = max(cmp.Or(p.MinDelay, p.Delay), 0)
	p.ThreadsPerHost = max(p.ThreadsPerHost, 1)
	p.MaxCrawlDelay = cmp.Or(p.MaxCrawlDelay, 30*time.Second)
	p.RobotsWait = aboveZero(p.RobotsWait, 5*time.Minute)
	p.MaxWait = aboveZero(p.MaxWait, 5*time.Minute)
	p.ForgetAfter = cmp.Or(p.ForgetAfter, 30*time.Minute)
	p.MaxFailures = cmp.Or(p.MaxFailures, 5)
	p.MaxPause = min(cmp.Or(p.MaxPause, maxPause), maxPause)
	p.GoneAfter = cmp.Or(p.GoneAfter, goneAfter)
	return p
}

// aboveZero returns n if it is above zero, and otherwise a default.
func aboveZero[T int | time.Duration](n, otherwise T) T {
	if n > 0 {
		return n
	}
	return otherwise
}
