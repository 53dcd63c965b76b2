package main_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
)

// echo answers each page with links to all of them, and notes what it was sent.
func echo(t *testing.T, header string) (connectTo string, sent func() map[string]string) {
	var mu sync.Mutex
	all := map[string]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		all[r.Host+r.URL.Path] = strings.Join(r.Header[header], "|")
		w.Header().Set("Set-Cookie", "seen=1; Path=/")
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<a href=http://a.example/>x</a><a href=http://a.example/x>x</a><a href=http://b.example/>x</a>")
	}))
	t.Cleanup(s.Close)
	return "::" + s.Listener.Addr().String(), func() map[string]string {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(all)
	}
}

func crawlEcho(t *testing.T, connectTo string, flags ...string) []string {
	return append([]string{"crawl", "-d", t.TempDir(), "-agent", "testbot", "-delay", "0", "-connect-to", connectTo, "http://a.example/"}, flags...)
}

func TestLogins(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	file := write(t, "logins", "\ufeff# who we are\n\nhttp://a.example:80 basic u:"+secret+":x y\r\n\thttp://b.example  Bearer\t"+secret+"\nhttp://b.example cookie s="+secret+"\n")
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	to, sent := echo(t, "Authorization")
	r := recrawl(t, crawlEcho(t, to, "-logins", file, "-v")...)
	if r.code != 0 || strings.Contains(r.out+r.err, secret) || strings.Contains(r.err, "mode") {
		t.Errorf("%+v", r)
	}
	for at, want := range map[string]string{"a.example/": "Basic dTpodW50ZXIyOnggeQ==", "a.example/x": "Basic dTpodW50ZXIyOnggeQ==", "b.example/": "Bearer " + secret} {
		if got := sent()[at]; got != want {
			t.Errorf("%s was sent %q, want %q", at, got, want)
		}
	}
	to, sent = echo(t, "Cookie")
	ok(t, crawlEcho(t, to, "-logins", file)...)
	if got := sent(); got["b.example/"] != "s="+secret || got["a.example/x"] != "" {
		t.Errorf("cookies: %v", got)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if r := recrawl(t, crawlEcho(t, to, "-logins", file)...); r.code != 0 || !strings.Contains(r.err, "its mode is 0644") {
		t.Errorf("a file that all may read: %+v", r)
	}
	for line, want := range map[string]string{
		"http://c.example":                             "want ORIGIN basic USER:PASSWORD",
		"http://c.example " + secret:                   "want ORIGIN basic USER:PASSWORD",
		"http://c.example digest u:" + secret:          "want ORIGIN basic USER:PASSWORD",
		"http://c.example basic " + secret:             "want ORIGIN basic USER:PASSWORD",
		"http://c.example basic :" + secret:            "neither a Token nor a User",
		"http://c.example bearer " + secret + " x":     "Token has characters",
		"http://c.example cookie " + secret:            "want ORIGIN basic USER:PASSWORD",
		"http://c.example cookie a=" + secret + "\x01": "Value has characters",
		"c.example basic u:" + secret:                  "Origin is not an http or https scheme",
		"http://u:" + secret + "@c.example basic u:x":  "Origin is not an http or https scheme",
		"http://c.example/x basic u:" + secret:         "Origin is not an http or https scheme",
		"HTTP://A.example basic u:" + secret:           "another login has the same origin",
	} {
		file := write(t, "logins", "http://a.example basic u:"+secret+"\n\n"+line+"\n")
		r := recrawl(t, crawlEcho(t, to, "-logins", file)...)
		if r.code != 2 || !strings.Contains(r.err, file+":3: ") || !strings.Contains(r.err, want) || strings.Contains(r.out+r.err, secret) {
			t.Errorf("%q: %+v, want %q", line, r, want)
		}
	}
}

func TestCookiesFlag(t *testing.T) {
	t.Parallel()
	to, sent := echo(t, "Cookie")
	ok(t, crawlEcho(t, to)...)
	for at, got := range sent() {
		if got != "" {
			t.Errorf("without -cookies %s was sent %q", at, got)
		}
	}
	ok(t, crawlEcho(t, to, "-cookies")...)
	if got := sent(); got["a.example/x"] != "seen=1" || got["b.example/"] != "" {
		t.Errorf("with -cookies: %v", got)
	}
}

func TestContact(t *testing.T) {
	t.Parallel()
	for contact, want := range map[string]string{"https://example.com/bot": "testbot (+https://example.com/bot)", "bot@example.com": "testbot (bot@example.com)"} {
		to, sent := echo(t, "User-Agent")
		ok(t, crawlEcho(t, to, "-contact", contact)...)
		if got := sent()["a.example/"]; got != want {
			t.Errorf("User-Agent %q, want %q", got, want)
		}
	}
	to, sent := echo(t, "From")
	ok(t, crawlEcho(t, to, "-contact", "bot@example.com")...)
	if got := sent()["a.example/"]; got != "bot@example.com" {
		t.Errorf("From %q", got)
	}
	// With a configuration, it goes before what that has.
	dir := confOf(t, "", "+.\n")
	to, sent = echo(t, "User-Agent")
	ok(t, crawlEcho(t, to, "-conf", dir, "-contact", "https://example.com/bot")...)
	if got := sent()["a.example/"]; !strings.HasPrefix(got, "testbot/") || !strings.Contains(got, "https://example.com/bot") {
		t.Errorf("with -conf: User-Agent %q", got)
	}
	for _, bad := range []string{"", "nobody", "ftp://example.com/", "a@b@c", "a b@c", "@c"} {
		if r := recrawl(t, crawlEcho(t, to, "-contact", bad)...); r.code != 2 || !strings.Contains(r.err, "-contact") {
			t.Errorf("-contact %q: %+v", bad, r)
		}
	}
	// A crawl of other people's servers is asked to name a contact. No connection is made: all
	// addresses are denied.
	anonymous := []string{"crawl", "-d", t.TempDir(), "-agent", "testbot", "-delay", "0", "-deny-network", "0.0.0.0/0", "-deny-network", "::/0", "http://192.0.2.1/"}
	const told = "requests name no page and no mailbox"
	if r := recrawl(t, anonymous...); !strings.Contains(r.err, told) || !strings.Contains(r.err, "address: denied") {
		t.Errorf("%+v", r)
	}
	if r := recrawl(t, append(anonymous, "-contact", "bot@example.com")...); strings.Contains(r.err, told) {
		t.Errorf("%+v", r)
	}
}

func TestPortsAndNetworks(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	at := []string{"crawl", "-d", t.TempDir(), "-agent", "testbot", "-delay", "0", s.URL + "/"}
	for _, k := range []struct {
		flags []string
		want  string
	}{
		{nil, "1 refused: address: loopback; -allow-private allows"},
		{[]string{"-allow-network", "127.0.0.1"}, "not_found"},
		{[]string{"-allow-network", "127.0.0.0/8", "-deny-network", "127.0.0.0/30"}, "address: denied\n"},
		{[]string{"http://127.0.0.1:25/"}, "url: port 25 is that of another protocol; -allow-port allows it"},
		{[]string{"http://127.0.0.1:25/", "-allow-port", "25"}, "2 refused: address: loopback"},
	} {
		at[2] = t.TempDir()
		if r := recrawl(t, append(at, k.flags...)...); (r.code == 0) != (k.want == "not_found") || !strings.Contains(r.out+r.err, k.want) {
			t.Errorf("%v: %+v, want %q", k.flags, r, k.want)
		}
	}
	// With the suggested flag there is no wait.
	at[2] = t.TempDir()
	if r := recrawl(t, at...); !strings.Contains(r.err, "-allow-private") || !strings.Contains(r.err, "-adddays 90") {
		t.Errorf("%+v", r)
	}
	if r := recrawl(t, append(at[:len(at)-1:len(at)-1], "-allow-private", "-adddays", "90")...); r.code != 0 || !strings.Contains(r.out, "not_found") {
		t.Errorf("as the flag says: %+v", r)
	}
	for _, flags := range [][]string{{"-allow-network", "nowhere"}, {"-allow-network", "10.0.0.0/33"}, {"-deny-network", "fe80::1%eth0"}, {"-allow-port", "0"}, {"-allow-port", "65536"}, {"-allow-port", "smtp"}, {"-logins", ""}, {"-logins", "/nowhere"}} {
		if r := recrawl(t, append(at, flags...)...); r.code != 2 || !strings.Contains(r.err, flags[0]) {
			t.Errorf("%v: %+v", flags, r)
		}
	}
}

// A failure names what is wrong with the server's certificate.
func TestTrustsTheNamedAuthority(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	own := write(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	for _, k := range []struct{ host, ca, want string }{
		{"example.com", own, "not_found"},
		{"other.test", own, "1 robots_failed: robots.txt is unavailable: tls: certificate is for another name"},
		{"example.com", "", "1 robots_failed: robots.txt is unavailable: tls: certificate of an unknown authority"},
	} {
		args := []string{"crawl", "-d", t.TempDir(), "-agent", "testbot", "-delay", "0", "-rounds", "1", "-connect-to", "::" + s.Listener.Addr().String(), "https://" + k.host + "/"}
		if k.ca != "" {
			args = append(args, "-cacert", k.ca)
		}
		if r := recrawl(t, args...); r.code != 0 || !strings.Contains(r.out+r.err, k.want) {
			t.Errorf("%+v: %+v", k, r)
		}
	}
}
