package hostile_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol"
)

func wireRows() []row {
	return []row{w1(), w2(), w3(), w4(), w5(), w6(), w7(), {
		id: "W8", input: "more hosts that keep connections open than the process may have files", outcome: "idle connections are closed to make room; running out does not count against a host",
		figure: fmt.Sprintf("%d hosts, %d files, 32 workers, in a process of its own: every page fetched", manyHosts, fewFiles), alone: w8,
	}}
}

const ok = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"

// gzipped compresses n zero bytes, or so, in times layers.
func gzipped(n int64, layers int) string {
	var b bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&b)
	all := []io.Closer{w}
	for range layers - 1 {
		w = gzip.NewWriter(w)
		all = append([]io.Closer{w}, all...)
	}
	io.CopyN(w, zeros{}, n)
	for _, c := range all {
		c.Close()
	}
	return b.String()
}

func deflated(n int64) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	io.CopyN(w, zeros{}, n)
	w.Close()
	return b.String()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// zstdBomb is a frame of n blocks, each a byte that stands for 128 KiB of it.
func zstdBomb(n int) string {
	const window = "\x28\xb5\x2f\xfd\x00\x38" // of 128 KiB
	const size = 128 << 10
	block := func(last byte) string { // RLE
		h := uint32(size)<<3 | 1<<1 | uint32(last)
		return string([]byte{byte(h), byte(h >> 8), byte(h >> 16), 'x'})
	}
	return window + strings.Repeat(block(0), n-1) + block(1)
}

func w1() row {
	encoded := func(coding, body string) func(*conn) {
		return only(answer("200 OK", "Content-Type: text/html\r\nContent-Encoding: "+coding+"\r\n", body))
	}
	once := gzipped(16<<20, 1)
	empty := gzipped(0, 1)
	sites := []site{
		{name: "gzip", handle: encoded("gzip", once), code: protocol.Success, truncated: true, body: maxBytes},
		{name: "gzip-gzip", handle: encoded("gzip, gzip", gzipped(16<<20, 2)), code: protocol.Success, truncated: true, body: maxBytes},
		{name: "gzip-three", handle: encoded("gzip, gzip, gzip", once), code: protocol.Failed, reason: "encoding: too many encodings"},
		{name: "deflate", handle: encoded("deflate", deflated(16<<20)), code: protocol.Success, truncated: true, body: maxBytes},
		{name: "zstd", handle: encoded("zstd", zstdBomb(4096)), code: protocol.Success, truncated: true, body: maxBytes},
		{name: "zstd-window", handle: encoded("zstd", "\x28\xb5\x2f\xfd\x00\xa8"+strings.Repeat("\x00", 1<<10)), code: protocol.Failed, reason: "body: broken encoding"},
		{name: "brotli", handle: encoded("br", "\x5b\xff\xff\x7f"), code: protocol.Failed, reason: "encoding: br was not asked for"},
		{name: "empty-members", handle: encoded("gzip", strings.Repeat(empty, 30_000)), code: protocol.Success, truncated: true},
		{name: "plain", handle: encoded("gzip", "<p>hello"), code: protocol.Success, body: 8},
		{name: "cut", handle: encoded("gzip", gzipped(100<<10, 1)[:100]), code: protocol.Success, truncated: true},
		{name: "robots", handle: replying(func(r *http.Request) string {
			if r.RequestURI == "/robots.txt" {
				return answer("200 OK", "Content-Encoding: gzip\r\n", once)
			}
			return html("hello")
		})},
		{name: "error", handle: only(answer("404 Not Found", "Content-Encoding: gzip\r\n", once)), code: protocol.NotFound},
	}
	return row{
		id: "W1", pages: 16, input: "bombs of gzip, deflate and zstd, nested, with a window of 2 GiB, of empty members; encodings that are unknown, not requested, absent or cut",
		outcome: "decoded up to the limit of the body and flagged as truncated; at most two encodings",
		figure:  fmt.Sprintf("%d servers, up to 512 MiB behind 16 KiB: bodies ≤ %d KiB", len(sites), maxBytes>>10),
		sites:   sites,
	}
}

