// Package javaurl splits, resolves and writes URLs as java.net.URL and java.net.URI of Java 17 do,
// with the text functions of Java that go with them, so that what Nutch makes of a URL can be
// made here to the bit. It does not decide which URLs are good: that is urlfilter's. [Parse] and
// [Resolve] are the two constructors; [URL.NormalizedURI] is toURI().normalize().
package javaurl

import (
	"errors"
	"strconv"
	"strings"
	"unicode"
)

// URL is a URL in the parts that java.net.URL has. Its spelling is not changed.
type URL struct {
	Protocol     string // in lower case
	Authority    string
	HasAuthority bool // "//" was there; the authority may be empty
	User         string
	HasUser      bool
	Host         string
	Port         int // -1 for none
	Path         string
	Query        string
	HasQuery     bool
	Ref          string
	HasRef       bool
}

var (
	errProtocol  = errors.New("a protocol unknown to java.net.URL")
	errHost      = errors.New("java.net.URL refuses the host")
	errPort      = errors.New("java.net.URL refuses the port")
	errAuthority = errors.New("java.net.URL refuses the authority")
	errMail      = errors.New("no mail address")
	errJar       = errors.New("no entry of an archive")
	errPath      = errors.New("the path is too long to resolve")
	errURI       = errors.New("not a URI by RFC 2396")
	errEscape    = errors.New("bad escape")
)

// maxRelativePath limits a path whose dots are removed, and the URL of an archive: both may take a
// step over all of it for each of its parts.
const maxRelativePath = 8192

// Handled reports whether Java has a handler for a protocol.
func Handled(protocol string) bool {
	switch protocol {
	case "http", "https", "ftp", "file", "mailto", "jar", "jmod", "jrt":
		return true
	}
	return false
}

// Parse is the constructor with a string. handled says which protocols have a handler.
func Parse(spec string, handled func(protocol string) bool) (URL, error) {
	return Resolve(nil, spec, handled)
}

// Resolve is the constructor with a context, which may be nil, and a string. Like Java it removes
// the dots of a path only if it joined it to the path of the context.
func Resolve(context *URL, spec string, handled func(protocol string) bool) (URL, error) {
	spec = strings.TrimFunc(spec, IsBlank)
	if len(spec) >= 4 && strings.EqualFold(spec[:4], "url:") {
		spec = spec[4:]
	}
	u := URL{Port: -1}
	if i := strings.IndexAny(spec, ":/"); i > 0 && spec[i] == ':' && isProtocol(spec[:i]) {
		u.Protocol, spec = strings.ToLower(spec[:i]), spec[i+1:]
	}
	relative := context != nil && (u.Protocol == "" || u.Protocol == context.Protocol && strings.HasPrefix(context.Path, "/"))
	if relative {
		u = *context
		u.Query, u.HasQuery, u.Ref, u.HasRef = "", false, "", false
	}
	if u.Protocol == "" || !handled(u.Protocol) {
		return u, errProtocol
	}
	spec, u.Ref, u.HasRef = strings.Cut(spec, "#")
	switch u.Protocol {
	case "mailto":
		if strings.TrimFunc(spec, IsSpace) == "" {
			return u, errMail
		}
		u.setFile(spec)
		u.Ref, u.HasRef = "", false // its handler drops it
		return u, nil
	case "jar":
		u.setFile(spec)
		return u, checkArchive(spec, relative, handled)
	}
	if relative && spec == "" {
		u.Query, u.HasQuery = context.Query, context.HasQuery
		if !u.HasRef {
			u.Ref, u.HasRef = context.Ref, context.HasRef
		}
	}
	return u, u.parse(spec, relative)
}

// checkArchive refuses the file of a jar URL that does not begin with the URL of an archive. A
// reference to another entry of the same archive, which Java resolves, is refused too.
func checkArchive(file string, relative bool, handled func(protocol string) bool) error {
	end := strings.LastIndex(file, "!/")
	if end < 0 || relative {
		return errJar
	}
	if end > maxRelativePath { // since an archive may be in an archive
		return errPath
	}
	_, err := Parse(file[:end], handled)
	return err
}

// parse is parseURL of the stream handler: it reads what is between the protocol and the ref.
func (u *URL) parse(spec string, relative bool) error {
	queryOnly := relative && strings.HasPrefix(spec, "?")
	if rest, query, ok := strings.Cut(spec, "?"); ok {
		spec, u.Query, u.HasQuery = rest, query, true
	}
	if strings.HasPrefix(spec, "//") && !strings.HasPrefix(spec, "////") {
		spec = spec[2:]
		end := strings.IndexByte(spec, '/')
		if end < 0 {
			end = len(spec)
		}
		u.Authority, spec = spec[:end], spec[end:]
		u.HasAuthority = true
		if u.Authority != "" {
			u.Path = ""
		}
		if err := u.parseAuthority(); err != nil {
			return err
		}
	}
	switch slash := strings.LastIndexByte(u.Path, '/'); {
	case strings.HasPrefix(spec, "/"):
		u.Path = spec
	case spec != "" && u.Path != "":
		if slash < 0 && u.HasAuthority {
			u.Path = "/" + spec
		} else {
			u.Path = u.Path[:slash+1] + spec
		}
		if len(u.Path) > maxRelativePath {
			return errPath
		}
		u.Path = removeDots(u.Path)
	case spec != "" && u.HasAuthority:
		u.Path = "/" + spec
	case spec != "":
		u.Path = spec
	case queryOnly:
		u.Path = u.Path[:max(slash, 0)] + "/"
	}
	return checkHost(u.Host)
}

