package urlfiltertest

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/urlfilter"
)

var scopes = []urlfilter.Scope{
	urlfilter.Inject, urlfilter.Outlink, urlfilter.Fetcher, urlfilter.Generate, urlfilter.CrawlDB, urlfilter.LinkDB, urlfilter.Indexer, "", "another",
}

// sample returns URLs, strings that are nearly URLs, and strings that are not.
func sample(seed uint64) []string {
	urls := []string{
		"", " ", "\x00", "/", "//", ":", "://", "a", "http:", "http:/", "http://", "http:///", "http://h", "http://h/", "http://h?", "http://h#",
		"HTTP://EXAMPLE.COM:80/%7Ea/../b?c#d", "https://example.com:443/a//b/./c", "https://example.com:8443/", "http://user:pass@example.com/",
		"http://[::1]/", "http://[", "http://]/", "http://127.1/", "http://0x7f.1/", "http://example.com./", "http://a..b/", "http://xn--/",
		"http://b\u00fccher.example/\u00e4?\u00f6", "http://\u3002/", "http://h/%", "http://h/%zz%4", "http://h/%%34%31", "http://h/100%25", "http://h/\xff\xfe",
		"http://h/a\\b", "http:\\\\h\\a", "ht\ntp://h/", "http://h/a b\tc\r\n", " http://h/ ", "mailto:a@example.com", "javascript:alert(1)",
		"data:text/html,x", "file:///etc/passwd", "ftp://h/x", "www.example.com/", "http://h:99999/", "http://h:x/", "http://h/..", "http://h/../../..",
		"http://h/.%2e/%2E./", "http://h/?q=%2e%2e/../", "http://h/a/b/a/b/a/b/a/b/", "http://h/a.gif", "http://h/A.GIF?x=1#y", "http://h/;p=1?;#;",
		"http://" + strings.Repeat("a", 300) + "/", "http://" + strings.Repeat("a.", 300) + "b/", "http://h/" + strings.Repeat("x", 10000),
		"http://h/" + strings.Repeat("a/../", 3000), "http://h/" + strings.Repeat("%", 3000), "http://" + strings.Repeat("\u00fc", 2000) + "/",
		"http://h/?_escaped_fragment_=a%26b&c", "http://h/?b&a#!c=d&e", "http://h/?" + strings.Repeat("a=b&", 3000), strings.Repeat("(", 5000), strings.Repeat("\\", 5000),
	}
	parts := []string{
		"http:", "https:", "HTTP:", "ftp:", "x:", "//", "/", "\\", "h", "example.com", "EXAMPLE.org", "www.", ".", "..", ":80", ":443", ":", "@", "[::1]",
		"%", "%2", "%2f", "%2E", "%41", "%e4", "%C3%A4", "a", "b", "A", "~", "?", "#", "&", "=", "+", " ", "\t", "\n", "\x00", "\x7f", "\xff", "\u00e4",
		"\U0001F600", "\u202e", "'", "\"", "<", ">", "|", "^", "`", "{", "}", "[", "]", ";", ",", "!", "*", "(", ")", "$", ".gif", ".html", "1", "0x7f", "08",
	}
	r := rand.New(rand.NewPCG(seed, 0))
	for range 1000 {
		s := ""
		if r.IntN(4) > 0 {
			s = []string{"http://", "https://"}[r.IntN(2)]
		}
		for range r.IntN(12) {
			s += parts[r.IntN(len(parts))]
		}
		urls = append(urls, s)
	}
	return urls
}

// guard calls f, and breaks the rule if it panics. The message names the URL.
func (k *check) guard(u string, f func()) {
	var err error
	func() {
		defer k.Recover(&err)
		f()
	}()
	k.Must(err, "%.200q", u)
}

// each calls f for every URL.
func (k *check) each(f func(u string)) {
	for _, u := range k.urls {
		k.guard(u, func() { f(u) })
	}
}

// together calls f for every URL from several goroutines at once, each in another
// order.
func (k *check) together(f func(u string)) {
	const workers = 8
	k.Together(workers, func(w int) {
		for i := range k.urls {
			u := k.urls[(i+w*len(k.urls)/workers)%len(k.urls)]
			k.guard(u, func() { f(u) })
		}
	})
}

func filterIsTotal(k *check) {
	f := k.filter()
	k.each(func(u string) { f.Accept(u) })
}

func filterIsAFunction(k *check) {
	f := k.filter()
	first := map[string]bool{}
	k.each(func(u string) { first[u] = f.Accept(u) })
	for _, u := range slices.Backward(k.urls) { // in another order
		if got := f.Accept(u); got != first[u] {
			k.Failf("%.200q: %v at first, %v later", u, first[u], got)
		}
	}
}

func filtersAgree(k *check) {
	a, b := k.filter(), k.filter()
	k.each(func(u string) {
		if x, y := a.Accept(u), b.Accept(u); x != y {
			k.Failf("equal filters answer %v and %v", x, y)
		}
	})
}

