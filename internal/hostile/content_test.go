package hostile_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/parse/htmlparse"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/urlfilter"
)

func contentRows() []row {
	return []row{c1(), c2(), c3(), c4(), c6(), c7(), c8(), c9(), c10(), c12(), c13(), p10(), p14()}
}

// A stopwatch is a parser that notes how long it takes for a megabyte, at worst.
type stopwatch struct {
	parse.Parser
	mu    sync.Mutex
	worst time.Duration
}

func (s *stopwatch) Parse(ctx context.Context, c *page.Content) (page.Parsed, error) {
	start := time.Now()
	p, err := s.Parser.Parse(ctx, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.worst = max(s.worst, time.Duration(float64(time.Since(start))*float64(1<<20)/math.Max(64<<10, float64(len(c.Body)))))
	return p, err
}

func c1() row {
	watch := &stopwatch{Parser: htmlparse.Mux(&htmlparse.Parser{})}
	r := row{
		id: "C1", input: "256 KiB each of nested and unclosed elements, tables in tables, attributes, open tags, comments, scripts, entities, NUL",
		outcome: "the page is read to its end or its limit, and the links before the fault are kept",
		pages:   40,
		edit: func(c *crawl) {
			c.opts.Parser = watch
			c.opts.Run.Rounds = 1
			c.opts.Fetch.Threads = 3
			c.opts.Fetch.NoContent = true
		},
	}
	for _, k := range []struct{ name, head, again string }{
		{"attribute", "<p title='", "x"},
		{"attributes", "<p ", "a=b "},
		{"cdata", "<![CDATA[", "]"},
		{"close", "", "</p>"},
		{"comment", "<!--", "-"},
		{"comments", "", "<!-->"},
		{"digits", "&#", "9"},
		{"div", "", "<div>"},
		{"doctype", "<!DOCTYPE ", "x"},
		{"entities", "", "&amp;&#x110000;&notit;"},
		{"entity", "&", "a"},
		{"form", "", "<form><input>"},
		{"forms", "", "<form action=/x>"},
		{"spans", "<b><table><tr><td>" + strings.Repeat("<span>", 480), "</b>"},
		{"annotation", "<math><annotation-xml encoding=text/html>", "<p><svg>"},
		{"formatting", "", "<b><i><font size=1>"},
		{"frameset", "", "<frameset>"},
		{"isindex", "", "<isindex><image>"},
		{"links", "", "<a"},
		{"math", "", "<math><mi>"},
		{"nul", "", "\x00<\x00a\x00"},
		{"open", "", "<"},
		{"plaintext", "<plaintext>", "<a href=/x>"},
		{"quotes", "", "<a href=\"'"},
		{"script", "<script>", "</scrip"},
		{"script-comment", "<script><!--", "<script>"},
		{"select", "", "<select><option>"},
		{"style", "<style>", "{"},
		{"svg", "", "<svg><title>"},
		{"table", "", "<table><tr><td>"},
		{"template", "", "<template>"},
		{"textarea", "<textarea>", "<"},
		{"title", "<title>", "&"},
	} {
		r.sites = append(r.sites, site{name: k.name, code: protocol.Success, handle: replying(func(r *http.Request) string {
			if r.RequestURI != "/" {
				return ""
			}
			return html("<a href=/first>first</a>" + k.head + strings.Repeat(k.again, (maxBytes-100-len(k.head))/len(k.again)))
		})})
	}
	r.figure = fmt.Sprintf("%d pages: first link kept, ≤ 1 s/MB", len(r.sites))
	r.check = func(t testing.TB, c *crawl) {
		for _, s := range r.sites {
			u := c.url(s)
			if p := c.parsed(t, u); len(p.Outlinks) == 0 || p.Outlinks[0].URL != u+"first" {
				t.Errorf("%s: the first of %d links is lost", s.name, len(p.Outlinks))
			}
		}
		if watch.worst > patience(time.Second) && !testlevel.Race {
			t.Errorf("%v for a megabyte", watch.worst)
		}
	}
	return r
}

func c2() row {
	const size = 384 << 10
	r := row{
		id: "C2", input: "15,000 links, one link 15,000 times, 300 KB of anchor, of title, of one link, 1,000 base elements, a base of another host",
		outcome: "the first 10,000 links, 100 bytes of an anchor, 1,000 of a title are kept; the first base counts",
		figure:  "6 pages: exact numbers",
		pages:   20,
		edit:    func(c *crawl) { c.http.Limits.MaxBytes, c.opts.Run.Rounds, c.opts.Fetch.NoContent = size, 1, true },
		sites: []site{
			{name: "many", handle: only(html(manyLinks("/l%d", 15_000)))},
			{name: "same", handle: only(html(strings.Repeat("<a href=/same>x</a>", 15_000)))},
			{name: "anchor", handle: only(html("<a href=/x>" + strings.Repeat("anchor ", size/10)))},
			{name: "title", handle: only(html("<title>" + strings.Repeat("title ", size/10) + "</title><a href=/x>x</a>"))},
			{name: "long", handle: only(html("<a href=/" + strings.Repeat("x", size/2) + ">x</a><a href=/short>x</a>"))},
			{name: "base", handle: only(html("<base href=/b/>" + strings.Repeat("<base href=//evil.test/>", 1000) + "<a href=x>x</a>"))},
		},
	}
	r.check = func(t testing.TB, c *crawl) {
		for name, want := range map[string]struct {
			links int
			first string
		}{"many": {10_000, "l0"}, "same": {1, "same"}, "anchor": {1, "x"}, "title": {1, "x"}, "long": {1, "short"}, "base": {1, "b/x"}} {
			u := "http://" + c.host[name] + "/"
			p := c.parsed(t, u)
			if len(p.Outlinks) != want.links || p.Outlinks[0].URL != u+want.first {
				t.Errorf("%s: %d links, want %d from %s", name, len(p.Outlinks), want.links, want.first)
			}
			if len(p.Title) > 1000 || slices.ContainsFunc(p.Outlinks, func(l page.Outlink) bool { return len(l.Anchor) > 100 }) {
				t.Errorf("%s: title or anchor is too long", name)
			}
		}
	}
	return r
}

func c3() row {
	type lie struct{ name, header, body, title string }
	lies := []lie{
		{"bom", "text/html; charset=iso-8859-1", "\ufeff<meta charset=koi8-r><title>é</title>", "é"},
		{"header", "text/html; charset=windows-1252", "<meta charset=utf-8><title>\xe9</title>", "é"},
		{"meta", "text/html", "<meta charset=windows-1251><title>\xe9</title>", "й"},
		{"utf16", "text/html", "\xff\xfe<\x00t\x00i\x00t\x00l\x00e\x00>\x00\xe9\x00<\x00/\x00t\x00i\x00t\x00l\x00e\x00>\x00", "é"},
		{"unknown", "text/html; charset=klingon", "<title>é</title>", "é"},
		{"utf7", "text/html; charset=utf-7", "<title>+ADw-script+AD4-</title>", "+ADw-script+AD4-"},
		{"invalid", "text/html; charset=utf-8", "<title>a\xff\xfeb</title>", "a\ufffd\ufffdb"},
		{"iso2022", "text/html; charset=iso-2022-jp", "<title>\x1b$B\x24\x22\x1b(B</title>", "あ"},
		{"latin", "text/html; charset=latin1", "<title>\x80</title>", "€"},
		{"metautf16", "text/html", "<meta charset=utf-16le><title>é</title>", "é"},
	}
	r := row{
		id: "C3", input: "charsets where header, BOM and meta disagree, are unknown, or do not fit the bytes", outcome: "read as a browser would: BOM, header, meta, then a guess; bad bytes are replaced",
		figure: fmt.Sprintf("%d pages: exact titles", len(lies)),
		check: func(t testing.TB, c *crawl) {
			for _, l := range lies {
				if p := c.parsed(t, "http://"+c.host[l.name]+"/"); p.Title != l.title {
					t.Errorf("%s: title %q (%s), want %q", l.name, p.Title, p.Charset, l.title)
				}
			}
		},
	}
	for _, l := range lies {
		r.sites = append(r.sites, site{name: l.name, code: protocol.Success, handle: only(answer("200 OK", "Content-Type: "+l.header+"\r\n", l.body))})
	}
	return r
}

func c4() row {
	links := []string{
		"/" + strings.Repeat("x", 2000), "/" + strings.Repeat("x", 5000), "/?" + strings.Repeat("a=b&", 500), "/%00", "/a/../../b", "/%2e%2e/%2E%2e/c", "/%252e%252e/d",
		"/\xc0\xae\xc0\xae/e", "/%zz", "/f;params;x=y", "\\\\g\\\\..\\\\h", "/i\tj\nk", "http:///l", "HTTP:m", "", "#", "?", "//", "/n o", "/p%20q", "/r\x00s", "/\u202et", "/%0d%0aX-Injected:y", "/&#13;&#10;X-Injected:z",
		"http://{h}:80/u", "http://{h}/v?#w", "///x", "./././y", "/%41%42", "/a//b///c", "mailto:x@y", "javascript:void(0)",
	}
	return row{
		id: "C4", input: "links of 5,000 bytes, with dots, escapes of dots, overlong UTF-8, bad escapes, NUL, line breaks plain and as entities, backslashes, nothing at all",
		outcome: "links that are too long are left out and counted; the rest have one normal form, and no byte of a link reaches another header", figure: fmt.Sprintf("%d links: normal forms are fixed points, 0 requests with .. or injected headers", len(links)),
		sites: []site{{name: "links", code: protocol.Success, handle: replying(func(r *http.Request) string {
			if r.RequestURI != "/" {
				return ""
			}
			var b strings.Builder
			for _, l := range links {
				fmt.Fprintf(&b, "<a href=\"%s\">x</a>", strings.ReplaceAll(l, "{h}", "links.c4.test"))
			}
			return html(b.String())
		})}},
		check: func(t testing.TB, c *crawl) {
			all := c.servers["links"].requests()
			if len(all) < 10 {
				t.Errorf("%d requests", len(all))
			}
			for _, r := range all {
				dots := slices.ContainsFunc(strings.Split(strings.ToLower(strings.ReplaceAll(r.path, "%2e", ".")), "/"), func(s string) bool { return s == ".." })
				if len(r.path) > 4096 || dots || r.header.Get("X-Injected") != "" || strings.ContainsFunc(r.path, func(c rune) bool { return c <= ' ' || c > '~' }) {
					t.Errorf("%.100q was asked for", r.path)
				}
			}
			rules := urlfilter.Default()
			for u := range c.visits {
				if again, err := rules.Apply(urlfilter.Fetcher, u); err != nil || again != u {
					t.Errorf("%q is not a normal form: %q %v", u, again, err)
				}
			}
		},
	}
}

func c8() row {
	// Keys that the crawl db and its policies use, and one that the crawl asks for.
	names := []string{"_pst_", "_ngt_", "_repr_", "_depth_", "_orphan_", "segment.turn", "nutch.fetchInterval", "nutch.score", "scoring.cash", "wanted"}
	var metas strings.Builder
	for _, n := range names {
		fmt.Fprintf(&metas, "<meta name='%s' content='x%s'>", n, strings.Repeat("y", 100<<10))
	}
	return row{
		id: "C8", input: "meta elements with names that the crawl db uses itself, of 100 KB each", outcome: "only configured names are kept, cut at a kilobyte",
		figure: fmt.Sprintf("%d names: 1 key in the record, ≤ 1 KiB", len(names)),
		sites:  []site{{name: "meta", code: protocol.Success, handle: only(html(metas.String()))}},
		edit: func(c *crawl) {
			c.http.Limits.MaxBytes = 2 << 20
			c.opts.Fetch.Parsing.Meta = []string{"wanted"}
		},
		check: func(t testing.TB, c *crawl) {
			d, ok := c.record("http://meta.c8.test/")
			for k, v := range d.Meta.All() {
				if strings.HasPrefix(string(v), "xy") && (k != "page.wanted" || len(v) > 1<<10) {
					t.Errorf("%s has %d bytes", k, len(v))
				}
			}
			if v, found := d.Meta.Get("page.wanted"); !ok || !found || len(v) == 0 {
				t.Errorf("what was asked for is not kept")
			}
		},
	}
}

func c9() row {
	with := func(header string) func(*conn) {
		return only(answer("200 OK", "Content-Type: text/html\r\n"+header, "hello"))
	}
	return row{
		id: "C9", input: "304 to a request without validators, with and without a body; Last-Modified of 2099 and 1900; ETags with control bytes, of 100 KB",
		outcome: "an unsolicited 304 is a failure; times after the visit become that of the visit; unsafe validators are dropped", figure: "9 servers: exact outcomes",
		sites: []site{
			{name: "unasked", handle: only("HTTP/1.1 304 Not Modified\r\n\r\n"), code: protocol.Failed, reason: "http: 304 to a request without validators"},
			{name: "unasked-body", handle: closing("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello"), code: protocol.Failed},
			{name: "future", handle: with("Last-Modified: Wed, 01 Apr 2099 00:00:00 GMT\r\n"), code: protocol.Success},
			{name: "past", handle: with("Last-Modified: Mon, 01 Jan 1900 00:00:00 GMT\r\n"), code: protocol.Success},
			{name: "nonsense", handle: with("Last-Modified: yesterday\r\n"), code: protocol.Success},
			{name: "control", handle: with("ETag: \"\x01\x02\"\r\n"), code: protocol.Failed, reason: "http: broken answer"},
			{name: "long", handle: with("ETag: \"" + strings.Repeat("e", 100<<10) + "\"\r\n"), code: protocol.Success},
			{name: "bytes", handle: with("ETag: \"\xff\xfe\"\r\n"), code: protocol.Success},
			{name: "cut", handle: closing(ok + "ETag: \"a\"\r\nContent-Length: 10\r\n\r\nhello"), code: protocol.Success, truncated: true},
		},
		check: func(t testing.TB, c *crawl) {
			for name, host := range c.host {
				d, _ := c.record("http://" + host + "/")
				if d.Modified.After(time.Now()) {
					t.Errorf("%s: modified %v", name, d.Modified)
				}
				for _, v := range []string{d.ETag, d.LastModified} {
					if len(v) > 4096 || strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) {
						t.Errorf("%s: validator of %d bytes is kept: %.40q", name, len(v), v)
					}
				}
				if name == "cut" && d.ETag != "" {
					t.Errorf("a body that broke off has the ETag %q", d.ETag)
				}
			}
		},
	}
}

