package httpproto

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
)

// Options returns the options of the client, with defaults resolved and UserAgent composed.
func (c *Client) Options() Options {
	o := c.o
	o.UserAgent = c.userAgent
	return o
}

// Transport returns a new transport for requests that are no visits, such as those of the scripts
// of a page. It connects as visits do: ConnectTo, Resolver, Guard, AllowPorts, Proxy, the
// certificates, and the timeouts of connecting, of TLS and of headers hold. Other limits, logins, cookies,
// Capture and RoundTripper do not. The caller closes its idle connections.
func (c *Client) Transport() *http.Transport {
	l := c.o.Limits
	t := &http.Transport{
		DialContext:            c.dialOther,
		DisableCompression:     true,
		TLSClientConfig:        &tls.Config{RootCAs: c.o.RootCAs, InsecureSkipVerify: c.o.InsecureSkipVerify},
		TLSHandshakeTimeout:    max(l.TLSTimeout, 0),
		ResponseHeaderTimeout:  max(l.HeaderTimeout, 0),
		MaxResponseHeaderBytes: l.MaxHeaderBytes,
		IdleConnTimeout:        max(l.IdleTimeout, 0),
		ForceAttemptHTTP2:      !c.o.HTTP1,
	}
	return t
}

// dialOther dials for a request that is no visit.
func (c *Client) dialOther(ctx context.Context, _, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	if p := uint16(n); slices.Contains(badPorts[:], p) && !slices.Contains(c.o.AllowPorts, p) {
		return nil, fmt.Errorf("%w: port %d is that of another protocol", ErrBlocked, p)
	}
	return c.dialHost(ctx, address, func(phase) {})
}
