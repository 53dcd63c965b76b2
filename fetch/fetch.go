// Package fetch visits the pages on the fetch list of a segment, many hosts at
// once and each as politely as it asks for, and writes what came back into the
// same segment.
//
// One loop owns the queues of the hosts and decides who is visited when; a fixed
// number of workers visit and parse; one writer puts the results into the
// segment in groups, so an interrupted fetch resumes after the last group instead
// of starting over. The number of goroutines is O(workers), whatever the number
// of hosts and URLs.
//
// Politeness lives in the hostdb.Store and counts from the end of the last
// request to a host, whoever made it: a round, another crawler on the same store,
// or this process before it was killed.
package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/robots"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/signature"
	"github.com/recrawl/recrawl/urlfilter"
)

// Options say how to visit. Protocol and Hosts are required; the zero value of
// the rest is polite.
type Options struct {
	// Protocol makes the visits. Required.
	Protocol protocol.Protocol
	// Hosts keeps when each host may be asked again. Required.
	Hosts hostdb.Store
	// Robots knows what robots.txt allows. Nil means a cache over Protocol and
	// Hosts that obeys the rules for every crawler ("*"); for rules by name,
	// provide one with a Product.
	Robots *robots.Cache
	// NoRobots neither requests nor obeys robots.txt: for your own servers
	// only.
	NoRobots bool
	// Parser reads the pages while they are fetched. Nil leaves that to Parse.
	// (Nutch: fetcher.parse.)
	Parser parse.Parser
	// Signature fingerprints the content that was parsed. Nil means MD5 of the
	// bytes. (Nutch: db.signature.class.)
	Signature signature.Signature
	// Rules normalize and filter outlinks and the targets of redirects, in the
	// scopes urlfilter.Outlink and Fetcher. Nil takes them as they are.
	Rules *urlfilter.Rules
	// IgnoreExternal drops outlinks and redirects to other hosts, IgnoreInternal
	// those within a host; with LinksBy ByDomain, to other domains and within a
	// domain. A URL without a host is external. (Nutch: db.ignore.external.links,
	// db.ignore.internal.links, db.ignore.external.links.mode.)
	IgnoreExternal, IgnoreInternal bool
	LinksBy                        hostdb.By
	// Exempt says that a link is followed although it is external. Nil exempts
	// none; urlfilter has one that reads Nutch's file. (Nutch:
	// db.ignore.external.exemptions.file.)
	Exempt func(from, to string) bool
	// ExemptRedirects follows redirects wherever they lead, whatever IgnoreExternal and
	// IgnoreInternal say of links. (Nutch: db.ignore.also.redirects=false.)
	ExemptRedirects bool
	// MaxRedirects is how many redirects in a row are followed in this fetch. Zero or less
	// follows none: a redirect is then just a link, and its target is visited when it is
	// selected.
	//
	// Targets that are not on the list are visited after it, then their targets, and so
	// on, each once in a segment and subject to the rules for links, robots.txt and the
	// pauses of its host. The fetch does not know the crawl db, so it visits a target
	// whatever the crawl db says of it, and without validators. It keeps all redirects that
	// it meets in memory.
	//
	// A redirect that is followed is a link as well. So is one beyond the limit, unless
	// SkipExceeded drops it. A meta refresh or Refresh header counts as a redirect if the
	// fetch parses. Where lists are fetched separately, redirects are followed only within
	// a host, or within a domain if the lists were made by domain. (Nutch:
	// http.redirect.max, http.redirect.max.exceeded.skip.)
	MaxRedirects int
	SkipExceeded bool
	// MaxOutlinks is how many accepted links of a page are kept; zero or less
	// means as many as the parser found. (Nutch: db.max.outlinks.per.page,
	// 100.)
	MaxOutlinks int
	// MaxOutlinkLength limits the length in bytes of a link or redirect target,
	// as written in the page; zero means 4096, negative no limit. (Nutch:
	// db.max.outlink.length.)
	MaxOutlinkLength int
	// NoNormalize and NoFilter take outlinks without the normalizers or the
	// filters of Rules. Targets of redirects always go through both. (Nutch:
	// parse.normalize.urls=false, parse.filter.urls=false.)
	NoNormalize, NoFilter bool
	// ParseTimeout is how long parsing a page may take before the context of the
	// parser is cancelled. What a parser returns after that is kept, links and
	// all, and counts as ParseCut; an error fails the page. Zero means 30 seconds,
	// negative no limit. A parser that ignores its context keeps its worker for as
	// long as it likes, which is logged: nothing else can end it, and abandoning
	// it would let each such page hold a processor forever. (Nutch:
	// parser.timeout.)
	ParseTimeout time.Duration
	// SkipTruncated leaves truncated content unparsed. (Nutch:
	// parser.skip.truncated, true.)
	SkipTruncated bool
	// Unconditional asks for each page as if it had never been fetched, without
	// validators, so that no server answers "not modified". (Nutch:
	// http.enable.if.modified.since.header=false.)
	Unconditional bool
	// NutchCompat accepts links as Nutch does: each occurrence of a link counts and
	// gets its share; links are tested for length, for pointing to the page itself
	// and for their host before they are normalized; exemptions apply to hosts
	// only; a redirect within a host is internal whatever LinksBy says, its target
	// gets a copy of the page's metadata as it is after the visit, with the URL
	// that represents both under "_repr_", and a meta refresh passes no score to
	// its target. A parser has to find the links that Nutch's finds: see
	// htmlparse.Parser.NutchCompat. Validators are sent even for pages whose
	// content is not known, and a page that cannot be parsed has the signature of
	// an empty one.
	NutchCompat bool
	// Scoring gives the links of a page their share. Nil means none.
	Scoring scoring.Filter

	// ParseMeta names the properties of a page that its record in the crawl db
	// keeps, ignoring case: the first value of each, up to a kilobyte. They go to
	// segment.Parse.Meta, and update puts them into the record. Nil keeps none.
	// (Nutch: db.parsemeta.to.crawldb.)
	ParseMeta []string

	// Threads is how many visits may be under way at once; zero means 50, and the
	// maximum is 16,384. (Nutch: fetcher.threads.fetch, 10.)
	Threads int
	// SlowVisit is the duration from which a visit counts as slow, and so does a host
	// whose visits take as long on average; zero means a second. SpareThreads is how
	// many slow visits there may be besides the Threads others; half of them are
	// reserved for hosts known to answer quickly, so that these lose nothing to any
	// number of hosts that never answer. Zero means twice Threads, negative none, and
	// the maximum is 16,384. Workers are started as needed.
	SlowVisit    time.Duration
	SpareThreads int
	// By says which URLs share a queue, and so a turn and a pause. By address, a
	// worker looks up each host; one without an address fails with the reason.
	// (Nutch: fetcher.queue.mode.)
	By hostdb.By
	// Lookup finds the addresses of a host if By is ByIP; the least of them names
	// the queue. Nil means the system's resolver. It should be the one that Protocol
	// uses, which a recrawl.Crawler sees to for a protocol.LookupProtocol. If a host has
	// several addresses, or different ones with each answer, the address connected
	// to may not be the one that names the queue. A run remembers addresses until it
	// ends.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// HostRule returns what an operator has decided for a host, given the name of its
	// queue: daily budgets, hours, and whether it may be asked at all. It may return
	// a different rule each time. If a host has to wait longer than MaxWait, its
	// pages are skipped for this round, with the reason, and are due when it may be
	// asked again. HostRule is called often, from many goroutines, and must be fast.
	// Nil means no rules. See HostRules.
	HostRule func(queue string) HostRule
	// Limiter limits requests and bytes per second over all hosts, for all fetches
	// that share it; nil means no limit.
	Limiter *Limiter
	// Delay is the pause between the end of one request to a host and the
	// beginning of the next; zero means 5 seconds, negative none. The larger of it
	// and the Crawl-delay of robots.txt applies. A fetch list may ask for a
	// different one for some hosts: see generate.Options.HostDelay. (Nutch:
	// fetcher.server.delay, _variableFetchDelay_.)
	Delay time.Duration
	// ThreadsPerHost is how many requests to a host may be under way at once,
	// counting everyone who shares Hosts; zero means one. With more than one, a
	// request begins at least MinDelay after the last one began and after the last
	// one ended, instead of Delay; a MinDelay of zero means the same as Delay,
	// negative no pause. A host whose robots.txt has a Crawl-delay, or that has
	// failed, is still asked for one page at a time. (Nutch:
	// fetcher.threads.per.queue, fetcher.server.min.delay, which counts from the end
	// and replaces the Crawl-delay, too.)
	ThreadsPerHost int
	MinDelay       time.Duration
	// MaxCrawlDelay is the longest Crawl-delay that is honoured; the pages of a
	// host that asks for more are not visited. Zero means 30 seconds, negative no
	// limit. (Nutch: fetcher.max.crawl.delay.)
	MaxCrawlDelay time.Duration
	// MinCrawlDelay is the least pause for a host that asks for a shorter one than
	// Delay: a Crawl-delay between the two is used as it is. Zero means Delay.
	// (Nutch: fetcher.min.crawl.delay.)
	MinCrawlDelay time.Duration
	// FailureDelay is the pause after a first failure: no connection, 5xx, 429. It
	// doubles with each failure, up to an hour, and halves with each answer. The
	// longest applies of it, the usual pause and what the server asks for
	// (Retry-After, a day at most). Zero means the usual pause, at least a second;
	// negative means that failures lengthen no pause. Failures are forgotten if the
	// host is not asked for ForgetAfter beyond the pause; zero means 30 minutes,
	// negative never. (Nutch: fetcher.exceptions.per.queue.delay, .clear.after.)
	FailureDelay, ForgetAfter time.Duration
	// RobotsRetries is how often a fetch waits for a host whose robots.txt cannot
	// be fetched, RobotsWait each time, before its pages are put off to another
	// round; zero or less means never, and a RobotsWait of zero means 5 minutes.
	// Robots decides when the file is requested again. (Nutch:
	// http.robots.503.defer.visits.retries, .delay.)
	RobotsRetries int
	RobotsWait    time.Duration
	// MaxWait is how long a fetch waits, beyond the usual pause, for a host that
	// fails or asks it to wait; if that is not enough, the pages of the host are
	// skipped for this round. Zero or less means 5 minutes.
	MaxWait time.Duration
	// MaxFailures is how many failures in a row, counted across rounds, cause the rest
	// of a host's pages to be skipped for this round; zero means 5, negative no limit.
	// So a host that is down costs later rounds at most one request. (Nutch:
	// fetcher.max.exceptions.per.queue, never.)
	MaxFailures int
	// MaxPause limits the pause of a host that is down. After the first failure beyond
	// MaxFailures the host is left alone for an hour, and each further one makes the
	// pause half as long again, so that it is about half as long as the host has been
	// down. After the pause one page is requested, and the others of the host wait with
	// it. The first success ends all that. If the failures are errors that the server
	// sends, or By is not ByHost, the pause stays below a day. Zero means 30 days, which
	// is also the most; less than an hour, or negative, that there is no such pause, as
	// in Nutch and under NutchCompat.
	MaxPause time.Duration
	// GoneAfter is how long a host must have been down for its pages to be gone. Each that
	// was not visited for as long either is then Refused where it would be skipped, so that
	// OnPage and an index are told, and goes on waiting for the host, at no request more. When
	// the host answers again, its pages are visited as they are due, and are new; those that
	// update.SweepOptions.PurgeGone has dropped meanwhile are not. What counts is the pauses of
	// MaxPause that ended with a failure, not the 30 days in which robots.txt is waited for
	// nor a time without crawls: some five months in all. Where these pauses stay below a day
	// no page is gone. Zero means 90 days, negative never. (Nutch: each page after
	// db.fetch.retry.max failures.)
	GoneAfter time.Duration
	// TimeLimit is how long a run may take, from the start of Run; zero or less
	// means no limit. Pages not visited by then are left: update ends their leases,
	// and they are due in the next round. Visits under way are completed, and those
	// that can begin at once are always made. A run that resumes an interrupted one
	// has the full time again. (Nutch: fetcher.timelimit.mins.)
	TimeLimit time.Duration
	// MinRate ends a run, as TimeLimit does, that makes fewer visits per second than
	// this for SlowSeconds seconds in a row (zero means 5); zero or less means
	// never. The first SlowAfter of a run does not count; zero means 5 minutes,
	// negative none. (Nutch: fetcher.throughput.threshold.pages, .retries,
	// .check.after.)
	MinRate     float64
	SlowSeconds int
	SlowAfter   time.Duration
	// QueueDepth, times Threads, is how many URLs of the list wait in memory for
	// their hosts; zero means 50, and at least 10,000 URLs. If a list is not well
	// mixed, URLs for which there is no room are read again later, so that a host at
	// the head of the list does not keep the others waiting. (Nutch:
	// fetcher.queue.depth.multiplier.)
	QueueDepth int
	// FollowDepth also visits pages that are not on the list: with 1 those that pages on
	// the list link to, with 2 those that these link to, and so on; zero or less visits
	// none. FollowLinks is how many links of a page are followed, the first of the accepted
	// ones that are not on the list; zero means 4. Only links within the host of the page
	// count, unless FollowExternal is set.
	//
	// They are visited after the list, obey robots.txt, and are requested without
	// validators. This takes a Parser, and about 60 bytes of memory for each page listed or
	// followed. (Nutch: fetcher.follow.outlinks.depth, .num.links, .ignore.external.)
	FollowDepth, FollowLinks int
	FollowExternal           bool
	// NormalizeList and FilterList apply the normalizers and the filters of Rules to
	// the list again, in the scope urlfilter.AnyScope, in case they have changed
	// since generate. URLs that they reject are skipped for this round, and so are
	// those that they respell: the new spelling is visited instead, which has to be
	// in the same queue if lists are fetched separately. (Nutch:
	// fetcher.normalize.urls, fetcher.filter.urls; it leaves no record of what it
	// drops.)
	NormalizeList, FilterList bool
	// MaxBytes limits the decoded body of a page; zero means the limit of the
	// protocol. (Nutch: http.content.limit.)
	MaxBytes int64
	// Lists are the numbers, from zero, of the fetch lists to visit, if generate spread the
	// URLs of the segment over several; nil means all of them. A fetch that began with nil
	// must be finished with nil.
	//
	// Fetches of different lists may run at the same time, in any processes that can share
	// the stores; those of this module belong to one process at a time. They never share
	// a queue, and By must not be coarser than what the lists were made by. The segment is
	// complete, and can be parsed and updated, when all lists are: the fetch that completes
	// the last one merges the results. (Nutch has a task for each list.)
	Lists []int

	// NoContent keeps bodies out of the segment. (Nutch:
	// fetcher.store.content.)
	NoContent bool
	// Sign fingerprints the raw content of pages that are not parsed during the
	// fetch, so that a crawl that never parses knows what has changed. (Nutch:
	// fetcher.signature.)
	Sign bool

	// Sitemaps says how sitemaps are found and read.
	Sitemaps SitemapOptions

	// Now is the time to record; nil means time.Now. Pauses do not depend on it.
	Now func() time.Time
	// OnVisit, if not nil, is called after every visit, from one goroutine. It
	// must return quickly.
	OnVisit func(segment.Visit, Progress)
	// Logger gets anything unusual, and the hosts that the fetch waits for; nil
	// means no logging.
	Logger *slog.Logger
}

