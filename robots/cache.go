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
	// maxHops is how many redirects of a robots.txt are followed by default.
	maxHops = 5
	// maxOrigins is how many origins of a host are remembered, and maxBodies how
	// many bytes of their files, unless one alone is longer.
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

// A Cache answers which rules hold for a URL. It asks for each robots.txt once a
// day at most while all is well, and remembers the answers in a hostdb.Store,
// from where later runs and other crawlers have them.
//
// What an answer means is in RFC 9309 section 2.3.1:
//
//	2xx                    the file holds for MaxAge
//	4xx but not 429        there is no file: all is allowed, for MaxAge
//	3xx, five of them      followed, to other hosts too
//	3xx, a sixth           as 4xx, and so is one without a target, and a loop
//	429, 5xx, no answer    the last good copy holds; without one nothing may be
//	                       visited for now ([Rules].Unavailable)
//	the same for 30 days   as 4xx
//
// A server that fails is asked again after a minute, then after twice the time
// and so on up to an hour, or after as long as it asks for (Retry-After) up to
// MaxAge. A visit that the Protocol refuses (protocol.Refused) is no answer, nor
// is a redirect to another scheme than http and https. Of a file that ends too
// early the whole lines hold, for an hour; without one it is no answer. Only http
// and https have a robots.txt: elsewhere all is allowed.
//
// A file that is asked for again is asked for with its validators, and one that
// has not been modified holds anew. What Cache-Control says of it counts for
// nothing: many servers forbid to keep anything at all, and mean nothing by it.
//
// Of a host at most 16 origins and a megabyte of files are remembered; the file
// fetched longest ago is forgotten first, and asked for again when it is needed.
//
// A Cache may be used from many goroutines at once once its fields are set, and
// must not be copied. It starts nothing and need not be closed.
type Cache struct {
	// Protocol fetches the files. Required.
	Protocol protocol.Protocol
	// Hosts remembers them: the bodies, and the Crawl-delay of a host, the longest
	// of its origins. Required.
	Hosts hostdb.Store
	// Product is the product token of the crawler, whose rules hold. With an empty
	// one only the rules for everybody do. (Nutch: http.agent.name.)
	Product string
	// Policy says what else the crawler answers to, and where robots.txt does not
	// decide.
	Policy
	// Now is the clock that the crawl records; nil means time.Now. What was fetched
	// after Now is asked for again.
	Now func() time.Time
	// MaxAge is how long an answer holds, a minute at least; zero means 24 hours,
	// the most that RFC 9309 section 2.4 allows.
	MaxAge time.Duration
	// MaxBytes is how much of a file is read; zero, and less than the constant
	// MaxBytes, which is the least that RFC 9309 allows, mean that.
	MaxBytes int
	// MaxOrigins is for how many origins parsed rules are kept in memory, about
	// 64 MiB at most; zero means 4,096. Others are parsed again out of Hosts.
	MaxOrigins int
	// Parse reads a file, of which it is given at most MaxBytes, for Product and
	// Aliases; nil means the parser of [Parse]. It must not fail, whatever the bytes.
	Parse func(body []byte, products ...string) *Rules
	// Hop is asked before Fetch follows a redirect, and returns the URL to ask for,
	// to as it is or in another spelling. An error says why it must not be: the file
	// cannot be had then ([Rules].Unavailable, with the error as Reason). Nil follows
	// redirects wherever they lead over http and https. Callers that have rules for
	// each hop and a turn for each server take the steps themselves: see [Asking].
	Hop func(ctx context.Context, from, to string) (string, error)
	// Logger is told of servers that fail; nil means silence.
	Logger *slog.Logger

	mu     sync.Mutex
	memory lru
	// why are the reasons of files that could not be had, by origin, while their
	// records are being written.
	why map[string]string
}

// Cached returns the rules that hold for a URL, from memory or from Hosts, and
// false if Fetch must be asked. It makes no request. An error is one of the store
// or of ctx.
func (c *Cache) Cached(ctx context.Context, url string) (*Rules, bool, error) {
	origin, rules := c.originOf(url)
	if rules != nil {
		return rules, true, nil
	}
	now := c.now()
	c.mu.Lock()
	e, ok := c.memory.get(origin)
	c.mu.Unlock()
	if ok && fresh(e.fetched, e.expires, now) {
		return e.rules, true, nil
	}
	if c.Hosts == nil {
		return nil, false, errNoHosts
	}
	rec, err := c.known(ctx, origin)
	if err != nil || !fresh(rec.Fetched, rec.Expires, now) {
		return nil, false, err
	}
	r := c.rules(rec)
	c.keep(rec, r, "")
	return r, true, nil
}

