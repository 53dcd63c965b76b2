package protocoltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/recrawl/recrawl/protocol"
)

// soon is the time limit for a visit to notice that its context is done, and for
// visits that must not wait.
const soon = 10 * time.Second

const (
	march = "Sun, 01 Mar 2026 00:00:00 GMT"
	april = "Wed, 01 Apr 2026 00:00:00 GMT"
	// someday is in the future, whenever these tests run.
	someday = "Tue, 01 Jan 2999 00:00:00 GMT"
)

var hello = Page{Type: "text/plain", Body: []byte("hello")}

var rules = []rule{
	{"a page is a success with its content", map[string]Page{"/a.txt": hello}, func(ctx context.Context, s *site) error {
		r, err := s.get(ctx, "/a.txt", protocol.Request{}, protocol.Success)
		if err != nil {
			return err
		}
		if c := r.Content; string(c.Body) != "hello" || !strings.HasPrefix(c.Type, "text/plain") || c.Truncated {
			return fmt.Errorf("content is %q of type %q, truncated %v; want \"hello\" of type text/plain, not truncated", c.Body, c.Type, c.Truncated)
		}
		return nil
	}},
	{"an empty page is a success", map[string]Page{"/a.txt": {Type: "text/plain"}}, func(ctx context.Context, s *site) error {
		r, err := s.get(ctx, "/a.txt", protocol.Request{}, protocol.Success)
		if err == nil && (len(r.Content.Body) > 0 || r.Content.Truncated) {
			err = fmt.Errorf("body %q, truncated %v", r.Content.Body, r.Content.Truncated)
		}
		return err
	}},
	{"a body is kept byte for byte", map[string]Page{"/a.bin": {Type: "application/octet-stream", Body: everyByte()}}, func(ctx context.Context, s *site) error {
		r, err := s.get(ctx, "/a.bin", protocol.Request{}, protocol.Success)
		if err == nil && !bytes.Equal(r.Content.Body, everyByte()) {
			err = fmt.Errorf("body of %d bytes differs from the %d that were served", len(r.Content.Body), len(everyByte()))
		}
		return err
	}},
	{"a missing page is not found", map[string]Page{"/a.txt": hello}, wants("/b.txt", protocol.NotFound)},
	{"a gone page is gone", map[string]Page{"/a.txt": {Code: protocol.Gone}}, wants("/a.txt", protocol.Gone)},
	{"a forbidden page is denied", map[string]Page{"/a.txt": {Code: protocol.Denied}}, wants("/a.txt", protocol.Denied)},
	{"a fault of the server is a failure", map[string]Page{"/a.txt": {Code: protocol.Failed}}, wants("/a.txt", protocol.Failed)},
	{"a busy server's Retry-After is reported", map[string]Page{"/a.txt": {Code: protocol.Busy, RetryAfter: 7 * time.Second}}, func(ctx context.Context, s *site) error {
		r, err := s.get(ctx, "/a.txt", protocol.Request{}, protocol.Busy)
		if err == nil && r.Outcome.RetryAfter != 7*time.Second {
			err = fmt.Errorf("retry after %v, want 7s", r.Outcome.RetryAfter)
		}
		return err
	}},
	{"a redirect is reported, not followed", map[string]Page{
		"/perm/a": {Code: protocol.MovedPerm, Location: "/b.txt"},
		"/temp/a": {Code: protocol.MovedTemp, Location: "/b.txt"},
		"/loop":   {Code: protocol.MovedTemp, Location: "/loop"},
		"/b.txt":  hello,
	}, func(ctx context.Context, s *site) error {
		var errs []error
		for path, want := range map[string]struct {
			code     protocol.Code
			location string
		}{"/perm/a": {protocol.MovedPerm, "/b.txt"}, "/temp/a": {protocol.MovedTemp, "/b.txt"}, "/loop": {protocol.MovedTemp, "/loop"}} {
			r, err := s.get(ctx, path, protocol.Request{}, want.code)
			if err == nil && r.Outcome.Location != s.base+want.location {
				err = fmt.Errorf("%s: location %q, want the absolute %q", path, r.Outcome.Location, s.base+want.location)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}},
	{"a redirect to any scheme is reported", map[string]Page{"/a": {Code: protocol.MovedPerm, Location: "x-other://elsewhere/"}}, func(ctx context.Context, s *site) error {
		r, err := s.get(ctx, "/a", protocol.Request{}, protocol.MovedPerm)
		if err == nil && r.Outcome.Location != "x-other://elsewhere/" {
			err = fmt.Errorf("location %q", r.Outcome.Location)
		}
		return err
	}},
	{"a body beyond the limit is cut and flagged", map[string]Page{"/a.txt": {Type: "text/plain", Body: bytes.Repeat([]byte("0123456789"), 10)}}, func(ctx context.Context, s *site) error {
		var errs []error
		for _, c := range []struct {
			limit     int64
			want      int
			truncated bool
		}{{0, 100, false}, {-1, 100, false}, {101, 100, false}, {100, 100, false}, {99, 99, true}, {10, 10, true}, {1, 1, true}} {
			r, err := s.get(ctx, "/a.txt", protocol.Request{MaxBytes: c.limit}, protocol.Success)
			if err == nil && (len(r.Content.Body) != c.want || r.Content.Truncated != c.truncated) {
				err = fmt.Errorf("limit %d: %d bytes, truncated %v; want %d, %v", c.limit, len(r.Content.Body), r.Content.Truncated, c.want, c.truncated)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}},
	{"the entity tag of a page gets not modified, another one does not", map[string]Page{"/a.txt": {Type: "text/plain", Body: []byte("a"), ETag: `"a"`}}, func(ctx context.Context, s *site) error {
		return roundTrip(ctx, s, func(r protocol.Response) protocol.Request { return protocol.Request{ETag: r.ETag} }, protocol.Request{ETag: `"b"`})
	}},
	{"the modification date of a page gets not modified, another one does not", map[string]Page{"/a.txt": {Type: "text/plain", Body: []byte("a"), LastModified: april}}, func(ctx context.Context, s *site) error {
		return roundTrip(ctx, s, func(r protocol.Response) protocol.Request { return protocol.Request{LastModified: r.LastModified} }, protocol.Request{LastModified: march})
	}},
	{"not modified fails unless the request was conditional", map[string]Page{"/a.txt": {Code: protocol.NotModified}}, wants("/a.txt", protocol.Failed)},
	{"a modification time is read, and never in the future", map[string]Page{
		"/a.txt": {Type: "text/plain", Body: []byte("a"), LastModified: april},
		"/b.txt": {Type: "text/plain", Body: []byte("b"), LastModified: someday},
	}, func(ctx context.Context, s *site) error {
		r, err := s.get(ctx, "/a.txt", protocol.Request{}, protocol.Success)
		if err != nil {
			return err
		}
		if want := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC); !r.Modified.Equal(want) {
			return fmt.Errorf("modified %v, want %v", r.Modified, want)
		}
		r, err = s.get(ctx, "/b.txt", protocol.Request{}, protocol.Success)
		if err == nil && r.Modified.After(time.Now()) {
			err = fmt.Errorf("modified %v, in the future", r.Modified)
		}
		return err
	}},
	{"validators that cannot be sent do no harm", map[string]Page{"/a.txt": hello}, func(ctx context.Context, s *site) error {
		var errs []error
		for _, v := range []string{"a\r\nX-Evil: 1", "\x00", "\n", strings.Repeat("x", 100_000)} {
			_, err := s.get(ctx, "/a.txt", protocol.Request{ETag: v, LastModified: v}, protocol.Success)
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}},
	{"a done context is an error", map[string]Page{"/a.txt": hello}, func(ctx context.Context, s *site) error {
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := s.Fetch(canceled, protocol.Request{URL: s.base + "/a.txt"}); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("error %v, want context.Canceled", err)
		}
		late, cancel := context.WithDeadline(ctx, time.Now().Add(-time.Second))
		defer cancel()
		if _, err := s.Fetch(late, protocol.Request{URL: s.base + "/a.txt"}); !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("error %v, want context.DeadlineExceeded", err)
		}
		return nil
	}},
	{"a context that ends during a visit is soon an error", map[string]Page{"/a.txt": {Type: "text/plain", Body: []byte("hel"), Stall: true}}, func(ctx context.Context, s *site) error {
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		return within(func() error {
			r, err := s.Fetch(short, protocol.Request{URL: s.base + "/a.txt"})
			if !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("outcome %v, error %v, want context.DeadlineExceeded", r.Outcome.Code, err)
			}
			return nil
		})
	}},
	{"visits may run concurrently", numbered(8), func(ctx context.Context, s *site) error {
		var (
			wg   sync.WaitGroup
			errs [8]error
		)
		for i := range errs {
			wg.Go(func() {
				for range 10 {
					r, err := s.get(ctx, fmt.Sprintf("/%d.txt", i), protocol.Request{}, protocol.Success)
					if want := strings.Repeat(fmt.Sprint(i), 1000); err == nil && string(r.Content.Body) != want {
						err = fmt.Errorf("/%d.txt: body of another page", i)
					}
					errs[i] = errors.Join(errs[i], err)
				}
			})
		}
		wg.Wait()
		return errors.Join(errs[:]...)
	}},
	{"one slow visit does not hold up the others", map[string]Page{"/a.txt": {Type: "text/plain", Body: []byte("hel"), Stall: true}, "/b.txt": hello}, func(ctx context.Context, s *site) error {
		slow, cancel := context.WithCancel(ctx)
		begun, ended := make(chan bool), make(chan bool)
		go func() {
			defer close(ended)
			close(begun)
			s.Fetch(slow, protocol.Request{URL: s.base + "/a.txt"})
		}()
		<-begun
		err := within(func() error { return wants("/b.txt", protocol.Success)(ctx, s) })
		cancel()
		return errors.Join(err, within(func() error { <-ended; return nil }))
	}},
	{"the caller owns the response", numbered(2), func(ctx context.Context, s *site) error {
		first, err := s.get(ctx, "/0.txt", protocol.Request{}, protocol.Success)
		if err != nil {
			return err
		}
		if _, err := s.get(ctx, "/1.txt", protocol.Request{}, protocol.Success); err != nil {
			return err
		}
		if string(first.Content.Body) != strings.Repeat("0", 1000) {
			return errors.New("the body changed with the next visit")
		}
		clear(first.Content.Body[:cap(first.Content.Body)])
		again, err := s.get(ctx, "/0.txt", protocol.Request{}, protocol.Success)
		if err == nil && string(again.Content.Body) != strings.Repeat("0", 1000) {
			err = errors.New("changes to a returned body showed in the next visit")
		}
		return err
	}},
	{"an unknown scheme is refused", nil, refuses("x-unknown://example.com/", "x-unknown:opaque")},
	{"an invalid URL is refused", nil, refuses("", "/a.txt", "//example.com/", "http://exa mple.com/", "http://[::1/", ":", "\x00")},
	{"a server that does not answer is an outcome", map[string]Page{"/a.txt": hello}, func(ctx context.Context, s *site) error {
		s.stop()
		return within(func() error {
			r, err := s.Fetch(ctx, protocol.Request{URL: s.base + "/a.txt"})
			if err != nil {
				return fmt.Errorf("error %w; no answer should be an outcome, too", err)
			}
			if c := r.Outcome.Code; c != protocol.Failed && c != protocol.NotFound || r.Outcome.Reason == "" {
				return fmt.Errorf("outcome %v, reason %q; want failed or not_found with a reason", c, r.Outcome.Reason)
			}
			return nil
		})
	}},
}

func everyByte() []byte {
	b := make([]byte, 100_000)
	for i := range b {
		b[i] = byte(i ^ i>>8)
	}
	return b
}

func numbered(n int) map[string]Page {
	pages := map[string]Page{}
	for i := range n {
		pages[fmt.Sprintf("/%d.txt", i)] = Page{Type: "text/plain", Body: []byte(strings.Repeat(fmt.Sprint(i), 1000))}
	}
	return pages
}

// wants visits one path for an outcome that has a reason unless it is Success.
func wants(path string, code protocol.Code) func(context.Context, *site) error {
	return func(ctx context.Context, s *site) error {
		r, err := s.get(ctx, path, protocol.Request{}, code)
		if err == nil && code != protocol.Success && r.Outcome.Reason == "" {
			err = fmt.Errorf("%s: %v without a reason", path, code)
		}
		return err
	}
}

// refuses demands that visits to the URLs are refused.
func refuses(urls ...string) func(context.Context, *site) error {
	return func(ctx context.Context, s *site) error {
		var errs []error
		for _, u := range urls {
			r, err := s.Fetch(ctx, protocol.Request{URL: u})
			if err != nil || r.Outcome.Code != protocol.Refused || r.Outcome.Reason == "" || !oneLine(r.Outcome.Reason) {
				errs = append(errs, fmt.Errorf("%q: outcome %v, reason %q, error %v; want refused with a reason of one line", u, r.Outcome.Code, r.Outcome.Reason, err))
			}
		}
		return errors.Join(errs...)
	}
}

// roundTrip visits /a.txt without a validator, with its own, and with another one.
func roundTrip(ctx context.Context, s *site, own func(protocol.Response) protocol.Request, other protocol.Request) error {
	first, err := s.get(ctx, "/a.txt", protocol.Request{}, protocol.Success)
	if err != nil {
		return err
	}
	req := own(first)
	if req.ETag == "" && req.LastModified == "" {
		return errors.New("the validator of the page is not in the response")
	}
	if _, err := s.get(ctx, "/a.txt", req, protocol.NotModified); err != nil {
		return fmt.Errorf("with the validator: %w", err)
	}
	for what, req := range map[string]protocol.Request{"without a validator": {}, "with another validator": other} {
		r, err := s.get(ctx, "/a.txt", req, protocol.Success)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if string(r.Content.Body) != "a" {
			return fmt.Errorf("%s: body %q, want \"a\"", what, r.Content.Body)
		}
	}
	return nil
}

// within runs f and gives up on it after a while.
func within(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(soon):
		return fmt.Errorf("the visit did not end within %v", soon)
	}
}