func filterIsConcurrent(k *check) {
	f := k.filter()
	want := map[string]bool{}
	k.each(func(u string) { want[u] = f.Accept(u) })
	k.together(func(u string) {
		if got := f.Accept(u); got != want[u] {
			k.Failf("%v alone, %v concurrently", want[u], got)
		}
	})
}

func filterExplains(k *check) { k.explains(k.filter()) }

func normalizerExplains(k *check) { k.explains(k.normalizer()) }

// explains checks that Explain, if there is one, has exactly one answer for any string.
func (k *check) explains(v any) {
	e, ok := v.(urlfilter.Explainer)
	if !ok {
		return
	}
	first := map[string]string{}
	k.each(func(u string) { first[u] = e.Explain(u) })
	k.together(func(u string) {
		if got := e.Explain(u); got != first[u] {
			k.Failf("%q at first, %q later", first[u], got)
		}
	})
}

func explanationsAgree(k *check) {
	f := k.filter()
	e, ok := f.(urlfilter.Explainer)
	if !ok {
		return
	}
	type answer struct {
		url      string
		accepted bool
	}
	byRule := map[string]answer{}
	k.each(func(u string) {
		rule := e.Explain(u)
		if rule == "" {
			return
		}
		got := answer{u, f.Accept(u)}
		if earlier, ok := byRule[rule]; ok && earlier.accepted != got.accepted {
			k.Failf("the rule %q decides about this and about %.200q, but only one of them is accepted", rule, earlier.url)
		}
		byRule[rule] = got
	})
}

// eachForm calls f with the result for every URL in every scope.
func (k *check) eachForm(n urlfilter.Normalizer, f func(scope urlfilter.Scope, u, form string, err error)) {
	for _, scope := range scopes {
		k.Prefix = fmt.Sprintf("scope %q: ", scope)
		k.each(func(u string) {
			form, err := n.Normalize(scope, u)
			f(scope, u, form, err)
		})
	}
}

func normalizerIsTotal(k *check) {
	k.eachForm(k.normalizer(), func(urlfilter.Scope, string, string, error) {})
}

func normalizerIsAFunction(k *check) {
	n, other := k.normalizer(), k.normalizer()
	k.eachForm(n, func(scope urlfilter.Scope, u, form string, err error) {
		for _, n := range []urlfilter.Normalizer{n, other} {
			if again, err2 := n.Normalize(scope, u); again != form || (err == nil) != (err2 == nil) {
				k.Failf("%.200q, %v at first, %.200q, %v later", form, err, again, err2)
			}
		}
	})
}

func normalizerIsConcurrent(k *check) {
	n := k.normalizer()
	want := map[string]string{}
	k.each(func(u string) { want[u], _ = n.Normalize(urlfilter.Outlink, u) })
	k.together(func(u string) {
		if got, _ := n.Normalize(urlfilter.Outlink, u); got != want[u] {
			k.Failf("%.200q alone, %.200q concurrently", want[u], got)
		}
	})
}

func isIdempotent(k *check) {
	n := k.normalizer()
	k.eachForm(n, func(scope urlfilter.Scope, u, form string, err error) {
		if err != nil {
			return
		}
		if again, err := n.Normalize(scope, form); again != form || err != nil {
			k.Failf("the normal form is %.200q, but its own normal form is %.200q, %v", form, again, err)
		}
	})
}

// hostIsKept checks the answers of a [urlfilter.HostKeeper].
func hostIsKept(k *check) {
	n := k.normalizer()
	keeper, ok := n.(urlfilter.HostKeeper)
	if !ok {
		return
	}
	k.eachForm(n, func(scope urlfilter.Scope, u, form string, err error) {
		host := hostOf(u)
		if host == "" || err != nil || !keeper.KeepsHost(scope, host) {
			return
		}
		if now := hostOf(form); now != host {
			k.Failf("the normal form is %.200q, although KeepsHost of %.200q is true", form, host)
		}
	})
}

// hostOf returns the host of a URL as for [urlfilter.HostKeeper]; empty if it has none
// or the string is not a URL.
func hostOf(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host
}

// isAbsolute checks the normal forms of URLs only: in other strings a normalizer may
// change a part, and leave the rest for another one to repair or refuse.
func isAbsolute(k *check) {
	k.eachForm(k.normalizer(), func(_ urlfilter.Scope, u, form string, err error) {
		if p, notURL := url.Parse(u); err != nil || notURL != nil || !p.IsAbs() {
			return
		}
		if p, err := url.Parse(form); err != nil || !p.IsAbs() {
			k.Failf("the normal form %.200q is not an absolute URL: %v", form, err)
		}
	})
}

func refusalIsEmpty(k *check) {
	k.eachForm(k.normalizer(), func(_ urlfilter.Scope, u, form string, err error) {
		if err != nil && form != "" {
			k.Failf("returned %.200q with the error %v", form, err)
		}
		if err == nil && form == "" && u != "" {
			k.Failf("returned an empty normal form and no error")
		}
	})
}
