package htmlparse

import (
	"bytes"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// domainToASCII is UTS 46 processing with the settings of the URL standard.
var domainToASCII = idna.New(
	idna.MapForLookup(),
	idna.Transitional(false),
	idna.StrictDomainName(false),
	idna.CheckHyphens(false),
	idna.CheckJoiners(true),
	idna.BidiRule(),
	idna.VerifyDNSLength(false),
)

// maxHost limits what is passed to UTS 46, whose time is not under our control.
// No name that can be looked up is longer.
const maxHost = 1024

// appendHost appends the host of a special URL as browsers read it: in lower
// case, in ASCII, addresses in their canonical form. It returns false for an
// invalid host.
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
	if !simple || bytes.Contains(dst[start:], []byte("xn--")) {
		s, ok := complexHost(host)
		if !ok {
			return dst, false
		}
		dst = append(dst[:start], s...)
		if len(s) > 0 && s[0] == '[' {
			return dst, true
		}
	}
	if endsInNumber(dst[start:]) {
		v4, ok := parseIPv4(string(dst[start:]))
		if !ok {
			return dst, false
		}
		dst = netip.AddrFrom4(v4).AppendTo(dst[:start])
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
	name := string(unescape(host))
	if !utf8.ValidString(name) {
		return "", false
	}
	name, err := domainToASCII.ToASCII(name)
	if err != nil || name == "" {
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

func unescape(s []byte) []byte {
	if bytes.IndexByte(s, '%') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && isEscape(s[i:]) {
			n, _ := strconv.ParseUint(string(s[i+1:i+3]), 16, 8)
			out = append(out, byte(n))
			i += 2
			continue
		}
		out = append(out, s[i])
	}
	return out
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

// endsInNumber reports whether a host must be an IPv4 address: its last label
// is a number.
func endsInNumber(host []byte) bool {
	if n := len(host); n > 0 && host[n-1] == '.' {
		host = host[:n-1]
	}
	last := host[bytes.LastIndexByte(host, '.')+1:]
	if len(last) == 0 {
		return false
	}
	digits := true
	for _, c := range last {
		digits = digits && '0' <= c && c <= '9'
	}
	if digits {
		return true
	}
	_, ok := ipv4Number(string(last))
	return ok
}

// parseIPv4 parses the forms of an address that browsers do: one to four
// decimal, octal or hexadecimal numbers, the last filling the remaining bytes.
func parseIPv4(s string) (addr [4]byte, ok bool) {
	parts := strings.Split(strings.TrimSuffix(s, "."), ".")
	if len(parts) > 4 {
		return addr, false
	}
	var v uint64
	for i, part := range parts {
		n, ok := ipv4Number(part)
		if !ok {
			return addr, false
		}
		if i < len(parts)-1 {
			if n > 255 {
				return addr, false
			}
			v |= n << (8 * (3 - i))
		} else {
			if n >= 1<<(8*(5-len(parts))) {
				return addr, false
			}
			v |= n
		}
	}
	return [4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}, true
}

func ipv4Number(s string) (uint64, bool) {
	if s == "" {
		return 0, false
	}
	base := 10
	if len(s) >= 2 && s[0] == '0' {
		if s[1] == 'x' || s[1] == 'X' {
			s, base = s[2:], 16
		} else {
			s, base = s[1:], 8
		}
	}
	if s == "" {
		return 0, true
	}
	for i := range len(s) {
		if !isHex(s[i]) {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(s, base, 64)
	if err != nil {
		// Too large a number is still a number, though no address.
		return 1 << 40, err.(*strconv.NumError).Err == strconv.ErrRange
	}
	return n, true
}
