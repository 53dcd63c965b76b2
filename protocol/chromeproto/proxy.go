package chromeproto

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/recrawl/recrawl/protocol/httpproto"
)

const (
	// helloTime limits the wait for the first byte in a tunnel, and for the headers of a request.
	helloTime = 10 * time.Second
	// connsPerHost is how many connections there are to a host, for all pages, as browsers have.
	connsPerHost = 6
	// idleTime is how long a connection of the browser may be idle.
	idleTime = 30 * time.Second
)

// A proxy is where all requests of the browser go. It listens on loopback, serves only pages
// that name themselves with the secret of the pool, and asks the rules of the page about each
// request: it opens the TLS of the browser, so the rules see URLs of https too.
type proxy struct {
	secret    string
	userAgent string
	from      string
	listener  net.Listener
	outer     *http.Server // CONNECT, and requests with an absolute URL
	inner     *http.Server // requests in tunnels
	tunnels   tunnelListener
	reverse   *httputil.ReverseProxy
	transport *http.Transport
	keys      *leafKeys

	mu    sync.Mutex
	pages map[string]*traffic
}

// newProxy starts a proxy whose requests are made by the transport of a client, with a cache.
func newProxy(client *httpproto.Client, cacheBytes int64) (*proxy, error) {
	keys, err := newLeafKeys()
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	o := client.Options()
	transport := client.Transport()
	transport.MaxConnsPerHost, transport.MaxIdleConnsPerHost = connsPerHost, connsPerHost
	p := &proxy{
		secret: rand.Text(), userAgent: o.UserAgent, from: o.From,
		listener: l, transport: transport, keys: keys, pages: map[string]*traffic{},
		tunnels: tunnelListener{conns: make(chan net.Conn), closed: make(chan struct{}), addr: l.Addr()},
	}
	quiet := log.New(io.Discard, "", 0) // servers and pages make the errors
	p.reverse = &httputil.ReverseProxy{
		Rewrite: p.rewrite, Transport: newCache(p.transport, cacheBytes), FlushInterval: -1, ErrorLog: quiet,
		ModifyResponse: modifyResponse, ErrorHandler: answerError,
	}
	p.outer = &http.Server{Handler: http.HandlerFunc(p.serveOuter), ReadHeaderTimeout: helloTime, IdleTimeout: idleTime, ErrorLog: quiet}
	p.inner = &http.Server{
		Handler: http.HandlerFunc(p.serveInner), ReadHeaderTimeout: helloTime, IdleTimeout: idleTime, ErrorLog: quiet,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if secured, ok := c.(interface{ NetConn() net.Conn }); ok {
				c = secured.NetConn()
			}
			return context.WithValue(ctx, tunnelKey{}, c)
		},
	}
	go p.outer.Serve(l)
	go p.inner.Serve(&p.tunnels)
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) close() {
	p.outer.Close()
	p.inner.Close()
	p.tunnels.Close()
	p.transport.CloseIdleConnections()
}

// add makes the traffic of a page known under its name.
func (p *proxy) add(name string, t *traffic) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pages[name] = t
}

// remove ends the traffic of a page: its connections are closed.
func (p *proxy) remove(name string, t *traffic) {
	p.mu.Lock()
	delete(p.pages, name)
	p.mu.Unlock()
	t.end()
}

// authenticated returns the traffic that a request belongs to; nil if it lacks the secret.
func (p *proxy) authenticated(r *http.Request) *traffic {
	encoded, ok := strings.CutPrefix(r.Header.Get("Proxy-Authorization"), "Basic ")
	if !ok {
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil
	}
	name, secret, _ := strings.Cut(string(raw), ":")
	if subtle.ConstantTimeCompare([]byte(secret), []byte(p.secret)) != 1 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pages[name]
}

func (p *proxy) serveOuter(w http.ResponseWriter, r *http.Request) {
	t := p.authenticated(r)
	if t == nil {
		w.Header().Set("Proxy-Authenticate", `Basic realm="page"`)
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	if r.Method != http.MethodConnect {
		p.serve(w, r, t, r.URL)
		return
	}
	// Nothing is dialled yet: the rules judge the request in the tunnel.
	nc, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	c := &tunnel{Conn: nc, in: rw.Reader, traffic: t, host: r.URL.Host}
	if _, err := io.WriteString(nc, "HTTP/1.1 200 OK\r\n\r\n"); err != nil || !t.track(c) {
		c.Close()
		return
	}
	nc.SetReadDeadline(time.Now().Add(helloTime))
	first, err := c.in.Peek(1)
	if err != nil {
		c.Close()
		return
	}
	nc.SetReadDeadline(time.Time{})
	var conn net.Conn = c
	if c.secure = first[0] == 22; c.secure { // a TLS handshake
		conn = p.keys.server(c, hostname(c.host))
	}
	p.tunnels.push(conn)
}

func hostname(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return hostport
	}
	return host
}

