package urlfilter

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// normalizeNutch is Nutch's BasicURLNormalizer. The two Java classes it relies
// on are in javaurl.go and javauri.go.
func (b Basic) normalizeNutch(s string) (string, error) {
	s = strings.TrimFunc(s, isJavaBlank)
	if s == "" {
		return "", nil
	}
	u, err := parseJavaURL(s, b.javaKnows)
	if err != nil {
		return "", err
	}
	changed := !strings.HasPrefix(s, u.protocol)
	host, port, file := u.host, u.port, u.file()
	dots := u.protocol == "file"
	if u.protocol == "http" || u.protocol == "https" || u.protocol == "ftp" {
		if host, err = b.hostNutch(host); err != nil {
			return "", err
		}
		// An authority that is more than the host has a user or a port, perhaps
		// an empty one.
		changed = changed || !u.server || host != u.host || u.authority != host || u.hasRef
		if port == u.defaultPort() {
			port, changed = -1, true
		}
		dots = strings.HasPrefix(file, "/")
		if !dots {
			file, changed = "/"+file, true
		}
	}
	if escaped := escapeNutch(file); escaped != file {
		file, changed = escaped, true
	}
	if dots {
		// While nothing has changed, the fragment of a file URL is still there.
		v := u
		if changed {
			if v, err = makeJavaURL(u.protocol, host, port, file); err != nil {
				return "", err
			}
		}
		f, err := b.removeDotsNutch(v)
		if err != nil {
			return "", err
		}
		if f != file {
			file, changed = f, true
		}
	}
	if !changed {
		return s, nil
	}
	v, err := makeJavaURL(u.protocol, host, port, file)
	if err != nil {
		return "", err
	}
	if u.hasUser && u.protocol != "http" && u.protocol != "https" {
		v.authority = u.user + "@" + v.authority
	}
	return v.String(), nil
}

// javaKnows reports whether java.net.URL has a handler for a protocol: those of
// Java, unless Schemes are given.
func (b Basic) javaKnows(protocol string) bool {
	if b.Schemes != nil {
		return slices.Contains(b.Schemes, protocol)
	}
	switch protocol {
	case "http", "https", "ftp", "file", "mailto":
		return true
	}
	return false
}

func (b Basic) hostNutch(host string) (string, error) {
	if strings.Contains(host, "%") {
		var err error
		if host, err = decodeJavaForm(host); err != nil {
			return "", err
		}
	}
	host = lowerJava(host)
	switch {
	case b.HostIDN == ToASCII && !isASCII(host):
		h, err := b.asciiNutch(host)
		if err != nil {
			return "", err
		}
		host = h
	case b.HostIDN == ToUnicode && strings.Contains(host, "xn--"):
		h, err := b.unicodeNutch(host)
		if err != nil {
			return "", err
		}
		host = h
	}
	if b.TrimTrailingDot {
		host = strings.TrimSuffix(host, ".")
	}
	return host, nil
}

