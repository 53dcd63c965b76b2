// Package protocol fetches pages from servers. Its contract, [Protocol], is one
// method and one hop: redirects are followed by the crawl, never by a protocol.
//
// What a server answers, or its failure to answer, is data ([Outcome]): 404, a
// redirect, a refused connection. An error means only that the visit could not
// be made: the context ended, or the machine failed.
//
// The stock implementations are protocol/httpproto and protocol/fileproto; a
// new one must pass protocoltest.Run.
package protocol

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/recrawl/recrawl/page"
)

// A Protocol makes one visit.
//
// Concurrency: Fetch is called from many goroutines at once, for one host never
// more than politeness allows.
//
// Cancellation: Fetch returns soon after its context is done, with an error
// that is ctx.Err(). Reaching a time or size limit of the protocol is not an
// error but an outcome.
//
// Ownership: the caller owns the response. When Fetch has returned, nothing of
// the visit is running or open, except idle connections that a later visit may
// use.
//
// Of robots.txt only that of http and https is asked for (see robots.Cache): a
// protocol of another scheme that has one obeys it by itself, and answers with
// RobotsDenied.
type Protocol interface {
	// Fetch requests one URL. It never follows a redirect, and sends no
	// credential that was not given for the exact origin of the URL.
	Fetch(ctx context.Context, req Request) (Response, error)
}

// A LookupProtocol says where the hosts are that it visits, as httpproto.Client does, so
// that what is grouped by address is grouped by those that are connected to.
type LookupProtocol interface {
	Protocol
	// Lookup returns the addresses of a host.
	Lookup(ctx context.Context, host string) ([]netip.Addr, error)
}

// Request is one visit to make.
type Request struct {
	// URL is absolute and normalized.
	URL string
	// ETag and LastModified are the validators of the known content, as the
	// server sent them; empty for an unconditional visit.
	ETag, LastModified string
	// MaxBytes limits the decoded body; zero means the limit of the protocol,
	// negative none.
	MaxBytes int64
	// Accept replaces the Accept header of the protocol, unless empty.
	Accept string
}

// Response is the result of a visit.
type Response struct {
	Outcome Outcome
	// Content is what the server sent; without a Body unless the outcome has
	// one. Its URL is that of the request, whatever the outcome, and its Robots what
	// this answer says, not modified or not. A fetch sets its Time, which need not be
	// given.
	Content page.Content
	// ETag and LastModified are the validators of Content, as sent; empty if
	// none, or if one is unsafe to send back.
	ETag, LastModified string
	// Modified is LastModified as a time, never after the visit; zero if the
	// server sent none or an unreadable one.
	Modified time.Time
	// Bytes is how many bytes of body came over the wire, before decoding.
	Bytes int64
	// Elapsed is how long the visit took.
	Elapsed time.Duration
	// Addr is the address that was contacted, with its port; empty if none was.
	Addr string
	// Unanswered says that the visit Failed because the server closed a connection that was
	// kept from an earlier visit: it may have done so while the request was on its way. A fetch
	// makes the request once more, under another grant, and does not count the first as a failure.
	Unanswered bool
}

// Outcome is how a visit ended.
type Outcome struct {
	Code Code
	// Status is the protocol's own number, for HTTP the status code; zero if
	// there was no answer.
	Status int
	// Location is the absolute target of a redirect.
	Location string
	// RetryAfter is how long the server asks to be left alone; zero if it does not.
	// For a visit that was skipped or refused, it is how long to wait, if known.
	RetryAfter time.Duration
	// Reason says in one line what went wrong; empty on success.
	Reason string
}

// Code says what an outcome means to the crawl. The numbers are stored: never
// renumber.
type Code uint8

const (
	// Success: the content is here. It may be truncated.
	Success Code = 1
	// NotModified: the content is still that of the request's validators.
	NotModified Code = 2
	// MovedPerm and MovedTemp: Location is where to look, for good or for now.
	MovedPerm Code = 3
	MovedTemp Code = 4
	// NotFound and Gone: the server knows no such page, or no longer.
	NotFound Code = 5
	Gone     Code = 6
	// Denied: the server refuses to show the page (401, 403, 451 and the like).
	Denied Code = 7
	// RobotsDenied: robots.txt forbids the visit, which was not made.
	RobotsDenied Code = 8
	// Refused: a rule of ours forbids the visit, which was not made: a private
	// address, an unknown scheme, a host outside the map or one that has been down for
	// months.
	Refused Code = 9
	// Busy: the server asks for patience (429, 503).
	Busy Code = 10
	// Failed: something that may pass went wrong: 5xx, no connection, no name,
	// a time limit, a broken answer.
	Failed Code = 11
	// RobotsFailed: robots.txt could not be fetched, so the visit was not made
	// and has to wait.
	RobotsFailed Code = 12
	// Skipped: the host failed so often in this round, or must be left alone
	// for so long, that the visit was not made and has to wait.
	Skipped Code = 13
)

// String returns the name of the code in lower case: "success", "moved_perm".
func (c Code) String() string {
	names := [...]string{1: "success", "not_modified", "moved_perm", "moved_temp", "not_found", "gone", "denied", "robots_denied", "refused", "busy", "failed", "robots_failed", "skipped"}
	if int(c) < len(names) && names[c] != "" {
		return names[c]
	}
	return fmt.Sprintf("unknown(%d)", uint8(c))
}

// MarshalText returns the name, so that counts by code are readable as JSON.
func (c Code) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (c *Code) UnmarshalText(text []byte) error {
	for n := range math.MaxUint8 + 1 {
		if Code(n).String() == string(text) {
			*c = Code(n)
			return nil
		}
	}
	return fmt.Errorf("protocol: unknown code %q", text)
}

// Redirect reports whether the code stands for a redirect.
func (c Code) Redirect() bool { return c == MovedPerm || c == MovedTemp }

// Transient reports whether the same visit may succeed later.
func (c Code) Transient() bool { return c == Busy || c == Failed || c.Deferred() }

// Deferred reports whether the page was not requested for reasons unrelated to
// it.
func (c Code) Deferred() bool { return c == RobotsFailed || c == Skipped }

// Asked reports whether the page was requested from the host.
func (c Code) Asked() bool { return c != RobotsDenied && c != Refused && !c.Deferred() }
