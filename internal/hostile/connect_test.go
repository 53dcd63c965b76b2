package hostile_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// forbidden are spellings of addresses that no stranger may make us dial.
var forbidden = []string{
	"127.0.0.1", "127.1", "127.0.0.1.", "2130706433", "0x7f000001", "0177.0.0.1", "127.255.255.254", "0.0.0.0", "10.0.0.1", "172.16.0.1",
	"192.168.0.1", "100.64.0.1", "100.100.100.200", "169.254.169.254", "169.254.170.2", "168.63.129.16", "192.0.0.192", "192.0.2.1", "198.18.0.1",
	"198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]",
	"[::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::1]", "[2002:7f00:1::]", "[2001::1]", "[2001:db8::1]", "[fe80::1]", "[fc00::1]", "[fd00:ec2::254]",
	"169.254.170.23", "169.254.42.42", "[fd20:ce::254]", "[fe80::a9fe:a9fe]", "[2a00::5efe:7f00:1]", "[::ffff:0:7f00:1]",
	"[fec0::1]", "[ff02::1]", "[100::1]", "[5f00::1]", "１２７.0.0.1", "localhost",
}

// untouched is a site to which no connection may be made.
func untouched(name string) site {
	return site{name: name, silent: true, handle: page200}
}

func page200(c *conn) { only(html("secret"))(c) }

func wantUntouched(t testing.TB, c *crawl, names ...string) {
	t.Helper()
	for _, name := range names {
		if n := c.servers[name].accepted.Load(); n != 0 {
			t.Errorf("%d connections to %s", n, name)
		}
	}
}

func connectRows() []row {
	return []row{
		s1(), s2(), s3(), s4(), s5(), s6(), s7(), s8(), s9(), s10(),
	}
}

func s1() row {
	// Each address is asked for at the port of a server that notes connections to
	// this machine, which is known when that is up.
	var port atomic.Value
	all := func(format string) string {
		var b strings.Builder
		for _, a := range forbidden {
			fmt.Fprintf(&b, format, a, port.Load())
		}
		return b.String()
	}
	r := row{
		id: "S1", input: "private, local and special addresses and their spellings, as seed, link, redirect, redirect of robots.txt and sitemap",
		outcome: "refused at dial time, however they were named",
		figure:  fmt.Sprintf("%d addresses by 5 routes: 0 connections, all refused", len(forbidden)),
		sites: []site{
			untouched("canary"),
			{name: "sitemaps", code: protocol.Success, handle: replying(func(r *http.Request) string {
				if r.RequestURI == "/robots.txt" {
					return file(all("Sitemap: http://%s:%s/sitemap\n"))
				}
				return html("hello")
			})},
			{name: "links", code: protocol.Success, handle: replying(func(r *http.Request) string {
				if r.RequestURI != "/" {
					return ""
				}
				return html(all("<a href='http://%s:%s/link'>x</a>"))
			})},
		},
		check: func(t testing.TB, c *crawl) {
			wantUntouched(t, c, "canary")
			listed := 0
			for u := range c.visits {
				if strings.HasSuffix(u, "/sitemap") {
					listed++
				}
			}
			if listed < len(forbidden)/2 {
				t.Errorf("%d visits to sitemaps at forbidden addresses", listed)
			}
			// Not every spelling is a URL of its own, and not all are kept.
			n := 0
			for u, vs := range c.visits {
				if !strings.Contains(u, ":"+c.port("canary")+"/") {
					continue
				}
				n++
				want := protocol.Refused
				if strings.HasPrefix(u, "http://localhost:") { // which no one here has an address for
					want = protocol.RobotsFailed
				}
				if o := vs[len(vs)-1].Outcome; o.Code != want {
					t.Errorf("%s: %v %q", u, o.Code, o.Reason)
				}
			}
			if n < 2*len(forbidden) {
				t.Errorf("%d visits to forbidden addresses", n)
			}
		},
	}
	for _, a := range forbidden {
		r.seeds = append(r.seeds, "http://"+a+":{canary}/seed")
	}
	for i, a := range forbidden {
		target := func() string { return redirect(fmt.Sprintf("http://%s:%s/", a, port.Load())) }
		r.sites = append(r.sites, site{name: fmt.Sprintf("redirect%d", i), code: protocol.MovedTemp, handle: replying(func(r *http.Request) string {
			if r.RequestURI == "/robots.txt" {
				return nothing
			}
			return target()
		})}, site{name: fmt.Sprintf("robots%d", i), code: protocol.RobotsFailed, handle: replying(func(r *http.Request) string {
			if r.RequestURI == "/robots.txt" {
				return target()
			}
			return html("hello")
		})})
	}
	r.edit = func(c *crawl) { port.Store(c.port("canary")) }
	return r
}

