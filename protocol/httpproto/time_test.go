package httpproto_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// bubble returns a client whose connections are pipes that serve answers. To be
// called within a synctest bubble, which ends only when nothing is left running.
func bubble(t *testing.T, o httpproto.Options, serve func(net.Conn)) *httpproto.Client {
	t.Helper()
	if o.Resolver == nil {
		o.Resolver = func(context.Context, string, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
		}
	}
	var servers pipes
	t.Cleanup(servers.end) // after the client has closed
	c := newClient(t, o)
	c.SetDial(func(context.Context, string, string) (net.Conn, error) { return servers.dial(serve) })
	return c
}

// drip writes s in pieces of n bytes, each after a pause.
func drip(nc net.Conn, s string, n int, pause time.Duration) {
	for len(s) > 0 {
		time.Sleep(pause)
		p := s[:min(n, len(s))]
		if _, err := io.WriteString(nc, p); err != nil {
			return
		}
		s = s[len(p):]
	}
}

// hold reads until the client hangs up.
func hold(nc net.Conn) { io.Copy(io.Discard, nc) }

func TestTimeLimits(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
	long := strings.Repeat("x", 100_000)
	settings := frame(4, 0, 0, "")
	for name, k := range map[string]struct {
		o         httpproto.Options
		serve     func(net.Conn)
		url       string
		code      protocol.Code
		reason    string
		body      int
		truncated bool
		after     time.Duration
	}{
		"nothing is said": {
			serve: hold,
			code:  protocol.Failed, reason: "timeout: waiting for the answer", after: 30 * time.Second,
		},
		"nothing is read": {
			serve: func(nc net.Conn) { time.Sleep(time.Hour) },
			code:  protocol.Failed, reason: "timeout: time limit of the visit while waiting for the answer", after: 60 * time.Second,
		},
		"headers drip": {
			serve: func(nc net.Conn) { readRequest(nc); drip(nc, "HTTP/1.1 200 OK\r\nX: "+long, 1, time.Second) },
			code:  protocol.Failed, reason: "timeout: waiting for the answer", after: 30 * time.Second,
		},
		"body drips below the rate": {
			serve: func(nc net.Conn) { readRequest(nc); io.WriteString(nc, head); drip(nc, long, 1, 3*time.Second) },
			code:  protocol.Success, body: 6, truncated: true, after: 20 * time.Second,
		},
		"body drips at the rate": {
			serve: func(nc net.Conn) {
				readRequest(nc)
				io.WriteString(nc, head)
				drip(nc, long, 300, 2600*time.Millisecond)
			},
			code: protocol.Success, body: 6900, truncated: true, after: 60 * time.Second,
		},
		"body slows down": {
			serve: func(nc net.Conn) {
				readRequest(nc)
				io.WriteString(nc, head+long[:5000])
				drip(nc, long, 1, 6*time.Second)
			},
			code: protocol.Success, body: 5006, truncated: true, after: 40 * time.Second,
		},
		"body is slow but ends": {
			serve: func(nc net.Conn) {
				readRequest(nc)
				io.WriteString(nc, "HTTP/1.1 200 OK\r\n\r\n")
				drip(nc, long[:3300], 110, time.Second)
			},
			code: protocol.Success, body: 3300, after: 30 * time.Second,
		},
		"body never begins": {
			serve: func(nc net.Conn) { readRequest(nc); io.WriteString(nc, head); hold(nc) },
			code:  protocol.Failed, reason: "timeout: body comes too slowly", after: 20 * time.Second,
		},
		"limits of the caller": {
			o:     httpproto.Options{Limits: httpproto.Limits{TimeLimit: 5 * time.Second, HeaderTimeout: -1, MinRate: -1}},
			serve: func(nc net.Conn) { readRequest(nc); io.WriteString(nc, head); drip(nc, long, 1, 2*time.Second) },
			code:  protocol.Success, body: 2, truncated: true, after: 5 * time.Second,
		},
		"no limits": {
			o: httpproto.Options{Limits: httpproto.Limits{TimeLimit: -1, HeaderTimeout: -1, MinRate: -1}},
			serve: func(nc net.Conn) {
				readRequest(nc)
				time.Sleep(10 * time.Hour)
				io.WriteString(nc, "HTTP/1.1 200 OK\r\n\r\n")
				drip(nc, "hello", 1, time.Hour)
			},
			code: protocol.Success, body: 5, after: 15 * time.Hour,
		},
		"early hints drip": {
			serve: func(nc net.Conn) {
				readRequest(nc)
				drip(nc, strings.Repeat("HTTP/1.1 103 x\r\n\r\n", 1000), 18, time.Second)
			},
			code: protocol.Failed, reason: "timeout: waiting for the answer", after: 30 * time.Second,
		},
		"trailers drip": {
			serve: func(nc net.Conn) {
				readRequest(nc)
				io.WriteString(nc, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n")
				drip(nc, strings.Repeat("X: y\r\n", 1000), 6, time.Second)
			},
			code: protocol.Success, body: 5, truncated: true, after: 20 * time.Second,
		},
		"HTTP/2: pings and nothing else": {
			url: "https://name.example/", serve: overHTTP2(func(nc net.Conn) {
				io.WriteString(nc, settings)
				drip(nc, strings.Repeat(frame(6, 0, 0, "12345678"), 1000), 17, time.Second)
			}),
			code: protocol.Failed, reason: "timeout: waiting for the answer", after: 30 * time.Second,
		},
		"HTTP/2: headers drip": {
			url: "https://name.example/", serve: overHTTP2(func(nc net.Conn) {
				io.WriteString(nc, settings+frame(1, 0, 1, "\x88"))
				drip(nc, strings.Repeat(frame(9, 0, 1, "\x00\x01a\x01b"), 1000), 14, time.Second)
			}),
			code: protocol.Failed, reason: "timeout: waiting for the answer", after: 30 * time.Second,
		},
		"HTTP/2: early hints drip": {
			url: "https://name.example/", serve: overHTTP2(func(nc net.Conn) {
				io.WriteString(nc, settings)
				drip(nc, strings.Repeat(frame(1, 4, 1, "\x48\x03103"), 1000), 14, time.Second)
			}),
			code: protocol.Failed, reason: "timeout: waiting for the answer", after: 30 * time.Second,
		},
		"HTTP/2: body drips below the rate": {
			url: "https://name.example/", serve: overHTTP2(func(nc net.Conn) {
				io.WriteString(nc, settings+frame(1, 4, 1, "\x88"))
				drip(nc, strings.Repeat(frame(0, 0, 1, "x"), 1000), 10, 3*time.Second)
			}),
			code: protocol.Success, body: 6, truncated: true, after: 20 * time.Second,
		},
		"HTTP/2: body drips at the rate": {
			url: "https://name.example/", serve: overHTTP2(func(nc net.Conn) {
				io.WriteString(nc, settings+frame(1, 4, 1, "\x88"))
				drip(nc, strings.Repeat(frame(0, 0, 1, long[:300]), 1000), 309, 2600*time.Millisecond)
			}),
			code: protocol.Success, body: 6900, truncated: true, after: 60 * time.Second,
		},
		"HTTP/2: empty frames drip": {
			url: "https://name.example/", serve: overHTTP2(func(nc net.Conn) {
				io.WriteString(nc, settings+frame(1, 4, 1, "\x88"))
				drip(nc, strings.Repeat(frame(0, 0, 1, ""), 1000), 9, time.Second)
			}),
			code: protocol.Failed, reason: "timeout: body comes too slowly", after: 20 * time.Second,
		},
		"handshake": {
			url: "https://name.example/", serve: hold,
			code: protocol.Failed, reason: "timeout: shaking hands", after: 10 * time.Second,
		},
		"handshake drips": {
			url: "https://name.example/", serve: func(nc net.Conn) { go hold(nc); drip(nc, "\x16\x03\x03\x40\x00"+long, 1, time.Second) },
			code: protocol.Failed, reason: "timeout: shaking hands", after: 10 * time.Second,
		},
		"lookup": {
			o: httpproto.Options{Resolver: func(ctx context.Context, _, _ string) ([]netip.Addr, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}},
			code: protocol.Failed, reason: "timeout: looking up", after: 10 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if k.url == "" {
					k.url = "http://name.example/"
				}
				k.o.InsecureSkipVerify = true
				c := bubble(t, k.o, k.serve)
				start := time.Now()
				r := fetch(t, c, protocol.Request{URL: k.url})
				if d := time.Since(start); d != k.after || r.Elapsed != d {
					t.Errorf("took %v and says %v, want %v", d, r.Elapsed, k.after)
				}
				if r.Outcome.Code != k.code || r.Outcome.Reason != k.reason || len(r.Content.Body) != k.body || r.Content.Truncated != k.truncated {
					t.Errorf("%v %q, %d bytes, truncated %v; want %v %q, %d, %v",
						r.Outcome.Code, r.Outcome.Reason, len(r.Content.Body), r.Content.Truncated, k.code, k.reason, k.body, k.truncated)
				}
			})
		})
	}
}

