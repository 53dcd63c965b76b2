package fetch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
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

// work takes a turn with one host: it visits a page, or asks for robots.txt, or
// finds that there is nothing to ask.
func (l *loop) work(ctx context.Context, j job) result {
	r := result{job: j, at: time.Now()}
	url := j.it.URL
	if err := ctx.Err(); err != nil {
		r.err = err
		return r
	}
	if l.o.Robots != nil {
		rules, known, err := l.o.Robots.Cached(ctx, url)
		switch {
		case err != nil:
			r.err = err
			return r
		case !known:
			l.askRobots(ctx, &r)
			return r
		case rules.Unavailable:
			r.out = l.unasked(j, protocol.RobotsFailed, "robots.txt could not be had")
			return r
		case !rules.Allowed(url):
			r.out = l.unasked(j, protocol.RobotsDenied, "robots.txt")
			return r
		case l.o.MaxCrawlDelay >= 0 && rules.CrawlDelay > l.o.MaxCrawlDelay:
			r.out = l.unasked(j, protocol.RobotsDenied, fmt.Sprintf("Crawl-delay of %v is more than %v", rules.CrawlDelay, l.o.MaxCrawlDelay))
			return r
		}
	}
	free, mine, err := l.claim(ctx, j.h.name)
	if err != nil || !mine {
		r.at, r.err = free, err
		return r
	}
	r.asked = true
	req := protocol.Request{URL: url, ETag: j.it.ETag, LastModified: j.it.LastModified, MaxBytes: l.o.MaxBytes}
	if j.it.Signature == nil { // nothing that "not modified" could stand for
		req.ETag, req.LastModified = "", ""
	}
	resp, err := l.fetch(ctx, req)
	if err != nil {
		r.at, _ = l.release(ctx, j.h.name, nil)
		r.err = fmt.Errorf("%s: %w", url, err)
		return r
	}
	code := resp.Outcome.Code
	r.failed = code == protocol.Busy || code == protocol.Failed
	if r.at, err = l.release(ctx, j.h.name, &resp); err != nil {
		r.err = err
		return r
	}
	r.out = l.visited(ctx, j, resp)
	if ctx.Err() != nil { // a parser may have been cut short
		r.out, r.err = nil, ctx.Err()
	}
	return r
}

// unasked is the outcome of a visit that is not made.
func (l *loop) unasked(j job, code protocol.Code, reason string) *visited {
	return &visited{visit: segment.Visit{URL: j.it.URL, Time: l.o.Now(), Outcome: protocol.Outcome{Code: code, Reason: reason}}}
}

// askRobots uses the turn for robots.txt; the page waits for the next one.
func (l *loop) askRobots(ctx context.Context, r *result) {
	free, mine, err := l.claim(ctx, r.h.name)
	if err != nil || !mine {
		r.at, r.err = free, err
		return
	}
	r.robots = true
	if _, err := l.o.Robots.Fetch(ctx, r.it.URL); err != nil {
		r.err = err
	}
	at, err := l.release(ctx, r.h.name, nil)
	if r.at = at; r.err == nil {
		r.err = err
	}
}

// fetch asks the protocol, and turns a panic of it into a failed visit.
func (l *loop) fetch(ctx context.Context, req protocol.Request) (resp protocol.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.o.Logger.Error("fetch: protocol panicked", "url", req.URL, "panic", fmt.Sprint(p))
			resp, err = protocol.Response{Outcome: protocol.Outcome{Code: protocol.Failed, Reason: "the protocol panicked"}}, nil
		}
	}()
	return l.o.Protocol.Fetch(ctx, req)
}

// claim takes the turn with a host, or tells when to ask again.
func (l *loop) claim(ctx context.Context, name string) (free time.Time, mine bool, err error) {
	now := time.Now()
	if name == "" { // no host, no politeness: a file
		return now, true, nil
	}
	err = l.o.Hosts.Update(ctx, name, func(old *hostdb.Host) (*hostdb.Host, error) {
		var h hostdb.Host
		if old != nil {
			h = *old
		}
		free = h.NextFetch
		if h.BusyUntil.After(now) {
			// Whoever has the turn gives it back much sooner.
			free = later(free, now.Add(100*time.Millisecond))
		}
		if mine = !free.After(now); !mine {
			return old, nil
		}
		h.BusyUntil = now.Add(claimFor)
		return &h, nil
	})
	return free, mine, err
}

// release ends the turn and returns when the next may begin. resp is nil if no
// page was asked for, or if nothing is known of what came.
func (l *loop) release(ctx context.Context, name string, resp *protocol.Response) (at time.Time, err error) {
	now := time.Now()
	if name == "" {
		return now, nil
	}
	// A turn is given back even if the run ends.
	ctx = context.WithoutCancel(ctx)
	err = l.o.Hosts.Update(ctx, name, func(old *hostdb.Host) (*hostdb.Host, error) {
		var h hostdb.Host
		if old != nil {
			h = *old
		}
		h.BusyUntil = time.Time{}
		if resp != nil && !resp.Outcome.Code.Asked() {
			at = later(h.NextFetch, now)
			return &h, nil
		}
		h.LastFetch = now
		pause := max(l.o.Delay, h.CrawlDelay)
		if resp != nil {
			count(&h, resp)
			if h.Backoff > 0 {
				pause = max(pause, min(maxBackoff, max(pause, minBackoff)<<min(h.Backoff-1, 12)))
			}
			pause = max(pause, min(resp.Outcome.RetryAfter, maxRetryAfter))
		}
		// Kept to the millisecond: never a part of one too early.
		at = now.Add(pause)
		if ms := at.Truncate(time.Millisecond); ms.Before(at) {
			at = ms.Add(time.Millisecond)
		}
		h.NextFetch = at
		return &h, nil
	})
	return at, err
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

// visited makes of a response what the segment keeps.
func (l *loop) visited(ctx context.Context, j job, resp protocol.Response) *visited {
	c := resp.Content
	c.URL, c.Time = j.it.URL, l.o.Now()
	v := &visited{visit: segment.Visit{
		URL: j.it.URL, Time: c.Time, Outcome: resp.Outcome,
		ETag: resp.ETag, LastModified: resp.LastModified, Modified: resp.Modified,
		Truncated: c.Truncated, Bytes: resp.Bytes, Elapsed: resp.Elapsed,
	}}
	if resp.Outcome.Code == protocol.Success {
		v.visit.ContentType = parse.MediaType(&c)
	}
	if l.o.Parser != nil {
		l.o.reader().read(ctx, v, &j.it, &c)
	}
	if resp.Outcome.Code == protocol.Success && !l.o.NoContent {
		v.content = &c
	}
	return v
}

// parsePage asks the parser, and turns a panic of it into an error.
func parsePage(ctx context.Context, p parse.Parser, c *page.Content) (parsed page.Parsed, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v", errPanic, v)
		}
	}()
	return p.Parse(ctx, c)
}

var errPanic = errors.New("fetch: parser panicked")
