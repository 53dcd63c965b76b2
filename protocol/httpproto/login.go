package httpproto

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// A Login is sent in the Authorization header to one origin, and to no other.
// It is sent with the first request, not only when the server asks for it: a
// crawl makes one request per page.
type Login struct {
	// Origin is scheme, host and port, as in "https://example.com" or
	// "http://wiki.example:8080". The host is written as in the URLs of the
	// crawl, in ASCII; its subdomains are other origins.
	Origin string
	// User and Password are for the Basic scheme (RFC 7617).
	User, Password string
	// Token is for the Bearer scheme (RFC 6750), instead of User and Password.
	Token string
}

// String returns the origin and leaves the secrets out.
func (l Login) String() string { return "login for " + l.Origin }

// GoString does the same for %#v.
func (l Login) GoString() string { return l.String() }

// origin returns the key of a URL's origin.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = strconv.Itoa(defaultPort(u.Scheme))
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// originOption returns the key of an origin given as an option. Its error does not
// quote it: it may contain a password.
func originOption(s string) (string, error) {
	u, err := parseURL(s)
	if err != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return "", errors.New("Origin is not an http or https scheme, a host and perhaps a port")
	}
	return origin(u), nil
}

// authorizations returns the Authorization header for each origin. Its errors
// quote no secrets.
func authorizations(logins []Login) (map[string]string, error) {
	out := map[string]string{}
	for i, l := range logins {
		key, value, err := l.authorization()
		if err == nil && out[key] != "" {
			err = errors.New("another login has the same origin")
		}
		if err != nil {
			return nil, fmt.Errorf("httpproto: option Logins[%d]: %w", i, err)
		}
		out[key] = value
	}
	return out, nil
}

func (l Login) authorization() (key, value string, err error) {
	if key, err = originOption(l.Origin); err != nil {
		return "", "", err
	}
	switch {
	case l.Token != "" && (l.User != "" || l.Password != ""):
		return "", "", errors.New("both a Token and a User or Password are set")
	case l.Token != "":
		if !printable(l.Token) || strings.Contains(l.Token, " ") {
			return "", "", errors.New("Token has characters that a header cannot have")
		}
		return key, "Bearer " + l.Token, nil
	case l.User == "":
		return "", "", errors.New("neither a Token nor a User is set")
	}
	value, err = basic(l.User, l.Password)
	return key, value, err
}

// basic returns credentials of the Basic scheme.
func basic(user, password string) (string, error) {
	if strings.Contains(user, ":") || strings.ContainsFunc(user+password, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", errors.New("User has a colon, or it or Password a control character")
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)), nil
}
