package httpproto

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"time"
)

var (
	// errProxy says that the proxy cannot be used.
	errProxy = errors.New("proxy")
	// errTunnel says that the proxy could not, or would not, reach the server.
	errTunnel = errors.New("connect: refused by the proxy")
)

// maxConnectAnswer limits what a proxy may send before a tunnel.
const maxConnectAnswer = 16 << 10

// A proxy opens tunnels to addresses (RFC 9110, section 9.3.6).
type proxy struct {
	address string
	header  string // lines that are the same for every tunnel
}

func newProxy(raw, userAgent string) (*proxy, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" || u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		// The URL may hold a password.
		return nil, errors.New("httpproto: option Proxy is not http://host:port")
	}
	port := u.Port()
	if port == "" {
		port = "8080" // as for Nutch
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return nil, errors.New("httpproto: port of option Proxy is not within 1 to 65535")
	}
	p := &proxy{address: net.JoinHostPort(u.Hostname(), port), header: "User-Agent: " + userAgent + "\r\n"}
	if u.User != nil {
		password, _ := u.User.Password()
		value, err := basic(u.User.Username(), password)
		if err != nil {
			return nil, fmt.Errorf("httpproto: option Proxy: %w", err)
		}
		p.header += "Proxy-Authorization: " + value + "\r\n"
	}
	return p, nil
}

// guarded returns a dial function that asks the proxy only for addresses that
// the guard allows.
func (p *proxy) guarded(g Guard) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := g.Control(network, address, nil); err != nil {
			return nil, err
		}
		return p.dial(ctx, network, address)
	}
}

// dial returns a tunnel to an address and port, which is its remote address.
func (p *proxy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	nc, err := new(net.Dialer).DialContext(ctx, network, p.address)
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", errProxy, err)
	}
	stop := context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
	status, err := p.connect(nc, address)
	interrupted := !stop()
	switch {
	case interrupted:
		err = context.Cause(ctx)
	case err != nil:
		err = fmt.Errorf("%w %s: %w", errProxy, p.address, err)
	case status == 407:
		err = fmt.Errorf("%w %s: status 407: it requires other credentials", errProxy, p.address)
	case status < 200 || status > 299:
		err = fmt.Errorf("%w: status %d", errTunnel, status)
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	return tunnel{nc, net.TCPAddrFromAddrPort(to)}, nil
}

// connect asks for a tunnel and returns the status of the answer. It reads not
// a byte beyond, which would be the server's.
func (p *proxy) connect(nc net.Conn, address string) (status int, err error) {
	if _, err := io.WriteString(nc, "CONNECT "+address+" HTTP/1.1\r\nHost: "+address+"\r\n"+p.header+"\r\n"); err != nil {
		return 0, err
	}
	var answer []byte
	for one := make([]byte, 1); !bytes.HasSuffix(answer, []byte("\r\n\r\n")); {
		if len(answer) == maxConnectAnswer {
			return 0, errors.New("response is too long")
		}
		if _, err := io.ReadFull(nc, one); err != nil {
			return 0, err
		}
		answer = append(answer, one[0])
	}
	if len(answer) < len("HTTP/1.1 200") || !bytes.HasPrefix(answer, []byte("HTTP/1.")) {
		return 0, errors.New("response is not HTTP")
	}
	if status, err = strconv.Atoi(string(answer[9:12])); err != nil {
		return 0, errors.New("response is not HTTP")
	}
	return status, nil
}

// A tunnel is a connection to remote through a proxy.
type tunnel struct {
	net.Conn
	remote net.Addr
}

func (t tunnel) RemoteAddr() net.Addr { return t.remote }
