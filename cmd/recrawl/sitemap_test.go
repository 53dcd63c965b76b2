package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol/webtest"
)

func TestSitemapVerb(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 2, PagesPerHost: 30, Calm: true, Sitemaps: true})
	first := s.web.Host(0)
	out := ok(t, s.args("sitemap", first)...)
	if !strings.HasPrefix(out, "1 sitemaps requested, 1 hosts; 1 rounds, 1 visits, ") || !strings.Contains(out, "  pages         30 new, 0 known,") {
		t.Error(out)
	}
	// Nothing is fetched but the sitemap, and what it named is due.
	if stats := ok(t, "readdb", "-d", s.dir, "-stats", "-now", frozen); !strings.Contains(stats, "TOTAL urls:\t31\ndue now:\t30\n") || !strings.Contains(stats, "\nsitemaps:\t1\n") {
		t.Error(stats)
	}
	lines := write(t, "lines", "# two\n"+s.web.Host(1)+"\nhttp://"+first+"/none.xml\tx\n")
	m := object(t, ok(t, s.args("sitemap", "-json", "-hosts", "-file", lines, "-default")...))
	if m["listed"] != 3.0 || m["hosts"] != 2.0 || fmt.Sprint(m["outcomes"]) != "map[not_found:1 success:2]" || m["known"] != 30.0 {
		t.Errorf("%v", m)
	}
	if out := ok(t, "explain", "-d", s.dir, "-agent", "testbot", "-now", frozen, "http://"+first+"/sitemap.xml"); !strings.Contains(out, "sitemap      at depth 0; listed by http://"+first+"\n") {
		t.Error(out)
	}
	if out := ok(t, "explain", "-d", s.dir, "-agent", "testbot", "-now", frozen, "http://"+first+"/"); !strings.Contains(out, "sitemaps say modified 20") || !strings.Contains(out, "no signal of the host was checked yet") {
		t.Error(out)
	}
	if r := recrawl(t, s.args("sitemap", "ftp://x.test/s.xml", "http://"+first+"/sitemap.xml")...); r.code != 1 || !strings.Contains(r.err, "ftp://x.test/s.xml") || !strings.Contains(r.err, "1 of the given URLs and hosts could not be used") {
		t.Errorf("%+v", r)
	}

	list := ok(t, "sitemap", "-list", "-agent", "testbot", "-connect-to", s.server.ConnectTo(), "http://"+first+"/sitemap.xml")
	if n := strings.Count(list, "\n"); n != 30 || !strings.Contains(list, "http://"+first+"/\tmodified 20") {
		t.Error(list)
	}
	file := write(t, "s.xml", `<sitemapindex><sitemap><loc>http://a.test/1.xml</loc></sitemap></sitemapindex>`)
	if out := ok(t, "sitemap", "-list", file); out != "http://a.test/1.xml\tsitemap\n" {
		t.Error(out)
	}
	file = write(t, "s.txt", "http://a.test/1\nhttp://a.test/2\n")
	if m := recrawl(t, "sitemap", "-list", "-json", file); m.code != 0 || !strings.Contains(m.out, "\"url\":\"http://a.test/2\"}\n") || !strings.Contains(m.err, "text, 2 entries") {
		t.Errorf("%+v", m)
	}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"sitemap", "-d", s.dir, "-agent", "x"}, 2, "needs URLs or hosts"},
		{[]string{"sitemap", "-list"}, 2, "needs the URL of a sitemap"},
		{[]string{"sitemap", "-list", "/nowhere/s.xml"}, 1, "no such file"},
		{[]string{"sitemap", "-list", write(t, "x.html", "<html>no")}, 1, "not a sitemap"},
	} {
		if r := recrawl(t, tt.args...); r.code != tt.code || !strings.Contains(r.err, tt.want) {
			t.Errorf("%v: %+v", tt.args, r)
		}
	}
}

// A crawl reads sitemaps unless a flag says otherwise; with a Nutch configuration it never
// does.
func TestCrawlReadsSitemaps(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]bool{"-v": true, "-no-sitemaps": false} {
		s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 10, Calm: true, Sitemaps: true})
		out := ok(t, s.crawl(flag, s.web.Seeds()[0])...)
		if got := strings.Contains(out, "\n  sitemaps      1 read, 10 pages: "); got != want {
			t.Errorf("%s: %s", flag, out)
		}
	}
}
