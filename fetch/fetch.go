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
	"context"
	"fmt"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/robots"
	"github.com/recrawl/recrawl/segment"
)

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
	// Options.Limits.TimeLimit or MinRate. (Nutch: hit_by_timelimit_total,
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
	r, err := fetchSegment(ctx, segments, name, o.withDefaults())
	if err != nil {
		err = fmt.Errorf("fetch %s: %w", name, err)
	}
	return r, err
}

// visited is everything kept of one visit; parts that a page does not have are
// nil.
type visitResult struct {
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
	target *segment.Link
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
