package robots_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/protocol/robots/temotorobots"
)

// encode returns a text as UTF-16 without a byte order mark.
func encode(s string, order binary.AppendByteOrder) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

// verdict checks what files say of /a to the crawler "bot": 'D' if it is
// forbidden, 'A' if not.
func verdict(t *testing.T, want byte, files ...string) {
	t.Helper()
	for _, file := range files {
		got := byte('D')
		if robots.Parse([]byte(file), "bot").Allowed("http://example.com/a") {
			got = 'A'
		}
		if got != want {
			t.Errorf("%q: %c, want %c", file, got, want)
		}
	}
}

// TestHardLines: how much of a line may be wrong. Where RFC 9309 says nothing, both Google's
// parser and crawler-commons give these answers, unless a comment says which one decides.
func TestUnusualLines(t *testing.T) {
	group := func(lines ...string) []string {
		for i, l := range lines {
			lines[i] = "User-agent: bot\n" + l + "\n"
		}
		return lines
	}
	t.Run("a rule", func(t *testing.T) {
		verdict(t, 'D', group(
			"Disallow:/a", "Disallow: /a", "Disallow:\t/a", "Disallow \t : \t /a \t ", "  Disallow: /a", "\tDisallow: /a",
			"Disallow: /a\v", "Disallow: /a\f", "\vDisallow: /a",
			"DISALLOW: /A\ndisallow: /a", "Disallow: /a# comment", "Disallow: /a # comment", "Disallow: /a\t#", "Disallow: /a#b#c",
			"Disallow /a", "Disallow\t/a", "Disallow   /a", "disallow /a # comment", // no colon: Google
			"Disalow: /a", "Dissallow: /a", "Dissalow: /a", "Diasllow: /a", "Disallaw: /a", "Disallows: /a",
			"Disallowed: /a", "Disallow-: /a", // a name need only begin right: Google
		)...)
		verdict(t, 'A', group(
			"Disallow:", "Disallow: ", "Disallow: #/a", "#Disallow: /a", "# Disallow: /a", "Disallow", "Disallow /a b",
			"Disallow/a", "Disallow = /a", "Disallow=/a", "Disallow:: /a", "Disallow: : /a", "Disallow;/a", ":/a", ": /a",
			"-Disallow: /a", "*Disallow: /a", "//Disallow: /a", "<br>Disallow: /a", `"Disallow": /a`,
			"Dis-allow: /a", "Dis allow: /a", "Dis_allow: /a", "Noindex: /a", "Forbidden: /a", "Clean-param: a /a", "Host: /a", "Allow: /a",
			"Disallow: \"/a\"", "Disallow: '/a'", "Disallow: /a, /b", "Disallow: /a /b", "Disallow: /b /a", "Disallow: /a;", "Disallow: /a\\",
			"Disallow: /a<br>", "Disallow: /a </p>", "Disallow: /a\tx",
			// A no-break space is not white space, nor are those of other scripts.
			"Disallow:\u00a0/a", "Disallow: /a\u00a0", "\u00a0Disallow: /a", "\u3000Disallow: /a", "Disallow: /a\u2003",
			"Dısallow: /a", // a dotless i
		)...)
	})
	t.Run("a User-agent line", func(t *testing.T) {
		line := func(lines ...string) []string {
			for i, l := range lines {
				lines[i] = l + "\nDisallow: /a\n"
			}
			return lines
		}
		verdict(t, 'D', line(
			"User-agent: bot", "user-agent:bot", "USER-AGENT : BOT", "User-agent: Bot ", "User-agent: bot # comment", "User-agent: bot#c",
			"User-agent: bot/1.2", "User-agent: bot/1.2 (+http://example.com/)", "User-agent: bot 1.0", "User-agent: bot\t1.0", "User-agent: bot(x)",
			"User-agent: bot.x", "User-agent: bot1", "User-agent: bot*", "User-agent: bot+", "User-agent: bot;foo", "User-agent: bot, foo", "User-agent: bot<br>",
			"User-agent bot", "Useragent: bot", "User agent: bot", "Useragent bot", "User-agents: bot",
			"User-agent: *", "User-agent:*", "User-agent: * ", "User-agent: * # all", "User-agent: * bot", // the last: Google
			"User-agent: foo, bot", "User-agent: foo,bot", // crawler-commons
			"User-agent: foo\nUser-agent: bot", "User-agent: bot\nUser-agent:", "User-agent: bot\nUser-agent: *",
		)...)
		verdict(t, 'A', line(
			"", "User-agent:", "User-agent", "User-agent: #bot", "#User-agent: bot", "User-agent: foo", "User-agent: mybot", "User-agent: bo", "User-agent: botx",
			"User-agent: bot-x", "User-agent: bot_x", "User-agent: -bot", "User-agent: foo bot", "User-agent: *bot", "User-agent: **", "User-agent: */1", "User-agent: *.*",
			"User-agent: .*", "User-agent: \"bot\"", "User-agent: (bot)", "User-agent: +bot", "User-agent: /bot", "User-agent: b\u00f3t", "User-agent:: bot", "User-agent=bot", "User-agent - bot",
			"User_agent: bot", "User--agent: bot", "Agent: bot", "Robot: bot", "User-agent: bot\nDisallow: /b\nUser-agent: foo",
			"User-agent:\u00a0bot",
		)...)
	})
}

