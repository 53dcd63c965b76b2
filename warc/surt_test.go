package warc_test

import (
	"testing"

	"github.com/recrawl/recrawl/warc"
)

// The keys are those of the Internet Archive's own program, surt 0.3.1.
func TestSURT(t *testing.T) {
	for url, want := range map[string]string{
		"http://example.com":                  "com,example)/",
		"http://example.com/":                 "com,example)/",
		"HTTP://WWW.Example.COM:80/A/B/":      "com,example)/a/b",
		"https://www2.example.com:443/?":      "com,example)/",
		"http://example.com:8080/a?b=2&a=1&a": "com,example:8080)/a?a&a=1&b=2",
		"http://user:pw@example.com/x#frag":   "com,example)/x",
		"http://example.com/a//b/../c/./d":    "com,example)/a/c/d",
		"http://example.com/%7Efoo/%2561":     "com,example)/~foo/a",
		"http://example.com/a b?c d":          "com,example)/a%20b?c%20d",
		"http://example.com/p;jsessionid=1?jsessionid=0123456789abcdef0123456789abcdef&x=1": "com,example)/p;jsessionid=1?x=1",
		"http://example.com/?phpsessid=0123456789abcdef0123456789ABCDEF":                    "com,example)/",
		"http://example.com/?a=1&sid=0123456789abcdef0123456789abcdef":                      "com,example)/?&a=1",
		"http://example.com/?cfid=1&cftoken=2&z":                                            "com,example)/?z",
		"http://example.com/(S(abcdefghijklmnopqrstuvwx))/p.aspx":                           "com,example)/p.aspx",
		"http://example.com/?q=A%20B&Q=c":                                                   "com,example)/?q=a%20b&q=c",
		"http://bücher.example/ü":                                                           "example,xn--bcher-kva)/%c3%bc",
		"http://example.com/?a=b=c&a=":                                                      "com,example)/?a=&a=b=c",
		"http://192.0.2.1/x":                                                                "1,2,0,192)/x",
		"http://example.com/..":                                                             "com,example)/..",
		"http://example.com/a/..":                                                           "com,example)/",
		"http://example.com/.":                                                              "com,example)/",
		"http://example.com?x":                                                              "com,example)/?x",
		"http://www.com/":                                                                   "com)/",
		"http://example.com/a?b&":                                                           "com,example)/a?&b",
		"http://example.com/%":                                                              "com,example)/%25",
	} {
		if got := warc.SURT(url); got != want {
			t.Errorf("%q: %q, want %q", url, got, want)
		}
	}
}
