// Package fetch visits the pages on the fetch list of a segment, many hosts at
// once and each as politely as it asks for, and writes what came back into the
// same segment.
//
// One loop owns the queues of the hosts and decides who is visited when; a fixed
// number of workers visit and parse; one writer puts the results into the
// segment in groups, so that a fetch that was interrupted goes on behind the last
// group instead of starting over. Goroutines are O(workers), whatever the number
// of hosts and URLs.
//
// Politeness lives in the hostdb.Store and counts from the end of the last
// request to a host, whoever made it: a round, another crawler on the same store,
// or this process before it was killed.
package fetch

import (
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
	// Hosts that obeys what is asked of every crawler ("*"); to be known by name,
	// give one with a Product.
	Robots *robots.Cache
	// NoRobots asks no robots.txt and obeys none: for servers of one's own.
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
	// those within one; with LinksBy ByDomain, other domains and within one. What
	// has no host is external. (Nutch: db.ignore.external.links,
	// db.ignore.internal.links, db.ignore.external.links.mode.)
	IgnoreExternal, IgnoreInternal bool
	LinksBy                        hostdb.By
	// Exempt says that a link is followed although it is external. Nil exempts
	// none; urlfilter has one that reads Nutch's file. (Nutch:
	// db.ignore.external.exemptions.file.)
	Exempt func(from, to string) bool
	// IgnoreNoRedirects follows redirects wherever they lead. (Nutch:
	// db.ignore.also.redirects=false.)
	IgnoreNoRedirects bool
	// MaxRedirects is how many redirects in a row are followed in this fetch; zero
	// or less means none: each is a link, and its target visited when it is selected.
	// Redirects of pages (meta refresh, and the header) count as those of HTTP, if the
	// fetch parses. Once the list is through, the targets are visited that are not on
	// it, then theirs, each by the rules for links and robots.txt, in the turn of its
	// host, and once a segment, whatever the crawl db has of it; since that is not known here, nothing is said
	// to the server of what it may have sent before. A redirect that is followed
	// is a link all the same, and so is one more than the limit, unless SkipExceeded
	// drops it. Where lists are fetched apart only redirects within a
	// host are followed, or within a domain if the lists were made by domain. All
	// redirects that a fetch meets are kept in memory. (Nutch: http.redirect.max,
	// http.redirect.max.exceeded.skip.)
	MaxRedirects int
	SkipExceeded bool
	// MaxOutlinks is how many links of a page are kept, counted when they are
	// accepted; zero or less means as many as the parser found. (Nutch:
	// db.max.outlinks.per.page, 100.)
	MaxOutlinks int
	// MaxOutlinkLength bounds a link or the target of a redirect as it stands in
	// the page, in bytes; zero means 4096, negative no bound. (Nutch:
	// db.max.outlink.length.)
	MaxOutlinkLength int
	// NoNormalize and NoFilter take outlinks without the normalizers or the
	// filters of Rules. Targets of redirects always go through both. (Nutch:
	// parse.normalize.urls=false, parse.filter.urls=false.)
	NoNormalize, NoFilter bool
	// ParseTimeout is how long a page may take to be parsed: then the context of
	// the parser is done. What a parser returns that was cut short is kept, links
	// and all, and counts as ParseCut; an error fails the page. Zero means 30
	// seconds, negative no bound. A parser that does not look at its context keeps
	// its worker for as long as it likes, which is logged: nothing can end it but
	// itself, and to leave it behind would let each such page keep a processor for
	// ever. (Nutch: parser.timeout.)
	ParseTimeout time.Duration
	// SkipTruncated leaves content unparsed that was cut at a limit. (Nutch:
	// parser.skip.truncated, true.)
	SkipTruncated bool
	// Unconditional asks for each page as if it had never been fetched, without
	// validators, so that no server answers "not modified". (Nutch:
	// http.enable.if.modified.since.header=false.)
	Unconditional bool
	// NutchCompat accepts links as Nutch does: each occurrence of a link is one
	// and gets its share; the tests of length, of being the page itself and of
	// host come before the normalizers; exemptions count for hosts only; a
	// redirect within a host is internal whatever LinksBy says, its target has a
	// copy of the page's metadata as it is after the visit, with the URL that is to
	// stand for both under "_repr_", and a meta refresh brings its target no score.
	// A parser has to find the links that Nutch's finds: see
	// htmlparse.Parser.NutchCompat. Validators are sent for pages whose content is
	// not known, too, and what cannot be parsed has a signature, as an empty page.
	NutchCompat bool
	// Scoring gives the links of a page their share. Nil means none.
	Scoring scoring.Filter

	// ParseMeta names the properties of a page that its record in the crawl db is
	// to keep, whatever their case: the first value of each, up to a kilobyte.
	// They go to segment.Parse.Meta, and update puts them into the record. Nil
	// keeps none. (Nutch: db.parsemeta.to.crawldb.)
	ParseMeta []string

	// Threads is how many visits may be under way at once; zero means 50, and more than
	// 16,384 are as many. (Nutch: fetcher.threads.fetch, 10.)
	Threads int
	// SlowVisit is when a visit counts as slow, and a host whose visits take as long
	// on the average; zero means a second. SpareThreads is how many slow visits there
	// may be beside the Threads others; half of them are kept for hosts that are
	// known to answer quickly, so that no number of hosts that never answer costs
	// them anything. Zero means twice Threads, negative none, and more than 16,384 are
	// as many. A worker is started when it is needed.
	SlowVisit    time.Duration
	SpareThreads int
	// By says which URLs share a queue, and so a turn and a pause. By address, a
	// worker looks up each host; one without an address fails with the reason.
	// (Nutch: fetcher.queue.mode.)
	By hostdb.By
	// Lookup finds the addresses of a host if By is ByIP; the least of them names
	// the queue. Nil means the resolver of the system. It should be what Protocol
	// asks (httpproto.Client.Lookup, which a recrawl.Crawler takes): of a host that
	// has several addresses, or others with each answer, another may be dialled than
	// that which names the queue. A run remembers addresses until it ends.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// HostRule returns what an operator has decided of a host, given the name of its
	// queue: daily budgets, at which times of the day it may be asked, and whether at
	// all. The rule of a queue may be another each time. The pages
	// of a host that has to wait longer than MaxWait are skipped for this round, with
	// the reason, and due when it may be asked again. It is called often, from many
	// goroutines, and must be quick. Nil means that nothing was decided. See
	// HostRules.
	HostRule func(queue string) HostRule
	// Limiter bounds requests and bytes a second over all hosts, for all fetches that
	// are given it; nil means that there is no bound.
	Limiter *Limiter
	// Delay is the pause between the end of one request to a host and the
	// beginning of the next; zero means 5 seconds, negative none. The larger of
	// it and the Crawl-delay of robots.txt holds. A fetch list may ask for another
	// for some hosts: see generate.Options.HostDelay. (Nutch: fetcher.server.delay,
	// _variableFetchDelay_.)
	Delay time.Duration
	// ThreadsPerHost is how many requests to a host may be under way at once, over
	// all that share Hosts; zero means one. With more than one a request begins
	// MinDelay after the last one began and MinDelay after the last one ended, and
	// not Delay; zero means as long as Delay, negative no pause. A host whose
	// robots.txt has a Crawl-delay, or that has failed, is asked for one page at a
	// time all the same. (Nutch: fetcher.threads.per.queue, fetcher.server.min.delay,
	// which counts from the end and replaces the Crawl-delay, too.)
	ThreadsPerHost int
	MinDelay       time.Duration
	// MaxCrawlDelay is the longest Crawl-delay that is honoured; the pages of a
	// host that asks for more are not visited. Zero means 30 seconds, negative no
	// bound. (Nutch: fetcher.max.crawl.delay.)
	MaxCrawlDelay time.Duration
	// MinCrawlDelay is the pause that a host is due that asks for a shorter one than
	// Delay: a Crawl-delay between the two holds. Zero means Delay. (Nutch:
	// fetcher.min.crawl.delay.)
	MinCrawlDelay time.Duration
	// FailureDelay is the pause after a first failure: no connection, 5xx, 429. It
	// doubles with each failure, up to an hour, and halves with each answer; the
	// longer of it and the usual pause holds, or of what the server asks for
	// (Retry-After, a day at most). Zero means the usual pause, a second at least,
	// negative that failures make no pause longer. What was failures is forgotten when
	// the host was not asked for ForgetAfter beyond the pause; zero means 30 minutes,
	// negative never. (Nutch: fetcher.exceptions.per.queue.delay, .clear.after.)
	FailureDelay, ForgetAfter time.Duration
	// RobotsRetries is how often a host that does not show its robots.txt is waited
	// for in a fetch, RobotsWait each time, before its pages are put off to another
	// round; zero or less means never, and a RobotsWait of zero 5 minutes. When the
	// file is asked for again is for Robots to say. (Nutch:
	// http.robots.503.defer.visits.retries, .delay.)
	RobotsRetries int
	RobotsWait    time.Duration
	// MaxWait is how long a fetch waits for a host that asked for patience or
	// fails, beyond its usual pause; the pages of one that needs longer are skipped
	// for this round. Zero or less means 5 minutes.
	MaxWait time.Duration
	// MaxFailures is after how many failures in a row, counted over rounds, the
	// rest of a host's pages is skipped for this round; zero means 5, negative
	// never. So a host that is down costs later rounds one request at most, and as time
	// goes by its other pages are put off for up to their interval instead of a day.
	// (Nutch: fetcher.max.exceptions.per.queue, never.)
	MaxFailures int
	// TimeLimit is how long a run may take, from the start of Run; zero or less
	// means as long as it needs. What was not visited by then is left: update ends
	// its lease, and it is due in the next round. Visits under way end as they would
	// have, and those of the first moment are always made. A run that goes on where
	// another was interrupted has the whole time again. (Nutch:
	// fetcher.timelimit.mins.)
	TimeLimit time.Duration
	// MinRate ends a run that makes fewer visits than this a second, in SlowSeconds
	// seconds in a row (zero means 5), as TimeLimit does; zero or less means never.
	// The first SlowAfter do not count; zero means 5 minutes, negative none. (Nutch:
	// fetcher.throughput.threshold.pages, .retries, .check.after.)
	MinRate     float64
	SlowSeconds int
	SlowAfter   time.Duration
	// QueueDepth is how many URLs of the list wait in memory for their hosts, times
	// Threads; zero means 50, and 10,000 URLs at least. Of a list that is not well
	// mixed, what there is no room for is read again later, so that a host at its
	// head does not keep the others waiting. (Nutch: fetcher.queue.depth.multiplier.)
	QueueDepth int
	// FollowDepth visits pages that are not on the list, too: those that a page of
	// it links to, if it is 1, those that they link to, if it is 2, and so on; zero or
	// less visits none. Of the links of a page, which the rules have accepted, the
	// first FollowLinks count that are not on the list (zero means 4), and only those
	// within its host unless FollowExternal is set. They wait for their hosts behind
	// the list, obey robots.txt, and are asked for without validators. It takes a
	// Parser, and about 60 bytes of memory for each page that is listed or followed.
	// (Nutch: fetcher.follow.outlinks.depth, .num.links, .ignore.external.)
	FollowDepth, FollowLinks int
	FollowExternal           bool
	// NormalizeList and FilterList apply the normalizers and the filters of Rules to
	// the list again, in the scope urlfilter.AnyScope, should they have changed since
	// generate did. What they reject is skipped for this round, and so is what they
	// spell otherwise: that spelling is visited instead. Where lists are fetched
	// apart it has to be of the same queue. (Nutch: fetcher.normalize.urls,
	// fetcher.filter.urls; it leaves no record of what it drops.)
	NormalizeList, FilterList bool
	// MaxBytes bounds the decoded body of a page; zero means the limit of the
	// protocol. (Nutch: http.content.limit.)
	MaxBytes int64
	// Lists are the numbers of the fetch lists to visit, from zero, of those over
	// which generate spread the URLs of the segment; nil means all. Fetches of
	// different lists may run at the same time, in any processes that can share the
	// stores (those of this module belong to one process at a time), and never share
	// a queue; By must not be coarser than what the lists were made by. The segment is complete, and can be parsed and updated, when
	// all lists are; the fetch that completes the last puts what all have brought
	// together. A fetch that began with nil must end so. (Nutch has a task for
	// each list.)
	Lists []int

	// NoContent keeps the bodies out of the segment. (Nutch:
	// fetcher.store.content.)
	NoContent bool
	// Sign fingerprints the content of pages that are not parsed while they are
	// fetched, as it came, so that a crawl which never parses knows what has changed.
	// (Nutch: fetcher.signature.)
	Sign bool

	// Sitemaps says how sitemaps are found and read.
	Sitemaps SitemapOptions

	// Now is the time to record; nil means time.Now. Pauses do not depend on it.
	Now func() time.Time
	// OnVisit, if not nil, is told of every visit that is over, from one
	// goroutine. It must return soon.
	OnVisit func(segment.Visit, Progress)
	// Logger hears of what is unusual, and of hosts that the fetch waits for; nil means
	// silence.
	Logger *slog.Logger
}

