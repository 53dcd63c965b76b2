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

// An Asking fetches one robots.txt, a request at a time, for a caller that
// gives each server its turn: [Cache.Fetch] makes all steps of one, without a
// pause. An Asking must not be used by several goroutines at once.
type Asking struct {
	c      *Cache
	origin string
	asked  []string // the URLs requested so far
	next   string   // empty once rules are known
	rules  *Rules
	wait   time.Duration
}

// Ask begins to fetch the robots.txt of a URL. It makes no request. If none is
// needed, the rules are known at once.
func (c *Cache) Ask(url string) *Asking {
	origin, rules := c.originOf(url)
	a := &Asking{c: c, origin: origin, rules: rules}
	if rules == nil {
		a.next = origin + "/robots.txt"
	}
	return a
}

// Origin returns scheme, host and port of the URL whose robots.txt is wanted.
func (a *Asking) Origin() string { return a.origin }

// Next returns the URL that Step will request: the robots.txt, or where it has
// moved. It is empty once the rules are known.
func (a *Asking) Next() string { return a.next }

// From returns the URL whose redirect led to Next; empty if none did.
func (a *Asking) From() string {
	if len(a.asked) == 0 {
		return ""
	}
	return a.asked[len(a.asked)-1]
}

// NextElsewhere reports whether Next is of another origin than the robots.txt.
func (a *Asking) NextElsewhere() bool {
	origin, _ := originOf(a.next)
	return a.next != "" && origin != a.origin
}

// NextIsFile reports whether Next is itself the robots.txt of its origin, to which no
// robots.txt applies.
func (a *Asking) NextIsFile() bool {
	_, ok := isFile(a.next)
	return ok
}

// Rules returns the result; nil until it is known.
func (a *Asking) Rules() *Rules { return a.rules }

// RetryAfter returns how long the server of the last Step wants to be left alone,
// pages included; zero if it did not say.
func (a *Asking) RetryAfter() time.Duration { return a.wait }

// SetNext replaces Next by another spelling of it.
func (a *Asking) SetNext(url string) {
	if a.next != "" {
		a.next = url
	}
}

// Step requests Next, and records the result if that is the last request. An
// error comes from the store, from ctx, or from a Protocol that could not make
// the visit; the step can then be repeated.
func (a *Asking) Step(ctx context.Context) error {
	if a.next == "" {
		return nil
	}
	if a.c.Protocol == nil || a.c.Hosts == nil {
		return errNoHosts
	}
	req := protocol.Request{URL: a.next}
	// What an origin says at /robots.txt counts as its own, even if another
	// origin's file redirects there.
	owner, file := isFile(a.next)
	var known hostdb.Robots
	if file {
		var err error
		if known, err = a.c.known(ctx, owner); err != nil {
			return err
		}
		if len(known.Body) > 0 {
			req.ETag, req.LastModified = known.ETag, known.LastModified
		}
	}
	resp, err := a.c.visit(ctx, req)
	if err != nil {
		return fmt.Errorf("robots: fetch %s: %w", a.next, err)
	}
	o := resp.Outcome
	a.wait = max(o.RetryAfter, 0)
	ans := answer{kind: kindOf(o), status: o.Status, retryAfter: o.RetryAfter, reason: o.Reason}
	switch {
	case o.Code == protocol.NotModified && (req.ETag != "" || req.LastModified != ""):
		ans.kind, ans.body, ans.etag, ans.lastModified = good, known.Body, known.ETag, known.LastModified
	case ans.kind == good:
		ans.read(&resp, a.c.maxBytes())
	case ans.kind == moved:
		if a.follow(&ans, o.Location) {
			return nil
		}
		return a.end(ctx, ans)
	default:
		ans.refused = len(a.asked) == 0 && o.Code == protocol.Refused
	}
	if file && owner != a.origin && o.Code != protocol.Refused {
		if _, err := a.c.record(ctx, owner, ans); err != nil {
			return err
		}
	}
	if len(a.asked) > 0 { // the validators are not of the file requested first
		ans.etag, ans.lastModified = "", ""
	}
	return a.end(ctx, ans)
}

// follow makes the target of a redirect the next URL to request; if it must not be, it
// returns false, and the answer says what the redirect means instead.
func (a *Asking) follow(ans *answer, location string) bool {
	to, ok := resolve(a.next, location)
	switch {
	case ok && to == "":
		ans.kind, ans.reason = failing, "redirect to a scheme other than http and https"
		return false
	case !ok, len(a.asked) >= a.c.maxHops(), to == a.next, slices.Contains(a.asked, to): // a loop has more redirects than any limit
		ans.kind = absent
		return false
	}
	a.asked, a.next = append(a.asked, a.next), to
	return true
}

