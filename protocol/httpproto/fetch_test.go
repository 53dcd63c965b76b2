package httpproto_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

func TestNewWantsAnAgent(t *testing.T) {
	for name, o := range map[string]httpproto.Options{
		"Agent":          {},
		"Agent ":         {Agent: "bot\r\nX: y"},
		"Agent  ":        {Agent: " bot"},
		"Version":        {Agent: "bot", Version: "1\x00"},
		"AgentURL":       {Agent: "bot", AgentURL: "http://ex\nample"},
		"AgentEmail":     {Agent: "bot", AgentEmail: "é@example.com"},
		"UserAgent":      {Agent: "bot", UserAgent: "bot\n"},
		"Accept":         {Agent: "bot", Accept: "a\tb"},
		"AcceptLanguage": {Agent: "bot", AcceptLanguage: "\n"},
		"From":           {Agent: "bot", From: "a@bot.example\r\nX: y"},
		"ConnectTo[1]":   {Agent: "bot", ConnectTo: []httpproto.ConnectTo{{}, {Host: "a b"}}},
		"MaxHeaderBytes": {Agent: "bot", Limits: httpproto.Limits{MaxHeaderBytes: -1}},
		"RoundTripper":   {Agent: "bot", RoundTripper: func(http.RoundTripper) http.RoundTripper { return nil }},
	} {
		if _, err := httpproto.New(o); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(name)) {
			t.Errorf("%+v: error %v does not name %s", o, err, name)
		}
	}
}

func TestRequestIsHonest(t *testing.T) {
	noLeak(t)
	var got *http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { got = r }))
	t.Cleanup(s.Close)
	for _, c := range []struct {
		o    httpproto.Options
		want string
	}{
		{httpproto.Options{Agent: "bot"}, "bot"},
		{httpproto.Options{Agent: "bot", Version: "1.2"}, "bot/1.2"},
		{httpproto.Options{Agent: "bot", AgentURL: "https://bot.example"}, "bot (+https://bot.example)"},
		{httpproto.Options{Agent: "bot", AgentEmail: "a@bot.example"}, "bot (a@bot.example)"},
		{httpproto.Options{Agent: "bot", Version: "1", AgentURL: "https://bot.example", AgentEmail: "a@bot.example"}, "bot/1 (+https://bot.example; a@bot.example)"},
		{httpproto.Options{Agent: "bot", Version: "1", UserAgent: "bot/1 (a test; https://bot.example)"}, "bot/1 (a test; https://bot.example)"},
	} {
		fetch(t, newClient(t, c.o), protocol.Request{URL: s.URL + "/a?b#c"})
		if ua := got.UserAgent(); ua != c.want {
			t.Errorf("User-Agent %q, want %q", ua, c.want)
		}
	}
	want := http.Header{
		"User-Agent": {"bot"}, "From": {"a@bot.example"}, "Accept": {"text/plain"}, "Accept-Language": {"de"}, "Accept-Encoding": {"gzip, deflate, zstd"},
		"If-None-Match": {`"x"`}, "If-Modified-Since": {"yesterday"}, "Connection": {"keep-alive"},
	}
	c := newClient(t, httpproto.Options{AcceptLanguage: "de", From: "a@bot.example"})
	fetch(t, c, protocol.Request{URL: s.URL + "/a?b#c", Accept: "text/plain", ETag: `"x"`, LastModified: "yesterday"})
	if fmt.Sprint(got.Header) != fmt.Sprint(want) || got.RequestURI != "/a?b" || got.Method != "GET" {
		t.Errorf("%s %s %v, want GET /a?b %v", got.Method, got.RequestURI, got.Header, want)
	}
}

func TestAnonymous(t *testing.T) {
	for _, k := range []struct {
		o    httpproto.Options
		want bool
	}{
		{httpproto.Options{}, true},
		{httpproto.Options{Version: "1.2"}, true},
		{httpproto.Options{UserAgent: "bot/1 (like the others)"}, true},
		{httpproto.Options{UserAgent: "bot (+https://bot.example)"}, false},
		{httpproto.Options{UserAgent: "bot (a at bot.example)"}, false},
		{httpproto.Options{AgentURL: "www.bot.example"}, false},
		{httpproto.Options{AgentEmail: "a@bot.example"}, false},
		{httpproto.Options{From: "a@bot.example"}, false},
	} {
		if got := newClient(t, k.o).Anonymous(); got != k.want {
			t.Errorf("%+v: %v, want %v", k.o, got, k.want)
		}
	}
}