func c10() row {
	var log bytes.Buffer
	evil := "\x1b[31mred\x1b[0m \u202egnp.exe\u202c \x07"
	return row{
		id: "C10", input: "escape sequences, bells, bidirectional overrides and line breaks in titles, links, status lines, Location and robots.txt", outcome: "each log record is one line, without raw control characters",
		figure: "0 lines with a byte below 0x20 or U+202A to U+202E",
		sites: []site{
			{name: "page", code: protocol.Success, handle: only(html("<title>" + evil + "</title><a href='/" + evil + "'>" + evil + "</a>"))},
			{name: "status", handle: only(answer("500 "+strings.ReplaceAll(evil, "\x07", ""), "", ""))},
			{name: "location", handle: only(redirect("http://\u202e" + evil[:4] + "/"))},
			{name: "header", handle: closing("HTTP/1.1 200 OK\r\n\x1b[31m: x\r\n\r\n")},
			{name: "robots", handle: robotsTxt(answer("500 \x1b[31m", "", evil))},
			{name: "refresh", code: protocol.Success, handle: only(answer("200 OK", "Content-Type: text/html\r\nRefresh: 0;url=http://\u202e.test/\u2028\r\n", "x"))},
		},
		edit: func(c *crawl) {
			log.Reset()
			c.opts.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		},
		check: func(t testing.TB, c *crawl) {
			if log.Len() == 0 {
				t.Error("nothing was logged")
			}
			for line := range strings.Lines(log.String()) {
				if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r < ' ' || r >= 0x202a && r <= 0x202e }) || !strings.HasPrefix(line, "time=") {
					t.Errorf("%q", line)
				}
			}
		},
	}
}

