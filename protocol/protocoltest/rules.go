package protocoltest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/recrawl/recrawl/internal/kit"
	"github.com/recrawl/recrawl/protocol"
)

const (
	march = "Sun, 01 Mar 2026 00:00:00 GMT"
	april = "Wed, 01 Apr 2026 00:00:00 GMT"
	// someday is in the future, whenever these tests run.
	someday = "Tue, 01 Jan 2999 00:00:00 GMT"
)

func rules() []kit.Rule[*check] {
	return []kit.Rule[*check]{
		{Name: "a page is a success with its content", Check: pageIsSuccess},
		{Name: "an empty page is a success", Check: emptyPageIsSuccess},
		{Name: "a body is kept byte for byte", Check: bodyIsKept},
		{Name: "a missing page is not found", Check: missingPageIsNotFound},
		{Name: "a gone page is gone", Check: goneIsGone},
		{Name: "a forbidden page is denied", Check: forbiddenIsDenied},
		{Name: "a fault of the server is a failure", Check: serverFaultIsFailure},
		{Name: "a busy server's Retry-After is reported", Check: retryAfterIsReported},
		{Name: "a redirect is reported, not followed", Check: redirectIsReported},
		{Name: "a redirect to any scheme is reported", Check: redirectToAnySchemeIsReported},
		{Name: "a body beyond the limit is cut and flagged", Check: longBodyIsCut},
		{Name: "the entity tag of a page gets not modified, another one does not", Check: entityTagGetsNotModified},
		{Name: "the modification date of a page gets not modified, another one does not", Check: modificationDateGetsNotModified},
		{Name: "not modified fails unless the request was conditional", Check: notModifiedUnaskedFails},
		{Name: "a modification time is read, and never in the future", Check: modificationTimeIsRead},
		{Name: "validators that cannot be sent do no harm", Check: badValidatorsDoNoHarm},
		{Name: "a done context is an error", Check: doneContextIsError},
		{Name: "a context that ends during a visit is soon an error", Check: contextEndsVisit},
		{Name: "visits may run concurrently", Check: visitsRunConcurrently},
		{Name: "one slow visit does not hold up the others", Check: slowVisitHoldsUpNoOther},
		{Name: "the caller owns the response", Check: callerOwnsResponse},
		{Name: "an unknown scheme is refused", Check: unknownSchemeIsRefused},
		{Name: "an invalid URL is refused", Check: invalidURLIsRefused},
		{Name: "a server that does not answer is an outcome", Check: silentServerIsOutcome},
	}
}

func text(body string) Page { return Page{Type: "text/plain", Body: []byte(body)} }

// one returns a site with one page.
func one(path string, p Page) map[string]Page { return map[string]Page{path: p} }

func pageIsSuccess(k *check) {
	s := k.serve(one("/a.txt", text("hello")))
	c := s.get("/a.txt", protocol.Request{}, protocol.Success).Content
	if string(c.Body) != "hello" || !strings.HasPrefix(c.Type, "text/plain") || c.Truncated {
		k.Failf("content is %q of type %q, truncated %v; want \"hello\" of type text/plain, not truncated", c.Body, c.Type, c.Truncated)
	}
}

func emptyPageIsSuccess(k *check) {
	s := k.serve(one("/a.txt", text("")))
	if c := s.get("/a.txt", protocol.Request{}, protocol.Success).Content; len(c.Body) > 0 || c.Truncated {
		k.Failf("body %q, truncated %v", c.Body, c.Truncated)
	}
}

func bodyIsKept(k *check) {
	everyByte := make([]byte, 100_000)
	for i := range everyByte {
		everyByte[i] = byte(i ^ i>>8)
	}
	s := k.serve(one("/a.bin", Page{Type: "application/octet-stream", Body: everyByte}))
	if got := s.get("/a.bin", protocol.Request{}, protocol.Success).Content.Body; !bytes.Equal(got, everyByte) {
		k.Failf("body of %d bytes differs from the %d that were served", len(got), len(everyByte))
	}
}

func missingPageIsNotFound(k *check) {
	k.serve(one("/a.txt", text("hello"))).get("/b.txt", protocol.Request{}, protocol.NotFound)
}

func goneIsGone(k *check) {
	k.serve(one("/a.txt", Page{Code: protocol.Gone})).get("/a.txt", protocol.Request{}, protocol.Gone)
}

func forbiddenIsDenied(k *check) {
	k.serve(one("/a.txt", Page{Code: protocol.Denied})).get("/a.txt", protocol.Request{}, protocol.Denied)
}

func serverFaultIsFailure(k *check) {
	k.serve(one("/a.txt", Page{Code: protocol.Failed})).get("/a.txt", protocol.Request{}, protocol.Failed)
}

