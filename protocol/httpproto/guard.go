package httpproto

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// ErrBlocked is what an error of [Guard] is.
var ErrBlocked = errors.New("httpproto: address is not public")

// A BlockedError says which address was not dialled, and what it is for.
type BlockedError struct {
	Addr  netip.Addr
	Class string // "loopback", "private use", …
}

func (e *BlockedError) Error() string {
	return fmt.Sprintf("httpproto: address %s is not public: %s", e.Addr, e.Class)
}

// Is reports whether target is ErrBlocked.
func (e *BlockedError) Is(target error) bool { return target == ErrBlocked }

// A Guard knows the addresses that may be dialled on the word of a stranger. Its
// zero value lets through public unicast addresses only: nothing in the special
// purpose registries of IANA for IPv4 and IPv6 (RFC 6890, as of 2026), reachable
// or not, no multicast, no IPv6 outside of 2000::/3. An address that carries an
// IPv4 address (mapped, NAT64, ISATAP) is judged by that one too.
type Guard struct {
	// Allow are further networks that may be dialled.
	Allow []netip.Prefix
	// AllowPrivate lets through loopback, private and link-local addresses of
	// both families; never multicast or unspecified ones, nor those where clouds
	// keep the secrets of their machines (169.254.169.254 and the like).
	AllowPrivate bool
}

// special are the blocks of the IANA registries and what lies beside them that
// no web site can have. First match names the class.
var special = [...]struct {
	prefix  netip.Prefix
	class   string
	private bool
}{
	{prefix("0.0.0.0/32"), "unspecified", false},
	{prefix("0.0.0.0/8"), "this network", false},
	{prefix("10.0.0.0/8"), "private use", true},
	{prefix("100.64.0.0/10"), "shared address space", false},
	{prefix("127.0.0.0/8"), "loopback", true},
	// Where machines in a cloud are told their secrets: nothing that a crawl of
	// private addresses is after, so that only Allow lets them through.
	{prefix("169.254.169.254/32"), "cloud metadata", false},
	{prefix("169.254.170.2/32"), "cloud metadata", false},
	{prefix("fd00:ec2::254/128"), "cloud metadata", false},
	{prefix("169.254.0.0/16"), "link-local", true},
	{prefix("172.16.0.0/12"), "private use", true},
	{prefix("192.0.0.0/24"), "protocol assignments", false},
	{prefix("192.0.2.0/24"), "documentation", false},
	{prefix("192.31.196.0/24"), "AS112", false},
	{prefix("192.52.193.0/24"), "AMT", false},
	{prefix("192.88.99.0/24"), "6to4 relay", false},
	{prefix("192.168.0.0/16"), "private use", true},
	{prefix("192.175.48.0/24"), "AS112", false},
	{prefix("198.18.0.0/15"), "benchmarking", false},
	{prefix("198.51.100.0/24"), "documentation", false},
	{prefix("203.0.113.0/24"), "documentation", false},
	{prefix("224.0.0.0/4"), "multicast", false},
	{prefix("255.255.255.255/32"), "broadcast", false},
	{prefix("240.0.0.0/4"), "reserved", false},
	// Public by number, but every Azure machine finds its host's agent there.
	{prefix("168.63.129.16/32"), "cloud metadata", false},

	{prefix("::/128"), "unspecified", false},
	{prefix("::1/128"), "loopback", true},
	{prefix("::/96"), "IPv4-compatible", false},
	{prefix("64:ff9b:1::/48"), "local NAT64", false},
	{prefix("100::/64"), "discard-only", false},
	{prefix("100:0:0:1::/64"), "dummy prefix", false},
	{prefix("2001::/32"), "Teredo", false},
	{prefix("2001:2::/48"), "benchmarking", false},
	{prefix("2001::/23"), "protocol assignments", false},
	{prefix("2001:db8::/32"), "documentation", false},
	{prefix("2002::/16"), "6to4", false},
	{prefix("2620:4f:8000::/48"), "AS112", false},
	{prefix("3fff::/20"), "documentation", false},
	{prefix("5f00::/16"), "segment routing", false},
	{prefix("fc00::/7"), "unique local", true},
	{prefix("fe80::/10"), "link-local", true},
	{prefix("fec0::/10"), "site-local", false},
	{prefix("ff00::/8"), "multicast", false},
}

var (
	global6 = prefix("2000::/3")
	nat64   = prefix("64:ff9b::/96")
)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// Check returns nil if a may be dialled, or a *BlockedError.
func (g Guard) Check(a netip.Addr) error {
	a = a.WithZone("").Unmap()
	if !a.IsValid() {
		return &BlockedError{a, "invalid"}
	}
	for _, p := range g.Allow {
		if p.Contains(a) {
			return nil
		}
	}
	for _, s := range special {
		if s.prefix.Contains(a) {
			if s.private && g.AllowPrivate {
				return nil
			}
			return &BlockedError{a, s.class}
		}
	}
	if a.Is4() {
		return nil
	}
	// NAT64 is how a host without IPv4 reaches the rest of the web. ISATAP hides
	// an IPv4 address in the interface identifier (RFC 5214).
	b := a.As16()
	carried := netip.AddrFrom4([4]byte(b[12:]))
	isatap := b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
	if nat64.Contains(a) || isatap {
		var blocked *BlockedError
		if errors.As(g.Check(carried), &blocked) {
			return &BlockedError{a, blocked.Class + " in IPv6"}
		}
	}
	if nat64.Contains(a) || global6.Contains(a) {
		return nil
	}
	return &BlockedError{a, "unassigned"}
}

// Control checks the address that is about to be dialled. It is for
// net.Dialer.Control, where no name and no second lookup can come between.
func (g Guard) Control(network, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s %q", ErrBlocked, network, address)
	}
	return g.Check(ap.Addr())
}
