package chromeproto

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol/httpproto"
)

// newTestProxy returns a proxy that may connect to loopback, the traffic of a page, and a client
// that uses it as the browser does.
func newTestProxy(t *testing.T, o httpproto.Options, adjust func(*traffic)) (*proxy, *traffic, *http.Client) {
	t.Helper()
	o.Agent, o.InsecureSkipVerify = "testbot", true
	client, err := httpproto.New(o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newProxy(client, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	page := newTraffic(context.Background(), nil)
	page.maxRequests, page.maxBytes = 100, 1<<20
	if adjust != nil {
		adjust(page)
	}
	p.add("page", page)
	tr := &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: p.address(), User: url.UserPassword("page", p.secret)}),
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		p.remove("page", page)
		p.close()
	})
	return p, page, &http.Client{Transport: tr}
}

func loopback(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// servers returns a server for each scheme.
func servers(t *testing.T, h http.Handler) map[string]*httptest.Server {
	all := map[string]*httptest.Server{"http": httptest.NewServer(h), "https": httptest.NewTLSServer(h)}
	t.Cleanup(func() {
		for _, s := range all {
			s.CloseClientConnections()
			s.Close()
		}
	})
	return all
}

func status(t *testing.T, c *http.Client, url string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

func TestProxyNamesTheCrawlerAndNotItself(t *testing.T) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Alt-Svc", `h3=":443"`)
		fmt.Fprintf(w, "%s %s %v %v", r.Host, r.UserAgent(), r.Header["Sec-Ch-Ua"], len(r.Header["Via"])+len(r.Header["Proxy-Authorization"])+len(r.Header["X-Forwarded-For"]))
	})
	for scheme, s := range servers(t, echo) {
		_, _, c := newTestProxy(t, httpproto.Options{Guard: httpproto.Guard{AllowPrivate: true}}, nil)
		host := strings.TrimPrefix(s.URL, scheme+"://")
		if code, body := status(t, c, s.URL, "User-Agent", "Chrome", "Sec-Ch-Ua", "Chromium"); code != 200 || body != host+" testbot [] 0" {
			t.Errorf("%s: %d %s", scheme, code, body)
		}
	}
}

func TestProxyWantsTheSecret(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.Error("reached") }))
	defer s.Close()
	p, _, _ := newTestProxy(t, httpproto.Options{Guard: httpproto.Guard{AllowPrivate: true}}, nil)
	for name, user := range map[string]*url.Userinfo{
		"none": nil, "wrong": url.UserPassword("page", "guess"), "another page": url.UserPassword("x", p.secret), "empty": url.UserPassword("page", ""),
	} {
		for _, target := range []string{s.URL, "https" + strings.TrimPrefix(s.URL, "http")} {
			tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: p.address(), User: user})}
			if code, body := status(t, &http.Client{Transport: tr}, target); code != 407 && !strings.Contains(body, "Proxy Authentication Required") && code != 0 || code == 403 {
				t.Errorf("%s, %s: %d %s", name, target, code, body)
			}
			tr.CloseIdleConnections()
		}
	}
}

func TestProxyIsGuarded(t *testing.T) {
	for scheme, s := range servers(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.Error("reached") })) {
		_, page, c := newTestProxy(t, httpproto.Options{Resolver: loopback}, nil)
		_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.URL, scheme+"://"))
		hosts := []string{"127.0.0.1:" + port, "name.example:" + port, "[::ffff:127.0.0.1]:" + port, "93.184.216.34:25"}
		for _, host := range hosts {
			if code, _ := status(t, c, scheme+"://"+host+"/a"); code != 403 {
				t.Errorf("%s %s: status %d", scheme, host, code)
			}
		}
		if got := refusals(page); len(got) != len(hosts) || got[0] != (Refusal{scheme + "://127.0.0.1:" + port + "/a", "address: loopback"}) {
			t.Errorf("%+v", got)
		}
	}
}

func TestProxyObeysRules(t *testing.T) {
	kinds := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		w.Write(make([]byte, 1000))
	})
	for _, s := range servers(t, kinds) {
		_, page, c := newTestProxy(t, httpproto.Options{Guard: httpproto.Guard{AllowPrivate: true}}, func(t *traffic) {
			t.block = map[Type]bool{Image: true, WebSocket: true, ServiceWorker: true}
			t.maxRequests, t.maxBytes = 8, 3500
			t.allowed = func(_ context.Context, url string) (bool, error) {
				if strings.Contains(url, "/unknown") {
					return false, errors.New("no answer")
				}
				return !strings.Contains(url, "/private/"), nil
			}
		})
		for _, q := range []struct {
			path   string
			header []string
			want   int
			reason string
		}{
			{"/a?type=text/plain", nil, 200, ""},
			{"/private/a?type=text/plain", nil, 403, "robots.txt"},
			{"/unknown?type=text/plain", nil, 403, "robots.txt"},
			{"/b?type=image/png", nil, 403, "type: image"},
			{"/b?type=text/plain", []string{"Sec-Fetch-Dest", "image"}, 403, "type: image"},
			{"/ws", []string{"Connection", "Upgrade", "Upgrade", "websocket"}, 403, "type: websocket"},
			{"/sw.js?type=text/javascript", []string{"Service-Worker", "script"}, 403, "type: serviceworker"},
			{"/c?type=text/plain", nil, 200, ""},
			{"/d?type=image/svg%2Bxml", nil, 200, ""},
			{"/e?type=text/plain", nil, 0, ""}, // the bytes are used up in it; a client may try again
			{"/f?type=text/plain", nil, 403, "budget"},
		} {
			before := len(refusals(page))
			code, _ := status(t, c, s.URL+q.path, q.header...)
			after := refusals(page)
			switch {
			case q.want == 0 && code != 200:
			case code != q.want || (q.reason != "") != (len(after) > before):
				t.Errorf("%s%s: status %d, want %d", s.URL, q.path, code, q.want)
			case q.reason != "" && after[before].Reason != q.reason:
				t.Errorf("%s%s: %+v, want %q", s.URL, q.path, after[before], q.reason)
			}
		}
	}
}

