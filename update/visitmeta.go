package update

import (
	"strconv"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// What the last visit said is kept under Nutch's names.
const (
	contentTypeKey  = "Content-Type"
	httpStatusKey   = "nutch.protocol.code"
	responseTimeKey = "_rs_"
	statusKey       = "_pst_"
)

// noteVisit writes what a visit said. What it did not say goes, but for the
// type of content that was not sent again; with keep all of it stays.
func noteVisit(m *crawldb.Meta, v *segment.Visit, keep bool) {
	set := func(name, value string) {
		if value != "" {
			m.Set(name, value)
		} else if !keep {
			m.Delete(name)
		}
	}
	if v.ContentType != "" || v.Outcome.Code != protocol.NotModified {
		set(contentTypeKey, v.ContentType)
	}
	status, elapsed := "", ""
	if v.Outcome.Status != 0 {
		status = strconv.Itoa(v.Outcome.Status)
		elapsed = strconv.FormatInt(v.Elapsed.Milliseconds(), 10)
	}
	set(httpStatusKey, status)
	set(responseTimeKey, elapsed)
	set(statusKey, nutchStatus(v).text(v))
}

// fetchStatus is what Nutch's fetcher writes of a visit.
type fetchStatus uint8

const (
	fetchNone fetchStatus = iota // nothing is written
	fetchSuccess
	fetchRetry
	fetchRedirTemp
	fetchRedirPerm
	fetchGone
	fetchNotModified
	parseFailed
)

// protocolStatus is one of Nutch's protocol statuses, its name and number, and
// what the fetcher writes for it.
type protocolStatus struct {
	name  string
	code  int
	fetch fetchStatus
}

// nutchStatus returns what Nutch would have made of the same answer. It goes by
// the number of the HTTP status where there is one: a 403 or 206 is not for Nutch
// what it is for package protocol.
func nutchStatus(v *segment.Visit) protocolStatus {
	var (
		success      = protocolStatus{"success", 1, fetchSuccess}
		gone         = protocolStatus{"gone", 11, fetchGone}
		moved        = protocolStatus{"moved", 12, fetchRedirPerm}
		tempMoved    = protocolStatus{"temp_moved", 13, fetchRedirTemp}
		notFound     = protocolStatus{"notfound", 14, fetchGone}
		exception    = protocolStatus{"exception", 16, fetchRetry}
		accessDenied = protocolStatus{"access_denied", 17, fetchGone}
		robotsDenied = protocolStatus{"robots_denied", 18, fetchGone}
		notModified  = protocolStatus{"notmodified", 21, fetchNotModified}
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
	case protocol.GonePage:
		return gone
	case protocol.Denied:
		return accessDenied
	case protocol.RobotsDenied:
		return robotsDenied
	case protocol.RobotsFailed, protocol.Skipped:
		return protocolStatus{}
	}
	return exception
}

// isHTTP reports whether the status of a visit is one of HTTP.
func isHTTP(v *segment.Visit) bool {
	return v.Outcome.Status >= 100 && (strings.HasPrefix(v.URL, "http:") || strings.HasPrefix(v.URL, "https:"))
}

// text is how Nutch prints a status: "notfound(14), lastModified=0: http://…".
// It is empty if nobody was asked.
func (s protocolStatus) text(v *segment.Visit) string {
	if s.fetch == fetchNone {
		return ""
	}
	out := v.Outcome
	modified, arg := int64(0), ""
	switch {
	case s.fetch == fetchSuccess:
		if !v.Modified.IsZero() {
			modified = v.Modified.UnixMilli()
		}
	case s.fetch == fetchRedirTemp || s.fetch == fetchRedirPerm:
		arg = out.Location
	case out.Code == protocol.RobotsDenied:
	case !isHTTP(v):
		arg = out.Reason
	case out.Status == 401:
		arg = "Authentication required: " + v.URL
	case out.Status == 410:
		arg = "Http: 410 url=" + v.URL
	case s.fetch == fetchRetry:
		arg = "Http code=" + strconv.Itoa(out.Status) + ", url=" + v.URL
	default:
		arg = v.URL
	}
	text := s.name + "(" + strconv.Itoa(s.code) + "), lastModified=" + strconv.FormatInt(modified, 10)
	if arg != "" {
		text += ": " + arg
	}
	return text
}
