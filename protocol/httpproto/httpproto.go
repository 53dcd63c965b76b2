// Package httpproto visits http and https URLs, for a crawl of servers that cannot be
// trusted: there is a limit on every byte and second that one can cost. It follows no
// redirect, keeps no cookies unless asked to, retries nothing beyond a second
// connection, and knows neither pauses nor robots.txt. Start with [New]: a [Client] is
// a [protocol.Protocol] over the Transport of net/http.
//
// net/http itself reports some faults of servers, in lines to the standard
// logger of package log.
//
// It decodes gzip, deflate and zstd itself, so that the limits hold for what
// comes out as well as for what goes in. Brotli is not offered: no decoder of
// it is worth another dependency, and every server that has Brotli has gzip.
//
// By default it dials public unicast addresses only, whatever address a name has:
// see [Guard].
package httpproto

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/recrawl/recrawl/protocol"
)

// ErrClosed says that the client was closed before the visit.
var ErrClosed = errors.New("httpproto: client is closed")

// Options configure the requests, and limit the cost of a visit. Only Agent is required.
type Options struct {
	// Agent is the name of the crawler, by which servers and their robots.txt know it. It
	// is required, printable ASCII, and preferably a single word. (Nutch:
	// http.agent.name.)
	Agent string
	// Version follows the name in User-Agent, as in "name/version". (Nutch:
	// http.agent.version.)
	Version string
	// AgentURL is a page about the crawler, and AgentEmail the mailbox of its operator:
	// "name/version (+url; email)". (Nutch: http.agent.url, http.agent.email.)
	AgentURL, AgentEmail string
	// UserAgent replaces the header composed from the four above, for crawlers known by
	// another form of it. It should contain Agent.
	UserAgent string
	// From is the header of that name, the mailbox of the operator (RFC 9110, section
	// 10.1.2); empty sends none. (Nutch: http.agent.email, which it puts into User-Agent
	// only.)
	From string
	// Accept and AcceptLanguage are the headers of that name; empty means those of a
	// browser that prefers HTML and English. (Nutch: http.accept, http.accept.language.)
	Accept, AcceptLanguage string

	// Limits bound the time, the bytes and the connections of visits.
	Limits Limits
	// HTTP1 uses HTTP/1.1 even with servers that offer HTTP/2. (Nutch: http.useHttp2.)
	HTTP1 bool

	// Guard decides which addresses may be dialled; its zero value allows public ones
	// only. It does not apply to addresses that ConnectTo specifies. (Nutch:
	// http.filter.ipaddress.include, http.filter.ipaddress.exclude.)
	Guard Guard
	// AllowPorts are ports that may be used although they are known for another protocol,
	// whose servers a crawl has no business with: mail, shells, databases. A URL with such
	// a port is otherwise Refused.
	AllowPorts []uint16
	// ConnectTo redirects connections. Once it has an entry, a host and port that no entry
	// matches is refused. The first match wins.
	ConnectTo []ConnectTo
	// Resolver looks up the addresses of a host ("ip" is the network); nil means the
	// system's resolver. It must return soon after its context is done.
	Resolver func(ctx context.Context, network, host string) ([]netip.Addr, error)
	// LookupTime is how long the addresses of a host are cached, for about the last ten
	// thousand hosts; zero means 5 min, negative caches none. They are dropped when none
	// of them can be connected to, and each is checked by the guard whenever it is dialled.
	LookupTime time.Duration
	// Ascending dials the addresses of a host in ascending order, IPv4 first, instead of
	// in the order of the answer. So the address dialled is the one that a crawl that
	// queues by address (fetch.Options.Politeness.By) assigns to the host, unless it cannot
	// be reached.
	Ascending bool

	// RootCAs are the trusted authorities; nil means the system's.
	RootCAs *x509.CertPool
	// InsecureSkipVerify accepts every certificate, which is the default of Nutch and not
	// of this package. (Nutch: http.tls.certificates.check.)
	InsecureSkipVerify bool
	// Logins are sent to the origins they are for; to an http origin in clear text.
	// (Nutch: http.auth.file.)
	Logins []Login
	// Jar keeps the cookies that servers set and sends them back; nil means none. A [Jar]
	// sends a cookie only to the exact origin that set it. A jar of package
	// net/http/cookiejar also sends it to other hosts of a domain, as browsers do, and is
	// unbounded; which pages a crawl finds may then depend on the order of its requests.
	Jar http.CookieJar
	// Cookies are sent to the origins they are for, with or without a Jar. (Nutch:
	// http.agent.host.cookie.file, http.enable.cookie.header.)
	Cookies []Cookie
	// Proxy is "http://host:port" or "http://user:password@host:port"; empty means none,
	// whatever the environment says. Connections to servers, http and https, are tunnels
	// through it (CONNECT), which it must allow for all ports that are crawled. The guard
	// still applies: names are looked up here, and the proxy is asked for an address that
	// was checked, never for a name. The proxy itself is trusted, and may be anywhere. If
	// it cannot be reached, or refuses a connection, that is an error of the visit and not
	// its outcome. (Nutch: http.proxy.host, http.proxy.port, http.proxy.username,
	// http.proxy.password.)
	Proxy string
	// RoundTripper wraps the transport, for example to sign requests. Additional requests
	// that it sends must carry the context of the one it was given, and count against the
	// visit. It may answer by itself, as a test does that crawls an http.Handler without a
	// network, in a testing/synctest bubble; then nothing is looked up, dialled or guarded.
	RoundTripper func(http.RoundTripper) http.RoundTripper
	// Capture receives the exchange of each visit that got an answer, before Fetch returns;
	// nil captures nothing. It is called from many goroutines at once, and owns the exchange.
	// Its error is that of the visit. See the module warc, which archives exchanges.
	Capture func(Exchange) error
	// Now is the clock of recorded times; nil means time.Now. Limits are in real time in
	// any case.
	Now func() time.Time
}