// TestHardGroups: which lines belong together. Google's parser and
// crawler-commons agree on each.
func TestUnusualGroups(t *testing.T) {
	verdict(t, 'D',
		"User-agent: bot\n\n\nDisallow: /a\n",
		"User-agent: bot\nDisallow: /b\n\nDisallow: /a\n",
		"User-agent: bot\nUnknown: x\nDisallow: /a\n",
		"User-agent: bot\nno line at all\nUser-agent: foo\nDisallow: /a\n",
		"User-agent: bot\nDisallow\nUser-agent: foo\nDisallow: /a\n",
		"User-agent: bot\nSitemap: http://example.com/s\nUser-agent: foo\nDisallow: /a\n",
		"User-agent: bot\nHost: example.com\nUser-agent: foo\nDisallow: /a\n",
		"User-agent: bot\nCrawl-delay: 5\nUser-agent: foo\nDisallow: /a\n",
		"User-agent: bot\nDisallow: /b\nUser-agent: foo\nDisallow: /c\nUser-agent: bot\nDisallow: /a\n",
		"User-agent: *\nAllow: /\nUser-agent: bot\nDisallow: /a\n",
		"User-agent: bot\nDisallow: /a\nUser-agent: *\nAllow: /\n",
		"User-agent: *\nDisallow: /a\nUser-agent: botx\nAllow: /\n",
		"User-agent: *\nDisallow: /b\nUser-agent: *\nDisallow: /a\n",
		"Allow: /a\nUser-agent: bot\nDisallow: /a\n",
		"User-agent: bot\nDisallow: /b\nUser-agent\nDisallow: /a\n", // no name, no line
	)
	verdict(t, 'A',
		"", "\n", "#", ":", "::::", "Disallow: /a\n", "Disallow: /a\nUser-agent: bot\n", "Allow: /b\nDisallow: /a\nUser-agent: bot\nDisallow: /b\n",
		"User-agent: *\nDisallow: /a\n\nUser-agent: bot\n",
		"User-agent: *\nDisallow: /a\n\nUser-agent: bot\nSitemap: http://example.com/s\n",
		"User-agent: *\nDisallow: /a\n\nUser-agent: bot\nDisallow:\n",
		"User-agent: *\nDisallow: /a\n\nUser-agent: bot\nCrawl-delay: 1\n",
		"User-agent: *\nCrawl-delay: 5\nUser-agent: bot\nDisallow: /b\n",
		"User-agent: bot\nDisallow:\nUser-agent: foo\nDisallow: /a\n",
		"User-agent: bot\nDisallow: # nothing\nUser-agent: foo\nDisallow: /a\n",
		"User-agent: bot\nAllow:\nUser-agent: foo\nDisallow: /a\n",
		"User-agent: bot\nDisallow: /b\nUser-agent:\nDisallow: /a\n",
		"User-agent: bot\nDisallow: /b\nUser-agent: # nobody\nDisallow: /a\n",
		"User-agent: bot Disallow: /a",
		"User-agent: bot; Disallow: /a",
		"User-agent: *Disallow: /a",
	)
}

