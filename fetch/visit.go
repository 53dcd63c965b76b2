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
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/segment"
)

// work does one job under a grant of a host: it visits a page, or requests robots.txt, or
// finds that nothing has to be requested.
func (l *loop) work(ctx context.Context, j job, results chan<- result) (r result) {
	r = result{job: j, nextVisit: time.Now()}
	url := j.item.URL
	defer func() {
		if p := recover(); p != nil { // a panic in a worker would end the process
			l.opts.Logger.Error("fetch: a policy panicked", "url", url, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			r.out, r.err = nil, fmt.Errorf("%s: a host rule or another policy panicked: %v", url, p)
		}
	}()
	if err := ctx.Err(); err != nil {
		r.err = err
		return r
	}
	if l.needsLookup(j.host.name) {
		l.resolve(ctx, &r)
		return r
	}
	if j.item.robots != nil {
		l.continueRobots(ctx, &r)
		return r
	}
	rules, ask := l.checkRobots(ctx, &r)
	defer func() { l.addRobotsSitemaps(&r, rules) }()
	if !ask {
		return r
	}
	release, ok := l.acquireSitemap(&j.item.Datum)
	if !ok {
		r.requeueLast, r.nextVisit = true, r.nextVisit.Add(sitemapWait)
		return r
	}
	defer release()
	if !l.takeGrant(ctx, &r) {
		return r
	}
	req := l.newRequest(&j.item.Datum)
	resp, err := l.requestPage(ctx, req)
	if err != nil {
		l.releaseGrant(ctx, &r, nil)
		r.err = fmt.Errorf("%s: %w", url, err)
		return r
	}
	if resp.Unanswered && !r.item.repeated {
		r.item.repeated = true
		l.releaseGrant(ctx, &r, nil)
		return r
	}
	if l.releaseGrant(ctx, &r, &resp); r.err != nil {
		return r
	}
	if l.tagChanged(&r.item.Datum, req, &resp) {
		return r
	}
	// The grant has ended: the host need not wait for the parser.
	granted := r
	granted.grantOver = true
	results <- granted
	r.parsedLater = true
	r.out = l.resultOf(ctx, j, resp)
	if ctx.Err() != nil { // a parser may have been cut short
		r.out, r.err = nil, ctx.Err()
	}
	return r
}

// checkRobots looks up what robots.txt says about a page, and reports whether the page may
// be requested now. If not, it records what happens instead; a grant may have been
// used for the file. The rules are nil if they are unknown or not needed.
func (l *loop) checkRobots(ctx context.Context, r *result) (rules *robots.Rules, ask bool) {
	if l.opts.Politeness.NoRobots {
		return nil, true
	}
	j := r.job
	rules, known, err := l.opts.Robots.Cached(ctx, j.item.URL)
	if err == nil && !known && j.item.rules != nil && !j.item.rules.Unavailable {
		rules, known = j.item.rules, true
	}
	switch {
	case err != nil:
		r.err = err
	case !known:
		l.fetchRobots(ctx, r)
	case rules.Refused:
		r.out = l.notVisited(j, protocol.Refused, rules.Reason)
	case rules.Unavailable && j.robotsWaits < l.opts.Politeness.RobotsRetries:
		r.awaitsRobots, r.pause, r.nextVisit = true, l.opts.Politeness.RobotsWait, r.nextVisit.Add(l.opts.Politeness.RobotsWait)
	case rules.Unavailable:
		reason := "robots.txt is unavailable"
		if rules.Reason != "" {
			reason += ": " + rules.Reason
		}
		r.out = l.notVisited(j, protocol.RobotsFailed, reason)
	case !rules.Allowed(j.item.URL):
		r.out = l.notVisited(j, protocol.RobotsDenied, "robots.txt")
	case l.tooSlow(rules):
		r.out = l.notVisited(j, protocol.RobotsDenied, fmt.Sprintf("Crawl-delay of %v is more than %v", rules.CrawlDelay, l.opts.Politeness.MaxCrawlDelay))
		r.out.cause = crawlDelay
	default:
		r.crawlDelay = rules.CrawlDelay
		return rules, true
	}
	return rules, false
}

// notVisited is the outcome of a visit that is not made.
func (l *loop) notVisited(j job, code protocol.Code, reason string) *visitResult {
	v := l.outcomeOnly(j.item, code, reason)
	if l.opts.Parser != nil {
		l.opts.contentReader().read(context.Background(), v, &j.item.Datum, nil) // there is no content, so nothing that takes time
	}
	return v
}

func (l *loop) outcomeOnly(it item, code protocol.Code, reason string) *visitResult {
	v := &visitResult{list: it.list, hop: it.hop, visit: it.visit()}
	v.visit.Time, v.visit.Outcome = l.opts.Now(), protocol.Outcome{Code: code, Reason: reason}
	return v
}

// requestPage calls the protocol, and turns its panic into a failed visit.
func (l *loop) requestPage(ctx context.Context, req protocol.Request) (resp protocol.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.opts.Logger.Error("fetch: protocol panicked", "url", req.URL, "panic", fmt.Sprint(p))
			resp, err = protocol.Response{Outcome: protocol.Outcome{Code: protocol.Failed, Reason: "the protocol panicked"}}, nil
		}
	}()
	limited, cancel := context.WithTimeout(ctx, cutAfter)
	defer cancel()
	resp, err = l.opts.Protocol.Fetch(limited, req)
	if err != nil && ctx.Err() == nil && limited.Err() != nil { // a protocol without a limit of its own
		resp, err = protocol.Response{Outcome: protocol.Outcome{Code: protocol.Failed, Reason: fmt.Sprintf("the visit took longer than %v", cutAfter)}}, nil
	}
	return resp, err
}

