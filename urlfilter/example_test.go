package urlfilter_test

import (
	"errors"
	"fmt"
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

func ExampleParseRegex() {
	f, err := urlfilter.ParseRegex(strings.NewReader(`
# no queries
-[?]
# nothing but this site
+^https?://(www\.)?example\.org/
`))
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
