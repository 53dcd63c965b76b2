package robots

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
)

// A Fetch fetches one robots.txt, one request at a time, for a caller that pauses
// between the requests to a server; [Cache.Fetch] makes all of them without a pause.
// A Fetch must not be used by several goroutines at once.
type Fetch struct {
	c          *Cache
	origin     string
	requested  []string // the URLs requested so far
	next       string   // empty once rules are known
	rules      *Rules
	retryAfter time.Duration
}

// BeginFetch begins to fetch the robots.txt of a URL. It makes no request. If none is
// needed, the rules are known at once.
func (c *Cache) BeginFetch(url string) *Fetch {
	origin, rules := c.originOf(url)
	f := &Fetch{c: c, origin: origin, rules: rules}
	if rules == nil {
		f.next = origin + "/robots.txt"
	}
	return f
}

// Next returns the URL that Step will request: the robots.txt, or where it has
// moved. It is empty once the rules are known.
func (f *Fetch) Next() string { return f.next }

// From returns the URL whose redirect led to Next; empty if none did.
func (f *Fetch) From() string {
	if len(f.requested) == 0 {
		return ""
	}
	return f.requested[len(f.requested)-1]
}

// NextElsewhere reports whether Next is of another origin than the robots.txt.
func (f *Fetch) NextElsewhere() bool {
	origin, _ := originOf(f.next)
	return f.next != "" && origin != f.origin
}

// NextIsFile reports whether Next is itself the robots.txt of its origin, to which no
// robots.txt applies.
func (f *Fetch) NextIsFile() bool {
	_, ok := robotsOrigin(f.next)
	return ok
}

// Rules returns the result; nil until it is known.
func (f *Fetch) Rules() *Rules { return f.rules }

// RetryAfter returns how long the server of the last Step wants to be left alone,
// pages included; zero if it did not say.
func (f *Fetch) RetryAfter() time.Duration { return f.retryAfter }

// SetNext replaces Next by another spelling of it.
func (f *Fetch) SetNext(url string) {
	if f.next != "" {
		f.next = url
	}
}

// Step requests Next, and records the result if that is the last request. An
// error comes from the store, from ctx, or from a Protocol that could not make
// the visit; the step can then be repeated.
func (f *Fetch) Step(ctx context.Context) error {
	if f.next == "" {
		return nil
	}
	if f.c.Protocol == nil || f.c.Hosts == nil {
		return errNoHosts
	}
	req := protocol.Request{URL: f.next}
	// What an origin says at /robots.txt counts as its own, even if another
	// origin's file redirects there.
	owner, file := robotsOrigin(f.next)
	var known hostdb.Robots
	if file {
		var err error
		if known, err = f.c.stored(ctx, owner); err != nil {
			return err
		}
		if len(known.Body) > 0 {
			req.ETag, req.LastModified = known.ETag, known.LastModified
		}
	}
	resp, err := f.c.visit(ctx, req)
	if err != nil {
		return fmt.Errorf("robots: fetch %s: %w", f.next, err)
	}
	o := resp.Outcome
	f.retryAfter = max(o.RetryAfter, 0)
	ans := answer{kind: answerKindOf(o), status: o.Status, retryAfter: o.RetryAfter, reason: o.Reason}
	switch {
	case o.Code == protocol.NotModified && (req.ETag != "" || req.LastModified != ""):
		ans.kind, ans.body, ans.etag, ans.lastModified = good, known.Body, known.ETag, known.LastModified
	case ans.kind == good:
		ans.read(&resp, f.c.maxBytes())
	case ans.kind == moved:
		if f.followRedirect(&ans, o.Location) {
			return nil
		}
		return f.end(ctx, ans)
	default:
		ans.refused = len(f.requested) == 0 && o.Code == protocol.Refused
	}
	if file && owner != f.origin && o.Code != protocol.Refused {
		if _, err := f.c.record(ctx, owner, ans); err != nil {
			return err
		}
	}
	if len(f.requested) > 0 { // the validators are not of the file requested first
		ans.etag, ans.lastModified = "", ""
	}
	return f.end(ctx, ans)
}

// followRedirect makes the target of a redirect the next URL to request; if it must not be, it
// returns false, and the answer says what the redirect means instead.
func (f *Fetch) followRedirect(ans *answer, location string) bool {
	to, ok := resolve(f.next, location)
	switch {
	case ok && to == "":
		ans.kind, ans.reason = failing, "redirect to a scheme other than http and https"
		return false
	case !ok, len(f.requested) >= f.c.maxRedirects(), to == f.next, slices.Contains(f.requested, to): // a loop has more redirects than any limit
		ans.kind = absent
		return false
	}
	f.requested, f.next = append(f.requested, f.next), to
	return true
}