// A request says Host as the URL does: in ASCII and without the port that the
// scheme has anyway, and what it says besides is five headers.
func TestRequestOnTheWire(t *testing.T) {
	noLeak(t)
	s := serveRaw(t, func(nc net.Conn) {
		in := bufio.NewReader(nc)
		for {
			var lines []string
			for {
				l, err := in.ReadString('\n')
				if err != nil {
					return
				}
				if l == "\r\n" {
					break
				}
				lines = append(lines, strings.TrimSuffix(l, "\r\n"))
			}
			body := strings.Join(lines, "|")
			fmt.Fprintf(nc, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}
	})
	c := newClient(t, httpproto.Options{ConnectTo: []httpproto.ConnectTo{loopback(t, s)}})
	for url, want := range map[string]string{
		"http://name.example":             "GET / HTTP/1.1|Host: name.example",
		"http://NAME.Example/A?b=C#d":     "GET /A?b=C HTTP/1.1|Host: name.example",
		"http://name.example:80/":         "GET / HTTP/1.1|Host: name.example",
		"http://name.example:8080/":       "GET / HTTP/1.1|Host: name.example:8080",
		"http://name.example:443/":        "GET / HTTP/1.1|Host: name.example:443",
		"http://name.example:/":           "GET / HTTP/1.1|Host: name.example",
		"http://name.example./":           "GET / HTTP/1.1|Host: name.example.",
		"http://bücher.example/":          "GET / HTTP/1.1|Host: xn--bcher-kva.example",
		"http://BÜCHER.example:8080/":     "GET / HTTP/1.1|Host: xn--bcher-kva.example:8080",
		"http://192.0.2.1:8080/":          "GET / HTTP/1.1|Host: 192.0.2.1:8080",
		"http://[2001:DB8::1]/":           "GET / HTTP/1.1|Host: [2001:db8::1]",
		"http://１９２.0.2.1/":               "GET / HTTP/1.1|Host: 192.0.2.1",
		"http://[2001:db8:0::0:1]:080/":   "GET / HTTP/1.1|Host: [2001:db8::1]",
		"http://straße.example/":          "GET / HTTP/1.1|Host: xn--strae-oqa.example",
		"http://a_b.example/":             "GET / HTTP/1.1|Host: a_b.example",
		"http://[2001:db8::1]:8080/":      "GET / HTTP/1.1|Host: [2001:db8::1]:8080",
		"http://name.example//../%0d%0a?": "GET //../%0d%0a? HTTP/1.1|Host: name.example",
	} {
		want += "|User-Agent: bot|Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8|Accept-Encoding: gzip, deflate, zstd|Accept-Language: en-us,en-gb,en;q=0.7,*;q=0.3|Connection: keep-alive"
		if r := get(t, c, url, protocol.Success, 200, ""); string(r.Content.Body) != want {
			t.Errorf("%s: sent %q, want %q", url, r.Content.Body, want)
		}
	}
	if n := s.accepted.Load(); n > 12 {
		t.Errorf("%d connections", n)
	}
}

func TestRequestTarget(t *testing.T) {
	noLeak(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RequestURI) }))
	t.Cleanup(s.Close)
	c := newClient(t, httpproto.Options{})
	for path, want := range map[string]string{
		"": "/", "?171": "/?171", "/#f": "/", "/a%2Fb%20c?d=%zz&e=f g": "/a%2Fb%20c?d=%zz&e=f%20g", "//a//b": "//a//b", "/a;b?": "/a;b?", "/é": "/%C3%A9",
		"?é \xff": "/?%C3%A9%20%FF", "?x HTTP/1.1": "/?x%20HTTP/1.1", "?a+b%20c": "/?a+b%20c",
	} {
		if r := get(t, c, s.URL+path, protocol.Success, 200, ""); string(r.Content.Body) != want {
			t.Errorf("%q: asked for %q, want %q", path, r.Content.Body, want)
		}
	}
}

