package httpproto

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	errDials      = errors.New("visit has used up its connections")
	errVisitEnded = errors.New("visit has ended")
	errConnBytes  = errors.New("connection has used up its bytes")
	// errRefusedStream and errUnanswered end a visit whose request the transport is about to
	// send again.
	errRefusedStream = errors.New("http: stream refused (REFUSED_STREAM)")
	errUnanswered    = errors.New("connection closed before an answer")
	errIdle          = errors.New("the server may have closed the idle connection")
)

// maxRoomWait is the last and longest of the doubling pauses in which a dial
// waits for a free descriptor.
const maxRoomWait = 64 * time.Millisecond

// phase is how far a visit has got: what a timeout is blamed on.
type phase int32

const (
	phaseLookup phase = iota
	phaseConnect
	phaseTLS
	phaseAnswer
	phaseBody
)

// A visit is the state of one Fetch. It travels in the context of the request,
// so that the transport's dials can be counted and cut off when the visit ends:
// the transport itself lets them run on.
//
// The transport would send a request again that the server did not answer: seven times in
// HTTP/2, if the server refuses the stream. The visit ends instead, since each request needs a
// grant of its host.
type visit struct {
	// ctx ends with the visit.
	ctx  context.Context
	stop context.CancelCauseFunc
	// sent says that the request was written to a connection, reused that an earlier visit had
	// used it, too.
	sent   atomic.Bool
	reused bool
	// log is that of the connection in use, if visits are captured and it is one of HTTP/1.
	log *wireLog
	// header is how many bytes of headers may arrive.
	header int64
	phase  atomic.Int32

	mu     sync.Mutex
	dials  int
	ended  bool
	dialed []*conn // not known to be of use to anyone
	using  *conn
}

type visitKey struct{}

func (v *visit) at(p phase) { v.phase.Store(int32(p)) }

// context returns ctx with the visit in it.
func (v *visit) context(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(context.WithValue(ctx, visitKey{}, v), &httptrace.ClientTrace{
		TLSHandshakeStart: func() { v.at(phaseTLS) },
		GotConn:           v.got,
		WroteHeaders:      v.wroteHeaders,
	})
}

// wroteHeaders records that a request over HTTP/2 was sent. Over HTTP/1 the transport calls it
// before it writes, and conn.Write records that.
func (v *visit) wroteHeaders() {
	c := v.conn()
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http2 && !c.broken {
		v.sent.Store(true)
	}
}

// A requester sends one request for each RoundTrip of a visit.
type requester struct{ http.RoundTripper }

func (r requester) RoundTrip(req *http.Request) (*http.Response, error) {
	if v, ok := req.Context().Value(visitKey{}).(*visit); ok {
		v.sent.Store(false)
	}
	return r.RoundTripper.RoundTrip(req)
}

// got records which connection the transport has chosen. It may change its mind
// when an idle connection turns out to be dead; if it has sent the request by then, got ends
// the visit.
func (v *visit) got(info httptrace.GotConnInfo) {
	nc, http2 := v.logged(info.Conn), false
	if t, ok := nc.(*tls.Conn); ok {
		http2 = t.ConnectionState().NegotiatedProtocol == "h2"
		nc = t.NetConn()
	}
	c, ok := nc.(*conn)
	if !ok {
		return
	}
	v.at(phaseAnswer)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.sent.Load() {
		// HTTP/2 looks at the context before it writes a request, HTTP/1 does not.
		if !http2 {
			c.Close()
		}
		if http2 && v.using == c {
			v.stop(errRefusedStream)
		} else {
			v.stop(errUnanswered)
		}
		return
	}
	v.reused = info.Reused
	if v.ended || v.using == c {
		return
	}
	if v.using != nil {
		v.using.release(true)
	}
	sent := &v.sent
	if http2 {
		sent = nil
	}
	c.acquire(http2, v.header+slack, sent)
	v.using = c
}

// conn returns the connection in use; nil if it is not one of ours.
func (v *visit) conn() *conn {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.using
}

// doomed reports whether another visit has closed the connection in use, or
// will.
func (v *visit) doomed() bool {
	c := v.conn()
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.doomed
}

// end closes what the visit has opened and, with fail, the connection it has
// used, whose read loop would run for as long as the server sends.
func (v *visit) end(fail bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended {
		return
	}
	v.ended = true
	for _, c := range v.dialed {
		if c != v.using {
			c.closeUnused()
		}
	}
	if v.using != nil {
		v.using.release(fail)
	}
}

