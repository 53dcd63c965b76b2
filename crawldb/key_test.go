package crawldb_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
)

var keys = []struct{ url, key, host string }{
	{"http://www.example.com/a?b", "com,example,www)http:/a?b", "www.example.com"},
	{"https://www.example.com:8443/", "com,example,www)https:8443/", "www.example.com"},
	{"http://example.com", "com,example)http:", "example.com"},
	{"http://example.com?q", "com,example)http:?q", "example.com"},
	{"http://example.com#f", "com,example)http:#f", "example.com"},
	{"http://example.com:80", "com,example)http:80", "example.com"},
	{"http://example.com./", ",com,example)http:/", "example.com."},
	{"http://localhost/", "localhost)http:/", "localhost"},
	{"http://a..b/", "b,,a)http:/", "a..b"},
	{"http://./", ",)http:/", "."},
	{"http://192.0.2.1:8080/x", "192.0.2.1)http:8080/x", "192.0.2.1"},
	{"http://1/", "1)http:/", "1"},
	{"http://[2001:db8::1]/", "[2001:db8::1])http:/", "[2001:db8::1]"},
	{"http://[2001:db8::1]:8080/", "[2001:db8::1])http:8080/", "[2001:db8::1]"},
	{"http://bücher.example/", "example,bücher)http:/", "bücher.example"},
	{"svn+ssh://example.com/", "com,example)svn+ssh:/", "example.com"},
	{"az+a-z.09://example.com/", "com,example)az+a-z.09:/", "example.com"}, // at the ends of what a scheme may have
	{"{z://example.com/", "!{z://example.com/", "example.com"},
	{"a`://example.com/", "!a`://example.com/", "example.com"},
	{"http://example.com/)(!,:", "com,example)http:/)(!,:", "example.com"},
	// Not plain: the URL itself after "!".
	{"", "!", ""},
	{"!", "!!", ""},
	{"example.com", "!example.com", ""},
	{"HTTP://example.com/", "!HTTP://example.com/", "example.com"},
	{"http://EXAMPLE.com/", "!http://EXAMPLE.com/", "example.com"},
	{"http://É.example/", "example,É)http:/", "É.example"},
	{"http://\xff.EXAMPLE/", "!http://\xff.EXAMPLE/", "\xff.example"},
	{"http://user:pw@Example.com:80/", "!http://user:pw@Example.com:80/", "example.com"},
	{"http://user@[::1]:80/", "!http://user@[::1]:80/", "[::1]"},
	{"http://a@b@example.com/", "!http://a@b@example.com/", "example.com"},
	{"http://example.com:/", "!http://example.com:/", "example.com"},
	{"http://example.com:x/", "!http://example.com:x/", "example.com"},
	{"http://[::1/", "!http://[::1/", ""},
	{"http://[]/", "!http://[]/", "[]"},
	{"http://[::G]/", "!http://[::G]/", "[::g]"},
	{"http:///path", "!http:///path", ""},
	{"http://:80/", "!http://:80/", ""},
	{"://example.com/", "!://example.com/", "example.com"},
	{"1http://example.com/", "!1http://example.com/", "example.com"},
	{"http://ex ample.com/", "!http://ex ample.com/", "ex ample.com"},
	{"http://example.com\\@evil.example/", "!http://example.com\\@evil.example/", "example.com"},
	{"http://example.com)x/", "!http://example.com)x/", "example.com)x"},
	{"mailto:a@example.com", "!mailto:a@example.com", ""},
	{"com,example)http:/", "!com,example)http:/", ""},
}

func TestKey(t *testing.T) {
	for _, test := range keys {
		if got := crawldb.Key(test.url); got != test.key {
			t.Errorf("Key(%q) = %q, want %q", test.url, got, test.key)
		}
		if got := crawldb.URLOf(test.key); got != test.url {
			t.Errorf("URLOf(%q) = %q, want %q", test.key, got, test.url)
		}
		if got := crawldb.Host(test.url); got != test.host {
			t.Errorf("Host(%q) = %q, want %q", test.url, got, test.host)
		}
		if got := string(crawldb.AppendKey([]byte("x"), test.url)); got != "x"+test.key {
			t.Errorf("AppendKey of %q = %q, want x%s", test.url, got, test.key)
		}
	}
}