func TestStatus(t *testing.T) {
	noLeak(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var status int
		fmt.Sscanf(r.URL.Path, "/%d", &status)
		w.Header().Set("Location", "/there")
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(status)
		if status != 204 && status != 304 && status != 205 {
			fmt.Fprint(w, "body")
		}
	}))
	t.Cleanup(s.Close)
	c := newClient(t, httpproto.Options{})
	groups := map[protocol.Code][]int{
		protocol.Success:   {200, 201, 202, 203, 204, 205, 206, 226, 299},
		protocol.MovedPerm: {301, 308},
		protocol.MovedTemp: {300, 302, 303, 307},
		protocol.NotFound:  {404},
		protocol.Gone:      {400, 405, 406, 410, 411, 413, 414, 415, 416, 417, 421, 422, 431},
		protocol.Denied:    {401, 402, 403, 407, 451},
		protocol.Busy:      {408, 425, 429, 503},
		protocol.Failed:    {305, 306, 399, 409, 412, 418, 423, 426, 428, 499, 500, 501, 502, 504, 505, 520, 599, 600, 999},
	}
	for code, statuses := range groups {
		for _, status := range statuses {
			reason := ""
			if code != protocol.Success && !code.Redirect() {
				reason = fmt.Sprint("http: status ", status)
			}
			r := get(t, c, fmt.Sprintf("%s/%d", s.URL, status), code, status, reason)
			body, retry, location := "", 7*time.Second, ""
			if code == protocol.Success {
				retry = 0
				if status != 204 && status != 205 {
					body = "body"
				}
			}
			if code.Redirect() {
				location = s.URL + "/there"
			}
			if string(r.Content.Body) != body || r.Outcome.RetryAfter != retry || r.Outcome.Location != location || r.Content.Truncated != (status == 206) {
				t.Errorf("%d: body %q, retry after %v, location %q, truncated %v", status, r.Content.Body, r.Outcome.RetryAfter, r.Outcome.Location, r.Content.Truncated)
			}
		}
	}
}

func TestLocation(t *testing.T) {
	noLeak(t)
	var location []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Location"] = location
		w.WriteHeader(301)
	}))
	t.Cleanup(s.Close)
	c := newClient(t, httpproto.Options{})
	base := s.URL + "/dir/page?q"
	for _, k := range []struct{ location, want string }{
		{"/x", s.URL + "/x"},
		{"x", s.URL + "/dir/x"},
		{"?x", s.URL + "/dir/page?x"},
		{"../../x", s.URL + "/x"},
		{"#f", s.URL + "/dir/page?q#f"},
		{"//other.example/x", "http://other.example/x"},
		{"https://other.example", "https://other.example/"},
		{" /x ", s.URL + "/x"},
		{"/a b", s.URL + "/a%20b"},
		{"/\xc3\xa9", s.URL + "/%C3%A9"},
		{"/\xe9", s.URL + "/%E9"},
		{"/50%-off?100%", s.URL + "/50%25-off?100%"},
		{"/a b!'()*{", s.URL + "/a%20b!'()*%7B"},
		{"/(x)?!'()*", s.URL + "/(x)?!%27()*"},
		{"Main_Page:Talk", s.URL + "/dir/Main_Page:Talk"},
		{":", s.URL + "/dir/:"},
		{"1:2?3:4", s.URL + "/dir/1:2?3:4"},
		{"http://ü.example/ü", "http://xn--tda.example/%C3%BC"},
		{"/%zz#%", s.URL + "/%25zz#%25"},
		{"/%41%2f%", s.URL + "/%41%2f%25"},
		{"http:/x", s.URL + "/x"},
		{"HTTP:x:y", s.URL + "/dir/x:y"},
		{"http:?x", s.URL + "/dir/page?x"},
		{"http:", s.URL + "/dir/page?q"},
		{`\x\y?a\b#c\d`, s.URL + `/x/y?a\b#c\d`},
		{`\\other.example\x`, "http://other.example/x"},
		{`http:\\other.example\x`, "http://other.example/x"},
		{`https:\/other.example`, "https://other.example/"},
		{"///x", "http://x/"},
		{"//%41/", "http://a/"},
		{"..//x", s.URL + "//x"},
		{`x\y:z`, s.URL + "/dir/x/y:z"},
		{"/a\tb", s.URL + "/ab"},
		// The crawl decides about schemes and targets; nothing is dialled here.
		{"file:///etc/passwd", "file:///etc/passwd"},
		{"javascript:alert(1)", "javascript:alert(1)"},
		{`x-app:a\b`, `x-app:a\b`},
		{"http://169.254.169.254/latest", "http://169.254.169.254/latest"},
		{"http://a:b@other.example/", "http://a:b@other.example/"},
	} {
		location = []string{k.location, "/second"}
		if r := get(t, c, base, protocol.MovedPerm, 301, ""); r.Outcome.Location != k.want {
			t.Errorf("%q: location %q, want %q", k.location, r.Outcome.Location, k.want)
		}
	}
	for _, k := range []struct{ location, reason string }{
		{"", "redirect: no Location"},
		{"   ", "redirect: no Location"},
		{"http://[::1", "redirect: Location cannot be parsed"},
		{"http://a b%/", "redirect: Location cannot be parsed"},
		{"http://a:x/", "redirect: Location cannot be parsed"},
		{"/" + strings.Repeat("x", 100_000), "redirect: Location is too long"},
	} {
		location = []string{k.location}
		if r := get(t, c, base, protocol.Failed, 301, k.reason); r.Outcome.Location != "" {
			t.Errorf("%q: location %q", k.location, r.Outcome.Location)
		}
	}
	location = nil
	get(t, c, base, protocol.Failed, 301, "redirect: no Location")
}

