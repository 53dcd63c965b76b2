package hostdb

import (
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/recrawl/recrawl/crawldb"
)

// Host is the record of one host, or of whatever else shares one queue: see
// [By]. Times are kept to the millisecond and read back in UTC. They are times
// of the real clock, whatever time a crawl records, but for those of Robots.
type Host struct {
	// Name is the key: a host in lower case without a port, or a domain.
	Name string
	// NextFetch is the earliest time of the next request.
	NextFetch time.Time
	// LastFetch is when the last request ended.
	LastFetch time.Time
	// BusyUntil is set while a request is on its way: nobody else may ask before
	// that time, by which the request has ended or been cut off. Zero while none
	// is.
	BusyUntil time.Time
	// CrawlDelay is the pause that robots.txt asks of this crawler; zero if it
	// asks for none.
	CrawlDelay time.Duration
	// Backoff is how many times in a row the pause was doubled after failures.
	Backoff int
	// Robots holds what is known of the robots.txt files of the host, one for
	// each origin (scheme, host, port) in ascending order of Origin.
	Robots []Robots
	// Stats counts what became of the requests.
	Stats Stats
}

// Robots is a robots.txt file as it was last fetched, and until when it holds.
// Its times are those the crawl records.
type Robots struct {
	// Origin is scheme and authority: "https://example.com:8443".
	Origin string
	// Status is the HTTP status of the last answer; zero if none came.
	Status int
	// Body is the file, at most 500 KiB of it; kept from the last good answer
	// while the server fails.
	Body []byte
	// Fetched is when the last answer came or failed to; Expires is when to ask
	// again.
	Fetched, Expires time.Time
	// FailingSince is when an unbroken run of failures began; zero if the last
	// answer was good.
	FailingSince time.Time
}

// Stats counts requests for pages, robots.txt apart, since the host is known.
type Stats struct {
	Fetched, NotModified, Redirected, Gone, Failed, RobotsDenied int64
	// Bytes counts the bytes of the bodies as they were sent.
	Bytes int64
	// Failures counts the failures since the last answer.
	Failures int64
}

// AskedAgain returns the record as it must be after a crash: if the host was
// being asked, or was asked within the minute before the last sign of life of
// the store, then as if it had been asked at now, with the same pause as after
// its last request.
func (h Host) AskedAgain(alive, now time.Time) Host {
	if h.BusyUntil.IsZero() && (h.LastFetch.IsZero() || h.LastFetch.Before(alive.Add(-time.Minute))) {
		return h
	}
	pause := max(h.NextFetch.Sub(h.LastFetch), h.CrawlDelay, 0)
	if h.LastFetch.IsZero() {
		pause = max(h.CrawlDelay, 0)
	}
	h.BusyUntil = time.Time{}
	if next := now.Add(min(pause, time.Hour)); next.After(h.NextFetch) {
		h.NextFetch = next
	}
	return h
}

// By says which URLs share a queue, and so a turn and a pause. (Nutch:
// fetcher.queue.mode.)
type By uint8

const (
	ByHost   By = iota // the host
	ByDomain           // the registered domain: one label more than the public suffix
)

// String returns Nutch's word.
func (b By) String() string {
	if b == ByDomain {
		return "byDomain"
	}
	return "byHost"
}

// Key returns the name of the queue a URL belongs to; empty if the URL has no
// host. A trailing dot of a host does not make it another one.
func (b By) Key(url string) string {
	host := strings.TrimSuffix(crawldb.Host(url), ".")
	if b == ByHost || host == "" {
		return host
	}
	return Domain(host)
}

// Domain returns the registered domain of a host by the public suffix list, or
// the host itself if it is an address or a public suffix, or has one label.
func Domain(host string) string {
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return host
	}
	if d, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return d
	}
	return host
}
