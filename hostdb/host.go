package hostdb

import (
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"github.com/recrawl/recrawl/crawldb"
)

// Host is the record of one host, or of whatever else shares one queue: see
// [By]. Times are kept to the millisecond and read back in UTC. They are times
// of the real clock, whatever time a crawl records, but for those of Robots.
//
// The fields up to Stats are kept up to date by whoever asks the host; those
// from Pages on are its statistics, which are as old as Counted says, and zero
// until they are made (package hoststat).
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

	// Pages counts the records of the host in the crawl db.
	Pages Pages
	// Homepage is the URL of the start page, empty if none is known. It may be on
	// another host, to which this one redirects.
	Homepage string
	// Score is the weight that the operator gives the host; zero if none.
	Score float32
	// DNSFailures counts the checks in a row in which the name had no address.
	DNSFailures int64
	// ConnectionFailures counts the records whose last visit failed for now and is
	// to be tried again.
	ConnectionFailures int64
	// LastCheck is when the name was last looked up; zero if it never was.
	LastCheck time.Time
	// Overdue counts the unfetched records that have been due for long.
	Overdue int64
	// Fields are figures made of the metadata of the pages that were fetched,
	// under Nutch's names: "min._rs_", "max._rs_", "avg._rs_" and "pct95._rs_" of
	// a number, "Content-Type.text/html" for how often a text occurs.
	Fields map[string]float64
	// Counted is when the statistics were made.
	Counted time.Time
}

// Pages counts records of the crawl db by their status.
type Pages struct {
	Unfetched, Fetched, Gone, RedirTemp, RedirPerm, NotModified, Duplicate, Orphan, ParseFailed int64
}

// Total returns the number of all records. (Nutch's numRecords leaves out
// Duplicate, Orphan and ParseFailed.)
func (p Pages) Total() int64 {
	return p.Unfetched + p.Fetched + p.Gone + p.RedirTemp + p.RedirPerm + p.NotModified + p.Duplicate + p.Orphan + p.ParseFailed
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
	ByDomain           // the registered domain: see Domain
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

// Domain returns the registered domain of a host, one label more than [Suffix],
// or the host itself if it is a public suffix or has none. (Nutch:
// URLUtil.getDomainName.)
func Domain(host string) string {
	suffix := Suffix(host)
	if suffix == "" || strings.Contains(host, "..") || host[0] == '.' {
		return host
	}
	// By the number of labels: the suffix may be spelled otherwise than the host.
	host = strings.TrimSuffix(host, ".")
	domain := len(host)
	for range strings.Count(suffix, ".") + 2 {
		if domain = strings.LastIndexByte(host[:domain], '.'); domain < 0 {
			return host
		}
	}
	return host[domain+1:]
}

// Suffix returns the public suffix of a host, "co.uk" of "www.example.co.uk", in
// ASCII. It is empty for an address, and for a host under a name that the list
// does not have. Of the public suffix list that part counts for which ICANN
// answers, as in Nutch: the other part lists services that give names to their
// customers ("github.io"), whose hosts are mostly the same machines, and belong
// into one queue.
func Suffix(host string) string {
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil || host == "" {
		return ""
	}
	host = strings.TrimSuffix(host, ".")
	if ascii, err := idna.ToASCII(strings.ToLower(host)); err == nil {
		host = ascii
	}
	for {
		suffix, icann := publicsuffix.PublicSuffix(host)
		if icann {
			return suffix
		}
		// Of a suffix with a single label there is no rule; any other is private,
		// and what it is below may be not.
		var ok bool
		if _, host, ok = strings.Cut(suffix, "."); !ok {
			return ""
		}
	}
}

// TLD returns the top-level domain of a host, empty where [Suffix] is.
func TLD(host string) string {
	suffix := Suffix(host)
	return suffix[strings.LastIndexByte(suffix, '.')+1:]
}
