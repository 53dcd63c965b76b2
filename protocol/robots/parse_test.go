package robots_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/robots"
)

// The examples of RFC 9309: section 5.1, section 5.2, and the tables of 2.2.2 and
// 2.2.3.
func TestRFCExamples(t *testing.T) {
	const simple = `User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
`
	const longest = "User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n"
	const merge = "User-agent: ExampleBot\nDisallow: /foo\nDisallow: /bar\n\nUser-agent: ExampleBot\nDisallow: /baz\n"
	rule := func(path string) string { return "User-agent: *\nDisallow: " + path + "\n" }
	for _, tt := range []struct {
		file, product, url string
		want               bool
	}{
		{simple, "otherbot", "/a.gif", false},
		{simple, "otherbot", "/a.gif?x", true},
		{simple, "otherbot", "/example/", false},
		{simple, "otherbot", "/publications/", true},
		{simple, "foobot", "/", false},
		{simple, "foobot", "/example/page.html", true},
		{simple, "foobot", "/example/allowed.gif", true},
		{simple, "foobot", "/publications/", false},
		{simple, "barbot", "/example/page.html", false},
		{simple, "bazbot", "/example/page.html", false},
		{simple, "bazbot", "/a.gif", true},
		{simple, "quxbot", "/example/", true},
		{longest, "foobot", "/example/page/", true},
		{longest, "foobot", "/example/page/disallowed.gif", false},
		{merge, "examplebot", "/foo", false},
		{merge, "examplebot", "/bar", false},
		{merge, "examplebot", "/baz", false},
		{merge, "examplebot", "/qux", true},

		{rule("/foo/bar?baz=quz"), "a", "/foo/bar?baz=quz", false},
		{rule("/foo/bar?baz=https://foo.bar"), "a", "/foo/bar?baz=https://foo.bar", false},
		{rule("/foo/bar?baz=https%3A%2F%2Ffoo.bar"), "a", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", false},
		// Which of the two a URL has is a difference, whatever row 2 of the table says.
		{rule("/foo/bar?baz=https://foo.bar"), "a", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", true},
		{rule("/foo/bar/ツ"), "a", "/foo/bar/%E3%83%84", false},
		{rule("/foo/bar/%E3%83%84"), "a", "/foo/bar/%E3%83%84", false},
		{rule("/foo/bar/%e3%83%84"), "a", "/foo/bar/ツ", false},
		{rule("/foo/bar/%62%61%7A"), "a", "/foo/bar/baz", false},

		{rule("/path/file-with-a-%2A.html"), "a", "/path/file-with-a-*.html", false},
		{rule("/path/file-with-a-%2A.html"), "a", "/path/file-with-a-b.html", true},
		{rule("/path/foo-%24"), "a", "/path/foo-$", false},
		{rule("/path/foo-%24"), "a", "/path/foo-", true},
	} {
		if got := robots.Parse([]byte(tt.file), tt.product).Allowed(tt.url); got != tt.want {
			t.Errorf("%s for %s: allowed is %v by\n%s", tt.url, tt.product, got, tt.file)
		}
	}
}

func TestAllowed(t *testing.T) {
	for _, tt := range []struct {
		name, rules, url string
		want             bool
	}{
		{"no path is the root", "Disallow: /$", "http://h", false},
		{"a query without path", "Disallow: /?", "http://h?q", false},
		{"fragments do not count", "Disallow: /a$", "http://h/a#b", false},
		{"a colon in a path is no scheme", "Disallow: /a", "/a://b", false},
		{"an authority may end in a query", "Disallow: /*x", "http://h?u=http://i/x", false},
		{"a user and a port", "Disallow: /a", "http://u:p@h:8080/a", false},
		{"two slashes", "Disallow: //a", "http://h//a", false},
		{"robots.txt", "Disallow: /", "http://h/robots.txt", true},
		{"robots.txt, escaped", "Disallow: /", "http://h/%72obots.txt", true},
		{"robots.txt with a query is another", "Disallow: /", "http://h/robots.txt?a", false},
		{"robots.txt elsewhere", "Disallow: /", "http://h/a/robots.txt", false},
		{"an equal Allow wins", "Disallow: /a\nAllow: /a", "/a", true},
		{"an equal Allow wins in any order", "Allow: /a\nDisallow: /a", "/a", true},
		{"equal length, other pattern", "Allow: /*b\nDisallow: /ab", "/ab", true},
		{"octets count after encoding", "Allow: /ツ\nDisallow: /*aaaa", "/ツaaaa", true},
		{"stars in a row count each", "Allow: /a**********\nDisallow: /abc", "/abc", true},
		{"stars in a row match as one", "Disallow: /a***c***e$", "/abcde", false},
		{"a star counts", "Allow: /\nDisallow: /*", "/a", false},
		{"a dollar counts", "Allow: /a\nDisallow: /a$", "/a", false},
		{"a dollar within is a character", "Disallow: /a$b", "/a$b", false},
		{"a dollar within is no end", "Disallow: /a$b", "/a", true},
		{"two dollars", "Disallow: /a$$", "/a$", false},
		{"star and dollar", "Disallow: /a*$", "/abc", false},
		{"%2F is no slash", "Disallow: /a%2Fb", "/a/b", true},
		{"a bare percent sign", "Disallow: /*%", "/a%20b", false},
		{"spaces in a path", "Disallow: /a b", "/a%20b", false},
		{"braces, in a path or escaped", "Disallow: /{a}", "/%7Ba%7D", false},
		{"a pattern without slash", "Disallow: admin", "/admin", true},
		{"index.html is its directory", "Disallow: /\nAllow: /a/index.html", "/a/", true},
		{"index.html is no other file", "Disallow: /\nAllow: /a/index.html", "/a/b", false},
		{"index.html does not forbid", "Disallow: /a/index.html", "/a/", true},
		{"index.htmlx", "Disallow: /\nAllow: /a/index.htmlx", "/a/", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := robots.Parse([]byte("User-agent: *\n"+tt.rules+"\n"), "bot")
			if got := r.Allowed(tt.url); got != tt.want {
				t.Errorf("Allowed(%q) = %v by %q", tt.url, got, tt.rules)
			}
		})
	}
}

// TestForgiving: each file forbids /x to "bot", and nothing else.
func TestMisspeltFilesAreRead(t *testing.T) {
	utf16of := func(s string, little bool) string {
		var b strings.Builder
		for _, u := range utf16.Encode([]rune(s)) {
			if little {
				b.Write([]byte{byte(u), byte(u >> 8)})
			} else {
				b.Write([]byte{byte(u >> 8), byte(u)})
			}
		}
		return b.String()
	}
	const file = "User-agent: bot\nDisallow: /x\n"
	for name, s := range map[string]string{
		"plain":                   file,
		"no line end at the end":  strings.TrimSpace(file),
		"CRLF":                    strings.ReplaceAll(file, "\n", "\r\n"),
		"CR only":                 strings.ReplaceAll(file, "\n", "\r"),
		"byte order mark":         "\xEF\xBB\xBF" + file,
		"half a byte order mark":  "\xEF\xBB" + file,
		"UTF-16, big end first":   utf16of("\uFEFF"+file, false),
		"UTF-16, small end first": utf16of("\uFEFF"+file, true),
		"UTF-16 without a mark":   utf16of(file, true),
		"NUL bytes":               "U\x00ser-agent: bot\x00\n\x00Disallow: /\x00x\n",
		"no colon":                "User-agent bot\nDisallow /x\n",
		"space before the colon":  "User-agent : bot\nDisallow\t: /x\n",
		"indented":                "  User-agent: bot\n\tDisallow: /x\n",
		"misspelled":              "useragent: bot\nDissalow: /x\n",
		"misspelled otherwise":    "USER AGENT: bot\ndisalow: /x\n",
		"comments":                "User-agent: bot#\n# Allow: /\nDisallow: /x#y\n",
		"a web page":              "<html><body>\nUser-agent: bot<br>\n<p>Disallow: /x</p>\n</body></html>",
		"bad Crawl-delays":        "Crawl-delay: five\nUser-agent: bot\nCrawl-delay:\nCrawl-delay: 1e\nDisallow: /x\n",
		"stray rules":             "Disallow: /\nAllow: /\n" + file,
		"unknown lines":           "User-agent: bot\nHost: a.b\nNoindex: /\nSitemap: /s\nDisallow: /x\n",
		"version":                 "User-agent: bot/1.2\nDisallow: /x\n",
		"version after a space":   "User-agent: bot 1.2 (like Bot)\nDisallow: /x\n",
		"upper case":              "USER-AGENT: BOT\nDISALLOW: /x\n",
		"a list of names":         "User-agent: foo, bot, bar\nDisallow: /x\n",
		"names one a line":        "User-agent: foo\n\nUser-agent: bot\n\nUser-agent: bar\nDisallow: /x\n",
		"everybody":               "User-agent: *\nDisallow: /x\n",
		"everybody, commented":    "User-agent: * # all\nDisallow: /x\n",
		"others too":              "User-agent: botx\nDisallow: /y\nUser-agent: bo\nDisallow: /y\n" + file,
		"mine before everybody's": file + "User-agent: *\nDisallow: /\n",
		"mine after everybody's":  "User-agent: *\nDisallow: /\n" + file,
		"two groups":              "User-agent: bot\nAllow: /y\nUser-agent: *\nDisallow: /\n" + file,
		"a long line":             "Disallow: /" + strings.Repeat("a", 64<<10) + "\n" + file,
		"a long comment":          "# " + strings.Repeat("a", 64<<10) + "\n" + file,
		"binary":                  string(bytes.Repeat([]byte{0xFF, 0x80, '\n'}, 1000)) + file,
	} {
		t.Run(name, func(t *testing.T) {
			r := robots.Parse([]byte(s), "bot")
			if r.Allowed("http://h/x") || !r.Allowed("http://h/y") || !r.Allowed("/") {
				t.Errorf("x %v, y %v, root %v by %.200q", r.Allowed("/x"), r.Allowed("/y"), r.Allowed("/"), s)
			}
		})
	}
}

func TestProduct(t *testing.T) {
	for _, tt := range []struct {
		group, product string
		want           bool // the group is for the product
	}{
		{"foo", "foo", true},
		{"Foo", "fOO", true},
		{"foo", "foobar", false},
		{"foobar", "foo", false},
		{"foo-bar_x", "Foo-Bar_X", true},
		{"foo/1.2", "foo", true},
		{"foo", "foo/3.4 (+http://x)", true},
		{"foo*", "foo", true},
		{"MJ12bot", "MJ12bot", true},
		{"MJ13bot", "MJ12bot", false},
		{"MJ12bot", "MJ", true}, // the token of the group, by the RFC
		{"MJ", "MJ12bot", false},
		{"", "", false},
		{"/", "", false},
		{"*bot", "bot", false},
		{"**", "bot", false},
	} {
		r := robots.Parse([]byte("User-agent: "+tt.group+"\nDisallow: /\n"), tt.product)
		if got := !r.Allowed("/"); got != tt.want {
			t.Errorf("group %q is for %q: %v", tt.group, tt.product, got)
		}
	}
}

func TestCrawlDelay(t *testing.T) {
	for _, tt := range []struct {
		value string
		want  time.Duration // negative: none
	}{
		{"10", 10 * time.Second},
		{"0", 0},
		{"0.01", 10 * time.Millisecond},
		{".5", 500 * time.Millisecond},
		{"5.", 5 * time.Second},
		{"1,5", 1500 * time.Millisecond},
		{"10s", 10 * time.Second},
		{"10 seconds", 10 * time.Second},
		{"7 # why not", 7 * time.Second},
		{"+5", 5 * time.Second},
		{"1e3", 1000 * time.Second},
		{"1e9", 24 * time.Hour},
		{"1e999", 24 * time.Hour},
		{"99999999999999999999", 24 * time.Hour},
		{"", -1}, {"five", -1}, {"-1", -1}, {"NaN", -1}, {"Inf", -1}, {"10m", -1},
		{"10 minutes", -1}, {"1.2.3", -1}, {"1-2", -1}, {"10/1m", -1}, {"\x00", -1}, {"++5", -1}, {"+-5", -1}, {"0x10", -1}, {"1_000", -1}, {"5;", -1}, {"5,", -1}, {`"5"`, -1}, {"10 20", -1},
	} {
		r := robots.Parse([]byte("User-agent: *\nCrawl-delay: "+tt.value+"\nDisallow: /x\n"), "bot")
		if r.HasCrawlDelay != (tt.want >= 0) || r.CrawlDelay != max(tt.want, 0) {
			t.Errorf("%q: %v, %v", tt.value, r.CrawlDelay, r.HasCrawlDelay)
		}
		if r.Allowed("/x") {
			t.Errorf("%q: the rules are lost", tt.value)
		}
	}
}

// A Crawl-delay is for the names before it and ends no group of rules.
func TestCrawlDelayGroups(t *testing.T) {
	const file = `User-agent: a
Crawl-delay: 1

User-agent: b
User-agent: c
Crawl-delay: 2

User-agent: *
Disallow: /x
Crawl-delay: 3

User-agent: d
Disallow: /y
User-agent: d
Crawl-delay: 5
Crawl-delay: 4
`
	for product, want := range map[string]time.Duration{"a": 1, "b": 2, "c": 2, "e": 3, "d": 5} {
		r := robots.Parse([]byte(file), product)
		if r.CrawlDelay != want*time.Second {
			t.Errorf("%s: %v, want %d s", product, r.CrawlDelay, want)
		}
		if got := r.Allowed("/x"); got != (product == "d") {
			t.Errorf("%s: /x allowed is %v", product, got)
		}
	}
}

func TestSitemaps(t *testing.T) {
	const file = "Sitemap: http://h/1\nUser-agent: foo\nSITEMAP : /2\nDisallow: /\nSite-map: http://h/1\nSitemap:\nSitemap: http://h/3 # last\n"
	got := robots.Parse([]byte(file), "bot").Sitemaps
	if want := []string{"http://h/1", "/2", "http://h/3"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Half a megabyte counts, and only whole lines of it.
func TestSizeLimit(t *testing.T) {
	file := []byte("User-agent: *\n")
	for len(file) < robots.MaxBytes-100 {
		file = append(file, "# filling\n"...)
	}
	file = append(file, "Disallow: /within\n"...)
	file = append(file, bytes.Repeat([]byte("#"), robots.MaxBytes-len(file)-20)...)
	file = append(file, "\nDisallow: /across-the-limit\nDisallow: /beyond\n"...)
	r := robots.Parse(file, "bot")
	if r.Allowed("/within") {
		t.Error("a rule within the limit is lost")
	}
	if !r.Allowed("/across-the-limit") || !r.Allowed("/a") {
		t.Error("a line cut by the limit counts")
	}
	if !r.Allowed("/beyond") {
		t.Error("a rule beyond the limit counts")
	}
	exact := slices.Clone(file[:robots.MaxBytes])
	copy(exact[robots.MaxBytes-13:], "\nDisallow: /z")
	if robots.Parse(append(exact, '\n'), "bot").Allowed("/z") {
		t.Error("a line that ends at the limit is lost")
	}
	if robots.Parse(exact, "bot").Allowed("/z") {
		t.Error("the last line of a file as long as the limit is lost")
	}
	if !robots.Parse(bytes.Repeat([]byte("a"), 1<<20), "bot").Allowed("/") {
		t.Error("one long line")
	}
}

func TestRulesThatAreNotParsed(t *testing.T) {
	for _, tt := range []struct {
		name        string
		rules       *robots.Rules
		any         bool
		unavailable bool
	}{
		{"AllowAll", robots.AllowAll(), true, false},
		{"DenyAll", robots.DenyAll(), false, false},
		{"Unavailable", robots.ParseResponse(503, nil), false, true},
		{"NewRules", robots.NewRules(robots.RuleSet{}), true, false},
		{"NewRules that deny", robots.NewRules(robots.RuleSet{Allow: func(string) bool { return false }}), false, false},
		{"an empty file", robots.Parse(nil, "bot"), true, false},
	} {
		if got := tt.rules.Allowed("http://h/a"); got != tt.any || tt.rules.Unavailable != tt.unavailable {
			t.Errorf("%s: allowed %v, unavailable %v", tt.name, got, tt.rules.Unavailable)
		}
		if !tt.rules.Allowed("http://h/robots.txt") {
			t.Errorf("%s: /robots.txt is forbidden", tt.name)
		}
	}
	var asked []string
	r := robots.NewRules(robots.RuleSet{
		Allow:      func(path string) bool { asked = append(asked, path); return true },
		CrawlDelay: 48 * time.Hour,
		Sitemaps:   []string{"s"},
	})
	r.Allowed("http://h?q=%41#f")
	r.Allowed("/b")
	if want := []string{"/?q=%41", "/b"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
	if r.CrawlDelay != 24*time.Hour || !r.HasCrawlDelay || !slices.Equal(r.Sitemaps, []string{"s"}) {
		t.Errorf("%+v", r)
	}
	if r := robots.NewRules(robots.RuleSet{CrawlDelay: -1}); r.HasCrawlDelay || r.CrawlDelay != 0 {
		t.Errorf("a negative delay is none, not %v", r.CrawlDelay)
	}
}

// A hostile file costs memory in proportion to its size, not more.
func TestManyGroupsAndRules(t *testing.T) {
	var groups, rules strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&groups, "User-agent: b%d\nDisallow: /\n", i)
		fmt.Fprintf(&rules, "Disallow: /%d$\n", i)
	}
	if !robots.Parse([]byte(groups.String()), "bot").Allowed("/") {
		t.Error("a group of another")
	}
	r := robots.Parse([]byte("User-agent: *\n"+rules.String()), "bot")
	if r.Allowed("/777") || !r.Allowed("/777a") {
		t.Error("a rule among many is lost")
	}
}

// ParseResponse sorts as the Cache does.
func TestParseResponse(t *testing.T) {
	for status := range 700 {
		var want string
		s := new(site)
		s.set(file, answerOf(status))
		r, err := (&robots.Cache{Protocol: s, Hosts: new(hosts)}).Fetch(t.Context(), origin)
		if want = says(r); err != nil {
			t.Fatal(err)
		}
		if got := says(robots.ParseResponse(status, []byte(noX), "bot")); got != want {
			t.Errorf("status %d: %q, but %q by way of the cache", status, got, want)
		}
	}
}

// answerOf returns the outcome of a status in httpproto.
func answerOf(n int) protocol.Response {
	switch {
	case n >= 200 && n < 300:
		return status(n, noX)
	case n >= 300 && n < 400 && n != 304:
		return redirect("")
	case n < 200:
		return failure(protocol.Failed)
	}
	return status(n)
}