func manyLinks(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "<a href='"+format+"'>x</a>", i)
	}
	return b.String()
}

func s2() row {
	const names = 200
	var flips atomic.Int64
	r := row{
		id: "S2", input: "names that resolve differently at each look-up, or have a private address among others", outcome: "each address is judged when it is dialled",
		figure: fmt.Sprintf("%d names: 0 connections", names),
		sites:  []site{untouched("canary")},
		edit: func(c *crawl) {
			c.http.LookupTime = 1
			c.opts.Fetch.Politeness.NoRobots = true
			// 127.0.0.9 stands for a public address where nobody listens.
			public, private := netip.MustParseAddr("127.0.0.9"), netip.MustParseAddr("127.0.0.1")
			c.http.Guard.Allow = []netip.Prefix{netip.PrefixFrom(public, 32)}
			c.http.Resolver = func(context.Context, string, string) ([]netip.Addr, error) {
				switch flips.Add(1) % 4 {
				case 0:
					return []netip.Addr{public}, nil
				case 1:
					return []netip.Addr{public, private}, nil
				case 2:
					return []netip.Addr{private, public}, nil
				}
				return []netip.Addr{private}, nil
			}
		},
		check: func(t testing.TB, c *crawl) {
			wantUntouched(t, c, "canary")
			if n := flips.Load(); n < names {
				t.Errorf("%d look-ups of %d names", n, names)
			}
		},
	}
	for i := range names {
		r.seeds = append(r.seeds, fmt.Sprintf("http://n%d.s2.test:{canary}/", i))
	}
	return r
}

func s3() row {
	found := func(header string) string { return answer("302 Found", header, "") }
	r := row{
		id: "S3", input: "redirects in loops of one and two, empty, missing, relative, without scheme, a fragment only, not ASCII, 100 KiB long, twice, broken",
		outcome: "each target is a URL like any other, visited once; an invalid target is a failure with a reason",
		check: func(t testing.TB, c *crawl) {
			for name, s := range c.servers {
				counts := map[string]int{}
				all := s.requests()
				for _, r := range all {
					if counts[r.path]++; counts[r.path] > 1 || len(r.path) > 4096 {
						t.Errorf("%s: %.100q was asked for %d times", name, r.path, counts[r.path])
					}
				}
				if len(all) == 0 || len(all) > 6 {
					t.Errorf("%s: %d requests", name, len(all))
				}
			}
		},
	}
	for _, k := range []struct {
		name    string
		answers map[string]string
		code    protocol.Code
	}{
		{"itself", map[string]string{"/": found("Location: /\r\n")}, protocol.MovedTemp},
		{"two", map[string]string{"/": found("Location: /b\r\n"), "/b": found("Location: /\r\n")}, protocol.MovedTemp},
		{"three", map[string]string{"/": answer("301 Moved", "Location: /b\r\n", ""), "/b": answer("308 Moved", "Location: /c\r\n", ""), "/c": answer("307 Moved", "Location: /\r\n", "")}, protocol.MovedPerm},
		{"see-other", map[string]string{"/": answer("303 See Other", "Location: ?\r\n", "")}, protocol.MovedTemp},
		{"empty", map[string]string{"/": found("Location: \r\n")}, protocol.Failed},
		{"missing", map[string]string{"/": found("")}, protocol.Failed},
		{"scheme", map[string]string{"/": found("Location: //scheme.s3.test/\r\n")}, protocol.MovedTemp},
		{"fragment", map[string]string{"/": found("Location: #here\r\n")}, protocol.MovedTemp},
		{"bytes", map[string]string{"/": found("Location: /r\xc3\xa9d\r\n")}, protocol.MovedTemp},
		{"latin", map[string]string{"/": found("Location: /r\xe9d\r\n")}, protocol.MovedTemp},
		{"long", map[string]string{"/": found("Location: /" + strings.Repeat("x", 100<<10) + "\r\n")}, protocol.Failed},
		{"twice", map[string]string{"/": found("Location: /a\r\nLocation: /b\r\n")}, protocol.MovedTemp},
		{"bracket", map[string]string{"/": found("Location: http://[::1\r\n")}, protocol.Failed},
		{"port", map[string]string{"/": found("Location: http://port.s3.test:99999/\r\n")}, protocol.Failed},
		{"body", map[string]string{"/": answer("302 Found", "Location: /\r\n", "<a href=/x>x</a>")}, protocol.MovedTemp},
	} {
		r.sites = append(r.sites, site{name: k.name, code: k.code, handle: paths(k.answers)})
	}
	r.figure = fmt.Sprintf("%d shapes: 1 request for a URL, ≤ 6 for a shape", len(r.sites))
	return r
}