// Cached ends the asking without a request if Next is the robots.txt of another
// origin whose answer is still valid, and reports whether it did.
func (a *Asking) Cached(ctx context.Context) (bool, error) {
	origin, ok := isFile(a.next)
	if !ok || origin == a.origin || a.c.Hosts == nil {
		return false, nil
	}
	now := a.c.now()
	rec, err := a.c.known(ctx, origin)
	if err != nil || !fresh(rec.Fetched, rec.Expires, now) {
		return false, err
	}
	ans := answer{kind: absent, status: rec.Status, body: rec.Body, holds: rec.Expires.Sub(now)}
	switch {
	case !rec.FailingSince.IsZero():
		ans.kind, ans.body, ans.reason = failing, nil, origin+"/robots.txt could not be had"
	case len(rec.Body) > 0:
		ans.kind = good
	}
	return true, a.end(ctx, ans)
}

// GiveUp ends the asking because Next must not be requested: a rule of the
// caller forbids it, or its server cannot be waited for. The file then counts
// as unreachable (RFC 9309 section 2.3.1.4: assume no access) for an hour,
// whatever was known of it before. As this says nothing about the host, it is
// kept in memory only.
func (a *Asking) GiveUp(reason string) {
	if a.next == "" {
		return
	}
	r := Unavailable()
	r.Reason = reason
	now := a.c.now().UTC().Truncate(time.Millisecond)
	a.c.remember(entry{origin: a.origin, rules: r, fetched: now, expires: now.Add(maxPause), size: 256 + len(reason)})
	a.next, a.rules = "", r
}

// end records the answer.
func (a *Asking) end(ctx context.Context, ans answer) error {
	if ans.refused {
		// This says nothing about the host, and other settings may allow it:
		// nothing to keep in Hosts.
		r := &Rules{deny: true, Unavailable: true, Refused: true, Reason: ans.reason}
		now := a.c.now().UTC().Truncate(time.Millisecond)
		a.c.remember(entry{origin: a.origin, rules: r, fetched: now, expires: now.Add(minPause), size: 256})
		a.next, a.rules = "", r
		return nil
	}
	r, err := a.c.record(ctx, a.origin, ans)
	if err == nil {
		a.next, a.rules = "", r
	}
	return err
}

// record keeps an answer in Hosts and returns the rules that then apply.
func (c *Cache) record(ctx context.Context, origin string, a answer) (*Rules, error) {
	now := c.now().UTC().Truncate(time.Millisecond)
	var rec hostdb.Robots
	var r, read *Rules
	if a.kind == good { // before the update, which other hosts may have to wait for
		read = c.rules(hostdb.Robots{Body: a.body})
	}
	defer c.writes(origin, a.reason)()
	err := c.Hosts.Update(ctx, hostdb.ByHost.Key(origin), func(old *hostdb.Host) (*hostdb.Host, error) {
		var h hostdb.Host
		if old != nil {
			h = *old
		}
		rec = hostdb.Robots{Origin: origin}
		if i, ok := find(h.Robots, origin); ok {
			rec = h.Robots[i]
		}
		rec = a.apply(rec, now, c.maxAge())
		rec.Body = bytes.Clone(rec.Body) // old is only lent
		if r = read; r == nil {
			r = c.rules(rec)
		}
		h.Robots = c.upsert(h.Robots, rec)
		h.CrawlDelay = max(r.CrawlDelay, c.crawlDelay(h.Robots, origin, now))
		return &h, nil
	})
	if err != nil {
		return nil, fmt.Errorf("robots: store %s: %w", origin, err)
	}
	c.keep(rec, r, a.reason)
	if c.Logger != nil && !rec.FailingSince.IsZero() {
		c.Logger.LogAttrs(ctx, slog.LevelWarn, "robots.txt cannot be fetched", slog.String("origin", origin), slog.Int("status", rec.Status),
			slog.String("reason", a.reason), slog.Time("since", rec.FailingSince), slog.Time("again", rec.Expires), slog.Bool("wait", r.Unavailable))
	}
	return r, nil
}

func (c *Cache) maxHops() int {
	if c.MaxHops != 0 {
		return max(c.MaxHops, 0)
	}
	return maxHops
}

// isFile reports whether a URL is that of the robots.txt of its origin.
func isFile(target string) (origin string, ok bool) {
	u, err := url.Parse(target)
	if err != nil || u.Path != "/robots.txt" || u.RawQuery != "" || u.ForceQuery {
		return "", false
	}
	origin, rules := originOf(target)
	return origin, rules == nil && !strings.Contains(u.Host, "@")
}