// dialing counts one more dial.
func (v *visit) dialing() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended {
		return errVisitEnded
	}
	if v.sent.Load() {
		return errUnanswered
	}
	if v.dials++; v.dials > maxDials {
		return errDials
	}
	return nil
}

// opened takes charge of a connection that was dialled for the visit, and adds
// it to the client's.
func (v *visit) opened(nc net.Conn, all *conns) (net.Conn, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended {
		nc.Close()
		return nil, errVisitEnded
	}
	c := &conn{Conn: nc, all: all, left: slack, asked: true}
	all.add(c)
	v.dialed = append(v.dialed, c)
	return c, nil
}

// A conn limits what comes over one connection: the bodies that visits read and
// a little more, so that no server can keep it alive by sending.
//
// Over HTTP/1 it also ensures that an answer belongs to the preceding request.
// The transport offers a connection for reuse before checking whether more
// arrived than the answer, and would pass that to the next visit.
type conn struct {
	net.Conn
	all *conns

	mu     sync.Mutex
	users  int
	doomed bool
	left   int64 // bytes that may still arrive
	http2  bool
	// asked says that something was written since the last visit ended: before
	// that, nothing may arrive.
	asked bool
	// sent is set by a write; nil unless a visit uses the connection over HTTP/1.
	sent *atomic.Bool
	// broken says that a write has failed.
	broken bool
	// idleUntil is when the server may close the connection if it is idle; zero if unknown.
	idleUntil time.Time
	// reading says that the transport waits for bytes and has none left.
	reading, closed bool
	// changed is closed when one of the two becomes true; nil if no goroutine waits.
	changed chan struct{}
}

func (c *conn) Read(p []byte) (int, error) {
	c.set(&c.reading, true)
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	c.reading = false
	c.left -= int64(n)
	over, stray := c.left < 0, n > 0 && !c.asked && !c.http2
	c.mu.Unlock()
	switch {
	case stray:
		// To the transport it is an idle connection that the server closed.
		c.Close()
		return 0, io.EOF
	case over:
		c.Close()
		return 0, errConnBytes
	}
	return n, err
}

func (c *conn) Write(p []byte) (n int, err error) {
	if c.idleTooLong() {
		err = errIdle // nothing was written: the transport uses another connection
	} else {
		c.set(&c.asked, true)
		n, err = c.Conn.Write(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken = c.broken || err != nil; c.sent != nil && n > 0 {
		c.sent.Store(true)
	}
	return n, err
}

func (c *conn) Close() error {
	c.set(&c.closed, true)
	c.all.remove(c)
	return c.Conn.Close()
}

// conns are the open connections of a client. The transport may lose track of
// one (HTTP/2: if its last stream is just ending when idle connections are
// closed), but none outlives the client.
type conns struct {
	mu   sync.Mutex
	open map[*conn]bool
}

func (s *conns) add(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*conn]bool{}
	}
	s.open[c] = true
}

func (s *conns) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

func (s *conns) closeAll() {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	for _, c := range all {
		c.Close()
	}
}

// set sets one of the fields and wakes those waiting for them.
func (c *conn) set(field *bool, v bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*field = v
	if c.changed != nil && (c.reading || c.closed) {
		close(c.changed)
		c.changed = nil
	}
}

// settle waits until the transport has found, after a complete answer, either
// that nothing follows it, or that the connection is of no further use. That
// happens at once; if it does not, settle gives up with ctx and returns false.
func (c *conn) settle(ctx context.Context) bool {
	c.mu.Lock()
	if c.http2 || c.reading || c.closed {
		c.mu.Unlock()
		return true
	}
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	changed := c.changed // which others may wait for, too: a visit may begin before this one ends
	c.mu.Unlock()
	select {
	case <-changed:
		return true
	case <-ctx.Done():
		return false
	}
}

// acquire begins a use by a visit, for which headers and framing may arrive. A write sets sent
// unless it is nil.
func (c *conn) acquire(http2 bool, bytes int64, sent *atomic.Bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users++
	c.http2 = http2
	c.sent = sent
	c.left += bytes
}

// allow adds to what may arrive.
func (c *conn) allow(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left += bytes
}

