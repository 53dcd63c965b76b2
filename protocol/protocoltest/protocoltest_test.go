package protocoltest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/kit"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/protocoltest"
)

// memory is a protocol whose servers are maps in this process.
type memory struct {
	mu    sync.Mutex
	sites map[string]map[string]protocoltest.Page
}

func (m *memory) serve(pages map[string]protocoltest.Page) (string, func(), error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	host := fmt.Sprintf("site%d", len(m.sites))
	m.sites[host] = pages
	return "mem://" + host, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.sites[host] = nil
	}, nil
}

func (m *memory) Fetch(ctx context.Context, req protocol.Request) (protocol.Response, error) {
	if err := ctx.Err(); err != nil {
		return protocol.Response{}, err
	}
	r := protocol.Response{Content: page.Content{URL: req.URL, Time: time.Now()}}
	end := func(code protocol.Code, reason string) (protocol.Response, error) {
		r.Outcome.Code, r.Outcome.Reason = code, reason
		return r, nil
	}
	u, err := url.Parse(req.URL)
	if err != nil || u.Scheme != "mem" {
		return end(protocol.Refused, "no URL of mine")
	}
	m.mu.Lock()
	pages := m.sites[u.Host]
	m.mu.Unlock()
	if pages == nil {
		return end(protocol.Failed, "no such site")
	}
	p, ok := pages[u.Path]
	asked := protocoltest.Page{ETag: req.ETag, LastModified: req.LastModified}
	switch {
	case !ok:
		return end(protocol.NotFound, "no such page")
	case p.Stall:
		<-ctx.Done()
		return protocol.Response{}, ctx.Err()
	case p.Code == protocol.NotModified && asked.ETag+asked.LastModified == "":
		return end(protocol.Failed, "not modified, unasked")
	case p.ETag != "" && p.ETag == req.ETag, p.LastModified != "" && p.LastModified == req.LastModified:
		return end(protocol.NotModified, "")
	case p.Code != 0 && p.Code != protocol.Success:
		r.Outcome.RetryAfter = p.RetryAfter
		if p.Code.Redirect() {
			t, err := u.Parse(p.Location)
			if err != nil {
				return end(protocol.Failed, "bad location")
			}
			r.Outcome.Location = t.String()
		}
		return end(p.Code, "as you like it")
	}
	body := p.Body
	if limit := req.MaxBytes; limit > 0 && int64(len(body)) > limit {
		body, r.Content.Truncated = body[:limit], true
	}
	r.Content.Type, r.Content.Body = p.Type, bytes.Clone(body)
	r.ETag, r.LastModified = p.ETag, p.LastModified
	if r.Modified, err = time.Parse(time.RFC1123, p.LastModified); err == nil && r.Modified.After(r.Content.Time) {
		r.Modified = r.Content.Time
	}
	return end(protocol.Success, "")
}

// pages returns how many pages the site of a URL has, none of them stalling.
func (m *memory) pages(raw string) int {
	u, err := url.Parse(raw)
	if err != nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.sites[u.Host] {
		if p.Stall {
			return 0
		}
	}
	return len(m.sites[u.Host])
}

// mutant is memory with one fault.
type mutant struct {
	*memory
	fetch func(*memory, context.Context, protocol.Request) (protocol.Response, error)
}

func (m mutant) Fetch(ctx context.Context, req protocol.Request) (protocol.Response, error) {
	return m.fetch(m.memory, ctx, req)
}

// after returns the fault of changing a response.
func after(f func(req protocol.Request, r *protocol.Response)) func(*memory, context.Context, protocol.Request) (protocol.Response, error) {
	return func(m *memory, ctx context.Context, req protocol.Request) (protocol.Response, error) {
		r, err := m.Fetch(ctx, req)
		if err == nil {
			f(req, &r)
		}
		return r, err
	}
}

// before returns the fault of changing a request.
func before(f func(req *protocol.Request)) func(*memory, context.Context, protocol.Request) (protocol.Response, error) {
	return func(m *memory, ctx context.Context, req protocol.Request) (protocol.Response, error) {
		u := req.URL
		f(&req)
		r, err := m.Fetch(ctx, req)
		r.Content.URL = u
		return r, err
	}
}

