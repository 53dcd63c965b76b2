package robots_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
)

// A site is a Protocol that answers from a map by URL, and a server that cannot
// be reached elsewhere. It notes what it was asked.
type site struct {
	mu      sync.Mutex
	answers map[string]protocol.Response
	asked   []string
	last    protocol.Request
	err     error
}

func (s *site) Fetch(ctx context.Context, req protocol.Request) (protocol.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return protocol.Response{}, err
	}
	if s.err != nil {
		return protocol.Response{}, s.err
	}
	s.asked, s.last = append(s.asked, req.URL), req
	r, ok := s.answers[req.URL]
	if !ok {
		return protocol.Response{Outcome: protocol.Outcome{Code: protocol.Failed, Reason: "no connection"}}, nil
	}
	if n := int(req.MaxBytes); n > 0 && len(r.Content.Body) > n {
		r.Content.Body, r.Content.Truncated = r.Content.Body[:n], true
	}
	return r, nil
}

func (s *site) set(url string, r protocol.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers == nil {
		s.answers = make(map[string]protocol.Response)
	}
	s.answers[url] = r
}

func (s *site) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// status returns the outcome of an HTTP status.
func status(n int, bodies ...string) protocol.Response {
	code := protocol.Failed
	switch {
	case n < 300:
		code = protocol.Success
	case n == 304:
		code = protocol.NotModified
	case n == 401 || n == 403:
		code = protocol.Denied
	case n == 404:
		code = protocol.NotFound
	case n == 410:
		code = protocol.Gone
	case n == 429 || n == 503:
		code = protocol.Busy
	}
	return protocol.Response{
		Outcome: protocol.Outcome{Code: code, Status: n},
		Content: page.Content{Body: []byte(strings.Join(bodies, ""))},
	}
}

func redirect(to string) protocol.Response {
	return protocol.Response{Outcome: protocol.Outcome{Code: protocol.MovedTemp, Status: 302, Location: to}}
}

func failure(code protocol.Code) protocol.Response {
	return protocol.Response{Outcome: protocol.Outcome{Code: code, Reason: "as set"}}
}

// hosts is a hostdb.Store in a map. It calls each next twice, and takes back
// what it lends to next, as it may.
type hosts struct {
	mu  sync.Mutex
	m   map[string]hostdb.Host
	err error
}

func (h *hosts) Get(ctx context.Context, name string) (hostdb.Host, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := errors.Join(ctx.Err(), h.err); err != nil {
		return hostdb.Host{}, err
	}
	r, ok := h.m[name]
	if !ok {
		return r, fmt.Errorf("hosts: %s: %w", name, hostdb.ErrNotFound)
	}
	return r, nil
}

func (h *hosts) Update(ctx context.Context, name string, next func(*hostdb.Host) (*hostdb.Host, error)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := errors.Join(ctx.Err(), h.err); err != nil {
		return err
	}
	var old *hostdb.Host
	if r, ok := h.m[name]; ok {
		r = clone(r)
		old = &r
	}
	var before hostdb.Host
	if old != nil {
		before = clone(*old)
	}
	_, _ = next(old)
	r, err := next(old)
	if err != nil {
		return err
	}
	if old != nil && !reflect.DeepEqual(*old, before) {
		panic("next changed what it was given")
	}
	if h.m == nil {
		h.m = make(map[string]hostdb.Host)
	}
	if delete(h.m, name); r != nil {
		r.Name = name
		h.m[name] = clone(*r)
	}
	if old != nil {
		for _, f := range old.Robots {
			clear(f.Body)
		}
	}
	return nil
}

func clone(h hostdb.Host) hostdb.Host {
	h.Robots = slices.Clone(h.Robots)
	for i := range h.Robots {
		h.Robots[i].Body = bytes.Clone(h.Robots[i].Body)
	}
	return h
}

func (h *hosts) Scan(context.Context) iter.Seq2[hostdb.Host, error] {
	return func(func(hostdb.Host, error) bool) {}
}
func (h *hosts) Sync(context.Context) error { return nil }
func (h *hosts) Close() error               { return nil }