func refusals(t *traffic) []Refusal {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.refusals)
}

func TestProxyCountsRequests(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	defer s.Close()
	_, _, c := newTestProxy(t, httpproto.Options{Guard: httpproto.Guard{AllowPrivate: true}}, func(t *traffic) { t.maxRequests = 3 })
	for i, want := range []int{200, 200, 200, 403, 403} {
		if code, _ := status(t, c, s.URL); code != want {
			t.Errorf("request %d: %d, want %d", i, code, want)
		}
	}
}

// The document is served once, under the URL that the browser asks for, with its headers.
func TestProxyServesTheDocument(t *testing.T) {
	_, page, c := newTestProxy(t, httpproto.Options{}, func(t *traffic) {
		t.block = map[Type]bool{Frame: true, Image: true}
		t.document = &document{status: 200, body: []byte("<p>page"), header: http.Header{
			"Content-Type": {"text/html; charset=koi8-r"}, "Set-Cookie": {"a=1", "b=2"}, "Content-Encoding": {"gzip"}, "Refresh": {"0"}, "Content-Security-Policy": {"script-src 'self'"},
		}}
	})
	for _, u := range []string{"https://site.example/", "http://site.example/a?b"} {
		page.document.served = false
		page.document.url = ""
		if code, _ := status(t, c, u); code == 200 {
			t.Errorf("%s: served before it was expected", u)
		}
		if !page.expect(u + "#fragment") {
			t.Error("not expected")
		}
		resp, err := c.Get(u)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		h := resp.Header
		if resp.StatusCode != 200 || string(b) != "<p>page" || h.Get("Content-Type") != "text/html; charset=koi8-r" || len(h["Set-Cookie"]) != 2 || h.Get("Refresh") != "" {
			t.Errorf("%s: %d %q %v", u, resp.StatusCode, b, h)
		}
		if got := h["Content-Security-Policy"]; len(got) != 2 || got[1] != "img-src data: blob:; frame-src 'none'; object-src 'none'" {
			t.Errorf("policy %q", got)
		}
		if code, _ := status(t, c, u); code == 200 || page.expect(u) {
			t.Errorf("%s: served twice", u)
		}
	}
}

func TestProxyPassesWebSockets(t *testing.T) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		nc, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer nc.Close()
		io.WriteString(nc, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		io.Copy(nc, rw)
	})
	for scheme, s := range servers(t, echo) {
		_, page, c := newTestProxy(t, httpproto.Options{Guard: httpproto.Guard{AllowPrivate: true}}, func(t *traffic) { t.maxBytes = 100 })
		req, _ := http.NewRequest("GET", s.URL, nil)
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "websocket")
		resp, err := c.Do(req)
		if err != nil || resp.StatusCode != 101 {
			t.Fatal(scheme, resp, err)
		}
		conn := resp.Body.(io.ReadWriteCloser)
		fmt.Fprintln(conn, "hello")
		in := bufio.NewReader(conn)
		if line, err := in.ReadString('\n'); line != "hello\n" {
			t.Errorf("%s: %q %v", scheme, line, err)
		}
		io.WriteString(conn, strings.Repeat("x", 60))
		if b, err := io.ReadAll(in); len(b) >= 60 {
			t.Errorf("%s: %d bytes beyond the budget, %v", scheme, len(b), err)
		}
		conn.Close()
		page.mu.Lock()
		if page.bytes <= 100 {
			t.Errorf("%s: %d bytes counted", scheme, page.bytes)
		}
		page.mu.Unlock()
	}
}

// The end of a page closes its connections, those in tunnels and those that wait for an answer.
func TestProxyClosesConnectionsOfAPage(t *testing.T) {
	reached := make(chan bool, 2)
	for scheme, s := range servers(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { reached <- true; <-r.Context().Done() })) {
		p, page, c := newTestProxy(t, httpproto.Options{Guard: httpproto.Guard{AllowPrivate: true}}, nil)
		done := make(chan int)
		go func() { code, _ := status(t, c, s.URL); done <- code }()
		<-reached
		p.remove("page", page)
		if code := <-done; code == 200 {
			t.Errorf("%s: %d", scheme, code)
		}
		if code, _ := status(t, c, s.URL); code != 0 && code != 407 {
			t.Errorf("%s, after the end: %d", scheme, code)
		}
	}
}

func TestProxyVerifiesCertificates(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.Error("reached") }))
	defer s.Close()
	client, err := httpproto.New(httpproto.Options{Agent: "testbot", Guard: httpproto.Guard{AllowPrivate: true}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := newProxy(client, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	page := newTraffic(context.Background(), nil)
	page.maxRequests, page.maxBytes = 10, 1000
	p.add("page", page)
	defer p.remove("page", page)
	tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: p.address(), User: url.UserPassword("page", p.secret)}), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer tr.CloseIdleConnections()
	if code, _ := status(t, &http.Client{Transport: tr}, s.URL); code != http.StatusBadGateway {
		t.Errorf("status %d", code)
	}
}
