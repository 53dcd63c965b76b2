package fetch

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/grace"
	"github.com/recrawl/recrawl/protocol"
)

const (
	// claimFor is how long a visit may take before others may take its owner
	// for dead; it is cut off a little earlier.
	grantTime = hostdb.MaxGrant
	cutAfter = grantTime - 10*time.Second
	// minBackoff is the pause after a first failure if there is no other, and
	// maxBackoff the longest.
	minBackoff = time.Second
	maxBackoff = time.Hour
	// maxRetryAfter limits the pause that a server can ask for.
	maxRetryAfter = 24 * time.Hour
	// downPause is the pause after the first failure beyond MaxFailures. Each further
	// failure makes it half as long again.
	firstDownPause = time.Hour
	maxPause  = 30 * 24 * time.Hour
	goneAfter = 90 * 24 * time.Hour
	// answersCount is how many failures beyond MaxFailures are counted if the server
	// sends errors, or the queue has other hosts: a pause of 18 hours.
	maxAnsweredFailures = 7
	// askAgain is when to check again a host whose turns are taken: they are
	// usually given back much sooner than they must.
	grantRetry = 100 * time.Millisecond
)

// terms are the conditions under which a host is visited, robots.txt aside.
type terms struct {
	// limit is how many requests may be under way.
	limit int
	// begun is the pause after the beginning of a request, ended that after its
	// end.
	afterStart, afterEnd time.Duration
}

// terms returns those of a host, given the pause that the list requests and the
// Crawl-delay, which implies one request at a time.
func (o *Options) terms(asked, crawlDelay time.Duration) terms {
	pause, begun := o.pause(asked), time.Duration(0)
	if o.Politeness.ThreadsPerHost > 1 { // others of its domain or address, without a Crawl-delay, may begin meanwhile
		if begun = pause; asked == 0 {
			begun = o.Politeness.MinDelay
		}
	}
	if o.Politeness.ThreadsPerHost <= 1 || crawlDelay > 0 {
		if crawlDelay > 0 && asked == 0 && o.Politeness.MinCrawlDelay > 0 {
			pause = o.Politeness.MinCrawlDelay
		}
		return terms{limit: 1, afterStart: begun, afterEnd: max(pause, crawlDelay)}
	}
	return terms{limit: o.Politeness.ThreadsPerHost, afterStart: begun, afterEnd: begun}
}

// pause is the pause between two visits to a host, given what the list
// requests.
func (o *Options) pause(asked time.Duration) time.Duration {
	if asked != 0 {
		return max(asked, 0)
	}
	return o.Politeness.Delay
}

// Pause returns the pause between two requests to a host while all is well, given the
// options and its Crawl-delay; zero if there is none.
func (o Options) Pause(crawlDelay time.Duration) time.Duration {
	o = o.withDefaults()
	return o.terms(0, o.honouredDelay(crawlDelay)).afterEnd
}

// PerDay returns about how many visits a day a host allows while all is well: one for each
// pause and answer, and no more than HostRule says for the queue that has the name of the
// host. With ThreadsPerHost there may be up to a third more. A closed host counts as one
// that will be open, and one that was never asked as one that answers in a fifth of a
// second.
func (o Options) PerDay(h *hostdb.Host) float64 {
	o = o.withDefaults()
	t := o.terms(0, o.honouredDelay(h.CrawlDelay))
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
	if o.Politeness.HostRule == nil {
		return most
	}
	rule := o.Politeness.HostRule(h.Name)
	most *= rule.share()
	if rule.Requests > 0 {
		most = min(most, float64(rule.Requests))
	}
	return most
}

// honoured returns the part of a Crawl-delay that is honoured.
func (o *Options) honouredDelay(crawlDelay time.Duration) time.Duration {
	if o.Politeness.MaxCrawlDelay >= 0 {
		return min(crawlDelay, o.Politeness.MaxCrawlDelay)
	}
	return crawlDelay
}

// termsOf returns the terms for the record of a host: the longest Crawl-delay of its
// origins applies, as far as it is honoured, and after failures there is one request at
// a time, even when the pause they caused is forgotten.
func (l *loop) termsOf(h *hostdb.Host, r *result) terms {
	t := l.o.terms(r.delay, max(l.o.honouredDelay(h.CrawlDelay), r.crawlDelay))
	if h.Backoff > 0 || l.o.failedTooOften(h) || r.exclusive {
		t.limit = 1
	}
	return t
}

