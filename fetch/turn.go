package fetch

import (
	"context"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
)

const (
	// claimFor is how long a visit may take before others may think that
	// whoever made it is dead.
	claimFor = 10 * time.Minute
	// minBackoff is the pause after a first failure where there is no other, and
	// maxBackoff the longest.
	minBackoff = time.Second
	maxBackoff = time.Hour
	// maxRetryAfter bounds the patience a server can ask for.
	maxRetryAfter = 24 * time.Hour
)

// claim takes the turn with a host. If it is another's, or not time yet, it
// notes when to ask again, and whether it is worth waiting for.
func (l *loop) claim(ctx context.Context, r *result) (mine bool) {
	now := time.Now()
	if r.h.name == "" { // no host, no politeness: a file
		return true
	}
	r.err = l.o.Hosts.Update(ctx, r.h.name, func(old *hostdb.Host) (*hostdb.Host, error) {
		var h hostdb.Host
		if old != nil {
			h = *old
		}
		// A clock that was ahead has left times that lie in the future. The pause
		// after the last request counts from now on then.
		busy := time.Time{}
		if n := len(h.Busy); n > 0 {
			busy = h.Busy[n-1]
		}
		wrong := h.LastFetch.After(now) || busy.After(now.Add(claimFor))
		if h.LastFetch.After(now) {
			h.NextFetch = now.Add(min(max(h.NextFetch.Sub(h.LastFetch), 0), maxRetryAfter))
			h.LastFetch = now
		}
		if end := now.Add(claimFor); busy.After(end) {
			h.Busy = []time.Time{end}
		}
		r.at = later(h.NextFetch, now)
		if busy.After(now) {
			// Whoever has the turn gives it back much sooner.
			r.at = later(r.at, now.Add(100*time.Millisecond))
		}
		if mine = !r.at.After(now); !mine {
			r.failures = h.Stats.Failures
			if wrong {
				return &h, nil
			}
			return old, nil
		}
		h.Busy = []time.Time{now.Add(claimFor)}
		return &h, nil
	})
	return mine && r.err == nil
}

// release ends the turn, after which the host is left alone for at least delay,
// and notes when the next may begin. resp is nil if no page was asked for, or if
// nothing is known of what came.
func (l *loop) release(ctx context.Context, r *result, resp *protocol.Response, delay time.Duration) {
	now := time.Now()
	if r.at = now; r.h.name == "" {
		return
	}
	// A turn is given back even if the run ends. One for robots.txt says nothing
	// of failures: those of former rounds must not keep a host from being tried.
	err := l.o.Hosts.Update(context.WithoutCancel(ctx), r.h.name, func(old *hostdb.Host) (*hostdb.Host, error) {
		var h hostdb.Host
		if old != nil {
			h = *old
		}
		h.Busy = nil
		if resp != nil && !resp.Outcome.Code.Asked() {
			r.at = later(h.NextFetch, now)
			return &h, nil
		}
		h.LastFetch = now
		// The longest Crawl-delay of the origins of the host, as far as it is
		// honoured.
		pause := max(delay, h.CrawlDelay)
		if l.o.MaxCrawlDelay >= 0 {
			pause = max(delay, min(h.CrawlDelay, l.o.MaxCrawlDelay))
		}
		if resp != nil {
			count(&h, resp)
			r.failures = h.Stats.Failures
			if h.Backoff > 0 {
				pause = max(pause, min(maxBackoff, max(pause, minBackoff)<<min(h.Backoff-1, 12)))
			}
			pause = max(pause, min(resp.Outcome.RetryAfter, maxRetryAfter))
		}
		// Kept to the millisecond: never a part of one too early.
		r.at = now.Add(pause)
		if ms := r.at.Truncate(time.Millisecond); ms.Before(r.at) {
			r.at = ms.Add(time.Millisecond)
		}
		h.NextFetch = r.at
		return &h, nil
	})
	if r.err == nil {
		r.err = err
	}
}

// count adds a response to what is known of a host.
func count(h *hostdb.Host, resp *protocol.Response) {
	s := &h.Stats
	s.Bytes += resp.Bytes
	switch c := resp.Outcome.Code; {
	case c == protocol.Busy || c == protocol.Failed:
		s.Failed++
		s.Failures++
		h.Backoff++
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
	s.Failures, h.Backoff = 0, 0
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
