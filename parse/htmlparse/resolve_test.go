package htmlparse

import (
	"bufio"
	"encoding/json"
	"net/url"
	"os"
	"strings"
	"testing"
)

// wptCase is a case of the web platform tests.
type wptCase struct {
	Input   string  `json:"input"`
	Base    *string `json:"base"`
	Href    string  `json:"href"`
	Hash    string  `json:"hash"`
	Failure bool    `json:"failure"`
}

func wptCases(t *testing.T) []wptCase {
	t.Helper()
	data, err := os.ReadFile("testdata/wpt/urltestdata.json")
	if err != nil {
		t.Fatal(err)
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		t.Fatal(err)
	}
	var cases []wptCase
	for _, r := range raw {
		if r[0] != '{' {
			continue // a comment
		}
		var c wptCase
		if err := json.Unmarshal(r, &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	return cases
}

// TestWPT resolves the cases of the web platform tests whose outcome is a link
// by default: those of http, https, ftp and file, and failures on such a page.
// What differs, and why, is listed in testdata/wpt/deviations.txt; a difference
// that is not listed fails, and so does one that is listed and no longer exists.
func TestWPT(t *testing.T) {
	known := deviations(t)
	asked, equal := 0, 0
	for _, c := range wptCases(t) {
		var base *location
		if c.Base != nil {
			if base = locate(*c.Base); base == nil || !linkScheme(base.scheme) {
				continue
			}
		}
		want := "failure"
		if !c.Failure {
			scheme, _, _ := strings.Cut(c.Href, ":")
			if !linkScheme(scheme) {
				continue
			}
			want = strings.TrimSuffix(c.Href, c.Hash)
			if c.Hash == "" {
				want = strings.TrimSuffix(want, "#")
			}
		}
		asked++
		r := resolver{base: base, max: none}
		got := "failure"
		if u, ok := r.resolve([]byte(c.Input)); ok {
			got = string(u)
			if _, err := url.Parse(got); err != nil {
				t.Errorf("%q: net/url refuses %q: %v", c.Input, got, err)
			}
		}
		b := ""
		if c.Base != nil {
			b = *c.Base
		}
		key := quote(c.Input) + "\t" + quote(b) + "\t" + quote(got)
		switch {
		case got == want:
			equal++
			if known[key] {
				t.Errorf("listed as a deviation and is none: %s", key)
			}
		case !known[key]:
			t.Errorf("%s\twant %s", key, quote(want))
		}
		delete(known, key)
	}
	for key := range known {
		t.Errorf("listed as a deviation and never met: %s", key)
	}
	t.Logf("%d of %d cases equal", equal, asked)
}

func linkScheme(s string) bool {
	return s == "http" || s == "https" || s == "ftp" || s == "file"
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// deviations reads lines of input, base and our result, each a JSON string.
func deviations(t *testing.T) map[string]bool {
	t.Helper()
	f, err := os.Open("testdata/wpt/deviations.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	known := make(map[string]bool)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if l := lines.Text(); l != "" && l[0] != '#' {
			known[l] = true
		}
	}
	return known
}

// FuzzResolve shows that what is resolved can be read by net/url, and that it
// stays as it is when it is resolved again.
func FuzzResolve(f *testing.F) {
	for _, base := range []string{"http://h/a/b?c", "file:///C:/a", "https://u:p@[::1]:8/"} {
		for _, ref := range []string{"../x y", "//0x7f.1:080/%2e%zz?'", "\\\\ß@é\\..", "C|/..", "HTTP:\t\nx#y", "{}^`|"} {
			f.Add(base, ref)
		}
	}
	f.Fuzz(func(t *testing.T, base, ref string) {
		r := resolver{base: locate(base), max: defaultMaxURL}
		u, ok := r.resolve([]byte(ref))
		if !ok {
			return
		}
		first := string(u)
		if p, err := url.Parse(first); err != nil || !p.IsAbs() || p.Fragment != "" {
			t.Fatalf("%q on %q is %q: %v", ref, base, first, err)
		}
		for _, b := range []string{base, first} {
			r := resolver{base: locate(b), max: defaultMaxURL}
			for _, ref := range []string{first, first + "#f"} {
				if again, ok := r.resolve([]byte(ref)); !ok || string(again) != first {
					t.Fatalf("%q becomes %q on %q", ref, again, b)
				}
			}
		}
	})
}