func s4() row {
	targets := []string{"file:///etc/hostname", "ftp://{h}/", "data:text/html,<a href=/x>", "javascript:alert(1)", "gopher://{h}/", "about:blank", "ws://{h}/", "http://{h}:22/", "https://{h}:25/", "http://{h}:6379/", "HTTPS:\\\\{h}\\"}
	r := row{
		id: "S4", input: "redirects and links to file, ftp, data, javascript, gopher, about, ws, and to the ports of other protocols", outcome: "nothing but http and https is ever opened, and no port of mail, shells or databases",
		figure: fmt.Sprintf("%d schemes and 3 ports by 2 routes: 0 visits", len(targets)-4),
		sites:  []site{untouched("target")},
		edit:   hasty,
		check: func(t testing.TB, c *crawl) {
			ports := 0
			for u, vs := range c.visits {
				scheme, _, _ := strings.Cut(u, ":")
				o := vs[len(vs)-1].Outcome
				port := strings.Contains(u, "target.s4.test:")
				if port {
					ports++
				}
				if (port || scheme != "http" && scheme != "https") && o.Code != protocol.Refused {
					t.Errorf("%s: %v %s", u, o.Code, o.Reason)
				}
			}
			if ports != 3 {
				t.Errorf("%d visits to ports of other protocols", ports)
			}
		},
	}
	for i, target := range targets {
		target = strings.ReplaceAll(target, "{h}", "target.s4.test")
		r.sites = append(r.sites, site{name: fmt.Sprintf("s%d", i), handle: paths(map[string]string{
			"/": html("<a href='" + target + "'>x</a><a href=/r>x</a><meta http-equiv=refresh content='0;url=" + target + "'>"), "/r": redirect(target),
		})})
	}
	return r
}

func s5() row {
	to := func(path string) string { return "http://guarded.s5.test" + path }
	return row{
		id: "S5", input: "redirects, meta refreshes, Refresh headers, links and chains into what robots.txt of another host forbids, and to another port of it",
		outcome: "each hop obeys the robots.txt of its own origin", figure: "6 routes: 0 forbidden requests",
		sites: []site{
			{name: "guarded", silent: true, handle: paths(map[string]string{"/robots.txt": answer("200 OK", "", "User-agent: *\nDisallow: /"), "/open": html("no")})},
			{name: "hop", silent: true, handle: paths(map[string]string{"/": redirect(to("/chain"))})},
			{name: "routes", code: protocol.Success, handle: paths(map[string]string{
				"/":         html("<a href=" + to("/link") + ">x</a><a href=/redirect>x</a><a href=/meta>x</a><a href=/header>x</a><a href=/chain>x</a><a href=/port>x</a>"),
				"/redirect": redirect(to("/redirect")),
				"/meta":     html("<meta http-equiv=refresh content='0;url=" + to("/meta") + "'>"),
				"/header":   answer("200 OK", "Content-Type: text/html\r\nRefresh: 0;url="+to("/header")+"\r\n", "x"),
				"/chain":    redirect("http://hop.s5.test/"),
				"/port":     redirect("http://guarded.s5.test:8080/port"),
			})},
		},
		check: func(t testing.TB, c *crawl) {
			for _, r := range c.servers["guarded"].requests() {
				t.Errorf("%s was asked for", r.path)
			}
			for _, u := range []string{to("/link"), to("/redirect"), to("/meta"), to("/header"), to("/chain"), "http://guarded.s5.test:8080/port"} {
				if o := c.visit(t, u).Outcome; o.Code != protocol.RobotsDenied {
					t.Errorf("%s: %v", u, o.Code)
				}
			}
		},
	}
}