// TestHardBytes: what else calls itself robots.txt.
func TestUnusualBytes(t *testing.T) {
	const file = "User-agent: bot\nDisallow: /a\n"
	verdict(t, 'D',
		strings.ReplaceAll(file, "\n", "\r"),
		strings.ReplaceAll(file, "\n", "\r\n"),
		strings.ReplaceAll(file, "\n", "\n\r"),
		strings.ReplaceAll(file, "\n", "\r\r\n"),
		"User-agent: bot\rDisallow: /b\nDisallow: /a\r\n",
		strings.TrimSpace(file),
		"\n\n"+file,
		"\uFEFF"+file,
		"\xEF\xBB"+file, "\xEF"+file, // Google
		// crawler-commons
		"\xFF\xFE"+encode(file, binary.LittleEndian),
		"\xFE\xFF"+encode(file, binary.BigEndian),
		"\xFF\xFE"+encode(file, binary.LittleEndian)+"\n", // half a character more
		"\x00"+file, "User-agent: bot\x00\nDisallow: /a\x00\n",
		// Ours alone: NUL bytes have no meaning.
		encode(file, binary.LittleEndian),
		encode(file, binary.BigEndian),
		"U\x00ser-agent: bot\nDis\x00allow: /a\n",
		// Both
		"<!DOCTYPE html>\n"+file, "<html><body><pre>\n"+file+"</pre></body></html>", "<?xml version='1.0'?>\n"+file, "<!--\n"+file+"-->",
		"<html>\nUser-agent: bot<br>\nDisallow: /a<br>\n</html>", "<HTML>\n<p>User-agent: bot</p>\n<p>Disallow: /a</p>\n", // crawler-commons
		file+"<html></html>",
		"HTTP/1.1 200 OK\nContent-Type: text/plain\n\n"+file,
		strings.Repeat("# filling\n", 1000)+file,
		"Disallow: /"+strings.Repeat("a", 1<<16)+"\n"+file,
		strings.Repeat("\x80\xFF", 5000)+"\n"+file,
		strings.Repeat("User-agent: foo\n", 20_000)+file,
	)
	verdict(t, 'A',
		"\uFEFF\uFEFF"+file, "# joined\n\uFEFF"+file, "User-agent: bot\n\uFEFFDisallow: /a\n", // a mark within a file is a character
		"\xBB\xBF"+file, "\xFF"+file, "\xFE"+file, "\xC3\x28"+file, "\x1F\x8B\x08"+file,
		"\xFF\xFE"+file, "\xFE\xFF"+file, // not UTF-16 after all: no line of it can be read
		"User-agent: bot\u0085Disallow: /a\n", "User-agent: bot\u2028Disallow: /a\n", "User-agent: bot\vDisallow: /a\n", "User-agent: bot\fDisallow: /a\n",
		`User-agent: bot\nDisallow: /a\n`,
		"<html><head><title>404</title></head><body>Not found</body></html>",
		"<html><p>User-agent: bot</p><p>Disallow: /a</p></html>", // one line
		"<p>User-agent: bot</p>\n<p>Disallow: /a</p>\n",          // not known for a web page
		`{"error": "not found", "Disallow": "/a"}`,
		"%PDF-1.7\n", "PK\x03\x04", "\x7fELF",
	)
}

