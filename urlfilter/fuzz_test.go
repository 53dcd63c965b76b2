package urlfilter

import (
	"regexp"
	"strings"
	"testing"
)

func FuzzParseAutomaton(f *testing.F) {
	f.Add("-~(http:.*)&.*\"x.y\".*\n+<3-12>@#[^a-z]{2,3}()\n> example.com\n-.*\n<", "http://example.com/7")
	f.Fuzz(func(t *testing.T, text, url string) {
		a, err := ParseAutomaton(strings.NewReader(text), Options{})
		if (a == nil) != (err != nil) {
			t.Fatal(a, err)
		}
		if a != nil && a.Accept(url) && explain(a, url) == "" {
			t.Fatalf("%q accepts %q without a rule", text, url)
		}
	})
}

func FuzzParseFast(f *testing.F) {
	f.Add("Host a.example # x\nDenyPath ^/x\nDomain .\nDenyPathQuery [?]y$\n", "http://a.example/x?y#z", 10)
	f.Fuzz(func(t *testing.T, text, url string, limit int) {
		for _, compat := range []bool{false, true} {
			p, err := ParseFast(strings.NewReader(text), FastOptions{limit, limit, limit, compat})
			if err == nil && p.Accept(url) != (explain(p, url) == "") {
				t.Fatalf("%q: %q: %v, by %q", text, url, p.Accept(url), explain(p, url))
			}
		}
	})
}

// FuzzValidator compares with what the filter is defined by in regular
// expressions.
func FuzzValidator(f *testing.F) {
	split := regexp.MustCompile(`^(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?[^#]*)?(?:#.*)?$`)
	ascii := regexp.MustCompile(`^[\x21-\x7E]+$`)
	scheme := regexp.MustCompile(`^[A-Za-z]+$`)
	authority := regexp.MustCompile(`^([A-Za-z0-9.-]*)(:[0-9]{1,5})?$`)
	ipv4 := regexp.MustCompile(`^([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})$`)
	octet := regexp.MustCompile(`^(?:[01]?[0-9]?[0-9]|2[0-4][0-9]|25[0-5])$`)
	name := regexp.MustCompile(`^(?:[A-Za-z0-9-]+\.)+[A-Za-z][A-Za-z0-9-]+$`)
	path := regexp.MustCompile(`^(?:/[-\w:@&?=+,.!/~*'%$_;()]*)?$`)
	reference := func(u string) bool {
		m := split.FindStringSubmatch(u)
		if m == nil || !ascii.MatchString(u) || !scheme.MatchString(m[1]) || !path.MatchString(m[3]) {
			return false
		}
		a := authority.FindStringSubmatch(m[2])
		if a == nil {
			return false
		}
		if v4 := ipv4.FindStringSubmatch(a[1]); v4 != nil {
			for _, o := range v4[1:] {
				if !octet.MatchString(o) {
					return false
				}
			}
		} else if !name.MatchString(a[1]) {
			return false
		}
		up := overlapping(m[3], "..")
		return up == 0 || up < overlapping(m[3], "/")-overlapping(m[3], "//")-1
	}
	for _, u := range []string{"http://example.com/a/../b?c#d", "http://1.2.3.256:80/", "ftp://a-b.c1/", "http://example.com.:99999", "x:", "http://a..bc"} {
		f.Add(u)
	}
	f.Fuzz(func(t *testing.T, u string) {
		if got, want := (validator{}).Accept(u), reference(u); got != want {
			t.Fatalf("%q: %v, by the definition %v: %s", u, got, want, validator{}.Explain(u))
		}
	})
}
