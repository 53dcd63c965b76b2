package httpproto_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// A login is sent to its exact origin: not to another scheme, port, subdomain or
// look-alike of its host, and not along a redirect.
func TestLoginsStayWithTheirOrigin(t *testing.T) {
	noLeak(t)
	handle := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "https://evil.example/", http.StatusFound)
			return
		}
		user, password, _ := r.BasicAuth()
		fmt.Fprintf(w, "%s|%s|%s", r.Header.Get("Authorization"), user, password)
	})
	plain, secure := httptest.NewServer(handle), httptest.NewTLSServer(handle)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	to := func(port uint16, s *httptest.Server) httpproto.ConnectTo {
		at := netip.MustParseAddrPort(s.Listener.Addr().String())
		return httpproto.ConnectTo{Port: port, ToHost: at.Addr().String(), ToPort: at.Port()}
	}
	c := newClient(t, httpproto.Options{
		InsecureSkipVerify: true,
		ConnectTo:          []httpproto.ConnectTo{to(80, plain), to(8080, plain), to(443, secure), to(8443, secure)},
		Logins: []httpproto.Login{
			{Origin: "https://Example.com", User: "Aladdin", Password: "open:sésame"},
			{Origin: "http://plain.example:8080/", User: "u"},
			{Origin: "https://token.example:8443", Token: "abc.DEF-1=="},
			{Origin: "http://[2001:db8::1]", Token: "six"},
		},
	})
	for url, want := range map[string]string{
		"https://example.com/":            "Basic QWxhZGRpbjpvcGVuOnPDqXNhbWU=|Aladdin|open:sésame",
		"https://EXAMPLE.com:443/a?b":     "Basic QWxhZGRpbjpvcGVuOnPDqXNhbWU=|Aladdin|open:sésame",
		"http://plain.example:8080/":      "Basic dTo=|u|",
		"https://token.example:8443/":     "Bearer abc.DEF-1==||",
		"http://[2001:db8::1]:80/":        "Bearer six||",
		"http://example.com/":             "||",
		"http://example.com:8080/":        "||",
		"https://example.com:8443/":       "||",
		"https://www.example.com/":        "||",
		"https://example.com.evil.test/":  "||",
		"https://example.com./":           "||",
		"https://evil.test/?example.com":  "||",
		"http://plain.example/":           "||",
		"https://plain.example:8443/":     "||",
		"https://token.example/":          "||",
		"http://[2001:db8::1]:8080/":      "||",
		"https://[2001:db8::1]/":          "||",
		"https://xn--exmple-cua.com/":     "||",
		"http://evil.test:8080/#@plain.e": "||",
	} {
		if r := get(t, c, url, protocol.Success, 200, ""); string(r.Content.Body) != want {
			t.Errorf("%s: sent %q, want %q", url, r.Content.Body, want)
		}
	}
	r := get(t, c, "https://example.com/away", protocol.MovedTemp, 302, "")
	if r := get(t, c, r.Outcome.Location, protocol.Success, 200, ""); string(r.Content.Body) != "||" {
		t.Errorf("behind a redirect: sent %q", r.Content.Body)
	}
}

func TestBrokenLogins(t *testing.T) {
	const secret = "hunter2"
	for name, l := range map[string]httpproto.Login{
		"no origin":       {User: "u", Password: secret},
		"no scheme":       {Origin: "example.com", User: "u", Password: secret},
		"another scheme":  {Origin: "ftp://example.com", User: "u", Password: secret},
		"a path":          {Origin: "http://example.com/wiki", User: "u", Password: secret},
		"a query":         {Origin: "http://example.com?" + secret, User: "u", Password: secret},
		"user in origin":  {Origin: "http://u:" + secret + "@example.com", User: "u"},
		"nobody":          {Origin: "http://example.com"},
		"password only":   {Origin: "http://example.com", Password: secret},
		"colon in user":   {Origin: "http://example.com", User: "u:v", Password: secret},
		"line break":      {Origin: "http://example.com", User: "u", Password: secret + "\r\nX: y"},
		"token and user":  {Origin: "http://example.com", User: "u", Token: secret},
		"token of two":    {Origin: "http://example.com", Token: secret + " x"},
		"token with line": {Origin: "http://example.com", Token: secret + "\n"},
		"again":           {Origin: "HTTP://first.example:80", User: "u", Password: secret},
	} {
		_, err := httpproto.New(httpproto.Options{Agent: "bot", Logins: []httpproto.Login{{Origin: "http://first.example", Token: "t"}, l}})
		if err == nil || !strings.Contains(err.Error(), "Logins[1]") || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: error %v", name, err)
		}
		if s := fmt.Sprintf("%v %+v %#v %s", l, l, l, &l); !strings.Contains(l.Origin, secret) && strings.Contains(s, secret) {
			t.Errorf("%s: prints %s", name, s)
		}
	}
}

// A redirect to a URL with a password in it is no way to have it sent.
func TestUserInformationIsNotSent(t *testing.T) {
	c := newClient(t, httpproto.Options{Resolver: func(context.Context, string, string) ([]netip.Addr, error) {
		t.Error("looked up")
		return nil, nil
	}})
	u := url.URL{Scheme: "http", Host: "example.com", User: url.UserPassword("u", "p")}
	get(t, c, u.String(), protocol.Refused, 0, "url: has user information")
}
