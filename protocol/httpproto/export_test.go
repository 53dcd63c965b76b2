package httpproto

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
)

// ReadBody decodes a body like a visit does, and reports whether it ended
// because of a limit.
func (c *Client) ReadBody(coding string, body []byte, limit int64) (decoded []byte, cut bool, err error) {
	resp := &http.Response{Header: http.Header{"Content-Encoding": {coding}}, Body: io.NopCloser(bytes.NewReader(body))}
	decoded, _, err = c.readBody(resp, nil, limit, max(limit+64<<10, int64(len(body))), func(error) {})
	return decoded, errors.Is(err, errSize), err
}

// SetDial replaces what a client dials with, guard and all.
func (c *Client) SetDial(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	c.dial, c.dialOwn = dial, dial
}

// Remembered returns how many hosts' addresses a client remembers.
func (c *Client) Remembered() int {
	c.lookups.mu.Lock()
	defer c.lookups.mu.Unlock()
	return c.lookups.hosts.Len()
}

// What the fuzz targets call.
var (
	RetryAfter = retryAfter
	Date       = date
	Printable  = printable
)

const (
	MaxDials   = maxDials
	MaxAddrs   = maxAddrs
	MaxLookups = maxLookups
	MaxRatio   = maxRatio
	RatioFloor = ratioFloor
)

// Count returns the number of bytes in a jar, counted from scratch.
func (j *Jar) Count() int {
	n := 0
	for e := j.recent.Front(); e != nil; e = e.Next() {
		for _, c := range e.Value.(*cookieSite).cookies {
			n += c.size()
		}
	}
	if n != j.bytes || len(j.sites) != j.recent.Len() {
		panic("the books of the jar are wrong")
	}
	return n
}

const (
	MaxCookies    = maxCookies
	MaxCookieSite = maxCookieSite
	MaxCookieJar  = maxCookieJar
)

const (
	MaxDrain = maxDrain
)

// Answer returns what is read of status and headers.
func (c *Client) Answer(from string, h *http.Response, req protocol.Request) protocol.Response {
	u, err := parseURL(from)
	if err != nil {
		panic(err)
	}
	r := protocol.Response{Content: page.Content{URL: from, Time: c.o.Now()}}
	c.answer(u, req, h, &r)
	return r
}

// Dialled returns the host that is dialled for a URL, and its port; empty if none is.
func Dialled(url string) (host, port string) {
	u, err := parseURL(url)
	if err != nil {
		return "", ""
	}
	return u.Hostname(), u.Port()
}

// Open returns how many connections a client has open.
func (c *Client) Open() int {
	c.conns.mu.Lock()
	defer c.conns.mu.Unlock()
	return len(c.conns.open)
}
