package httpproto_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// serveProxy starts a proxy that connects to the given address whatever it is
// asked for, and tells what that was.
func serveProxy(t testing.TB, to net.Addr) (s *rawServer, asked func() []string) {
	var (
		mu    sync.Mutex
		lines []string
	)
	s = serveRaw(t, func(nc net.Conn) {
		r, ok := readRequest(nc)
		if !ok {
			return
		}
		mu.Lock()
		lines = append(lines, fmt.Sprintf("%s %s host=%s agent=%s auth=%s", r.Method, r.RequestURI, r.Host, r.UserAgent(), r.Header.Get("Proxy-Authorization")))
		mu.Unlock()
		server, err := net.Dial("tcp", to.String())
		if err != nil {
			return
		}
		defer nc.Close()
		io.WriteString(nc, "HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n")
		var wg sync.WaitGroup
		wg.Go(func() {
			io.Copy(nc, server)
			nc.Close()
		})
		io.Copy(server, nc)
		server.Close()
		wg.Wait()
	})
	s.url = strings.TrimSuffix(s.url, "/")
	return s, func() []string {
		mu.Lock()
		defer mu.Unlock()
		out := lines
		lines = nil
		return out
	}
}

// proxied returns a client that may not dial private addresses.
func proxied(t testing.TB, o httpproto.Options) *httpproto.Client {
	t.Helper()
	o.Agent = "bot"
	if o.Resolver == nil {
		o.Resolver = func(_ context.Context, _, host string) ([]netip.Addr, error) {
			if a, ok := strings.CutSuffix(host, ".at.example"); ok {
				return []netip.Addr{netip.MustParseAddr(strings.ReplaceAll(a, "-", "."))}, nil
			}
			return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
		}
	}
	c, err := httpproto.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestProxy(t *testing.T) {
	noLeak(t)
	handle := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Proto, " ", r.Host, r.RequestURI, " ", r.Header.Get("Proxy-Authorization"))
	})
	plain := httptest.NewServer(handle)
	t.Cleanup(plain.Close)
	secure := httptest.NewUnstartedServer(handle)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	t.Cleanup(secure.Close)
	pool := x509.NewCertPool()
	pool.AddCert(secure.Certificate())

	p, asked := serveProxy(t, plain.Listener.Addr())
	c := proxied(t, httpproto.Options{Proxy: strings.Replace(p.url, "//", "//us:pa%3Ass@", 1)})
	r := get(t, c, "http://name.example/x?y", protocol.Success, 200, "")
	if string(r.Content.Body) != "HTTP/1.1 name.example/x?y " || r.Addr != "8.8.8.8:80" {
		t.Errorf("%q of %s", r.Content.Body, r.Addr)
	}
	get(t, c, "http://[2606:4700::1111]:8080/", protocol.Success, 200, "")
	const lines = "[CONNECT 8.8.8.8:80 host=8.8.8.8:80 agent=bot auth=Basic dXM6cGE6c3M=" +
		" CONNECT [2606:4700::1111]:8080 host=[2606:4700::1111]:8080 agent=bot auth=Basic dXM6cGE6c3M=]"
	if got := fmt.Sprint(asked()); got != lines {
		t.Errorf("proxy was asked %s, want %s", got, lines)
	}
	c.CloseIdleConnections()
	within(t, "a tunnel is open", func() bool { return p.open.Load() == 0 })

	// TLS goes through, is verified for the name in the URL, and may be HTTP/2.
	p, asked = serveProxy(t, secure.Listener.Addr())
	c = proxied(t, httpproto.Options{Proxy: p.url, RootCAs: pool})
	if r := get(t, c, "https://example.com/x", protocol.Success, 200, ""); string(r.Content.Body) != "HTTP/2.0 example.com/x " {
		t.Errorf("%q", r.Content.Body)
	}
	get(t, c, "https://other.test/", protocol.Failed, 0, "tls: certificate is for another name")
	if got := fmt.Sprint(asked()); strings.Count(got, "CONNECT 8.8.8.8:443") != 2 || strings.Contains(got, "example") {
		t.Errorf("proxy was asked %s", got)
	}
}