// TestHardPaths: one or two rules and a URL.
func TestUnusualPaths(t *testing.T) {
	for _, tt := range []struct {
		rules, url string
		want       bool
	}{
		// Wildcards and anchors.
		{"Disallow: *", "/a", false}, {"Disallow: *", "/", false}, {"Disallow: *$", "/a", false}, {"Disallow: /*$", "/", false},
		{"Disallow: $", "/", true}, {"Disallow: $", "/$", true}, {"Disallow: /$", "/", false}, {"Disallow: /$", "/?a", true}, {"Disallow: /$a", "/$a", false},
		{"Disallow: **/a", "/b/a", false}, {"Disallow: /**a", "/a", false}, {"Disallow: *a$", "/ba", false}, {"Disallow: /a*$", "/abc", false},
		{"Disallow: /a$$", "/a", true}, {"Disallow: /*.gif$", "/a.gif?x=.gif", false}, {"Disallow: /*.gif$", "/a.GIF", true}, {"Disallow: /*.gif$", "/a.gif?", true},
		{"Disallow: /a*b*c$", "/aXbXbXc", false}, {"Disallow: /a*b*c$", "/aXbXcX", true}, {"Disallow: /a*b*c", "/acb", true}, {"Disallow: /*/*/c", "/a/c", true},
		{"Disallow: /*ab", "/aab", false}, {"Disallow: /*aab$", "/aaab", false}, {"Disallow: /*a*a$", "/a", true},
		{"Disallow: /a[bc]", "/ab", true}, {"Disallow: /a(b|c)", "/ab", true}, {"Disallow: /a.b", "/axb", true}, {"Disallow: /a+", "/aa", true}, {"Disallow: /a\\*b", "/a*b", true}, {"Disallow: ^/a", "/a", true},
		// The beginning of a path.
		{"Disallow: a", "/a", true}, {"Disallow: .a", "/a", true}, {"Disallow: ./a", "/a", true}, {"Disallow: http://example.com/a", "/a", true}, {"Disallow: example.com/a", "/a", true},
		{"Disallow: //a", "/a", true}, {"Disallow: //a", "http://example.com//a", false}, {"Disallow: /a", "http://example.com//a", true}, {"Disallow: /A", "/a", true}, {"Disallow: /a/", "/a", true}, {"Disallow: /a", "/ab", false},
		// Queries, parameters, fragments.
		{"Disallow: /?", "/", true}, {"Disallow: /?", "/?", false}, {"Disallow: /*?", "/a?b", false}, {"Disallow: /*?", "/a", true}, {"Disallow: /a?", "/a", true}, {"Disallow: /?a=*&b", "/?a=1&b", false},
		{"Disallow: /a;b", "/a;b=1", false}, {"Disallow: /a", "/a;b", false}, {"Disallow: /a#b", "/a", false}, {"Disallow: /a%23b", "/a#b", true}, {"Disallow: /#a", "/", false},
		{"Disallow: /a&amp;b", "/a&b", true},
		// Dots are resolved when URLs are made.
		{"Disallow: /a", "/./a", true}, {"Disallow: /a", "/b/../a", true}, {"Disallow: /./a", "/a", true},
		// Percent-encoding.
		{"Disallow: /%61", "/a", false}, {"Disallow: /a", "/%61", false}, {"Disallow: /%41", "/a", true}, {"Disallow: /%2561", "/a", true}, {"Disallow: /%2561", "/%61", true}, {"Disallow: /%2561", "/%2561", false},
		{"Disallow: /~x", "/%7Ex", false}, {"Disallow: /%7ex", "/~x", false}, {"Disallow: /%2D%2e%5f", "/-._", false},
		{"Disallow: /a%2fb", "/a%2Fb", false}, {"Disallow: /a%2Fb", "/a/b", true}, {"Disallow: /a/b", "/a%2Fb", true},
		{"Disallow: /a%3Db", "/a=b", true}, {"Disallow: /a%3fb", "/a?b", true}, {"Disallow: /a%26b", "/a&b", true}, {"Disallow: /a%3Bb", "/a;b", true},
		{"Disallow: /a b", "/a%20b", false}, {"Disallow: /a+b", "/a%20b", true}, {"Disallow: /a%20b", "/a+b", true}, {"Disallow: /a%0d%0ab", "/a%0D%0Ab", false},
		{"Disallow: /a%24", "/a$", false}, {"Disallow: /a$", "/a%24", true}, {"Disallow: /a$/b", "/a$/b", false}, {"Disallow: /a%2Ab", "/a*b", false}, {"Disallow: /a%2Ab", "/axb", true}, {"Disallow: /a*b", "/a*b", false},
		{"Disallow: /a%", "/a%", false}, {"Disallow: /a%", "/a", true}, {"Disallow: /a%zz", "/a%zz", false}, {"Disallow: /a%4", "/a%4", false}, {"Disallow: /{a}", "/%7Ba%7D", false}, {"Disallow: /%3Ca%3E", "/<a>", false},
		{"Disallow: /ツ", "/%e3%83%84", false}, {"Disallow: /%E3%83%84", "/ツ", false}, {"Disallow: /%E3%83", "/ツ", false}, {"Disallow: /é", "/e\u0301", true},
		{"Disallow: /caf\xe9", "/caf%E9", false}, {"Disallow: /caf\xe9", "/caf%C3%A9", true}, {"Disallow: /*%C3%A9$", "/café", false},
		// The longest wins, and Allow among equals.
		{"Allow: /a$\nDisallow: /a", "/a", true}, {"Disallow: /a$\nAllow: /a", "/a", false}, {"Allow: /a*$\nDisallow: /ab", "/ab", true}, {"Allow: *\nDisallow: /", "/a", true}, {"Allow: /\nDisallow: *", "/a", true},
		{"Allow: *a\nDisallow: /a", "/a", true}, {"Disallow: /*\nAllow: /", "/a", false}, {"Disallow: /\nAllow: $", "/a", false}, {"Disallow: /\nAllow: /$", "/", true},
		{"Allow: /*****\nDisallow: /ab", "/ab", true}, {"Disallow: /a****\nAllow: /ab", "/ab", false}, {"Allow: /a*b\nDisallow: /a?b", "/a?b", true}, {"Allow: /a/*/c\nDisallow: /a/bb/c", "/a/bb/c", false},
		{"Allow: /%61b\nDisallow: /abc", "/abc", false}, {"Allow: /é\nDisallow: /*xxxx", "/%C3%A9xxxx", true}, {"Disallow: /a\nAllow:\n", "/a", false}, {"Allow: /a\nDisallow:\n", "/a", true},
		{"Disallow: /\nAllow: /b\nAllow: /a", "/a", true}, {"Allow: /a\nDisallow: /a/b\nAllow: /a/b/c", "/a/b/cd", true},
		// The file of a directory: Google.
		{"Disallow: /\nAllow: /x/index.html", "/x/", true}, {"Disallow: /\nAllow: /x/index.htm", "/x/", true}, {"Disallow: /\nAllow: /x/index.html", "/x/?a", false}, {"Disallow: /\nAllow: /x/index.html", "/x/y", false},
		{"Disallow: /\nAllow: /x/INDEX.HTML", "/x/", false}, {"Disallow: /\nAllow: index.html", "/", false}, {"Disallow: /\nAllow: /index.php", "/", false}, {"Disallow: /index.html", "/", true},
	} {
		url := tt.url
		if strings.HasPrefix(url, "/") {
			url = "http://example.com" + url
		}
		r := robots.Parse([]byte("User-agent: bot\n"+tt.rules), "bot")
		if got := r.Allowed(url); got != tt.want {
			t.Errorf("%q: %s: %v", tt.rules, url, got)
		}
		if strings.HasPrefix(tt.url, "/") && r.Allowed(tt.url) != tt.want {
			t.Errorf("%q: the path %s is not the URL", tt.rules, tt.url)
		}
	}
}

