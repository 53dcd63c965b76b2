package urlfilter

import (
	"net/netip"
	"strings"

	"github.com/recrawl/recrawl/internal/webhost"
)

// maxRawHost limits what is worth decoding: 253 bytes of ASCII can come from
// four times as much Unicode, and that from three times as much again when
// escaped.
const maxRawHost = 253 * 4 * 3

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
	host = webhost.Unescape(host)
	if isASCII(host) {
		host = strings.ToLower(host)
	} else {
		var ok bool
		if host, ok = webhost.ASCII(host); !ok {
			return "", errHost
		}
	}
	host = strings.TrimSuffix(host, ".")
	if !checkName(host) {
		return "", errHost
	}
	if webhost.IsNumber(host[strings.LastIndexByte(host, '.')+1:]) {
		addr, ok := webhost.IPv4(host)
		if !ok {
			return "", errIPv4
		}
		return addr.String(), nil
	}
	return host, nil
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

// hostOf returns the host of a URL in normal form, without the port; empty if
// it has none.
func hostOf(url string) string {
	_, _, host, _, _, _ := cutURL(url)
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// pathOf returns the path of a URL; false if it has no scheme.
func pathOf(url string) (string, bool) {
	start, end, ok := pathAt(url)
	return url[start:end], ok
}

// pathAt returns where the path of a URL begins and ends; false if it has no scheme.
func pathAt(url string) (start, end int, ok bool) {
	for start < len(url) && url[start] != ':' {
		if c := url[start]; c == '/' || c == '?' || c == '#' {
			return 0, 0, false
		}
		start++
	}
	if start == 0 || start == len(url) {
		return 0, 0, false
	}
	start++
	if strings.HasPrefix(url[start:], "//") {
		for start += 2; start < len(url) && url[start] != '/'; start++ {
			if url[start] == '?' || url[start] == '#' {
				return start, start, true
			}
		}
	}
	end = len(url)
	for _, c := range [...]byte{'?', '#'} {
		if i := strings.IndexByte(url[start:end], c); i >= 0 {
			end = start + i
		}
	}
	return start, end, true
}
