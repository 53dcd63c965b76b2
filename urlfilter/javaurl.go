package urlfilter

import (
	"errors"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// javaURL is a URL as java.net.URL of Java 17 parses it. (Java 11 does the
// same; from Java 20 on more characters are refused in a host.)
type javaURL struct {
	protocol  string
	authority string
	server    bool // there is an authority, possibly empty
	user      string
	hasUser   bool
	host      string
	port      int // -1 for none
	path      string
	query     string
	hasQuery  bool
	ref       string
	hasRef    bool
}

var (
	errJavaProtocol = errors.New("a protocol unknown to java.net.URL")
	errJavaHost     = errors.New("java.net.URL refuses the host")
	errJavaPort     = errors.New("java.net.URL refuses the port")
	errJavaIPv6     = errors.New("java.net.URL refuses the IPv6 address")
	errJavaMail     = errors.New("no mail address")
	errJavaURI      = errors.New("not a URI by RFC 2396")
	errJavaEscape   = errors.New("bad escape in the host")
)

// parseJavaURL is the constructor with a string. known says which protocols
// have a handler.
func parseJavaURL(spec string, known func(protocol string) bool) (u javaURL, err error) {
	spec = strings.TrimFunc(spec, isJavaBlank)
	if len(spec) >= 4 && strings.EqualFold(spec[:4], "url:") {
		spec = spec[4:]
	}
	i := strings.IndexAny(spec, ":/")
	if i < 0 || spec[i] != ':' || !isJavaProtocol(spec[:i]) {
		return u, errJavaProtocol
	}
	u.protocol, u.port = strings.ToLower(spec[:i]), -1
	if !known(u.protocol) {
		return u, errJavaProtocol
	}
	rest := spec[i+1:]
	rest, u.ref, u.hasRef = strings.Cut(rest, "#")
	if u.protocol == "mailto" {
		if strings.TrimFunc(rest, isJavaSpace) == "" {
			return u, errJavaMail
		}
		u.setFile(rest)
		u.ref, u.hasRef = "", false // its handler drops it
		return u, nil
	}
	rest, u.query, u.hasQuery = strings.Cut(rest, "?")
	if strings.HasPrefix(rest, "//") && !strings.HasPrefix(rest, "////") {
		u.server = true
		u.authority, u.path = rest[2:], ""
		if i := strings.IndexByte(u.authority, '/'); i >= 0 {
			u.authority, u.path = u.authority[:i], u.authority[i:]
		}
		if err := u.parseAuthority(); err != nil {
			return u, err
		}
	} else {
		u.path = rest
	}
	return u, checkJavaHost(u.host)
}

// isJavaBlank is what String.trim cuts off.
func isJavaBlank(r rune) bool { return r <= ' ' }

// isJavaSpace is Character.isWhitespace.
func isJavaSpace(r rune) bool {
	return 0x1C <= r && r <= 0x1F || unicode.IsSpace(r) && r != 0x85 && r != 0xA0 && r != 0x2007 && r != 0x202F
}

func isJavaProtocol(s string) bool {
	for i, r := range s {
		if !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r) && r != '.' && r != '+' && r != '-') {
			return false
		}
	}
	return s != ""
}

func (u *javaURL) parseAuthority() error {
	host := u.authority
	if i := strings.IndexByte(host, '@'); i >= 0 {
		if strings.LastIndexByte(host, '@') != i {
			return nil // Java takes it for no server's, and continues without a host
		}
		u.user, u.hasUser, host = host[:i], true, host[i+1:]
	}
	port := ""
	if strings.HasPrefix(host, "[") {
		i := strings.IndexByte(host, ']')
		if i <= 2 || !isJavaIPv6(host[1:i]) {
			return errJavaIPv6
		}
		if after := host[i+1:]; after != "" && after[0] != ':' {
			return errJavaIPv6
		} else if after != "" {
			port = after[1:]
		}
		host = host[:i+1]
	} else {
		host, port, _ = strings.Cut(host, ":")
	}
	u.host = host
	if port != "" {
		n, ok := parseJavaInt(port, 10)
		if !ok || n < -1 {
			return errJavaPort
		}
		u.port = n
	}
	return nil
}

