package urlfilter

import (
	"errors"
	neturl "net/url"
	"os"
	"slices"
	"strings"
	"testing"
)

const (
	sessionH = "cdc993a493e899bed04f4d0c8a462a03"
	sessionJ = "1E6FEC0D14D044541DD84D2D013D29ED"
)

func sampleRules(tb testing.TB, o Options) *regexNormalizer {
	tb.Helper()
	n, err := OpenNormalizer("testdata/regex-normalize.xml", ParseRegexNormalizer, o)
	if err != nil {
		tb.Fatal(err)
	}
	return n.(*normalizerFile).current().(*regexNormalizer)
}

// The pairs of Nutch's test; "" is unchanged.
func TestRegexNormalizerNutch(t *testing.T) {
	type pair struct{ in, out string }
	pairs := []pair{
		{"http://foo.com/foo.php?PHPSESSID=" + sessionH, "http://foo.com/foo.php"},
		{"http://foo.com/foo.php?f=2&PHPSESSID=" + sessionH, "http://foo.com/foo.php?f=2"},
		{"http://foo.com/foo.php?f=2&PHPSESSID=" + sessionH + "&q=3", "http://foo.com/foo.php?f=2&q=3"},
		{"http://foo.com/foo.php?PHPSESSID=" + sessionH + "&f=2", "http://foo.com/foo.php?f=2"},
		{"http://www.foo.com/foo.php?Bv_SessionID=fassassddsajkl", "http://www.foo.com/foo.php"},
		{"http://www.foo.com/foo.php?Bv_SessionID=fassassddsajkl&x=y", "http://www.foo.com/foo.php?x=y"},
		{"http://www.foo.com/foo.html;jsessionid=" + sessionJ, "http://www.foo.com/foo.html"},
		{"http://www.foo.com/foo.html?param=1&another=2;jsessionid=" + sessionJ, "http://www.foo.com/foo.html?param=1&another=2"},
		{"http://www.foo.com/foo.html;jsessionid=" + sessionJ + "?param=1&another=2", "http://www.foo.com/foo.html?param=1&another=2"},
		{"http://www.foo.com/foo.php?&x=1&sid=xyz&something=1", "http://www.foo.com/foo.php?x=1&something=1"},
		{"http://www.foo.com/foo.html?_sessionID=824A6C0A13a7e11205wxN28F44E3", "http://www.foo.com/foo.html"},
		{"http://www.foo.com/foo.php?_sessionid=qmyrcedt&outputformat=html&path=/3_images/foo", "http://www.foo.com/foo.php?outputformat=html&path=/3_images/foo"},
		{"http://www.foo.com/foo.php?_pid=2&_spid=0&lang=en&_sessionid=e36902d5bb2d0d922fc24b43", "http://www.foo.com/foo.php?_pid=2&_spid=0&lang=en"},
		{"http://www.foo.com/foo.php?app=content&content=overview&lang=en&_sid=587fba8f825b05844526519fdb7d75c8&b=35&m=47", "http://www.foo.com/foo.php?app=content&content=overview&lang=en&b=35&m=47"},
		{"http://www.foo.com/fa/newsdetail.aspx?NewsID=1567539", ""},
		{"http://www.foo.com/home.cfm?language=en&country=uk&addressid=250646&pagingpos=0", ""},
		{"http://www.foo.com/home/index.html", "http://www.foo.com/home/"},
		{"http://www.foo.com/foo.html#something", "http://www.foo.com/foo.html"},
		{"http://www.foo.com/foo.html#something?x=y", "http://www.foo.com/foo.html?x=y"},
		{"http://www.foo.com/foo.html?&x=y", "http://www.foo.com/foo.html?x=y"},
		{"http://www.foo.com/foo.html?x=y&&&z=a", "http://www.foo.com/foo.html?x=y&z=a"},
		{"http://www.foo.com/foo.html?", "http://www.foo.com/foo.html"},
		{"http://www.foo.com//path//foo.html", "http://www.foo.com/path/foo.html"},
		{"https://www.foo.com//path//foo.html", "https://www.foo.com/path/foo.html"},
		{"file:///path//foo.html", "file:/path/foo.html"},
		{"file:/path//foo.html", "file:/path/foo.html"},
	}
	for _, p := range strings.Fields("index.html index.htm index.asp index.aspx index.php index.php3 default.html default.htm default.asp default.aspx default.php default.php3 index.phtml index.cfm index.cgi index.HTML index.Htm index.ASP index.jsp index.jsf index.jspx index.jspa index.aspX index.PhP index.PhP4 default.HTml default.HTm default.ASp default.AspX default.PHP default.PHP3") {
		pairs = append(pairs, pair{"http://www.foo.com/" + p, "http://www.foo.com/"})
	}
	for _, p := range strings.Fields("index.jspfx index.jsps something.php3 something.html something.asp foo.php3 foo.html foo.asp") {
		pairs = append(pairs, pair{"http://www.foo.com/" + p, ""})
	}
	for _, o := range []Options{{}, {NutchCompat: true}} {
		n := sampleRules(t, o)
		for _, p := range pairs {
			want := p.out
			if want == "" {
				want = p.in
			}
			if got, err := n.Normalize(AnyScope, p.in); got != want || err != nil {
				t.Errorf("%+v: %q: got %q, %v, want %q", o, p.in, got, err, want)
			}
		}
	}

	other, err := NewRegexNormalizer(Options{NutchCompat: true}, RegexRule{`(^[a-z]{3,5}://)([\w]+\.)*?(\w+\.\w+)[/$].*`, "$1$3/"})
	if err != nil {
		t.Fatal(err)
	}
	byScope := scoped{AnyScope: sampleRules(t, Options{NutchCompat: true}), "scope1": other}
	for in, want := range map[string]string{
		"http://www.foo.bar.com/":                                             "http://bar.com/",
		"http://www.foo.bar.com/foo.php?PHPSESSID=" + sessionH:                "http://bar.com/",
		"https://www.foo.bar.com/foo.php?url=http://www.example.com/test.php": "https://bar.com/",
	} {
		if got, err := byScope.Normalize("scope1", in); got != want || err != nil {
			t.Errorf("%q: got %q, %v, want %q", in, got, err, want)
		}
	}
	if got, _ := byScope.Normalize(Inject, "http://www.foo.bar.com/?"); got != "http://www.foo.bar.com/" {
		t.Errorf("a scope without rules of its own: got %q", got)
	}
}