func retryAfterIsReported(k *check) {
	s := k.serve(one("/a.txt", Page{Code: protocol.Busy, RetryAfter: 7 * time.Second}))
	if got := s.get("/a.txt", protocol.Request{}, protocol.Busy).Outcome.RetryAfter; got != 7*time.Second {
		k.Failf("retry after %v, want 7s", got)
	}
}

func redirectIsReported(k *check) {
	s := k.serve(map[string]Page{
		"/perm/a": {Code: protocol.MovedPerm, Location: "/b.txt"},
		"/temp/a": {Code: protocol.MovedTemp, Location: "/b.txt"},
		"/loop":   {Code: protocol.MovedTemp, Location: "/loop"},
		"/b.txt":  text("hello"),
	})
	for _, want := range []struct {
		path     string
		code     protocol.Code
		location string
	}{{"/perm/a", protocol.MovedPerm, "/b.txt"}, {"/temp/a", protocol.MovedTemp, "/b.txt"}, {"/loop", protocol.MovedTemp, "/loop"}} {
		if got := s.get(want.path, protocol.Request{}, want.code).Outcome.Location; got != s.base+want.location {
			k.Failf("%s: location %q, want the absolute %q", want.path, got, s.base+want.location)
		}
	}
}

func redirectToAnySchemeIsReported(k *check) {
	s := k.serve(one("/a", Page{Code: protocol.MovedPerm, Location: "x-other://elsewhere/"}))
	if got := s.get("/a", protocol.Request{}, protocol.MovedPerm).Outcome.Location; got != "x-other://elsewhere/" {
		k.Failf("location %q", got)
	}
}

func longBodyIsCut(k *check) {
	s := k.serve(one("/a.txt", text(strings.Repeat("0123456789", 10))))
	for _, w := range []struct {
		limit     int64
		want      int
		truncated bool
	}{{0, 100, false}, {-1, 100, false}, {101, 100, false}, {100, 100, false}, {99, 99, true}, {10, 10, true}, {1, 1, true}} {
		c := s.get("/a.txt", protocol.Request{MaxBytes: w.limit}, protocol.Success).Content
		if len(c.Body) != w.want || c.Truncated != w.truncated {
			k.Failf("limit %d: %d bytes, truncated %v; want %d, %v", w.limit, len(c.Body), c.Truncated, w.want, w.truncated)
		}
	}
}

func entityTagGetsNotModified(k *check) {
	s := k.serve(one("/a.txt", Page{Type: "text/plain", Body: []byte("a"), ETag: `"a"`}))
	s.revisit(func(r protocol.Response) protocol.Request { return protocol.Request{ETag: r.ETag} }, protocol.Request{ETag: `"b"`})
}

func modificationDateGetsNotModified(k *check) {
	s := k.serve(one("/a.txt", Page{Type: "text/plain", Body: []byte("a"), LastModified: april}))
	s.revisit(func(r protocol.Response) protocol.Request { return protocol.Request{LastModified: r.LastModified} }, protocol.Request{LastModified: march})
}

// revisit visits /a.txt without a validator, with its own, and with another one.
func (s *site) revisit(own func(protocol.Response) protocol.Request, other protocol.Request) {
	req := own(s.get("/a.txt", protocol.Request{}, protocol.Success))
	if req.ETag == "" && req.LastModified == "" {
		s.Failf("the validator of the page is not in the response")
	}
	s.Prefix = "with the validator: "
	s.get("/a.txt", req, protocol.NotModified)
	for name, req := range map[string]protocol.Request{"without a validator": {}, "with another validator": other} {
		s.Prefix = name + ": "
		if body := s.get("/a.txt", req, protocol.Success).Content.Body; string(body) != "a" {
			s.Failf("body %q, want \"a\"", body)
		}
	}
}

func notModifiedUnaskedFails(k *check) {
	k.serve(one("/a.txt", Page{Code: protocol.NotModified})).get("/a.txt", protocol.Request{}, protocol.Failed)
}

func modificationTimeIsRead(k *check) {
	s := k.serve(map[string]Page{
		"/a.txt": {Type: "text/plain", Body: []byte("a"), LastModified: april},
		"/b.txt": {Type: "text/plain", Body: []byte("b"), LastModified: someday},
	})
	got, want := s.get("/a.txt", protocol.Request{}, protocol.Success).Modified, time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
	if !got.Equal(want) {
		k.Failf("modified %v, want %v", got, want)
	}
	if got := s.get("/b.txt", protocol.Request{}, protocol.Success).Modified; got.After(time.Now()) {
		k.Failf("modified %v, in the future", got)
	}
}