// sameKeys demands that Keys says what Key and URLOf say, whatever it was asked
// before.
func sameKeys(t *testing.T, k *crawldb.Keys, s string) {
	t.Helper()
	if got, want := string(k.AppendKey([]byte("x"), s)), "x"+crawldb.Key(s); got != want {
		t.Fatalf("Keys.AppendKey of %q = %q, want %q", s, got, want)
	}
	if got, want := string(k.AppendURL([]byte("x"), []byte(s))), "x"+crawldb.URLOf(s); got != want {
		t.Fatalf("Keys.AppendURL of %q = %q, want %q", s, got, want)
	}
}

func TestKeysAgreesWithKey(t *testing.T) {
	var k crawldb.Keys
	for _, a := range keys {
		for _, b := range keys {
			for _, s := range []string{a.url, a.url + "1", a.url + "/", a.key, a.key + "8", b.url, b.key, a.key} {
				sameKeys(t, &k, s)
			}
		}
	}
}

func TestCompare(t *testing.T) {
	long := "http://example.com/" + strings.Repeat("a", 300)
	for _, a := range keys {
		for _, b := range keys {
			if got, want := crawldb.Compare(a.url, b.url), cmp.Compare(a.key, b.key); got != want {
				t.Errorf("Compare(%q, %q) = %d, want %d", a.url, b.url, got, want)
			}
		}
	}
	if crawldb.Compare(long, long+"a") >= 0 || crawldb.Compare(long, long) != 0 {
		t.Error("long URLs are not in order")
	}
}

