package fetch

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/robots"
	"github.com/recrawl/recrawl/urlfilter"
)

// robotsHop is a robots.txt that has moved: on its way, it takes a turn with
// each host it leads to, in the queue of that host. Meanwhile the pages of home
// wait, but not what else is queued there: two robots.txt that lead to each
// other's hosts do not wait for each other.
type robotsHop struct {
	asking *robots.Asking
	home   *host
	// end says why no further request may be made; empty if one may.
	end string
	// asked says that the rules for Next were requested.
	asked bool
}

// askRobots uses the turn for robots.txt; the page waits for the next one, or
// for the file to which that leads.
func (l *loop) askRobots(ctx context.Context, r *result) {
	r.exclusive = true // another request would fetch the file, too
	if !l.takeGrant(ctx, r) {
		return
	}
	hop := &robotsHop{asking: l.o.Robots.Ask(r.it.URL), home: r.h}
	if l.stepRobots(ctx, r, hop.asking); r.err != nil {
		return
	}
	if l.admit(hop.asking); hop.asking.Next() != "" {
		r.robotsHop = hop
		return
	}
	rules := hop.asking.Rules()
	if r.it.rules = rules; !rules.Unavailable && !rules.Allowed(r.it.URL) || l.tooSlow(rules) {
		r.at = r.claimed // the page is not requested, so it need not wait
	}
}

// tooSlow reports whether a host asks for a longer Crawl-delay than is honoured.
func (l *loop) tooSlow(rules *robots.Rules) bool {
	return l.o.Politeness.MaxCrawlDelay >= 0 && rules.CrawlDelay > l.o.Politeness.MaxCrawlDelay
}

// followRobots uses the turn with a host to which a robots.txt has led.
func (l *loop) followRobots(ctx context.Context, r *result) {
	hop := r.it.robots
	a := hop.asking
	if hop.end != "" {
		a.GiveUp(hop.end)
	} else if _, r.err = a.Cached(ctx); r.err != nil {
		return
	}
	if a.Next() != "" && a.NextElsewhere() && !a.NextIsFile() {
		// The file is a page like any other: the robots.txt of its own host decides,
		// and if that has moved, it is not followed.
		rules, known, err := l.o.Robots.Cached(ctx, a.Next())
		switch {
		case err != nil:
			r.err = err
			return
		case !known && hop.asked, known && rules.Unavailable:
			a.GiveUp(leads(a) + ", whose own robots.txt is unavailable")
		case !known:
			if !l.takeGrant(ctx, r) {
				return
			}
			hop.asked = true
			l.stepRobots(ctx, r, l.o.Robots.Ask(a.Next()))
			return
		case !rules.Allowed(a.Next()):
			a.GiveUp(leads(a) + ", which the robots.txt there does not allow")
		case l.tooSlow(rules):
			a.GiveUp(fmt.Sprintf("%s, where a Crawl-delay of %v is more than %v", leads(a), rules.CrawlDelay, l.o.Politeness.MaxCrawlDelay))
		default:
			r.crawlDelay = rules.CrawlDelay
		}
	}
	if a.Next() != "" {
		if !l.takeGrant(ctx, r) {
			return
		}
		if l.stepRobots(ctx, r, a); r.err != nil {
			return
		}
		hop.asked = false
		l.admit(a)
	}
	if rules := a.Rules(); rules != nil && hop.home != r.h {
		r.err = l.putOff(ctx, hop.home.name, l.o.Politeness.honouredDelay(rules.CrawlDelay))
	}
	r.robotsHop = hop
}

// stepRobots makes one request for a robots.txt in a claimed turn, and ends the
// turn.
func (l *loop) stepRobots(ctx context.Context, r *result, a *robots.Asking) {
	r.robots = true
	err := a.Step(ctx)
	rules := a.Rules()
	if err == nil && rules != nil {
		r.crawlDelay = max(r.crawlDelay, l.o.Politeness.honouredDelay(rules.CrawlDelay))
	}
	if rules == nil || !rules.Unavailable { // otherwise there is nothing to be requested sooner
		r.robotsRetryAfter = a.RetryAfter()
	}
	if l.releaseGrant(ctx, r, nil); err != nil {
		r.err = err
	}
}

// putOff ensures a pause after the last request to a host, when the pause was
// not known at that time.
func (l *loop) putOff(ctx context.Context, name string, pause time.Duration) error {
	if name == "" || pause <= 0 {
		return nil
	}
	return l.o.Hosts.Update(ctx, name, func(old *hostdb.Host) (*hostdb.Host, error) {
		if old == nil || old.LastFetch.IsZero() || !old.LastFetch.Add(pause).After(old.NextFetch) {
			return old, nil
		}
		h := *old
		h.NextFetch = h.LastFetch.Add(pause)
		return &h, nil
	})
}

// admit applies the rules of the crawl to where a robots.txt leads, as to the
// target of any redirect. If that is the robots.txt of its origin, to which
// rules for pages do not apply, those for its start page decide.
func (l *loop) admit(a *robots.Asking) {
	next := a.Next()
	if next == "" {
		return
	}
	page := next
	if a.NextIsFile() {
		u, err := url.Parse(next)
		if err != nil {
			a.GiveUp(leads(a) + ", which is not a URL")
			return
		}
		u.Path, u.RawPath = "/", ""
		page = u.String()
	}
	r := l.o.reader()
	to, ok := "", !r.tooLong(len(page))
	if ok {
		to, ok = r.rules(urlfilter.Fetcher, page)
	}
	if !ok || to == "" {
		a.GiveUp(leads(a) + ", which the rules reject")
		return
	}
	if page == next {
		a.SetNext(to)
	}
}

func leads(a *robots.Asking) string { return "robots.txt leads to " + oneLine(a.Next()) }

// moveRobots moves a robots.txt to the queue of the host to which it leads, or
// lets the pages that waited for it continue.
func (l *loop) moveRobots(hop *robotsHop) {
	home := hop.home
	if next := hop.asking.Next(); next != "" {
		home.awaitsRobots = true
		l.queues.addRobots(l.queueOf(next), item{robots: hop})
		return
	}
	home.awaitsRobots = false
	l.queues.enqueue(home)
}

// endRobots gives up on a robots.txt at a skipped host. The result is recorded
// in the queue it came from.
func (l *loop) endRobots(hop *robotsHop, reason string) {
	hop.end = leads(hop.asking) + ", but " + reason
	l.queues.addRobots(hop.home.name, item{robots: hop})
}
