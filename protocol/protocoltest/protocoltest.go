// Package protocoltest has the rules that a [protocol.Protocol] must obey, as a test. A
// protocol that passes [Run] can take part in a crawl; how it treats hostile servers is
// not tested here. Start with [Run] and a [Harness].
//
//	func TestProtocol(t *testing.T) {
//		protocoltest.Run(t, protocoltest.Harness{
//			New: func() (protocol.Protocol, error) { return gopherproto.New() },
//			Serve: func(pages map[string]protocoltest.Page) (string, func(), error) {
//				…
//			},
//		})
//	}
package protocoltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/kit"
	"github.com/recrawl/recrawl/protocol"
)

// A Harness makes the protocol to test, and a service for it to visit.
type Harness struct {
	// New returns a new protocol. It is required. A protocol that is an
	// io.Closer is closed after its test.
	New func() (protocol.Protocol, error)
	// Serve serves pages, by path, over the protocol, and returns the URL in
	// front of the paths ("http://127.0.0.1:8080") and a function that stops
	// the service. Nothing else may exist below base. It is required.
	//
	// If the protocol cannot express a page, Serve returns an error that is
	// errors.ErrUnsupported, and the rules that need the page are skipped.
	Serve func(pages map[string]Page) (base string, stop func(), err error)
}

// A Page is how the site answers for one path.
type Page struct {
	// Code is the outcome; zero means Success. NotModified is answered whether
	// or not the request was conditional.
	Code protocol.Code
	// Type and Body are the content of a Success.
	Type string
	Body []byte
	// ETag and LastModified are its validators; a request that carries one of
	// them is answered with NotModified. LastModified is in http.TimeFormat. A
	// service that creates its own entity tags may use those instead.
	ETag, LastModified string
	// Location is the target of a redirect, absolute or a path on this site.
	Location string
	// RetryAfter is the time that the server asks crawlers to wait, in whole seconds.
	RetryAfter time.Duration
	// Stall says that the answer stops in the middle of the body: the server
	// sends no more, and does not hang up.
	Stall bool
}

// Run checks each rule in a subtest of its name.
func Run(t *testing.T, h Harness) { h.kit().Run(t) }

// Check is [Run] without a test: it returns nil, or an error for each broken rule, joined:
// rule "its name" is broken, and how. Rules whose pages the harness cannot serve are skipped.
func Check(ctx context.Context, h Harness) error { return h.kit().Check(ctx) }

func (h Harness) kit() kit.Kit[*check] {
	return kit.Kit[*check]{Rules: rules(), Start: func(c *kit.Check) *check {
		c.Patience = 10 * time.Second
		return &check{c, h}
	}}
}

// check is the run of one rule.
type check struct {
	*kit.Check
	h Harness
}

// A site is a protocol and the pages served for it.
type site struct {
	*check
	protocol.Protocol
	base string
	stop func()
}

// serve serves the pages and makes a protocol to visit them.
func (k *check) serve(pages map[string]Page) *site {
	if k.h.New == nil || k.h.Serve == nil {
		k.Failf("Harness.New and Harness.Serve are required")
	}
	base, stop, err := k.h.Serve(pages)
	k.Need(!errors.Is(err, errors.ErrUnsupported), fmt.Sprint(err))
	k.Must(err, "Harness.Serve")
	s := &site{check: k, base: base, stop: sync.OnceFunc(stop)}
	k.Cleanup(func() error { s.stop(); return nil })
	s.Protocol, err = k.h.New()
	k.Must(err, "Harness.New")
	if c, ok := s.Protocol.(io.Closer); ok {
		k.Cleanup(c.Close)
	}
	return s
}

// get visits a path and requires an outcome with a code, and a reason unless it is one
// that needs none. It also checks what holds for every response.
func (s *site) get(path string, req protocol.Request, want protocol.Code) protocol.Response {
	req.URL = s.base + path
	r, err := s.Fetch(s.Ctx, req)
	s.Must(err, "%s; an answer of a server should be an outcome", path)
	o := r.Outcome
	switch {
	case o.Code != want:
		s.Failf("%s: outcome %v (%s), want %v", path, o.Code, o.Reason, want)
	case r.Content.URL != req.URL:
		s.Failf("%s: the URL of the content is %q, want %q", path, r.Content.URL, req.URL)
	case want != protocol.Success && len(r.Content.Body) > 0:
		s.Failf("%s: %v has a body of %d bytes", path, o.Code, len(r.Content.Body))
	case want == protocol.Success && o.Reason != "":
		s.Failf("%s: success with a reason %q", path, o.Reason)
	case needsReason(want) && o.Reason == "":
		s.Failf("%s: %v without a reason", path, want)
	case !oneLine(o.Reason):
		s.Failf("%s: reason %q is not one printable line", path, o.Reason)
	case r.Elapsed < 0 || r.Bytes < 0 || o.RetryAfter < 0:
		s.Failf("%s: a negative value: elapsed %v, bytes %d, retry after %v", path, r.Elapsed, r.Bytes, o.RetryAfter)
	case !o.Code.Redirect() && o.Location != "":
		s.Failf("%s: %v has a location %q", path, o.Code, o.Location)
	}
	return r
}

// needsReason reports whether an outcome is a failure of some kind, which has a reason.
func needsReason(c protocol.Code) bool {
	switch c {
	case protocol.NotFound, protocol.Gone, protocol.Denied, protocol.Failed:
		return true
	}
	return false
}

func oneLine(s string) bool {
	for _, c := range s {
		if !strconv.IsPrint(c) {
			return false
		}
	}
	return true
}

// Handler serves pages over HTTP, for protocols that speak it.
func Handler(pages map[string]Page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, ok := pages[r.URL.Path]
		if !ok {
			p.Code = protocol.NotFound
		}
		h := w.Header()
		for name, v := range map[string]string{"Content-Type": p.Type, "Etag": p.ETag, "Last-Modified": p.LastModified, "Location": p.Location} {
			if v != "" {
				h.Set(name, v)
			}
		}
		if p.RetryAfter > 0 {
			h.Set("Retry-After", strconv.Itoa(int(p.RetryAfter/time.Second)))
		}
		if matches(p.ETag, r.Header.Get("If-None-Match")) || matches(p.LastModified, r.Header.Get("If-Modified-Since")) {
			p.Code = protocol.NotModified
		}
		if p.Stall {
			h.Set("Content-Length", strconv.Itoa(len(p.Body)+1))
		}
		w.WriteHeader(status(p.Code))
		if status(p.Code) == http.StatusOK {
			w.Write(p.Body)
		}
		if p.Stall {
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
}

func matches(validator, sent string) bool { return validator != "" && validator == sent }

func status(c protocol.Code) int {
	switch c {
	case 0, protocol.Success:
		return http.StatusOK
	case protocol.NotModified:
		return http.StatusNotModified
	case protocol.MovedPerm:
		return http.StatusMovedPermanently
	case protocol.MovedTemp:
		return http.StatusFound
	case protocol.NotFound:
		return http.StatusNotFound
	case protocol.Gone:
		return http.StatusGone
	case protocol.Denied:
		return http.StatusForbidden
	case protocol.Busy:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}
