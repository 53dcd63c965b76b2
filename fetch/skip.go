package fetch

import (
	"fmt"
	"time"

	"github.com/recrawl/recrawl/protocol"
)

// A verdict says why a host is no longer visited in this round.
type verdict struct {
	reason string
	// retryAfter is how long that will last; zero if unknown. Then perDay pages can be
	// visited each day; zero for all.
	retryAfter time.Duration
	perDay     int64
	// down is how long a host that is down is left alone, and gone says that its
	// pages are gone.
	down time.Duration
	gone bool
	// code is that of the visits; zero means Skipped.
	code  protocol.Code
	cause cause
}

// skipIfLong gives up on a host for this round if it keeps failing, or would have to
// be waited for too long, so that the others do not wait for it.
func (l *loop) skipIfLong(h *host, r *result) {
	v := r.verdict
	switch wait := time.Until(r.nextVisit); {
	case l.opts.Politeness.MaxFailures > 0 && r.failures >= int64(l.opts.Politeness.MaxFailures):
		// In whole hours, like the pause, so that the result does not depend on how
		// soon after the failure this is.
		down := (wait + time.Hour - 1).Truncate(time.Hour)
		v = verdict{reason: fmt.Sprintf("the host failed %d times in a row", r.failures), down: down, gone: l.opts.Politeness.downForGood(r.failures), cause: hostFails}
	case wait <= max(l.opts.Politeness.MaxWait, r.pause+time.Millisecond):
		if n := h.items.len() + h.unread; n > 0 && wait > r.pause+time.Second {
			l.opts.Logger.Info("fetch: waiting for host", "host", h.name, "pages", n, "until", r.nextVisit)
		}
		return
	case v.reason == "":
		v.reason = "the host has to be left alone for longer than this round can wait"
	}
	if v.cause == noCause {
		v.cause = hostWaits
	}
	l.giveUp(h, v)
}

// giveUp ends the visits to a host for this round.
func (l *loop) giveUp(h *host, v verdict) {
	if h.unread > 0 { // including those that have to be read again
		h.givenUp = &v
	}
	items := l.queues.drop(h)
	if len(items) == 0 {
		return
	}
	l.opts.Logger.Warn("fetch: host skipped for this round", "host", h.name, "pages", len(items), "reason", v.reason)
	for i, it := range items {
		if it.robots != nil {
			l.abandonRobots(it.robots, v.reason)
			continue
		}
		switch {
		case !it.unlisted:
			l.finish(l.skipped(it, &v, i))
		case it.hop != nil:
			l.report.Redirects.Waiting++
		}
	}
}

// maxPutOff limits how many days a page is put off because others come before
// it.
const maxPutOff = 7

// skipped returns the visit to a page whose host was given up, given the number
// of pages before it.
func (l *loop) skipped(it item, v *verdict, before int) *visitResult {
	if v.code != 0 {
		return l.notVisited(job{item: it}, v.code, v.reason)
	}
	var s *visitResult
	if v.gone && !it.LastFetch.After(l.opts.Now().Add(-l.opts.Politeness.GoneAfter)) {
		s = l.notVisited(job{item: it}, protocol.Refused, "host: has been down for long")
	} else {
		s = l.outcomeOnly(it, protocol.Skipped, v.reason)
	}
	s.visit.Outcome.RetryAfter = v.retryAfter
	if v.retryAfter > 0 && v.perDay > 0 {
		s.visit.Outcome.RetryAfter += time.Duration(min(int64(before)/v.perDay, maxPutOff)) * 24 * time.Hour
	}
	// The pages of a host that is down would fill every list from now on. They wait until
	// it may be asked again.
	if v.down > 24*time.Hour {
		s.visit.Outcome.RetryAfter = v.down
	}
	s.cause = v.cause
	return s
}