// release ends one use. After a failure the connection is closed, but not while
// another visit uses it (HTTP/2): then the last one closes it.
func (c *conn) release(fail bool) {
	c.mu.Lock()
	c.users--
	c.doomed = c.doomed || fail
	last := c.users == 0
	if last {
		c.left, c.asked, c.sent = slack, false, nil
	}
	doomed := last && c.doomed
	c.mu.Unlock()
	if doomed {
		c.Close()
	}
}

// keepFor says how long the server keeps the connection open without a request.
func (c *conn) keepFor(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idleUntil = time.Now().Add(d - keepAliveMargin)
}

func (c *conn) idleTooLong() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.asked && !c.idleUntil.IsZero() && time.Now().After(c.idleUntil)
}

func (c *conn) closeUnused() {
	c.mu.Lock()
	unused := c.users == 0
	c.mu.Unlock()
	if unused {
		c.Close()
	}
}

// dialContext is the transport's. Its ctx carries the values of the request, but
// not its end.
func (c *Client) dialContext(ctx context.Context, network, address string) (net.Conn, error) {
	v, ok := ctx.Value(visitKey{}).(*visit)
	if !ok {
		return nil, errors.New("request has lost the context of its visit")
	}
	if err := v.dialing(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(v.ctx, cancel)()
	nc, err := c.dialHost(ctx, address, v.at)
	if err != nil {
		return nil, err
	}
	return v.opened(nc, &c.conns)
}

// dialHost looks up a host, unless ConnectTo has an address for it, and dials what the guard
// allows. It says when it looks up, and when it connects.
func (c *Client) dialHost(ctx context.Context, address string, at func(phase)) (net.Conn, error) {
	if c.o.Limits.ConnectTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.o.Limits.ConnectTimeout)
		defer cancel()
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	host, port, own, err := c.connectTo(host, port)
	if err != nil {
		return nil, err
	}
	dial, named := c.dial, false
	addrs := []netip.Addr{{}}
	if addrs[0], err = netip.ParseAddr(host); err == nil {
		if own {
			dial = c.dialOwn
		}
	} else {
		at(phaseLookup)
		if addrs, err = c.lookup(ctx, host); err != nil {
			return nil, err
		}
		named = true
	}
	at(phaseConnect)
	nc, err := c.dialAddrs(ctx, dial, addrs, port)
	if err != nil && named {
		c.lookups.forget(strings.ToLower(host))
	}
	return nc, err
}

// dialAddrs tries the addresses in order, each with its share of the remaining
// time. It returns the first failure that is not a refusal of ours.
func (c *Client) dialAddrs(ctx context.Context, dial func(context.Context, string, string) (net.Conn, error), addrs []netip.Addr, port string) (net.Conn, error) {
	var first error = &net.DNSError{Err: "no addresses", IsNotFound: true}
	for i, a := range addrs {
		nc, err := dialShare(ctx, dial, net.JoinHostPort(a.Unmap().String(), port), len(addrs)-i)
		// Idle connections hold descriptors too, and can be spared. One is free
		// once its reader has let go, a moment after it was closed.
		for wait := time.Millisecond; exhausted(err) && wait <= maxRoomWait; wait *= 2 {
			c.transport.CloseIdleConnections()
			select {
			case <-ctx.Done():
				return nil, err
			case <-time.After(wait):
			}
			nc, err = dialShare(ctx, dial, net.JoinHostPort(a.Unmap().String(), port), len(addrs)-i)
		}
		if err == nil {
			return nc, nil
		}
		if i == 0 || errors.Is(first, ErrBlocked) && !errors.Is(err, ErrBlocked) {
			first = err
		}
		if ctx.Err() != nil || exhausted(err) || errors.Is(err, errProxy) {
			return nil, err
		}
	}
	return nil, first
}

func dialShare(ctx context.Context, dial func(context.Context, string, string) (net.Conn, error), address string, shares int) (net.Conn, error) {
	if end, ok := ctx.Deadline(); ok && shares > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(shares))
		defer cancel()
	}
	return dial(ctx, "tcp", address)
}

// exhausted reports whether err says that this machine has run out of
// descriptors or memory. The resolver of package net keeps only the text of
// such an error.
func exhausted(err error) bool {
	for _, e := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		var dns *net.DNSError
		if errors.Is(err, e) || errors.As(err, &dns) && strings.Contains(dns.Err, e.Error()) {
			return true
		}
	}
	return false
}
