package httpproto_test

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/publicsuffix"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// baker sets a cookie with every answer and says in the body which it was sent.
func baker(t *testing.T) httpproto.ConnectTo {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/many":
			for i := range 10_000 {
				w.Header().Add("Set-Cookie", fmt.Sprintf("n%d=1", i))
			}
		case "/big":
			w.Header().Set("Set-Cookie", "big="+strings.Repeat("x", 200<<10))
		case "/wide":
			w.Header().Set("Set-Cookie", "wide=1; Domain=example.com")
		case "/full":
			for i := range 50 {
				w.Header().Add("Set-Cookie", fmt.Sprintf("n%d=%s", i, strings.Repeat("x", 1000)))
			}
		case "/away":
			w.Header().Set("Set-Cookie", "login=1; Path=/")
			w.Header().Set("Location", "http://other.example/")
			w.WriteHeader(302)
		case "/gone":
			w.Header().Set("Set-Cookie", "gone=1; Path=/")
			w.WriteHeader(410)
		}
		if r.Header["Cookie"] != nil {
			fmt.Fprintf(w, "%d:%s", len(r.Header["Cookie"]), r.Header.Get("Cookie"))
		}
	}))
	t.Cleanup(s.Close)
	to, err := httpproto.ParseConnectTo("::" + s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func TestNoCookiesUnlessAsked(t *testing.T) {
	noLeak(t)
	c := newClient(t, httpproto.Options{ConnectTo: []httpproto.ConnectTo{baker(t)}, Limits: httpproto.Limits{MaxHeaderBytes: 1 << 20}})
	for _, path := range []string{"/many", "/big", "/wide", "/full"} {
		for range 2 {
			if r := get(t, c, "http://a.example.com"+path, protocol.Success, 200, ""); len(r.Content.Body) > 0 {
				t.Errorf("%s: sent %q", path, r.Content.Body)
			}
		}
	}
}

func TestCookies(t *testing.T) {
	noLeak(t)
	j := &httpproto.Jar{}
	c := newClient(t, httpproto.Options{ConnectTo: []httpproto.ConnectTo{baker(t)}, Limits: httpproto.Limits{MaxHeaderBytes: 1 << 20}, Jar: j})
	at := func(url, want string) {
		t.Helper()
		r := fetch(t, c, protocol.Request{URL: url})
		if got := string(r.Content.Body); got != want {
			t.Errorf("%s: sent %.80q, want %.80q", url, got, want)
		}
	}
	at("http://a.example.com/wide", "")
	at("http://a.example.com/", "1:wide=1")
	at("http://a.example.com:8080/", "")
	at("http://b.example.com/", "")
	at("http://example.com/", "")

	// What is set along the way to a redirect, or by a page that is gone, counts.
	at("http://site.example/away", "")
	at("http://other.example/", "")
	at("http://site.example/gone", "")
	at("http://site.example/", "1:login=1; gone=1")

	at("http://big.example/big", "")
	at("http://big.example/", "")
	at("http://many.example/many", "")
	r := fetch(t, c, protocol.Request{URL: "http://many.example/"})
	if n := strings.Count(string(r.Content.Body), "="); n != httpproto.MaxCookies {
		t.Errorf("%d cookies sent, want %d", n, httpproto.MaxCookies)
	}
	// What servers take in a header is sent, the older ones first.
	at("http://full.example/full", "")
	r = fetch(t, c, protocol.Request{URL: "http://full.example/"})
	if n := len(r.Content.Body); n < 15<<10 || n > 17<<10 || !strings.HasPrefix(string(r.Content.Body), "1:n0=") {
		t.Errorf("%d bytes of cookies sent: %.20q", n, r.Content.Body)
	}
	if n := j.Count(); n > 3*httpproto.MaxCookieSite {
		t.Errorf("%d bytes in the jar", n)
	}
}

// A jar of another kind may send more.
func TestJarOfTheCaller(t *testing.T) {
	j, err := cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List})
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, httpproto.Options{ConnectTo: []httpproto.ConnectTo{baker(t)}, Jar: j})
	get(t, c, "http://a.example.com/wide", protocol.Success, 200, "")
	if r := get(t, c, "http://b.example.com/", protocol.Success, 200, ""); string(r.Content.Body) != "1:wide=1" {
		t.Errorf("sent %q", r.Content.Body)
	}
	// And it cannot break a header.
	u := &url.URL{Scheme: "http", Host: "c.example.com", Path: "/"}
	c = newClient(t, httpproto.Options{ConnectTo: []httpproto.ConnectTo{baker(t)}, Jar: broken{}})
	if r := get(t, c, u.String(), protocol.Success, 200, ""); string(r.Content.Body) != "1:good=1" {
		t.Errorf("sent %q", r.Content.Body)
	}
}

type broken struct{}

func (broken) SetCookies(*url.URL, []*http.Cookie) {}
func (broken) Cookies(*url.URL) []*http.Cookie {
	return []*http.Cookie{{Name: "bad", Value: "1\r\nX-Injected: 1"}, {Name: "good", Value: "1"}}
}

func TestFixedCookies(t *testing.T) {
	noLeak(t)
	c := newClient(t, httpproto.Options{
		ConnectTo: []httpproto.ConnectTo{baker(t)}, Jar: &httpproto.Jar{},
		Cookies: []httpproto.Cookie{{"http://a.example.com", "wide=0;session=x#y"}, {"http://b.example.com:8080/", "b=1"}},
	})
	for _, k := range [][2]string{
		{"http://a.example.com/wide", "1:wide=0;session=x#y"}, {"http://a.example.com/", "1:wide=0;session=x#y"}, // and not wide=1
		{"http://a.example.com:8080/", ""}, {"http://b.example.com/", ""}, {"http://B.example.com:8080/", "1:b=1"}, {"http://a.example.com./", ""},
	} {
		if r := get(t, c, k[0], protocol.Success, 200, ""); string(r.Content.Body) != k[1] {
			t.Errorf("%s: sent %q, want %q", k[0], r.Content.Body, k[1])
		}
	}
	const secret = "hunter2"
	for name, k := range map[string]httpproto.Cookie{
		"no origin":   {"a.example", secret},
		"a path":      {"http://a.example/x", secret},
		"in origin":   {"http://u:" + secret + "@a.example", "a=1"},
		"empty":       {"http://a.example", ""},
		"line break":  {"http://a.example", secret + "\r\nX: y"},
		"not ASCII":   {"http://a.example", secret + "é"},
		"too long":    {"http://a.example", secret + strings.Repeat("x", 17<<10)},
		"second host": {"http://FIRST.example:80", secret},
	} {
		_, err := httpproto.New(httpproto.Options{Agent: "bot", Cookies: []httpproto.Cookie{{"http://first.example", "a=1"}, k}})
		if err == nil || !strings.Contains(err.Error(), "Cookies[1]") || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: error %v", name, err)
		}
		if s := fmt.Sprintf("%v %+v %#v %s", k, k, k, &k); !strings.Contains(k.Origin, secret) && strings.Contains(s, secret) {
			t.Errorf("%s: prints %s", name, s)
		}
	}
}