// becomes returns the fault of mistaking one code for another.
func becomes(was, is protocol.Code) func(*memory, context.Context, protocol.Request) (protocol.Response, error) {
	return after(func(_ protocol.Request, r *protocol.Response) {
		if r.Outcome.Code == was {
			r.Outcome.Code = is
		}
	})
}

func harness(fetch func(*memory, context.Context, protocol.Request) (protocol.Response, error)) protocoltest.Harness {
	m := &memory{sites: map[string]map[string]protocoltest.Page{}}
	return protocoltest.Harness{
		New:   func() (protocol.Protocol, error) { return mutant{m, fetch}, nil },
		Serve: m.serve,
	}
}

func TestMemory(t *testing.T) { protocoltest.Run(t, harness((*memory).Fetch)) }

func TestCheckPassesMemory(t *testing.T) {
	if err := protocoltest.Check(t.Context(), harness((*memory).Fetch)); err != nil {
		t.Error(err)
	}
	untimed := after(func(_ protocol.Request, r *protocol.Response) { r.Content.Time = time.Time{} })
	if err := protocoltest.Check(t.Context(), harness(untimed)); err != nil {
		t.Errorf("without a time, which need not be given: %v", err)
	}
}

// TestRulesFindFaults runs over protocols with one fault each the rule that must find it.
func TestRulesFindFaults(t *testing.T) {
	var (
		shared []byte
		cache  sync.Map
		one    sync.Mutex
	)
	var all []kit.Mutant[protocoltest.Harness]
	for name, c := range map[string]struct {
		fetch func(*memory, context.Context, protocol.Request) (protocol.Response, error)
		rule  string
	}{
		"drops the type":         {after(func(_ protocol.Request, r *protocol.Response) { r.Content.Type = "" }), "a page is a success with its content"},
		"rewrites the URL":       {after(func(_ protocol.Request, r *protocol.Response) { r.Content.URL += "#" }), "a page is a success with its content"},
		"gives success a reason": {after(func(_ protocol.Request, r *protocol.Response) { r.Outcome.Reason = "OK" }), "a page is a success with its content"},
		"calls empty pages missing": {after(func(_ protocol.Request, r *protocol.Response) {
			if r.Outcome.Code == protocol.Success && len(r.Content.Body) == 0 {
				r.Outcome.Code = protocol.NotFound
			}
		}), "an empty page is a success"},
		"mends line ends": {after(func(_ protocol.Request, r *protocol.Response) {
			r.Content.Body = bytes.ReplaceAll(r.Content.Body, []byte("\r"), nil)
		}), "a body is kept byte for byte"},
		"missing is gone":        {becomes(protocol.NotFound, protocol.Gone), "a missing page is not found"},
		"gone is missing":        {becomes(protocol.Gone, protocol.NotFound), "a gone page is gone"},
		"denied is gone":         {becomes(protocol.Denied, protocol.Gone), "a forbidden page is denied"},
		"busy is failing":        {becomes(protocol.Busy, protocol.Failed), "a busy server's Retry-After is reported"},
		"permanent is temporary": {becomes(protocol.MovedPerm, protocol.MovedTemp), "a redirect is reported, not followed"},
		"forgets to wait":        {after(func(_ protocol.Request, r *protocol.Response) { r.Outcome.RetryAfter = 0 }), "a busy server's Retry-After is reported"},
		"no reasons":             {after(func(_ protocol.Request, r *protocol.Response) { r.Outcome.Reason = "" }), "a missing page is not found"},
		"reasons of two lines":   {after(func(_ protocol.Request, r *protocol.Response) { r.Outcome.Reason += "\n\x1b[31m" }), "a missing page is not found"},
		"bodies of errors":       {after(func(_ protocol.Request, r *protocol.Response) { r.Content.Body = []byte("404") }), "a missing page is not found"},
		"errors for failures": {func(m *memory, ctx context.Context, req protocol.Request) (protocol.Response, error) {
			r, err := m.Fetch(ctx, req)
			if err == nil && r.Outcome.Code == protocol.Failed {
				err = errors.New(r.Outcome.Reason)
			}
			return r, err
		}, "a fault of the server is a failure"},
		"follows redirects": {func(m *memory, ctx context.Context, req protocol.Request) (protocol.Response, error) {
			r, err := m.Fetch(ctx, req)
			for i := 0; i < 5 && err == nil && r.Outcome.Code.Redirect(); i++ {
				r, err = m.Fetch(ctx, protocol.Request{URL: r.Outcome.Location})
			}
			return r, err
		}, "a redirect is reported, not followed"},
		"locations stay relative": {after(func(_ protocol.Request, r *protocol.Response) {
			if u, err := url.Parse(r.Outcome.Location); err == nil && u.Scheme == "mem" {
				r.Outcome.Location = u.Path
			}
		}), "a redirect is reported, not followed"},
		"judges locations": {after(func(_ protocol.Request, r *protocol.Response) {
			if r.Outcome.Code.Redirect() && !strings.HasPrefix(r.Outcome.Location, "mem:") {
				r.Outcome = protocol.Outcome{Code: protocol.Refused, Reason: "other scheme"}
			}
		}), "a redirect to any scheme is reported"},
		"ignores the limit":   {before(func(r *protocol.Request) { r.MaxBytes = 0 }), "a body beyond the limit is cut and flagged"},
		"cuts without a flag": {after(func(_ protocol.Request, r *protocol.Response) { r.Content.Truncated = false }), "a body beyond the limit is cut and flagged"},
		"flags at the limit": {after(func(q protocol.Request, r *protocol.Response) {
			r.Content.Truncated = q.MaxBytes > 0 && int64(len(r.Content.Body)) >= q.MaxBytes
		}), "a body beyond the limit is cut and flagged"},
		"fails at the limit": {after(func(_ protocol.Request, r *protocol.Response) {
			if r.Content.Truncated {
				r.Outcome, r.Content.Body = protocol.Outcome{Code: protocol.Failed, Reason: "too long"}, nil
			}
		}), "a body beyond the limit is cut and flagged"},
		"never sends tags":     {before(func(r *protocol.Request) { r.ETag = "" }), "the entity tag of a page gets not modified, another one does not"},
		"never sends dates":    {before(func(r *protocol.Request) { r.LastModified = "" }), "the modification date of a page gets not modified, another one does not"},
		"drops the validators": {after(func(_ protocol.Request, r *protocol.Response) { r.ETag, r.LastModified = "", "" }), "the entity tag of a page gets not modified, another one does not"},
		"remembers validators": {func(m *memory, ctx context.Context, req protocol.Request) (protocol.Response, error) {
			if tag, ok := cache.Load(req.URL); ok && req.ETag == "" {
				req.ETag = tag.(string)
			}
			r, err := m.Fetch(ctx, req)
			if r.ETag != "" {
				cache.Store(req.URL, r.ETag)
			}
			return r, err
		}, "the entity tag of a page gets not modified, another one does not"},
		"believes any 304": {after(func(_ protocol.Request, r *protocol.Response) {
			if r.Outcome.Reason == "not modified, unasked" {
				r.Outcome = protocol.Outcome{Code: protocol.NotModified}
			}
		}), "not modified fails unless the request was conditional"},
		"believes any date": {after(func(_ protocol.Request, r *protocol.Response) {
			r.Modified, _ = time.Parse(time.RFC1123, r.LastModified)
		}), "a modification time is read, and never in the future"},
		"cannot read dates": {after(func(_ protocol.Request, r *protocol.Response) { r.Modified = time.Time{} }), "a modification time is read, and never in the future"},
		"chokes on validators": {func(m *memory, ctx context.Context, req protocol.Request) (protocol.Response, error) {
			if strings.ContainsAny(req.ETag, "\r\n\x00") {
				return protocol.Response{}, errors.New("invalid header")
			}
			return m.Fetch(ctx, req)
		}, "validators that cannot be sent do no harm"},
		"ignores the context": {func(m *memory, ctx context.Context, req protocol.Request) (protocol.Response, error) {
			if ctx.Err() != nil {
				ctx = context.Background()
			}
			return m.Fetch(ctx, req)
		}, "a done context is an error"},
		"hides why": {func(m *memory, ctx context.Context, req protocol.Request) (protocol.Response, error) {
			r, err := m.Fetch(ctx, req)
			if err != nil {
				err = errors.New("cancelled")
			}
			return r, err
		}, "a done context is an error"},
		"takes an end for an outcome": {func(m *memory, ctx context.Context, req protocol.Request) (protocol.Response, error) {
			before := ctx.Err()
			r, err := m.Fetch(ctx, req)
			if err != nil && before == nil {
				return protocol.Response{Outcome: protocol.Outcome{Code: protocol.Failed, Reason: "timeout"}}, nil
			}
			return r, err
		}, "a context that ends during a visit is soon an error"},
		// Only of one visitor at a time: else it is a data race, and caught as one.
		"one buffer for all": {func(m *memory, ctx context.Context, req protocol.Request) (protocol.Response, error) {
			r, err := m.Fetch(ctx, req)
			if m.pages(req.URL) == 2 {
				shared = append(shared[:0], r.Content.Body...)
				r.Content.Body = shared
			}
			return r, err
		}, "the caller owns the response"},
		"hands out its own": {func(m *memory, ctx context.Context, req protocol.Request) (protocol.Response, error) {
			r, err := m.Fetch(ctx, req)
			if r.Outcome.Code == protocol.Success {
				body, _ := cache.LoadOrStore(req, r.Content.Body)
				r.Content.Body = body.([]byte)
			}
			return r, err
		}, "the caller owns the response"},
		"one at a time": {func(m *memory, ctx context.Context, req protocol.Request) (protocol.Response, error) {
			if !one.TryLock() {
				return protocol.Response{}, errors.New("busy")
			}
			defer one.Unlock()
			time.Sleep(time.Millisecond)
			return m.Fetch(ctx, req)
		}, "visits may run concurrently"},
		"gives up on a site with a slow page": {func(m *memory, ctx context.Context, req protocol.Request) (protocol.Response, error) {
			r, err := m.Fetch(ctx, req)
			if r.Outcome.Code == protocol.Success && m.pages(req.URL) == 0 {
				r.Outcome = protocol.Outcome{Code: protocol.Failed, Reason: "slow site"}
			}
			return r, err
		}, "one slow visit does not hold up the others"},
		"errors for schemes": {func(m *memory, ctx context.Context, req protocol.Request) (protocol.Response, error) {
			if strings.HasPrefix(req.URL, "x-unknown:") {
				return protocol.Response{}, errors.New("unknown scheme")
			}
			return m.Fetch(ctx, req)
		}, "an unknown scheme is refused"},
		"fails for schemes": {becomes(protocol.Refused, protocol.Failed), "an unknown scheme is refused"},
		"errors for what is no URL": {func(m *memory, ctx context.Context, req protocol.Request) (protocol.Response, error) {
			if _, err := url.Parse(req.URL); err != nil {
				return protocol.Response{}, err
			}
			return m.Fetch(ctx, req)
		}, "an invalid URL is refused"},
		"serves the dead": {func(m *memory, ctx context.Context, req protocol.Request) (protocol.Response, error) {
			r, err := m.Fetch(ctx, req)
			if r.Outcome.Reason == "no such site" {
				r.Outcome = protocol.Outcome{Code: protocol.Success}
			}
			return r, err
		}, "a server that does not answer is an outcome"},
	} {
		all = append(all, kit.Mutant[protocoltest.Harness]{Fault: name, Rule: c.rule, Harness: harness(c.fetch)})
	}
	kit.Catch(t, protocoltest.Kit, all, nil)
}

func TestHarnessIsRequired(t *testing.T) {
	if err := protocoltest.Check(t.Context(), protocoltest.Harness{}); err == nil {
		t.Error("an empty harness passes")
	}
}

func TestUnsupportedPagesAreLeftOut(t *testing.T) {
	h := harness((*memory).Fetch)
	serve := h.Serve
	h.Serve = func(pages map[string]protocoltest.Page) (string, func(), error) {
		for _, p := range pages {
			if p.Code != 0 {
				return "", nil, fmt.Errorf("code %v: %w", p.Code, errors.ErrUnsupported)
			}
		}
		return serve(pages)
	}
	if err := protocoltest.Check(t.Context(), h); err != nil {
		t.Error(err)
	}
}
