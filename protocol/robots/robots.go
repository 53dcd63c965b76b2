// Package robots reads robots.txt (RFC 9309) and remembers it: [Parse] turns the
// bytes of a file into [Rules] for one crawler, and [Cache] fetches files through
// a protocol.Protocol and keeps them in a hostdb.Store. [ParseHeader] and
// [ParseMeta] read the X-Robots-Tag headers and the meta elements of single pages.
//
// Parse never fails. Where a file is ambiguous, it is read as by the crawlers
// that site owners test with, in the order RFC, Google, crawler-commons:
//
//   - The rule with the most octets wins, each wildcard and a final $ counted;
//     of two equally long ones, Allow.
//   - Paths are compared octet by octet after percent-encoding is normalized:
//     unreserved characters are decoded, non-ASCII octets and those not allowed
//     in URLs are encoded, hex digits are in upper case. Reserved characters
//     stay as written: %2F is not "/", but %2A and %24 are the plain characters
//     "*" and "$".
//   - Rules before the first User-agent line belong to no crawler and are ignored.
//   - A missing colon, the usual misspellings of Disallow and User-agent, a
//     comma between product tokens, UTF-16, NUL bytes and files wrapped in HTML
//     are forgiven. A line that cannot be understood is skipped.
//   - "Allow: /dir/index.html" allows "/dir/" too.
//
// Hostile files cost little: 500 KiB of a file are read, 16 KiB of a line, and a
// path is matched in time linear in the file: no pattern backtracks. A Cache is
// bounded, in memory and in its store.
//
// The package does not enforce politeness: a Crawl-delay is passed on, not
// obeyed. With your own fetcher, start with Parse and [ParseResponse].
package robots

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Rules is what a robots.txt file asks of one crawler; the zero value allows
// everything. Rules never change once made, may be used from many goroutines at
// once, and must not be modified.
type Rules struct {
	// CrawlDelay is the pause between requests that the file asks for, at most
	// 24 hours; HasCrawlDelay says that it asks for one, which may be zero.
	CrawlDelay    time.Duration
	HasCrawlDelay bool
	// Sitemaps are the values of the Sitemap lines, which are for all crawlers,
	// in file order and without duplicates. They are as written: possibly
	// relative, possibly on another host.
	Sitemaps []string
	// Unavailable says that the file could not be fetched: the server fails,
	// and nothing may be visited until the file has been requested again. A
	// visit that such rules forbid should be postponed, not given up.
	Unavailable bool
	// Refused says that a rule of ours, not the server, kept us from requesting
	// the file, as it would for any page there. Refused rules are unavailable
	// too.
	Refused bool
	// Reason says which rule refused, or why the file could not be fetched;
	// empty otherwise, or if only an earlier process knew.
	Reason string

	deny  bool // forbid what no rule covers
	rules ruleSet
	allow func(path string) bool // decides instead of the above, unless nil

	usage    []usageRule
	purposes []string // what the crawl is for: see Policy
	size     int      // bytes in memory, about
}

// RuleSet is the result of another parser of robots.txt, from which [NewRules]
// makes Rules.
type RuleSet struct {
	// Allow reports whether the path, which begins with a slash and ends with the
	// query if there is one, may be visited; nil allows all. It is called from many
	// goroutines at once.
	Allow func(path string) bool
	// CrawlDelay is zero or negative if the file asks for none.
	CrawlDelay time.Duration
	Sitemaps   []string
}

// NewRules returns rules that another parser of robots.txt has read.
func NewRules(s RuleSet) *Rules {
	r := &Rules{allow: s.Allow, Sitemaps: slices.Clone(s.Sitemaps)}
	if s.CrawlDelay > 0 {
		r.CrawlDelay, r.HasCrawlDelay = min(s.CrawlDelay, maxCrawlDelay), true
	}
	return r
}

// ParseResponse returns the rules that follow from a server's answer to the
// request for its robots.txt, after redirects: the HTTP status, and the body if
// it is 2xx. A status of zero means no answer at all. See [Cache] for the
// table. Callers who have a good copy should, like the Cache, keep it for 30
// days while the rules are unavailable.
func ParseResponse(status int, body []byte, products ...string) *Rules {
	switch {
	case status >= 200 && status < 300:
		return Parse(body, products...)
	case status >= 300 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusNotModified:
		return AllowAll()
	}
	return unavailable()
}

// AllowAll returns the rules of a site without robots.txt.
func AllowAll() *Rules { return &Rules{} }

// DenyAll returns rules that forbid everything but /robots.txt.
func DenyAll() *Rules { return &Rules{deny: true} }

// unavailable returns the rules of a site whose robots.txt cannot be fetched
// for now: they forbid everything but /robots.txt. (RFC 9309 section 2.3.1.4
// calls such a file unreachable.)
func unavailable() *Rules { return &Rules{deny: true, Unavailable: true} }

// Allowed reports whether a URL of the site may be visited. It takes an
// absolute URL, or a path with its query; the fragment is ignored, and so is
// the origin: rules do not know their site. /robots.txt is always allowed.
func (r *Rules) Allowed(url string) bool {
	if allowed, _ := r.decide(url); !allowed {
		return false
	}
	purpose, _ := r.reserved(url)
	return purpose == ""
}

// Explain does what Allowed does and names the line of the file that decides,
// as "line 12: Disallow: /private/". The line is empty if none decides, or if
// the rules come from another parser.
func (r *Rules) Explain(url string) (allowed bool, line string) {
	allowed, by := r.decide(url)
	if purpose, number := r.reserved(url); allowed && purpose != "" {
		return false, fmt.Sprintf("line %d: Content-Usage: %s=n", number, purpose)
	}
	if by == nil {
		return allowed, ""
	}
	field, end := "Disallow", ""
	if by.allow {
		field = "Allow"
	}
	if by.anchored {
		end = "$"
	}
	return allowed, fmt.Sprintf("line %d: %s: %s%s", by.line, field, by.pattern, end)
}

// decide also returns the rule that decides; nil if there is none.
func (r *Rules) decide(url string) (bool, *rule) {
	raw := pathOf(url)
	path := canonicalPath(raw)
	if path == "/robots.txt" {
		return true, nil
	}
	if r.allow != nil {
		return r.allow(raw), nil
	}
	if by := r.rules.find(path); by != nil {
		return by.allow, by
	}
	return !r.deny, nil
}

// pathOf returns path and query of a URL, or of a string that is already a
// path.
func pathOf(url string) string {
	if i := strings.IndexByte(url, '#'); i >= 0 {
		url = url[:i]
	}
	if i := strings.Index(url, "://"); i >= 0 && !strings.ContainsAny(url[:i], "/?") {
		url = url[i+3:]
		if j := strings.IndexAny(url, `/?\`); j >= 0 {
			url = url[j:]
		} else {
			url = ""
		}
	}
	if !strings.HasPrefix(url, "/") {
		return "/" + url
	}
	return url
}
