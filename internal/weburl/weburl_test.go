package weburl

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
		var base *Base
		if c.Base != nil {
			if base = Parse(*c.Base); base == nil || !linkScheme(base.scheme) {
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
		r := Resolver{Base: base, Schemes: []string{"http", "https", "ftp", "file"}}
		got := "failure"
		if u, ok := r.Resolve([]byte(c.Input)); ok {
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
		r := Resolver{Base: Parse(base), Schemes: []string{"http", "https", "ftp", "file"}, Max: 4096}
		u, ok := r.Resolve([]byte(ref))
		if !ok {
			return
		}
		first := string(u)
		if p, err := url.Parse(first); err != nil || !p.IsAbs() || p.Fragment != "" {
			t.Fatalf("%q on %q is %q: %v", ref, base, first, err)
		}
		for _, b := range []string{base, first} {
			r := Resolver{Base: Parse(b), Schemes: []string{"http", "https", "ftp", "file"}, Max: 4096}
			for _, ref := range []string{first, first + "#f"} {
				if again, ok := r.Resolve([]byte(ref)); !ok || string(again) != first {
					t.Fatalf("%q becomes %q on %q", ref, again, b)
				}
			}
		}
	})
}

// TestResolve is about references, beyond the cases of the web platform tests.
func TestResolve(t *testing.T) {
	for _, c := range []struct{ base, ref, want string }{
		{"http://www.example.org/;something", "g?y#s", "http://www.example.org/g?y"},
		{"http://www.example.org/;something", "?y=1;somethingelse", "http://www.example.org/;something?y=1;somethingelse"},
		{"http://www.example.org/", "g;x?y#s", "http://www.example.org/g;x?y"},
		{"http://h/a/b", " \n../c\t/d ", "http://h/c/d"},
		{"http://h/a/b", "\\\\other\\x", "http://other/x"},
		{"http://h/a/b", "c d/é?ü='", "http://h/a/c%20d/%C3%A9?%C3%BC=%27"},
		{"http://h/a/b", "%zz%4", "http://h/a/%25zz%254"},
		{"http://h/a/b", "%41%2f?%zz", "http://h/a/%41%2f?%zz"},
		{"http://h/a/b", "HTTP:c", "http://h/a/c"},
		{"http://h/a/b", "https:c", "https://c/"},
		{"http://h/a/b", "http:///x", "http://x/"},
		{"http://h/a/b", "http://0x7f.1/", "http://127.0.0.1/"},
		{"http://h/a/b", "//[::FFFF:1.2.3.4]:80/", "http://[::ffff:102:304]/"},
		{"http://h/a/b", "//BÜCHER.example", "http://xn--bcher-kva.example/"},
		{"http://h/a/b", "//ẞ.example", "http://xn--zca.example/"},
		{"http://h/a/b", "//example.com.xn--/", "http://example.com.xn--/"}, // and not example.com
		{"http://h/a/b", "//ü.xn--/", ""},
		{"http://h/a/b", "//h:65536/", ""},
		{"http://h/a/b", "//a b/", ""},
		{"http://h/a/b", "//u:p@h/", "http://u:p@h/"},
		{"http://h/a/b", "s3://bucket/x#f", "s3://bucket/x"},
		{"http://h/a/b", "///x", "http://x/"},
		{"http://h/a/b", "//%41/", "http://a/"},
		{"http://h/a/b", "..//x//y", "http://h//x//y"},
		{"http://h/a/b", "/../../x/./y/../", "http://h/x/"},
		{"http://h", "x", "http://h/x"},
		{"file:///C:/a/b", "../../../x", "file:///C:/x"},
		{"file:///a/b", "http://h/", "http://h/"},
		{"file:///a/b?q", "", "file:///a/b?q"},
		{"", "a", ""},
		{"", "http://h/a", "http://h/a"},
	} {
		got, _ := Parse(c.base).Resolve(c.ref)
		if got != c.want {
			t.Errorf("%q on %q\n got %q\nwant %q", c.ref, c.base, got, c.want)
		}
	}
}

// TestFragment is about fragments, where they are kept.
func TestFragment(t *testing.T) {
	r := Resolver{Base: Parse("http://h/a?b#c"), Fragment: true}
	for ref, want := range map[string]string{
		"":               "http://h/a?b",
		"#":              "http://h/a?b",
		"# \t\n ":        "http://h/a?b",
		"#d":             "http://h/a?b#d",
		"x#!/y?z='":      "http://h/x#!/y?z='",
		"#\td e\n`%#%zz": "http://h/a?b#d%20e%60%25%23%25zz",
		"mailto:m@h#f":   "mailto:m@h#f",
	} {
		u, ok := r.Resolve([]byte(ref))
		if !ok || string(u) != want {
			t.Errorf("%q: %q, %v, want %q", ref, u, ok, want)
		}
		if _, err := url.Parse(want); err != nil {
			t.Error(err)
		}
		if b, ok := r.ResolveBase([]byte(ref)); want[0] == 'h' && (!ok || b.String() != strings.Split(want, "#")[0]) {
			t.Errorf("%q: base %v, want %q", ref, b, want)
		}
	}
}

// TestLimits is about length, and schemes.
func TestLimits(t *testing.T) {
	r := Resolver{Base: Parse("http://h/"), Schemes: []string{"http"}, Max: 12, Fragment: true}
	for ref, want := range map[string][2]bool{ // resolved, too long
		"abc":            {true, false},
		"abcd":           {false, true},
		"ü":              {false, true},
		"a#b":            {true, false},
		"a#bc":           {false, true},
		"http://i/abcde": {false, true},
		"https://i/":     {false, false},
		"//[/":           {false, false},
	} {
		if _, ok := r.Resolve([]byte(ref)); ok != want[0] || r.TooLong() != want[1] {
			t.Errorf("%q: %v, too long %v", ref, ok, r.TooLong())
		}
	}
}

// BenchmarkResolve resolves the kinds of reference that pages are full of.
func BenchmarkResolve(b *testing.B) {
	base := Parse("https://docs.example.org/15/manual/textsearch-controls.html")
	for _, ref := range []string{"section/topic.html#x", "../up.html", "/root/page?id=4", "https://www.example.com/a/b", "a b/é.html", "javascript:void(0)"} {
		b.Run(ref, func(b *testing.B) {
			r := Resolver{Base: base, Schemes: []string{"http", "https", "ftp"}, Max: 4096}
			in := []byte(ref)
			for b.Loop() {
				r.Resolve(in)
			}
		})
	}
}