func TestValidators(t *testing.T) {
	noLeak(t)
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	var (
		send http.Header
		got  http.Header
		code = 200
	)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		for k, v := range send {
			w.Header()[k] = v
		}
		w.WriteHeader(code)
	}))
	t.Cleanup(s.Close)
	c := newClient(t, httpproto.Options{Now: func() time.Time { return now }})

	const modified = "Wed, 01 Apr 2026 00:00:00 GMT"
	april := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
	for _, k := range []struct {
		etag, modified        string
		wantTag, wantModified string
		wantTime              time.Time
	}{
		{`"a"`, modified, `"a"`, modified, april},
		{`W/"a"`, "", `W/"a"`, "", time.Time{}},
		{`unquoted`, "2026-04-01", `unquoted`, "2026-04-01", april},
		{`*`, "never", "", "never", time.Time{}},
		{`"a` + strings.Repeat("x", 2000) + `"`, strings.Repeat("1", 2000), "", "", time.Time{}},
		{"\"a\tb\"", "a\tb", "", "", time.Time{}},
		{`"a"`, "Fri, 01 Jan 2100 00:00:00 GMT", `"a"`, "Fri, 01 Jan 2100 00:00:00 GMT", now},
		{`"a"`, "Mon, 01 Jan 1900 00:00:00 GMT", `"a"`, "Mon, 01 Jan 1900 00:00:00 GMT", time.Time{}},
	} {
		send = http.Header{"Etag": {k.etag, `"second"`}, "Last-Modified": {k.modified}}
		r := get(t, c, s.URL, protocol.Success, 200, "")
		if r.ETag != k.wantTag || r.LastModified != k.wantModified || !r.Modified.Equal(k.wantTime) {
			t.Errorf("%q, %q: got %q, %q, %v", k.etag, k.modified, r.ETag, r.LastModified, r.Modified)
		}
		if !r.Content.Time.Equal(now) {
			t.Errorf("content is of %v, want %v", r.Content.Time, now)
		}
	}

	// A 304 counts only if it was asked for. It may have a header of its own.
	code, send = 304, http.Header{"Etag": {`"a"`}, "X-Robots-Tag": {"NoIndex"}}
	r := fetch(t, c, protocol.Request{URL: s.URL, ETag: `"a"`})
	if r.Outcome.Code != protocol.NotModified || r.ETag != `"a"` || r.Content.Robots != "noindex" || got.Get("If-None-Match") != `"a"` || got.Get("If-Modified-Since") != "" {
		t.Errorf("outcome %+v, etag %q, sent %v", r.Outcome, r.ETag, got)
	}
	r = fetch(t, c, protocol.Request{URL: s.URL, LastModified: modified})
	if r.Outcome.Code != protocol.NotModified || got.Get("If-None-Match") != "" || got.Get("If-Modified-Since") != modified {
		t.Errorf("outcome %+v, sent %v", r.Outcome, got)
	}
	for _, unsafe := range []string{"", "*", "a\r\nX-Evil: 1", "a\x00b", strings.Repeat("x", 1025)} {
		r := fetch(t, c, protocol.Request{URL: s.URL, ETag: unsafe})
		if r.Outcome.Code != protocol.Failed || r.Outcome.Reason != "http: 304 to a request without validators" || got.Get("If-None-Match") != "" {
			t.Errorf("%q: outcome %+v, sent %v", unsafe, r.Outcome, got)
		}
	}
}

