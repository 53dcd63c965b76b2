package httpproto_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// blocks are those of IANA's special-purpose registries for IPv4 and IPv6, and some more: the
// first and last address of each is refused.
var blocks = []struct{ prefix, class string }{
	{"0.0.0.0/8", ""}, {"0.0.0.0/32", "unspecified"},
	{"10.0.0.0/8", "private use"},
	{"100.64.0.0/10", "shared address space"},
	{"127.0.0.0/8", "loopback"},
	{"169.254.0.0/16", "link-local"}, {"169.254.169.254/32", "cloud metadata"}, {"169.254.170.2/32", "cloud metadata"},
	{"172.16.0.0/12", "private use"},
	{"192.0.0.0/24", "protocol assignments"}, {"192.0.0.0/29", ""}, {"192.0.0.8/32", ""},
	{"192.0.0.9/32", ""}, {"192.0.0.10/32", ""}, {"192.0.0.170/32", ""}, {"192.0.0.171/32", ""},
	{"192.0.2.0/24", "documentation"},
	{"192.31.196.0/24", "AS112"},
	{"192.52.193.0/24", "AMT"},
	{"192.88.99.0/24", "6to4 relay"},
	{"192.168.0.0/16", "private use"},
	{"192.175.48.0/24", "AS112"},
	{"198.18.0.0/15", "benchmarking"},
	{"198.51.100.0/24", "documentation"},
	{"203.0.113.0/24", "documentation"},
	{"240.0.0.0/4", ""},
	{"255.255.255.255/32", "broadcast"},
	{"224.0.0.0/4", "multicast"},

	{"::1/128", "loopback"},
	{"::/128", "unspecified"},
	{"::ffff:0.0.0.0/104", ""}, {"::ffff:127.0.0.0/104", "loopback"}, {"::ffff:10.0.0.0/104", "private use"},
	{"64:ff9b::7f00:0/104", "loopback in IPv6"}, {"64:ff9b::a00:0/104", "private use in IPv6"},
	{"64:ff9b:1::/48", "local NAT64"},
	{"100::/64", "discard-only"},
	{"100:0:0:1::/64", "dummy prefix"},
	{"2001::/23", ""}, {"2001::/32", "Teredo"}, {"2001:1::1/128", ""}, {"2001:1::2/128", ""}, {"2001:1::3/128", ""},
	{"2001:2::/48", "benchmarking"}, {"2001:3::/32", ""}, {"2001:4:112::/48", ""}, {"2001:10::/28", ""},
	{"2001:20::/28", ""}, {"2001:30::/28", ""},
	{"2001:db8::/32", "documentation"},
	{"2002::/16", "6to4"},
	{"2620:4f:8000::/48", "AS112"},
	{"3fff::/20", "documentation"},
	{"5f00::/16", "segment routing"},
	{"fc00::/7", "unique local"}, {"fd00:ec2::254/128", "cloud metadata"}, {"fd20:ce::254/128", "cloud metadata"},
	{"fe80::/10", "link-local"}, {"fe80::a9fe:a9fe/128", "cloud metadata"}, {"::ffff:0:127.0.0.1/128", "unassigned"},
	{"fec0::/10", "site-local"},
	{"ff00::/8", "multicast"},
}