// decodeJavaForm is java.net.URLDecoder: a "+" is a blank, and bytes that are
// not UTF-8 become U+FFFD.
func decodeJavaForm(s string) (string, error) {
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
						return "", errJavaEscape
					}
					_, n := utf8.DecodeRuneInString(digits[end:])
					end += n
				}
				v, ok := parseJavaInt(digits[:end], 16)
				if !ok || v < 0 {
					return "", errJavaEscape
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

// lowerJava is String.toLowerCase: like strings.ToLower, except for the capital
// I with a dot and for a sigma at the end of a word.
func lowerJava(s string) string {
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

// idna2003 and idna2008 map names to ASCII as java.net.IDN (nameprep,
// unassigned code points allowed) and ICU's UTS 46, non-transitional, do. The
// former is the transitional mapping of UTS 46, which agrees with nameprep on
// the characters that Unicode had when nameprep was written.
var (
	idna2003 = idna.New(idna.MapForLookup(), idna.Transitional(true), idna.StrictDomainName(false), idna.CheckHyphens(false),
		idna.CheckJoiners(false), idna.VerifyDNSLength(false))
	idna2008 = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.BidiRule(), idna.CheckJoiners(true),
		idna.StrictDomainName(false), idna.CheckHyphens(false), idna.VerifyDNSLength(true))
)

func (b Basic) asciiNutch(host string) (string, error) {
	if strings.ContainsRune(host, utf8.RuneError) || !utf8.ValidString(host) {
		return "", errHost
	}
	if b.IDNA2008 {
		h, err := idna2008.ToASCII(host)
		if err != nil {
			return "", errHost
		}
		return h, nil
	}
	// Label by label, as java.net.IDN does, which accepts any that are neither
	// empty nor too long.
	labels := splitLabels(host)
	if len(labels) == 2 && labels[0] == "" && labels[1] == "" {
		return ".", nil
	}
	for i, l := range labels {
		if l == "" && i == len(labels)-1 {
			continue // the dot at the end
		}
		if !isASCII(l) {
			var err error
			if l, err = idna2003.ToASCII(l); err != nil {
				return "", errHost
			}
			labels[i] = l
		}
		if l == "" || len(l) > 63 {
			return "", errHost
		}
	}
	return strings.Join(labels, "."), nil
}

func (b Basic) unicodeNutch(host string) (string, error) {
	if b.IDNA2008 {
		h, err := idna2008.ToUnicode(host)
		if err != nil || strings.HasPrefix(h, "xn--") || strings.Contains(h, ".xn--") || strings.ContainsRune(host, utf8.RuneError) || !utf8.ValidString(host) {
			return "", errHost
		}
		return h, nil
	}
	// A label that does not round-trip stays as it is.
	labels := splitLabels(host)
	for i, l := range labels {
		if !strings.HasPrefix(l, "xn--") || !isASCII(l) {
			continue
		}
		u, err := idna.Punycode.ToUnicode(l)
		if err != nil {
			continue
		}
		if back, err := idna2003.ToASCII(u); err == nil && strings.EqualFold(back, l) {
			labels[i] = u
		}
	}
	return strings.Join(labels, "."), nil
}

// splitLabels splits at the dots of IDNA.
func splitLabels(host string) []string {
	return strings.Split(strings.NewReplacer("\u3002", ".", "\uFF0E", ".", "\uFF61", ".").Replace(host), ".")
}

// escapeNutch decodes the escapes of unreserved characters, converts the others
// to upper case, and escapes what Nutch escapes.
func escapeNutch(s string) string {
	i := 0
	for i < len(s) && s[i] != '%' && !escapedByNutch(s[i]) {
		i++
	}
	if i == len(s) {
		return s
	}
	const hex = "0123456789ABCDEF"
	// Two passes, as in Nutch: "%%34%31" is "%41" after the first.
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if c := s[i]; c == '%' && i+2 < len(s) && unhex(s[i+1]) >= 0 && unhex(s[i+2]) >= 0 {
			c = byte(unhex(s[i+1])<<4 | unhex(s[i+2]))
			if i += 2; class[c]&unreserved != 0 {
				b = append(b, c)
			} else {
				b = append(b, '%', hex[c>>4], hex[c&15])
			}
		} else {
			b = append(b, c)
		}
	}
	out := make([]byte, 0, len(b)+len(b)/4+8)
	for i, c := range b {
		switch {
		case escapedByNutch(c):
			out = append(out, '%', hex[c>>4], hex[c&15])
		case c == '%' && (i+2 >= len(b) || unhex(b[i+1]) < 0 || unhex(b[i+2]) < 0):
			out = append(out, "%25"...)
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

func escapedByNutch(c byte) bool {
	return c <= ' ' || c >= 0x7F || strings.IndexByte("\"<>[]^`{|}", c) >= 0
}

// removeDotsNutch returns path and query of u without dot segments and empty
// ones, if the path looks as if it had any.
func (b Basic) removeDotsNutch(u javaURL) (string, error) {
	file := u.file()
	if strings.Contains(u.path, "/.") || strings.Contains(u.path, "//") || strings.Contains(u.path, "./") {
		if normal, err := u.normalizedURI(); err == nil {
			v, err := parseJavaURL(normal, b.javaKnows)
			if err != nil {
				return "", err
			}
			file = v.file()
			// Leading ".." are dropped, but whether one is whole is looked up
			// in the first: "/../..foo" loses both, and its slash.
			start := 0
			for strings.HasPrefix(file[start:], "/..") && (start+3 == len(file) || file[3] == '/') {
				start += 3
			}
			file = file[start:]
		}
	}
	if file == "" {
		file = "/"
	}
	return file, nil
}