func (p *proxy) serveInner(w http.ResponseWriter, r *http.Request) {
	c, ok := r.Context().Value(tunnelKey{}).(*tunnel)
	if !ok || r.URL.Host != "" || r.Method == http.MethodConnect {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	u := *r.URL
	u.Scheme, u.Host = "http", strings.TrimSuffix(c.host, ":80")
	if c.secure {
		u.Scheme, u.Host = "https", strings.TrimSuffix(c.host, ":443")
	}
	p.serve(w, r, c.traffic, &u)
}

// serve makes a request of a page, unless its rules forbid it.
func (p *proxy) serve(w http.ResponseWriter, r *http.Request, t *traffic, u *url.URL) {
	if t.serveDocument(w, r, u) {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	if why := t.admit(ctx, r, u); why != "" {
		refuse(w, t, u, why)
		return
	}
	ctx = context.WithValue(ctx, requestKey{}, &request{traffic: t, url: u})
	p.reverse.ServeHTTP(w, r.WithContext(ctx))
}

type (
	tunnelKey  struct{}
	requestKey struct{}
)

// A request is one that was admitted.
type request struct {
	traffic *traffic
	url     *url.URL
}

func refuse(w http.ResponseWriter, t *traffic, u *url.URL, why string) {
	t.refuse(u, why)
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusForbidden)
}

// rewrite makes the request to a server: it names the crawler, and does not name us as a proxy.
func (p *proxy) rewrite(pr *httputil.ProxyRequest) {
	q := pr.In.Context().Value(requestKey{}).(*request)
	u := *q.url
	pr.Out.URL, pr.Out.Host = &u, u.Host
	h := pr.Out.Header
	for name := range h {
		if strings.HasPrefix(name, "Sec-Ch-") {
			h.Del(name)
		}
	}
	h.Set("User-Agent", p.userAgent)
	if p.from != "" {
		h.Set("From", p.from)
	}
	pr.Out.Body = q.traffic.counted(pr.Out.Body)
}

// errRefused says why an answer is not passed on.
type errRefused string

func (e errRefused) Error() string { return string(e) }

// modifyResponse counts what an answer brings, and ends those that the page may not have.
func modifyResponse(r *http.Response) error {
	q := r.Request.Context().Value(requestKey{}).(*request)
	if why := q.traffic.admitAnswer(r); why != "" {
		return errRefused(why)
	}
	// The browser has no other way to the server.
	r.Header.Del("Alt-Svc")
	if conn, ok := r.Body.(io.ReadWriteCloser); ok && r.StatusCode == http.StatusSwitchingProtocols {
		r.Body = &countedConn{conn, q.traffic}
		return nil
	}
	r.Body = q.traffic.counted(r.Body)
	return nil
}

func answerError(w http.ResponseWriter, r *http.Request, err error) {
	q := r.Context().Value(requestKey{}).(*request)
	var (
		blocked *httpproto.BlockedError
		refused errRefused
	)
	switch {
	case errors.As(err, &blocked):
		refuse(w, q.traffic, q.url, "address: "+blocked.Class)
	case errors.Is(err, httpproto.ErrBlocked):
		refuse(w, q.traffic, q.url, "port of another protocol")
	case errors.As(err, &refused):
		refuse(w, q.traffic, q.url, string(refused))
	default:
		w.WriteHeader(http.StatusBadGateway)
	}
}

// A tunnel is a connection of the browser for one host, after CONNECT.
type tunnel struct {
	net.Conn
	in      *bufio.Reader
	traffic *traffic
	host    string // with its port
	secure  bool
	closed  sync.Once
}

func (c *tunnel) Read(b []byte) (int, error) { return c.in.Read(b) }

func (c *tunnel) Close() error {
	c.closed.Do(func() { c.traffic.untrack(c) })
	return c.Conn.Close()
}

// A tunnelListener gives tunnels to a server.
type tunnelListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	addr   net.Addr
}

func (l *tunnelListener) push(c net.Conn) {
	select {
	case l.conns <- c:
	case <-l.closed:
		c.Close()
	}
}

func (l *tunnelListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *tunnelListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *tunnelListener) Addr() net.Addr { return l.addr }