func lastAddr(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < 8*len(b); i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func TestGuardRefusesEverySpecialBlock(t *testing.T) {
	for _, b := range blocks {
		p := netip.MustParsePrefix(b.prefix)
		for _, a := range []netip.Addr{p.Addr(), lastAddr(p)} {
			err := httpproto.Guard{}.Check(a)
			var blocked *httpproto.BlockedError
			if !errors.Is(err, httpproto.ErrBlocked) || !errors.As(err, &blocked) {
				t.Errorf("%s in %s: error %v, want ErrBlocked", a, b.prefix, err)
			} else if b.class != "" && blocked.Class != b.class {
				t.Errorf("%s in %s: class %q, want %q", a, b.prefix, blocked.Class, b.class)
			}
			// The same IPv4 address in IPv6 clothes.
			if a.Is4() {
				v4 := a.As4()
				for _, dress := range []string{"::ffff:0:0", "::", "64:ff9b::", "2a00::5efe:0:0", "2a00::200:5efe:0:0"} {
					v6 := netip.MustParseAddr(dress).As16()
					copy(v6[12:], v4[:])
					if err := (httpproto.Guard{}).Check(netip.AddrFrom16(v6)); !errors.Is(err, httpproto.ErrBlocked) {
						t.Errorf("%s as %s: error %v, want ErrBlocked", a, netip.AddrFrom16(v6), err)
					}
				}
			}
		}
	}
}

// TestNothingSpecialIsDialled takes an address of each block along every way that
// a stranger's word can lead to a dial.
func TestNothingSpecialIsDialled(t *testing.T) {
	noLeak(t)
	proxy := serveRaw(t, func(net.Conn) {})
	var answer netip.Addr
	resolve := func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{answer, answer, answer}, nil
	}
	ways := map[string]struct {
		o   httpproto.Options
		url func(netip.Addr) string
	}{
		"address": {httpproto.Options{}, func(a netip.Addr) string { return "http://" + net.JoinHostPort(a.String(), "80") + "/" }},
		"name":    {httpproto.Options{}, func(netip.Addr) string { return "https://name.example/" }},
		"mapped name": {
			httpproto.Options{ConnectTo: []httpproto.ConnectTo{{ToHost: "other.example"}}},
			func(netip.Addr) string { return "http://name.example/" },
		},
		"mapped port": {
			httpproto.Options{ConnectTo: []httpproto.ConnectTo{{ToPort: 8080}}},
			func(a netip.Addr) string { return "http://" + net.JoinHostPort(a.String(), "80") + "/" },
		},
		"proxy": {httpproto.Options{Proxy: strings.TrimSuffix(proxy.url, "/")}, func(netip.Addr) string { return "http://name.example/" }},
		"proxy, address": {
			httpproto.Options{Proxy: strings.TrimSuffix(proxy.url, "/")},
			func(a netip.Addr) string { return "https://" + net.JoinHostPort(a.String(), "443") + "/" },
		},
		"rewritten request": {httpproto.Options{RoundTripper: func(rt http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				r = r.Clone(r.Context())
				r.URL.Host = net.JoinHostPort(answer.String(), "80")
				return rt.RoundTrip(r)
			})
		}}, func(netip.Addr) string { return "http://name.example/" }},
	}
	for way, k := range ways {
		k.o.Agent, k.o.Resolver = "bot", resolve
		c, err := httpproto.New(k.o)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			answer = netip.MustParsePrefix(b.prefix).Addr()
			r := fetch(t, c, protocol.Request{URL: k.url(answer)})
			if r.Outcome.Code != protocol.Refused || !strings.HasPrefix(r.Outcome.Reason, "address: ") || r.Addr != "" {
				t.Errorf("%s: %s: %+v of %q", way, answer, r.Outcome, r.Addr)
			}
		}
		c.Close()
	}
	if n := proxy.accepted.Load(); n > 0 {
		t.Errorf("%d connections to the proxy", n)
	}
}

// TestGuardRefusesWhatNetipLetsThrough lists addresses that crawlers have been
// sent to; netip's own predicates call most of them global unicast.
func TestGuardRefusesWhatNetipLetsThrough(t *testing.T) {
	for _, s := range []string{
		"127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "0.0.0.0",
		"100.64.0.1", "192.0.2.1", "198.18.0.1", "240.0.0.1", "255.255.255.255", "224.0.0.1",
		"::1", "::", "::127.0.0.1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::",
		"2001::7f00:1", "fec0::1", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "100::1", "2001:db8::1", "5f00::1",
		"168.63.129.16", "192.0.0.192", "100.100.100.200", "4000::1", "e000::1", "::2:0:0:1",
	} {
		if err := (httpproto.Guard{}).Check(netip.MustParseAddr(s)); !errors.Is(err, httpproto.ErrBlocked) {
			t.Errorf("%s: error %v, want ErrBlocked", s, err)
		}
	}
	if err := (httpproto.Guard{}).Check(netip.Addr{}); !errors.Is(err, httpproto.ErrBlocked) {
		t.Errorf("no address: error %v, want ErrBlocked", err)
	}
}

