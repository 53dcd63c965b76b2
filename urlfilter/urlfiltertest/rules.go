package urlfiltertest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"

	"github.com/recrawl/recrawl/urlfilter"
)

var rules = []rule{
	{name: "a filter answers for any string", filter: filterIsTotal},
	{name: "a filter gives one answer for one URL", filter: filterIsAFunction},
	{name: "equal filters give equal answers", filter: filtersAgree},
	{name: "a filter can be used concurrently", filter: filterIsConcurrent},
	{name: "a filter explains any string", filter: filterExplains},
	{name: "one rule gives one answer", filter: explanationsAgree},
	{name: "a normalizer answers for any string", normalizer: normalizerIsTotal},
	{name: "a normalizer gives one answer for one URL", normalizer: normalizerIsAFunction},
	{name: "a normalizer can be used concurrently", normalizer: normalizerIsConcurrent},
	{name: "a normal form is its own normal form", normalizer: isIdempotent},
	{name: "a normal form is an absolute URL", normalizer: isAbsolute},
	{name: "a refusal comes with an empty string", normalizer: refusalIsEmpty},
	{name: "a normalizer explains any string", normalizer: normalizerExplains},
	{name: "KeepsHost is right", normalizer: hostIsKept},
	{name: "unchanged content is not reloaded", reloader: sameIsNoChange},
	{name: "a failed reload changes nothing", reloader: badIsNoChange},
	{name: "after a reload the answers are those of a new one", reloader: reloadedIsNew},
}

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

// guard calls f and turns a panic into an error that names the URL.
func guard(u string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%.200q: panic: %v", u, p)
		}
	}()
	return f()
}

func filterIsTotal(make func() urlfilter.Filter, urls []string) error {
	f := make()
	for _, u := range urls {
		if err := guard(u, func() error { f.Accept(u); return nil }); err != nil {
			return err
		}
	}
	return nil
}

func filterIsAFunction(make func() urlfilter.Filter, urls []string) error {
	f := make()
	first := map[string]bool{}
	for _, u := range urls {
		first[u] = f.Accept(u)
	}
	for i := range urls { // in another order
		u := urls[len(urls)-1-i]
		if got := f.Accept(u); got != first[u] {
			return fmt.Errorf("%.200q: %v at first, %v later", u, first[u], got)
		}
	}
	return nil
}

func filtersAgree(make func() urlfilter.Filter, urls []string) error {
	a, b := make(), make()
	for _, u := range urls {
		if x, y := a.Accept(u), b.Accept(u); x != y {
			return fmt.Errorf("%.200q: equal filters answer %v and %v", u, x, y)
		}
	}
	return nil
}

func filterIsConcurrent(make func() urlfilter.Filter, urls []string) error {
	f := make()
	want := map[string]bool{}
	for _, u := range urls {
		want[u] = f.Accept(u)
	}
	return together(urls, func(u string) error {
		if got := f.Accept(u); got != want[u] {
			return fmt.Errorf("%.200q: %v alone, %v concurrently", u, want[u], got)
		}
		return nil
	})
}

// together calls f for every URL from several goroutines at once, each in another
// order.
func together(urls []string, f func(u string) error) error {
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for i := range urls {
				u := urls[(i+w*len(urls)/len(errs))%len(urls)]
				if err := guard(u, func() error { return f(u) }); err != nil {
					errs[w] = err
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// eachForm calls f with the result for every URL in every scope.
func eachForm(n urlfilter.Normalizer, urls []string, f func(scope urlfilter.Scope, u, form string, err error) error) error {
	for _, scope := range scopes {
		for _, u := range urls {
			err := guard(u, func() error {
				form, err := n.Normalize(scope, u)
				return f(scope, u, form, err)
			})
			if err != nil {
				return fmt.Errorf("scope %q: %w", scope, err)
			}
		}
	}
	return nil
}

func normalizerIsTotal(make func() urlfilter.Normalizer, urls []string) error {
	return eachForm(make(), urls, func(urlfilter.Scope, string, string, error) error { return nil })
}

func normalizerIsAFunction(make func() urlfilter.Normalizer, urls []string) error {
	n, other := make(), make()
	return eachForm(n, urls, func(scope urlfilter.Scope, u, form string, err error) error {
		for _, n := range []urlfilter.Normalizer{n, other} {
			if again, err2 := n.Normalize(scope, u); again != form || (err == nil) != (err2 == nil) {
				return fmt.Errorf("%.200q: %.200q, %v at first, %.200q, %v later", u, form, err, again, err2)
			}
		}
		return nil
	})
}

func normalizerIsConcurrent(make func() urlfilter.Normalizer, urls []string) error {
	n := make()
	want := map[string]string{}
	for _, u := range urls {
		want[u], _ = n.Normalize(urlfilter.Outlink, u)
	}
	return together(urls, func(u string) error {
		if got, _ := n.Normalize(urlfilter.Outlink, u); got != want[u] {
			return fmt.Errorf("%.200q: %.200q alone, %.200q concurrently", u, want[u], got)
		}
		return nil
	})
}

func isIdempotent(make func() urlfilter.Normalizer, urls []string) error {
	n := make()
	return eachForm(n, urls, func(scope urlfilter.Scope, u, form string, err error) error {
		if err != nil {
			return nil
		}
		if again, err := n.Normalize(scope, form); again != form || err != nil {
			return fmt.Errorf("%.200q: the normal form is %.200q, but its own normal form is %.200q, %v", u, form, again, err)
		}
		return nil
	})
}

// hostIsKept checks the answers of a [urlfilter.HostKeeper].
func hostIsKept(make func() urlfilter.Normalizer, urls []string) error {
	n := make()
	k, ok := n.(urlfilter.HostKeeper)
	if !ok {
		return nil
	}
	return eachForm(n, urls, func(scope urlfilter.Scope, u, form string, err error) error {
		host := hostOf(u)
		if host == "" || err != nil || !k.KeepsHost(scope, host) {
			return nil
		}
		if now := hostOf(form); now != host {
			return fmt.Errorf("%.200q: the normal form is %.200q, although KeepsHost of %.200q is true", u, form, host)
		}
		return nil
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
func isAbsolute(make func() urlfilter.Normalizer, urls []string) error {
	return eachForm(make(), urls, func(_ urlfilter.Scope, u, form string, err error) error {
		if p, notURL := url.Parse(u); err != nil || notURL != nil || !p.IsAbs() {
			return nil
		}
		if p, err := url.Parse(form); err != nil || !p.IsAbs() {
			return fmt.Errorf("%.200q: the normal form %.200q is not an absolute URL: %v", u, form, err)
		}
		return nil
	})
}

func refusalIsEmpty(make func() urlfilter.Normalizer, urls []string) error {
	return eachForm(make(), urls, func(_ urlfilter.Scope, u, form string, err error) error {
		if err != nil && form != "" {
			return fmt.Errorf("%.200q: returned %.200q with the error %v", u, form, err)
		}
		if err == nil && form == "" && u != "" {
			return fmt.Errorf("%.200q: returned an empty normal form and no error", u)
		}
		return nil
	})
}
