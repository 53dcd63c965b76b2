package javaurl

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// parseInt is Integer.parseInt, which accepts a sign, and the digits of any
// script.
func parseInt(s string, base int) (int, bool) {
	b := make([]byte, 0, 16)
	if s != "" && (s[0] == '+' || s[0] == '-') {
		b, s = append(b, s[0]), s[1:]
	}
	if s == "" {
		return 0, false
	}
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			if r == '_' || r == '+' || r == '-' {
				return 0, false
			}
			b = append(b, byte(r))
		case 0xFF21 <= r && r <= 0xFF26, 0xFF41 <= r && r <= 0xFF46:
			b = append(b, 'a'+byte((r-0xFF21)%0x20))
		case r <= 0xFFFF && unicode.IsDigit(r):
			for _, d := range unicode.Digit.R16 { // decimal digits come in tens
				if rune(d.Lo) <= r && r <= rune(d.Hi) {
					b = append(b, '0'+byte((r-rune(d.Lo))%10))
				}
			}
		default:
			return 0, false
		}
	}
	n, err := strconv.ParseInt(string(b), base, 32)
	return int(n), err == nil
}

// DecodeForm is java.net.URLDecoder: a "+" is a blank, and bytes that are
// not UTF-8 become U+FFFD.
func DecodeForm(s string) (string, error) {
	if !strings.ContainsAny(s, "%+") {
		return s, nil
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		switch s[i] {
		case '+':
			b = append(b, ' ')
			i++
		case '%':
			run := make([]byte, 0, 8)
			for i < len(s) && s[i] == '%' {
				digits := s[i+1:]
				end := 0
				for range 2 { // two characters, not bytes
					if end == len(digits) {
						return "", errEscape
					}
					_, n := utf8.DecodeRuneInString(digits[end:])
					end += n
				}
				v, ok := parseInt(digits[:end], 16)
				if !ok || v < 0 {
					return "", errEscape
				}
				run = append(run, byte(v))
				i += 1 + end
			}
			for len(run) > 0 { // Java makes one U+FFFD of a truncated sequence
				r, n := utf8.DecodeRune(run)
				if r == utf8.RuneError && n == 1 {
					n = badUTF8(run)
				}
				b = utf8.AppendRune(b, r)
				run = run[n:]
			}
		default:
			b = append(b, s[i])
			i++
		}
	}
	return string(b), nil
}

// badUTF8 returns how many bytes at the start of b become one U+FFFD: as many
// as could begin a character.
func badUTF8(b []byte) int {
	n := 1
	for n < len(b) && n < 4 {
		var whole [utf8.UTFMax]byte
		copy(whole[:], b[:n+1])
		if utf8.FullRune(whole[:n+1]) {
			break
		}
		n++
	}
	return n
}

// ToLower is String.toLowerCase: like strings.ToLower, except for the capital
// I with a dot and for a sigma at the end of a word.
func ToLower(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	b := make([]byte, 0, len(s)+4)
	for i, r := range s {
		switch r {
		case 'İ':
			b = append(b, "i̇"...)
		case 'Σ':
			if isFinalSigma(s, i) {
				b = append(b, "ς"...)
			} else {
				b = append(b, "σ"...)
			}
		default:
			b = utf8.AppendRune(b, unicode.ToLower(r))
		}
	}
	return string(b)
}

// isFinalSigma reports whether, in the word around the sigma at s[i], a cased
// letter precedes it and none follows. (Java uses the word boundaries of its
// BreakIterator, in which digits do not end a word.)
func isFinalSigma(s string, i int) bool {
	step := func(r, beyond rune) (cased, on bool) {
		switch {
		case unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt):
			return true, false
		case unicode.In(r, unicode.L, unicode.Nd, unicode.Mn, unicode.Me, unicode.Cf), r == '_':
			return false, true
		}
		return false, strings.ContainsRune("'\".:·’-", r) && unicode.In(beyond, unicode.L, unicode.Nd)
	}
	before, cased, on := s[:i], false, true
	for on && before != "" {
		r, n := utf8.DecodeLastRuneInString(before)
		before = before[:len(before)-n]
		beyond, _ := utf8.DecodeLastRuneInString(before)
		cased, on = step(r, beyond)
	}
	if !cased {
		return false
	}
	after := s[i+len("Σ"):]
	for cased, on = false, true; on && after != ""; {
		r, n := utf8.DecodeRuneInString(after)
		after = after[n:]
		beyond, _ := utf8.DecodeRuneInString(after)
		cased, on = step(r, beyond)
	}
	return !cased
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
