package fetch

import (
	"math"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
)

const (
	// grantTime is how long a visit may take before its grant ends by itself, because its
	// process may have died. The visit is cut off a little earlier, after cutAfter.
	grantTime = hostdb.MaxGrant
	cutAfter  = grantTime - 10*time.Second
	// minBackoff is the pause after a first failure if there is no other, and
	// maxBackoff the longest.
	minBackoff = time.Second
	maxBackoff = time.Hour
	// maxRetryAfter limits the pause that a server can ask for.
	maxRetryAfter = 24 * time.Hour
	// firstDownPause is the pause after the first failure beyond MaxFailures. Each further
	// failure makes it half as long again.
	firstDownPause = time.Hour
	maxPause       = 30 * 24 * time.Hour
	goneAfter      = 90 * 24 * time.Hour
	// maxAnsweredFailures is how many failures beyond MaxFailures are counted if the server
	// sends errors, or the queue has other hosts: a pause of 18 hours.
	maxAnsweredFailures = 7
	// grantRetry is the time after which a host is tried again whose grants are all
	// taken: they usually end much sooner than they must.
	grantRetry = 100 * time.Millisecond
)

// terms are the conditions under which a host is visited, robots.txt aside.
type terms struct {
	// limit is how many requests may be under way.
	limit int
	// afterStart is the pause after the beginning of a request, afterEnd that after its
	// end.
	afterStart, afterEnd time.Duration
}

// terms returns those of a host, given the pause that the list requests and the
// Crawl-delay, which implies one request at a time.
func (p *Politeness) terms(asked, crawlDelay time.Duration) terms {
	pause, afterStart := p.pause(asked), time.Duration(0)
	if p.ThreadsPerHost > 1 { // others of its domain or address, without a Crawl-delay, may begin meanwhile
		if afterStart = pause; asked == 0 {
			afterStart = p.MinDelay
		}
	}
	if p.ThreadsPerHost <= 1 || crawlDelay > 0 {
		if crawlDelay > 0 && asked == 0 && p.MinCrawlDelay > 0 {
			pause = p.MinCrawlDelay
		}
		return terms{limit: 1, afterStart: afterStart, afterEnd: max(pause, crawlDelay)}
	}
	return terms{limit: p.ThreadsPerHost, afterStart: afterStart, afterEnd: afterStart}
}

// pause is the pause between two visits to a host, given what the list
// requests.
func (p *Politeness) pause(asked time.Duration) time.Duration {
	if asked != 0 {
		return max(asked, 0)
	}
	return p.Delay
}

// Pause returns the pause between two requests to a host while all is well, given the
// options and its Crawl-delay; zero if there is none.
func (p Politeness) Pause(crawlDelay time.Duration) time.Duration {
	p = p.withDefaults()
	return p.terms(0, p.honouredDelay(crawlDelay)).afterEnd
}

// PerDay returns about how many visits a day a host allows while all is well: one for each
// pause and answer, and no more than HostRule says for the queue that has the name of the
// host. With ThreadsPerHost there may be up to a third more. A closed host counts as one
// that will be open, and one that was never asked as one that answers in a fifth of a
// second.
func (p Politeness) PerDay(h *hostdb.Host) float64 {
	p = p.withDefaults()
	t := p.terms(0, p.honouredDelay(h.CrawlDelay))
	took := h.Elapsed
	if took <= 0 {
		took = 200 * time.Millisecond
	}
	// A request that lasts longer than the pause after its beginning is joined by others.
	// At worst they end as they have begun, and each end makes the next request wait.
	atOnce := t.limit
	if t.afterStart > 0 {
		atOnce = int(min(int64(t.limit), 1+int64(took/t.afterStart)))
	}
	const day = 24 * time.Hour
	most := float64(day) / (float64(t.afterEnd) + float64(took)/float64(atOnce))
	if p.HostRule == nil {
		return most
	}
	rule := p.HostRule(h.Name)
	most *= rule.share()
	if rule.Requests > 0 {
		most = min(most, float64(rule.Requests))
	}
	return most
}