func c13() row {
	tag := func(values ...string) string {
		header := "Content-Type: text/html\r\n"
		for _, v := range values {
			header += "X-Robots-Tag: " + v + "\r\n"
		}
		return answer("200 OK", header, "<a href=/next>x</a>")
	}
	meta := func(s string) string { return html(s + "<a href=/next>x</a>") }
	var unknown []string
	for i := range 2000 {
		unknown = append(unknown, fmt.Sprintf("unknown%d", i))
	}
	pages := []struct {
		name, raw string
		want      page.Directives
	}{
		{"all", tag("none"), page.Directives{NoIndex: true, NoFollow: true}},
		{"us", tag("Recrawl-Hostile: nofollow"), page.Directives{NoFollow: true}},
		{"others", tag("otherbot: none", "recrawl: none", "hostile: none"), page.Directives{}},
		{"more", tag("otherbot: noindex, nofollow, recrawl-hostile: noarchive"), page.Directives{NoArchive: true}},
		{"names", tag(strings.Repeat("a:", 50_000)+" none", "noarchive"), page.Directives{NoArchive: true}},
		{"flood", tag(append(unknown, "nofollow")...), page.Directives{NoFollow: true}},
		{"commas", tag(strings.Repeat(",; \t", 25_000) + "nofollow"), page.Directives{NoFollow: true}},
		{"bytes", tag("no\x80index", "\xff: none", "\"none\"", "unavailable_after: \xff"), page.Directives{}},
		{"past", tag("unavailable_after: Wed, 03 Oct 2001 10:00:00 GMT"), page.Directives{NoIndex: true, UnavailableAfter: time.Date(2001, 10, 3, 10, 0, 0, 0, time.UTC)}},
		{"future", tag("unavailable_after: 31 Dec 9999 23:59:59 PST", "unavailable_after: 2999-12-31"), page.Directives{UnavailableAfter: time.Date(2999, 12, 31, 0, 0, 0, 0, time.UTC)}},
		{"ages", tag("unavailable_after: 99999-99-99", "unavailable_after: "+strings.Repeat("9", 50_000)), page.Directives{}},
		{"meta", meta(strings.Repeat("<meta name=robots content=all>", 3000) + "<meta name=robots content=nofollow>"), page.Directives{NoFollow: true}},
		{"metas", meta("<meta name=otherbot content=none><meta name=RECRAWL-HOSTILE content=noarchive>"), page.Directives{NoArchive: true}},
		{"list", meta("<meta name=robots content='" + strings.Repeat("x,", 50_000) + "nofollow'>"), page.Directives{NoFollow: true}},
	}
	r := row{
		id: "C13", input: "X-Robots-Tag and meta robots for us, for others and for all, 2,000 of them, of 100 KB, with dates in the past, in the future and invalid",
		outcome: "directives for all and for us are obeyed, the stricter one where they disagree",
		figure:  fmt.Sprintf("%d pages: exact directives, 0 requests for nofollow links", len(pages)),
		pages:   20,
		check: func(t testing.TB, c *crawl) {
			for _, p := range pages {
				if got := c.parsed(t, "http://"+c.host[p.name]+"/").Directives; got != p.want {
					t.Errorf("%s: asks for %+v, want %+v", p.name, got, p.want)
				}
				if n := c.servers[p.name].count("/next"); (n == 0) != p.want.NoFollow {
					t.Errorf("%s: %d requests for the page it links to", p.name, n)
				}
			}
		},
	}
	for _, p := range pages {
		r.sites = append(r.sites, site{name: p.name, handle: only(p.raw)})
	}
	return r
}

