package httpproto

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// ErrBlocked is the error that those of [Guard] wrap.
var ErrBlocked = errors.New("httpproto: address is blocked")

// A BlockedError says which address was not dialled, and of what class it is.
type BlockedError struct {
	Addr  netip.Addr
	Class string // "loopback", "private use", "denied", …
}

// Error names the address and its class.
func (e *BlockedError) Error() string {
	return fmt.Sprintf("httpproto: address %s is blocked: %s", e.Addr, e.Class)
}

// Is reports whether target is ErrBlocked.
func (e *BlockedError) Is(target error) bool { return target == ErrBlocked }

// A Guard decides which addresses may be dialled for a URL that was found. Its
// zero value allows public unicast addresses only: nothing in IANA's
// special-purpose registries for IPv4 and IPv6 (RFC 6890, as of 2026),
// reachable or not, no multicast, no IPv6 outside 2000::/3. An address that
// embeds an IPv4 address (mapped, NAT64, ISATAP) is judged by that one too.
//
// A network may have its own NAT64 prefix, which is not known here; if so,
// add it to Deny.
type Guard struct {
	// Allow lists further networks that may be dialled.
	Allow []netip.Prefix
	// AllowPrivate allows loopback, private and link-local addresses of both
	// families; never multicast or unspecified ones, nor those at which clouds
	// keep the secrets of their machines (169.254.169.254 and the like).
	AllowPrivate bool
	// Deny lists networks that are never dialled, whatever else allows them. An
	// IPv4 prefix also applies to every IPv6 address that embeds such an
	// address.
	Deny []netip.Prefix
	// Only, unless empty, lists the networks outside of which nothing is
	// dialled. It allows nothing by itself: private networks in it must be
	// allowed as well.
	Only []netip.Prefix
}

// special lists the blocks of the IANA registries and others that no web site
// can have. The first match names the class.
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
	// Where machines in a cloud get their secrets, which no crawl of private
	// addresses is after, so only Allow permits them. AWS has more than one
	// service in these two networks, Tencent and Scaleway have an address each,
	// OpenStack 169.254.169.254 in IPv6 form.
	{prefix("169.254.169.0/24"), "cloud metadata", false},
	{prefix("169.254.170.0/24"), "cloud metadata", false},
	{prefix("169.254.0.23/32"), "cloud metadata", false},
	{prefix("169.254.42.42/32"), "cloud metadata", false},
	{prefix("fd00:ec2::/32"), "cloud metadata", false},
	{prefix("fd20:ce::/32"), "cloud metadata", false},
	{prefix("fd00:42::42/128"), "cloud metadata", false},
	{prefix("fe80::a9fe:a9fe/128"), "cloud metadata", false},
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
	global6    = prefix("2000::/3")
	nat64      = prefix("64:ff9b::/96")
	nat64Local = prefix("64:ff9b:1::/48")
	compatible = prefix("::/96")
	sixToFour  = prefix("2002::/16")
	teredo     = prefix("2001::/32")
)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// Check returns nil if a may be dialled, or a *BlockedError.
func (g Guard) Check(a netip.Addr) error {
	a = a.WithZone("").Unmap()
	if !a.IsValid() {
		return &BlockedError{a, "invalid"}
	}
	if within(g.Deny, a) {
		return &BlockedError{a, "denied"}
	}
	carried := carries(a)
	if slices.ContainsFunc(carried, func(c netip.Addr) bool { return within(g.Deny, c) }) {
		return &BlockedError{a, "denied in IPv6"}
	}
	if len(g.Only) > 0 && !within(g.Only, a) && !(nat64.Contains(a) && within(g.Only, carried[0])) {
		return &BlockedError{a, "not among the only ones"}
	}
	if within(g.Allow, a) {
		return nil
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
	inner := Guard{Allow: g.Allow, AllowPrivate: g.AllowPrivate}
	for _, c := range carried {
		var blocked *BlockedError
		if errors.As(inner.Check(c), &blocked) {
			return &BlockedError{a, blocked.Class + " in IPv6"}
		}
	}
	if nat64.Contains(a) || global6.Contains(a) {
		return nil
	}
	return &BlockedError{a, "unassigned"}
}

func within(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(a) })
}

// carries returns the IPv4 addresses that may be embedded in an IPv6 address.
func carries(a netip.Addr) []netip.Addr {
	if !a.Is6() {
		return nil
	}
	b := a.As16()
	v4 := func(w, x, y, z byte) netip.Addr { return netip.AddrFrom4([4]byte{w, x, y, z}) }
	last := v4(b[12], b[13], b[14], b[15])
	var all []netip.Addr
	switch {
	case nat64.Contains(a), compatible.Contains(a): // RFC 6052, RFC 4291
		all = append(all, last)
	case nat64Local.Contains(a): // RFC 8215: at its end, or where RFC 6052 has it in a /48
		all = append(all, last, v4(b[6], b[7], b[9], b[10]))
	case sixToFour.Contains(a): // RFC 3056
		all = append(all, v4(b[2], b[3], b[4], b[5]))
	case teredo.Contains(a): // RFC 4380: the server, and the client with its bits turned
		all = append(all, v4(b[4], b[5], b[6], b[7]), v4(^b[12], ^b[13], ^b[14], ^b[15]))
	}
	if b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe { // ISATAP, RFC 5214
		all = append(all, last)
	}
	return all
}

// Control checks the address that is about to be dialled. It is for
// net.Dialer.Control, after which no name and no second lookup can intervene.
func (g Guard) Control(network, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s %q", ErrBlocked, network, address)
	}
	return g.Check(ap.Addr())
}