// honouredDelay returns the part of a Crawl-delay that is honoured.
func (p *Politeness) honouredDelay(crawlDelay time.Duration) time.Duration {
	if p.MaxCrawlDelay >= 0 {
		return min(crawlDelay, p.MaxCrawlDelay)
	}
	return crawlDelay
}

// termsOf returns the terms for the record of a host: the longest Crawl-delay of its
// origins applies, as far as it is honoured, and after failures there is one request at
// a time, even when the pause they caused is forgotten.
func (l *loop) termsOf(h *hostdb.Host, r *result) terms {
	t := l.opts.Politeness.terms(r.delay, max(l.opts.Politeness.honouredDelay(h.CrawlDelay), r.crawlDelay))
	if h.Backoff > 0 || l.opts.Politeness.failedTooOften(h) || r.exclusive {
		t.limit = 1
	}
	return t
}

// backoff is the pause of a host that has failed: it doubles with each failure and
// halves with each answer.
func (l *loop) backoff(n int, pause time.Duration) time.Duration {
	if n == 0 || l.opts.Politeness.FailureDelay < 0 {
		return 0
	}
	first := l.opts.Politeness.FailureDelay
	if first == 0 {
		first = max(pause, minBackoff)
	}
	return min(maxBackoff, min(first, maxBackoff)<<min(n-1, 12))
}

// maxDoublings is the maximum number of doublings: from the shortest pause to
// the longest.
const maxDoublings = 13

// failedTooOften reports whether a host has failed so often that rounds skip its pages.
func (p *Politeness) failedTooOften(h *hostdb.Host) bool {
	return p.MaxFailures > 0 && h.Stats.Failures >= int64(p.MaxFailures)
}

// downPause returns the pause of a host that is down, in whole hours, given its failures in a
// row, and for how long it has been down at least: the pauses before. Because each failure
// that counts came after the pause before it, neither a clock that was wrong nor a time
// without any crawl makes them long. Both are zero for a host that is not down.
func (p *Politeness) downPause(failures int64) (pause, been time.Duration) {
	if p.MaxFailures <= 0 || p.MaxPause < firstDownPause {
		return 0, 0
	}
	for n := failures - int64(p.MaxFailures); n > 0; n-- {
		if pause == p.MaxPause {
			return pause, been + pause*time.Duration(min(n, int64((math.MaxInt64-been)/pause)))
		}
		been += pause
		pause = min(max(firstDownPause, (pause+(pause+1)/2).Round(time.Hour)), p.MaxPause)
	}
	return pause, been
}

// downForGood reports whether a host has been down for so long that its pages are gone.
// Failures that may be those of a server that answers, or of one of several hosts, are too
// few.
func (p *Politeness) downForGood(failures int64) bool {
	_, been := p.downPause(failures)
	return p.GoneAfter > 0 && been >= p.GoneAfter && failures > int64(p.MaxFailures)+maxAnsweredFailures
}

// countResponse updates a host's record with a response. together says that another request to
// the host has ended since this one began.
func (p *Politeness) countResponse(h *hostdb.Host, resp *protocol.Response, together bool) {
	s := &h.Stats
	s.Bytes += resp.Bytes
	switch c := resp.Outcome.Code; {
	case c == protocol.Busy || c == protocol.Failed:
		s.Failed++
		h.Backoff = min(h.Backoff+1, maxDoublings)
		if !p.failedTooOften(h) {
			s.Failures++
			return
		}
		// Only a single host that does not answer at all is likely to be down for long.
		if !together {
			s.Failures++
		}
		if resp.Outcome.Status != 0 || p.By != hostdb.ByHost {
			s.Failures = min(s.Failures, int64(p.MaxFailures)+maxAnsweredFailures)
		}
		return
	case c == protocol.Success:
		s.Fetched++
	case c == protocol.NotModified:
		s.NotModified++
	case c.Redirect():
		s.Redirected++
	default:
		s.Gone++
	}
	s.Failures, h.Backoff = 0, max(h.Backoff-1, 0)
}

// wholeMillisecond rounds a time up to the millisecond, the precision at which
// it is kept, so that it is never too early.
func wholeMillisecond(t time.Time) time.Time {
	if ms := t.Truncate(time.Millisecond); ms.Before(t) {
		return ms.Add(time.Millisecond)
	}
	return t
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
