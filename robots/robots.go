// Package robots reads robots.txt (RFC 9309) and keeps what it says: [Parse]
// turns the bytes of a file into [Rules] for one crawler, and [Cache] fetches
// files through a protocol.Protocol and remembers them in a hostdb.Store. What
// single pages ask for, in X-Robots-Tag headers and meta elements, is read by
// [ParseHeader] and [ParseMeta].
//
// Parse never fails. What a file leaves open is read as the crawlers read it
// that site owners test with, in the order RFC, Google, crawler-commons:
//
//   - The rule with the most octets wins, each wildcard and a final $ counted;
//     of two equally long ones, Allow.
//   - Paths are compared octet by octet after percent-encoding is made alike:
//     unreserved characters are decoded, octets outside of ASCII and those that
//     no URL may hold are encoded, hex digits are in upper case. Reserved
//     characters stay as they are written: %2F is not "/", but %2A and %24 are
//     the plain characters "*" and "$".
//   - Rules before the first User-agent line belong to nobody and are ignored.
//   - A missing colon, the usual misspellings of Disallow and User-agent, a
//     comma between product tokens, UTF-16, NUL bytes and files wrapped in HTML
//     are forgiven. So is what cannot be understood: the line is skipped.
//   - "Allow: /dir/index.html" allows "/dir/" too.
//
// Hostile files cost little: 500 KiB of a file are read, 16 KiB of a line; a path
// is matched in time linear in its length, and of rules without a wildcard within
// any number costs the same. What a Cache keeps is bounded, in memory and in its
// store.
//
// The package keeps no politeness: a Crawl-delay is handed on, not obeyed. Who has
// a fetcher of his own needs Parse and [ParseResponse] only.
package robots

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Rules is what one robots.txt file asks of one crawler; the zero value allows
// all. It is not changed once made, may be used from many goroutines at once, and
// must not be changed by those it is given to.
type Rules struct {
	// CrawlDelay is the pause between requests that the file asks for, at most
	// 24 hours; HasCrawlDelay says that it asks for one, which may be of zero.
	CrawlDelay    time.Duration
	HasCrawlDelay bool
	// Sitemaps are the values of the Sitemap lines, which are for all crawlers, in
	// the order of the file, each once. They are as written: possibly relative,
	// possibly of another host.
	Sitemaps []string
	// Unavailable says that the file could not be had: the server fails, and
	// nothing may be visited until the file was asked for again. A visit that such
	// rules forbid is to be put off, not given up.
	Unavailable bool
	// Refused says that a rule of ours, not the server, kept us from asking for
	// the file, as it would from asking for any page there. Rules that are refused
	// are unavailable too.
	Refused bool
	// Reason says which rule refused, or why the file could not be had; empty
	// otherwise, or if that is only known from an earlier process.
	Reason string

	deny  bool // forbid what no rule speaks of
	rules ruleSet
	allow func(path string) bool // decides instead of the above, unless nil
	size  int                    // bytes in memory, about
}

// RuleSet is what rules are made of by another parser of robots.txt: see
// [NewRules].
type RuleSet struct {
	// Allow reports whether the path, which begins with a slash and ends with the
	// query if there is one, may be visited; nil allows all. It is called from many
	// goroutines at once.
	Allow func(path string) bool
	// CrawlDelay is zero or negative if the file asks for none.
	CrawlDelay time.Duration
	Sitemaps   []string
}

// NewRules returns the rules that another parser of robots.txt has read.
func NewRules(s RuleSet) *Rules {
	r := &Rules{allow: s.Allow, Sitemaps: slices.Clone(s.Sitemaps)}
	if s.CrawlDelay > 0 {
		r.CrawlDelay, r.HasCrawlDelay = min(s.CrawlDelay, maxCrawlDelay), true
	}
	return r
}

// ParseResponse returns the rules that follow from what a server answered to the
// request for its robots.txt, redirects followed: the status of HTTP, and the body
// if it is 2xx. Zero is for no answer at all. See [Cache] for the table; like it,
// who has a good copy should keep to that while the rules are Unavailable, for 30
// days.
func ParseResponse(status int, body []byte, products ...string) *Rules {
	switch {
	case status >= 200 && status < 300:
		return Parse(body, products...)
	case status >= 300 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusNotModified:
		return AllowAll()
	}
	return Unavailable()
}

// AllowAll returns the rules of a site without robots.txt.
func AllowAll() *Rules { return &Rules{} }

// DenyAll returns rules that forbid everything but /robots.txt.
func DenyAll() *Rules { return &Rules{deny: true} }

// Unavailable returns the rules of a site whose robots.txt cannot be had for
// now: they forbid everything but /robots.txt. (RFC 9309 section 2.3.1.4 calls
// such a file unreachable.)
func Unavailable() *Rules { return &Rules{deny: true, Unavailable: true} }

// Allowed reports whether a URL of the site may be visited. It takes an absolute
// URL, or a path with its query; a fragment does not count, and neither does the
// origin: rules do not know whose they are. /robots.txt is always allowed.
func (r *Rules) Allowed(url string) bool {
	allowed, _ := r.decide(url)
	return allowed
}

// Explain does what Allowed does and names the line of the file that decides, as
// "line 12: Disallow: /private/". It is empty if none does, and if the rules were
// made by another parser.
func (r *Rules) Explain(url string) (allowed bool, line string) {
	allowed, by := r.decide(url)
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

// pathOf returns path and query of a URL, or of what is one already.
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
