package robots

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
)

const (
	// defaultRedirects is how many redirects of a robots.txt are followed by default.
	defaultRedirects = 5
	// maxOrigins is how many origins of a host are remembered, and maxBodies
	// how many bytes of their files, unless a single one is longer.
	maxOrigins = 16
	maxBodies  = 1 << 20
	// maxFailing is how long a server may fail before its robots.txt counts as
	// missing (RFC 9309 section 2.3.1.4).
	maxFailing = 30 * 24 * time.Hour
	// minPause and maxPause bound the time between two attempts to get a file from
	// a server that fails.
	minPause = time.Minute
	maxPause = time.Hour
	// maxMemory bounds the bytes of parsed rules in memory, about.
	maxMemory = 64 << 20
)

// A Cache answers which rules apply to a URL. It requests each robots.txt at
// most once a day unless servers fail, and keeps the answers in a hostdb.Store,
// for later runs and other crawlers.
//
// Answers are interpreted as in RFC 9309 section 2.3.1:
//
//	2xx                    the file is valid for MaxAge
//	4xx except 429         there is no file: all is allowed, for MaxAge
//	3xx, five of them      followed, to other hosts too
//	3xx, a sixth           as 4xx; so are a loop and a redirect without a target
//	429, 5xx, no answer    the last good copy is valid; without one nothing may
//	                       be visited for now ([Rules].Unavailable)
//	the same for 30 days   as 4xx
//
// A server that fails is asked again after a minute, then after twice the time
// and so on up to an hour, or after as long as it asks for (Retry-After) up to
// MaxAge. A visit that the Protocol refuses (protocol.Refused) counts as no
// answer, and so does a redirect to a scheme other than http and https. The
// whole lines of a file that ends too early are valid for an hour; without any
// it counts as no answer. Only http and https have a robots.txt: elsewhere all
// is allowed.
//
// Repeated requests carry the validators of the file, and one that was not
// modified is valid anew. Cache-Control is ignored: many servers forbid keeping
// anything at all, without meaning to.
//
// At most 16 origins and a megabyte of files are kept per host; the file
// fetched longest ago is dropped first, and requested again when it is needed.
//
// A Cache may be used from many goroutines at once after its fields are set,
// and must not be copied. It starts no goroutines and need not be closed.
type Cache struct {
	// Protocol fetches the files. Required.
	Protocol protocol.Protocol
	// Hosts keeps the bodies, and the Crawl-delay of each host, the longest of
	// its origins. Required.
	Hosts hostdb.Store
	// Product is the product token of the crawler, which selects its rules. If
	// it is empty, only the rules for all crawlers ("*") apply. (Nutch:
	// http.agent.name.)
	Product string
	// Policy sets further names of the crawler, and where robots.txt does not
	// decide.
	Policy
	// Now is the clock that the crawl records; nil means time.Now. Files
	// fetched after Now are requested again.
	Now func() time.Time
	// MaxAge is how long an answer is valid, at least a minute; zero means 24
	// hours, the most that RFC 9309 section 2.4 allows.
	MaxAge time.Duration
	// MaxBytes is how much of a file is read, at least the constant MaxBytes,
	// the least that RFC 9309 allows; zero means that.
	MaxBytes int
	// MaxOrigins is the number of origins whose parsed rules are kept in
	// memory, up to about 64 MiB; zero means 4,096. Those of others are parsed
	// again from Hosts.
	MaxOrigins int
	// Parse reads a file, at most MaxBytes of it, for Product and Aliases; nil means
	// the function [Parse]. It must not fail, whatever the bytes.
	Parse func(body []byte, products ...string) *Rules
	// OnRedirect is called before Fetch follows a redirect, and returns the URL to request:
	// to, or another spelling of it. An error says why it must not be requested: the
	// file then cannot be fetched ([Rules].unavailable, with the error as Reason).
	// Nil follows all redirects over http and https. Callers that have rules for each
	// redirect and pauses for each server make the requests one by one: see [Fetch].
	OnRedirect func(ctx context.Context, from, to string) (string, error)
	// Logger receives failures of servers; nil discards them.
	Logger *slog.Logger

	mu     sync.Mutex
	memory lru
	// why holds the reasons of files that could not be fetched, by origin,
	// while their records are being written.
	reasons map[string]string
}

