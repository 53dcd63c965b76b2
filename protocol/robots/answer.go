package robots

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/weburl"
	"github.com/recrawl/recrawl/protocol"
)

// An answer is the result of requesting a robots.txt, after all redirects.
type answer struct {
	kind   answerKind
	status int
	body   []byte
	// etag and lastModified are the validators of the body, if it is the whole
	// file and was found in its usual place.
	etag, lastModified string
	// partial says that the body ends before the file does, for another reason
	// than our limit.
	partial    bool
	retryAfter time.Duration
	reason     string
	// validFor is how long an answer from another origin is valid; zero if it is the
	// origin's own.
	validFor time.Duration
	// refused says that a rule of ours kept us from requesting the file at all.
	refused bool
}

type answerKind uint8

const (
	failing answerKind = iota // the content of the file is unknown
	absent                    // there is no file
	good                      // here is the file
	moved                     // somewhere else
)

// answerKindOf classifies outcomes by RFC 9309 section 2.3.1: by status if there is
// one.
func answerKindOf(o protocol.Outcome) answerKind {
	switch {
	case o.Code == protocol.Success:
		return good
	case o.Code.Redirect():
		return moved
	case o.Code == protocol.Busy, o.Code == protocol.NotModified, o.Status == 429, o.Status >= 500:
		return failing
	case o.Status >= 300:
		return absent
	case o.Code == protocol.NotFound, o.Code == protocol.Gone, o.Code == protocol.Denied:
		return absent
	}
	return failing
}

// maxVisit is how long one request may take: less than the grant of its host under
// which it is made.
const maxVisit = hostdb.MaxGrant - 10*time.Second

// visit requests one URL. A Protocol that panics, or that sets itself no limit
// and takes too long, counts as failed, and does not end the crawl.
func (c *Cache) visit(ctx context.Context, req protocol.Request) (resp protocol.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			resp, err = protocol.Response{Outcome: protocol.Outcome{Code: protocol.Failed, Reason: fmt.Sprint("the protocol panicked: ", p)}}, nil
		}
	}()
	req.MaxBytes = int64(c.maxBytes()) + 2 // one character more shows that a file is cut
	req.Accept = "text/plain,*/*;q=0.5"
	limited, cancel := context.WithTimeout(ctx, maxVisit)
	defer cancel()
	resp, err = c.Protocol.Fetch(limited, req)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		resp, err = protocol.Response{Outcome: protocol.Outcome{Code: protocol.Failed, Reason: fmt.Sprintf("the visit took longer than %v", maxVisit)}}, nil
	}
	return resp, err
}

// read takes the file from a response.
func (a *answer) read(resp *protocol.Response, limit int) {
	var cut bool
	a.body, cut, a.partial = keptBody(resp.Content.Body, resp.Content.Truncated, limit)
	if a.partial && len(a.body) == 0 {
		a.kind, a.reason = failing, "not one whole line came"
	}
	if !cut {
		a.etag, a.lastModified = resp.ETag, resp.LastModified
	}
}

// keptBody returns what is kept of a file: whole lines, and at least one of a
// complete file, since an empty body would mean no file. It is cut at the
// limit, or because it is partial.
func keptBody(b []byte, truncated bool, limit int) (kept []byte, cut, partial bool) {
	b, cut = cutAtLimit(b, limit)
	if truncated && !cut {
		return completeLines(b), true, true
	}
	if len(b) == 0 {
		return []byte("\n"), cut, false
	}
	return b, cut, false
}

// resolve returns the target of a redirect, empty if it must not be followed;
// false if there is none.
func resolve(from, location string) (string, bool) {
	if strings.TrimSpace(location) == "" {
		return "", false
	}
	to, ok := weburl.Parse(from).Resolve(location)
	if ok && !strings.HasPrefix(to, "http://") && !strings.HasPrefix(to, "https://") {
		return "", true
	}
	return to, ok
}

// update returns the record after an answer. While a server fails, the last good
// copy is kept, for 30 days; the pause doubles because it is as long as the
// failure has lasted.
func (a answer) update(rec hostdb.Robots, now time.Time, maxAge time.Duration) hostdb.Robots {
	if a.validFor > 0 {
		maxAge = min(maxAge, a.validFor)
	}
	rec.Status, rec.Fetched, rec.Expires = a.status, now, now.Add(maxAge)
	if a.kind != failing {
		rec.FailingSince = time.Time{}
		rec.Body, rec.ETag, rec.LastModified = a.body, a.etag, a.lastModified
		if a.partial {
			rec.Expires = now.Add(min(maxAge, maxPause))
		}
		return rec
	}
	if rec.FailingSince.IsZero() || rec.FailingSince.After(now) {
		rec.FailingSince = now
	}
	failed := now.Sub(rec.FailingSince)
	if failed >= maxFailing {
		rec.Body, rec.ETag, rec.LastModified = nil, "", ""
	}
	pause := min(max(failed, minPause), maxPause)
	rec.Expires = now.Add(min(max(pause, a.retryAfter), max(maxAge, maxPause)))
	return rec
}
