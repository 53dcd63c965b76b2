package httpproto_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// fuzzLimit bounds bodies, and fuzzTime visits, of the fuzz targets.
const (
	fuzzLimit = 10_000
	fuzzTime  = 300 * time.Millisecond
)

// fuzzed visits a server on the other end of a pipe twice, and demands what holds for every
// response, and that nothing is left of the visits.
func fuzzed(t *testing.T, url string, serve func(net.Conn)) {
	before := runtime.NumGoroutine()
	c, err := httpproto.New(httpproto.Options{
		Agent: "bot", Limits: httpproto.Limits{MaxBytes: fuzzLimit, MaxHeaderBytes: 4 << 10, TimeLimit: fuzzTime}, InsecureSkipVerify: true, Jar: &httpproto.Jar{},
		Resolver: func(context.Context, string, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var servers pipes
	c.SetDial(func(context.Context, string, string) (net.Conn, error) { return servers.dial(serve) })
	for range 2 {
		start := time.Now()
		r := fetch(t, c, protocol.Request{URL: url, ETag: `"x"`})
		if d := time.Since(start); d > fuzzTime+patience {
			t.Errorf("took %v", d)
		}
		sound(t, r)
	}
	c.Close()
	servers.end()
	within(t, "a goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

// sound demands what holds for every response, whatever was sent.
func sound(t *testing.T, r protocol.Response) {
	t.Helper()
	o := r.Outcome
	clean := func(s string) bool {
		return len(s) <= 1<<10 && !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f })
	}
	u, err := url.Parse(o.Location)
	switch {
	case strings.HasPrefix(o.Code.String(), "unknown"), o.Status < 0, o.Status > 999:
		t.Errorf("outcome %+v", o)
	case (o.Reason == "") != (o.Code == protocol.Success || o.Code == protocol.NotModified || o.Code.Redirect()), !httpproto.Printable(o.Reason):
		t.Errorf("%v with the reason %q", o.Code, o.Reason)
	case (o.Location == "") == o.Code.Redirect(), o.Location != "" && (err != nil || !u.IsAbs() || len(o.Location) > 32<<10 || !clean(o.Location[:min(len(o.Location), 1<<10)])):
		t.Errorf("%v to %q", o.Code, o.Location)
	case o.RetryAfter < 0, o.RetryAfter > 24*time.Hour:
		t.Errorf("retry after %v", o.RetryAfter)
	case len(r.Content.Body) > fuzzLimit, o.Code != protocol.Success && len(r.Content.Body) > 0:
		t.Errorf("%v with %d bytes", o.Code, len(r.Content.Body))
	case !clean(r.ETag), !clean(r.LastModified), !clean(r.Content.Type), !clean(r.Content.Refresh), r.ETag == "*", !httpproto.Printable(r.Content.Robots):
		t.Errorf("unsafe: %+v", r)
	case r.Modified.After(r.Content.Time), r.Bytes < 0, r.Elapsed < 0:
		t.Errorf("times: %+v", r)
	}
}

// wrote returns a server that says what it is given, and listens as long as it
// takes.
func wrote(answer []byte) func(net.Conn) {
	return func(nc net.Conn) {
		var heard sync.WaitGroup
		heard.Go(func() { io.Copy(io.Discard, nc) })
		nc.Write(answer)
		nc.Close()
		heard.Wait()
	}
}

func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nA: b\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\xcaH\xcd\xc9\xc9\x07\x04\x00\x00\xff\xff\x86\xa6\x106\x05\x00\x00\x00",
		"HTTP/1.1 200 OK\r\nContent-Encoding: zstd, deflate\r\n\r\n\x28\xb5\x2f\xfd", "HTTP/1.1 103 Early\r\nLink: <x>\r\n\r\nHTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n",
		"HTTP/1.0 301 Moved\nLocation: //a\nSet-Cookie: a=b; Max-Age=1\n\nbody", "HTTP/1.1 429 Slow\r\nRetry-After: 120\r\nContent-Length: 3\r\n\r\nno.", "SSH-2.0-x\r\n", "", "HTTP/1.1 999 \r\n\r\n",
		"HTTP/1.1 206 Part\r\nContent-Range: bytes 0-4/10\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", "HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n\x00\x00\x00\x04",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, answer []byte) { fuzzed(t, "http://name.example/", wrote(answer)) })
}