// Sitemap lines are of all crawlers, and may stand anywhere.
func TestUnusualSitemaps(t *testing.T) {
	for line, want := range map[string]string{
		"Sitemap: http://h/s.xml": "[http://h/s.xml]", "sitemap:http://h/s.xml": "[http://h/s.xml]", "SITEMAP : http://h/s.xml": "[http://h/s.xml]", "Site-map: http://h/s.xml": "[http://h/s.xml]",
		"Sitemap http://h/s.xml": "[http://h/s.xml]", "sitemap\thttps://h/s.xml": "[https://h/s.xml]", "Sitemap http://h/s.xml # all": "[http://h/s.xml]", "Sitemap /s.xml": "[/s.xml]",
		"Sitemap: http://h/s.xml#part": "[http://h/s.xml]", "Sitemap:\u00a0http://h/s.xml": "[http://h/s.xml]", "Sitemap: //h/s.xml": "[//h/s.xml]", "Sitemap: s.xml": "[s.xml]",
		"Sitemap: http://h/a:b": "[http://h/a:b]", "Sitemap: http://h/s\nSitemap: http://h/s": "[http://h/s]", "Sitemap: http://h/1\rSitemap: http://h/2": "[http://h/1 http://h/2]",
		"Sitemap:": "[]", "Sitemap": "[]", "#Sitemap: http://h/s.xml": "[]", "Sitemap index: see http://h/s.xml": "[see http://h/s.xml]", "Video Sitemap: http://h/s.xml": "[]", "http://h/sitemap.xml": "[]",
	} {
		for _, file := range []string{line, "User-agent: other\n" + line + "\nDisallow: /\n", "\uFEFF" + line} {
			if got := fmt.Sprint(robots.Parse([]byte(file), "bot").Sitemaps); got != want {
				t.Errorf("%q: %s, want %s", file, got, want)
			}
		}
	}
}

// TestTemotoOnHardFiles: the adapter takes any bytes too.
func TestTemotoOnUnusualFiles(t *testing.T) {
	for _, file := range []string{"", "\x00", "\xFF\xFE", "User-agent", "User-agent:\nDisallow: /*$*\n", "User-agent: *\nDisallow: /%zz[(\\\n"} {
		if !temotorobots.Parse([]byte(file), "bot").Allowed("/robots.txt") {
			t.Errorf("%q forbids /robots.txt", file)
		}
	}
}