func TestDefaultRegexRulesAreThoseOfTheFile(t *testing.T) {
	var inFile []RegexRule
	for i, r := range sampleRules(t, Options{}).rules {
		if i != 1 { // switched on for the tests
			inFile = append(inFile, r.rule)
		}
	}
	if !slices.Equal(inFile, DefaultRegexRules()) {
		t.Errorf("got %q, want %q", DefaultRegexRules(), inFile)
	}
}

func TestRegexNormalizerSettles(t *testing.T) {
	rules := func(o Options, pairs ...string) Normalizer {
		var all []RegexRule
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, RegexRule{pairs[i], pairs[i+1]})
		}
		n, err := NewRegexNormalizer(o, all...)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	compat := Options{NutchCompat: true}
	for _, c := range []struct {
		name  string
		rules []string
		in    string
		ours  string
		err   error
		nutch string
	}{
		{"a rule makes work for itself", []string{"aa", "a"}, "aaaa", "a", nil, "aa"},
		{"a rule makes work for one before it", []string{"a", "b", "c", "a"}, "c", "b", nil, "a"},
		{"rules that never settle refuse", []string{"a", "aa"}, "a", "", errUnsettled, "aa"},
		{"rules that go round refuse", []string{"a", "b", "b", "a"}, "a", "a", nil, "a"},
		{"rules that leave nothing refuse", []string{".*", ""}, "a", "", errNothingLeft, ""},
		{"a URL may not be swamped", slices.Repeat([]string{"x", "xx"}, 20), "x", "", errUnsettled, "refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := rules(Options{}, c.rules...).Normalize(AnyScope, c.in)
			if got != c.ours || !errors.Is(err, c.err) {
				t.Errorf("got %q, %v, want %q, %v", got, err, c.ours, c.err)
			}
			got, err = rules(compat, c.rules...).Normalize(AnyScope, c.in)
			if err != nil {
				got = "refused"
			}
			if got != c.nutch {
				t.Errorf("under NutchCompat: got %.99q, %v, want %q", got, err, c.nutch)
			}
		})
	}
}