// isJavaIPv6 implements the check of sun.net.util.IPAddressUtil for the inside
// of the brackets: eight groups of up to four digits, or fewer around one "::",
// of which the last two may be an IPv4 address; then anything after a "%" that
// is neither the first nor the last character.
func isJavaIPv6(s string) bool {
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
			if !isJavaIPv4(s[start:]) {
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

func isJavaIPv4(s string) bool {
	parts := strings.Split(s, ".")
	if len(parts) != 4 || len(s) > 15 {
		return false
	}
	for _, p := range parts {
		if n, ok := parseJavaInt(p, 10); !ok || n > 255 || strings.Trim(p, "0123456789") != "" {
			return false
		}
	}
	return true
}

// parseJavaInt is Integer.parseInt, which accepts a sign, and the digits of any
// script.
func parseJavaInt(s string, base int) (int, bool) {
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

// checkJavaHost refuses what every constructor refuses.
func checkJavaHost(host string) error {
	for _, r := range host {
		if r <= 0x1F || r == 0x7F || r == '/' || r > 0x7F && strings.ContainsRune(javaNotInHost, r) {
			return errJavaHost
		}
	}
	return nil
}

// javaNotInHost lists characters that become something with "/", "?", "#", "@"
// or ":" when the name is converted to ASCII.
const javaNotInHost = "\u2047\u2048\u2049\u2100\u2101\u2105\u2106\u2A74\uFE55\uFE56\uFE5F\uFE6B\uFF03\uFF0F\uFF1A\uFF1F\uFF20"

// makeJavaURL is the constructor with protocol, host, port and file.
func makeJavaURL(protocol, host string, port int, file string) (javaURL, error) {
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		host = "[" + host + "]"
	}
	u := javaURL{protocol: protocol, server: true, authority: host, host: host, port: port}
	if port != -1 {
		u.authority += ":" + strconv.Itoa(port)
	}
	u.setFile(file)
	return u, checkJavaHost(host)
}

// setFile splits path and query where Java gets them in one piece.
func (u *javaURL) setFile(file string) {
	u.path = file
	if i := strings.LastIndexByte(file, '?'); i >= 0 {
		u.path, u.query, u.hasQuery = file[:i], file[i+1:], true
	}
}

// file returns path and query.
func (u *javaURL) file() string {
	if u.hasQuery {
		return u.path + "?" + u.query
	}
	return u.path
}

func (u *javaURL) String() string {
	s := u.protocol + ":"
	if u.authority != "" {
		s += "//" + u.authority
	}
	s += u.file()
	if u.hasRef {
		s += "#" + u.ref
	}
	return s
}

// defaultPort returns the default port of the protocol, or -1.
func (u *javaURL) defaultPort() int {
	switch u.protocol {
	case "http":
		return 80
	case "https":
		return 443
	case "ftp":
		return 21
	}
	return -1
}

// normalizedURI is what toURI().normalize() returns: the URL with its path
// normalized by RFC 2396 and empty segments dropped. It fails if java.net.URI
// finds a character that RFC 2396 does not allow.
func (u *javaURL) normalizedURI() (string, error) {
	whole := u.String()
	s := whole[len(u.protocol)+1:]
	if !isURIScheme(u.protocol) {
		return "", errJavaURI
	}
	s, ref, _ := strings.Cut(s, "#")
	if !onlyURI(ref, uriAny) {
		return "", errJavaURI
	}
	if !strings.HasPrefix(s, "/") {
		if s == "" || !onlyURI(s, uriAny) {
			return "", errJavaURI
		}
		return whole, nil // opaque: nothing to normalize
	}
	rest, query, hasQuery := strings.Cut(s, "?")
	head, path := u.protocol+":", rest
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		auth := after
		path = ""
		if i := strings.IndexByte(after, '/'); i >= 0 {
			auth, path = after[:i], after[i:]
		}
		if auth != "" {
			if !isURIAuthority(auth) {
				return "", errJavaURI
			}
			head += "//" + auth
		} else if path == "" && !hasQuery && !u.hasRef {
			return "", errJavaURI
		}
	}
	if !onlyURI(path, uriPath) || !onlyURI(query, uriAny) {
		return "", errJavaURI
	}
	head += normalizeURIPath(path)
	if hasQuery {
		head += "?" + query
	}
	return head, nil
}

// normalizeURIPath removes empty segments, "." and each ".." that has something
// before it to remove; a leading ".." stays.
func normalizeURIPath(path string) string {
	out := make([]byte, 0, len(path))
	parents := 0 // length of the part that ends with the last ".." that stays
	slash := false
	for i := 0; i < len(path); {
		if path[i] == '/' {
			slash = true
			i++
			continue
		}
		end := strings.IndexByte(path[i:], '/')
		if end < 0 {
			end = len(path)
		} else {
			end += i
		}
		seg := path[i:end]
		i = end
		switch {
		case seg == ".":
			slash = true
		case seg == ".." && len(out) > parents:
			out = out[:strings.LastIndexByte(string(out), '/')]
			slash = true
		default:
			out = append(append(out, '/'), seg...)
			if slash = false; seg == ".." {
				parents = len(out)
			}
		}
	}
	if slash {
		out = append(out, '/')
	}
	return string(out)
}
