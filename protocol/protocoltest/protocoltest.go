// Package protocoltest tests what a [protocol.Protocol] must do. A protocol
// that passes [Run] can take part in a crawl.
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
	"testing"
	"time"

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

// Run tests a protocol, with a subtest for each rule.
func Run(t *testing.T, h Harness) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			err := r.run(t.Context(), h)
			if errors.Is(err, errors.ErrUnsupported) {
				t.Skip(err)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// Error says which rule a protocol broke, and how.
type Error struct {
	Rule string
	Err  error
}

// Error begins with the rule.
func (e *Error) Error() string { return fmt.Sprintf("rule %q is broken: %v", e.Rule, e.Err) }

// Unwrap returns how it was broken.
func (e *Error) Unwrap() error { return e.Err }

// Check is Run without a test: it returns an [*Error] for each broken rule, joined, or
// nil. Rules whose pages the harness cannot serve are skipped.
func Check(ctx context.Context, h Harness) error {
	var errs []error
	for _, r := range rules {
		if err := r.run(ctx, h); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			errs = append(errs, &Error{Rule: r.name, Err: err})
		}
	}
	return errors.Join(errs...)
}

// A rule is one requirement, checked on a site of its own.
type rule struct {
	name  string
	pages map[string]Page
	check func(context.Context, *site) error
}

func (r rule) run(ctx context.Context, h Harness) (err error) {
	if h.New == nil || h.Serve == nil {
		return errors.New("Harness.New and Harness.Serve are required")
	}
	base, stop, err := h.Serve(r.pages)
	if err != nil {
		return fmt.Errorf("Harness.Serve: %w", err)
	}
	stopped := false
	s := &site{base: base, stop: func() { stopped = true; stop() }}
	defer func() {
		if !stopped {
			stop()
		}
	}()
	if s.Protocol, err = h.New(); err != nil {
		return fmt.Errorf("Harness.New: %w", err)
	}
	if c, ok := s.Protocol.(io.Closer); ok {
		defer func() { err = errors.Join(err, c.Close()) }()
	}
	return r.check(ctx, s)
}

// A site is a protocol and the pages served for it.
type site struct {
	protocol.Protocol
	base string
	stop func()
}

// get visits a path and requires an outcome with a code. It also checks what
// holds for every response.
func (s *site) get(ctx context.Context, path string, req protocol.Request, want protocol.Code) (protocol.Response, error) {
	req.URL = s.base + path
	r, err := s.Fetch(ctx, req)
	o := r.Outcome
	switch {
	case err != nil:
		return r, fmt.Errorf("%s: error %w; an answer of a server should be an outcome", path, err)
	case o.Code != want:
		return r, fmt.Errorf("%s: outcome %v (%s), want %v", path, o.Code, o.Reason, want)
	case r.Content.URL != req.URL:
		return r, fmt.Errorf("%s: the URL of the content is %q, want %q", path, r.Content.URL, req.URL)
	case want != protocol.Success && len(r.Content.Body) > 0:
		return r, fmt.Errorf("%s: %v has a body of %d bytes", path, o.Code, len(r.Content.Body))
	case want == protocol.Success && o.Reason != "":
		return r, fmt.Errorf("%s: success with a reason %q", path, o.Reason)
	case !oneLine(o.Reason):
		return r, fmt.Errorf("%s: reason %q is not one printable line", path, o.Reason)
	case r.Elapsed < 0 || r.Bytes < 0 || o.RetryAfter < 0:
		return r, fmt.Errorf("%s: a negative value: elapsed %v, bytes %d, retry after %v", path, r.Elapsed, r.Bytes, o.RetryAfter)
	case !o.Code.Redirect() && o.Location != "":
		return r, fmt.Errorf("%s: %v has a location %q", path, o.Code, o.Location)
	}
	return r, nil
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