// Limits bound the time, the bytes and the connections of visits. In each, zero means the
// default and negative means no limit, unless its comment says otherwise.
type Limits struct {
	// MaxBytes limits the decoded body; what exceeds it is cut off and the page flagged.
	// Zero means 8 MiB: Nutch's 1 MiB cuts many a PDF file and feed, and workers × 2 × 8
	// MiB is still a gigabyte at most for 64 workers. (Nutch: http.content.limit.)
	MaxBytes int64
	// MaxEncodedBytes limits the body as sent over the wire. Zero means the limit of the
	// decoded body plus 64 KiB: an encoding that needs more than the text that it encodes
	// does not compress.
	MaxEncodedBytes int64
	// MaxHeaderBytes limits status line and headers together; zero means 256 KiB. It
	// cannot be negative.
	MaxHeaderBytes int64
	// TimeLimit limits a whole visit; a body that it cuts off is kept. Zero means 60 s.
	// (Nutch: http.time.limit, none by default.)
	TimeLimit time.Duration
	// ConnectTimeout limits lookup and connecting; zero means 10 s. (Nutch: http.timeout.)
	ConnectTimeout time.Duration
	// TLSTimeout limits the TLS handshake; zero means 10 s.
	TLSTimeout time.Duration
	// HeaderTimeout limits the wait from the request to the end of the headers; zero means
	// 30 s.
	HeaderTimeout time.Duration
	// MinRate is the lowest rate at which a body may arrive, in bytes per second on
	// average over RateWindow; zero means 100 B/s over 20 s.
	MinRate    int64
	RateWindow time.Duration
	// MaxIdle and IdleTimeout limit the connections kept for later visits; zero means 256,
	// one per host, for 30 s, and a negative MaxIdle keeps none. Each takes a file
	// descriptor and 20 to 30 KB; if there is one for every host in turn, a visit costs
	// three quarters of the processor time. When descriptors run out, idle connections are
	// closed.
	MaxIdle     int
	IdleTimeout time.Duration
}

