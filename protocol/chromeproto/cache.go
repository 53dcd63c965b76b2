package chromeproto

import (
	"bytes"
	"container/list"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxCached limits the body of an answer in the cache.
	maxCached = 4 << 20
	// maxFresh limits how long an answer is used again.
	maxFresh = time.Hour
)

// A cache keeps the answers that pages of a site have in common, such as their scripts: servers are
// not asked again for what they allow a shared cache to keep (RFC 9111, with an explicit lifetime
// only, and never validated). What the server made of cookies or of the page is not shared.
// It may be used from many goroutines at once.
type cache struct {
	next  http.RoundTripper
	limit int64 // of bytes

	mu      sync.Mutex
	entries map[string]*list.Element // of *cached
	recent  list.List                // the latest used first
	size    int64
}

type cached struct {
	key    string
	until  time.Time
	header http.Header
	body   []byte
}

func newCache(next http.RoundTripper, limit int64) *cache {
	return &cache{next: next, limit: max(limit, 0), entries: map[string]*list.Element{}}
}

func (c *cache) RoundTrip(req *http.Request) (*http.Response, error) {
	key, ok := cacheKey(req)
	if !ok {
		return c.next.RoundTrip(req)
	}
	if e := c.get(key, time.Now()); e != nil {
		return &http.Response{
			Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: e.header.Clone(), Body: io.NopCloser(bytes.NewReader(e.body)), ContentLength: int64(len(e.body)), Request: req,
		}, nil
	}
	resp, err := c.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if fresh := freshness(resp); fresh > 0 && resp.ContentLength <= maxCached {
		e := &cached{key: key, until: time.Now().Add(fresh), header: resp.Header.Clone()}
		resp.Body = &copiedBody{ReadCloser: resp.Body, cache: c, entry: e, length: resp.ContentLength}
	}
	return resp, nil
}

// cacheKey returns under which key the answer to a request may be kept.
func cacheKey(req *http.Request) (string, bool) {
	h := req.Header
	if req.Method != http.MethodGet || h.Get("Range") != "" || h.Get("Authorization") != "" || h.Get("Upgrade") != "" || strings.Contains(h.Get("Cache-Control"), "no-") {
		return "", false
	}
	return req.URL.String() + "\n" + h.Get("Origin") + "\n" + h.Get("Accept-Encoding"), true
}

// freshness returns how long an answer may be used again; zero if it may not.
func freshness(resp *http.Response) time.Duration {
	h := resp.Header
	if resp.StatusCode != http.StatusOK || len(h["Set-Cookie"]) > 0 {
		return 0
	}
	for _, names := range h["Vary"] {
		for name := range strings.SplitSeq(names, ",") {
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "", "accept-encoding", "origin", "user-agent": // the agent is always the same
			default:
				return 0
			}
		}
	}
	seconds, shared := -1, false
	for d := range strings.SplitSeq(strings.ToLower(strings.Join(h["Cache-Control"], ",")), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(d), "=")
		switch name {
		case "no-store", "private", "no-cache":
			return 0
		case "max-age", "s-maxage":
			n, err := strconv.Atoi(strings.Trim(value, `"`))
			if err != nil {
				return 0
			}
			if name == "s-maxage" || !shared {
				seconds, shared = n, shared || name == "s-maxage"
			}
		}
	}
	age, _ := strconv.Atoi(h.Get("Age"))
	seconds = min(seconds, int(maxFresh/time.Second)+age) - age
	return max(time.Duration(seconds)*time.Second, 0)
}

func (c *cache) get(key string, now time.Time) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.entries[key]
	if at == nil {
		return nil
	}
	e := at.Value.(*cached)
	if !now.Before(e.until) {
		c.remove(at)
		return nil
	}
	c.recent.MoveToFront(at)
	return e
}

func (c *cache) put(e *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.entries[e.key]; at != nil {
		c.remove(at)
	}
	c.entries[e.key] = c.recent.PushFront(e)
	for c.size += e.bytes(); c.size > c.limit; {
		c.remove(c.recent.Back())
	}
}

// remove is called with the lock held.
func (c *cache) remove(at *list.Element) {
	e := c.recent.Remove(at).(*cached)
	delete(c.entries, e.key)
	c.size -= e.bytes()
}

// bytes is about what an entry takes.
func (e *cached) bytes() int64 { return int64(len(e.body)+2*len(e.key)) + 1<<10 }

// A copiedBody puts a body into the cache when it was read to its end.
type copiedBody struct {
	io.ReadCloser
	cache  *cache
	entry  *cached // nil once it is kept, or too long
	length int64   // as announced; negative if it is not
}

func (b *copiedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.entry == nil {
		return n, err
	}
	b.entry.body = append(b.entry.body, p[:n]...)
	switch {
	case len(b.entry.body) > maxCached, err != nil && err != io.EOF:
		b.entry = nil
	case err == io.EOF:
		if b.length < 0 || b.length == int64(len(b.entry.body)) {
			b.cache.put(b.entry)
		}
		b.entry = nil
	}
	return n, err
}
