package fetch

import (
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// Causes counts the reasons why pages were not visited or visits failed.
type Causes struct {
	// HostFails counts the pages skipped because their host failed too often
	// (MaxFailures), HostWaits those skipped because they would have had to wait
	// too long (MaxWait, daily limits and hours). (Nutch:
	// above_exception_threshold_total.)
	HostFails, HostWaits int
	// CrawlDelay counts the pages denied because of a Crawl-delay above
	// MaxCrawlDelay. (Nutch: robots_denied_maxcrawldelay_total.)
	CrawlDelay int
	// Failed counts failed visits by the first word of the reason: "dns", "connect",
	// "tls", "timeout", "http", "body" for visits by httpproto; "status" is an answer
	// such as 500, and "other" a reason without such a word. (Nutch:
	// errors_network_total, errors_timeout_total and others.)
	Failed map[string]int
}

// cause is the reason why a page was not visited.
type cause uint8

const (
	noCause cause = iota
	hostFails
	hostWaits
	crawlDelay
)

// maxWords limits how many words for failures are counted separately.
const maxWords = 32

func (c *Causes) count(v *visitResult) {
	switch v.cause {
	case hostFails:
		c.HostFails++
	case hostWaits:
		c.HostWaits++
	case crawlDelay:
		c.CrawlDelay++
	}
	o := &v.visit.Outcome
	if o.Code != protocol.Failed {
		return
	}
	word, _, ok := strings.Cut(o.Reason, ":")
	switch {
	case o.Status >= 400:
		word = "status"
	case !ok || word == "" || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") != "":
		word = "other"
	}
	if _, known := c.Failed[word]; !known && len(c.Failed) >= maxWords {
		word = "other"
	}
	if c.Failed == nil {
		c.Failed = map[string]int{}
	}
	c.Failed[word]++
}

// count adds a visit to the report.
func (rep *Report) count(v *visitResult) {
	rep.Visits[v.visit.Outcome.Code]++
	rep.Bytes += v.visit.Bytes
	rep.Causes.count(v)
	if v.visit.Outcome.Code.Asked() {
		rep.Latency.add(v.visit.Elapsed)
	}
	rep.LinksRejected += v.rejected
	rep.LinksCut += v.cut
	if v.sitemap != nil {
		rep.Sitemaps.Add(*v.sitemap)
	}
	rep.Redirects.Add(v.redirects)
	if v.visit.Via != "" {
		rep.Redirects.Followed++
	}
	if v.parse != nil {
		rep.Links += len(v.parse.Links)
		if v.parse.Error != "" {
			rep.ParseFailed++
		} else if v.data != nil {
			rep.Parsed++
			if v.data.Parsed.Truncated {
				rep.ParseCut++
			}
		}
	}
}

// maxRefusedSeeds is how many seeds a report names.
const maxRefusedSeeds = 100

// noteRefusal records a visit that was not made because that is forbidden, if the page, whose
// record is given, is a seed.
func (rep *Report) noteRefusal(d *crawldb.Datum, v *segment.Visit) {
	if d.IsSeed() && len(rep.RefusedSeeds) < maxRefusedSeeds {
		rep.RefusedSeeds = append(rep.RefusedSeeds, *v)
	}
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
	// RefusedSeeds are the visits to seeds that were not made because a rule of ours or
	// robots.txt forbids them: the first hundred of this run.
	RefusedSeeds []segment.Visit
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
	// Ended counts those that were left because Options.Limits.End was closed.
	Ended int
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
