package httpproto

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/recrawl/recrawl/internal/directives"
	"github.com/recrawl/recrawl/internal/weburl"
	"github.com/recrawl/recrawl/protocol"
)

func refused(why string) protocol.Outcome {
	return protocol.Outcome{Code: protocol.Refused, Reason: why}
}

// code returns what a status means to the crawl, and why if it is no success.
func code(status int) (protocol.Code, string) {
	why := "http: status " + strconv.Itoa(status)
	switch status {
	case 301, 308:
		return protocol.MovedPerm, ""
	case 300, 302, 303, 307:
		return protocol.MovedTemp, ""
	case 304:
		return protocol.NotModified, ""
	case 401, 402, 403, 407, 451:
		return protocol.Denied, why
	case 404:
		return protocol.NotFound, why
	case 410,
		// The server understood the request and will never accept it (421: the server is not the one
		// for this host): as good as gone until the schedule asks again. Nutch does so for 400 and
		// keeps retrying the others.
		400, 405, 406, 411, 413, 414, 415, 416, 417, 421, 422, 431:
		return protocol.Gone, why
	case 408, 425, 429, 503:
		return protocol.Busy, why
	}
	if status >= 200 && status <= 299 {
		return protocol.Success, ""
	}
	// Other 3xx (305 and 306 are withdrawn), 4xx, 5xx, and numbers that HTTP
	// does not have.
	return protocol.Failed, why
}

// location returns the absolute target of a redirect, or why there is none. The
// target may have any scheme: the crawl decides whether to visit it.
func location(u *url.URL, h http.Header) (target, why string) {
	loc := strings.TrimSpace(h.Get("Location"))
	if loc == "" {
		return "", "redirect: no Location"
	}
	if len(loc) > maxLocation {
		return "", "redirect: Location is too long"
	}
	// Servers send what browsers understand, and the page that a link and a redirect lead to is
	// to be one record.
	r := weburl.Resolver{Base: weburl.Parse(u.String()), Max: 3 * maxLocation, Fragment: true}
	t, ok := r.Resolve([]byte(loc))
	if !ok {
		return "", "redirect: Location cannot be parsed"
	}
	return string(t), ""
}

// failed turns the error of a round trip into an outcome; it returns the error
// only if this machine lacks a resource, or the proxy fails.
func (c *Client) failed(resp *protocol.Response, err, cause error, at phase) error {
	var blocked *BlockedError
	switch {
	case errors.As(err, &blocked):
		resp.Outcome = refused("address: " + blocked.Class)
	case errors.Is(err, errUnmapped):
		resp.Outcome = refused("address: " + errUnmapped.Error())
	case exhausted(err), errors.Is(err, errProxy):
		return err
	default:
		resp.Outcome = protocol.Outcome{Code: protocol.Failed, Reason: reason(err, cause, at)}
	}
	return nil
}

// answer fills in what status and headers say.
func (c *Client) answer(u *url.URL, req protocol.Request, h *http.Response, resp *protocol.Response) {
	now := resp.Content.Time
	o := &resp.Outcome
	o.Status = h.StatusCode
	o.Code, o.Reason = code(h.StatusCode)
	switch {
	case o.Code.Redirect():
		o.Location, o.Reason = location(u, h.Header)
		if o.Location == "" {
			o.Code = protocol.Failed
		}
	case o.Code == protocol.NotModified && !conditional(req.ETag) && !conditional(req.LastModified):
		o.Code, o.Reason = protocol.Failed, "http: 304 to a request without validators"
	}
	if o.Code != protocol.Success && o.Code != protocol.NotModified {
		o.RetryAfter = retryAfter(h.Header, now)
	}
	content := &resp.Content
	content.Type = field(h.Header, "Content-Type")
	content.Robots = directives.Text(slices.Concat(h.Header["X-Robots-Tag"], usageDirectives(h.Header)), c.o.Agent)
	content.Refresh = field(h.Header, "Refresh")
	content.Truncated = h.StatusCode == http.StatusPartialContent
	if o.Code == protocol.Success || o.Code == protocol.NotModified {
		resp.ETag, resp.LastModified = validator(h.Header, "Etag"), validator(h.Header, "Last-Modified")
		if resp.Modified = date(resp.LastModified); resp.Modified.After(now) {
			resp.Modified = now
		}
	}
}

// usageDirectives returns what the headers Content-Usage (draft-ietf-aipref-attach) and TDM-Reservation say,
// as directives that robots.PageUsage reads.
func usageDirectives(h http.Header) (all []string) {
	for _, value := range h["Content-Usage"] {
		all = append(all, strings.ReplaceAll(value, " ", ""))
	}
	if h.Get("TDM-Reservation") == "1" {
		all = append(all, "tdm=n")
	}
	return all
}
