package httpproto

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/internal/webhost"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
)

// Fetch makes one visit. In addition to what [protocol.Protocol] says:
//
// A body that reaches a limit, or whose transfer ends early or breaks off, is a
// Success and Truncated, with what was read of it; if nothing was transferred
// at all, the visit Failed. Validators of a body that broke off are dropped, or
// the rest of it would never be requested.
//
// A 206, which was not requested, is Truncated too.
func (c *Client) Fetch(ctx context.Context, req protocol.Request) (protocol.Response, error) {
	resp, _, err := c.FetchHeader(ctx, req)
	return resp, err
}

// FetchHeader does what Fetch does, and returns the headers of the answer too; nil if there was
// none. The caller owns them.
func (c *Client) FetchHeader(ctx context.Context, req protocol.Request) (protocol.Response, http.Header, error) {
	start := time.Now()
	if err := ctx.Err(); err != nil {
		return protocol.Response{}, nil, fmt.Errorf("httpproto: fetch %q: %w", req.URL, err)
	}
	c.active.Add(1)
	defer func() {
		if c.active.Add(-1) == 0 && c.closed.Load() {
			c.transport.CloseIdleConnections()
			c.conns.closeAll()
		}
	}()
	if c.closed.Load() {
		return protocol.Response{}, nil, fmt.Errorf("%w: fetch %q", ErrClosed, req.URL)
	}
	resp := protocol.Response{Content: page.Content{URL: req.URL, Time: c.o.Now()}}
	var header http.Header
	err := c.visit(ctx, req, &resp, &header)
	if err != nil {
		return protocol.Response{}, nil, fmt.Errorf("httpproto: fetch %q: %w", req.URL, err)
	}
	resp.Elapsed = time.Since(start)
	return resp, header, nil
}

// visit fills in resp and header. It returns an error only if the visit could not be made.
func (c *Client) visit(ctx context.Context, req protocol.Request, resp *protocol.Response, header *http.Header) (err error) {
	u, err := parseURL(req.URL)
	if err == nil {
		err = c.refusesPort(u)
	}
	if err != nil {
		resp.Outcome = refused(err.Error())
		return nil
	}
	limit, encoded := c.limits(req.MaxBytes)

	vctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if c.o.Limits.TimeLimit > 0 {
		defer time.AfterFunc(c.o.Limits.TimeLimit, func() { stop(errTime) }).Stop()
	}
	v := &visit{ctx: vctx, stop: stop, header: c.o.Limits.MaxHeaderBytes}
	hreq := (&http.Request{
		Method: http.MethodGet, URL: u, Host: u.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: c.header(u, req),
	}).WithContext(v.context(vctx))

	hresp, err := c.rt.RoundTrip(hreq)
	// The transport may not know yet that an earlier visit has closed the
	// connection it offers (HTTP/2). The server is not at fault.
	for tries := 0; err != nil && tries < 3 && vctx.Err() == nil && v.doomed() && !v.sent.Load(); tries++ {
		hresp, err = c.rt.RoundTrip(hreq)
	}
	if err != nil {
		defer v.end(true)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		cause := context.Cause(vctx)
		resp.Unanswered = v.reused && (errors.Is(cause, errUnanswered) || errors.Is(err, errUnanswered))
		return c.failed(resp, err, cause, phase(v.phase.Load()))
	}
	*header = hresp.Header
	conn, keep := v.conn(), false
	if c.o.Capture != nil {
		var body *capturedBody
		if hresp.Body != http.NoBody {
			body = &capturedBody{ReadCloser: hresp.Body, keep: v.log == nil}
			hresp.Body = body
		}
		defer func() { // after the connection was given back: the log is the visit's own
			if err == nil {
				err = c.capture(v.exchange(hreq, hresp, body), resp)
			}
		}()
	}
	defer func() {
		if conn != nil && keep {
			keep = conn.settle(vctx)
			if d, ok := keepAlive(hresp.Header); ok && hresp.ProtoMajor == 1 {
				conn.keepFor(d)
			}
		}
		// The connection first: closing a body may wait for the server.
		v.end(!keep)
		stop(nil)
		hresp.Body.Close()
	}()
	v.at(phaseBody)
	if conn != nil {
		resp.Addr = conn.RemoteAddr().String()
	}
	c.keepCookies(u, hresp.Header)
	c.answer(u, req, hresp, resp)
	if hresp.Body == http.NoBody {
		keep = true
		return nil
	}
	if resp.Outcome.Code != protocol.Success {
		// This body is not used. If it is short, it is read so that the
		// connection can be reused; if not, a stream of HTTP/2 is reset, and
		// over HTTP/1 a new connection costs less than reading an unknown
		// amount.
		keep = hresp.ContentLength <= maxDrain && drain(hresp.Body, stop) || hresp.ProtoMajor == 2
		return nil
	}

	body, n, err := c.readBody(hresp, conn, limit, encoded, stop)
	resp.Content.Body, resp.Bytes = body, n
	switch {
	case err == nil:
		// Reading may have stopped before the end of the body, as encodings mark their
		// own end, and a connection can only be reused after it.
		keep = hresp.Header["Content-Encoding"] == nil || drain(hresp.Body, stop) || hresp.ProtoMajor == 2
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errSize):
		resp.Content.Truncated = true
	case len(body) > 0:
		resp.Content.Truncated = true
		resp.ETag, resp.LastModified, resp.Modified = "", "", time.Time{}
	default:
		status := resp.Outcome.Status
		resp.ETag, resp.LastModified, resp.Modified = "", "", time.Time{}
		if errors.As(err, new(encodingError)) {
			resp.Outcome = protocol.Outcome{Code: protocol.Failed, Reason: err.Error()}
		} else if err := c.failed(resp, err, context.Cause(vctx), phaseBody); err != nil {
			return err
		}
		resp.Outcome.Status = status
	}
	return nil
}

