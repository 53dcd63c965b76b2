package hostile_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
)

func robotsRows() []row { return []row{r1(), r2(), r3(), r4(), r5(), r6()} }

// robotsTxt is a handler whose robots.txt is given, and whose pages all exist.
func robotsTxt(raw string) func(*conn) {
	return replying(func(r *http.Request) string {
		if r.RequestURI == "/robots.txt" {
			return raw
		}
		return html("hello")
	})
}

// denyAll forbids everything to everybody.
const denyAll = "User-agent: *\nDisallow: /\n"

func file(body string) string { return answer("200 OK", "Content-Type: text/plain\r\n", body) }

// asked returns a check that a page was asked for if that is allowed, and only
// then.
func asked(sites []site) func(testing.TB, *crawl) {
	return func(t testing.TB, c *crawl) {
		for _, s := range sites {
			if n := c.servers[s.name].count("/"); (s.code == protocol.Success) != (n == 1) {
				t.Errorf("%s: %d requests for the page", s.name, n)
			}
		}
	}
}

// hops returns a handler whose robots.txt is n redirects away.
func hops(n int, last string) func(*conn) {
	return replying(func(r *http.Request) string {
		i := 0
		if r.RequestURI == "/" {
			return html("hello")
		} else if r.RequestURI != "/robots.txt" {
			fmt.Sscanf(r.RequestURI, "/hop%d", &i)
		}
		if i < n {
			return redirect(fmt.Sprintf("/hop%d", i+1))
		}
		return last
	})
}

func r1() row {
	status := func(s string) func(*conn) { return robotsTxt(answer(s, "", denyAll)) }
	broken := func(how func(*conn)) func(*conn) {
		return func(c *conn) {
			for {
				r, ok := c.request()
				if !ok {
					return
				}
				if r.RequestURI == "/robots.txt" {
					how(c)
					return
				}
				c.say(html("hello"))
			}
		}
	}
	r := row{
		id: "R1", input: "robots.txt with every kind of status, redirects, dead connections and silence",
		outcome: "2xx is read, redirects are followed five times, 4xx allows; 429, 5xx and no answer forbid for now and the pages wait",
		sites: []site{
			{name: "s200", handle: status("200 OK"), code: protocol.RobotsDenied},
			{name: "s203", handle: status("203 OK"), code: protocol.RobotsDenied},
			{name: "s204", handle: robotsTxt("HTTP/1.1 204 No Content\r\n\r\n"), code: protocol.Success},
			{name: "s401", handle: status("401 No"), code: protocol.Success},
			{name: "s403", handle: status("403 No"), code: protocol.Success},
			{name: "s404", handle: status("404 No"), code: protocol.Success},
			{name: "s410", handle: status("410 No"), code: protocol.Success},
			{name: "s418", handle: status("418 No"), code: protocol.Success},
			{name: "s429", handle: status("429 Slow"), code: protocol.RobotsFailed},
			{name: "s500", handle: status("500 Ouch"), code: protocol.RobotsFailed},
			{name: "s503", handle: robotsTxt(answer("503 Later", "Retry-After: 9999999999\r\n", denyAll)), code: protocol.RobotsFailed},
			{name: "s999", handle: status("999 What"), code: protocol.RobotsFailed},
			{name: "hop1", handle: hops(1, file(denyAll)), code: protocol.RobotsDenied},
			{name: "hop5", handle: hops(5, file(denyAll)), code: protocol.RobotsDenied},
			{name: "hop6", handle: hops(6, file(denyAll)), code: protocol.Success},
			{name: "loop", handle: hops(1<<30, ""), code: protocol.Success},
			{name: "nowhere", handle: robotsTxt(answer("301 Moved", "", "")), code: protocol.Success},
			{name: "away", handle: robotsTxt(redirect("http://s200.r1.test/robots.txt")), code: protocol.RobotsDenied},
			{name: "to-file", handle: robotsTxt(redirect("file:///etc/passwd")), code: protocol.RobotsFailed},
			{name: "close", handle: broken(func(c *conn) { c.Close() }), code: protocol.RobotsFailed},
			{name: "silent", handle: broken(func(*conn) {}), code: protocol.RobotsFailed},
			{name: "junk", handle: broken(func(c *conn) { c.say("\x00\x01\x02\r\n\r\n") }), code: protocol.RobotsFailed},
		},
		edit: hasty,
	}
	r.figure = fmt.Sprintf("%d answers: exact outcomes, ≤ 6 requests for a robots.txt, 0 forbidden requests", len(r.sites))
	r.check = func(t testing.TB, c *crawl) {
		asked(r.sites)(t, c)
		for name, s := range c.servers {
			if n := len(s.seen) - s.count("/"); n > 6 {
				t.Errorf("%s: %d requests for robots.txt", name, n)
			}
		}
	}
	return r
}

