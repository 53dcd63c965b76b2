package urlfilter

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// maxRawHost limits what is worth decoding: 253 bytes of ASCII can come from
// four times as much Unicode, and that from three times as much again when
// escaped.
const maxRawHost = 253 * 4 * 3

// idnaProfile is "domain to ASCII" of the WHATWG URL standard, not strict:
// names that the DNS could not have are left to checkName.
var idnaProfile = idna.New(
	idna.MapForLookup(),
	idna.BidiRule(),
	idna.Transitional(false),
	idna.StrictDomainName(false),
	idna.CheckHyphens(false),
	idna.VerifyDNSLength(false),
)

// normalHost returns a host as in a normal URL. As in browsers, a name that is
// already ASCII is only converted to lower case: its encoded labels are the
// business of the DNS.
func normalHost(host string) (string, error) {
	if len(host) > maxRawHost {
		return "", errHost
	}
	if strings.HasPrefix(host, "[") {
		return normalIPv6(host)
	}
	host = unescapeHost(host)
	if isASCII(host) {
		host = strings.ToLower(host)
	} else {
		if !utf8.ValidString(host) || strings.ContainsRune(host, utf8.RuneError) {
			return "", errHost // idna would take it for a letter
		}
		host = strings.Map(mapLikeUnicode16, host)
		var err error
		if host, err = idnaProfile.ToASCII(host); err != nil {
			return "", errHost
		}
	}
	host = strings.TrimSuffix(host, ".")
	if !checkName(host) {
		return "", errHost
	}
	if last := host[strings.LastIndexByte(host, '.')+1:]; isNumber(last) {
		return normalIPv4(host)
	}
	return host, nil
}

// mapLikeUnicode16 maps characters that the tables of golang.org/x/net/idna,
// which are those of Unicode 15, forbid or map differently: capitals that have
// since got lower-case letters in IDNA, and characters that are ignored.
func mapLikeUnicode16(r rune) rune {
	switch {
	case r == 'ẞ':
		return 'ß'
	case r == 0x04C0: // Cyrillic palochka
		return 0x04CF
	case 0x10A0 <= r && r <= 0x10C5 || r == 0x10C7 || r == 0x10CD: // Georgian
		return r + 0x2D00 - 0x10A0
	case r == 0x2132: // turned F
		return 0x214E
	case r == 0x2183: // reversed C
		return 0x2184
	case r == 0x2F868: // ideographs that Unicode 3.2 took for others
		return 0x36FC
	case r == 0x2F874:
		return 0x5F53
	case r == 0x2F91F:
		return 0x243AB
	case r == 0x2F95F:
		return 0x7AEE
	case r == 0x2F9BF:
		return 0x45D7
	case 0x115F <= r && r <= 0x1160, r == 0x3164, r == 0xFFA0, 0x17B4 <= r && r <= 0x17B5, r == 0x180E, 0x206A <= r && r <= 0x206F:
		return -1
	}
	return r
}

// unescapeHost decodes percent escapes. Bad ones are left, and do not get past
// checkName.
func unescapeHost(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && unhex(s[i+1]) >= 0 && unhex(s[i+2]) >= 0 {
			b = append(b, byte(unhex(s[i+1])<<4|unhex(s[i+2])))
			i += 2
			continue
		}
		b = append(b, s[i])
	}
	return string(b)
}

func checkName(host string) bool {
	if len(host) > 253 {
		return false
	}
	label := 0
	for i := 0; i <= len(host); i++ {
		if i < len(host) && host[i] != '.' {
			if class[host[i]]&inHost == 0 {
				return false
			}
			continue
		}
		if n := i - label; n == 0 || n > 63 {
			return false
		}
		label = i + 1
	}
	return true
}

// isNumber reports whether a label makes the host an IPv4 address, valid or not
// ("ends in a number", WHATWG).
func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// normalIPv4 reads one to four numbers, decimal, octal or hexadecimal, the last
// of which fills the remaining bytes.
func normalIPv4(host string) (string, error) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return "", errIPv4
	}
	var addr uint32
	for i, p := range parts {
		base := 10
		if hex, ok := strings.CutPrefix(p, "0x"); ok {
			p, base = "0"+hex, 16
		} else if len(p) > 1 && p[0] == '0' {
			base = 8
		}
		n, err := strconv.ParseUint(p, base, 32)
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		if err != nil || n>>bits != 0 {
			return "", errIPv4
		}
		if i < len(parts)-1 {
			n <<= 24 - 8*i
		}
		addr |= uint32(n)
	}
	return netip.AddrFrom4([4]byte{byte(addr >> 24), byte(addr >> 16), byte(addr >> 8), byte(addr)}).String(), nil
}

func normalIPv6(host string) (string, error) {
	inner, ok := strings.CutSuffix(host[1:], "]")
	if !ok {
		return "", errIPv6
	}
	a, err := netip.ParseAddr(inner)
	if err != nil || !a.Is6() || a.Zone() != "" {
		return "", errIPv6
	}
	return "[" + a.String() + "]", nil
}
