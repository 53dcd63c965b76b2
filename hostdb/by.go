package hostdb

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/webhost"
)

// By says which URLs belong together: which share a queue, and so grants and pauses,
// which count towards one limit, and which have to be on one fetch list. (Nutch:
// fetcher.queue.mode, generate.count.mode, partition.url.mode.)
type By uint8

const (
	ByHost   By = iota // the host
	ByDomain           // the registered domain: see By.Key
	ByIP               // the address that the host resolves to
)

// String returns Nutch's word.
func (b By) String() string {
	switch b {
	case ByDomain:
		return "byDomain"
	case ByIP:
		return "byIP"
	}
	return "byHost"
}

// ParseBy is the inverse of String; case does not matter, and the "by" may be
// left out.
func ParseBy(word string) (By, error) {
	for _, b := range []By{ByHost, ByDomain, ByIP} {
		if w := b.String(); strings.EqualFold(w, word) || strings.EqualFold(w[2:], word) {
			return b, nil
		}
	}
	return 0, fmt.Errorf("hostdb: unknown %q; want host, domain or ip", word)
}

// Key returns the name of the queue a URL belongs to; empty if the URL has no
// host. By address it is the key of the host, whose address the caller has to
// look up: see [AddrKey].
//
// All spellings of a host have one key. Scheme, port, user information, case and
// trailing dots do not count; a name that is not ASCII has the key of its ASCII
// form (UTS 46); an address has that of [AddrKey], and anything that browsers
// take for an IPv4 address (0x7f.1) is one.
//
// By domain, hosts under a top-level name that the public suffix list does not
// have, such as those of an intranet, share the key of their last two labels:
// a.b.corp has that of b.corp. In Nutch each such host is its own domain: see
// [By.NutchKey].
func (b By) Key(url string) string { return b.HostKey(crawldb.Host(url)) }

// HostKey is the Key of the URLs of a host.
func (b By) HostKey(host string) string {
	key := b.NutchHostKey(host)
	if b == ByDomain && Suffix(key) == "" && !isAddr(key) {
		key = lastTwo(key)
	}
	return key
}

// NutchKey is Key with domains as Nutch sees them: see [Domain].
func (b By) NutchKey(url string) string { return b.NutchHostKey(crawldb.Host(url)) }

// NutchHostKey is the NutchKey of the URLs of a host.
func (b By) NutchHostKey(host string) string {
	host = canonical(host)
	if b == ByDomain {
		return Domain(host)
	}
	return host
}

// Lookup asks the system's resolver for the addresses of a host.
func Lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// isAddr reports whether a canonical host is an address.
func isAddr(host string) bool {
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil
}

// lastTwo returns the last two labels of a host: its domain by the default rule
// of the public suffix list.
func lastTwo(host string) string {
	i := strings.LastIndexByte(host, '.')
	if i < 0 || host[0] == '.' || strings.Contains(host, "..") {
		return host
	}
	domain := host[strings.LastIndexByte(host[:i], '.')+1:]
	if _, ok := parseIPv4(domain); ok { // a name that ends in numbers is not a domain
		return host
	}
	return domain
}

// AddrKey returns the name of the queue of an address, "192.0.2.1" or
// "[2001:db8::1]", which is the key of a URL whose host is that address. The
// zone is ignored, and an IPv4-mapped IPv6 address counts as the IPv4 address.
func AddrKey(a netip.Addr) string {
	if a = a.Unmap().WithZone(""); a.Is4() {
		return a.String()
	}
	return "[" + a.String() + "]"
}

// canonical returns the key of a host in lower case.
func canonical(host string) string {
	if host == "" {
		return ""
	}
	if host[0] == '[' {
		if a, err := netip.ParseAddr(strings.TrimSuffix(host[1:], "]")); err == nil {
			return AddrKey(a)
		}
		return host
	}
	for i := range len(host) {
		if host[i] >= 0x80 || host[i] == '%' {
			if ascii, ok := webhost.ASCII(webhost.Unescape(host)); ok {
				host = ascii
			}
			break
		}
	}
	host = strings.TrimRight(host, ".")
	if a, ok := parseIPv4(host); ok {
		return a.String()
	}
	return host
}

// parseIPv4 returns the address that a host without a dot at its end is for browsers, in any
// of its spellings.
func parseIPv4(host string) (netip.Addr, bool) {
	if !webhost.IsNumber(host[strings.LastIndexByte(host, '.')+1:]) {
		return netip.Addr{}, false
	}
	return webhost.IPv4(host)
}

// Domain returns the registered domain of a host, one label more than [Suffix],
// or the host itself if it is a public suffix or has none. (Nutch:
// URLUtil.getDomainName.)
func Domain(host string) string {
	suffix := Suffix(host)
	if suffix == "" || strings.Contains(host, "..") || host[0] == '.' {
		return host
	}
	// By the number of labels: the suffix may be spelled differently from the
	// host.
	host = strings.TrimSuffix(host, ".")
	domain := len(host)
	for range strings.Count(suffix, ".") + 2 {
		if domain = strings.LastIndexByte(host[:domain], '.'); domain < 0 {
			return host
		}
	}
	return host[domain+1:]
}

// Suffix returns the public suffix of a host, "co.uk" of "www.example.co.uk", in
// ASCII. It is empty for an address, and for a host under a name that the list
// does not have. As in Nutch, only the ICANN section of the public suffix list
// counts: the private section lists services that give names to their customers
// ("github.io"), whose hosts mostly share machines and belong in one queue.
func Suffix(host string) string {
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil || host == "" {
		return ""
	}
	host = strings.TrimSuffix(host, ".")
	if ascii, err := idna.ToASCII(strings.ToLower(host)); err == nil {
		host = ascii
	}
	for {
		suffix, icann := publicsuffix.PublicSuffix(host)
		if icann {
			return suffix
		}
		// Of a suffix with a single label there is no rule; any other is private,
		// and what it is below may be not.
		var ok bool
		if _, host, ok = strings.Cut(suffix, "."); !ok {
			return ""
		}
	}
}

// TLD returns the top-level domain of a host, empty where [Suffix] is.
func TLD(host string) string {
	suffix := Suffix(host)
	return suffix[strings.LastIndexByte(suffix, '.')+1:]
}