// Limits without an option: no crawl needs more.
const (
	// maxDials is how many connections a visit may open: one, and another if
	// the server closes the first before the request is sent.
	maxDials = 2
	// keepAliveMargin is how long before the end of its Keep-Alive timeout a connection
	// is last used: the server may close it while the request is on its way. Apache does so
	// after 5 s, and the default pause of a crawl is as long.
	keepAliveMargin = time.Second
	// maxAddrs is how many addresses of a host a dial tries.
	maxAddrs = 4
	// ratioFloor and maxRatio limit the ratio of decoded to encoded bytes, once
	// that much is decoded. Markup rarely exceeds 20:1.
	ratioFloor = 1 << 20
	maxRatio   = 200
	// maxDrain and drainTime limit what is read of an unwanted body, such as
	// that of a 404, so that its connection can be reused: this must cost
	// either side less than a handshake.
	maxDrain  = 32 << 10
	drainTime = 500 * time.Millisecond
	// maxField limits each header value that is kept.
	maxField = 1 << 10
	// maxLocation limits targets of redirects: more than any URL a crawl keeps.
	maxLocation = 8 << 10
	// maxRetryAfter limits how long a server can put us off.
	maxRetryAfter = 24 * time.Hour
	// slack is what may come over a connection besides headers and twice the
	// body: TLS handshake and records, frames of HTTP/2, a window of data not
	// yet read.
	slack = 512 << 10
)

// A Client is a [protocol.Protocol] for http and https. It may be used from many
// goroutines at once.
//
// A URL of another scheme, without a host, with user information, with an IPv6
// zone, with the port of another protocol, or that cannot be parsed is Refused:
// the credentials in a URL that a crawl has found are not meant for the crawl.
//
// A visit sends one request. If the server closes the connection without an answer, or
// refuses the stream (HTTP/2), the visit Failed; only if it did so before the request was
// sent is another connection used.
//
// A visit that fails, or whose body is cut, closes its connection. Running out
// of file descriptors or memory for a connection, or the failure of a proxy, is
// an error, not an outcome: it says nothing about the server.
type Client struct {
	o         Options
	userAgent string
	transport *http.Transport
	rt        http.RoundTripper
	// dial is subject to the guard; dialOwn is for addresses that the owner
	// wrote into ConnectTo, which are trusted.
	dial, dialOwn func(ctx context.Context, network, address string) (net.Conn, error)

	lookups lookups
	conns   conns
	// logins has the values of Authorization by origin.
	logins map[string]string
	// fixed has the values of Cookie that the owner gave, by origin.
	fixed map[string]string

	active atomic.Int64
	closed atomic.Bool
	// decoders and scratch are reused by visits.
	decoders, scratch sync.Pool
}

var _ protocol.LookupProtocol = (*Client)(nil)

// New returns a client, or an error that names the invalid option. It starts no
// goroutines.
func New(o Options) (*Client, error) {
	ua, err := userAgent(o)
	if err != nil {
		return nil, err
	}
	for name, v := range map[string]string{"Accept": o.Accept, "AcceptLanguage": o.AcceptLanguage, "From": o.From} {
		if !printable(v) {
			return nil, fmt.Errorf("httpproto: option %s is not printable ASCII: %q", name, v)
		}
	}
	for i, e := range o.ConnectTo {
		if err := e.check(); err != nil {
			return nil, fmt.Errorf("httpproto: option ConnectTo[%d]: %w", i, err)
		}
	}
	logins, err := authorizations(o.Logins)
	if err != nil {
		return nil, err
	}
	fixed, err := fixedCookies(o.Cookies)
	if err != nil {
		return nil, err
	}
	if o.Limits.MaxHeaderBytes < 0 {
		return nil, fmt.Errorf("httpproto: option MaxHeaderBytes is negative: %d", o.Limits.MaxHeaderBytes)
	}
	o = o.withDefaults()
	c := &Client{
		o:         o,
		userAgent: ua,
		logins:    logins,
		fixed:     fixed,
		dial:      (&net.Dialer{Control: o.Guard.Control}).DialContext,
		dialOwn:   new(net.Dialer).DialContext,
	}
	if o.Proxy != "" {
		p, err := newProxy(o.Proxy, ua)
		if err != nil {
			return nil, err
		}
		c.dial, c.dialOwn = p.guarded(o.Guard), p.dial
	}
	if c.transport, err = newTransport(&o, c.dialContext); err != nil {
		return nil, fmt.Errorf("httpproto: %w", err)
	}
	if o.Capture != nil {
		c.record(c.transport)
	}
	c.rt = requester{c.transport}
	if o.RoundTripper != nil {
		if c.rt = o.RoundTripper(c.rt); c.rt == nil {
			return nil, errors.New("httpproto: option RoundTripper returned nil")
		}
	}
	return c, nil
}