func c12() row {
	link := "<html><body><a href=/leak>x</a></body></html>"
	typed := func(kind, body string) func(*conn) {
		return only(answer("200 OK", "Content-Type: "+kind+"\r\n", body))
	}
	r := row{
		id: "C12", input: "types that do not fit the bytes: HTML as an image, a picture as HTML, archives, polyglots, nothing, a type of 10 KB, one line of 200 KB",
		outcome: "content without a parser is kept unparsed; a parser finds no links in nonsense",
		sites: []site{
			{name: "as-png", handle: typed("image/png", link)}, {name: "as-pdf", handle: typed("application/pdf", link)}, {name: "as-zip", handle: typed("application/zip", "PK\x03\x04"+link)},
			{name: "png", handle: typed("text/html", "\x89PNG\r\n\x1a\n"+strings.Repeat("\x00\x01\x02\xff", 1000))},
			{name: "gif", handle: typed("text/html", "GIF89a/*"+strings.Repeat("\xff", 1000))},
			{name: "empty", handle: typed("text/html", "")}, {name: "none", handle: only(answer("200 OK", "", "hello"))},
			{name: "broken", handle: typed("text/html;;;charset=\"", "hello")}, {name: "long", handle: typed("text/"+strings.Repeat("x", 10_000), "hello")},
			{name: "line", handle: typed("text/plain", strings.Repeat("x", 200<<10))},
		},
	}
	for i := range r.sites {
		r.sites[i].code = protocol.Success
	}
	r.figure = fmt.Sprintf("%d servers: all fetched, 0 links from what is not HTML", len(r.sites))
	r.check = func(t testing.TB, c *crawl) {
		for name, s := range c.servers {
			if n := s.count("/leak"); n != 0 {
				t.Errorf("%s: its link was followed", name)
			}
		}
	}
	return r
}

