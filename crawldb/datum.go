package crawldb

import (
	"fmt"
	"strings"
	"time"
)

// Datum is the record of one URL.
//
// Times are kept to the millisecond and read back in UTC; a zero time means
// never. A Datum is a plain value: copying one copies everything but the bytes
// of Signature, which must never be changed in place.
type Datum struct {
	// URL is the normalized text of the URL, the key of the record.
	URL string
	// Status is what the last update made of the URL.
	Status Status
	// FetchTime is the earliest time of the next fetch.
	FetchTime time.Time
	// LastFetch is when the last visit that this record knows of was made. An
	// older visit is not applied to the record.
	LastFetch time.Time
	// Interval is the time from one fetch to the next, in whole seconds.
	Interval time.Duration
	// Modified is when the content was last seen to have changed.
	Modified time.Time
	// Retries counts the transient failures in a row.
	Retries int
	// Score is the importance of the page according to the scoring filters.
	Score float32
	// Priority orders the due records; higher is sooner. Scoring filters compute
	// it when the record is written; without filters it is the score.
	Priority float32
	// Signature is the fingerprint of the content as of the last fetch that
	// brought any; nil if none has.
	Signature []byte
	// ETag and LastModified are the validators the server sent with that
	// content, as sent.
	ETag, LastModified string
	// LeasedUntil is the time until which no other round may select the record;
	// LeasedBy names the segment it was put into. (Nutch keeps _ngt_.)
	LeasedUntil time.Time
	LeasedBy    string
	// Meta is what policies and seeds attach. See [Meta] for the owner of each key.
	Meta Meta
}

// Leased reports whether a round has the record at that time.
func (d *Datum) Leased(now time.Time) bool { return d.LeasedUntil.After(now) }

// Status says what is known of a URL. The numbers are Nutch's and are stored:
// never renumber.
type Status uint8

const (
	Unfetched   Status = 1 // known, not fetched yet, or to be retried
	Fetched     Status = 2 // fetched, and new or changed
	Gone        Status = 3 // the server says it does not exist, or every retry failed
	RedirTemp   Status = 4 // redirects for now
	RedirPerm   Status = 5 // redirects for good
	NotModified Status = 6 // fetched, and the same as before
	Duplicate   Status = 7 // same content as the original, another page
	Orphan      Status = 8 // no page links to it any more
	ParseFailed Status = 9 // fetched, but no parser could read it
)

// Statuses lists every status in the order of its number.
func Statuses() []Status {
	return []Status{Unfetched, Fetched, Gone, RedirTemp, RedirPerm, NotModified, Duplicate, Orphan, ParseFailed}
}

// String returns Nutch's name: "db_unfetched" and so on.
func (s Status) String() string {
	switch s {
	case Unfetched:
		return "db_unfetched"
	case Fetched:
		return "db_fetched"
	case Gone:
		return "db_gone"
	case RedirTemp:
		return "db_redir_temp"
	case RedirPerm:
		return "db_redir_perm"
	case NotModified:
		return "db_notmodified"
	case Duplicate:
		return "db_duplicate"
	case Orphan:
		return "db_orphan"
	case ParseFailed:
		return "db_parse_failed"
	}
	return fmt.Sprintf("unknown(%d)", uint8(s))
}

// ParseStatus is the inverse of [Status.String]; case does not matter, and the
// prefix may be left out.
func ParseStatus(name string) (Status, error) {
	want := strings.TrimPrefix(strings.ToLower(name), "db_")
	for _, s := range Statuses() {
		if strings.TrimPrefix(s.String(), "db_") == want {
			return s, nil
		}
	}
	return 0, fmt.Errorf("crawldb: unknown status %q", name)
}
