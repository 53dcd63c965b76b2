package httpproto

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// ConnectTo sends connections for one host and port to another, as curl's
// --connect-to does. Only the connection is redirected: Host header, TLS server
// name and the name for which certificates are verified stay those of the URL.
//
// If ToHost is an address it may be a private one, since the owner of the crawl
// wrote it; a name is resolved and guarded like any other.
type ConnectTo struct {
	// Host and Port are those of the URL; empty and zero match any. A host is
	// written as in a URL but without brackets, in ASCII.
	Host string
	Port uint16
	// ToHost and ToPort are where to connect; empty and zero keep those of the
	// URL.
	ToHost string
	ToPort uint16
}

// ParseConnectTo parses HOST1:PORT1:HOST2:PORT2. Any of the four may be empty;
// IPv6 addresses are in brackets.
func ParseConnectTo(s string) (ConnectTo, error) {
	var e ConnectTo
	rest, err := s, error(nil)
	fail := func(err error) (ConnectTo, error) {
		return ConnectTo{}, fmt.Errorf("httpproto: connect-to %q: %w", s, err)
	}
	for i, to := range []struct {
		host *string
		port *uint16
	}{{&e.Host, &e.Port}, {&e.ToHost, &e.ToPort}} {
		*to.host, rest, err = cutHost(rest)
		if err != nil {
			return fail(err)
		}
		port, after, more := strings.Cut(rest, ":")
		if more != (i == 0) {
			return fail(errors.New("want HOST1:PORT1:HOST2:PORT2"))
		}
		if *to.port, err = parsePort(port); err != nil {
			return fail(err)
		}
		rest = after
	}
	return e, nil
}

// cutHost cuts a host and the colon after it off the front of s.
func cutHost(s string) (host, rest string, err error) {
	if in, ok := strings.CutPrefix(s, "["); ok {
		host, rest, ok = strings.Cut(in, "]:")
		if a, err := netip.ParseAddr(host); !ok || err != nil || !a.Is6() || a.Zone() != "" {
			return "", "", errors.New("want an IPv6 address without a zone in brackets, followed by a colon")
		}
		return host, rest, nil
	}
	host, rest, ok := strings.Cut(s, ":")
	if !ok {
		return "", "", errors.New("want HOST1:PORT1:HOST2:PORT2")
	}
	return host, rest, checkHost(host)
}

func parsePort(s string) (uint16, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || s[0] == '+' {
		return 0, fmt.Errorf("port %q is not within 1 to 65535", s)
	}
	return uint16(n), nil
}

func checkHost(h string) error {
	for i := range len(h) {
		if c := h[i]; c <= ' ' || c > 0x7e || strings.IndexByte("[]/@\\?#%", c) >= 0 {
			return fmt.Errorf("host %q is not a host", h)
		}
	}
	if strings.Contains(h, ":") {
		if a, err := netip.ParseAddr(h); err != nil || !a.Is6() {
			return fmt.Errorf("host %q is not a host", h)
		}
	}
	return nil
}

func (e ConnectTo) check() error { return errors.Join(checkHost(e.Host), checkHost(e.ToHost)) }

// String returns the entry as ParseConnectTo reads it.
func (e ConnectTo) String() string {
	part := func(host string, port uint16) string {
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		if port == 0 {
			return host + ":"
		}
		return host + ":" + strconv.Itoa(int(port))
	}
	return part(e.Host, e.Port) + ":" + part(e.ToHost, e.ToPort)
}

// errUnmapped says that ConnectTo has entries, but none for this host and port.
var errUnmapped = errors.New("host is not in the connect-to map")

// connectTo returns where to connect for host and port, and whether the owner
// wrote the host.
func (c *Client) connectTo(host, port string) (toHost, toPort string, own bool, err error) {
	if len(c.o.ConnectTo) == 0 {
		return host, port, false, nil
	}
	for _, e := range c.o.ConnectTo {
		if e.Host != "" && !sameHost(e.Host, host) || e.Port != 0 && strconv.Itoa(int(e.Port)) != port {
			continue
		}
		if e.ToHost != "" {
			host, own = e.ToHost, true
		}
		if e.ToPort != 0 {
			port = strconv.Itoa(int(e.ToPort))
		}
		return host, port, own, nil
	}
	return "", "", false, fmt.Errorf("%w: %s", errUnmapped, net.JoinHostPort(host, port))
}

// sameHost compares hosts without regard to case, a trailing dot, or the
// spelling of an address.
func sameHost(a, b string) bool {
	if x, err := netip.ParseAddr(a); err == nil {
		y, err := netip.ParseAddr(b)
		return err == nil && x == y
	}
	return strings.EqualFold(strings.TrimSuffix(a, "."), strings.TrimSuffix(b, "."))
}