func TestCompareHosts(t *testing.T) {
	labels := []string{"", "a", "a-", "a_b", "ab", "a1", "1", "10", "é", "A", "a*"}
	urls := []string{"http://[::1]/", "a.b", "https://a", "http://a?/", "http://a?b/", "http://a?b/c", "http://a?c/", "http://a#b/", "http://a?b:/", "http://u@a?b/", "a://b://c/d", "a://b://c/e"}
	for _, x := range labels {
		for _, y := range labels {
			urls = append(urls, "http://"+x+"/", "https://"+x+"."+y+"/a", "http://"+x+"."+y+".a?b", "http://a."+x+"."+y+":80/", "ftp://"+y+"."+x+"/")
		}
	}
	for _, a := range urls {
		for _, b := range urls {
			if got, want := crawldb.Compare(a, b), cmp.Compare(crawldb.Key(a), crawldb.Key(b)); got != want {
				t.Errorf("Compare(%q, %q) = %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestRanges(t *testing.T) {
	urls := []string{
		"http://example.com/", "https://example.com/", "http://example.com", "http://example.com:8080/x", "ftp://example.com/", "http://www.example.com/", "http://a.b.example.com/",
		"http://example.com./", "http://xample.com/", "http://example.comm/", "http://example-a.com/", "http://-.example.com/", "http://_x.example.com/", "http://é.example.com/",
		"http://com/", "http://example/", "http://192.0.2.1/", "http://192.0.2.10/", "http://[2001:db8::1]/", "http://[2001:db8::1]:80/", "http://[2001:db8::10]/", "!", "", "http://EXAMPLE.com/",
	}
	for _, test := range []struct {
		name  string
		r     crawldb.Range
		holds func(url, host string) bool
	}{
		{"everything", crawldb.Range{}, func(string, string) bool { return true }},
		{"host example.com", crawldb.HostRange("example.com"), func(_, host string) bool { return host == "example.com" }},
		{"host EXAMPLE.com", crawldb.HostRange("EXAMPLE.com"), func(_, host string) bool { return host == "example.com" }},
		{"host com", crawldb.HostRange("com"), func(_, host string) bool { return host == "com" }},
		{"host 192.0.2.1", crawldb.HostRange("192.0.2.1"), func(_, host string) bool { return host == "192.0.2.1" }},
		{"host [2001:db8::1]", crawldb.HostRange("[2001:db8::1]"), func(_, host string) bool { return host == "[2001:db8::1]" }},
		{"domain example.com", crawldb.DomainRange("Example.com"), func(_, host string) bool { return host == "example.com" || strings.HasSuffix(host, ".example.com") }},
		{"domain com", crawldb.DomainRange("com"), func(_, host string) bool { return host == "com" || strings.HasSuffix(host, ".com") }},
		{"domain 192.0.2.1", crawldb.DomainRange("192.0.2.1"), func(_, host string) bool { return host == "192.0.2.1" }},
	} {
		for _, url := range urls {
			key := crawldb.Key(url)
			plain := !strings.HasPrefix(key, "!")
			want := test.holds(url, crawldb.Host(url)) && (plain || test.r == crawldb.Range{})
			if got := test.r.Contains(key); got != want {
				t.Errorf("the range of %s holds %q: %v, want %v", test.name, url, got, want)
			}
		}
	}
	r := crawldb.Range{From: "b", To: "d"}
	if got := slices.DeleteFunc([]string{"", "a", "b", "c", "cz", "d", "e"}, func(k string) bool { return !r.Contains(k) }); !slices.Equal(got, []string{"b", "c", "cz"}) {
		t.Errorf("the range from b to d holds %q", got)
	}
}

// FuzzKey demands that a key leads back to its URL, which makes it distinct;
// that any string leads to a URL; and that a host's range holds it.
func FuzzKey(f *testing.F) {
	for _, test := range keys {
		f.Add(test.url, "http://example.com/")
		f.Add(test.key, test.url)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		key := crawldb.Key(a)
		if got := crawldb.URLOf(key); got != a {
			t.Fatalf("URLOf(Key(%q)) = %q; the key is %q", a, got, key)
		}
		other := crawldb.Key(b)
		if (key == other) != (a == b) {
			t.Fatalf("%q and %q have keys %q and %q", a, b, key, other)
		}
		if got, want := crawldb.Compare(a, b), cmp.Compare(key, other); got != want {
			t.Fatalf("Compare(%q, %q) = %d, want %d", a, b, got, want)
		}
		_ = crawldb.URLOf(a)
		var k crawldb.Keys
		for _, s := range []string{a, b, key, other, a + b, key + b, key + other, a} {
			sameKeys(t, &k, s)
		}
		host := crawldb.Host(a)
		if !strings.HasPrefix(key, "!") {
			if !crawldb.HostRange(host).Contains(key) || !crawldb.DomainRange(host).Contains(key) {
				t.Fatalf("the range of host %q does not hold %q", host, a)
			}
			if h := crawldb.Host(b); h != host && !strings.HasPrefix(other, "!") && crawldb.HostRange(host).Contains(other) {
				t.Fatalf("the range of host %q holds %q", host, b)
			}
		}
	})
}

func BenchmarkAppendKey(b *testing.B) {
	b.ReportAllocs()
	var key []byte
	for b.Loop() {
		key = crawldb.AppendKey(key[:0], "http://www.example.com/some/path/of/a/page.html")
	}
}

func BenchmarkCompare(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		crawldb.Compare("http://documentation.example.com/some/path/of/a/page.html", "http://documentation.example.com/some/path/of/another.html")
	}
}

// BenchmarkKeysOfLinks asks what the key of a link costs: of 60 on a page, 40 lead to its
// own site and the others to others.
func BenchmarkKeysOfLinks(b *testing.B) {
	var urls []string
	for i := range 60 {
		site := 12345
		if i%3 == 2 {
			site = 9999999 / (i + 7) % 100_000
		}
		urls = append(urls, fmt.Sprintf("https://www.site%06d.example/section-0012/%08d-of-a-site-and-what.html", site, i))
	}
	var keys crawldb.Keys
	var key []byte
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		key = keys.AppendKey(key[:0], urls[i])
		if i++; i == len(urls) {
			i = 0
		}
	}
}