// Addresses share the time there is to connect, and the guard has its say on
// each.
func TestConnectTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, httpproto.Options{Resolver: func(context.Context, string, string) ([]netip.Addr, error) {
			var addrs []netip.Addr
			for i := range 9 {
				addrs = append(addrs, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}))
			}
			return addrs, nil
		}})
		var asked []string
		c.SetDial(func(ctx context.Context, network, address string) (net.Conn, error) {
			asked = append(asked, address)
			<-ctx.Done()
			return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
		})
		start := time.Now()
		get(t, c, "http://name.example/", protocol.Failed, 0, "timeout: connecting")
		if d := time.Since(start); d != 10*time.Second || fmt.Sprint(asked) != "[192.0.2.0:80 192.0.2.1:80 192.0.2.2:80 192.0.2.3:80]" {
			t.Errorf("took %v for %v", d, asked)
		}
	})
}

// A context that ends is an error within no time, wherever the visit is.
func TestContextEnds(t *testing.T) {
	for name, serve := range map[string]func(net.Conn){
		"waiting": hold,
		"reading": func(nc net.Conn) {
			readRequest(nc)
			io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
			hold(nc)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := bubble(t, httpproto.Options{}, serve)
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				start := time.Now()
				_, err := c.Fetch(ctx, protocol.Request{URL: "http://name.example/"})
				if d := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || d != time.Second {
					t.Errorf("error %v after %v", err, d)
				}
			})
		})
	}
	t.Run("connecting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := bubble(t, httpproto.Options{}, hold)
			var ended atomic.Bool
			c.SetDial(func(ctx context.Context, network, address string) (net.Conn, error) {
				<-ctx.Done()
				ended.Store(true)
				return nil, ctx.Err()
			})
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, err := c.Fetch(ctx, protocol.Request{URL: "http://192.0.2.1/"})
			synctest.Wait()
			if !errors.Is(err, context.DeadlineExceeded) || !ended.Load() {
				t.Errorf("error %v, dial ended %v", err, ended.Load())
			}
		})
	})
}

// An idle connection is kept for IdleTimeout, and no longer.
func TestIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var opened, ended atomic.Int32
		c := bubble(t, httpproto.Options{}, func(nc net.Conn) {
			opened.Add(1)
			for {
				if _, ok := readRequest(nc); !ok {
					ended.Add(1)
					return
				}
				io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
			}
		})
		visit := func(open, end int32) {
			t.Helper()
			get(t, c, "http://name.example/", protocol.Success, http.StatusOK, "")
			synctest.Wait()
			if o, e := opened.Load(), ended.Load(); o != open || e != end {
				t.Errorf("%d connections opened, %d ended, want %d, %d", o, e, open, end)
			}
		}
		visit(1, 0)
		time.Sleep(29 * time.Second)
		visit(1, 0)
		time.Sleep(31 * time.Second)
		visit(2, 1)
	})
}