// Progress is where a fetch stands.
type Progress struct {
	// Listed is the number of URLs on the fetch list that were read so far, Done
	// how many of them are over, Followed how many pages were visited besides.
	Listed, Done, Followed int
	// InFlight counts the visits under way, Hosts the hosts with pages waiting
	// or under way.
	InFlight, Hosts int
}

// Report says what became of a fetch list.
type Report struct {
	// Listed counts the URLs of the list, Resumed those of them that were
	// visited before this run began.
	Listed, Resumed int
	// Outcomes counts the visits of this run by their outcome. (Nutch has a counter
	// for each of its words for them; robots_denied_total is protocol.RobotsDenied,
	// robots_defer_visits_dropped_total protocol.RobotsFailed, errors_total
	// protocol.Failed.)
	Outcomes map[protocol.Code]int
	// Parsed and ParseFailed count the pages that a parser read or could not,
	// ParseCut those of Parsed that it did not read to the end, because of a limit
	// or for lack of time.
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
	// Filtered the URLs of the list that Options.FilterList kept from being visited.
	// (Nutch: outlinks_following_total, filtered_total.)
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
	// Already says that the segment, or every list that was asked for, was complete
	// before.
	Already bool
	// Left counts the lists that are not complete yet: others than those that were
	// asked for. Until it is zero the segment is not complete either.
	Left int
}