func r2() row {
	filler := strings.Repeat("# nothing to see here\n", 30_000)
	head := "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
	flood := func(first, again string) func(*conn) {
		return func(c *conn) {
			for {
				r, ok := c.request()
				if !ok {
					return
				}
				if r.RequestURI != "/robots.txt" {
					c.say(html("hello"))
					continue
				}
				c.flood(head+first, again)
				return
			}
		}
	}
	r := row{
		id: "R2", pages: 20, input: "robots.txt of 650 KB, endless, in one line, compressed as a bomb, behind a redirect", outcome: "500 KiB are read, and the complete lines in them hold",
		sites: []site{
			{name: "within", handle: robotsTxt(file(filler[:511_900-len(filler[:511_900])%22] + denyAll + filler)), code: protocol.RobotsDenied},
			{name: "beyond", handle: robotsTxt(file(filler + denyAll)), code: protocol.Success},
			{name: "endless", handle: flood(denyAll, "# x\n"), code: protocol.RobotsDenied},
			{name: "line", handle: flood(denyAll, "x"), code: protocol.RobotsDenied},
			{name: "bomb", handle: robotsTxt(answer("200 OK", "Content-Encoding: gzip\r\n", gzipped(16<<20, 1))), code: protocol.Success},
			{name: "away", handle: robotsTxt(redirect("http://endless.r2.test/robots.txt")), code: protocol.RobotsDenied},
		},
	}
	r.figure = fmt.Sprintf("%d files: exact outcomes; a rule that ends before byte 512,000 holds", len(r.sites))
	r.check = asked(r.sites)
	return r
}

func r3() row {
	wide := func(order func(uint16) []byte, s string) string {
		var b []byte
		for _, u := range utf16.Encode([]rune("\ufeff" + s)) {
			b = append(b, order(u)...)
		}
		return string(b)
	}
	stars := "User-agent: *\nDisallow: /" + strings.Repeat("a*", 50) + "b$\n"
	r := row{
		id: "R3", pages: 20, input: "robots.txt with BOM, in UTF-16, with CR only, with NUL, as HTML, with a line of 64 KB, 20,000 groups, 50 stars; paths that stars match slowly",
		outcome: "read as the site meant it; what cannot be parsed is skipped",
		sites: []site{
			{name: "bom", handle: robotsTxt(file("\ufeff" + denyAll)), code: protocol.RobotsDenied},
			{name: "utf16-le", handle: robotsTxt(file(wide(func(u uint16) []byte { return []byte{byte(u), byte(u >> 8)} }, denyAll))), code: protocol.RobotsDenied},
			{name: "utf16-be", handle: robotsTxt(file(wide(func(u uint16) []byte { return []byte{byte(u >> 8), byte(u)} }, denyAll))), code: protocol.RobotsDenied},
			{name: "cr", handle: robotsTxt(file(strings.ReplaceAll(denyAll, "\n", "\r"))), code: protocol.RobotsDenied},
			{name: "nul", handle: robotsTxt(file("\x00\x00" + denyAll)), code: protocol.RobotsDenied},
			{name: "html", handle: robotsTxt(answer("200 OK", "Content-Type: text/html\r\n", "<!DOCTYPE html><html><body><p>Not found</p></body></html>")), code: protocol.Success},
			{name: "line", handle: robotsTxt(file("# " + strings.Repeat("x", 64<<10) + "\n" + denyAll)), code: protocol.RobotsDenied},
			{name: "groups", handle: robotsTxt(file(strings.Repeat("User-agent: x\nDisallow: /\n\n", 18_000)[:450_000] + "\n\n" + denyAll)), code: protocol.RobotsDenied},
			{name: "rules", handle: robotsTxt(file("User-agent: *\n" + strings.Repeat("Allow: /a*b*c\n", 30_000) + "Disallow: /\n")), code: protocol.RobotsDenied},
			{name: "stars", code: protocol.Success, handle: replying(func(r *http.Request) string {
				switch r.RequestURI {
				case "/robots.txt":
					return file(stars)
				case "/":
					return html("<a href=/" + strings.Repeat("a", 4000) + ">x</a>")
				}
				return html("hello")
			})},
			{name: "binary", handle: robotsTxt(file("\x89PNG\r\n\x1a\n" + strings.Repeat("\xff\xfe\x00\x01", 1000))), code: protocol.Success},
			{name: "encoded", handle: robotsTxt(file("User-agent: *\nDisallow: /%2\nDisallow: /%zz\nDisallow: %2F\nAllow: /\xff\xfe\n")), code: protocol.Success},
		},
	}
	r.figure = fmt.Sprintf("%d files: exact outcomes, 0 forbidden requests", len(r.sites))
	r.check = asked(r.sites)
	return r
}