func TestRegexNormalizerErrors(t *testing.T) {
	const head, tail = "<regex-normalize>\n", "\n</regex-normalize>"
	for text, want := range map[string]string{
		head + "<regex><pattern>a</pattern><substitution/></regex>\n<regex><pattern>(</pattern><substitution/></regex>" + tail: "urlfilter: line 3: rule 2: pattern `(`",
		head + "<regex><pattern>a</pattern></regex>" + tail:                                                                    `urlfilter: line 2: rule 1: a <regex> has one <pattern> and one <substitution>, which may be empty`,
		head + "<regex><pattern>(a)\\1</pattern><substitution/></regex>" + tail:                                                "urlfilter: line 2: rule 1: pattern `(a)\\1`",
		head + "<regex><pattern>a</pattern><substitution>$2</substitution></regex>" + tail:                                     "urlfilter: line 2: rule 1: substitution `$2`: no group 2",
		head + "<regex><substitution>a</substitution></regex>" + tail:                                                          `urlfilter: line 2: rule 1: a <regex> has one <pattern>`,
		head + "<regex><pattern>a</pattern><substitute>a</substitute></regex>" + tail:                                          `urlfilter: line 2: rule 1: a <regex> has one <pattern>`,
		head + "<rule/>" + tail:                `urlfilter: line 2: <rule> where <regex> is expected`,
		head + "a" + tail:                      `urlfilter: line 3: text outside of a <regex>`,
		"<rules/>":                             `urlfilter: line 1: the root element is not <regex-normalize>`,
		"":                                     `urlfilter: line 1: the root element is not <regex-normalize>`,
		head + "<regex>":                       `urlfilter: line 2: unexpected EOF`,
		head + "<regex><pattern>&x;</pattern>": `urlfilter: line 2: invalid character entity &x;`,
		`<?xml version="1.0" encoding="koi8-r"?>` + head: `urlfilter: line 1: xml: opening charset "koi8-r": the encoding "koi8-r" is not supported; write the file in UTF-8`,
		head + tail + "<regex/>":                         `urlfilter: line 3: more after </regex-normalize>`,
	} {
		_, err := ParseRegexNormalizer(strings.NewReader(text), Options{NutchCompat: true})
		var s *SyntaxError
		if err == nil || !strings.HasPrefix(err.Error(), want) || !errors.As(err, &s) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if n, err := ParseRegexNormalizer(strings.NewReader("<regex-normalize/>"), Options{}); err != nil || len(n.(*regexNormalizer).rules) != 0 {
		t.Errorf("no rules: %v", err)
	}
}

// What editors and other programs put in front of the rules.
func TestRegexNormalizerEncodings(t *testing.T) {
	const rules = "<regex-normalize><regex><pattern>é</pattern><substitution>e</substitution></regex></regex-normalize>"
	for _, text := range []string{
		"\ufeff" + rules,
		"\ufeff<?xml version=\"1.0\" encoding=\"UTF-8\"?>\r\n<!DOCTYPE regex-normalize>\r\n<!-- rules -->\r\n" + rules + "\r\n",
		`<?xml version="1.0" encoding="utf8"?>` + rules,
		`<?xml version="1.0" encoding="ISO-8859-1"?>` + strings.ReplaceAll(rules, "é", "\xe9"),
	} {
		n, err := ParseRegexNormalizer(strings.NewReader(text), Options{})
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if u, err := n.Normalize(AnyScope, "http://h/é"); err != nil || u != "http://h/e" {
			t.Errorf("%q: %q, %v", text, u, err)
		}
	}
}

func TestRegexNormalizerExplain(t *testing.T) {
	n, err := OpenNormalizer("testdata/regex-normalize.xml", ParseRegexNormalizer, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"http://h/a":     "",
		"http://h/a#b":   `testdata/regex-normalize.xml:12: #.*?(\?|&|$) -> "$1"`,
		"http://h/a?&&b": `testdata/regex-normalize.xml:16: \?& -> "\\?"; line 16: \?& -> "\\?"`,
	} {
		if got := explain(n, in); got != want && in != "http://h/a?&&b" || in == "http://h/a?&&b" && !strings.Contains(got, ":16: ") {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzRegexNormalizer(f *testing.F) {
	f.Add("http://foo.com/foo.php?f=2&PHPSESSID="+sessionH+"&q=3", `(a|b)=.*?(&|$)`, "$2")
	f.Add("file:///a//b?&&x#y", `(?<!:)/{2,}`, "/")
	f.Add("http://h/index.html", `(?i)/index\.html?$`, "/")
	shipped, err := NewRegexNormalizer(Options{}, DefaultRegexRules()...)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, url, pattern, substitution string) {
		all := []Normalizer{shipped}
		if len(pattern) < 200 && len(substitution) < 20 {
			if n, err := NewRegexNormalizer(Options{}, RegexRule{pattern, substitution}); err == nil {
				all = append(all, n)
			}
		}
		for _, n := range all {
			u, err := n.Normalize(AnyScope, url)
			if err != nil {
				continue
			}
			if again, err := n.Normalize(AnyScope, u); again != u || err != nil {
				t.Fatalf("%v: %q is %q, and that is %q, %v", n, url, u, again, err)
			}
			explain(n, url)
		}
	})
}

func FuzzParseRegexNormalizer(f *testing.F) {
	b, err := os.ReadFile("testdata/regex-normalize.xml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(b))
	f.Add("<regex-normalize><regex><pattern>a</pattern><substitution>$0</substitution></regex></regex-normalize>")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseRegexNormalizer(strings.NewReader(text), Options{})
		if err == nil {
			n.Normalize(AnyScope, "http://example.com/a//b?sid=1#c")
		}
	})
}

// realURLs are of the shapes that links have.
var realURLs = []string{
	"https://www.example.com/",
	"https://en.wikipedia.org/wiki/Apache_Nutch#History",
	"http://www.example.co.uk/shop/category/shoes?color=red&size=42&page=3",
	"https://news.example.org/2024/05/17/world/europe/some-long-headline-of-an-article-that-goes-on-and-on.html",
	"https://www.example.com/forum/viewtopic.php?f=2&t=1234&sid=cdc993a493e899bed04f4d0c8a462a03",
	"http://example.net/index.php?option=com_content&view=article&id=12:about&catid=7&Itemid=101",
	"https://cdn.example.com/assets/img/2023/12/banner%20large.jpg?v=1.2.3",
	"https://example.org/a/b/c/../d/./e//f.html",
	"HTTP://WWW.Example.COM:80/Index.html",
	"https://www.example.de/suche?q=stra%c3%9fe+m%C3%BCnchen&start=10",
	"https://shop.example.com/p/12345/product-name?utm_source=newsletter&utm_medium=email&utm_campaign=spring",
	"https://github.example.com/org/repo/blob/main/src/pkg/file.go#L10-L20",
}

// How long does a URL take through the normalizers of Nutch's default
// configuration, and through all there are?
func BenchmarkNormalizerChainPerURL(b *testing.B) {
	shipped, err := NewRegexNormalizer(Options{}, DefaultRegexRules()...)
	if err != nil {
		b.Fatal(err)
	}
	nutch, err := NewRegexNormalizer(Options{NutchCompat: true}, DefaultRegexRules()...)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		rules Rules
	}{
		{"basic,regex", Rules{Normalizers: []Normalizer{Basic{}, shipped}}},
		{"basic,regex,compat", Rules{Normalizers: []Normalizer{Basic{NutchCompat: true}, nutch}, Loops: 1}},
		{"all", Rules{Normalizers: append(allNormalizers(b, Options{}), shipped)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, err := c.rules.Apply(Outlink, realURLs[i%len(realURLs)]); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
	b.Run("baseline=net_url", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			u, err := neturl.Parse(realURLs[i%len(realURLs)])
			if err != nil {
				b.Fatal(err)
			}
			_ = u.String()
			i++
		}
	})
}