func s6() row {
	secrets := []string{"Basic dXNlcjpzZWNyZXQ=", "user", "secret"}
	other := func(r *http.Request) string {
		if r.RequestURI == "/robots.txt" || r.RequestURI == "/last" {
			return nothing
		}
		return redirect("http://other.s6.test/last")
	}
	page := func(r *http.Request) string {
		if r.RequestURI != "/" {
			return other(r)
		}
		return answer("200 OK", "Content-Type: text/html\r\nSet-Cookie: secret=1\r\n", "<a href=http://other.s6.test/a>x</a><a href=https://owner.s6.test/b>x</a>"+
			"<a href=http://owner.s6.test:8080/c>x</a><a href=http://sub.owner.s6.test/d>x</a><a href=http://user:secret@other.s6.test/e>x</a><a href=/back>x</a>")
	}
	return row{
		id: "S6", input: "a page behind a login that links and redirects to other hosts, subdomains, ports, schemes, and to URLs with user information",
		outcome: "credentials go to their origin only; no cookie and no Referer is sent", figure: "6 routes: 0 secrets received",
		sites: []site{
			{name: "owner", code: protocol.Success, handle: replying(page)},
			{name: "other", silent: true, handle: replying(other)},
			{name: "sub.owner", silent: true, handle: replying(other)},
		},
		edit: func(c *crawl) {
			hasty(c) // no handshake will come from a server without TLS
			c.http.Logins = []httpproto.Login{{Origin: "http://owner.s6.test", User: "user", Password: "secret"}}
		},
		check: func(t testing.TB, c *crawl) {
			if len(c.servers["other"].requests()) == 0 {
				t.Error("no request to the other host")
			}
			for name, s := range c.servers {
				for _, r := range s.requests() {
					own := name == "owner" && (r.path == "/" || r.path == "/back")
					if own && r.header.Get("Authorization") != secrets[0] {
						t.Errorf("%s%s: no login", name, r.path)
					}
					for k, vs := range r.header {
						if s := strings.Join(vs, " "); k == "Cookie" || k == "Referer" || !own && (k == "Authorization" || strings.Contains(s, secrets[0]) || strings.Contains(s, secrets[2])) {
							t.Errorf("%s%s: %s: %s", name, r.path, k, s)
						}
					}
				}
			}
		},
	}
}