func FuzzHandshake(f *testing.F) {
	f.Add([]byte("\x16\x03\x03\x00\x06\x02\x00\x00\x02xx"))
	f.Add([]byte(serverHello(0xc02b) + "\x16\x03\x03\x00\x04\x0e\x00\x00\x00"))
	f.Add([]byte("\x16\x03\x03\x00\x2e\x02\x00\x00\x2a\x03\x03" + strings.Repeat("r", 32) + "\x00\x13\x01\x00\x00\x02\x00\x2b\x00\x00"))
	f.Add([]byte("\x15\x03\x03\x00\x02\x02\x28"))
	f.Add([]byte("HTTP/1.1 400 Bad\r\n\r\n"))
	f.Fuzz(func(t *testing.T, answer []byte) { fuzzed(t, "https://name.example/", wrote(answer)) })
}

// FuzzFrames takes its bytes for frames: kind, flags, stream and length of each
// first, so that what is random is not only noise.
func FuzzFrames(f *testing.F) {
	add := func(frames ...string) { f.Add([]byte(strings.Join(frames, ""))) }
	add("\x04\x00\x00\x00", "\x01\x04\x01\x01\x88", "\x00\x01\x01\x05hello")
	add("\x04\x00\x00\x06\x00\x03\x00\x00\x00\x00", "\x07\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00")
	add("\x04\x00\x00\x06\x00\x04\x7f\xff\xff\xff", "\x03\x00\x01\x04\x00\x00\x00\x07")
	add("\x04\x00\x00\x00", "\x08\x00\x01\x04\x7f\xff\xff\xff")
	add("\x04\x00\x00\x00", "\x01\x00\x01\x01\x88", "\x09\x04\x01\x05\x00\x01a\x01b", "\x00\x08\x01\x03\x01x\x00")
	add("\x04\x00\x00\x00", "\x01\x04\x01\x05\x48\x03304", "\x06\x00\x0012345678", "\x05\x04\x01\x05\x00\x00\x00\x02\x88", "\x08\x00\x01\x04\x7f\xff\xff\xff")
	var frames strings.Builder
	serve := overHTTP2(func(nc net.Conn) {
		io.WriteString(nc, frames.String())
		nc.Close()
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		frames.Reset()
		for len(b) >= 4 {
			n := min(int(b[3]), len(b)-4)
			frames.WriteString(frame(b[0]%12, b[1], uint32(b[2]%5), string(b[4:4+n])))
			b = b[4+n:]
		}
		fuzzed(t, "https://name.example/", serve)
	})
}

// FuzzHeaders reads what a server says of a page.
func FuzzHeaders(f *testing.F) {
	f.Add(200, "text/html; charset=x", `W/"x"`, "Sun, 06 Nov 1994 08:49:37 GMT", "noindex, bot: nofollow", "5; url=/next", "", "", "a=b; Path=/")
	f.Add(301, "", "*", "", "unavailable_after: x", "", "/a b\\c", "120", "__Host-a=b; Secure")
	f.Add(503, "\x00", "\x7f", "\xff", ":", "0;", "http://[::1", "Fri, 31 Dec 9999 23:59:59 GMT", "=")
	c, err := httpproto.New(httpproto.Options{Agent: "bot"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, status int, contentType, etag, modified, robots, refresh, location, after, cookie string) {
		r := c.Answer("https://name.example/x?y", &http.Response{StatusCode: status, Header: http.Header{
			"Content-Type": {contentType}, "Etag": {etag}, "Last-Modified": {modified}, "X-Robots-Tag": {robots, robots}, "Refresh": {refresh},
			"Location": {location}, "Retry-After": {after}, "Date": {modified}, "Set-Cookie": {cookie},
		}}, protocol.Request{ETag: etag})
		if status >= 0 && status <= 999 {
			sound(t, r)
		}
		// What is kept is sent back with the next visit, and may not break it.
		again := c.Answer("https://name.example/", &http.Response{StatusCode: 304, Header: http.Header{}}, protocol.Request{ETag: r.ETag, LastModified: r.LastModified})
		if want := r.ETag != "" || r.LastModified != ""; want != (again.Outcome.Code == protocol.NotModified) {
			t.Errorf("validators %q, %q: then %+v", r.ETag, r.LastModified, again.Outcome)
		}
		j := &httpproto.Jar{}
		setCookies(t, j, "https://a.name.example/", cookie)
		if got := sent(t, j, "https://b.name.example/") + sent(t, j, "http://a.name.example/"); got != "" {
			t.Errorf("%q: sent %q to another origin", cookie, got)
		}
		if got := sent(t, j, "https://a.name.example/"); !httpproto.Printable(got) || j.Count() > 6000 {
			t.Errorf("%q: kept %q, %d bytes", cookie, got, j.Count())
		}
	})
}
