package nutchconf

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/recrawl/recrawl/protocol/httpproto"
)

// logins reads the file of http.auth.file, as protocol-httpclient does.
func (b *builder) logins(active *plugins, h *httpproto.Options) {
	const name = "http.auth.file"
	file := b.word(name)
	if !active.has("protocol-httpclient") {
		b.note(name, "only protocol-httpclient reads it, which is not in plugin.includes; it has no effect in Nutch either")
		return
	}
	if h.Logins = readLines(b, name, file, parseLogins); len(h.Logins) > 0 {
		b.note(name, "logins are sent with every request to their hosts and ports, whatever the realm; Nutch waits for a server to ask")
	}
}

// cookies reads the file of http.agent.host.cookie.file.
func (b *builder) cookies(h *httpproto.Options) {
	const name = "http.agent.host.cookie.file"
	file := b.word(name)
	if b.bool("http.enable.cookie.header") {
		h.Cookies = readLines(b, name, file, parseCookies)
	}
}

// readLines reads a file whose errors have lines. Nutch has a default for its name: the
// file must exist only if the property was set.
func readLines[T any](b *builder, name, file string, parse func(io.Reader) (T, error)) (v T) {
	path := b.path(file)
	if file == "" || !b.set(name) && !exists(path) {
		return v
	}
	f, err := os.Open(path)
	if err != nil {
		b.fail(name, "%w", err)
		return v
	}
	defer f.Close()
	if v, err = parse(f); err == nil {
		return v
	}
	if l := (*lineError)(nil); errors.As(err, &l) {
		b.fail(name, "%s:%d: %w", path, l.line, l.err)
	} else {
		b.fail(name, "%s: %w", path, err)
	}
	return v
}

// parseLogins reads httpclient-auth.xml:
//
//	<auth-configuration>
//	  <credentials username="u" password="p">
//	    <authscope host="h" port="443" realm="r" scheme="basic"/>
//	  </credentials>
//	</auth-configuration>
//
// Without a port, a login is for the ports of http and https. Anything but a Basic login
// for named hosts is an error, since a crawl without it would not be the requested one.
// Errors quote no secrets.
func parseLogins(r io.Reader) (all []httpproto.Login, err error) {
	lines := &lineCounter{r: bufio.NewReader(io.LimitReader(r, maxFile+1))}
	d := xml.NewDecoder(lines)
	d.CharsetReader = charset
	fail := func(format string, args ...any) ([]httpproto.Login, error) {
		line, _ := d.InputPos()
		return nil, &lineError{line, fmt.Errorf(format, args...)}
	}
	var (
		path  []string
		login httpproto.Login
		seen  = map[string]bool{}
		begun bool
	)
	for {
		tok, err := d.Token()
		switch s := (*xml.SyntaxError)(nil); {
		case lines.n > maxFile:
			return fail("the file is longer than %d MiB", maxFile>>20)
		case errors.As(err, &s):
			msg, _, _ := strings.Cut(s.Msg, " &") // cut off an entity: it may be part of a password
			return nil, &lineError{s.Line, errors.New(msg)}
		case err == io.EOF && !begun:
			return fail("no <auth-configuration>")
		case err == io.EOF:
			return all, nil
		case err != nil:
			return fail("%w", err)
		}
		switch t := tok.(type) {
		case xml.EndElement:
			path = path[:len(path)-1]
		case xml.StartElement:
			path, begun = append(path, t.Name.Local), true
			switch where := strings.Join(path, " "); where {
			case "auth-configuration":
			case "auth-configuration credentials":
				if method := attr(t, "authMethod"); method != "" && !strings.EqualFold(method, "httpAuth") {
					return fail("<credentials authMethod=%q>: forms are not supported; httpproto.Options.Cookies can send the cookie of a session", method)
				}
				if login = (httpproto.Login{User: attr(t, "username"), Password: attr(t, "password")}); login.User == "" {
					return fail("<credentials> without a username")
				}
			case "auth-configuration credentials default":
				return fail("<default> would send the password to every server that asks; name the hosts in <authscope>")
			case "auth-configuration credentials authscope":
				origins, err := origins(attr(t, "host"), attr(t, "port"))
				if err != nil {
					return fail("<authscope>: %w", err)
				}
				if scheme := attr(t, "scheme"); scheme != "" && !strings.EqualFold(scheme, "basic") {
					return fail("<authscope scheme=%q>: only basic is supported", scheme)
				}
				for _, o := range origins {
					if seen[o] {
						return fail("<authscope>: there is another login for %s", o)
					}
					seen[o], login.Origin = true, o
					all = append(all, login)
				}
			default:
				if len(path) == 1 {
					return fail("the file begins with <%s>, not with <auth-configuration>", t.Name.Local)
				}
				return fail("unknown element <%s> within <%s>", t.Name.Local, path[len(path)-2])
			}
		}
	}
}

// origins returns the origins of a host and a port. The standard port of http or https
// determines the scheme.
func origins(host, port string) ([]string, error) {
	n := 0
	if port != "" && port != "-1" {
		var err error
		if n, err = strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return nil, fmt.Errorf("%q is not a port", port)
		}
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if host == "" || strings.ContainsAny(host, "/@?#%\\\"<> \t\r\n") || strings.Contains(host, ":") && net.ParseIP(host) == nil {
		return nil, fmt.Errorf("%q is not a host name", host)
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	switch n {
	case 0:
		return []string{"http://" + host, "https://" + host}, nil
	case 80:
		return []string{"http://" + host}, nil
	case 443:
		return []string{"https://" + host}, nil
	}
	host += ":" + strconv.Itoa(n)
	return []string{"http://" + host, "https://" + host}, nil
}

// parseCookies reads a file that has on each line a host, a tab, and the Cookie header
// for it. Lines that begin with # are comments; Nutch treats any line with a # as one,
// and loses cookies. Errors quote no secrets.
func parseCookies(r io.Reader) (all []httpproto.Cookie, err error) {
	seen := map[string]bool{}
	lines := &lineCounter{r: bufio.NewReader(io.LimitReader(r, maxFile+1))}
	s := bufio.NewScanner(lines)
	s.Buffer(nil, 64<<10)
	n := 1
	for ; s.Scan(); n++ {
		if lines.n > maxFile {
			return nil, &lineError{n, fmt.Errorf("the file is longer than %d MiB", maxFile>>20)}
		}
		line := strings.TrimSpace(s.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		host, value, ok := strings.Cut(line, "\t")
		value = strings.TrimSpace(value)
		switch {
		case !ok: // the line is trimmed, so what follows a tab is not empty
			return nil, &lineError{n, errors.New("a line needs a host, a tab and a cookie")}
		case strings.ContainsFunc(value, func(r rune) bool { return r < 0x20 || r > 0x7e }):
			return nil, &lineError{n, errors.New("the cookie is not printable ASCII")}
		}
		origins, err := origins(strings.TrimSpace(host), "")
		if err != nil {
			return nil, &lineError{n, err}
		}
		for _, o := range origins {
			if seen[o] {
				return nil, &lineError{n, fmt.Errorf("there is another cookie for %s", o)}
			}
			seen[o] = true
			all = append(all, httpproto.Cookie{Origin: o, Value: value})
		}
	}
	if err := s.Err(); err != nil {
		return nil, &lineError{n, err}
	}
	return all, nil
}