// drain reads the rest of an unwanted body, and reports whether it reached the end.
// It gives up, and ends the visit, if there is more than a little or it takes long.
func drain(body io.Reader, stop context.CancelCauseFunc) bool {
	defer time.AfterFunc(drainTime, func() { stop(errSlow) }).Stop()
	n, err := io.Copy(io.Discard, io.LimitReader(body, maxDrain+1))
	return err == nil && n <= maxDrain
}

// parseURL returns the URL as requested, or an error that names the rule of
// ours by which it is not visited. Its host is that of the Host header: in
// ASCII and lower case, and without a default port.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The error of url.Parse quotes the URL, which may contain a password.
		return nil, errors.New("url: cannot be parsed")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("url: scheme is neither http nor https")
	case u.Hostname() == "":
		return nil, errors.New("url: no host")
	case u.User != nil:
		return nil, errors.New("url: has user information")
	}
	host := u.Hostname()
	if a, addrErr := netip.ParseAddr(host); addrErr == nil {
		if a.Zone() != "" {
			return nil, errors.New("url: address has a zone")
		}
		if host = a.String(); a.Is6() {
			host = "[" + host + "]"
		}
	} else {
		if !strings.ContainsFunc(host, func(r rune) bool { return r >= 0x80 }) {
			host = strings.ToLower(host)
		} else {
			// Names are mapped as browsers do it (UTS #46), so that the name dialled and
			// the one the server sees are the same. UTS #46 lower-cases in its own way,
			// by which "İ" is no "i".
			host, _ = webhost.ASCII(host)
		}
		// Unescaping or mapping may produce URL syntax: a full-width colon would begin a
		// port, and be another queue to code that counts the turns of hosts.
		if host == "" || strings.ContainsAny(host, "#/:<>?@[\\]^|%") {
			return nil, errors.New("url: host is not a name")
		}
	}
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return nil, errors.New("url: port is not within 1 to 65535")
		}
		if n != uint64(defaultPort(u.Scheme)) {
			host += ":" + strconv.FormatUint(n, 10)
		}
	}
	u.Host = host
	u.RawQuery = escapeQuery(u.RawQuery)
	return u, nil
}

func defaultPort(scheme string) int {
	if scheme == "https" {
		return 443
	}
	return 80
}

// escapeQuery escapes what a request line cannot contain: url.Parse lets spaces
// and non-ASCII bytes pass in a query.
func escapeQuery(q string) string {
	odd := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	if !strings.ContainsFunc(q, odd) {
		return q
	}
	var b strings.Builder
	for i := range len(q) {
		if odd(rune(q[i])) {
			fmt.Fprintf(&b, "%%%02X", q[i])
		} else {
			b.WriteByte(q[i])
		}
	}
	return b.String()
}

// limits returns the limits of a visit on decoded and encoded bytes of body.
func (c *Client) limits(asked int64) (decoded, encoded int64) {
	const none = math.MaxInt64 - 1 // leaves room for one byte more
	decoded, encoded = c.o.Limits.MaxBytes, c.o.Limits.MaxEncodedBytes
	if asked != 0 {
		decoded = asked
	}
	if decoded < 0 {
		decoded = none
	}
	switch {
	case encoded < 0 || encoded == 0 && decoded > none-slack:
		encoded = none
	case encoded == 0:
		encoded = decoded + 64<<10
	}
	return decoded, encoded
}
