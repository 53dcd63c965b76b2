// Package nutchvisit says how Nutch's fetcher records a visit: the status it
// writes, and the metadata it leaves in the record. Package update folds
// segments by it, and package fetch passes it on to the targets of redirects. It changes
// nothing else of a record. Start with [Of].
package nutchvisit

import (
	"strconv"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// The facts about the last visit are kept under Nutch's names.
const (
	contentTypeKey  = "Content-Type"
	httpStatusKey   = "nutch.protocol.code"
	responseTimeKey = "_rs_"
	statusKey       = "_pst_"
)

// Note writes the facts about a visit. Facts that it lacks are removed, except
// the type of content that was not sent again. With keep all of them stay, as
// in Nutch, which records the type of what it stores: pages and redirects.
func Note(m *crawldb.Meta, v *segment.Visit, keep bool) {
	set := func(name, value string) {
		if value != "" {
			m.Set(name, value)
		} else if !keep {
			m.Delete(name)
		}
	}
	s := Of(v)
	switch {
	case keep && s.Fetch != Success && s.Fetch != RedirTemp && s.Fetch != RedirPerm:
	case v.ContentType != "" || v.Outcome.Code != protocol.NotModified:
		set(contentTypeKey, v.ContentType)
	}
	status, elapsed := "", ""
	if v.Outcome.Status != 0 {
		status = strconv.Itoa(v.Outcome.Status)
		elapsed = strconv.FormatInt(v.Elapsed.Milliseconds(), 10)
	}
	set(httpStatusKey, status)
	set(responseTimeKey, elapsed)
	set(statusKey, s.text(v))
}

// Noted reports whether a visit was noted.
func Noted(m crawldb.Meta) bool {
	_, ok := m.Get(statusKey)
	return ok
}

// Fetch is what Nutch's fetcher writes about a visit.
type Fetch uint8

const (
	None Fetch = iota // nothing is written
	Success
	Retry
	RedirTemp
	RedirPerm
	Gone
	NotModified
)

// Status is one of Nutch's protocol statuses, its name and number, and what the
// fetcher writes for it.
type Status struct {
	Name  string
	Code  int
	Fetch Fetch
}

// Of returns the status Nutch would have for the same answer. It uses the HTTP
// status if there is one: Nutch treats a 403 or 206 differently from package
// protocol.
func Of(v *segment.Visit) Status {
	var (
		success      = Status{"success", 1, Success}
		gone         = Status{"gone", 11, Gone}
		moved        = Status{"moved", 12, RedirPerm}
		tempMoved    = Status{"temp_moved", 13, RedirTemp}
		notFound     = Status{"notfound", 14, Gone}
		exception    = Status{"exception", 16, Retry}
		accessDenied = Status{"access_denied", 17, Gone}
		robotsDenied = Status{"robots_denied", 18, Gone}
		notModified  = Status{"notmodified", 21, NotModified}
	)
	out := v.Outcome
	if isHTTP(v) && out.Code.Asked() {
		switch out.Status {
		case 200:
			return success
		case 302, 303, 307:
			return tempMoved
		case 304:
			return notModified
		case 400, 410:
			return gone
		case 401:
			return accessDenied
		case 404:
			return notFound
		}
		if out.Status/100 == 3 {
			return moved
		}
		return exception
	}
	switch out.Code {
	case protocol.Success:
		return success
	case protocol.NotModified:
		return notModified
	case protocol.MovedPerm:
		return moved
	case protocol.MovedTemp:
		return tempMoved
	case protocol.NotFound:
		return notFound
	case protocol.Gone:
		return gone
	case protocol.Denied:
		return accessDenied
	case protocol.RobotsDenied:
		return robotsDenied
	case protocol.RobotsFailed, protocol.Skipped:
		return Status{}
	}
	return exception
}

// isHTTP reports whether the status of a visit is an HTTP status.
func isHTTP(v *segment.Visit) bool {
	return v.Outcome.Status >= 100 && (strings.HasPrefix(v.URL, "http:") || strings.HasPrefix(v.URL, "https:"))
}

// text is how Nutch prints a status: "notfound(14), lastModified=0: http://…".
// It is empty if no request was made.
func (s Status) text(v *segment.Visit) string {
	if s.Fetch == None {
		return ""
	}
	out := v.Outcome
	modified, arg := int64(0), ""
	switch {
	case s.Fetch == Success:
		if !v.Modified.IsZero() {
			modified = v.Modified.UnixMilli()
		}
	case s.Fetch == RedirTemp || s.Fetch == RedirPerm:
		arg = out.Location
	case out.Code == protocol.RobotsDenied:
	case !isHTTP(v):
		arg = out.Reason
	case out.Status == 401:
		arg = "Authentication required: " + v.URL
	case out.Status == 410:
		arg = "Http: 410 url=" + v.URL
	case s.Fetch == Retry:
		arg = "Http code=" + strconv.Itoa(out.Status) + ", url=" + v.URL
	default:
		arg = v.URL
	}
	text := s.Name + "(" + strconv.Itoa(s.Code) + "), lastModified=" + strconv.FormatInt(modified, 10)
	if arg != "" {
		text += ": " + arg
	}
	return text
}