// Visits adds up the outcomes.
func (r *Report) Visits() int {
	n := 0
	for _, c := range r.Outcomes {
		n += c
	}
	return n
}

var (
	errNoProtocol = errors.New("fetch: Options.Protocol is required")
	errNoHosts    = errors.New("fetch: Options.Hosts is required")
)

// mostThreads bounds the workers, for whose results there is always room in memory.
const mostThreads = 1 << 14

// withDefaults resolves zero values.
func (o Options) withDefaults() Options {
	if o.Threads <= 0 {
		o.Threads = 50
	}
	o.Threads = min(o.Threads, mostThreads)
	if o.Delay == 0 {
		o.Delay = 5 * time.Second
	}
	o.Delay = max(o.Delay, 0)
	if o.MaxCrawlDelay == 0 {
		o.MaxCrawlDelay = 30 * time.Second
	}
	if o.RobotsWait <= 0 {
		o.RobotsWait = 5 * time.Minute
	}
	if o.MaxWait <= 0 {
		o.MaxWait = 5 * time.Minute
	}
	switch {
	case o.MinDelay == 0:
		o.MinDelay = o.Delay
	case o.MinDelay < 0:
		o.MinDelay = 0
	}
	o.ThreadsPerHost = max(o.ThreadsPerHost, 1)
	if o.SlowVisit <= 0 {
		o.SlowVisit = time.Second
	}
	if o.SpareThreads == 0 {
		o.SpareThreads = 2 * o.Threads
	}
	o.SpareThreads = max(0, min(o.SpareThreads, mostThreads))
	if o.ForgetAfter == 0 {
		o.ForgetAfter = 30 * time.Minute
	}
	if o.MaxFailures == 0 {
		o.MaxFailures = 5
	}
	if o.FollowLinks <= 0 {
		o.FollowLinks = 4
	}
	if o.SlowSeconds <= 0 {
		o.SlowSeconds = 5
	}
	if o.SlowAfter == 0 {
		o.SlowAfter = 5 * time.Minute
	}
	if o.ParseTimeout == 0 {
		o.ParseTimeout = 30 * time.Second
	}
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

// Run visits the pages of a segment that were not visited yet. When its context
// ends it stops soon, keeps what is complete, and returns an error that is
// ctx.Err(); called again, it goes on from there. A segment that is complete is
// left alone. What was fetched without a parser is parsed once there is one.
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

// visited is all that is kept of one visit; the parts a page does not have are
// nil.
type visited struct {
	visit   segment.Visit
	content *page.Content
	text    *segment.Text
	data    *segment.Data
	parse   *segment.Parse
	// list is the fetch list it was on, hop how it came there; nil if it was on it.
	list int
	hop  *hop
	// leads is where it leads: one of the links; nil if nowhere.
	leads *segment.Link
	// What the report counts.
	rejected, cut int
	cause         cause
	sitemap       *SitemapReport
	redirects     Redirects
}

// item is a URL on its way: its record as it was when selected, and what the
// fetch list says of it.
type item struct {
	crawldb.Datum
	list  int
	delay time.Duration
	// unlisted says that it is not on the list.
	unlisted bool
	// rules are not nil if its last turn was used for its robots.txt: they hold for
	// the next, should the pause between be longer than a robots.txt holds.
	rules *robots.Rules
	// hop is not nil for what a redirect led to.
	hop *hop
	// robots is not nil for a robots.txt that has moved to the host; there is no
	// record then.
	robots *robotsHop
}
