package hostile_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol"
)

// listing answers requests for robots.txt with one that lists /s and forbids /p/, where the
// URLs in sitemaps are, so that records show what was read without visits; reply answers all
// others.
func listing(reply func(path string) string) func(*conn) {
	return replying(func(r *http.Request) string {
		switch r.RequestURI {
		case "/robots.txt":
			return file("User-agent: *\nDisallow: /p/\nSitemap: /s\n")
		case "/":
			return html("hello")
		}
		return reply(r.RequestURI)
	})
}

func xml(body string) string {
	return answer("200 OK", "Content-Type: application/xml\r\n", `<?xml version="1.0" encoding="UTF-8"?>`+body)
}

// entries are n entries of a sitemap of a host.
func entries(host string, n int) string {
	var b strings.Builder
	b.WriteString("<urlset>")
	for i := range n {
		fmt.Fprintf(&b, "<url><loc>http://%s/p/%d</loc></url>", host, i)
	}
	b.WriteString("</urlset>")
	return b.String()
}

func index(host, format string, first, n int) string {
	var b strings.Builder
	b.WriteString("<sitemapindex>")
	for i := range n {
		fmt.Fprintf(&b, "<sitemap><loc>http://%s"+format+"</loc></sitemap>", host, first+i)
	}
	b.WriteString("</sitemapindex>")
	return b.String()
}

// gzipFile is a line and n MiB of blanks in a gzip file.
func gzipFile(line string, blanks int) string {
	member := func(text []byte) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Write(text)
		w.Close()
		return b.Bytes()
	}
	return string(member([]byte(line))) + strings.Repeat(string(member(bytes.Repeat([]byte(" "), 1<<20))), blanks)
}

