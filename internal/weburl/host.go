package weburl

import (
	"bytes"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/recrawl/recrawl/internal/webhost"
)

// maxHost limits what is passed to UTS 46, whose time is not under our control.
// No name that can be looked up is longer.
const maxHost = 1024

// appendHost appends the host of a special URL as browsers read it: in lower
// case, in ASCII, addresses in their canonical form. Encoded labels ("xn--") of a name in
// ASCII stay as they are, valid or not. It returns false for an invalid host.
func appendHost(dst, host []byte) ([]byte, bool) {
	start := len(dst)
	simple := len(host) > 0
	for _, c := range host {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '.', c == '_':
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		default:
			simple = false
		}
		dst = append(dst, c)
	}
	if !simple {
		s, ok := complexHost(host)
		if !ok {
			return dst, false
		}
		dst = append(dst[:start], s...)
		if len(s) > 0 && s[0] == '[' {
			return dst, true
		}
	}
	name := bytes.TrimSuffix(dst[start:], []byte("."))
	if webhost.IsNumber(string(name[bytes.LastIndexByte(name, '.')+1:])) {
		addr, ok := webhost.IPv4(string(name))
		if !ok {
			return dst, false
		}
		dst = addr.AppendTo(dst[:start])
	}
	return dst, true
}

func complexHost(host []byte) (string, bool) {
	if len(host) > 0 && host[0] == '[' {
		return ipv6(host)
	}
	if len(host) > maxHost {
		return "", false
	}
	name := webhost.Unescape(string(host))
	if ascii := !strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }); ascii {
		name = strings.ToLower(name)
	} else {
		var ok bool
		if name, ok = webhost.ASCII(name); !ok {
			return "", false
		}
	}
	if name == "" {
		return "", false
	}
	for i := range len(name) {
		// In addition to what the standard forbids, net/url refuses three more.
		if c := name[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("#/:<>?@[\\]^|%`{}\"", c) >= 0 {
			return "", false
		}
	}
	return name, true
}

// ipv6 parses an address in brackets and formats it as in RFC 5952, without
// dots.
func ipv6(host []byte) (string, bool) {
	if len(host) < 2 || host[len(host)-1] != ']' {
		return "", false
	}
	addr, err := netip.ParseAddr(string(host[1 : len(host)-1]))
	if err != nil || !addr.Is6() || addr.Zone() != "" {
		return "", false
	}
	if addr.Is4In6() {
		a := addr.As16()
		return "[::ffff:" + strconv.FormatUint(uint64(a[12])<<8|uint64(a[13]), 16) + ":" +
			strconv.FormatUint(uint64(a[14])<<8|uint64(a[15]), 16) + "]", true
	}
	return "[" + addr.String() + "]", true
}