// Progress is how far a fetch has come.
type Progress struct {
	// Listed is the number of URLs read from the fetch list so far, Done how
	// many of them are finished, Followed how many other pages were visited.
	Listed, Done, Followed int
	// InFlight counts the visits under way, Hosts the hosts with pages waiting
	// or under way.
	InFlight, Hosts int
}

// Report says what came of a fetch list.
type Report struct {
	// Listed counts the URLs on the list, Resumed those of them that an earlier run has
	// visited: a number, where the reports of other stages say only that there was one.
	Listed, Resumed int
	// Visits counts the visits of this run by their outcome. (Nutch has a counter
	// for each of its words for them; robots_denied_total is protocol.RobotsDenied,
	// robots_defer_visits_dropped_total protocol.RobotsFailed, errors_total
	// protocol.Failed.)
	Visits map[protocol.Code]int
	// Parsed and ParseFailed count the pages that a parser could and could not
	// read, ParseCut those of Parsed that were not read to the end, because of a
	// limit or for lack of time.
	Parsed, ParseFailed, ParseCut int
	// Links counts accepted outlinks; LinksRejected those that the rules
	// rejected, LinksCut those beyond the limit of the parser.
	Links, LinksRejected, LinksCut int
	// Sitemaps says what was read in sitemaps and feeds.
	Sitemaps SitemapReport
	// Redirects says what became of redirects.
	Redirects Redirects
	// Robots counts the requests for robots.txt.
	Robots int
	// Followed counts the visits of this run to pages that are not on the list, and
	// Filtered the URLs of the list that were not visited because of
	// Options.FilterList. (Nutch: outlinks_following_total, filtered_total.)
	Followed, Filtered int
	// TimedOut and TooSlow count the URLs of the list that were left because of
	// Options.TimeLimit or MinRate. (Nutch: hit_by_timelimit_total,
	// hit_by_throughput_threshold_total.)
	TimedOut, TooSlow int
	// Causes says why pages were not visited or visits failed, Latency how long
	// visits took.
	Causes  Causes
	Latency Latency
	// Bytes counts the bytes of bodies as sent. (Nutch: bytes_downloaded_total.)
	Bytes int64
	// Already says that the segment, or every requested list, was complete before.
	Already bool
	// Left counts the other lists, not requested, that are not complete yet. The
	// segment is not complete until it is zero.
	Left int
}