// Cached returns the rules for a URL, from memory or from Hosts, or false if
// Fetch must be called. It makes no request. An error comes from the store or
// from ctx.
func (c *Cache) Cached(ctx context.Context, url string) (*Rules, bool, error) {
	origin, rules := c.originOf(url)
	if rules != nil {
		return rules, true, nil
	}
	now := c.now()
	c.mu.Lock()
	e, ok := c.memory.get(origin)
	c.mu.Unlock()
	if ok && valid(e.fetched, e.expires, now) {
		return e.rules, true, nil
	}
	if c.Hosts == nil {
		return nil, false, errNoHosts
	}
	rec, err := c.stored(ctx, origin)
	if err != nil || !valid(rec.Fetched, rec.Expires, now) {
		return nil, false, err
	}
	r := c.rulesOf(rec)
	c.rememberRecord(rec, r, "")
	return r, true, nil
}

// stored returns what Hosts has about an origin, which may be nothing.
func (c *Cache) stored(ctx context.Context, origin string) (hostdb.Robots, error) {
	host, err := c.Hosts.Get(ctx, hostdb.ByHost.Key(origin))
	if err != nil && !errors.Is(err, hostdb.ErrNotFound) {
		return hostdb.Robots{}, fmt.Errorf("robots: look up %s: %w", origin, err)
	}
	if i, ok := findOrigin(host.Robots, origin); ok {
		return host.Robots[i], nil
	}
	return hostdb.Robots{Origin: origin}, nil
}

// Fetch requests the robots.txt of a URL, records the answer and returns the
// rules that apply. Two simultaneous calls for one origin both make the
// request. An error comes from the store, from ctx, or from a Protocol that
// could not make the visit; nothing that a server does is an error.
func (c *Cache) Fetch(ctx context.Context, url string) (*Rules, error) {
	a := c.BeginFetch(url)
	for a.Next() != "" {
		if a.From() != "" && c.OnRedirect != nil {
			to, err := c.OnRedirect(ctx, a.From(), a.Next())
			switch {
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case err != nil:
				a.GiveUp(err.Error())
				continue
			}
			a.SetNext(to)
		}
		if known, err := a.UseCached(ctx); known || err != nil {
			if err != nil {
				return nil, err
			}
			continue
		}
		if err := a.Step(ctx); err != nil {
			return nil, err
		}
	}
	return a.Rules(), nil
}

var errNoHosts = errors.New("robots: Cache needs a Protocol and Hosts")

func (c *Cache) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

func (c *Cache) maxAge() time.Duration {
	if c.MaxAge > 0 {
		return max(c.MaxAge, minPause)
	}
	return 24 * time.Hour
}

func (c *Cache) maxBytes() int { return max(c.MaxBytes, MaxBytes) }

// rememberRecord remembers the rules of a record, which are new, and the reason if the
// file could not be fetched.
func (c *Cache) rememberRecord(rec hostdb.Robots, r *Rules, reason string) {
	if r.Unavailable {
		if reason == "" { // of a record, which has none
			reason = c.reason(rec)
		}
		r.Reason = reason
	}
	size := 256 + r.size
	if r.allow != nil {
		size += 64 * len(rec.Body) // what a parser keeps that turns rules into regular expressions
	}
	c.remember(entry{origin: rec.Origin, rules: r, fetched: rec.Fetched, expires: rec.Expires, size: size})
}

// reason returns why the file of a record could not be fetched; empty if only
// an earlier process knew.
func (c *Cache) reason(rec hostdb.Robots) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if why, ok := c.reasons[rec.Origin]; ok {
		return why
	}
	if e, ok := c.memory.get(rec.Origin); ok && e.fetched.Equal(rec.Fetched) {
		return e.rules.Reason
	}
	return ""
}

// publishReason records a reason until the function it returns is called: once a
// record is in Hosts others may read it, and they need the reason too.
func (c *Cache) publishReason(origin, reason string) (written func()) {
	if reason == "" {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reasons == nil {
		c.reasons = map[string]string{}
	}
	c.reasons[origin] = reason
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.reasons, origin)
	}
}

