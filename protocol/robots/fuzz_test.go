package robots_test

import (
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol/robots"
)

func FuzzParse(f *testing.F) {
	seen := make(map[string]bool)
	for _, c := range corpus(f) {
		if seen[c.Base64] || len(c.Robots) > 1000 {
			continue
		}
		seen[c.Base64] = true
		f.Add(c.Robots, c.Agents[0], c.URL)
	}
	for _, d := range decisions(f) {
		if len(d.file) < 1000 {
			f.Add(d.file, d.agent, strings.Join(append(d.deny, d.allow...), "|"))
		}
	}
	f.Add([]byte("\xFF\xFEU\x00"), "bot", "/")
	f.Add([]byte("<html>User-agent:*<br>Disallow:/<p"), "b", "//")
	f.Fuzz(func(t *testing.T, body []byte, product, url string) {
		r := robots.Parse(body, product)
		allowed, line := r.Explain(url)
		if allowed != r.Allowed(url) || allowed && strings.Contains(line, ": Disallow: ") || !allowed && !strings.Contains(line, ": Disallow: ") {
			t.Errorf("%q is allowed %v by %q", url, allowed, line)
		}
		if u, _, _ := strings.Cut(url, "#"); r.Allowed(u) != allowed {
			t.Errorf("the fragment of %q counts", url)
		}
		if a, b := robots.Parse(body, "other", product), robots.Parse(body, product, "other", product); a.Allowed(url) != b.Allowed(url) || a.CrawlDelay != b.CrawlDelay {
			t.Errorf("%q: the order of the names counts", url)
		}
		for _, own := range []string{"/robots.txt", "http://example.com/robots.txt", "https://h:1/robots.txt#f"} {
			if !r.Allowed(own) {
				t.Errorf("%s is forbidden", own)
			}
		}
		if r.CrawlDelay < 0 || r.CrawlDelay > 86400e9 || !r.HasCrawlDelay && r.CrawlDelay != 0 {
			t.Errorf("Crawl-delay %v, %v", r.CrawlDelay, r.HasCrawlDelay)
		}
		// Percent-encoding a letter of the path changes nothing.
		if len(url) > 1 && url[0] == '/' && url[1] == 'a' && r.Allowed(url) != r.Allowed("/%61"+url[2:]) {
			t.Errorf("%q is not its escaped form", url)
		}
		// Lines without a user agent change nothing.
		if len(body)+40 < robots.MaxBytes && len(body) > 0 && body[0] < 0x80 && body[0] != 0 {
			again := robots.Parse(append([]byte("# comment\nDisallow: /\nUnknown: x\n"), body...), product)
			if r.Allowed(url) != again.Allowed(url) {
				t.Errorf("lines before the first group count for %q", url)
			}
		}
	})
}