// UseCached ends the fetch without a request if Next is the robots.txt of another
// origin whose answer is still valid, and reports whether it did.
func (f *Fetch) UseCached(ctx context.Context) (bool, error) {
	origin, ok := robotsOrigin(f.next)
	if !ok || origin == f.origin || f.c.Hosts == nil {
		return false, nil
	}
	now := f.c.now()
	rec, err := f.c.stored(ctx, origin)
	if err != nil || !valid(rec.Fetched, rec.Expires, now) {
		return false, err
	}
	ans := answer{kind: absent, status: rec.Status, body: rec.Body, validFor: rec.Expires.Sub(now)}
	switch {
	case !rec.FailingSince.IsZero():
		ans.kind, ans.body, ans.reason = failing, nil, origin+"/robots.txt could not be had"
	case len(rec.Body) > 0:
		ans.kind = good
	}
	return true, f.end(ctx, ans)
}

// GiveUp ends the fetch because Next must not be requested: a rule of the
// caller forbids it, or its server cannot be waited for. The file then counts
// as unreachable (RFC 9309 section 2.3.1.4: assume no access) for an hour,
// whatever was known of it before. As this says nothing about the host, it is
// kept in memory only.
func (f *Fetch) GiveUp(reason string) {
	if f.next == "" {
		return
	}
	r := unavailable()
	r.Reason = reason
	now := f.c.now().UTC().Truncate(time.Millisecond)
	f.c.remember(entry{origin: f.origin, rules: r, fetched: now, expires: now.Add(maxPause), size: 256 + len(reason)})
	f.next, f.rules = "", r
}

// end records the answer.
func (f *Fetch) end(ctx context.Context, ans answer) error {
	if ans.refused {
		// This says nothing about the host, and other settings may allow it:
		// nothing to keep in Hosts.
		r := &Rules{deny: true, Unavailable: true, Refused: true, Reason: ans.reason}
		now := f.c.now().UTC().Truncate(time.Millisecond)
		f.c.remember(entry{origin: f.origin, rules: r, fetched: now, expires: now.Add(minPause), size: 256})
		f.next, f.rules = "", r
		return nil
	}
	r, err := f.c.record(ctx, f.origin, ans)
	if err == nil {
		f.next, f.rules = "", r
	}
	return err
}

// record keeps an answer in Hosts and returns the rules that then apply.
func (c *Cache) record(ctx context.Context, origin string, ans answer) (*Rules, error) {
	now := c.now().UTC().Truncate(time.Millisecond)
	var rec hostdb.Robots
	var r, read *Rules
	if ans.kind == good { // before the update, which other hosts may have to wait for
		read = c.rulesOf(hostdb.Robots{Body: ans.body})
	}
	defer c.publishReason(origin, ans.reason)()
	err := c.Hosts.Update(ctx, hostdb.ByHost.Key(origin), func(old *hostdb.Host) (*hostdb.Host, error) {
		var h hostdb.Host
		if old != nil {
			h = *old
		}
		rec = hostdb.Robots{Origin: origin}
		if i, ok := findOrigin(h.Robots, origin); ok {
			rec = h.Robots[i]
		}
		rec = ans.update(rec, now, c.maxAge())
		rec.Body = bytes.Clone(rec.Body) // old is only lent
		if r = read; r == nil {
			r = c.rulesOf(rec)
		}
		h.Robots = c.upsert(h.Robots, rec)
		h.CrawlDelay = max(r.CrawlDelay, c.crawlDelay(h.Robots, origin, now))
		return &h, nil
	})
	if err != nil {
		return nil, fmt.Errorf("robots: store %s: %w", origin, err)
	}
	c.rememberRecord(rec, r, ans.reason)
	if c.Logger != nil && !rec.FailingSince.IsZero() {
		c.Logger.LogAttrs(ctx, slog.LevelWarn, "robots.txt cannot be fetched", slog.String("origin", origin), slog.Int("status", rec.Status),
			slog.String("reason", ans.reason), slog.Time("since", rec.FailingSince), slog.Time("again", rec.Expires), slog.Bool("wait", r.Unavailable))
	}
	return r, nil
}

func (c *Cache) maxRedirects() int {
	if c.MaxRedirects != 0 {
		return max(c.MaxRedirects, 0)
	}
	return defaultRedirects
}

// robotsOrigin reports whether a URL is that of the robots.txt of its origin.
func robotsOrigin(target string) (origin string, ok bool) {
	u, err := url.Parse(target)
	if err != nil || u.Path != "/robots.txt" || u.RawQuery != "" || u.ForceQuery {
		return "", false
	}
	origin, rules := originOf(target)
	return origin, rules == nil && !strings.Contains(u.Host, "@")
}