func r4() row {
	delay := func(s string) func(*conn) {
		return robotsTxt(file("User-agent: *\nCrawl-delay: " + s + "\nDisallow: /x\n"))
	}
	r := row{
		id: "R4", input: "Crawl-delay that is huge, negative, not a number, infinite; Retry-After of centuries, negative, of the year 9999",
		outcome: "a delay beyond the limit leaves the pages unvisited, nonsense is ignored, and a Retry-After is clamped",
		sites: []site{
			{name: "huge", handle: delay("1e9"), code: protocol.RobotsDenied},
			{name: "days", handle: delay("864000"), code: protocol.RobotsDenied},
			{name: "negative", handle: delay("-1"), code: protocol.Success},
			{name: "nan", handle: delay("NaN"), code: protocol.Success},
			{name: "inf", handle: delay("Inf")},
			{name: "small", handle: delay("0.01"), code: protocol.Success},
			{name: "words", handle: delay("soon"), code: protocol.Success},
			{name: "centuries", handle: only(answer("503 Later", "Retry-After: 99999999999999999999\r\n", "")), code: protocol.Busy},
			{name: "minus", handle: only(answer("429 Slow", "Retry-After: -5\r\n", "")), code: protocol.Busy},
			{name: "y9999", handle: only(answer("429 Slow", "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\n", "")), code: protocol.Busy},
			{name: "never", handle: only(answer("503 Later", "Retry-After: never\r\n", "")), code: protocol.Busy},
		},
	}
	r.figure = fmt.Sprintf("%d servers: exact outcomes; no host is put off for more than a day", len(r.sites))
	r.check = func(t testing.TB, c *crawl) {
		for name, host := range c.host {
			h, err := c.db.Hosts().Get(t.Context(), host)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for _, at := range append(h.Grants, h.NextFetch) {
				if d := time.Until(at); d > 24*time.Hour+time.Minute {
					t.Errorf("%s: put off by %v", name, d)
				}
			}
		}
	}
	return r
}

func r5() row {
	const names = 8
	r := row{
		id: "R5", input: "many names of one domain, ports, schemes, upper case and trailing dots", outcome: "crawled by domain, they share one queue",
		figure: "0 gaps shorter than the pause, less a millisecond",
		domain: "r5.example.com",
		edit:   func(c *crawl) { c.opts.Fetch.Politeness.By = hostdb.ByDomain },
		check: func(t testing.TB, c *crawl) {
			var all []seen
			for _, s := range c.servers {
				all = append(all, s.seen...)
			}
			slices.SortFunc(all, func(a, b seen) int { return a.at.Compare(b.at) })
			for i := 1; i < len(all); i++ {
				if gap := all[i].at.Sub(all[i-1].at); gap < pause-time.Millisecond {
					t.Errorf("%v between %s and %s", gap, all[i-1].path, all[i].path)
				}
			}
			if len(all) != 5*names {
				t.Errorf("%d requests", len(all))
			}
		},
	}
	for i := range names {
		s, scheme := site{name: fmt.Sprintf("n%d", i)}, "http"
		if i%3 == 2 {
			s.scheme, scheme = "https", "HTTPS"
		}
		s.handle = replying(func(r *http.Request) string {
			if r.RequestURI != "/" {
				return ""
			}
			return html(fmt.Sprintf("<a href=%s://N%d.R5.Example.COM./a>x</a><a href=%[1]s://n%[2]d.r5.example.com:8080/b>x</a>", scheme, i))
		})
		r.sites = append(r.sites, s)
	}
	return r
}
