package urlfilter

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/recrawl/recrawl/internal/javaurl"
)

// normalizeNutch is Nutch's BasicURLNormalizer.
func (b Basic) normalizeNutch(s string) (string, error) {
	s = strings.TrimFunc(s, javaurl.IsBlank)
	if s == "" {
		return "", nil
	}
	u, err := javaurl.Parse(s, b.javaKnows)
	if err != nil {
		return "", err
	}
	changed := !strings.HasPrefix(s, u.Protocol)
	host, port, file := u.Host, u.Port, u.File()
	dots := u.Protocol == "file"
	if u.Protocol == "http" || u.Protocol == "https" || u.Protocol == "ftp" {
		if host, err = b.hostNutch(host); err != nil {
			return "", err
		}
		// An authority that is more than the host has a user or a port, perhaps
		// an empty one.
		changed = changed || !u.HasAuthority || host != u.Host || u.Authority != host || u.HasRef
		if port == u.DefaultPort() {
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
			if v, err = javaurl.Make(u.Protocol, host, port, file); err != nil {
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
	v, err := javaurl.Make(u.Protocol, host, port, file)
	if err != nil {
		return "", err
	}
	if u.HasUser && u.Protocol != "http" && u.Protocol != "https" {
		v.Authority = u.User + "@" + v.Authority
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
		if host, err = javaurl.DecodeForm(host); err != nil {
			return "", err
		}
	}
	host = javaurl.ToLower(host)
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
func (b Basic) removeDotsNutch(u javaurl.URL) (string, error) {
	file := u.File()
	if strings.Contains(u.Path, "/.") || strings.Contains(u.Path, "//") || strings.Contains(u.Path, "./") {
		if normal, err := u.NormalizedURI(); err == nil {
			v, err := javaurl.Parse(normal, b.javaKnows)
			if err != nil {
				return "", err
			}
			file = v.File()
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
