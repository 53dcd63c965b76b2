package httpproto_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// setCookies has a jar take the Set-Cookie lines of an answer from a URL.
func setCookies(t testing.TB, j http.CookieJar, from string, lines ...string) {
	t.Helper()
	u, err := url.Parse(from)
	if err != nil {
		t.Fatal(err)
	}
	j.SetCookies(u, (&http.Response{Header: http.Header{"Set-Cookie": lines}}).Cookies())
}

// sent returns the cookies of a jar for a URL as they are sent.
func sent(t testing.TB, j http.CookieJar, to string) string {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	r := &http.Request{Header: http.Header{}}
	for _, c := range j.Cookies(u) {
		r.AddCookie(c)
	}
	return r.Header.Get("Cookie")
}

// TestJar has what an answer sets, and what then goes where, a row.
func TestJar(t *testing.T) {
	long := strings.Repeat("x", 4<<10)
	for name, k := range map[string]struct {
		from string
		set  []string
		to   map[string]string
	}{
		"plain": {"http://a.example/", []string{"a=1"}, map[string]string{
			"http://a.example/": "a=1", "http://A.example:80/x?y": "a=1", "https://a.example/": "", "http://a.example:8080/": "",
			"http://b.example/": "", "http://x.a.example/": "", "http://example/": "", "http://a.example./": "", "http://aa.example/": "",
		}},
		"another port":       {"http://a.example:8080/", []string{"a=1"}, map[string]string{"http://a.example:8080/": "a=1", "http://a.example/": ""}},
		"https":              {"https://a.example/", []string{"a=1"}, map[string]string{"https://a.example:443/": "a=1", "http://a.example/": "", "https://a.example:444/": ""}},
		"domain is the host": {"http://a.example/", []string{"a=1; Domain=A.Example"}, map[string]string{"http://a.example/": "a=1", "http://x.a.example/": ""}},
		"domain with a dot":  {"http://a.example/", []string{"a=1; Domain=.a.example"}, map[string]string{"http://a.example/": "a=1", "http://x.a.example/": ""}},
		"wider domain": {"http://x.a.com/", []string{"a=1; Domain=a.com"}, map[string]string{
			"http://x.a.com/": "a=1", "http://a.com/": "", "http://y.a.com/": "", "http://y.x.a.com/": "",
		}},
		"narrower domain":   {"http://a.com/", []string{"a=1; Domain=x.a.com"}, map[string]string{"http://a.com/": "", "http://x.a.com/": ""}},
		"another domain":    {"http://a.com/", []string{"a=1; Domain=b.com"}, map[string]string{"http://a.com/": "", "http://b.com/": ""}},
		"part of a label":   {"http://xa.com/", []string{"a=1; Domain=a.com"}, map[string]string{"http://xa.com/": "", "http://a.com/": ""}},
		"top level":         {"http://a.com/", []string{"a=1; Domain=com", "b=1; Domain=.com", "c=1; Domain=com."}, map[string]string{"http://a.com/": ""}},
		"public suffix":     {"http://a.co.uk/", []string{"a=1; Domain=co.uk", "b=1; Domain=uk"}, map[string]string{"http://a.co.uk/": ""}},
		"private suffix":    {"http://a.github.io/", []string{"a=1; Domain=github.io"}, map[string]string{"http://a.github.io/": "", "http://b.github.io/": ""}},
		"wildcard suffix":   {"http://a.b.ck/", []string{"a=1; Domain=b.ck"}, map[string]string{"http://a.b.ck/": ""}},
		"excepted suffix":   {"http://x.www.ck/", []string{"a=1; Domain=www.ck"}, map[string]string{"http://x.www.ck/": "a=1"}},
		"host is a suffix":  {"http://github.io/", []string{"a=1; Domain=github.io"}, map[string]string{"http://github.io/": "a=1", "http://a.github.io/": ""}},
		"unknown suffix":    {"http://a.intern/", []string{"a=1; Domain=intern"}, map[string]string{"http://a.intern/": ""}},
		"single label":      {"http://wiki/", []string{"a=1", "b=1; Domain=wiki"}, map[string]string{"http://wiki/": "a=1; b=1"}},
		"IPv4":              {"http://192.0.2.1/", []string{"a=1", "b=1; Domain=192.0.2.1", "c=1; Domain=0.2.1", "d=1; Domain=2.1"}, map[string]string{"http://192.0.2.1/": "a=1; b=1", "http://192.0.2.2/": ""}},
		"IPv6":              {"http://[2001:db8::1]/", []string{"a=1", "b=1; Domain=db8::1"}, map[string]string{"http://[2001:db8::1]:80/": "a=1", "http://[2001:db8::2]/": ""}},
		"path":              {"http://a.example/", []string{"a=1; Path=/x"}, map[string]string{"http://a.example/x": "a=1", "http://a.example/x/y": "a=1", "http://a.example/xy": "", "http://a.example/": ""}},
		"path with a slash": {"http://a.example/", []string{"a=1; Path=/x/"}, map[string]string{"http://a.example/x": "", "http://a.example/x/y": "a=1"}},
		"default path": {"http://a.example/x/y/z?q=/r/", []string{"a=1", "b=1; Path=nonsense"}, map[string]string{
			"http://a.example/x/y/": "a=1; b=1", "http://a.example/x/y": "a=1; b=1", "http://a.example/x/": "", "http://a.example/x/yy": "",
		}},
		"default path of the root": {"http://a.example/x", []string{"a=1"}, map[string]string{"http://a.example": "a=1", "http://a.example/y": "a=1"}},
		"escaped path":             {"http://a.example/x%2Fy/z", []string{"a=1"}, map[string]string{"http://a.example/x%2Fy/": "a=1", "http://a.example/x/y/": ""}},
		"order":                    {"http://a.example/x/", []string{"a=1; Path=/", "b=1; Path=/x", "c=1; Path=/", "d=1; Path=/x/"}, map[string]string{"http://a.example/x/": "d=1; b=1; a=1; c=1"}},
		"again":                    {"http://a.example/", []string{"a=1", "b=1", "a=2"}, map[string]string{"http://a.example/": "a=2; b=1"}},
		"of another path":          {"http://a.example/", []string{"a=1; Path=/", "a=2; Path=/x"}, map[string]string{"http://a.example/": "a=1", "http://a.example/x": "a=2; a=1"}},
		"taken away":               {"http://a.example/", []string{"a=1", "b=1", "a=; Max-Age=0"}, map[string]string{"http://a.example/": "b=1"}},
		"expired":                  {"http://a.example/", []string{"a=1", "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"}, map[string]string{"http://a.example/": ""}},
		"negative age":             {"http://a.example/", []string{"a=1; Max-Age=-5"}, map[string]string{"http://a.example/": ""}},
		"age before date":          {"http://a.example/", []string{"a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "b=1; Max-Age=0; Expires=Fri, 31 Dec 9999 23:59:59 GMT"}, map[string]string{"http://a.example/": "a=1"}},
		"age of nonsense":          {"http://a.example/", []string{"a=1; Max-Age=soon", "b=1; Max-Age=99999999999999999999"}, map[string]string{"http://a.example/": "a=1; b=1"}},
		"secure over http":         {"http://a.example/", []string{"a=1; Secure"}, map[string]string{"http://a.example/": "", "https://a.example/": ""}},
		"secure":                   {"https://a.example/", []string{"a=1; Secure; HttpOnly; SameSite=Strict"}, map[string]string{"https://a.example/": "a=1", "http://a.example/": ""}},
		"__Secure-":                {"https://a.example/", []string{"__Secure-a=1", "__secure-b=1; Secure", "__SECURE-c=1"}, map[string]string{"https://a.example/": "__secure-b=1"}},
		"__Host-": {"https://x.a.com/y/", []string{
			"__Host-a=1; Secure; Path=/", "__Host-b=1; Path=/", "__Host-c=1; Secure", "__Host-d=1; Secure; Path=/y", "__host-e=1; Secure; Path=/; Domain=x.a.com",
			"__HOST-f=1; Secure; Path=/; Domain=a.com", "__Host-g=1; Secure; Path=/",
		}, map[string]string{"https://x.a.com/y/": "__Host-a=1; __Host-g=1"}},
		"__Host- over http": {"http://a.com/", []string{"__Host-a=1; Path=/; Secure", "__Host-b=1; Path=/", "__Secure-c=1; Secure"}, map[string]string{"http://a.com/": "", "https://a.com/": ""}},
		"quoted":            {"http://a.example/", []string{`a="x y"`, `b="`}, map[string]string{"http://a.example/": `a="x y"`}},
		"empty value":       {"http://a.example/", []string{"a="}, map[string]string{"http://a.example/": "a="}},
		"no name":           {"http://a.example/", []string{"=1", "a", "", ";", "; a=1"}, map[string]string{"http://a.example/": ""}},
		"broken":            {"http://a.example/", []string{"a=\x00", "b=\r\nX: y", "c d=1", "e=\xff", "f=1\x7f"}, map[string]string{"http://a.example/": ""}},
		"4 KiB":             {"http://a.example/", []string{"a=" + long[1:]}, map[string]string{"http://a.example/": "a=" + long[1:]}},
		"more":              {"http://a.example/", []string{"a=" + long, "b=" + long + long, long + "=1"}, map[string]string{"http://a.example/": ""}},
		"long path":         {"http://a.example/x/", []string{"a=1; Path=/" + long}, map[string]string{"http://a.example/x/": "a=1"}},
		"another scheme":    {"ftp://a.example/", []string{"a=1"}, map[string]string{"ftp://a.example/": "", "http://a.example/": ""}},
	} {
		j := &httpproto.Jar{}
		setCookies(t, j, k.from, k.set...)
		for to, want := range k.to {
			if got := sent(t, j, to); got != want {
				t.Errorf("%s: to %s %.100q, want %.100q", name, to, got, want)
			}
		}
	}
}

func TestJarForgetsWithTime(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	j := &httpproto.Jar{Now: func() time.Time { return now }}
	const site = "https://a.example/"
	setCookies(t, j, site, "a=1; Max-Age=60", "b=1; Expires=Fri, 01 May 2026 12:02:00 GMT", "c=1", "d=1; Max-Age=999999999")
	for _, k := range []struct {
		after time.Duration
		want  string
	}{
		{0, "a=1; b=1; c=1; d=1"}, {59 * time.Second, "a=1; b=1; c=1; d=1"}, {time.Second, "b=1; c=1; d=1"}, {time.Minute, "c=1; d=1"},
		{399 * 24 * time.Hour, "c=1; d=1"}, {24 * time.Hour, ""},
	} {
		if now = now.Add(k.after); sent(t, j, site) != k.want {
			t.Errorf("at %v: %q, want %q", now, sent(t, j, site), k.want)
		}
	}
	if setCookies(t, j, site, "e=1"); j.Count() > 1000 {
		t.Errorf("%d bytes: what has expired is still there", j.Count())
	}
}

// The 51st cookie of a host takes the place of that which was used least lately,
// whichever port set it.
func TestJarBoundsAHost(t *testing.T) {
	j := &httpproto.Jar{}
	setCookies(t, j, "http://a.example:8080/", "kept=1; Path=/", "lost=1; Path=/x")
	for i := range 60 {
		setCookies(t, j, "http://a.example/", fmt.Sprintf("n%d=1", i))
		if got := sent(t, j, "http://a.example:8080/"); got != "kept=1" {
			t.Fatalf("after %d cookies: %q", i+1, got)
		}
	}
	if got := strings.Count(sent(t, j, "http://a.example/"), "="); got != httpproto.MaxCookies-1 {
		t.Errorf("%d cookies, want %d", got, httpproto.MaxCookies-1)
	}
	if got := sent(t, j, "http://a.example:8080/x"); got != "kept=1" {
		t.Errorf("%q", got)
	}
}

// A domain has its share of the jar, and all domains have all of it, however many
// hosts they have.
func TestJarBoundsDomainsAndAll(t *testing.T) {
	testlevel.SkipInRace(t)
	j := &httpproto.Jar{}
	const honest = "https://honest.example/"
	setCookies(t, j, honest, "a=1")
	value := strings.Repeat("x", 4000)
	for i := range 200 {
		for k := range 3 {
			setCookies(t, j, fmt.Sprintf("http://n%d.evil.test/", i), fmt.Sprintf("n%d=%s", k, value))
		}
		if n := j.Count(); n > httpproto.MaxCookieSite+1000 {
			t.Fatalf("%d bytes for one domain", n)
		}
	}
	if got := sent(t, j, honest); got != "a=1" {
		t.Errorf("another domain crowded it out: %q", got)
	}
	for i := range 10_000 {
		setCookies(t, j, fmt.Sprintf("http://n%d.test/", i), "n="+value, "m="+value)
		if n := j.Count(); n > httpproto.MaxCookieJar {
			t.Fatalf("%d bytes in all", n)
		}
		if i%1000 == 0 && sent(t, j, honest) != "a=1" {
			t.Fatalf("after %d domains: a cookie that is used is gone", i)
		}
	}
	if got := sent(t, j, "http://n1.test/"); got != "" {
		t.Error("the domain that went unused for longest is still there")
	}
}
