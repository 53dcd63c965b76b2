package httpproto

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/recrawl/recrawl/protocol"
)

// An Exchange is a request and its answer as bytes, as far as they came.
type Exchange struct {
	URL string
	// Time is when the visit began, by the clock of the client.
	Time time.Time
	// Addr is the address and port that was connected to; empty if a RoundTripper answered
	// by itself.
	Addr string
	// Protocol is "http/1.1", also for HTTP/1.0, or "h2"; empty if a RoundTripper answered by
	// itself.
	Protocol string
	// Request and Response are the messages as they were on an HTTP/1 connection: headers
	// in their order, with the codings of transfer and content. Interim answers (1xx) are
	// left out.
	//
	// HTTP/2 has no such form, nor has a RoundTripper that answers by itself. Their messages
	// are composed as those of HTTP/1.1, with the headers sorted by name, and the body as the
	// content is coded.
	Request, Response []byte
	// Truncated says why Response is not the whole answer, in the words of the field
	// WARC-Truncated: "length" for a limit on bytes, or a body that was not read as the
	// visit had no use for it; "time" for a limit on time; "disconnect" if the server ended
	// it. Empty if it is whole.
	Truncated string
}

// A wireLog holds what one visit has sent and received over an HTTP/1 connection.
type wireLog struct {
	mu                sync.Mutex
	request, response []byte
}

// A recorder is a connection of HTTP/1, TLS removed, that logs for the visit that uses it.
type recorder struct {
	net.Conn
	log atomic.Pointer[wireLog]
}

func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	if log := r.log.Load(); log != nil {
		log.mu.Lock()
		defer log.mu.Unlock()
		log.response = append(log.response, p[:n]...)
	}
	return n, err
}

// Write logs first: the answer may have been read before the connection's Write returns.
func (r *recorder) Write(p []byte) (int, error) {
	if log := r.log.Load(); log != nil {
		log.mu.Lock()
		log.request = append(log.request, p...)
		log.mu.Unlock()
	}
	return r.Conn.Write(p)
}

// record makes the transport log HTTP/1 connections. It has no hook above its own TLS, so the
// handshake is made here.
func (c *Client) record(t *http.Transport) {
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := c.dialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &recorder{Conn: nc}, nil
	}
	t.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := c.dialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		secured, err := c.handshake(ctx, nc, address, t.TLSClientConfig.Clone())
		if err != nil {
			nc.Close()
			return nil, err
		}
		if secured.ConnectionState().NegotiatedProtocol == "h2" {
			return secured, nil // the transport looks for this type
		}
		return &recorder{Conn: secured}, nil
	}
}

// handshake makes the TLS handshake of a visit.
func (c *Client) handshake(ctx context.Context, nc net.Conn, address string, config *tls.Config) (*tls.Conn, error) {
	v := ctx.Value(visitKey{}).(*visit) // dialContext has seen it
	v.at(phaseTLS)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(v.ctx, cancel)()
	if c.o.Limits.TLSTimeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, c.o.Limits.TLSTimeout)
		defer cancel()
	}
	var err error
	if config.ServerName, _, err = net.SplitHostPort(address); err != nil {
		return nil, err
	}
	if !slices.Contains(config.NextProtos, "http/1.1") {
		config.NextProtos = append(config.NextProtos, "http/1.1")
	}
	secured := tls.Client(nc, config)
	return secured, secured.HandshakeContext(ctx)
}

// logged begins the log of a visit on the connection that it has got.
func (v *visit) logged(nc net.Conn) net.Conn {
	r, ok := nc.(*recorder)
	if !ok {
		return nc
	}
	v.log = new(wireLog)
	r.log.Store(v.log)
	return r.Conn
}

// A capturedBody is the body of an answer, with its bytes kept unless a log has them.
type capturedBody struct {
	io.ReadCloser
	keep  bool
	bytes []byte
	err   error // that ended it
}

func (b *capturedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.keep {
		b.bytes = append(b.bytes, p[:n]...)
	}
	if err != nil {
		b.err = err
	}
	return n, err
}

// exchange returns what was sent and received.
func (v *visit) exchange(req *http.Request, resp *http.Response, body *capturedBody) *Exchange {
	x := &Exchange{}
	switch {
	case body == nil || body.err == io.EOF:
	case errors.Is(context.Cause(v.ctx), errTime), errors.Is(context.Cause(v.ctx), errSlow):
		x.Truncated = "time"
	case body.err == nil:
		x.Truncated = "length"
	default:
		x.Truncated = "disconnect"
	}
	if v.log == nil || resp.ProtoMajor != 1 {
		if x.Request, x.Response = composeRequest(req), composeHead(resp); body != nil {
			x.Response = append(x.Response, body.bytes...)
		}
		if v.conn() != nil {
			x.Protocol = "h2"
		}
		return x
	}
	x.Protocol = "http/1.1"
	v.log.mu.Lock()
	defer v.log.mu.Unlock()
	x.Request, x.Response = v.log.request, withoutInterim(v.log.response)
	v.log.request, v.log.response = nil, nil // an idle connection keeps the log
	// A server may have sent more than the answer.
	if whole := int64(headLength(x.Response)) + resp.ContentLength; resp.ContentLength >= 0 && int64(len(x.Response)) > whole {
		x.Response = x.Response[:whole]
	}
	return x
}

// withoutInterim removes the answers with status 1xx before the final one.
func withoutInterim(b []byte) []byte {
	for {
		rest, ok := bytes.CutPrefix(b, []byte("HTTP/1."))
		if !ok || len(rest) < 3 || rest[1] != ' ' || rest[2] != '1' {
			return b
		}
		b = b[headLength(b):]
	}
}

// headLength returns the length of the first line and headers with the empty line that ends
// them; of all if there is none. Lines may end in LF alone.
func headLength(message []byte) int {
	at := 0
	for line := range bytes.Lines(message) {
		at += len(line)
		if len(bytes.TrimRight(line, "\r\n")) == 0 {
			return at
		}
	}
	return len(message)
}

func composeRequest(req *http.Request) []byte {
	b := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\n", req.Method, req.URL.RequestURI(), req.Host)
	h := req.Header.Clone()
	h.Del("Connection") // which HTTP/2 does not send
	return composeHeaders(b, h)
}

func composeHead(resp *http.Response) []byte {
	return composeHeaders(fmt.Appendf(nil, "HTTP/1.1 %03d %s\r\n", resp.StatusCode, http.StatusText(resp.StatusCode)), resp.Header)
}

func composeHeaders(b []byte, h http.Header) []byte {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			b = fmt.Appendf(b, "%s: %s\r\n", name, value)
		}
	}
	return append(b, "\r\n"...)
}

// capture passes on the exchange of a visit.
func (c *Client) capture(x *Exchange, resp *protocol.Response) error {
	x.URL, x.Time, x.Addr = resp.Content.URL, resp.Content.Time, resp.Addr
	if err := c.o.Capture(*x); err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	return nil
}