func (c *Cache) remember(e entry) {
	n := c.MaxOrigins
	if n <= 0 {
		n = 4096
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.memory.put(e, n, maxMemory)
}

// rulesOf interprets a record: see [Cache].
func (c *Cache) rulesOf(rec hostdb.Robots) *Rules {
	switch {
	case len(rec.Body) > 0:
		products := append([]string{c.Product}, c.Aliases...)
		if c.Parse != nil {
			return c.Parse(rec.Body, products...)
		}
		r := parse(rec.Body, products, c.maxBytes())
		r.purposes = c.Purposes
		return r
	case !rec.FailingSince.IsZero() && rec.Fetched.Sub(rec.FailingSince) < maxFailing:
		return unavailable()
	case c.deniesAll(rec.Status):
		return DenyAll()
	}
	return AllowAll()
}

// crawlDelay returns the longest Crawl-delay of the other origins of a host: they
// share a server and a queue.
func (c *Cache) crawlDelay(recs []hostdb.Robots, but string, now time.Time) time.Duration {
	var d time.Duration
	for _, rec := range recs {
		if rec.Origin == but || !valid(rec.Fetched, rec.Expires, now) {
			continue
		}
		c.mu.Lock()
		e, ok := c.memory.get(rec.Origin)
		c.mu.Unlock()
		if !ok || !e.fetched.Equal(rec.Fetched) {
			e.rules = c.rulesOf(rec)
		}
		d = max(d, e.rules.CrawlDelay)
	}
	return d
}

// valid reports whether an answer need not be renewed. If the clock went back,
// it must be.
func valid(fetched, expires, now time.Time) bool {
	return !fetched.After(now) && now.Before(expires)
}

func findOrigin(recs []hostdb.Robots, origin string) (int, bool) {
	return slices.BinarySearchFunc(recs, origin, func(r hostdb.Robots, o string) int { return strings.Compare(r.Origin, o) })
}

// upsert returns a copy of the records that includes rec, in order, without
// those fetched longest ago if there are too many or they are too large.
func (c *Cache) upsert(recs []hostdb.Robots, rec hostdb.Robots) []hostdb.Robots {
	i, ok := findOrigin(recs, rec.Origin)
	if recs = slices.Clone(recs); ok {
		recs[i] = rec
	} else {
		recs = slices.Insert(recs, i, rec)
	}
	size := 0
	for _, r := range recs {
		size += len(r.Body)
	}
	for len(recs) > maxOrigins || size > max(maxBodies, c.maxBytes()) {
		oldest := -1
		for j, r := range recs {
			// Dropping a record without a file does not reduce the size.
			if r.Origin != rec.Origin && (len(r.Body) > 0 || len(recs) > maxOrigins) && (oldest < 0 || r.Fetched.Before(recs[oldest].Fetched)) {
				oldest = j
			}
		}
		if oldest < 0 {
			break // rec alone is longer
		}
		size -= len(recs[oldest].Body)
		recs = slices.Delete(recs, oldest, oldest+1)
	}
	return recs
}

// originOf returns the origin of a URL, or the rules if there is nothing to ask.
func (c *Cache) originOf(url string) (string, *Rules) {
	origin, rules := originOf(url)
	if rules == nil && c.exempt(origin) {
		return "", AllowAll()
	}
	return origin, rules
}

// originOf returns scheme, host and port of a URL in lower case, without a
// default port, or the rules if there is nothing to request: for a scheme
// without robots.txt they allow everything, and for a string that is no URL
// nothing.
func originOf(url string) (string, *Rules) {
	scheme, rest, _ := strings.Cut(url, ":")
	scheme = strings.ToLower(scheme)
	if scheme != "http" && scheme != "https" {
		return "", AllowAll()
	}
	host, ok := strings.CutPrefix(rest, "//")
	if i := strings.IndexAny(host, `/?#\`); i >= 0 {
		host = host[:i]
	}
	host = lower(host[strings.LastIndexByte(host, '@')+1:])
	port := ":80"
	if scheme == "https" {
		port = ":443"
	}
	host = strings.TrimSuffix(strings.TrimSuffix(host, port), ":")
	if !ok || hostdb.ByHost.Key(scheme+"://"+host) == "" {
		return "", DenyAll()
	}
	return scheme + "://" + host, nil
}

// lower returns a host with ASCII letters in lower case. The rest is left to IDNA,
// which has an "İ" that is no "i".
func lower(host string) string {
	if strings.IndexFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return strings.ToLower(host)
	}
	b := []byte(host)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