// claim takes a turn with a host. If all are taken, or it is too early, it
// records when to try again, and whether waiting is worthwhile.
func (l *loop) takeGrant(ctx context.Context, r *result) (mine bool) {
	r.claimed = time.Now()
	if r.h.name == "" { // no host, no politeness: a file
		return true
	}
	err := l.o.Hosts.Update(ctx, r.h.name, func(old *hostdb.Host) (*hostdb.Host, error) {
		// Not earlier: a worker that waited for the store must not take requests
		// that went first for future ones, nor the host for slow.
		now := time.Now()
		r.claimed = now
		var h hostdb.Host
		if old != nil {
			h = *old
		}
		wrong := correctClock(&h, now)
		r.newPace = r.pace
		h.Busy = slices.DeleteFunc(slices.Clone(h.Busy), func(end time.Time) bool { return !end.After(now) })
		if l.o.Politeness.ForgetAfter >= 0 && h.Backoff > 0 && now.After(h.NextFetch.Add(l.o.Politeness.ForgetAfter)) {
			h.Backoff = 0
		}
		t := l.termsOf(&h, r)
		r.limit, r.pause, r.why = t.limit, t.afterEnd, verdict{}
		r.at, r.allGranted, r.failures = later(h.NextFetch, now), len(h.Busy) >= t.limit, 0
		if r.allGranted {
			r.at = later(r.at, now.Add(grantRetry))
		}
		if l.o.Politeness.HostRule != nil {
			rule := l.o.Politeness.HostRule(r.h.name)
			if at, why := rule.next(h.Spent, r.at); at.After(r.at) {
				why.retryAfter = at.Sub(now)
				r.at, r.why = at, why
			}
		}
		if !r.at.After(now) && r.pace != slow && r.pace != quick && l.threads.spare > 0 && h.Elapsed >= l.o.SlowVisit {
			// It has to begin in another lane.
			r.newPace, mine = slow, false
			return old, nil
		}
		if mine = !r.at.After(now); !mine {
			// A host that fails is given up while it is left alone for that. If only
			// another visit or the usual pause is in the way, it is tried once.
			if !r.allGranted && h.NextFetch.Sub(now) > t.afterEnd {
				r.failures = h.Stats.Failures
			}
			if wrong {
				return &h, nil
			}
			return old, nil
		}
		r.until = now.Add(grantTime).Truncate(time.Millisecond)
		i, _ := slices.BinarySearchFunc(h.Busy, r.until, time.Time.Compare)
		h.Busy = slices.Insert(h.Busy, i, r.until)
		h.NextFetch = later(h.NextFetch, wholeMillisecond(now.Add(t.afterStart)))
		h.Spent = h.Spent.On(now)
		h.Spent.Requests++
		return &h, nil
	})
	if err != nil {
		r.err = err
	}
	return mine && err == nil
}

// rightClock reports whether a clock that was ahead has left times in the
// future, and corrects them. The pause after the last request, or after the
// beginning of one that has not ended, then counts from now on.
func correctClock(h *hostdb.Host, now time.Time) (wrong bool) {
	if h.LastFetch.After(now) {
		h.NextFetch = now.Add(min(max(h.NextFetch.Sub(h.LastFetch), 0), maxRetryAfter))
		h.LastFetch = now
		wrong = true
	}
	if end, n := now.Add(grantTime), len(h.Busy); n > 0 && h.Busy[n-1].After(end) {
		if began := h.Busy[n-1].Add(-grantTime); !wrong && !began.After(h.NextFetch) {
			h.NextFetch = now.Add(min(h.NextFetch.Sub(began), maxRetryAfter))
		}
		h.Busy = slices.Clone(h.Busy)
		for i := range h.Busy {
			if h.Busy[i].After(end) {
				h.Busy[i] = end
			}
		}
		wrong = true
	}
	return wrong
}

// release ends the turn, after which the host is left alone for a while, and
// records when the next may begin. resp is nil if no page was requested, or if
// nothing is known about the answer.
func (l *loop) releaseGrant(ctx context.Context, r *result, resp *protocol.Response) {
	now := time.Now()
	r.requested = resp == nil || resp.Outcome.Code.Asked()
	if resp != nil {
		r.bytes = resp.Bytes
	}
	if r.at = now; r.h.name == "" {
		return
	}
	// A turn is given back even if the run ends. A turn for robots.txt says
	// nothing about failures: those of earlier rounds must not keep a host from
	// being tried.
	ctx, done := grace.Context(ctx)
	defer done()
	err := l.o.Hosts.Update(ctx, r.h.name, func(old *hostdb.Host) (*hostdb.Host, error) {
		var h hostdb.Host
		if old != nil {
			h = *old
		}
		correctClock(&h, time.Now()) // not now: others may have begun since
		h.Busy = without(h.Busy, r.until, now)
		r.allGranted = false
		if !r.requested {
			// Of another day than that of the claim nothing was taken.
			if day := (hostdb.Spent{}).On(r.claimed).Day; h.Spent.Day.Equal(day) {
				h.Spent.Requests = max(h.Spent.Requests-1, 0)
			}
			r.at, r.limit = later(h.NextFetch, now), l.termsOf(&h, r).limit
			return &h, nil
		}
		together := r.claimed.Before(h.LastFetch)
		h.LastFetch = now
		r.newPace = l.notePace(&h, now.Sub(r.claimed), resp != nil, r.pace)
		if resp != nil {
			l.o.countResponse(&h, resp, together)
			h.Spent = h.Spent.On(now)
			h.Spent.Bytes += resp.Bytes
			r.failures = h.Stats.Failures
		}
		t := l.termsOf(&h, r)
		r.limit, r.pause = t.limit, t.afterEnd
		pause := max(t.afterEnd, min(r.robotsRetryAfter, maxRetryAfter))
		if resp != nil {
			down, _ := l.o.downPause(h.Stats.Failures)
			pause = max(pause, l.backoff(h.Backoff, t.afterEnd), down, min(resp.Outcome.RetryAfter, maxRetryAfter))
		}
		h.NextFetch = later(h.NextFetch, wholeMillisecond(now.Add(pause)))
		r.at = h.NextFetch
		return &h, nil
	})
	if r.err == nil {
		r.err = err
	}
}

