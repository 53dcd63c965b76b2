package hostdb

import (
	"time"
)

// Host is the record of one host, or of a domain or address that shares one queue: see
// [By]. Times are kept to the millisecond and read back in UTC. They are
// times of the real clock, not of the clock of the crawl, except for those of Robots.
//
// The fields up to Signals are kept up to date as the host is visited; those
// from Pages on are its statistics, which are as old as Counted says, and zero
// until they are made (package hoststat).
type Host struct {
	// Name is the key: a host in lower case without a port, or a domain.
	Name string
	// NextFetch is the earliest time of the next request.
	NextFetch time.Time
	// LastFetch is when the last request ended.
	LastFetch time.Time
	// Grants has an entry for each request that is permitted to be under way: the
	// time by which it will have ended or been cut off, in ascending order; nil if
	// there is none. Crawlers that share the store must agree on how many there may
	// be.
	Grants []time.Time
	// CrawlDelay is the pause that robots.txt asks of this crawler; zero if it
	// asks for none.
	CrawlDelay time.Duration
	// Backoff is one more than the number of times the pause is doubled:
	// failures add to it and answers subtract. Zero while all is well.
	Backoff int
	// Elapsed is how long the host has recently taken to answer a request: a
	// running mean. Zero if it was never asked.
	Elapsed time.Duration
	// Spent is what the host was asked for today.
	Spent Spent
	// Robots holds what is known of the robots.txt files of the host, one for
	// each origin (scheme, host, port) in ascending order of Origin.
	Robots []Robots
	// Stats counts what became of the requests.
	Stats Stats
	// Signals says how often sitemaps were right about the host.
	Signals SignalStats

	// Pages counts the records of the host in the crawl db.
	Pages Pages
	// Homepage is the URL of the start page, empty if none is known. It may be on
	// another host that this one redirects to.
	Homepage string
	// Score is the weight that the operator gives the host; zero if none.
	Score float32
	// DNSFailures counts the checks in a row in which the name had no address.
	DNSFailures int64
	// ConnectionFailures counts the records whose last visit had a transient
	// failure and should be retried.
	ConnectionFailures int64
	// LastCheck is when the name was last looked up; zero if it never was.
	LastCheck time.Time
	// Overdue counts the unfetched records that have been due for long.
	Overdue int64
	// Fields are figures computed from the metadata of the pages that were
	// fetched, under Nutch's names: "min._rs_", "max._rs_", "avg._rs_" and
	// "pct95._rs_" of a number, "Content-Type.text/html" for how often a value
	// occurs.
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
	// Body is the file, or the part of it that is read; while the server fails,
	// that of the last good answer is kept. Package robots keeps a megabyte in
	// all per host.
	Body []byte
	// ETag and LastModified are the validators of Body, as they were sent; empty
	// if there are none.
	ETag, LastModified string
	// Fetched is when the last request ended, answered or not; Expires is when
	// to ask again.
	Fetched, Expires time.Time
	// FailingSince is when an unbroken run of failures began; zero if the last
	// answer was good.
	FailingSince time.Time
}

// Stats counts requests for pages, not for robots.txt, since the host became
// known.
type Stats struct {
	Fetched, NotModified, Redirected, Gone, Failed, RobotsDenied int64
	// Bytes counts the bytes of the bodies as they were sent.
	Bytes int64
	// Failures counts the failures since the last success. Beyond the number at which
	// fetches give up a host, it only counts those that came after a pause, and few of
	// those that were errors sent by the server: see fetch.Politeness.MaxPause.
	Failures int64
}

// Spent counts the requests of one day, those for robots.txt too.
type Spent struct {
	// Day is the midnight, in UTC, with which the day began.
	Day time.Time
	// Requests counts the requests that were begun, Bytes the bytes of their
	// bodies as sent; of a robots.txt only the request counts.
	Requests, Bytes int64
}

// On returns what was spent on the day of now: nothing, if s is of an earlier
// day. If a clock was ahead and s is of a later day, that counts as today.
func (s Spent) On(now time.Time) Spent {
	day := now.UTC().Truncate(24 * time.Hour)
	if s.Day.Before(day) {
		return Spent{Day: day}
	}
	s.Day = day
	return s
}

// MaxGrant is the longest that a grant of a host may last: an entry of Host.Grants is
// that much later than the beginning of its request.
const MaxGrant = 10 * time.Minute

// AfterCrash returns the record as it must be after a crash. If the host was
// being asked, or was asked within the minute before the store's last sign of
// life, it counts as asked at now, with the same pause as at its last request.
func (h Host) AfterCrash(alive, now time.Time) Host {
	if len(h.Grants) == 0 && (h.LastFetch.IsZero() || h.LastFetch.Before(alive.Add(-time.Minute))) {
		return h
	}
	asked := h.LastFetch
	if n := len(h.Grants); n > 0 {
		// The last request may have ended days ago: the pause follows the one
		// that was under way.
		if began := h.Grants[n-1].Add(-MaxGrant); began.After(asked) && !began.After(h.NextFetch) {
			if asked = began; asked.After(now) { // by a clock that was ahead
				h.NextFetch = now.Add(h.NextFetch.Sub(asked))
				asked = now
			}
		}
	}
	pause := max(h.CrawlDelay, 0)
	if !asked.IsZero() {
		pause = max(pause, h.NextFetch.Sub(asked))
	}
	h.Grants = nil
	if next := now.Add(min(pause, time.Hour)); next.After(h.NextFetch) {
		h.NextFetch = next
	}
	return h
}