func s7() row {
	var jar *httpproto.Jar // of the crawl, of which there may be several
	page := func(lines string, links ...string) string {
		var b strings.Builder
		for _, l := range links {
			fmt.Fprintf(&b, "<a href='%s'>x</a>", l)
		}
		return answer("200 OK", "Content-Type: text/html\r\n"+lines, b.String())
	}
	many := func(n, size int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "Set-Cookie: n%d=%s; Path=/; Domain=s7.test\r\n", i, strings.Repeat("x", size))
		}
		return b.String()
	}
	set := "Set-Cookie: secret=1; Path=/\r\nSet-Cookie: wide=1; Path=/; Domain=s7.test\r\nSet-Cookie: suffix=1; Path=/; Domain=test\r\n" +
		"Set-Cookie: foreign=1; Path=/; Domain=other.s7.test\r\nSet-Cookie: __Host-a=1; Path=/; Secure\r\nSet-Cookie: over=1; Path=/; Secure\r\n"
	r := row{
		id: "S7", input: "10,000 cookies, a cookie of 200 KB, for a public suffix, another host, the domain, and Secure ones over http, to a crawl that asked for cookies",
		outcome: "each goes back to the origin that set it, and to no other; 50 of 4 KiB are kept per host; a crawl that did not ask for cookies keeps none (S6)",
		figure:  "≤ 256 KiB in the jar for a domain, 0 cookies sent to another origin",
		sites: []site{
			{name: "jar", code: protocol.Success, handle: paths(map[string]string{
				"/":     page(set, "/back", "http://other.s7.test/a", "http://jar.s7.test:8080/b", "https://jar.s7.test/c", "http://sub.jar.s7.test/d", "http://s7.test/e", "/away"),
				"/back": page(""), "/away": answer("302 Found", set+"Location: http://other.s7.test/f\r\n", ""),
			})},
			{name: "other", silent: true, handle: replying(func(r *http.Request) string {
				if r.RequestURI == "/robots.txt" {
					return nothing
				}
				return page("")
			})},
			{name: "sub.jar", silent: true, handle: paths(map[string]string{"/d": page("")})},
			{name: "many", code: protocol.Success, handle: paths(map[string]string{"/": page(many(10_000, 0), "/again"), "/again": page(many(50, 4000), "/last"), "/last": page("")})},
			{name: "big", code: protocol.Success, handle: paths(map[string]string{"/": page(many(1, 200<<10), "/again"), "/again": page("")})},
		},
		edit: func(c *crawl) {
			hasty(c) // no handshake will come from a server without TLS
			jar = new(httpproto.Jar)
			c.http.Jar = jar
			c.http.Limits.MaxHeaderBytes = 1 << 20
			to := c.servers["other"].addr
			port := netip.MustParseAddrPort(to)
			c.http.ConnectTo = append([]httpproto.ConnectTo{
				{Host: "s7.test", ToHost: port.Addr().String(), ToPort: port.Port()}, {Host: "jar.s7.test", Port: 8080, ToHost: port.Addr().String(), ToPort: port.Port()},
			}, c.http.ConnectTo...)
		},
		check: func(t testing.TB, c *crawl) {
			if n := jar.Size(); n == 0 || n > 256<<10 {
				t.Errorf("%d bytes in the jar", n)
			}
			sent := map[string]string{}
			for name, s := range c.servers {
				for _, r := range s.requests() {
					if r.path != "/robots.txt" {
						sent[name+r.path] = strings.Join(r.header["Cookie"], "|")
					}
				}
			}
			for at, want := range map[string]string{
				"jar/": "", "jar/back": "secret=1; wide=1", "jar/away": "secret=1; wide=1", "other/a": "", "other/b": "", "other/e": "", "other/f": "", "sub.jar/d": "",
				"big/": "", "big/again": "",
			} {
				if got, ok := sent[at]; !ok || got != want {
					t.Errorf("%s was sent %.80q, want %q (asked for: %v)", at, got, want, ok)
				}
			}
			for at, n := range map[string]int{"many/again": 50, "many/last": 4} {
				if got := strings.Count(sent[at], "="); got != n {
					t.Errorf("%s was sent %d cookies, want %d", at, got, n)
				}
			}
		},
	}
	return r
}