func TestHeadersOfContent(t *testing.T) {
	noLeak(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = []string{"text/HTML; charset=x"}
		w.Header()["X-Robots-Tag"] = []string{"NoIndex", "other: nofollow", "BOT: noarchive"}
		w.Header()["Refresh"] = []string{"5; url=/next"}
	}))
	t.Cleanup(s.Close)
	r := get(t, newClient(t, httpproto.Options{}), s.URL, protocol.Success, 200, "")
	if c := r.Content; c.Type != "text/HTML; charset=x" || c.Robots != "noindex,noarchive" || c.Refresh != "5; url=/next" {
		t.Errorf("%+v", c)
	}
}

func TestRefusedURLs(t *testing.T) {
	noLeak(t)
	c := newClient(t, httpproto.Options{})
	c.SetDial(func(context.Context, string, string) (net.Conn, error) {
		t.Error("dialled")
		return nil, io.EOF
	})
	for url, reason := range map[string]string{
		"":                         "url: scheme is neither http nor https",
		"file:///etc/passwd":       "url: scheme is neither http nor https",
		"ftp://example.com/":       "url: scheme is neither http nor https",
		"javascript:alert(1)":      "url: scheme is neither http nor https",
		"//example.com/":           "url: scheme is neither http nor https",
		"http:///path":             "url: no host",
		"http:opaque":              "url: no host",
		"http://:80/":              "url: no host",
		"http://u:p@example.com/":  "url: has user information",
		"http://u@example.com/":    "url: has user information",
		"http://[fe80::1%25lo]/":   "url: address has a zone",
		"http://example.com:0/":    "url: port is not within 1 to 65535",
		"http://example.com:99999": "url: port is not within 1 to 65535",
		"http://example.com:x/":    "url: cannot be parsed",
		"http://a b/":              "url: cannot be parsed",
		"http://\xff.example/":     "url: host is not a name",
		"http://\u00ad/":           "url: host is not a name",
		// Full-width forms of characters that have a meaning in a URL.
		"http://example.com：8080/": "url: host is not a name",
		"http://example.com：25/":   "url: host is not a name",
		"http://a＠example.com/":    "url: host is not a name",
		"http://example.com／x/":    "url: host is not a name",
		"http://［1］/":              "url: host is not a name",
		"http://a%25zz/":           "url: host is not a name",
		"http://example.com/\r\n":  "url: cannot be parsed",
		"http://[::1/":             "url: cannot be parsed",
	} {
		get(t, c, url, protocol.Refused, 0, reason)
	}
}

