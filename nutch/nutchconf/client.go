package nutchconf

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/recrawl/recrawl/protocol/httpproto"
)

// agent sets the name of the crawler and the contact of its operator.
func (b *builder) agent(o *Options) {
	h := &o.Crawl.HTTP
	h.Agent = b.sent("http.agent.name")
	o.Crawl.Agent = strings.Map(func(r rune) rune {
		if 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return -1
	}, h.Agent)
	switch {
	case o.Crawl.Agent == "" && h.Agent != "" && !b.failed["http.agent.name"]:
		b.fail("http.agent.name", "%q has no character that a name in robots.txt may have", h.Agent)
	case o.Crawl.Agent != h.Agent:
		b.note("http.agent.name", "the name is not a product token, so robots.txt cannot name it; rules for \""+o.Crawl.Agent+"\" are obeyed instead")
	}
	h.Version = b.sent("http.agent.version")
	var about []string
	for _, name := range []string{"http.agent.description", "http.agent.url", "http.agent.email"} {
		if text := b.sent(name); text != "" {
			about = append(about, text)
		}
	}
	if email := b.sent("http.agent.email"); strings.Count(email, "@") == 1 && !strings.Contains(email, " ") {
		h.From = email
	}
	if h.Agent == "" {
		return // the caller may set another one
	}
	// name/version (description; url; email)
	h.UserAgent = h.Agent
	if h.Version != "" {
		h.UserAgent += "/" + h.Version
	}
	if len(about) > 0 {
		h.UserAgent += " (" + strings.Join(about, "; ") + ")"
	}
}

// sent returns a text for a header: on one line, and printable ASCII.
func (b *builder) sent(name string) string {
	text := strings.Join(b.words(name), " ")
	if strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
		b.fail(name, "%q is not printable ASCII", text)
	}
	return text
}

// http sets the options of HTTP requests.
func (b *builder) http(h *httpproto.Options) {
	timeout := b.millis("http.timeout")
	if timeout <= 0 {
		timeout = -1
	}
	h.Limits.ConnectTimeout, h.Limits.TLSTimeout, h.Limits.HeaderTimeout = timeout, timeout, timeout
	if h.Limits.TimeLimit = b.wholeSeconds("http.time.limit"); h.Limits.TimeLimit <= 0 {
		h.Limits.TimeLimit = -1
	}
	h.Limits.MaxBytes = int64(b.limit("http.content.limit"))
	h.Accept = b.header("http.accept")
	h.AcceptLanguage = b.header("http.accept.language")
	h.InsecureSkipVerify = !b.bool("http.tls.certificates.check")
	b.proxy(h)
	b.addresses(h)
	b.cookies(h)
}

// proxy sets the proxy.
func (b *builder) proxy(h *httpproto.Options) {
	host := b.sent("http.proxy.host")
	port := b.int("http.proxy.port")
	user, password := b.sent("http.proxy.username"), b.sent("http.proxy.password")
	switch {
	case host == "":
		return
	case strings.ContainsAny(host, "/@?# ") || strings.Contains(host, ":") && !strings.HasPrefix(host, "["):
		b.fail("http.proxy.host", "%q is not a host name", host)
	case port < 1 || port > 65535:
		b.fail("http.proxy.port", "%d is not within 1 to 65535", port)
	}
	if kind := b.sent("http.proxy.type"); !strings.EqualFold(kind, "HTTP") {
		b.fail("http.proxy.type", "%q: only HTTP proxies are supported", kind)
	}
	u := url.URL{Scheme: "http", Host: host + ":" + strconv.Itoa(port)}
	if user != "" {
		u.User = url.UserPassword(user, password)
	}
	h.Proxy = u.String()
}

// header returns the value of a request header.
func (b *builder) header(name string) string {
	s := b.sent(name)
	if s == "" && b.set(name) {
		b.note(name, "the header cannot be left out; the default of "+field(name)+" is used")
	}
	return s
}

func (b *builder) file(o *Options) {
	o.File.MaxBytes = int64(b.limit("file.content.limit"))
}

// addresses sets which addresses may be dialled.
func (b *builder) addresses(h *httpproto.Options) {
	h.Guard.Only = b.networks("http.filter.ipaddress.include")
	h.Guard.Deny = b.networks("http.filter.ipaddress.exclude")
}

// networks returns the addresses and networks of a list; some are given by name.
func (b *builder) networks(name string) (all []netip.Prefix) {
	for _, s := range b.list(name) {
		named, ok := map[string][]string{
			"localhost": {"127.0.0.0/8", "::1/128"},
			"loopback":  {"127.0.0.0/8", "::1/128"},
			// fec0::/10, and its successor in RFC 4193.
			"sitelocal": {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fec0::/10", "fc00::/7"},
		}[strings.ToLower(s)]
		if !ok {
			named = []string{s}
		}
		for _, n := range named {
			p, err := netip.ParsePrefix(n)
			if a, e := netip.ParseAddr(n); e == nil && a.Zone() == "" {
				p, err = a.Prefix(a.BitLen())
			}
			if err != nil {
				b.fail(name, "%q is neither an address nor a network, nor localhost, loopback or sitelocal", s)
				continue
			}
			all = append(all, p.Masked())
		}
	}
	return all
}