// withDefaults resolves zero values.
func (o Options) withDefaults() Options {
	orDefault(&o.Accept, "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	orDefault(&o.AcceptLanguage, "en-us,en-gb,en;q=0.7,*;q=0.3")
	orDefault(&o.LookupTime, 5*time.Minute)
	l := &o.Limits
	orDefault(&l.MaxBytes, 8<<20)
	orDefault(&l.MaxHeaderBytes, 256<<10)
	orDefault(&l.TimeLimit, 60*time.Second)
	orDefault(&l.ConnectTimeout, 10*time.Second)
	orDefault(&l.TLSTimeout, 10*time.Second)
	orDefault(&l.HeaderTimeout, 30*time.Second)
	orDefault(&l.MinRate, 100)
	orDefault(&l.RateWindow, 20*time.Second)
	orDefault(&l.MaxIdle, 256)
	orDefault(&l.IdleTimeout, 30*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Resolver == nil {
		o.Resolver = new(net.Resolver).LookupNetIP
	}
	return o
}

// newTransport returns a transport without what it would do for browsers:
// decoding, and a connection for each waiting request.
func newTransport(o *Options, dial func(ctx context.Context, network, address string) (net.Conn, error)) (*http.Transport, error) {
	t := &http.Transport{
		DialContext:            dial,
		DisableCompression:     true,
		TLSClientConfig:        &tls.Config{RootCAs: o.RootCAs, InsecureSkipVerify: o.InsecureSkipVerify},
		TLSHandshakeTimeout:    max(o.Limits.TLSTimeout, 0),
		ResponseHeaderTimeout:  max(o.Limits.HeaderTimeout, 0),
		MaxResponseHeaderBytes: o.Limits.MaxHeaderBytes,
		MaxIdleConns:           o.Limits.MaxIdle,
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        max(o.Limits.IdleTimeout, 0),
		DisableKeepAlives:      o.Limits.MaxIdle < 0,
		Protocols:              new(http.Protocols),
		// A server may send up to a window more than we read, so keep it small.
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerConnection: 1 << 20,
			MaxReceiveBufferPerStream:     256 << 10,
			WriteByteTimeout:              10 * time.Second,
		},
	}
	t.Protocols.SetHTTP1(true)
	if o.HTTP1 {
		return t, nil
	}
	t.Protocols.SetHTTP2(true)
	// The HTTP/2 of golang.org/x/net, not its copy in net/http, which waits
	// forever when a server overflows the window of a stream (up to Go 1.26).
	// It takes its limits from the transport.
	//lint:ignore SA1019 what is to replace it is the copy
	return t, http2.ConfigureTransport(t)
}

// Anonymous reports whether the requests name neither a page nor a mailbox, so that the
// operator of a server cannot contact that of the crawl.
func (c *Client) Anonymous() bool {
	ua := strings.ToLower(c.userAgent)
	for _, s := range []string{"://", "www.", "@", " at "} {
		if strings.Contains(ua, s) {
			return false
		}
	}
	return c.o.From == ""
}

// CloseIdleConnections closes the connections that no visit uses.
func (c *Client) CloseIdleConnections() { c.transport.CloseIdleConnections() }

// Close refuses further visits and closes idle connections. Visits under way
// continue, and leave no connection behind. Close returns nil.
func (c *Client) Close() error {
	c.closed.Store(true)
	c.transport.CloseIdleConnections()
	if c.active.Load() == 0 {
		c.conns.closeAll()
	}
	return nil
}

func orDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// printable reports whether s is printable ASCII without white space around it.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return s == "" || s[0] != ' ' && s[len(s)-1] != ' '
}