// resultOf turns a response into what the segment keeps.
func (l *loop) resultOf(ctx context.Context, j job, resp protocol.Response) *visitResult {
	c := resp.Content
	c.URL, c.Time = j.item.URL, l.opts.Now()
	v := &visitResult{list: j.item.list, hop: j.item.hop, visit: j.item.visit()}
	v.visit.Time, v.visit.Outcome = c.Time, resp.Outcome
	v.visit.ETag, v.visit.LastModified, v.visit.Modified = resp.ETag, resp.LastModified, resp.Modified
	v.visit.Truncated, v.visit.Bytes, v.visit.Elapsed = c.Truncated, resp.Bytes, resp.Elapsed
	if code := resp.Outcome.Code; code == protocol.Success || code.Redirect() && l.opts.NutchCompat && c.Type != "" {
		v.visit.ContentType = parse.MediaType(&c)
	}
	if l.opts.Parser != nil {
		l.opts.contentReader().read(ctx, v, &j.item.Datum, &c)
	} else {
		l.opts.contentReader().sign(v, &c)
	}
	if resp.Outcome.Code == protocol.Success && !l.opts.NoContent && (v.parse == nil || !v.parse.Sitemap || l.opts.Sitemaps.KeepContent) {
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
	// repeated says that the page was requested over a connection that the server closed.
	repeated bool
	// rules are set if the last grant was used for robots.txt: they apply to the
	// next one, even if the pause in between is longer than a robots.txt is
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
	if r.item.unlisted {
		if r.out.visit.Outcome.Code.Deferred() {
			if r.item.hop != nil {
				l.report.Redirects.Waiting++
			}
			return
		}
		l.report.Followed++
	}
	if code := r.out.visit.Outcome.Code; !code.Asked() && !code.Deferred() {
		l.report.noteRefusal(&r.item.Datum, &r.out.visit)
	}
	l.finish(r.out)
	if l.follower.depth > 0 {
		l.follower.addPage(r.item.URL, l.toFollow(r.out.parse), item{Datum: crawldb.Datum{URL: r.item.URL}, list: r.item.list, delay: r.item.delay})
	}
}