func p10() row {
	r := w3()
	r.id = "P10"
	r.input = "the crawl is cancelled while servers drip, stay silent or stall in the handshake"
	r.outcome = "it ends at once, and a later run visits what was left"
	r.interrupt = []time.Duration{time.Millisecond, 10 * time.Millisecond, 40 * time.Millisecond, 90 * time.Millisecond, 150 * time.Millisecond}
	r.figure = fmt.Sprintf("%d cancellations: each ≤ 200 ms, no page lost", len(r.interrupt))
	r.check = nil
	return r
}

func p14() row {
	var dumps []string
	now := time.Now().UTC().Truncate(time.Second)
	r := row{
		id: "P14", input: "redirects in loops, lying charsets, broken bodies and odd links, crawled by 1, 3 and 16 workers", outcome: "crawl db and link db are the same, byte for byte",
		more:  2,
		sites: slices.Concat(s3().sites, c3().sites, c4().sites, w2().sites),
		edit: func(c *crawl) {
			c.opts.Fetch.Threads = testlevel.Pick([]int{1, 16}, []int{1, 3, 16})[len(dumps)%testlevel.Pick(2, 3)]
			c.opts.Now = func() time.Time { return now }
		},
	}
	for i := range r.sites { // names that occur twice
		r.sites[i].name = fmt.Sprintf("%s%d", r.sites[i].name, i)
	}
	r.figure = fmt.Sprintf("%d servers, 3 crawls: 0 bytes differ", len(r.sites))
	r.check = func(t testing.TB, c *crawl) {
		dumps = append(dumps, c.dump(t))
		if d := dumps[len(dumps)-1]; d != dumps[0] {
			a, b := strings.Split(dumps[0], "\n"), strings.Split(d, "\n")
			for i := range min(len(a), len(b)) {
				if a[i] != b[i] {
					t.Errorf("crawl %d: %.300s\nfirst: %.300s", len(dumps), b[i], a[i])
					return
				}
			}
			t.Errorf("crawl %d has %d lines, the first %d", len(dumps), len(b), len(a))
		}
	}
	return r
}