// without returns the turns of a host except the one that ends at until. If a clock
// that went back made others correct it, that is the last of the earlier ones; if a
// clock that went forward has ended it, there is none.
func without(busy []time.Time, until, now time.Time) []time.Time {
	i, ok := slices.BinarySearchFunc(busy, until, time.Time.Compare)
	if !ok {
		if i--; i < 0 || !now.Before(until) {
			return busy
		}
	}
	return slices.Delete(slices.Clone(busy), i, i+1)
}

// note adds the duration of a request to the average of its host, and returns
// the pace of the host. A robots.txt that comes quickly says little: a host
// with pages that never end may well have one. No single request counts for
// much.
func (l *loop) notePace(h *hostdb.Host, took time.Duration, page bool, was pace) pace {
	took = min(took, 4*l.o.SlowVisit).Truncate(time.Microsecond)
	switch {
	case !page && took < l.o.SlowVisit && h.Elapsed < l.o.SlowVisit:
		return max(was, fair)
	case h.Elapsed == 0:
		h.Elapsed = max(took, 1)
	default:
		h.Elapsed = max(h.Elapsed+(took-h.Elapsed)/4, 1)
	}
	if h.Elapsed >= l.o.SlowVisit {
		return slow
	}
	if page {
		return quick
	}
	return fair
}

// backoff is the pause of a host that has failed: it doubles with each failure and
// halves with each answer.
func (l *loop) backoff(n int, pause time.Duration) time.Duration {
	if n == 0 || l.o.Politeness.FailureDelay < 0 {
		return 0
	}
	first := l.o.Politeness.FailureDelay
	if first == 0 {
		first = max(pause, minBackoff)
	}
	return min(maxBackoff, min(first, maxBackoff)<<min(n-1, 12))
}

// mostBackoff is the maximum number of doublings: from the shortest pause to
// the longest.
const maxDoublings = 13

// gaveUp reports whether a host has failed so often that rounds skip its pages.
func (o *Options) failedTooOften(h *hostdb.Host) bool {
	return o.Politeness.MaxFailures > 0 && h.Stats.Failures >= int64(o.Politeness.MaxFailures)
}

// down returns the pause of a host that is down, in whole hours, given its failures in a
// row, and for how long it has been down at least: the pauses before. Because each failure
// that counts came after the pause before it, neither a clock that was wrong nor a time
// without any crawl makes them long. Both are zero for a host that is not down.
func (o *Options) downPause(failures int64) (pause, been time.Duration) {
	if o.Politeness.MaxFailures <= 0 || o.Politeness.MaxPause < firstDownPause {
		return 0, 0
	}
	for n := failures - int64(o.Politeness.MaxFailures); n > 0; n-- {
		if pause == o.Politeness.MaxPause {
			return pause, been + pause*time.Duration(min(n, int64((math.MaxInt64-been)/pause)))
		}
		been += pause
		pause = min(max(firstDownPause, (pause+(pause+1)/2).Round(time.Hour)), o.Politeness.MaxPause)
	}
	return pause, been
}

// forGood reports whether a host has been down for so long that its pages are gone.
// Failures that may be those of a server that answers, or of one of several hosts, are too
// few.
func (o *Options) downForGood(failures int64) bool {
	_, been := o.downPause(failures)
	return o.Politeness.GoneAfter > 0 && been >= o.Politeness.GoneAfter && failures > int64(o.Politeness.MaxFailures)+maxAnsweredFailures
}

// count updates a host's record with a response. together says that another request to
// the host has ended since this one began.
func (o *Options) countResponse(h *hostdb.Host, resp *protocol.Response, together bool) {
	s := &h.Stats
	s.Bytes += resp.Bytes
	switch c := resp.Outcome.Code; {
	case c == protocol.Busy || c == protocol.Failed:
		s.Failed++
		h.Backoff = min(h.Backoff+1, maxDoublings)
		if !o.failedTooOften(h) {
			s.Failures++
			return
		}
		// Only a single host that does not answer at all is likely to be down for long.
		if !together {
			s.Failures++
		}
		if resp.Outcome.Status != 0 || o.Politeness.By != hostdb.ByHost {
			s.Failures = min(s.Failures, int64(o.Politeness.MaxFailures)+maxAnsweredFailures)
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