func w2() row {
	const chunked = ok + "Transfer-Encoding: chunked\r\n\r\n"
	sites := []site{
		{name: "endless", handle: endless(ok + "\r\n"), code: protocol.Success, truncated: true, body: maxBytes},
		{name: "chunks", handle: flooding(chunked, "400\r\n"+strings.Repeat("x", 1<<10)+"\r\n"), code: protocol.Success, truncated: true, body: maxBytes},
		{name: "extension", handle: endless(chunked + "5\r\nhello\r\n5;"), code: protocol.Success, truncated: true, body: 5},
		{name: "trailers", handle: flooding(chunked+"5\r\nhello\r\n0\r\n", "X-Y: z\r\n"), code: protocol.Success, truncated: true, body: 5},
		{name: "ten-tb", handle: closing(ok + "Content-Length: 10000000000000\r\n\r\nhello"), code: protocol.Success, truncated: true, body: 5},
		{name: "zero", handle: closing(ok + "Content-Length: 0\r\n\r\nhello"), code: protocol.Success},
		{name: "short", handle: closing(ok + "Content-Length: 4\r\nConnection: close\r\n\r\nhello"), code: protocol.Success, body: 4},
		{name: "long", handle: closing(ok + "Content-Length: 10\r\n\r\nhello"), code: protocol.Success, truncated: true, body: 5},
		{name: "negative", handle: keeping(ok + "Content-Length: -1\r\n\r\nhello"), code: protocol.Failed},
		{name: "signed", handle: keeping(ok + "Content-Length: +5\r\n\r\nhello"), code: protocol.Failed},
		{name: "two", handle: keeping(ok + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"), code: protocol.Failed},
		{name: "both", handle: closing(ok + "Content-Length: 3\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), code: protocol.Success, body: 5},
		{name: "one-byte", handle: closing(chunked + strings.Repeat("1\r\nx\r\n", 5000) + "0\r\n\r\n"), code: protocol.Success, body: 5000},
		{name: "huge-chunk", handle: keeping(chunked + "10000000000000000\r\nhello"), code: protocol.Failed},
		{name: "bare", handle: closing(chunked + "5\nhello\r\n0\r\n\r\n"), code: protocol.Failed},
		{name: "moved", handle: endless("HTTP/1.1 301 x\r\nLocation: /\r\n\r\n"), code: protocol.MovedPerm},
		{name: "missing", handle: endless("HTTP/1.1 404 x\r\n\r\n"), code: protocol.NotFound},
	}
	return row{
		id: "W2", input: "endless bodies, chunks, extensions and trailers; lengths that are false, contradictory or not numbers",
		outcome: "read up to the limit, then the connection is closed without draining it; what was received is kept and flagged",
		figure:  fmt.Sprintf("%d servers: ≤ limit + 64 KiB of body read, connections closed", len(sites)),
		sites:   sites,
		check: func(t testing.TB, c *crawl) {
			for u, vs := range c.visits {
				if n := vs[len(vs)-1].Bytes; n > maxBytes+64<<10 {
					t.Errorf("%s: %d bytes read", u, n)
				}
			}
		},
	}
}

func w3() row {
	silence := func(c *conn) { io.Copy(io.Discard, c) }
	sites := []site{
		{name: "headers", handle: dripping(ok, "X"), code: protocol.Failed},
		{name: "body", handle: dripping(ok+"\r\nhello", "x"), code: protocol.Success, truncated: true},
		{name: "chunks", handle: dripping(ok+"Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"), code: protocol.Success, truncated: true},
		{name: "hints", handle: dripping("", "HTTP/1.1 103 x\r\n\r\n"), code: protocol.Failed},
		{name: "silence", handle: after(silence), code: protocol.Failed},
		{name: "tls", scheme: "raw-tls", handle: silence},
	}
	return row{
		id: "W3", input: "headers, bodies, chunks and early hints that come a byte at a time; silence after the request, and in the TLS handshake",
		outcome: "the time of a visit is bounded as a whole, and that of connecting, headers and TLS separately; the received part of a body is kept",
		figure:  fmt.Sprintf("%d servers: each visit ≤ its limit", len(sites)),
		sites:   sites,
		edit:    hasty,
		check: func(t testing.TB, c *crawl) {
			for u, vs := range c.visits {
				if d := vs[len(vs)-1].Elapsed; d > c.http.Limits.TimeLimit+patience(200*time.Millisecond) {
					t.Errorf("%s took %v", u, d)
				}
			}
		},
	}
}

func w4() row {
	large := "http: headers are too large"
	sites := []site{
		{name: "megabyte", handle: keeping(ok + "X: " + strings.Repeat("y", 1<<20) + "\r\n\r\n"), code: protocol.Failed, reason: large},
		{name: "many", handle: keeping(ok + strings.Repeat("X: y\r\n", 100_000) + "\r\n"), code: protocol.Failed, reason: large},
		{name: "endless", handle: flooding(ok, "X-Y: z\r\n"), code: protocol.Failed, reason: large},
		{name: "line", handle: endless(ok + "X: "), code: protocol.Failed, reason: large},
		{name: "hints", handle: flooding("", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), code: protocol.Failed, reason: large},
		{name: "validators", handle: closing(ok + "ETag: \"a\"\r\nETag: \"b\"\r\nLast-Modified: x\r\nLast-Modified: y\r\nContent-Length: 5\r\n\r\nhello"), code: protocol.Success, body: 5},
		{name: "folded", handle: closing(ok + "X: a\r\n b\r\nContent-Length: 5\r\n\r\nhello"), code: protocol.Success, body: 5},
		{name: "nul", handle: closing(ok + "X: a\x00b\r\n\r\n"), code: protocol.Failed},
		{name: "status", handle: closing("HTTP/1.1 999 no\r\nContent-Length: 0\r\n\r\n"), code: protocol.Failed},
		{name: "ssh", handle: keeping("SSH-2.0-OpenSSH_9.9\x1b[31m\r\n\r\n"), code: protocol.Failed},
	}
	return row{
		id: "W4", pages: 16, input: "headers of 1 MiB, 100,000 headers, endless headers and early hints, doubled validators, folded lines, NUL, no HTTP at all",
		outcome: "256 KiB of headers are read and no more; the visit fails with its reason", figure: fmt.Sprintf("%d servers: exact outcomes", len(sites)),
		sites: sites,
	}
}

func w5() row {
	settings := frame(4, 0, 0, "")
	good := frame(1, 4, 1, "\x88") // HEADERS, :status 200 of the static table
	say := func(first, again string) func(*conn) {
		return func(c *conn) {
			if again == "" {
				c.say(first)
				return
			}
			c.flood(first, again)
		}
	}
	sites := []site{
		{name: "ping", handle: say(settings, frame(6, 0, 0, "12345678")), code: protocol.Failed},
		{name: "settings", handle: say(settings, settings), code: protocol.Failed},
		{name: "window", handle: say(settings, frame(8, 0, 0, "\x00\x00\x00\x01")), code: protocol.Failed},
		{name: "unknown", handle: say(settings, frame(0xfa, 0, 0, "12345678")), code: protocol.Failed},
		{name: "continuation", handle: say(settings+frame(1, 0, 1, ""), frame(9, 0, 1, "\x00\x01a\x01b")), code: protocol.Failed},
		{name: "hpack", handle: say(settings+frame(1, 0, 1, "\x88\x40\x01a\x7f\x80\x1f"+strings.Repeat("a", 4000)), frame(9, 0, 1, strings.Repeat("\xbe", 16000))), code: protocol.Failed},
		{name: "empty-data", handle: say(settings+good, frame(0, 0, 1, "")), code: protocol.Failed},
		{name: "overrun", handle: say(settings+good, frame(0, 0, 1, strings.Repeat("x", 16384))), code: protocol.Success, truncated: true},
		{name: "ping-after", handle: say(settings+good+frame(0, 0, 1, "hello"), frame(6, 0, 0, "12345678")), code: protocol.Success, truncated: true, body: 5},
		{name: "zombie", handle: say(settings+good+frame(0, 0, 1, "hello"), ""), code: protocol.Success, truncated: true, body: 5},
		{name: "hints", handle: say(settings, frame(1, 4, 1, "\x48\x03103\x00\x01a\x01b")), code: protocol.Failed},
		{name: "trailers", handle: say(settings+good+frame(0, 0, 1, "hello")+frame(1, 1, 1, ""), frame(9, 0, 1, "\x00\x01a\x01b")), code: protocol.Success, truncated: true, body: 5},
		{name: "reset", handle: say(settings, frame(3, 0, 1, "\x00\x00\x00\x08")), code: protocol.Failed},
		{name: "push", handle: say(settings+frame(5, 4, 1, "\x00\x00\x00\x02\x88"), ""), code: protocol.Failed},
		{name: "frame-size", handle: say(frame(4, 0, 0, "\x00\x05\x00\x00\x00\x00"), ""), code: protocol.Failed},
		{name: "no-streams", handle: say(frame(4, 0, 0, "\x00\x03\x00\x00\x00\x00")+good+frame(0, 1, 1, "hello"), ""), code: protocol.Success, body: 5},
		{name: "overflow", handle: say(settings+frame(8, 0, 0, "\x7f\xff\xff\xff"), frame(8, 0, 0, "\x7f\xff\xff\xff")), code: protocol.Failed},
		{name: "stream-overflow", handle: say(settings+frame(8, 0, 1, "\x7f\xff\xff\xff"), ""), code: protocol.Failed},
		{name: "giant", handle: say(settings+"\xff\xff\xff\x00\x00\x00\x00\x00\x01", strings.Repeat("x", 16384)), code: protocol.Failed},
		{name: "padding", handle: say(settings+good, frame(0, 8, 1, "\xff"+strings.Repeat("\x00", 255))), code: protocol.Failed},
		{name: "altsvc", handle: say(settings, frame(10, 0, 0, "\x00\x00h2=\"evil.example:443\"")), code: protocol.Failed},
	}
	for i := range sites {
		sites[i].scheme = "h2"
	}
	return row{
		id: "W5", input: "HTTP/2: floods of PING, SETTINGS, WINDOW_UPDATE, CONTINUATION, padding, empty and unknown frames; HPACK bombs, push, resets, windows that are exceeded or overflow, frames of 16 MiB, streams that never end",
		outcome: "bytes and time of a connection are bounded, and the connection of a visit that failed is closed with it",
		figure:  fmt.Sprintf("%d servers: exact outcomes, ≤ 2 connections a visit, none left open", len(sites)),
		sites:   sites,
		pages:   20,
		edit: func(c *crawl) {
			c.opts.Fetch.Politeness.NoRobots = true
			c.http.Limits.HeaderTimeout = 400 * time.Millisecond
		},
		check: func(t testing.TB, c *crawl) {
			for name, s := range c.servers {
				if n := s.accepted.Load(); n > 2 {
					t.Errorf("%s: %d connections for one visit", name, n)
				}
			}
		},
	}
}

func w6() row {
	hello := func(c *conn) { only(html("hello"))(c) }
	with := func(config *tls.Config, edit func(*x509.Certificate)) func(host string) func(*conn) {
		return func(host string) func(*conn) {
			config := config.Clone()
			config.Certificates = []tls.Certificate{trusted().certificate(host, edit)}
			return secure(config, hello)
		}
	}
	r := row{
		id: "W6", input: "certificates that are expired, not yet valid, for another name, from an unknown authority, for clients, of 300 KB; a handshake that breaks off; TLS 1.0; no TLS",
		outcome: "verified by default, and the class of the fault is the reason", edit: func(c *crawl) {
			c.opts.Fetch.Politeness.NoRobots = true
			c.http.Limits.TLSTimeout = 400 * time.Millisecond
		},
	}
	for _, k := range []struct {
		name, reason string
		handle       func(host string) func(*conn)
	}{
		{"good", "", with(&tls.Config{}, nil)},
		{"expired", "tls: certificate expired or not yet valid", with(&tls.Config{}, func(c *x509.Certificate) { c.NotAfter = time.Now().AddDate(0, 0, -1) })},
		{"future", "tls: certificate expired or not yet valid", with(&tls.Config{}, func(c *x509.Certificate) { c.NotBefore = time.Now().AddDate(0, 0, 1) })},
		{"name", "tls: certificate is for another name", with(&tls.Config{}, func(c *x509.Certificate) { c.DNSNames = []string{"other.test"} })},
		{"stranger", "tls: certificate of an unknown authority", func(host string) func(*conn) {
			return secure(&tls.Config{Certificates: []tls.Certificate{newAuthority().certificate(host, nil)}}, hello)
		}},
		{"clients", "tls: certificate is invalid", with(&tls.Config{}, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })},
		{"large", "tls: handshake failed", with(&tls.Config{}, func(c *x509.Certificate) {
			for i := range 15_000 {
				c.DNSNames = append(c.DNSNames, fmt.Sprintf("name-%06d.example", i))
			}
		})},
		{"old", "tls: alert: protocol version not supported", with(&tls.Config{MaxVersion: tls.VersionTLS10, MinVersion: tls.VersionTLS10}, nil)},
		{"close", "", func(string) func(*conn) { return func(c *conn) { io.CopyN(io.Discard, c, 10); c.Close() } }},
		{"plain", "", func(string) func(*conn) { return hello }},
	} {
		code := protocol.Failed
		if k.name == "good" {
			code = protocol.Success
		}
		r.sites = append(r.sites, site{name: k.name, scheme: "raw-tls", code: code, reason: k.reason, handle: k.handle(k.name + ".w6.test")})
	}
	r.figure = fmt.Sprintf("%d servers: exact reasons", len(r.sites))
	return r
}

func w7() row {
	const hosts, pages = 8, 12
	const poison = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\npoison"
	handle := func(c *conn) {
		for n := 0; ; n++ {
			r, ok := c.request()
			if !ok {
				return
			}
			switch p := r.RequestURI; {
			case p == "/robots.txt":
				c.say(nothing)
			case p == "/":
				c.say(html(manyLinks("/p%d", pages)))
			case n%4 == 0:
				c.say(html(p))
			case n%4 == 1:
				c.say("HTTP/1.1 204 No Content\r\n\r\n" + poison)
			default:
				c.say(html(p) + poison)
			}
		}
	}
	r := row{
		id: "W7", input: "answers to requests never made, after others on a kept-alive connection", outcome: "a connection with unread bytes is dropped",
		figure: fmt.Sprintf("%d pages: 0 bodies under the wrong URL", hosts*pages),
		check: func(t testing.TB, c *crawl) {
			n := 0
			for u := range c.visits {
				if at := strings.Index(u, ".w7.test/p"); at >= 0 {
					n++
					if b := string(c.body(t, u)); b != "" && b != u[at+len(".w7.test"):] {
						t.Errorf("%s: %q", u, b)
					}
				}
			}
			if n != hosts*pages {
				t.Errorf("%d pages", n)
			}
		},
	}
	for i := range hosts {
		r.sites = append(r.sites, site{name: fmt.Sprintf("queue%d", i), code: protocol.Success, handle: handle})
	}
	return r
}
