//go:build servers

package chromeproto_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol/chromeproto"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// A secret is a service on loopback that no page may reach, over TCP or UDP.
type secret struct {
	port     int
	mu       sync.Mutex
	contacts []string
}

func newSecret(t *testing.T) *secret {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &secret{port: tcp.Addr().(*net.TCPAddr).Port}
	udp, err := net.ListenPacket("udp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tcp.Close(); udp.Close() })
	go func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 200)
			n, _ := c.Read(b)
			s.contact("tcp " + string(b[:n]))
			c.Close()
		}
	}()
	go func() {
		b := make([]byte, 200)
		for {
			n, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			s.contact(fmt.Sprintf("udp from %v: %x", from, b[:n]))
		}
	}()
	return s
}

func (s *secret) contact(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contacts = append(s.contacts, what)
}

// attempts is a page that tries to reach TARGET (a host and port) in every way that pages have.
const attempts = `<!DOCTYPE html>
<link rel="preconnect" href="http://TARGET/"><link rel="dns-prefetch" href="//TARGET"><link rel="prefetch" href="http://TARGET/prefetch">
<link rel="preload" as="script" href="http://TARGET/preload"><link rel="stylesheet" href="http://TARGET/css"><link rel="manifest" href="http://TARGET/manifest">
<style>body { background: url(http://TARGET/background) } @font-face { font-family: f; src: url(http://TARGET/font) } p { font-family: f }</style>
<script src="http://TARGET/script"></script><script type="module">import("https://TARGET/module").catch(() => {})</script>
<script type="speculationrules">{"prefetch": [{"source": "list", "urls": ["http://TARGET/speculation"]}], "prerender": [{"source": "list", "urls": ["/prerender"]}]}</script>
<p>text</p><img src="http://TARGET/img"><img src="https://TARGET/img"><img src="/redirect?to=http://TARGET/redirected"><iframe src="http://TARGET/frame"></iframe>
<iframe src="/redirect?to=http://TARGET/frame"></iframe><object data="http://TARGET/object"></object><embed src="http://TARGET/embed"><video src="http://TARGET/video"></video>
<form action="http://TARGET/form" target="f" method="post"><input name="a"></form><iframe name="f"></iframe><svg><image href="http://TARGET/svg"/></svg>
<script>
const ways = {
	fetch: () => fetch("http://TARGET/fetch", {mode: "no-cors"}),
	post: () => fetch("http://TARGET/post", {method: "POST", body: "x", headers: {"X-A": "1"}}),
	https: () => fetch("https://TARGET/fetch", {mode: "no-cors"}),
	keepalive: () => fetch("http://TARGET/keepalive", {mode: "no-cors", keepalive: true}),
	redirect: () => fetch("/redirect?to=http://TARGET/redirected", {mode: "no-cors"}),
	xhr: () => { const x = new XMLHttpRequest(); x.open("GET", "http://TARGET/xhr"); x.send() },
	websocket: () => new Promise((ok, no) => { const w = new WebSocket("ws://TARGET/ws"); w.onopen = ok; w.onerror = no }),
	secure: () => new Promise((ok, no) => { const w = new WebSocket("wss://TARGET/ws"); w.onopen = ok; w.onerror = no }),
	events: () => { new EventSource("http://TARGET/events") },
	beacon: () => navigator.sendBeacon("http://TARGET/beacon", "x"),
	form: () => document.forms[0].submit(),
	open: () => window.open("http://TARGET/open"),
	worker: () => new Worker(URL.createObjectURL(new Blob(["fetch('http://TARGET/worker', {mode: 'no-cors'}); new WebSocket('ws://TARGET/workersocket'); importScripts('http://TARGET/import')"]))),
	shared: () => new SharedWorker(URL.createObjectURL(new Blob(["fetch('http://TARGET/shared', {mode: 'no-cors'})"]))),
	service: () => navigator.serviceWorker.register("/sw.js"),
	rtc: () => { const p = new RTCPeerConnection({iceServers: [{urls: "stun:TARGET"}, {urls: "turn:TARGET?transport=tcp", username: "a", credential: "b"}, {urls: "turn:TARGET", username: "a", credential: "b"}]}); p.createDataChannel("d"); p.createOffer().then(o => p.setLocalDescription(o)) },
	transport: () => new WebTransport("https://TARGET/transport").ready,
};
for (const name in ways) { try { const r = ways[name](); if (r && r.catch) r.catch(e => console.log(e)) } catch (e) { document.title += name + ": " + e + " " } }
fetch("/slow") // time goes by meanwhile
setTimeout(() => { document.body.innerHTML += "<p id=done>done</p>" }, 3000);
</script>`

// TestNothingReachesForbiddenAddresses lets pages try every way to a service on loopback.
func TestNothingReachesForbiddenAddresses(t *testing.T) {
	s := newSecret(t)
	target := ""
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			fmt.Fprint(w, strings.ReplaceAll(attempts, "TARGET", target))
		case "/redirect":
			http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
		case "/slow":
			time.Sleep(400 * time.Millisecond)
		case "/sw.js":
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, "fetch('http://"+target+"/service', {mode: 'no-cors'})")
		default:
			http.NotFound(w, r)
		}
	}))
	defer site.Close()
	port := netip.MustParseAddrPort(site.Listener.Addr().String()).Port()
	client, err := httpproto.New(httpproto.Options{
		Agent:     "testbot",
		ConnectTo: []httpproto.ConnectTo{{Host: "site.example", ToHost: "127.0.0.1", ToPort: port}, {}},
		Resolver: func(_ context.Context, _, host string) ([]netip.Addr, error) {
			if host == "secret.example" || host == "localhost" {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var mu sync.Mutex
	var report chromeproto.Report
	p := newProtocol(t, chromeproto.Options{
		Client: client, Mode: chromeproto.Always, Block: []chromeproto.Type{}, IgnoreRobots: true,
		OnPage: func(r chromeproto.Report) { mu.Lock(); report = r; mu.Unlock() },
	})
	for _, host := range []string{"127.0.0.1", "secret.example", "[::1]", "2130706433"} {
		target = fmt.Sprintf("%s:%d", host, s.port)
		r := get(t, p, "http://site.example/")
		if !strings.Contains(string(r.Content.Body), "<p id=\"done\">done") {
			t.Errorf("%s: not rendered: %v %+v\n%s", host, r.Outcome, report, r.Content.Body)
		}
		paths := []string{"/fetch", "/img", "/ws", "/redirected", "/frame", "/worker", "/workersocket", "/events", "/script"}
		for _, r := range report.Refusals {
			if i := slices.IndexFunc(paths, func(path string) bool { return strings.HasSuffix(r.URL, path) }); i >= 0 && strings.HasPrefix(r.Reason, "address: ") {
				paths = slices.Delete(paths, i, i+1)
			}
		}
		if len(paths) > 0 {
			t.Errorf("%s: these were not refused by the guard: %v\n%+v", host, paths, report)
		}
		t.Logf("%s: %d requests, %d refused, %v", host, report.Requests, report.Refused, report.Elapsed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.contacts) > 0 {
		t.Errorf("the secret was contacted: %q", s.contacts)
	}
}