func badValidatorsDoNoHarm(k *check) {
	s := k.serve(one("/a.txt", text("hello")))
	for _, v := range []string{"a\r\nX-Evil: 1", "\x00", "\n", strings.Repeat("x", 100_000)} {
		s.get("/a.txt", protocol.Request{ETag: v, LastModified: v}, protocol.Success)
	}
}

func doneContextIsError(k *check) {
	s := k.serve(one("/a.txt", text("hello")))
	canceled, cancel := context.WithCancel(k.Ctx)
	cancel()
	_, err := s.Fetch(canceled, protocol.Request{URL: s.base + "/a.txt"})
	k.Is(err, context.Canceled, "Fetch")
	late, cancel := context.WithDeadline(k.Ctx, time.Now().Add(-time.Second))
	defer cancel()
	_, err = s.Fetch(late, protocol.Request{URL: s.base + "/a.txt"})
	k.Is(err, context.DeadlineExceeded, "Fetch")
}

func contextEndsVisit(k *check) {
	s := k.serve(one("/a.txt", Page{Type: "text/plain", Body: []byte("hel"), Stall: true}))
	short, cancel := context.WithTimeout(k.Ctx, 50*time.Millisecond)
	defer cancel()
	k.Within("the visit", func() {
		r, err := s.Fetch(short, protocol.Request{URL: s.base + "/a.txt"})
		k.Is(err, context.DeadlineExceeded, "Fetch, with the outcome %v", r.Outcome.Code)
	})
}

// numbered returns n pages, each with its number a thousand times.
func numbered(n int) map[string]Page {
	pages := map[string]Page{}
	for i := range n {
		pages[fmt.Sprintf("/%d.txt", i)] = text(strings.Repeat(fmt.Sprint(i), 1000))
	}
	return pages
}

func visitsRunConcurrently(k *check) {
	s := k.serve(numbered(8))
	k.Together(8, func(i int) {
		want := strings.Repeat(fmt.Sprint(i), 1000)
		for range 10 {
			r := s.get(fmt.Sprintf("/%d.txt", i), protocol.Request{}, protocol.Success)
			if string(r.Content.Body) != want {
				k.Failf("/%d.txt: body of another page", i)
			}
		}
	})
}

func slowVisitHoldsUpNoOther(k *check) {
	s := k.serve(map[string]Page{"/a.txt": {Type: "text/plain", Body: []byte("hel"), Stall: true}, "/b.txt": text("hello")})
	slow, cancel := context.WithCancel(k.Ctx)
	defer cancel()
	begun, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		close(begun)
		s.Fetch(slow, protocol.Request{URL: s.base + "/a.txt"})
	}()
	<-begun
	k.Within("another visit", func() { s.get("/b.txt", protocol.Request{}, protocol.Success) })
	cancel()
	k.Within("the slow visit", func() { <-ended })
}

func callerOwnsResponse(k *check) {
	s := k.serve(numbered(2))
	want := strings.Repeat("0", 1000)
	first := s.get("/0.txt", protocol.Request{}, protocol.Success)
	s.get("/1.txt", protocol.Request{}, protocol.Success)
	if string(first.Content.Body) != want {
		k.Failf("the body changed with the next visit")
	}
	clear(first.Content.Body[:cap(first.Content.Body)])
	if again := s.get("/0.txt", protocol.Request{}, protocol.Success); string(again.Content.Body) != want {
		k.Failf("changes to a returned body showed in the next visit")
	}
}

func unknownSchemeIsRefused(k *check) {
	k.serve(nil).refuses("x-unknown://example.com/", "x-unknown:opaque")
}

func invalidURLIsRefused(k *check) {
	k.serve(nil).refuses("", "/a.txt", "//example.com/", "http://exa mple.com/", "http://[::1/", ":", "\x00")
}

// refuses demands that visits to the URLs are refused.
func (s *site) refuses(urls ...string) {
	for _, u := range urls {
		r, err := s.Fetch(s.Ctx, protocol.Request{URL: u})
		if err != nil || r.Outcome.Code != protocol.Refused || r.Outcome.Reason == "" || !oneLine(r.Outcome.Reason) {
			s.Failf("%q: outcome %v, reason %q, error %v; want refused with a reason of one line", u, r.Outcome.Code, r.Outcome.Reason, err)
		}
	}
}

func silentServerIsOutcome(k *check) {
	s := k.serve(one("/a.txt", text("hello")))
	s.stop()
	k.Within("the visit", func() {
		r, err := s.Fetch(k.Ctx, protocol.Request{URL: s.base + "/a.txt"})
		k.Must(err, "no answer should be an outcome, too")
		if c := r.Outcome.Code; c != protocol.Failed && c != protocol.NotFound || r.Outcome.Reason == "" {
			k.Failf("outcome %v, reason %q; want failed or not_found with a reason", c, r.Outcome.Reason)
		}
	})
}
