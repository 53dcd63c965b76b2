package hostdb_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/hostdb"
)

func TestBy(t *testing.T) {
	for _, test := range []struct{ url, host, domain string }{
		{"http://www.example.com/", "www.example.com", "example.com"},
		{"http://www.example.com.:8080/", "www.example.com", "example.com"},
		{"HTTP://WWW.EXAMPLE.COM/", "www.example.com", "example.com"},
		{"http://user:pw@a.b.example.co.uk/", "a.b.example.co.uk", "example.co.uk"},
		{"http://co.uk/", "co.uk", "co.uk"},
		{"http://uk/", "uk", "uk"},
		{"http://localhost:8080/", "localhost", "localhost"},
		{"http://a.github.io/", "a.github.io", "github.io"},
		{"http://b.a.github.io/", "b.a.github.io", "github.io"},
		{"http://a.b.nosuchtld/", "a.b.nosuchtld", "b.nosuchtld"},
		{"http://192.0.2.1/", "192.0.2.1", "192.0.2.1"},
		{"http://[2001:db8::1]:80/", "[2001:db8::1]", "[2001:db8::1]"},
		{"http://www.xn--bcher-kva.example/", "www.xn--bcher-kva.example", "xn--bcher-kva.example"},
		{"http://a..b/", "a..b", "a..b"},
		{"http://wiki.a.corp/", "wiki.a.corp", "a.corp"},
		{"http://b.corp/", "b.corp", "b.corp"},
		{"http://.a.b.corp/", ".a.b.corp", ".a.b.corp"},
		{"http://a.b.1.2/", "a.b.1.2", "a.b.1.2"},
		{"http://./", "", ""},
		{"http://.example.com/", ".example.com", ".example.com"},
		{"mailto:a@example.com", "", ""},
		{"", "", ""},
	} {
		if got := hostdb.ByHost.Key(test.url); got != test.host {
			t.Errorf("ByHost.Key(%q) = %q, want %q", test.url, got, test.host)
		}
		if got := hostdb.ByDomain.Key(test.url); got != test.domain {
			t.Errorf("ByDomain.Key(%q) = %q, want %q", test.url, got, test.domain)
		}
		if got := hostdb.ByDomain.NutchKey(test.url); got != hostdb.Domain(test.host) {
			t.Errorf("ByDomain.NutchKey(%q) = %q, want %q", test.url, got, hostdb.Domain(test.host))
		}
	}
	for word, want := range map[string]hostdb.By{"byHost": hostdb.ByHost, "DOMAIN": hostdb.ByDomain, "byIP": hostdb.ByIP, "ip": hostdb.ByIP} {
		if got, err := hostdb.ParseBy(word); got != want || err != nil {
			t.Errorf("ParseBy(%q) = %v, %v", word, got, err)
		}
		if got, err := hostdb.ParseBy(want.String()); got != want || err != nil {
			t.Errorf("%v is not what it says", want)
		}
	}
	if _, err := hostdb.ParseBy("by"); err == nil {
		t.Error("ParseBy takes half a word")
	}
	if (hostdb.By(0)) != hostdb.ByHost {
		t.Error("the zero By is not ByHost")
	}
}

func FuzzBy(f *testing.F) {
	f.Add("http://www.example.co.uk/")
	f.Add("http://[::1]/")
	f.Add("http://a..b./")
	f.Add("http://\xff.EXAMPLE./")
	f.Add("http://0x7f.1/")
	f.Add("http://B%C3%BCcher.example。com/")
	f.Fuzz(func(t *testing.T, url string) {
		host := hostdb.ByHost.Key(url)
		if ip := hostdb.ByIP.Key(url); ip != host {
			t.Fatalf("%q has host %q, and %q by address", url, host, ip)
		}
		if again := hostdb.ByHost.Key("http://" + host + "/"); host != "" && !strings.ContainsAny(host, "/?#\\@:%") && again != host {
			t.Fatalf("%q has host %q, which has host %q", url, host, again)
		}
		domain := hostdb.ByDomain.Key(url)
		if (host == "") != (domain == "") {
			t.Fatalf("%q has host %q and domain %q", url, host, domain)
		}
		if got := hostdb.Domain(domain); got != domain {
			t.Fatalf("the domain of domain %q is %q", domain, got)
		}
		if again := hostdb.ByDomain.Key("http://" + domain + "/"); domain != "" && !strings.ContainsAny(domain, "/?#\\@:%") && again != domain {
			t.Fatalf("%q has domain %q, which has domain %q", url, domain, again)
		}
	})
}

// Each row is one host, however it is spelled.
func TestSpellingsOfKeyAreOneHost(t *testing.T) {
	for want, urls := range map[string][]string{
		"example.com": {
			"http://example.com/", "https://example.com/", "HTTP://EXAMPLE.COM/", "http://Example.Com.:80/", "http://example.com:8080",
			"http://user@example.com/", "http://u:p%40@example.com.?q", "http://a@b@example.com#f", "http://ｅｘａｍｐｌｅ.com/", "http://example。com/", "http://%ef%bd%85xample.com/",
		},
		"xn--bcher-kva.example": {
			"http://bücher.example/", "http://BÜCHER.example/", "http://bu\u0308cher.example/", "http://xn--bcher-kva.example/", "http://XN--BCHER-KVA.EXAMPLE./",
			"http://b%C3%BCcher.example/", "http://b%c3%bccher%2eexample/",
		},
		"xn--strae-oqa.example": {"http://straße.example/", "http://STRAẞE.example/", "http://xn--strae-oqa.example"},
		"xn----eha.example":     {"http://-ü.example/", "http://xn----eha.example"},
		"ü.xn--":                {"http://ü.xn--/"}, // not xn--tda
		"192.0.2.1": {
			"http://192.0.2.1/", "http://192.0.2.1.:81/", "http://[::ffff:192.0.2.1]/", "http://[::FFFF:C000:201]:8080/", "http://[0:0:0:0:0:ffff:c000:0201]/",
			"http://0xc0.0.2.1/", "http://0300.0.02.01/", "http://192.0.513/", "http://3221225985/", "http://0xC0000201/", "http://192.513", "http://１９２.0.2.1/",
		},
		"[2001:db8::1]": {"http://[2001:db8::1]/", "http://[2001:DB8:0:0:0:0:0:1]:80/", "https://[2001:0db8::0001]/", "http://[2001:db8::1%25eth0]/", "http://u@[2001:db8::0.0.0.1]/"},
		"0.0.0.0":       {"http://0/", "http://0x/", "http://0.0x.0"},
	} {
		for _, url := range urls {
			if got := hostdb.ByHost.Key(url); got != want {
				t.Errorf("ByHost.Key(%q) = %q, want %q", url, got, want)
			}
		}
	}
	// What looks like one, but is not.
	for _, host := range []string{"1.2.3.4.5", "1.2.3.256", "256.1", "1..2", "09", "0x100000000", "1.2.3.4a", "a_b.example", "[::1", "[x]", "xn--.example"} {
		if got := hostdb.ByHost.Key("http://" + host + "/"); got != host && !strings.HasPrefix(host, "[") {
			t.Errorf("the key of %q is %q", host, got)
		}
	}
	for addr, want := range map[string]string{"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "fe80::1%eth0": "[fe80::1]"} {
		if got := hostdb.AddrKey(netip.MustParseAddr(addr)); got != want {
			t.Errorf("the key of %s is %q, want %q", addr, got, want)
		}
	}
}
