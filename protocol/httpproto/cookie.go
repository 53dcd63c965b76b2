package httpproto

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// maxCookieHeader limits the Cookie header of a request to about what servers
// accept.
const maxCookieHeader = 16 << 10

// A Cookie is sent in the Cookie header of each request to one origin, and to
// no other, whatever cookies the origin sets.
type Cookie struct {
	// Origin is as in [Login].
	Origin string
	// Value is the header as it is sent: "name=value" or "name=value; name2=value2".
	Value string
}

// String returns the origin and leaves the secret out.
func (c Cookie) String() string { return "cookie for " + c.Origin }

// GoString does the same for %#v.
func (c Cookie) GoString() string { return c.String() }

// fixedCookies returns the Cookie header for each origin. Its errors quote no
// secrets.
func fixedCookies(cookies []Cookie) (map[string]string, error) {
	out := map[string]string{}
	for i, c := range cookies {
		key, err := originOption(c.Origin)
		switch {
		case err != nil:
		case c.Value == "":
			err = errors.New("Value is empty")
		case !printable(c.Value) || len(c.Value) > maxCookieHeader:
			err = errors.New("Value has characters that a header cannot have, or is too long")
		case out[key] != "":
			err = errors.New("another cookie has the same origin")
		}
		if err != nil {
			return nil, fmt.Errorf("httpproto: option Cookies[%d]: %w", i, err)
		}
		out[key] = c.Value
	}
	return out, nil
}

// cookies returns the Cookie header for a request; empty for none. A cookie of
// the jar is left out if the owner has fixed one of that name.
func (c *Client) cookies(u *url.URL) string {
	fixed := c.fixed[origin(u)]
	if c.o.Jar == nil {
		return fixed
	}
	var names, all []string
	length := len(fixed)
	if fixed != "" {
		all = append(all, fixed)
		for pair := range strings.SplitSeq(fixed, ";") {
			name, _, _ := strings.Cut(pair, "=")
			names = append(names, strings.TrimSpace(name))
		}
	}
	for _, k := range c.o.Jar.Cookies(u) {
		pair := k.Name + "=" + k.Value
		if k.Quoted {
			pair = k.Name + `="` + k.Value + `"`
		}
		if length += len("; ") + len(pair); length > maxCookieHeader {
			break
		}
		if printable(pair) && !slices.Contains(names, k.Name) {
			all = append(all, pair)
		}
	}
	return strings.Join(all, "; ")
}

// keepCookies puts the cookies that an answer sets into the jar.
func (c *Client) keepCookies(u *url.URL, h http.Header) {
	lines := h["Set-Cookie"]
	if c.o.Jar == nil || len(lines) == 0 {
		return
	}
	var all []*http.Cookie
	for _, line := range lines[:min(len(lines), maxCookies)] {
		if len(line) > 2*maxCookie {
			continue
		}
		if k, err := http.ParseSetCookie(line); err == nil {
			all = append(all, k)
		}
	}
	if len(all) > 0 {
		c.o.Jar.SetCookies(u, all)
	}
}
