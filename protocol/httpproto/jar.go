package httpproto

import (
	"cmp"
	"container/list"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/publicsuffix"
)

// Limits of a Jar. The first three are those of browsers (RFC 6265, section
// 6.1).
const (
	// maxCookie limits name and value together.
	maxCookie = 4 << 10
	// maxCookiePath limits the path, and the domain, of a cookie.
	maxCookiePath = 1 << 10
	// maxCookies is how many cookies a host may have, on all its ports, and how
	// many of one answer are considered.
	maxCookies = 50
	// maxCookieSite limits the cookies of all hosts of a registered domain,
	// maxCookieJar those of all.
	maxCookieSite = 256 << 10
	maxCookieJar  = 16 << 20
	// cookieOverhead is about what a cookie takes besides its strings, including its
	// domain if it is the only one there.
	cookieOverhead = 320
	// maxCookieAge is how long a cookie is kept, whatever it asks for.
	maxCookieAge = 400 * 24 * time.Hour
)

// A Jar keeps the cookies that servers set, in memory and for the lifetime of
// the jar, so that a crawl that is restarted begins without any. Its zero value
// is empty. It may be used from many goroutines, and shared by clients.
//
// It is stricter than a browser's: a cookie goes back only to the exact origin
// that set it: scheme, host and port. A Domain wider than that origin is
// checked as in RFC 6265, with the public suffix list, but the cookie goes no
// further. Secure cookies and the prefixes __Secure- and __Host- need https.
// SameSite is ignored: it is about pages that make requests.
//
// It is bounded: 50 cookies of 4 KiB per host, 256 KiB per registered domain,
// 16 MiB in all. The least recently used cookies make room; across domains,
// those of the least recently used domain.
type Jar struct {
	// Now is the clock that cookies expire by; nil means time.Now.
	Now func() time.Time

	mu    sync.Mutex
	sites map[string]*list.Element // by registered domain
	// recent holds the *cookieSites, the most recently used first.
	recent list.List
	bytes  int
	clock  uint64 // counts uses
}

var _ http.CookieJar = (*Jar)(nil)

// A cookieSite holds the cookies of a registered domain.
type cookieSite struct {
	domain  string
	cookies []*cookie
	bytes   int
}

type cookie struct {
	origin, host, name, path string
	text                     string // "name=value"
	expires                  time.Time
	made, used               uint64
}

func (c *cookie) size() int {
	return len(c.origin) + len(c.host) + len(c.name) + len(c.path) + len(c.text) + cookieOverhead
}

// SetCookies keeps the cookies that an answer from u sets, if it may set them.
// It implements [http.CookieJar].
func (j *Jar) SetCookies(u *url.URL, cookies []*http.Cookie) {
	now := j.now()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range cookies[:min(len(cookies), maxCookies)] {
		if k, keep := newCookie(u, c, now); keep {
			j.set(k, now)
		}
	}
}

// Cookies returns the cookies for a request to u, those for longer paths first
// and then older ones. It implements [http.CookieJar].
func (j *Jar) Cookies(u *url.URL) []*http.Cookie {
	now, host, from, path := j.now(), strings.ToLower(u.Hostname()), origin(u), cookiePath(u)
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.sites[siteOf(host)]
	if e == nil {
		return nil
	}
	j.recent.MoveToFront(e)
	var found []*cookie
	for _, c := range e.Value.(*cookieSite).cookies {
		if c.origin == from && now.Before(c.expires) && inPath(path, c.path) {
			j.clock++
			c.used = j.clock
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *cookie) int {
		return cmp.Or(len(b.path)-len(a.path), cmp.Compare(a.made, b.made))
	})
	var out []*http.Cookie
	for _, c := range found {
		value := c.text[len(c.name)+1:]
		unquoted, quoted := strings.CutPrefix(value, `"`)
		if quoted {
			value = strings.TrimSuffix(unquoted, `"`)
		}
		out = append(out, &http.Cookie{Name: c.name, Value: value, Quoted: quoted})
	}
	return out
}

// Size returns how many bytes the cookies take, overhead included.
func (j *Jar) Size() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.bytes
}

func (j *Jar) now() time.Time {
	if j.Now != nil {
		return j.Now()
	}
	return time.Now()
}

// set must be called with mu held. A cookie that has expired removes the one
// with its name.
func (j *Jar) set(c *cookie, now time.Time) {
	domain := siteOf(c.host)
	e := j.sites[domain]
	if e == nil {
		if !now.Before(c.expires) {
			return
		}
		if j.sites == nil {
			j.sites = map[string]*list.Element{}
		}
		e = j.recent.PushFront(&cookieSite{domain: domain})
		j.sites[domain] = e
	}
	j.recent.MoveToFront(e)
	s := e.Value.(*cookieSite)
	j.clock++
	c.made, c.used = j.clock, j.clock
	j.remove(s, func(old *cookie) bool {
		same := old.origin == c.origin && old.name == c.name && old.path == c.path
		if same {
			c.made = old.made
		}
		return same || !now.Before(old.expires)
	})
	if now.Before(c.expires) {
		j.crowd(s, c)
		s.cookies = append(s.cookies, c)
		s.bytes += c.size()
		j.bytes += c.size()
	}
	if len(s.cookies) == 0 {
		j.forget(e)
	}
	for j.bytes > maxCookieJar {
		j.forget(j.recent.Back())
	}
}

