package javaurl

import "strings"

// isIPv6Literal implements the check of sun.net.util.IPAddressUtil for the inside
// of the brackets: eight groups of up to four digits, or fewer around one "::";
// the last two groups may be an IPv4 address; then anything after a "%" that
// is neither the first nor the last character.
func isIPv6Literal(s string) bool {
	if i := strings.IndexByte(s, '%'); i >= 0 {
		if i == len(s)-1 {
			return false
		}
		s = s[:i]
	}
	if len(s) < 2 || s[0] == ':' && s[1] != ':' {
		return false
	}
	size, gap, i := 0, false, 0
	if s[0] == ':' {
		i = 1
	}
	start, digits, value := i, false, 0
	for i < len(s) {
		c := s[i]
		i++
		if d := unhex(c); d >= 0 {
			if value = value<<4 | d; value > 0xFFFF {
				return false
			}
			digits = true
			continue
		}
		switch {
		case c == ':':
			start = i
			if !digits {
				if gap {
					return false
				}
				gap = true
				continue
			}
			if i == len(s) || size+2 > 16 {
				return false
			}
			size, digits, value = size+2, false, 0
		case c == '.' && size+4 <= 16:
			if !isIPv4Literal(s[start:]) {
				return false
			}
			if size += 4; gap {
				return size < 16
			}
			return size == 16
		default:
			return false
		}
	}
	if digits {
		if size+2 > 16 {
			return false
		}
		size += 2
	}
	if gap {
		return size < 16
	}
	return size == 16
}

func isIPv4Literal(s string) bool {
	parts := strings.Split(s, ".")
	if len(parts) != 4 || len(s) > 15 {
		return false
	}
	for _, p := range parts {
		if n, ok := parseInt(p, 10); !ok || n > 255 || strings.Trim(p, "0123456789") != "" {
			return false
		}
	}
	return true
}
