package urlfilter_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/recrawl/recrawl/urlfilter"
)

func ExampleBasic() {
	for _, u := range []string{
		"HTTP://Example.COM:80/a/./b/../c%7e.html#top",
		"https://bücher.example?q=a b",
		"http://0x7f.1\\x",
		"http://user@example.com/",
	} {
		fmt.Println(urlfilter.Basic{}.Normalize(urlfilter.Outlink, u))
	}
	// Output:
	// http://example.com/a/c~.html <nil>
	// https://xn--bcher-kva.example/?q=a%20b <nil>
	// http://127.0.0.1/x <nil>
	//  user information in the URL
}

func ExampleBasic_nutchCompat() {
	n := urlfilter.Basic{NutchCompat: true, HostIDN: urlfilter.ToASCII}
	for _, u := range []string{"http://user@Bücher.example:80/a//b/../c%7e#top", "http:", "javascript:void(0)"} {
		fmt.Println(n.Normalize(urlfilter.Outlink, u))
	}
	// Output:
	// http://xn--bcher-kva.example/a/c~ <nil>
	// http:/ <nil>
	//  a protocol unknown to java.net.URL
}

func ExampleNewScoped() {
	// Seeds are only normalized; links lose session ids, too.
	sessions, err := urlfilter.ParseRegexNormalizer(strings.NewReader(`
<regex-normalize>
  <regex><pattern>(?i)([?&amp;])sid=[^&amp;]*(&amp;|$)</pattern><substitution>$1</substitution></regex>
  <regex><pattern>[?&amp;]$</pattern><substitution></substitution></regex>
</regex-normalize>`), urlfilter.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	rules := &urlfilter.Rules{Normalizers: []urlfilter.Normalizer{
		urlfilter.Basic{},
		urlfilter.NewScoped(map[urlfilter.Scope]urlfilter.Normalizer{urlfilter.AnyScope: sessions, urlfilter.Inject: urlfilter.NewChain(0)}),
	}}
	for _, scope := range []urlfilter.Scope{urlfilter.Inject, urlfilter.Outlink} {
		u, err := rules.Apply(scope, "http://Example.org/forum?sid=12345")
		fmt.Println(u, err)
	}
	for _, s := range rules.Explain(urlfilter.Outlink, "http://example.org/forum?sid=12345") {
		fmt.Printf("%s: %q\n", s.Name, s.Rule)
	}
	// Output:
	// http://example.org/forum?sid=12345 <nil>
	// http://example.org/forum <nil>
	// basic normalizer: ""
	// by scope (default: regex normalizer of 2 rules; inject: pass normalizer): "line 3: (?i)([?&])sid=[^&]*(&|$) -> \"$1\"; line 4: [?&]$ -> \"\""
}

func ExampleRules() {
	site, err := urlfilter.Within("example.org")
	if err != nil {
		fmt.Println(err)
		return
	}
	rules := urlfilter.Default()
	rules.Filters = append(rules.Filters, site)

	for _, u := range []string{"http://www.example.org/a?b=c", "http://www.example.org/logo.png", "http://example.com/"} {
		u, err := rules.Apply(urlfilter.Outlink, u)
		fmt.Printf("%q %v %v\n", u, err, errors.Is(err, urlfilter.ErrRejected))
	}
	// Output:
	// "http://www.example.org/a?b=c" <nil> false
	// "" urlfilter: rejected by suffix filter of 20 entries true
	// "" urlfilter: rejected by domain filter of 1 entries true
}

func ExampleRules_AllowSchemes() {
	rules := urlfilter.Default().AllowSchemes("ftp")
	fmt.Println(rules.Apply(urlfilter.Inject, "FTP://example.org:21/a"))
	// Output: ftp://example.org/a <nil>
}

func ExampleParseRegex() {
	f, err := urlfilter.ParseRegex(strings.NewReader(`
# no queries
-[?]
# nothing but this site
+^https?://(www\.)?example\.org/
`), urlfilter.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.Accept("http://example.org/a"), f.Accept("http://example.org/a?b"), f.Accept("http://example.com/"))

	_, err = urlfilter.NewRegex("+.", "-(?!private)")
	fmt.Println(err != nil)
	// Output:
	// true false false
	// true
}

func ExampleRules_Explain() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "regex-urlfilter.txt")
	if err := os.WriteFile(path, []byte("# no queries\n-[?*!@=]\n+^https?://\n"), 0o666); err != nil {
		fmt.Println(err)
		return
	}
	file, err := urlfilter.OpenFilter(path, urlfilter.ParseRegex, urlfilter.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	rules := &urlfilter.Rules{Filters: []urlfilter.Filter{file}}

	for _, u := range []string{"http://example.org/a?b=c", "http://example.org/a"} {
		for _, step := range rules.Explain(urlfilter.Outlink, u) {
			fmt.Println(step.Accepted, strings.TrimPrefix(step.Rule, dir+string(filepath.Separator)))
		}
	}
	// Output:
	// false regex-urlfilter.txt:2: -[?*!@=]
	// true regex-urlfilter.txt:3: +^https?://
}

func ExampleNewRegex() {
	_, err := urlfilter.NewRegex("-^ftp:", "-(?!https)", "+.")
	fmt.Println(err)
	// Output:
	// urlfilter: line 2: pattern `(?!https)`: look-ahead (?! is not supported: only patterns without back-references, look-around, atomic groups and possessive repetition can be matched in linear time
}