// A proxy is no way around the guard, and the environment sets no proxy.
func TestProxyIsNoWayAroundTheGuard(t *testing.T) {
	noLeak(t)
	p, asked := serveProxy(t, &net.TCPAddr{})
	c := proxied(t, httpproto.Options{Proxy: p.url})
	for _, host := range []string{
		"127.0.0.1", "[::1]", "[::ffff:10.0.0.1]", "169.254.169.254", "[64:ff9b::7f00:1]", "0.0.0.0",
		"127-0-0-1.at.example", "192-168-0-1.at.example", "100-64-0-1.at.example", strings.TrimPrefix(p.url, "http://"),
	} {
		for _, scheme := range []string{"http://", "https://"} {
			r := fetch(t, c, protocol.Request{URL: scheme + host + "/"})
			if r.Outcome.Code != protocol.Refused || !strings.HasPrefix(r.Outcome.Reason, "address: ") {
				t.Errorf("%s: %+v", host, r.Outcome)
			}
		}
	}
	if got := asked(); len(got) > 0 || p.accepted.Load() > 0 {
		t.Errorf("proxy was asked %v", got)
	}

	for _, v := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(v, p.url)
	}
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(s.Close)
	at := netip.MustParseAddrPort(s.Listener.Addr().String())
	c = proxied(t, httpproto.Options{ConnectTo: []httpproto.ConnectTo{{ToHost: at.Addr().String(), ToPort: at.Port()}}})
	get(t, c, "http://name.example/", protocol.Success, 200, "")
	// What the owner maps is reached through the proxy as well.
	p, asked = serveProxy(t, s.Listener.Addr())
	c = proxied(t, httpproto.Options{Proxy: p.url, ConnectTo: []httpproto.ConnectTo{{ToHost: at.Addr().String(), ToPort: at.Port()}}})
	get(t, c, "http://name.example/", protocol.Success, 200, "")
	if got := fmt.Sprint(asked()); !strings.HasPrefix(got, "[CONNECT "+at.String()+" ") {
		t.Errorf("proxy was asked %v", got)
	}
}

// A refusal by a proxy is an outcome of the visit; a proxy that does not work is an error, since
// no page is to blame. Neither leaves anything behind.
func TestProxyFails(t *testing.T) {
	for name, k := range map[string]struct {
		handle func(net.Conn)
		reason string // empty if it is an error
	}{
		"refuses":        {answering("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nbad"), "connect: refused by the proxy"},
		"forbids":        {answering("HTTP/1.0 403 Forbidden\r\n\r\n"), "connect: refused by the proxy"},
		"takes too long": {func(nc net.Conn) { readRequest(nc) }, "timeout: connecting"},
		"closes later":   {func(nc net.Conn) { answering("HTTP/1.1 200 x\r\n\r\n")(nc); readRequest(nc); nc.Close() }, "connect: closed while waiting for the answer"},
		"wants a login":  {answering("HTTP/1.1 407 x\r\n\r\n"), ""},
		"closes":         {closing(""), ""},
		"is no proxy":    {answering("SSH-2.0-OpenSSH_9.9\r\n\r\n"), ""},
		"is very short":  {answering("\r\n\r\n"), ""},
		"never ends":     {endless("HTTP/1.1 200 "), ""},
		"has no number":  {answering("HTTP/1.1 abc\r\n\r\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			p := serveRaw(t, k.handle)
			o := httpproto.Options{Proxy: strings.Replace(p.url, "//", "//u:hunter2@", 1)}
			if name == "takes too long" {
				o.Limits.ConnectTimeout = 100 * time.Millisecond
			}
			c := proxied(t, o)
			if o.Limits.ConnectTimeout > 0 {
				get(t, c, "http://name.example/", protocol.Failed, 0, k.reason)
			} else if r, err := c.Fetch(t.Context(), protocol.Request{URL: "http://name.example/"}); k.reason == "" {
				if err == nil || !strings.Contains(err.Error(), "proxy") || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("%+v, error %v", r.Outcome, err)
				}
			} else if err != nil || r.Outcome.Code != protocol.Failed || r.Outcome.Reason != k.reason {
				t.Errorf("%+v, %v, want %q", r.Outcome, err, k.reason)
			}
			within(t, "a connection is open", func() bool { return p.open.Load() == 0 })
		})
	}
	t.Run("is not there", func(t *testing.T) {
		noLeak(t)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		c := proxied(t, httpproto.Options{Proxy: "http://" + l.Addr().String()})
		if r, err := c.Fetch(t.Context(), protocol.Request{URL: "http://name.example/"}); err == nil || !strings.Contains(err.Error(), "proxy") {
			t.Errorf("%+v, error %v", r.Outcome, err)
		}
	})
	t.Run("context ends", func(t *testing.T) {
		noLeak(t)
		ctx, cancel := context.WithCancel(t.Context())
		p := serveRaw(t, func(nc net.Conn) {
			readRequest(nc)
			cancel()
		})
		c := proxied(t, httpproto.Options{Proxy: p.url})
		if _, err := c.Fetch(ctx, protocol.Request{URL: "http://name.example/"}); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		within(t, "a connection is open", func() bool { return p.open.Load() == 0 })
	})
	for _, proxy := range []string{"x", "https://p:1", "socks5://p:1", "http://", "http://p:0", "http://p:99999", "http://p:1/x", "http://p:1?x", "http://u%0a:hunter2@p:1", "http://u%3a:hunter2@p"} {
		if _, err := httpproto.New(httpproto.Options{Agent: "bot", Proxy: proxy}); err == nil || !strings.Contains(err.Error(), "Proxy") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v", proxy, err)
		}
	}
}