// Visited adds up the visits.
func (r *Report) Visited() int {
	n := 0
	for _, c := range r.Visits {
		n += c
	}
	return n
}

var (
	errNoProtocol = errors.New("fetch: Options.Protocol is required")
	errNoHosts    = errors.New("fetch: Options.Hosts is required")
)

// mostThreads limits the workers, for whose results there is always room in
// memory.
const mostThreads = 1 << 14

// withDefaults resolves zero values.
func (o Options) withDefaults() Options {
	o.Threads = min(aboveZero(o.Threads, 50), mostThreads)
	o.SpareThreads = max(0, min(cmp.Or(o.SpareThreads, 2*o.Threads), mostThreads))
	o.SlowVisit = aboveZero(o.SlowVisit, time.Second)
	o.Delay = max(cmp.Or(o.Delay, 5*time.Second), 0)
	o.MinDelay = max(cmp.Or(o.MinDelay, o.Delay), 0)
	o.ThreadsPerHost = max(o.ThreadsPerHost, 1)
	o.MaxCrawlDelay = cmp.Or(o.MaxCrawlDelay, 30*time.Second)
	o.RobotsWait = aboveZero(o.RobotsWait, 5*time.Minute)
	o.MaxWait = aboveZero(o.MaxWait, 5*time.Minute)
	o.ForgetAfter = cmp.Or(o.ForgetAfter, 30*time.Minute)
	o.MaxFailures = cmp.Or(o.MaxFailures, 5)
	o.MaxPause = min(cmp.Or(o.MaxPause, maxPause), maxPause)
	if o.NutchCompat {
		o.MaxPause = -1
	}
	o.GoneAfter = cmp.Or(o.GoneAfter, goneAfter)
	o.SlowSeconds = aboveZero(o.SlowSeconds, 5)
	o.SlowAfter = cmp.Or(o.SlowAfter, 5*time.Minute)
	o.FollowLinks = aboveZero(o.FollowLinks, 4)
	o.ParseTimeout = cmp.Or(o.ParseTimeout, 30*time.Second)
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

// aboveZero returns n if it is above zero, and otherwise a default.
func aboveZero[T int | time.Duration](n, otherwise T) T {
	if n > 0 {
		return n
	}
	return otherwise
}

// Run visits the pages of a segment that have not been visited yet. When its
// context ends it soon stops, keeps what is complete, and returns an error that
// is ctx.Err(); called again, it resumes from there. A complete segment is left
// alone. Pages fetched without a parser are parsed once there is one.
func Run(ctx context.Context, segments segment.Store, name string, o Options) (Report, error) {
	if o.Protocol == nil {
		return Report{}, errNoProtocol
	}
	if o.Hosts == nil {
		return Report{}, errNoHosts
	}
	r, err := run(ctx, segments, name, o.withDefaults())
	if err != nil {
		err = fmt.Errorf("fetch %s: %w", name, err)
	}
	return r, err
}

// visited is everything kept of one visit; parts that a page does not have are
// nil.
type visited struct {
	visit   segment.Visit
	content *page.Content
	text    *segment.Text
	data    *segment.Data
	parse   *segment.Parse
	// list is the fetch list the page was on, hop how it came to be visited;
	// hop is nil if it was on the list.
	list int
	hop  *hop
	// leads is where the page leads: one of the links; nil if nowhere.
	leads *segment.Link
	// Counts for the report.
	rejected, cut int
	cause         cause
	sitemap       *SitemapReport
	redirects     Redirects
}

// item is a URL to visit: its record as it was when selected, and what the
// fetch list says about it.
type item struct {
	crawldb.Datum
	list  int
	delay time.Duration
	// unlisted says that the page is not on the list.
	unlisted bool
	// rules are set if the last turn was used for robots.txt: they apply to the
	// next turn, even if the pause in between is longer than a robots.txt is
	// valid.
	rules *robots.Rules
	// hop is set for the target of a redirect.
	hop *hop
	// robots is set for a robots.txt that has moved to the host; there is no
	// record then.
	robots *robotsHop
}