// crowd makes room for c among the cookies of its site.
func (j *Jar) crowd(s *cookieSite, c *cookie) {
	for {
		ofHost := 0
		var oldest, oldestOfHost *cookie
		for _, k := range s.cookies {
			if oldest == nil || k.used < oldest.used {
				oldest = k
			}
			if k.host == c.host {
				if ofHost++; oldestOfHost == nil || k.used < oldestOfHost.used {
					oldestOfHost = k
				}
			}
		}
		switch {
		case ofHost >= maxCookies:
			oldest = oldestOfHost
		case s.bytes+c.size() <= maxCookieSite:
			return
		}
		j.remove(s, func(k *cookie) bool { return k == oldest })
	}
}

func (j *Jar) remove(s *cookieSite, gone func(*cookie) bool) {
	s.cookies = slices.DeleteFunc(s.cookies, func(k *cookie) bool {
		if !gone(k) {
			return false
		}
		s.bytes -= k.size()
		j.bytes -= k.size()
		return true
	})
}

func (j *Jar) forget(e *list.Element) {
	s := j.recent.Remove(e).(*cookieSite)
	j.bytes -= s.bytes
	delete(j.sites, s.domain)
}

// newCookie returns the cookie that an answer from u sets, and whether it may
// set it (RFC 6265bis, section 5.7).
func newCookie(u *url.URL, c *http.Cookie, now time.Time) (*cookie, bool) {
	secure := u.Scheme == "https"
	if !secure && u.Scheme != "http" {
		return nil, false
	}
	k := &cookie{origin: origin(u), host: strings.Clone(strings.ToLower(u.Hostname())), name: strings.Clone(c.Name), path: strings.Clone(c.Path)}
	if k.text = k.name + "=" + c.Value; c.Quoted {
		k.text = k.name + `="` + c.Value + `"`
	}
	if c.Name == "" || len(c.Name)+len(c.Value) > maxCookie || !printable(k.text) || len(c.Domain) > maxCookiePath {
		return nil, false
	}
	wide, ok := cookieDomain(k.host, c.Domain)
	if !ok {
		return nil, false
	}
	if !strings.HasPrefix(k.path, "/") || len(k.path) > maxCookiePath {
		k.path = defaultPath(u)
	}
	prefixed := func(prefix string) bool {
		return len(k.name) >= len(prefix) && strings.EqualFold(k.name[:len(prefix)], prefix)
	}
	switch {
	case c.Secure && !secure,
		prefixed("__Secure-") && !c.Secure,
		prefixed("__Host-") && (!c.Secure || c.Path != "/" || wide):
		return nil, false
	}
	k.expires = now.Add(maxCookieAge)
	switch {
	case c.MaxAge < 0:
		k.expires = now
	case c.MaxAge > 0:
		if age := time.Duration(c.MaxAge) * time.Second; c.MaxAge < int(maxCookieAge/time.Second) {
			k.expires = now.Add(age)
		}
	case !c.Expires.IsZero() && c.Expires.Before(k.expires):
		k.expires = c.Expires
	}
	return k, true
}

// cookieDomain reports whether an answer of host may set a cookie for domain, and
// whether a domain was named at all.
func cookieDomain(host, domain string) (wide, ok bool) {
	domain = strings.ToLower(strings.TrimPrefix(domain, "."))
	switch {
	case domain == "":
		return false, true
	case domain == host:
		return true, true
	case net.ParseIP(host) != nil || !strings.HasSuffix(host, "."+domain):
		return true, false
	}
	// A name without a dot that is not in the list, such as that of a local
	// machine, is a suffix as well.
	suffix, _ := publicsuffix.PublicSuffix(domain)
	return true, suffix != domain
}

// siteOf returns the registered domain of a host; the host if it has none.
func siteOf(host string) string {
	if net.ParseIP(host) == nil {
		if domain, err := publicsuffix.EffectiveTLDPlusOne(strings.TrimSuffix(host, ".")); err == nil {
			return strings.Clone(domain)
		}
	}
	return host
}

// cookiePath returns the path of a URL as it is in the request.
func cookiePath(u *url.URL) string {
	if p := u.EscapedPath(); strings.HasPrefix(p, "/") {
		return p
	}
	return "/"
}

// defaultPath is the path of cookies that specify none: that of u up to its last
// slash.
func defaultPath(u *url.URL) string {
	p := cookiePath(u)
	if i := strings.LastIndexByte(p, '/'); 0 < i && i <= maxCookiePath {
		return strings.Clone(p[:i])
	}
	return "/"
}

// inPath reports whether a cookie for path of is sent with a request for path p.
func inPath(p, of string) bool {
	rest, ok := strings.CutPrefix(p, of)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(of, "/"))
}