// known returns what Hosts has of an origin, which may be nothing.
func (c *Cache) known(ctx context.Context, origin string) (hostdb.Robots, error) {
	host, err := c.Hosts.Get(ctx, hostdb.ByHost.Key(origin))
	if err != nil && !errors.Is(err, hostdb.ErrNotFound) {
		return hostdb.Robots{}, fmt.Errorf("robots: look up %s: %w", origin, err)
	}
	if i, ok := find(host.Robots, origin); ok {
		return host.Robots[i], nil
	}
	return hostdb.Robots{Origin: origin}, nil
}

// Fetch asks for the robots.txt of a URL, remembers the answer and returns the
// rules that hold. Two calls for one origin at the same time both ask. An error
// is one of the store, of ctx, or of the Protocol when it could not try; whatever
// a server does is no error.
func (c *Cache) Fetch(ctx context.Context, url string) (*Rules, error) {
	a := c.Ask(url)
	for a.Next() != "" {
		if a.From() != "" && c.Hop != nil {
			to, err := c.Hop(ctx, a.From(), a.Next())
			switch {
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case err != nil:
				a.GiveUp(err.Error())
				continue
			}
			a.Lead(to)
		}
		if known, err := a.Known(ctx); known || err != nil {
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

// keep remembers the rules of a record, which are new, with the reason if the
// file could not be had.
func (c *Cache) keep(rec hostdb.Robots, r *Rules, reason string) {
	if r.Unavailable {
		if reason == "" { // of a record, which has none
			reason = c.reason(rec)
		}
		r.Reason = reason
	}
	size := 256 + r.size
	if r.allow != nil {
		size += 64 * len(rec.Body) // what is kept by a parser that makes regular expressions of rules
	}
	c.remember(entry{origin: rec.Origin, rules: r, fetched: rec.Fetched, expires: rec.Expires, size: size})
}

// reason returns why the file of a record could not be had; empty if that was in
// another life.
func (c *Cache) reason(rec hostdb.Robots) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if why, ok := c.why[rec.Origin]; ok {
		return why
	}
	if e, ok := c.memory.get(rec.Origin); ok && e.fetched.Equal(rec.Fetched) {
		return e.rules.Reason
	}
	return ""
}

// writes notes a reason until the function it returns is called: from when a record
// is in Hosts others may read it, and they are told, too.
func (c *Cache) writes(origin, reason string) (written func()) {
	if reason == "" {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why == nil {
		c.why = map[string]string{}
	}
	c.why[origin] = reason
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.why, origin)
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

// rules reads a record: see [Cache] for what it means.
func (c *Cache) rules(rec hostdb.Robots) *Rules {
	switch {
	case len(rec.Body) > 0:
		products := append([]string{c.Product}, c.Aliases...)
		if c.Parse != nil {
			return c.Parse(rec.Body, products...)
		}
		return parse(rec.Body, products, c.maxBytes())
	case !rec.FailingSince.IsZero() && rec.Fetched.Sub(rec.FailingSince) < maxFailing:
		return Unavailable()
	case c.denied(rec.Status):
		return DenyAll()
	}
	return AllowAll()
}

// crawlDelay returns the longest Crawl-delay of the other origins of a host: they
// share a server and a queue.
func (c *Cache) crawlDelay(recs []hostdb.Robots, but string, now time.Time) time.Duration {
	var d time.Duration
	for _, rec := range recs {
		if rec.Origin == but || !fresh(rec.Fetched, rec.Expires, now) {
			continue
		}
		c.mu.Lock()
		e, ok := c.memory.get(rec.Origin)
		c.mu.Unlock()
		if !ok || !e.fetched.Equal(rec.Fetched) {
			e.rules = c.rules(rec)
		}
		d = max(d, e.rules.CrawlDelay)
	}
	return d
}

// fresh reports whether an answer need not be renewed. A clock that went back
// makes it old.
func fresh(fetched, expires, now time.Time) bool {
	return !fetched.After(now) && now.Before(expires)
}

func find(recs []hostdb.Robots, origin string) (int, bool) {
	return slices.BinarySearchFunc(recs, origin, func(r hostdb.Robots, o string) int { return strings.Compare(r.Origin, o) })
}

// upsert returns a copy of the records with rec among them, in order, without
// those fetched longest ago if there are too many or they are too large.
func (c *Cache) upsert(recs []hostdb.Robots, rec hostdb.Robots) []hostdb.Robots {
	i, ok := find(recs, rec.Origin)
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
			// A record without a file is no help against the size.
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

// originOf returns scheme, host and port of a URL in lower case, without the
// port that goes without saying, or the rules if there is nothing to ask: none
// for schemes without robots.txt, and for what is no URL none that it may be.
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

// lower returns a host in lower case as far as it is ASCII. What is not, is for IDNA
// to map, which has an "İ" that is no "i".
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
