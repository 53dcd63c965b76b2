package fetch

import (
	"context"
	"slices"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/grace"
	"github.com/recrawl/recrawl/protocol"
)

// takeGrant takes a grant for one request to a host, and reports whether there was one.
// If all are taken, or it is too early, it records when to try again, and how often the
// host has failed.
func (l *loop) takeGrant(ctx context.Context, r *result) (granted bool) {
	r.grantedAt = time.Now()
	if r.host.name == "" { // no host, no politeness: a file
		return true
	}
	err := l.opts.Hosts.Update(ctx, r.host.name, func(old *hostdb.Host) (*hostdb.Host, error) {
		// Not earlier: a worker that waited for the store must not take requests
		// that went first for future ones, nor the host for slow.
		now := time.Now()
		r.grantedAt = now
		var h hostdb.Host
		if old != nil {
			h = *old
		}
		wrong := correctClock(&h, now)
		r.newPace = r.pace
		h.Grants = slices.DeleteFunc(slices.Clone(h.Grants), func(end time.Time) bool { return !end.After(now) })
		if l.opts.Politeness.ForgetAfter >= 0 && h.Backoff > 0 && now.After(h.NextFetch.Add(l.opts.Politeness.ForgetAfter)) {
			h.Backoff = 0
		}
		t := l.termsOf(&h, r)
		r.limit, r.pause, r.verdict = t.limit, t.afterEnd, verdict{}
		r.nextVisit, r.allGranted, r.failures = later(h.NextFetch, now), len(h.Grants) >= t.limit, 0
		if r.allGranted {
			r.nextVisit = later(r.nextVisit, now.Add(grantRetry))
		}
		if l.opts.Politeness.HostRule != nil {
			rule := l.opts.Politeness.HostRule(r.host.name)
			if at, why := rule.next(h.Spent, r.nextVisit); at.After(r.nextVisit) {
				why.retryAfter = at.Sub(now)
				r.nextVisit, r.verdict = at, why
			}
		}
		if !r.nextVisit.After(now) && r.pace != slow && r.pace != quick && l.threads.spare > 0 && h.Elapsed >= l.opts.SlowVisit {
			// It has to begin as a slow visit, for which another thread may be free.
			r.newPace, granted = slow, false
			return old, nil
		}
		if granted = !r.nextVisit.After(now); !granted {
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
		r.grantUntil = now.Add(grantTime).Truncate(time.Millisecond)
		i, _ := slices.BinarySearchFunc(h.Grants, r.grantUntil, time.Time.Compare)
		h.Grants = slices.Insert(h.Grants, i, r.grantUntil)
		h.NextFetch = later(h.NextFetch, wholeMillisecond(now.Add(t.afterStart)))
		h.Spent = h.Spent.On(now)
		h.Spent.Requests++
		return &h, nil
	})
	if err != nil {
		r.err = err
	}
	return granted && err == nil
}

// correctClock reports whether a clock that was ahead has left times in the
// future, and corrects them. The pause after the last request, or after the
// beginning of one that has not ended, then counts from now on.
func correctClock(h *hostdb.Host, now time.Time) (wrong bool) {
	if h.LastFetch.After(now) {
		h.NextFetch = now.Add(min(max(h.NextFetch.Sub(h.LastFetch), 0), maxRetryAfter))
		h.LastFetch = now
		wrong = true
	}
	if end, n := now.Add(grantTime), len(h.Grants); n > 0 && h.Grants[n-1].After(end) {
		if began := h.Grants[n-1].Add(-grantTime); !wrong && !began.After(h.NextFetch) {
			h.NextFetch = now.Add(min(h.NextFetch.Sub(began), maxRetryAfter))
		}
		h.Grants = slices.Clone(h.Grants)
		for i := range h.Grants {
			if h.Grants[i].After(end) {
				h.Grants[i] = end
			}
		}
		wrong = true
	}
	return wrong
}

// releaseGrant ends a grant, after which the host is left alone for its pause, and
// records when the next request may begin. resp is nil if no page was requested, or if
// nothing is known about the answer.
func (l *loop) releaseGrant(ctx context.Context, r *result, resp *protocol.Response) {
	now := time.Now()
	r.requested = resp == nil || resp.Outcome.Code.Asked()
	if resp != nil {
		r.bytes = resp.Bytes
	}
	if r.nextVisit = now; r.host.name == "" {
		return
	}
	// A grant is released even if the run ends. A request for robots.txt says
	// nothing about failures: those of earlier rounds must not keep a host from
	// being tried.
	ctx, done := grace.Context(ctx)
	defer done()
	err := l.opts.Hosts.Update(ctx, r.host.name, func(old *hostdb.Host) (*hostdb.Host, error) {
		var h hostdb.Host
		if old != nil {
			h = *old
		}
		correctClock(&h, time.Now()) // not now: others may have begun since
		h.Grants = without(h.Grants, r.grantUntil, now)
		r.allGranted = false
		if !r.requested {
			// The request was counted on the day of the grant only.
			if day := (hostdb.Spent{}).On(r.grantedAt).Day; h.Spent.Day.Equal(day) {
				h.Spent.Requests = max(h.Spent.Requests-1, 0)
			}
			r.nextVisit, r.limit = later(h.NextFetch, now), l.termsOf(&h, r).limit
			return &h, nil
		}
		together := r.grantedAt.Before(h.LastFetch)
		h.LastFetch = now
		r.newPace = l.notePace(&h, now.Sub(r.grantedAt), resp != nil, r.pace)
		if resp != nil {
			l.opts.Politeness.countResponse(&h, resp, together)
			h.Spent = h.Spent.On(now)
			h.Spent.Bytes += resp.Bytes
			r.failures = h.Stats.Failures
		}
		t := l.termsOf(&h, r)
		r.limit, r.pause = t.limit, t.afterEnd
		pause := max(t.afterEnd, min(r.robotsRetryAfter, maxRetryAfter))
		if resp != nil {
			down, _ := l.opts.Politeness.downPause(h.Stats.Failures)
			pause = max(pause, l.backoff(h.Backoff, t.afterEnd), down, min(resp.Outcome.RetryAfter, maxRetryAfter))
		}
		h.NextFetch = later(h.NextFetch, wholeMillisecond(now.Add(pause)))
		r.nextVisit = h.NextFetch
		return &h, nil
	})
	if r.err == nil {
		r.err = err
	}
}

// without returns the grants of a host except the one that ends at until. If a clock
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

// notePace adds the duration of a request to the average of its host, and returns
// the pace of the host. A robots.txt that comes quickly says little: a host
// with pages that never end may well have one. No single request counts for
// much.
func (l *loop) notePace(h *hostdb.Host, took time.Duration, page bool, was pace) pace {
	took = min(took, 4*l.opts.SlowVisit).Truncate(time.Microsecond)
	switch {
	case !page && took < l.opts.SlowVisit && h.Elapsed < l.opts.SlowVisit:
		return max(was, fair)
	case h.Elapsed == 0:
		h.Elapsed = max(took, 1)
	default:
		h.Elapsed = max(h.Elapsed+(took-h.Elapsed)/4, 1)
	}
	if h.Elapsed >= l.opts.SlowVisit {
		return slow
	}
	if page {
		return quick
	}
	return fair
}