func TestGuardLetsPublicAddressesThrough(t *testing.T) {
	for _, s := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "128.0.0.0", "172.15.255.255",
		"172.32.0.0", "192.0.1.0", "192.167.255.255", "198.20.0.0", "223.255.255.255", "168.63.129.17",
		"2000::1", "2001:200::1", "2606:4700::1111", "2a00:1450:4001::2e", "3ffe::1", "3fff:1000::1",
		"::ffff:8.8.8.8", "64:ff9b::808:808", "2a00::5efe:808:808",
		// Nearly ISATAP, with what would be a private address.
		"2a00::1:5efe:a00:1", "2a00::100:5efe:a00:1", "2a00::5eff:a00:1", "2a00::5ffe:a00:1",
	} {
		if err := (httpproto.Guard{}).Check(netip.MustParseAddr(s)); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestGuardOptions(t *testing.T) {
	private := httpproto.Guard{AllowPrivate: true}
	allow := httpproto.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fd12::/16")}}
	networks := func(all ...string) (out []netip.Prefix) {
		for _, s := range all {
			out = append(out, netip.MustParsePrefix(s))
		}
		return out
	}
	deny := httpproto.Guard{
		Allow: networks("10.0.0.0/8", "2001::/32", "2002::/16", "64:ff9b:1::/48", "::/96"),
		Deny:  networks("203.0.112.0/24", "2600::/16", "10.1.0.0/16"),
	}
	only := httpproto.Guard{
		Allow: networks("192.168.0.0/24"), Deny: networks("8.8.4.0/24"),
		Only: networks("8.8.0.0/16", "10.0.0.0/8", "192.168.0.0/16", "2606:4700::/32"),
	}
	for _, c := range []struct {
		guard httpproto.Guard
		addr  string
		ok    bool
	}{
		{private, "127.0.0.1", true}, {private, "::1", true}, {private, "10.1.2.3", true}, {private, "fd00::1", true},
		{private, "fe80::1%lo", true}, {private, "169.254.1.1", true}, {private, "::ffff:127.0.0.1", true}, {private, "64:ff9b::a00:1", true},
		{private, "0.0.0.0", false}, {private, "::", false}, {private, "224.0.0.1", false}, {private, "ff02::1", false},
		{private, "100.64.0.1", false}, {private, "192.0.2.1", false}, {private, "::ffff:224.0.0.1", false}, {private, "2002:7f00:1::", false},
		{allow, "100.64.0.1", true}, {allow, "::ffff:100.64.0.1", true}, {allow, "64:ff9b::6440:1", true}, {allow, "fd12::1", true},
		{private, "169.254.169.254", false}, {private, "169.254.170.2", false}, {private, "fd00:ec2::254", false}, {private, "::ffff:169.254.169.254", false},
		{private, "64:ff9b::a9fe:a9fe", false}, {httpproto.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("169.254.169.254/32")}}, "169.254.169.254", true},
		{allow, "fd13::1", false}, {allow, "10.0.0.1", false},
		{private, "169.254.169.253", false}, {private, "169.254.170.23", false}, {private, "169.254.0.23", false}, {private, "169.254.42.42", false},
		{private, "fd00:ec2::23", false}, {private, "fd20:ce::254", false}, {private, "fd00:42::42", false}, {private, "fe80::a9fe:a9fe%eth0", false},
		{deny, "203.0.112.1", false}, {deny, "203.0.114.1", true}, {deny, "::ffff:203.0.112.1", false}, {deny, "64:ff9b::cb00:7001", false},
		{deny, "64:ff9b::cb00:7201", true}, {deny, "2a00::5efe:cb00:7001", false}, {deny, "2a00::1", true}, {deny, "2600::1", false},
		{deny, "127.0.0.1", false}, {deny, "10.0.0.1", true}, {deny, "10.1.0.1", false}, {deny, "64:ff9b::a01:1", false},
		// What is allowed as a whole is judged by what it carries, too.
		{deny, "2002:cb00:7001::1", false}, {deny, "2002:cb00:7201::1", true}, {deny, "2001:0:cb00:7001::", false}, {deny, "2001::34ff:8ffe", false},
		{deny, "2001:0:cb00:7201::", true}, {deny, "64:ff9b:1::cb00:7001", false}, {deny, "64:ff9b:1:cb00:70:100::", false}, {deny, "64:ff9b:1::cb00:7201", true},
		{deny, "::cb00:7001", false}, {deny, "::cb00:7201", true},
		{only, "8.8.8.8", true}, {only, "8.9.0.1", false}, {only, "64:ff9b::808:808", true}, {only, "64:ff9b::809:1", false}, {only, "2a00::1", false},
		{only, "2606:4700::1", true}, {only, "10.0.0.1", false}, {only, "127.0.0.1", false}, {only, "8.8.4.4", false}, {only, "192.168.0.1", true},
	} {
		if err := c.guard.Check(netip.MustParseAddr(c.addr)); (err == nil) != c.ok {
			t.Errorf("%+v: %s: error %v, want allowed %v", c.guard, c.addr, err, c.ok)
		}
	}
}

func TestGuardControl(t *testing.T) {
	var g httpproto.Guard
	for addr, ok := range map[string]bool{
		"8.8.8.8:80": true, "[2a00::1]:443": true, "127.0.0.1:80": false, "[::1]:80": false, "[fe80::1%eth0]:80": false,
		"localhost:80": false, "": false, "@abstract": false,
	} {
		if err := g.Control("tcp", addr, nil); (err == nil) != ok || err != nil && !errors.Is(err, httpproto.ErrBlocked) {
			t.Errorf("Control(%q) = %v, want allowed %v", addr, err, ok)
		}
	}
}
