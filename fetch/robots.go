package fetch

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/urlfilter"
)

// robotsMove is a robots.txt that has moved: on its way, it needs a grant of
// each host it leads to, in the queue of that host. Meanwhile the pages of home
// wait, but not what else is queued there: two robots.txt that lead to each
// other's hosts do not wait for each other.
type robotsMove struct {
	fetch *robots.Fetch
	home  *host
	// giveUpReason says why no further request may be made; empty if one may.
	giveUpReason string
	// askedNextRules says that the rules for Next were requested.
	askedNextRules bool
}

// fetchRobots uses a grant for robots.txt; the page waits for the next one, or
// for the file to which that leads.
func (l *loop) fetchRobots(ctx context.Context, r *result) {
	r.exclusive = true // another request would fetch the file, too
	if !l.takeGrant(ctx, r) {
		return
	}
	move := &robotsMove{fetch: l.opts.Robots.BeginFetch(r.item.URL), home: r.host}
	if l.requestRobots(ctx, r, move.fetch); r.err != nil {
		return
	}
	if l.checkRobotsRedirect(move.fetch); move.fetch.Next() != "" {
		r.robotsMove = move
		return
	}
	rules := move.fetch.Rules()
	if r.item.rules = rules; !rules.Unavailable && !rules.Allowed(r.item.URL) || l.tooSlow(rules) {
		r.nextVisit = r.grantedAt // the page is not requested, so it need not wait
	}
}

// tooSlow reports whether a host asks for a longer Crawl-delay than is honoured.
func (l *loop) tooSlow(rules *robots.Rules) bool {
	return l.opts.Politeness.MaxCrawlDelay >= 0 && rules.CrawlDelay > l.opts.Politeness.MaxCrawlDelay
}

// continueRobots requests a robots.txt from the host to which it has moved.
func (l *loop) continueRobots(ctx context.Context, r *result) {
	move := r.item.robots
	a := move.fetch
	if move.giveUpReason != "" {
		a.GiveUp(move.giveUpReason)
	} else if _, r.err = a.UseCached(ctx); r.err != nil {
		return
	}
	if a.Next() != "" && a.NextElsewhere() && !a.NextIsFile() {
		// The file is a page like any other: the robots.txt of its own host decides,
		// and if that has moved, it is not followed.
		rules, known, err := l.opts.Robots.Cached(ctx, a.Next())
		switch {
		case err != nil:
			r.err = err
			return
		case !known && move.askedNextRules, known && rules.Unavailable:
			a.GiveUp(robotsLeadsTo(a) + ", whose own robots.txt is unavailable")
		case !known:
			if !l.takeGrant(ctx, r) {
				return
			}
			move.askedNextRules = true
			l.requestRobots(ctx, r, l.opts.Robots.BeginFetch(a.Next()))
			return
		case !rules.Allowed(a.Next()):
			a.GiveUp(robotsLeadsTo(a) + ", which the robots.txt there does not allow")
		case l.tooSlow(rules):
			a.GiveUp(fmt.Sprintf("%s, where a Crawl-delay of %v is more than %v", robotsLeadsTo(a), rules.CrawlDelay, l.opts.Politeness.MaxCrawlDelay))
		default:
			r.crawlDelay = rules.CrawlDelay
		}
	}
	if a.Next() != "" {
		if !l.takeGrant(ctx, r) {
			return
		}
		if l.requestRobots(ctx, r, a); r.err != nil {
			return
		}
		move.askedNextRules = false
		l.checkRobotsRedirect(a)
	}
	if rules := a.Rules(); rules != nil && move.home != r.host {
		r.err = l.pauseAfterLast(ctx, move.home.name, l.opts.Politeness.honouredDelay(rules.CrawlDelay))
	}
	r.robotsMove = move
}

// requestRobots makes one request for a robots.txt under a grant, and releases it.
func (l *loop) requestRobots(ctx context.Context, r *result, a *robots.Fetch) {
	r.robots = true
	err := a.Step(ctx)
	rules := a.Rules()
	if err == nil && rules != nil {
		r.crawlDelay = max(r.crawlDelay, l.opts.Politeness.honouredDelay(rules.CrawlDelay))
	}
	if rules == nil || !rules.Unavailable { // otherwise there is nothing to be requested sooner
		r.robotsRetryAfter = a.RetryAfter()
	}
	if l.releaseGrant(ctx, r, nil); err != nil {
		r.err = err
	}
}

// pauseAfterLast ensures a pause after the last request to a host, when the pause was
// not known at that time.
func (l *loop) pauseAfterLast(ctx context.Context, name string, pause time.Duration) error {
	if name == "" || pause <= 0 {
		return nil
	}
	return l.opts.Hosts.Update(ctx, name, func(old *hostdb.Host) (*hostdb.Host, error) {
		if old == nil || old.LastFetch.IsZero() || !old.LastFetch.Add(pause).After(old.NextFetch) {
			return old, nil
		}
		h := *old
		h.NextFetch = h.LastFetch.Add(pause)
		return &h, nil
	})
}

// checkRobotsRedirect applies the rules of the crawl to where a robots.txt leads, as to the
// target of any redirect. If that is the robots.txt of its origin, to which
// rules for pages do not apply, those for its start page decide.
func (l *loop) checkRobotsRedirect(a *robots.Fetch) {
	next := a.Next()
	if next == "" {
		return
	}
	page := next
	if a.NextIsFile() {
		u, err := url.Parse(next)
		if err != nil {
			a.GiveUp(robotsLeadsTo(a) + ", which is not a URL")
			return
		}
		u.Path, u.RawPath = "/", ""
		page = u.String()
	}
	r := l.opts.contentReader()
	to, ok := "", !r.tooLong(len(page))
	if ok {
		to, ok = r.rules(urlfilter.Fetcher, page)
	}
	if !ok || to == "" {
		a.GiveUp(robotsLeadsTo(a) + ", which the rules reject")
		return
	}
	if page == next {
		a.SetNext(to)
	}
}

func robotsLeadsTo(a *robots.Fetch) string { return "robots.txt leads to " + oneLine(a.Next()) }

// moveRobots moves a robots.txt to the queue of the host to which it leads, or
// lets the pages that waited for it continue.
func (l *loop) moveRobots(move *robotsMove) {
	home := move.home
	if next := move.fetch.Next(); next != "" {
		home.awaitsRobots = true
		l.queues.addRobots(l.queueOf(next), item{robots: move})
		return
	}
	home.awaitsRobots = false
	l.queues.enqueue(home)
}

// abandonRobots gives up on a robots.txt at a skipped host. The result is recorded
// in the queue it came from.
func (l *loop) abandonRobots(move *robotsMove, reason string) {
	move.giveUpReason = robotsLeadsTo(move.fetch) + ", but " + reason
	l.queues.addRobots(move.home.name, item{robots: move})
}
