package fetch

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/robots"
	"github.com/recrawl/recrawl/segment"
)

// work takes a turn with one host: it visits a page, or requests robots.txt, or
// finds that there is nothing to request.
func (l *loop) work(ctx context.Context, j job, results chan<- result) (r result) {
	r = result{job: j, at: time.Now()}
	url := j.it.URL
	defer func() {
		if p := recover(); p != nil { // nobody else could
			l.o.Logger.Error("fetch: a policy panicked", "url", url, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			r.out, r.err = nil, fmt.Errorf("%s: a host rule or another policy panicked: %v", url, p)
		}
	}()
	if err := ctx.Err(); err != nil {
		r.err = err
		return r
	}
	if l.needsLookup(j.h.name) {
		l.resolve(ctx, &r)
		return r
	}
	if j.it.robots != nil {
		l.continueRobots(ctx, &r)
		return r
	}
	rules, ask := l.checkRobots(ctx, &r)
	defer func() { l.addRobotsSitemaps(&r, rules) }()
	if !ask {
		return r
	}
	leave, ok := l.acquireSitemap(&j.it.Datum)
	if !ok {
		r.requeueLast, r.at = true, r.at.Add(sitemapWait)
		return r
	}
	defer leave()
	if !l.takeGrant(ctx, &r) {
		return r
	}
	req := l.newRequest(&j.it.Datum)
	resp, err := l.requestPage(ctx, req)
	if err != nil {
		l.releaseGrant(ctx, &r, nil)
		r.err = fmt.Errorf("%s: %w", url, err)
		return r
	}
	if l.releaseGrant(ctx, &r, &resp); r.err != nil {
		return r
	}
	if l.tagChanged(&r.it.Datum, req, &resp) {
		return r
	}
	// The turn is over: the host need not wait for the parser.
	turn := r
	turn.grantOver = true
	results <- turn
	r.parsedLater = true
	r.out = l.resultOf(ctx, j, resp)
	if ctx.Err() != nil { // a parser may have been cut short
		r.out, r.err = nil, ctx.Err()
	}
	return r
}

// checkRobots looks up what robots.txt says about a page, and reports whether the page may
// be requested in this turn. If not, it records what happens instead; the turn may
// have been used for the file. The rules are nil if they are unknown or not needed.
func (l *loop) checkRobots(ctx context.Context, r *result) (rules *robots.Rules, ask bool) {
	if l.o.Politeness.NoRobots {
		return nil, true
	}
	j := r.job
	rules, known, err := l.o.Robots.Cached(ctx, j.it.URL)
	if err == nil && !known && j.it.rules != nil && !j.it.rules.Unavailable {
		rules, known = j.it.rules, true
	}
	switch {
	case err != nil:
		r.err = err
	case !known:
		l.fetchRobots(ctx, r)
	case rules.Refused:
		r.out = l.notVisited(j, protocol.Refused, rules.Reason)
	case rules.Unavailable && j.robotsWaits < l.o.Politeness.RobotsRetries:
		r.awaitsRobots, r.pause, r.at = true, l.o.Politeness.RobotsWait, r.at.Add(l.o.Politeness.RobotsWait)
	case rules.Unavailable:
		reason := "robots.txt is unavailable"
		if rules.Reason != "" {
			reason += ": " + rules.Reason
		}
		r.out = l.notVisited(j, protocol.RobotsFailed, reason)
	case !rules.Allowed(j.it.URL):
		r.out = l.notVisited(j, protocol.RobotsDenied, "robots.txt")
	case l.tooSlow(rules):
		r.out = l.notVisited(j, protocol.RobotsDenied, fmt.Sprintf("Crawl-delay of %v is more than %v", rules.CrawlDelay, l.o.Politeness.MaxCrawlDelay))
		r.out.cause = crawlDelay
	default:
		r.crawlDelay = rules.CrawlDelay
		return rules, true
	}
	return rules, false
}

// notVisited is the outcome of a visit that is not made.
func (l *loop) notVisited(j job, code protocol.Code, reason string) *visitResult {
	v := l.outcomeOnly(j.it, code, reason)
	if l.o.Parser != nil {
		l.o.reader().read(context.Background(), v, &j.it.Datum, nil) // there is no content, so nothing that takes time
	}
	return v
}

func (l *loop) outcomeOnly(it item, code protocol.Code, reason string) *visitResult {
	v := &visitResult{list: it.list, hop: it.hop, visit: it.visit()}
	v.visit.Time, v.visit.Outcome = l.o.Now(), protocol.Outcome{Code: code, Reason: reason}
	return v
}

// requestPage calls the protocol, and turns its panic into a failed visit.
func (l *loop) requestPage(ctx context.Context, req protocol.Request) (resp protocol.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.o.Logger.Error("fetch: protocol panicked", "url", req.URL, "panic", fmt.Sprint(p))
			resp, err = protocol.Response{Outcome: protocol.Outcome{Code: protocol.Failed, Reason: "the protocol panicked"}}, nil
		}
	}()
	limited, cancel := context.WithTimeout(ctx, cutAfter)
	defer cancel()
	resp, err = l.o.Protocol.Fetch(limited, req)
	if err != nil && ctx.Err() == nil && limited.Err() != nil { // a protocol without a limit of its own
		resp, err = protocol.Response{Outcome: protocol.Outcome{Code: protocol.Failed, Reason: fmt.Sprintf("the visit took longer than %v", cutAfter)}}, nil
	}
	return resp, err
}

// resultOf turns a response into what the segment keeps.
func (l *loop) resultOf(ctx context.Context, j job, resp protocol.Response) *visitResult {
	c := resp.Content
	c.URL, c.Time = j.it.URL, l.o.Now()
	v := &visitResult{list: j.it.list, hop: j.it.hop, visit: j.it.visit()}
	v.visit.Time, v.visit.Outcome = c.Time, resp.Outcome
	v.visit.ETag, v.visit.LastModified, v.visit.Modified = resp.ETag, resp.LastModified, resp.Modified
	v.visit.Truncated, v.visit.Bytes, v.visit.Elapsed = c.Truncated, resp.Bytes, resp.Elapsed
	if code := resp.Outcome.Code; code == protocol.Success || code.Redirect() && l.o.NutchCompat && c.Type != "" {
		v.visit.ContentType = parse.MediaType(&c)
	}
	if l.o.Parser != nil {
		l.o.reader().read(ctx, v, &j.it.Datum, &c)
	} else {
		l.o.reader().sign(v, &c)
	}
	if resp.Outcome.Code == protocol.Success && !l.o.NoContent && (v.parse == nil || !v.parse.Sitemap || l.o.Sitemaps.KeepContent) {
		v.content = &c
	}
	return v
}

// visitResult is everything kept of one visit; parts that a page does not have are
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
	// target is where the page leads: one of the links; nil if nowhere.
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
	robots *robotsMove
}

// keep keeps a visit, and follows the links of the page.
func (l *loop) keep(r *result) {
	if r.it.unlisted {
		if r.out.visit.Outcome.Code.Deferred() {
			if r.it.hop != nil {
				l.report.Redirects.Waiting++
			}
			return
		}
		l.report.Followed++
	}
	l.finish(r.out)
	if l.follower.depth > 0 {
		l.follower.addPage(r.it.URL, l.toFollow(r.out.parse), item{Datum: crawldb.Datum{URL: r.it.URL}, list: r.it.list, delay: r.it.delay})
	}
}
