package httpproto_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// The short body of an answer that is no success is read, so that the next visit
// finds the connection open; a long one, or one without an end, closes it.
func TestDrain(t *testing.T) {
	serve := func(answer string) func(net.Conn) {
		return func(nc net.Conn) {
			for in := bufio.NewReader(nc); ; {
				if _, err := http.ReadRequest(in); err != nil {
					return
				}
				if _, err := io.WriteString(nc, answer); err != nil {
					return
				}
			}
		}
	}
	length := func(status string, n int) string {
		return fmt.Sprintf("HTTP/1.1 %s\r\nLocation: /\r\nContent-Length: %d\r\n\r\n%s", status, n, strings.Repeat("x", n))
	}
	for name, k := range map[string]struct {
		answer string
		conns  int64
	}{
		"short":         {length("404 Not Found", 500), 1},
		"redirect":      {length("301 Moved", 300), 1},
		"as long":       {length("503 Busy", httpproto.MaxDrain), 1},
		"longer":        {length("404 Not Found", httpproto.MaxDrain+1), 5},
		"chunks":        {"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 1},
		"more chunks":   {"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1000\r\n"+strings.Repeat("x", 4096)+"\r\n", 20), 5},
		"more than all": {length("404 Not Found", 5) + "HTTP/1.1 200 OK\r\n\r\n", 5},
		"bad chunks":    {"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 5},
		"asked to":      {"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", 5},
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			s := serveRaw(t, serve(k.answer))
			c := newClient(t, httpproto.Options{})
			for range 5 {
				if r := fetch(t, c, protocol.Request{URL: s.url}); r.Outcome.Status < 300 || len(r.Content.Body) > 0 {
					t.Errorf("%+v", r)
				}
			}
			if n := s.accepted.Load(); n != k.conns {
				t.Errorf("%d connections, want %d", n, k.conns)
			}
		})
	}
}

// An unwanted body delays a visit by at most half a second.
func TestDrainEnds(t *testing.T) {
	for _, body := range []string{"Content-Length: 100\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n", "\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			c := bubble(t, httpproto.Options{}, func(nc net.Conn) {
				readRequest(nc)
				io.WriteString(nc, "HTTP/1.1 404 Not Found\r\n"+body)
				drip(nc, strings.Repeat("1\r\nx\r\n", 100), 1, 100*time.Millisecond)
			})
			start := time.Now()
			get(t, c, "http://name.example/", protocol.NotFound, 404, "http: status 404")
			if d := time.Since(start); d > 500*time.Millisecond {
				t.Errorf("took %v", d)
			}
		})
	}
}

// An encoding may end before its body does. The rest delays a visit no longer than an
// unwanted body.
func TestEndOfEncoding(t *testing.T) {
	text := []byte(strings.Repeat("The quick brown fox. ", 1000))
	chunk := func(b []byte) string { return fmt.Sprintf("%x\r\n%s\r\n", len(b), b) }
	for _, coding := range []string{"gzip", "deflate"} {
		encoded := encode(t, coding, text)
		chunks := "Transfer-Encoding: chunked\r\n\r\n" + chunk(encoded)
		padded := func(n int) string {
			return fmt.Sprintf("Content-Length: %d\r\n\r\n%s%s", len(encoded)+n, encoded, make([]byte, n))
		}
		for name, k := range map[string]struct {
			answer string
			conns  int64
			more   bool // that there may be, for gzip has members
		}{
			"chunks":                 {chunks + "0\r\n\r\n", 1, false},
			"chunks without an end":  {chunks, 2, true},
			"more chunks":            {chunks + strings.Repeat(chunk(make([]byte, 4096)), 20), 2, false},
			"a line end":             {padded(1), 1, false},
			"padding":                {padded(8000), 1, false},
			"much padding":           {padded(64 << 10), 2, false},
			"padding without an end": {padded(64 << 10)[:len(padded(64<<10))-60_000], 2, false},
		} {
			t.Run(coding+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var conns atomic.Int64
					c := bubble(t, httpproto.Options{}, func(nc net.Conn) {
						conns.Add(1)
						for in := bufio.NewReader(nc); ; {
							if _, err := http.ReadRequest(in); err != nil {
								return
							}
							if _, err := io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Encoding: "+coding+"\r\n"+k.answer); err != nil {
								return
							}
						}
					})
					cut, limit := false, 500*time.Millisecond
					if k.more && coding == "gzip" {
						cut, limit = true, 20*time.Second // of Options.RateWindow
					}
					for range 2 {
						start := time.Now()
						r := get(t, c, "http://name.example/", protocol.Success, 200, "")
						if !bytes.Equal(r.Content.Body, text) || r.Content.Truncated != cut {
							t.Errorf("%d bytes, truncated %v", len(r.Content.Body), r.Content.Truncated)
						}
						if d := time.Since(start); d > limit {
							t.Errorf("took %v", d)
						}
					}
					if n := conns.Load(); n != k.conns {
						t.Errorf("%d connections, want %d", n, k.conns)
					}
				})
			})
		}
	}
}