func r6() row {
	const files = 20 // that those of one robots.txt may name
	host := func(name string) string { return name + ".r6.test" }
	always := func(body string) func(*conn) { return listing(func(string) string { return body }) }
	one := func(name string) string { return "<url><loc>http://" + host(name) + "/p/0</loc></url>" }
	laughs := `<!DOCTYPE lolz [<!ENTITY lol "lol">`
	for i := range 9 {
		laughs += fmt.Sprintf(`<!ENTITY lol%d "%s">`, i+1, strings.Repeat(fmt.Sprintf("&lol%d;", i), 10))
	}
	laughs += "]>"
	bomb := gzipFile("http://"+host("bomb")+"/p/0\n", 1024)
	records := map[string]int{ // below /p/
		"laughs": 2, "xxe": 2, "many": 50_000, "endless": 1, "bomb": 1, "self": 0, "chain": 0, "million": 0, "cross": 1, "dates": 4, "lines": 2, "rss": 1, "atom": 1, "soft404": 0,
	}
	r := row{
		id: "R6", pages: 40, input: "sitemaps with entities, of 60,000 URLs, endless, compressed as bombs, that name themselves, each other and other hosts, with nonsense dates",
		outcome: "read as a stream up to a limit, with no entities but XML's own; 50,000 URLs per file, two levels of indexes, a limited number of files per host; nothing for other hosts",
		figure:  fmt.Sprintf("%d files: exact numbers of records, ≤ %d requests a host, 0 requests for URLs out of scope", len(records), files+4),
		sites: []site{
			{name: "laughs", handle: always(xml(laughs + "<urlset>" + one("laughs") + "<url><loc>http://" + host("laughs") + "/p/&lol9;</loc></url></urlset>"))},
			{name: "xxe", handle: always(xml(`<!DOCTYPE u [<!ENTITY x SYSTEM "file:///etc/passwd"><!ENTITY % y SYSTEM "http://` + host("victim") + `/dtd"> %y;]><urlset>` + one("xxe") + "<url><loc>http://" + host("xxe") + "/p/&x;</loc></url></urlset>"))},
			{name: "many", handle: always(xml(entries(host("many"), 60_000)))},
			{name: "endless", handle: func(c *conn) {
				for {
					r, ok := c.request()
					if !ok {
						return
					}
					switch r.RequestURI {
					case "/robots.txt":
						c.say(file("User-agent: *\nDisallow: /p/\nSitemap: /s\n"))
					case "/s":
						c.flood("HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\n\r\n<urlset>"+one("endless"), "<!-- and so on -->")
						return
					default:
						c.say(html("hello"))
					}
				}
			}},
			{name: "bomb", handle: always(answer("200 OK", "Content-Type: application/gzip\r\n", bomb))},
			{name: "self", handle: always(xml("<sitemapindex><sitemap><loc>http://" + host("self") + "/s</loc></sitemap><sitemap><loc>http://" + host("self") + "/./s</loc></sitemap></sitemapindex>"))},
			{name: "chain", handle: listing(func(path string) string {
				n := 0
				fmt.Sscanf(path, "/s%d", &n)
				return xml(index(host("chain"), "/s%d", n+1, 1))
			})},
			{name: "million", handle: listing(func(path string) string {
				n := 0
				fmt.Sscanf(path, "/s%d", &n)
				return xml(index(host("million"), "/s%d", 1000*(n+1), 5_000))
			})},
			{name: "cross", handle: always(xml("<urlset>" + one("cross") + "<url><loc>http://" + host("victim") + "/p/1</loc></url><url><loc>https://" + host("cross") + "/p/2</loc></url>" +
				"<url><loc>http://" + host("cross") + ":8080/p/3</loc></url><url><loc>http://" + host("cross") + "@" + host("victim") + "/p/4</loc></url><url><loc>file:///etc/passwd</loc></url><url><loc>javascript:x</loc></url></urlset>"))},
			{name: "dates", handle: always(xml("<urlset>" + func() string {
				var b strings.Builder
				for i, odd := range []string{"<lastmod>9999-12-31</lastmod><priority>NaN</priority>", "<lastmod>99999999999-01-01</lastmod><priority>1e999</priority>",
					"<lastmod>-1</lastmod><changefreq>" + strings.Repeat("!", 10_000) + "</changefreq>", "<lastmod>0000-00-00T99:99:99Z</lastmod><priority>-Inf</priority>"} {
					fmt.Fprintf(&b, "<url><loc>http://%s/p/%d</loc>%s</url>", host("dates"), i, odd)
				}
				return b.String()
			}() + "</urlset>"))},
			{name: "lines", handle: always(file("\ufeffhttp://" + host("lines") + "/p/1\r\nhttp://" + host("lines") + "/p/2\x00\nnonsense\nhttp://" + host("lines") + "/p/3\n" + strings.Repeat("x", 100_000) + "\nhttp://" + host("victim") + "/p/4\n"))},
			{name: "rss", handle: always(xml("<rss><channel><item><link>http://" + host("rss") + "/p/1</link><pubDate>Fri, 31 Dec 9999 10:00:00 GMT</pubDate></item><item><link>http://" + host("victim") + "/p/2</link></item></channel></rss>"))},
			{name: "atom", handle: always(xml("<feed><entry><link href='/p/1'/><updated>never</updated></entry><entry><link href='//" + host("victim") + "/p/2'/></entry></feed>"))},
			{name: "soft404", handle: always(html("<a href=/p/1>not here</a>"))},
			untouched("victim"),
		},
		edit: func(c *crawl) {
			c.opts.Fetch.Sitemaps = fetch.SitemapOptions{MaxFiles: files, MaxBytes: 3 << 20}
			c.opts.Generate.TopN = 300
			c.opts.Run.Rounds = 6
		},
	}
	for i := range r.sites {
		if s := &r.sites[i]; !s.silent {
			s.code = protocol.Success // of the start page
		}
	}
	r.check = func(t testing.TB, c *crawl) {
		wantUntouched(t, c, "victim")
		got := map[string]int{}
		for d, err := range c.db.Crawl().Scan(t.Context(), crawldb.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			name, ours := strings.CutSuffix(crawldb.Host(d.URL), ".r6.test")
			if ours && strings.Contains(d.URL, "/p/") {
				got[name]++
			}
			if h, ok := crawldb.SitemapEntryOf(d.Meta); ok && (!h.Modified.IsZero() || h.HasPriority) {
				t.Errorf("%s: %+v", d.URL, h)
			}
		}
		for name, n := range records {
			if got[name] != n {
				t.Errorf("%s: %d records, want %d", name, got[name], n)
			}
		}
		if got["victim"] != 0 {
			t.Errorf("%d records of a host that others speak of", got["victim"])
		}
		for name, s := range c.servers {
			if n := len(s.seen); n > files+4 {
				t.Errorf("%s: %d requests", name, n)
			}
		}
		if n := len(c.servers["chain"].requests()); n != 4 { // the page, /s, and two below it
			t.Errorf("chain: %d requests", n)
		}
		if d, ok := c.record("http://" + host("soft404") + "/s"); !ok || d.Status != crawldb.ParseFailed {
			t.Errorf("no sitemap: %v", d.Status)
		}
	}
	return r
}
