// Package webhost reads the host of a URL as browsers do (WHATWG URL, section 3.5). A link,
// its record, its queue and the request for it must mean the same host, so the resolver of
// references, the normalizer, the keys of hosts and the client all read it here. It looks no
// name up. Start with [ASCII].
package webhost

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Unescape decodes percent escapes. A "%" that begins none stays.
func Unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b = append(b, byte(c))
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

// profile is "domain to ASCII" of the URL standard, not strict: names that the DNS could
// not have are left to the caller.
var profile = idna.New(
	idna.MapForLookup(),
	idna.Transitional(false),
	idna.StrictDomainName(false),
	idna.CheckHyphens(false),
	idna.CheckJoiners(true),
	idna.BidiRule(),
	idna.VerifyDNSLength(false),
)

// ASCII returns a name in lower-case ASCII (UTS 46, non-transitional); false if it has no
// such form. The time that takes is not under our control: limit the length of the name.
func ASCII(name string) (string, bool) {
	if !utf8.ValidString(name) {
		return "", false
	}
	name = strings.Map(mapLikeUnicode16, name)
	ascii, err := profile.ToASCII(name)
	if err != nil || strings.Contains("."+ascii+".", "..") && encodesNothing(name) {
		return "", false
	}
	return ascii, true
}

// encodesNothing reports whether the name has a label "xn--", in any spelling. It is decoded
// to nothing, and what remains of the name is that of another host.
func encodesNothing(name string) bool {
	for _, label := range strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(".\u3002\uFF0E\uFF61", r) }) {
		alone, _ := profile.ToASCII(label)
		behind, _ := profile.ToASCII("a" + label)
		if alone == "" && behind != "a" { // if it is "a", the label consists of ignored characters
			return true
		}
	}
	return false
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

// IsNumber reports whether a label in lower case is a number: as the last one, it makes
// the host an IPv4 address, valid or not.
func IsNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}

// IPv4 reads an address, in lower case and without a dot at its end: one to four numbers,
// decimal, octal or hexadecimal, the last of which fills the remaining bytes.
func IPv4(host string) (netip.Addr, bool) {
	var addr uint32
	for n, rest, more := 0, host, true; more; n++ {
		var part string
		part, rest, more = strings.Cut(rest, ".")
		base := 10
		if hex, ok := strings.CutPrefix(part, "0x"); ok {
			part, base = "0"+hex, 16
		} else if len(part) > 1 && part[0] == '0' {
			base = 8
		}
		bits := 8
		if !more {
			bits = 8 * (4 - n)
		}
		v, err := strconv.ParseUint(part, base, 32)
		if n > 3 || err != nil || v>>bits != 0 {
			return netip.Addr{}, false
		}
		addr = addr<<bits | uint32(v)
	}
	return netip.AddrFrom4([4]byte{byte(addr >> 24), byte(addr >> 16), byte(addr >> 8), byte(addr)}), true
}