// What is dialled for a URL is the host under whose name its turns are counted. (The
// atoms are what some step of reading a URL has taken for something else.)
func TestDialledHostIsTheCountedHost(t *testing.T) {
	for url, want := range map[string]string{
		"http://İstanbul.example/":   "xn--istanbul-o0e.example", // and not istanbul.example
		"http://WWW.EXAMPLE.com:80/": "www.example.com",
		"http://ẞ.example/":          "xn--zca.example", // and not ss.example
		"http://-ü.example/":         "xn----eha.example",
		"http://ü.xn--/":             "", // and not xn--tda
	} {
		if host, _ := httpproto.Dialled(url); host != want {
			t.Errorf("%s: %q is dialled, want %q", url, host, want)
		}
	}
	atoms := []string{
		"a", "B.com", "example.com", ".", "..", "。", "．", "-", "_", "%41", "%2e", "%3a", "%E3%80%82", "ß", "ẞ", "İ", "ı", "K", "ſ", "ﬁ",
		"\u00ad", "\u200b", "\u200d", "xn--", "xn--nxasmq6b", "０", "127.0.0.1", "0x7f.1", "017700000001", "2130706433", "256", ":80", ":8080", ":",
		"[::1]", "[::ffff:1.2.3.4]", "[fe80::1%25a]", "@", "\\", "/", "?", "#", "：", "＠", "／", "［", "É", "e\u0301", "%C3%A9", "☃", "日本", "ǅ",
		"!", "(", "+", "~", "|", "`", "^", " ", "\t", "%", "%00", "\x7f", "℡", "１２７。0.0.1", "\xff",
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	dialled := 0
	for range 100_000 {
		url := []string{"http://", "HTTPS://", "http:/", "http:"}[rnd.IntN(4)]
		for range 1 + rnd.IntN(4) {
			url += atoms[rnd.IntN(len(atoms))]
		}
		host, port := httpproto.Dialled(url)
		if host == "" {
			continue
		}
		dialled++
		if a, err := netip.ParseAddr(host); err == nil {
			host = hostdb.AddrKey(a)
		}
		if key, want := hostdb.ByHost.Key(url), hostdb.ByHost.Key("http://"+host+"/"); key != want {
			t.Errorf("%q: %q is dialled at port %q, and %q has its turns", url, host, port, key)
		}
	}
	if dialled < 1000 {
		t.Errorf("only %d hosts", dialled)
	}
}

func TestNothingPrivateIsDialled(t *testing.T) {
	noLeak(t)
	s := serveRaw(t, func(net.Conn) {})
	port := s.url[strings.LastIndex(s.url, ":"):]
	var answer []netip.Addr
	c, err := httpproto.New(httpproto.Options{Agent: "bot", Resolver: func(context.Context, string, string) ([]netip.Addr, error) {
		return answer, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, host := range []string{"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "[64:ff9b::7f00:1]", "１２７.0.0.1"} {
		r := fetch(t, c, protocol.Request{URL: "http://" + host + port})
		if r.Outcome.Code != protocol.Refused || !strings.HasPrefix(r.Outcome.Reason, "address: ") {
			t.Errorf("%s: %+v", host, r.Outcome)
		}
	}
	for _, name := range []string{"rebound.example", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "localhost"} {
		answer = []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("127.0.0.1")}
		get(t, c, "http://"+name+port, protocol.Refused, 0, "address: private use")
		answer[0], answer[1] = answer[1], answer[0]
		get(t, c, "https://"+name+port, protocol.Refused, 0, "address: loopback")
	}
	if n := s.accepted.Load(); n != 0 {
		t.Errorf("%d connections to loopback", n)
	}
}

// A name with a private and a public address is served by the public one only,
// and how that one fails is what counts.
func TestGuardIsPerAddress(t *testing.T) {
	noLeak(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Host) }))
	t.Cleanup(s.Close)
	at := netip.MustParseAddrPort(s.Listener.Addr().String())
	addrs := []netip.Addr{netip.MustParseAddr("10.0.0.1"), at.Addr()}
	c, err := httpproto.New(httpproto.Options{
		Agent: "bot", Guard: httpproto.Guard{Allow: []netip.Prefix{netip.PrefixFrom(at.Addr(), 32)}},
		Resolver: func(context.Context, string, string) ([]netip.Addr, error) { return addrs, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	url := fmt.Sprintf("http://name.example:%d/", at.Port())
	r := get(t, c, url, protocol.Success, 200, "")
	if r.Addr != at.String() || string(r.Content.Body) != url[len("http://"):len(url)-1] {
		t.Errorf("asked %s for %s", r.Addr, r.Content.Body)
	}
	s.Close()
	c.CloseIdleConnections()
	get(t, c, url, protocol.Failed, 0, "connect: refused")
}

func TestLookupFailures(t *testing.T) {
	noLeak(t)
	var answer error
	c := newClient(t, httpproto.Options{Resolver: func(context.Context, string, string) ([]netip.Addr, error) { return nil, answer }})
	const url = "http://name.example/"
	get(t, c, url, protocol.Failed, 0, "dns: no such host")
	answer = &net.DNSError{Err: "no such host", Name: "evil\x1b[31m", IsNotFound: true}
	get(t, c, url, protocol.Failed, 0, "dns: no such host")
	answer = &net.DNSError{Err: "server misbehaving", Name: "evil\n"}
	get(t, c, url, protocol.Failed, 0, "dns: lookup failed")
	answer = &net.DNSError{Err: "i/o timeout", IsTimeout: true}
	get(t, c, url, protocol.Failed, 0, "timeout: looking up")
	answer = &net.DNSError{Err: "dial udp: socket: too many open files"}
	if _, err := c.Fetch(context.Background(), protocol.Request{URL: url}); err == nil {
		t.Error("no error when descriptors have run out")
	}
}

// Out of descriptors, a client gives up its idle connections and tries again;
// only then is it an error, and never the fault of the host.
func TestOutOfDescriptors(t *testing.T) {
	noLeak(t)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(s.Close)
	c := newClient(t, httpproto.Options{})
	var left atomic.Int32
	c.SetDial(func(ctx context.Context, network, address string) (net.Conn, error) {
		if left.Add(-1) >= 0 {
			return nil, &net.OpError{Op: "dial", Err: syscall.EMFILE}
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	})
	// Those that are closed are free a moment later.
	for _, n := range []int32{1, 4} {
		left.Store(n)
		get(t, c, s.URL, protocol.Success, 200, "")
		c.CloseIdleConnections()
	}
	left.Store(10)
	_, err := c.Fetch(context.Background(), protocol.Request{URL: s.URL})
	if !errors.Is(err, syscall.EMFILE) || !strings.Contains(err.Error(), s.URL) {
		t.Errorf("error %v is not EMFILE of the URL", err)
	}
}

func TestConnectTo(t *testing.T) {
	noLeak(t)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Host, " ", r.TLS.ServerName)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	at := netip.MustParseAddrPort(s.Listener.Addr().String())
	// The map is the owner's word: it needs no leave to reach loopback.
	c, err := httpproto.New(httpproto.Options{
		Agent: "bot", RootCAs: pool,
		Resolver: func(context.Context, string, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
		ConnectTo: []httpproto.ConnectTo{
			{Host: "example.com", Port: 443, ToHost: "127.0.0.1", ToPort: at.Port()},
			{Host: "other.test", ToHost: "127.0.0.1", ToPort: at.Port()},
			{Host: "named.test", ToHost: "localhost", ToPort: at.Port()},
			{Port: at.Port()},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, url := range []string{"https://example.com/", "https://EXAMPLE.com/", "https://example.com:443/"} {
		r := get(t, c, url, protocol.Success, 200, "")
		if body := strings.ToLower(string(r.Content.Body)); !strings.HasPrefix(body, "example.com") || !strings.HasSuffix(body, " example.com") || r.Addr != at.String() {
			t.Errorf("%s: %q of %s", url, body, r.Addr)
		}
	}
	// Verified for the name in the URL, not for where the connection goes.
	get(t, c, "https://other.test/", protocol.Failed, 0, "tls: certificate is for another name")
	get(t, c, "http://example.com/", protocol.Refused, 0, "address: host is not in the connect-to map")
	get(t, c, "https://unmapped.test/", protocol.Refused, 0, "address: host is not in the connect-to map")
	get(t, c, "http://127.0.0.1/", protocol.Refused, 0, "address: host is not in the connect-to map")
	// A name is resolved, and guarded, wherever it comes from.
	get(t, c, "https://named.test/", protocol.Refused, 0, "address: loopback")
	get(t, c, "https://"+at.String()+"/", protocol.Refused, 0, "address: loopback")
}

func TestTLS(t *testing.T) {
	noLeak(t)
	quiet := log.New(io.Discard, "", 0)
	serve := func(edit func(*httptest.Server)) *httptest.Server {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		s.Config.ErrorLog = quiet
		s.EnableHTTP2 = true
		if edit != nil {
			edit(s)
		}
		s.StartTLS()
		t.Cleanup(s.Close)
		return s
	}
	s := serve(nil)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())

	get(t, newClient(t, httpproto.Options{}), s.URL, protocol.Failed, 0, "tls: certificate of an unknown authority")
	get(t, newClient(t, httpproto.Options{InsecureSkipVerify: true}), s.URL, protocol.Success, 200, "")
	trusting := newClient(t, httpproto.Options{RootCAs: pool})
	get(t, trusting, s.URL, protocol.Success, 200, "")
	get(t, trusting, strings.Replace(s.URL, "127.0.0.1", "localhost", 1), protocol.Failed, 0, "tls: certificate is for another name")

	old := serve(func(s *httptest.Server) {
		s.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	})
	get(t, trusting, old.URL, protocol.Failed, 0, "tls: alert: protocol version not supported")
	strict := serve(func(s *httptest.Server) {
		s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12}
	})
	if r := fetch(t, trusting, protocol.Request{URL: strict.URL}); r.Outcome.Code != protocol.Failed || !strings.HasPrefix(r.Outcome.Reason, "tls: alert: ") {
		t.Errorf("%+v", r.Outcome)
	}
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(plain.Close)
	get(t, trusting, strings.Replace(plain.URL, "http:", "https:", 1), protocol.Failed, 0, "tls: server does not speak TLS")
	mute := serveRaw(t, func(nc net.Conn) { nc.Close() })
	if r := fetch(t, trusting, protocol.Request{URL: strings.Replace(mute.url, "http:", "https:", 1)}); r.Outcome.Code != protocol.Failed || !strings.HasSuffix(r.Outcome.Reason, " while shaking hands") {
		t.Errorf("%+v", r.Outcome)
	}
}

func TestHTTP1(t *testing.T) {
	noLeak(t)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto, " ", r.TLS.NegotiatedProtocol) }))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	for http1, want := range map[bool]string{false: "HTTP/2.0 h2", true: "HTTP/1.1 "} {
		c := newClient(t, httpproto.Options{InsecureSkipVerify: true, HTTP1: http1})
		if r := get(t, c, s.URL, protocol.Success, 200, ""); strings.TrimSuffix(string(r.Content.Body), "http/1.1") != want {
			t.Errorf("HTTP1 %v: %q, want %q", http1, r.Content.Body, want)
		}
	}
}

func TestRoundTripperSigns(t *testing.T) {
	noLeak(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("Signature")) }))
	t.Cleanup(s.Close)
	c := newClient(t, httpproto.Options{RoundTripper: func(rt http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("Signature", "signed "+r.URL.Path)
			return rt.RoundTrip(r)
		})
	}})
	if r := get(t, c, s.URL+"/x", protocol.Success, 200, ""); string(r.Content.Body) != "signed /x" {
		t.Errorf("body %q", r.Content.Body)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestClose(t *testing.T) {
	noLeak(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "x") }))
	t.Cleanup(s.Close)
	c := newClient(t, httpproto.Options{})
	get(t, c, s.URL, protocol.Success, 200, "")
	c.Close()
	if _, err := c.Fetch(context.Background(), protocol.Request{URL: s.URL}); !errors.Is(err, httpproto.ErrClosed) {
		t.Errorf("error %v, want ErrClosed", err)
	}
}

