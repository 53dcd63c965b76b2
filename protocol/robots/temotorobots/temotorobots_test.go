package temotorobots_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/protocol/robots/temotorobots"
)

// TestKnownFaults: each fault of the package comment is one, so that a version
// without it does not go unnoticed.
func TestKnownFaults(t *testing.T) {
	for _, tt := range []struct {
		name, file, product, url string
		right                    bool
	}{
		{"rule before the first User-agent", "Disallow: /x\nUser-agent: *\nDisallow: /y\n", "bot", "/z", true},
		{"Crawl-delay before the first User-agent", "Crawl-delay: 1\nUser-agent: *\nDisallow: /y\n", "bot", "/z", true},
		{"Crawl-delay that is no number", "User-agent: *\nCrawl-delay: five\nDisallow: /y\n", "bot", "/z", true},
		{"empty Crawl-delay", "User-agent: *\nCrawl-delay:\nDisallow: /y\n", "bot", "/z", true},
		{"equal length", "User-agent: *\nDisallow: /x\nAllow: /x\n", "bot", "/x", true},
		{"length of a wildcard rule", "User-agent: *\nAllow: /x/page.\nDisallow: /*.html\n", "bot", "/x/page.html", true},
		{"wildcard rule in the middle of a path", "User-agent: *\nDisallow: /a*b\n", "bot", "/x/ab", true},
		{"path without slash", "User-agent: *\nDisallow: x\n", "bot", "/x", true},
		{"Crawl-delay ends a group", "User-agent: a\nCrawl-delay: 1\nUser-agent: b\nDisallow: /x\n", "a", "/x", false},
		{"UTF-16", "\xFE\xFF\x00U\x00s\x00e\x00r\x00-\x00a\x00g\x00e\x00n\x00t\x00:\x00*\x00\n\x00D\x00i\x00s\x00a\x00l\x00l\x00o\x00w\x00:\x00/", "bot", "/x", false},
		{"list of tokens", "User-agent: foo, bot\nDisallow: /x\n", "bot", "/x", false},
		{"token by prefix", "User-agent: foo\nDisallow: /\n", "foobot", "/", true},
		{"token with a version", "User-agent: bot/1.2\nDisallow: /\n", "bot", "/", false},
		{"case of an escape", "User-agent: *\nDisallow: /%e3\n", "bot", "/%E3", false},
		{"raw octets", "User-agent: *\nDisallow: /ツ\n", "bot", "/%E3%83%84", false},
		{"escaped letter", "User-agent: *\nDisallow: /%62\n", "bot", "/b", false},
		{"dollar within", "User-agent: *\nDisallow: /a$b\n", "bot", "/a$b", false},
		{"comment without white space", "User-agent: *\nDisallow: /a#b\n", "bot", "/a", false},
		{"white space before the colon", "User-agent : *\nDisallow: /a\n", "bot", "/a", false},
		{"index.html", "User-agent: *\nDisallow: /\nAllow: /x/index.html\n", "bot", "/x/", true},
		{"a word after the path", "User-agent: *\nDisallow: /a b\n", "bot", "/a", true},
		{"byte order mark within a file", "# x\n\uFEFFUser-agent: *\nDisallow: /a\n", "bot", "/a", true},
		{"a group without rules", "User-agent: *\nDisallow: /a\n\nUser-agent: bot\n", "bot", "/a", true},
		{"web page", "<html>\nUser-agent: bot<br>\nDisallow: /a<br>\n", "bot", "/a", false},
		{"misspelled", "User-agent: *\nDisalow: /a\n", "bot", "/a", false},
	} {
		if got := robots.Parse([]byte(tt.file), tt.product).Allowed(tt.url); got != tt.right {
			t.Errorf("%s: robots.Parse is wrong: %v", tt.name, got)
		}
		if got := temotorobots.Parse([]byte(tt.file), tt.product).Allowed(tt.url); got == tt.right {
			t.Errorf("%s: no fault any more", tt.name)
		}
	}
}

func TestParse(t *testing.T) {
	r := temotorobots.Parse([]byte("User-agent: bot\nCrawl-delay: 2.5\nDisallow: /x\nSitemap: http://h/s\n"), "bot")
	if r.Allowed("http://h/x?y") || !r.Allowed("http://h/y") || !r.Allowed("http://h/robots.txt") {
		t.Error("rules")
	}
	if r.CrawlDelay != 2500*time.Millisecond || !slices.Equal(r.Sitemaps, []string{"http://h/s"}) {
		t.Errorf("%v, %q", r.CrawlDelay, r.Sitemaps)
	}
	if r := temotorobots.Parse(nil, "bot"); !r.Allowed("/") || r.HasCrawlDelay {
		t.Error("an empty file")
	}
	r = temotorobots.Parse([]byte("Disallow: /x\nUser-agent: bot\n"), "bot")
	if r.Allowed("/y") || r.Unavailable || !r.Allowed("/robots.txt") {
		t.Error("a file that the parser rejects does not forbid all")
	}
	long := "User-agent: *\nDisallow: /x\n" + strings.Repeat("# filling\n", robots.MaxBytes/10) + "Disallow: /y\n"
	if r := temotorobots.Parse([]byte(long), "bot"); r.Allowed("/x") || !r.Allowed("/y") {
		t.Error("the limit of the file")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("User-agent: *\nDisallow: /*a$\nCrawl-delay: 1e999\n"), "bot", "/a")
	f.Add([]byte("\xEF\xBB\xBFUser-agent: a\r\rAllow: /\r"), "a", "http://h/")
	f.Fuzz(func(t *testing.T, body []byte, product, url string) {
		r := temotorobots.Parse(body, product)
		r.Allowed(url)
		if !r.Allowed("/robots.txt") {
			t.Error("/robots.txt is forbidden")
		}
		if r.CrawlDelay < 0 || r.CrawlDelay > 24*time.Hour {
			t.Errorf("Crawl-delay %v", r.CrawlDelay)
		}
	})
}