func s8() row {
	links := []string{
		"http://SPELL.s8.TEST/", "http://spell.s8.test:80/", "http://spell.s8.test:/", "http:\\\\spell.s8.test\\", "http://sp%65ll.s8.test/", "http://ｓｐｅｌｌ.s8.test/",
		"http://spell.s8.test/#top", " http://spell.s8.test/ ", "HTTP://spell.s8.test", "http://spe\tll.s8.test/", "http:spell.s8.test",
		"http://spell.s8.test:0/", "http://spell.s8.test:99999/", "http://spell.s8.test:80a/", "http://[fe80::1%25lo]/", "http://a..s8.test/", "http://" + strings.Repeat("a", 64) + ".s8.test/",
		"http://" + strings.Repeat("a.", 130) + "s8.test/", "http://xn--a.s8.test/", "http://spell.s8.test\x00.evil.test/", "http:///", "http://", "//", "http://%00/", "http://a b/", "http://<>/",
	}
	return row{
		id: "S8", input: "spellings of one host, and invalid hosts: case, ports, full width, backslashes, zones, NUL, labels and names too long, bad punycode",
		outcome: "one host is one record; an invalid host is not visited, or fails with a reason", figure: fmt.Sprintf("%d spellings: 1 request for the page, ≤ 1 record a host", len(links)),
		sites: []site{{name: "spell", code: protocol.Success, handle: replying(func(r *http.Request) string {
			if r.RequestURI != "/" {
				return ""
			}
			var b strings.Builder
			for _, l := range links {
				b.WriteString("<a href=\"" + l + "\">x</a>")
			}
			return html(b.String())
		})}},
		check: func(t testing.TB, c *crawl) {
			if n := c.servers["spell"].count("/"); n != 1 {
				t.Errorf("%d requests for one page", n)
			}
			for u, vs := range c.visits {
				if strings.Contains(u, "example.test") {
					continue
				}
				if u != "http://spell.s8.test/" && vs[0].Outcome.Code == protocol.Success {
					t.Errorf("%q is a page", u)
				}
			}
		},
	}
}

func s9() row {
	settings, goaway := frame(4, 0, 0, ""), frame(7, 0, 0, "\x00\x00\x00\x00\x00\x00\x00\x00")
	refuse := func(stream uint32) string { return frame(3, 0, stream, "\x00\x00\x00\x07") }
	r := row{
		id: "S9", input: "GOAWAY, refused streams and closed connections in answer to each request", outcome: "the visit fails; no request is sent again in it",
		figure: "1 request a visit",
		edit:   func(c *crawl) { hasty(c); c.opts.Fetch.Politeness.NoRobots = true },
		check: func(t testing.TB, c *crawl) {
			for name, s := range c.servers {
				requests, visits := len(s.requests()), len(c.visits["https://"+c.host[name]+"/"])
				if requests != visits || requests == 0 {
					t.Errorf("%s: %d requests for %d visits", name, requests, visits)
				}
			}
		},
	}
	for name, say := range map[string]func(c *conn, stream uint32){
		"goaway": func(c *conn, _ uint32) { c.say(goaway) },
		"refuse": func(c *conn, stream uint32) { c.say(refuse(stream)) },
		"both":   func(c *conn, stream uint32) { c.say(refuse(stream) + goaway); c.Close() },
		"close":  func(c *conn, _ uint32) { c.Close() },
	} {
		r.sites = append(r.sites, site{name: name, scheme: "h2", code: protocol.Failed, handle: func(c *conn) {
			c.say(settings)
			for id := range c.streams {
				say(c, id)
			}
		}})
	}
	return r
}

func s10() row {
	return row{
		id: "S10", input: "proxies in the environment, Alt-Svc, a Refresh header", outcome: "the environment and Alt-Svc are ignored; the target of a refresh is treated as a link",
		figure: "0 connections to proxy and alternative",
		sites: []site{
			untouched("proxy"), untouched("alternative"),
			{name: "page", code: protocol.Success, handle: paths(map[string]string{
				"/":     answer("200 OK", "Content-Type: text/html\r\nAlt-Svc: h2=\"alternative.s10.test:443\"; ma=3600, http/1.1=\"alternative.s10.test:80\"\r\nRefresh: 0; url=/next\r\n", "<a href=/link>x</a>"),
				"/next": html("x"), "/link": html("x"),
			})},
		},
		edit: func(c *crawl) {
			for _, k := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
				c.t.Setenv(k, "http://127.0.0.1:"+c.port("proxy"))
			}
		},
		check: func(t testing.TB, c *crawl) {
			wantUntouched(t, c, "proxy", "alternative")
			for _, p := range []string{"/next", "/link"} {
				if n := c.servers["page"].count(p); n != 1 {
					t.Errorf("%d requests for %s", n, p)
				}
			}
		},
	}
}