// A connection is gone when its client is, also if the transport has not yet
// noticed that it is idle (HTTP/2).
func TestCloseLeavesNothing(t *testing.T) {
	noLeak(t)
	s := serveHTTP2(t, func(nc net.Conn) {
		io.WriteString(nc, frame(4, 0, 0, "\x00\x03\x00\x00\x00\x00")+frame(1, 4, 1, "\x88")+frame(0, 1, 1, "hello"))
	})
	for range 100 {
		c := newClient(t, httpproto.Options{InsecureSkipVerify: true, Limits: httpproto.Limits{IdleTimeout: -1}})
		get(t, c, s.url, protocol.Success, 200, "")
		get(t, c, s.url, protocol.Success, 200, "")
		c.Close()
	}
	within(t, "a connection is open", func() bool { return s.open.Load() == 0 })
}

func TestCancel(t *testing.T) {
	noLeak(t)
	arrived := make(chan bool, 1)
	s := serveRaw(t, func(nc net.Conn) {
		r, _ := readRequest(nc)
		if r.URL.Path == "/body" {
			io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
		}
		arrived <- true
	})
	c := newClient(t, httpproto.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err := c.Fetch(ctx, protocol.Request{URL: s.url}); !errors.Is(err, context.Canceled) || r.Content.Body != nil {
		t.Errorf("cancelled before: %+v, %v", r, err)
	}
	if s.accepted.Load() != 0 {
		t.Error("dialled for a visit that was cancelled before")
	}
	for _, path := range []string{"headers", "body"} {
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() {
			<-arrived
			cancel()
		})
		if _, err := c.Fetch(ctx, protocol.Request{URL: s.url + path}); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled waiting for %s: %v", path, err)
		}
		wg.Wait()
	}
	within(t, "connections are open", func() bool { return s.open.Load() == 0 })
}

func TestKeepsConnectionsOfWholeVisits(t *testing.T) {
	noLeak(t)
	var accepted atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "x") }))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			accepted.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	c := newClient(t, httpproto.Options{})
	for range 10 {
		get(t, c, s.URL, protocol.Success, 200, "")
	}
	if n := accepted.Load(); n != 1 {
		t.Errorf("%d connections for ten visits in a row", n)
	}
}