// IsBlank reports whether String.trim cuts off a character.
func IsBlank(r rune) bool { return r <= ' ' }

// IsSpace is Character.isWhitespace.
func IsSpace(r rune) bool {
	return 0x1C <= r && r <= 0x1F || unicode.IsSpace(r) && r != 0x85 && r != 0xA0 && r != 0x2007 && r != 0x202F
}

func isProtocol(s string) bool {
	for i, r := range s {
		if !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r) && r != '.' && r != '+' && r != '-') {
			return false
		}
	}
	return s != ""
}

func (u *URL) parseAuthority() error {
	host := u.Authority
	u.User, u.HasUser, u.Host = "", false, ""
	if i := strings.IndexByte(host, '@'); i >= 0 {
		if strings.LastIndexByte(host, '@') != i {
			return nil // Java takes it for no server's, and continues without a host
		}
		u.User, u.HasUser, host = host[:i], true, host[i+1:]
	}
	u.Port = -1
	port := ""
	if strings.HasPrefix(host, "[") {
		i := strings.IndexByte(host, ']')
		if i <= 2 || !isIPv6Literal(host[1:i]) {
			return errAuthority
		}
		if after := host[i+1:]; after != "" && after[0] != ':' {
			return errAuthority
		} else if after != "" {
			port = after[1:]
		}
		host = host[:i+1]
	} else {
		host, port, _ = strings.Cut(host, ":")
	}
	u.Host = host
	if port != "" {
		n, ok := parseInt(port, 10)
		if !ok || n < -1 {
			return errPort
		}
		u.Port = n
	}
	return nil
}

// checkHost refuses what every constructor refuses.
func checkHost(host string) error {
	for _, r := range host {
		if r <= 0x1F || r == 0x7F || r == '/' || r > 0x7F && strings.ContainsRune(notInHost, r) {
			return errHost
		}
	}
	return nil
}

// notInHost lists characters that become something with "/", "?", "#", "@"
// or ":" when the name is converted to ASCII.
const notInHost = "\u2047\u2048\u2049\u2100\u2101\u2105\u2106\u2A74\uFE55\uFE56\uFE5F\uFE6B\uFF03\uFF0F\uFF1A\uFF1F\uFF20"

// removeDots removes "." and ".." segments step by step, as Java does: a ".." at the root stays,
// and so does one at the end if another stayed.
func removeDots(p string) string {
	for strings.Contains(p, "/./") {
		p = strings.ReplaceAll(p, "/./", "/")
	}
	for i := 0; ; {
		n := strings.Index(p[i:], "/../")
		if n < 0 {
			break
		}
		i += n
		if up := strings.LastIndexByte(p[:i], '/'); up > 0 || up == 0 && !strings.HasPrefix(p, "/../") {
			p, i = p[:up]+p[i+3:], 0
		} else {
			i += 3
		}
	}
	for strings.HasSuffix(p, "/..") {
		up := strings.LastIndexByte(p[:strings.Index(p, "/..")], '/')
		if up < 0 {
			break
		}
		p = p[:up+1]
	}
	if strings.HasPrefix(p, "./") && len(p) > 2 {
		p = p[2:]
	}
	if strings.HasSuffix(p, "/.") {
		p = p[:len(p)-1]
	}
	return p
}

// Make is the constructor with protocol, host, port and file.
func Make(protocol, host string, port int, file string) (URL, error) {
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		host = "[" + host + "]"
	}
	u := URL{Protocol: protocol, HasAuthority: true, Authority: host, Host: host, Port: port}
	if port != -1 {
		u.Authority += ":" + strconv.Itoa(port)
	}
	u.setFile(file)
	return u, checkHost(host)
}

// setFile splits path and query where Java gets them in one piece.
func (u *URL) setFile(file string) {
	u.Path, u.Query, u.HasQuery = file, "", false
	if i := strings.LastIndexByte(file, '?'); i >= 0 {
		u.Path, u.Query, u.HasQuery = file[:i], file[i+1:], true
	}
}

// File returns path and query.
func (u *URL) File() string {
	if u.HasQuery {
		return u.Path + "?" + u.Query
	}
	return u.Path
}

// String is toExternalForm.
func (u *URL) String() string {
	s := u.Protocol + ":"
	if u.Authority != "" {
		s += "//" + u.Authority
	}
	s += u.File()
	if u.HasRef {
		s += "#" + u.Ref
	}
	return s
}

// DefaultPort returns the default port of the protocol, or -1.
func (u *URL) DefaultPort() int {
	switch u.Protocol {
	case "http":
		return 80
	case "https":
		return 443
	case "ftp":
		return 21
	}
	return -1
}
