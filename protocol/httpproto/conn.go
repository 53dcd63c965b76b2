package httpproto

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"net/http/httptrace"
	"net/netip"
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
)

// phase is how far a visit has come: what a timeout is blamed on.
type phase int32

const (
	phaseLookup phase = iota
	phaseConnect
	phaseTLS
	phaseAnswer
	phaseBody
)

// A visit is what one Fetch has under way. It travels in the context of the
// request, so that the transport's dials can be counted and, when the visit
// ends, cut off: the transport itself lets them run on.
type visit struct {
	// ctx ends with the visit.
	ctx context.Context
	// allowance is how many bytes the visit may read from a connection.
	allowance int64
	phase     atomic.Int32

	mu     sync.Mutex
	dials  int
	ended  bool
	dialed []*conn // and not known to be of use to anyone
	using  *conn
	addr   string
}

type visitKey struct{}

func (v *visit) at(p phase) { v.phase.Store(int32(p)) }

// context returns ctx with the visit in it.
func (v *visit) context(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(context.WithValue(ctx, visitKey{}, v), &httptrace.ClientTrace{
		TLSHandshakeStart: func() { v.at(phaseTLS) },
		GotConn:           func(i httptrace.GotConnInfo) { v.got(i.Conn) },
	})
}

// got notes which connection the transport has chosen. It may change its mind,
// when an idle connection turns out to be dead.
func (v *visit) got(nc net.Conn) {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	c, ok := nc.(*conn)
	if !ok {
		return
	}
	v.at(phaseAnswer)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended || v.using == c {
		return
	}
	if v.using != nil {
		v.using.release(true)
	}
	c.acquire(v.allowance)
	v.using, v.addr = c, c.RemoteAddr().String()
}

// end closes what the visit has opened, and with fail the connection it has
// used: its read loop would run for as long as the server talks.
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
	if v.dials++; v.dials > maxDials {
		return errDials
	}
	return nil
}

// opened takes charge of a connection that was dialled for the visit.
func (v *visit) opened(nc net.Conn) (net.Conn, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended {
		nc.Close()
		return nil, errVisitEnded
	}
	c := &conn{Conn: nc, left: slack}
	v.dialed = append(v.dialed, c)
	return c, nil
}

// A conn bounds what comes over one connection: what its visits may read and a
// little beside, so that no server can keep it alive by talking.
type conn struct {
	net.Conn

	mu     sync.Mutex
	users  int
	doomed bool
	left   int64
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	c.left -= int64(n)
	over := c.left < 0
	c.mu.Unlock()
	if over {
		c.Conn.Close()
		return 0, errConnBytes
	}
	return n, err
}

func (c *conn) acquire(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users++
	if c.left += bytes; c.left < bytes {
		c.left = math.MaxInt64
	}
}

// release ends one use. After a failure the connection is closed, but not under
// the hands of another visit (HTTP/2): then the last one out closes it.
func (c *conn) release(fail bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users--
	c.doomed = c.doomed || fail
	if c.users > 0 {
		return
	}
	c.left = slack
	if c.doomed {
		c.Conn.Close()
	}
}

func (c *conn) closeUnused() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users == 0 {
		c.Conn.Close()
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
	if c.o.ConnectTimeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, c.o.ConnectTimeout)
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
	dial := c.dial
	addrs := []netip.Addr{{}}
	if addrs[0], err = netip.ParseAddr(host); err == nil {
		if own {
			dial = c.dialOwn
		}
	} else {
		v.at(phaseLookup)
		if addrs, err = c.o.Resolver(ctx, "ip", host); err != nil {
			return nil, err
		}
	}
	v.at(phaseConnect)
	nc, err := c.dialAddrs(ctx, dial, addrs, port)
	if err != nil {
		return nil, err
	}
	return v.opened(nc)
}

// dialAddrs tries the addresses in their order, each with its share of the time
// that is left. It returns the first failure that is not a refusal of ours.
func (c *Client) dialAddrs(ctx context.Context, dial func(context.Context, string, string) (net.Conn, error), addrs []netip.Addr, port string) (net.Conn, error) {
	var first error = &net.DNSError{Err: "no addresses", IsNotFound: true}
	addrs = addrs[:min(len(addrs), maxAddrs)]
	for i, a := range addrs {
		nc, err := dialShare(ctx, dial, net.JoinHostPort(a.Unmap().String(), port), len(addrs)-i)
		if exhausted(err) {
			// Idle connections hold descriptors too, and are the ones to spare.
			c.transport.CloseIdleConnections()
			nc, err = dialShare(ctx, dial, net.JoinHostPort(a.Unmap().String(), port), len(addrs)-i)
		}
		if err == nil {
			return nc, nil
		}
		if i == 0 || errors.Is(first, ErrBlocked) {
			first = err
		}
		if ctx.Err() != nil || exhausted(err) {
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

// exhausted reports whether err says that this machine has no descriptors or
// memory left. The resolver of package net keeps only the text of such an error.
func exhausted(err error) bool {
	for _, e := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		var dns *net.DNSError
		if errors.Is(err, e) || errors.As(err, &dns) && strings.Contains(dns.Err, e.Error()) {
			return true
		}
	}
	return false
}
