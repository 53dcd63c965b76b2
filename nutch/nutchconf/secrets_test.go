package nutchconf_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/nutch/nutchconf"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// Logins and cookies go to the hosts that their files name.
func TestSecretsGoWhereTheyBelong(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%q %q", r.Header.Get("Authorization"), r.Header.Get("Cookie"))
	}))
	defer server.Close()
	addr := strings.TrimPrefix(server.URL, "http://")
	run := func(sets ...string) string {
		dir := conf(t, append([]string{"http.agent.name", "testbot"}, sets...)...)
		write(t, filepath.Join(dir, "httpclient-auth.xml"), `<auth-configuration><credentials username="me" password="word"><authscope host="a.example" port="80"/></credentials></auth-configuration>`)
		write(t, filepath.Join(dir, "other.xml"), `<auth-configuration><credentials username="you" password="word"><authscope host="a.example"/></credentials></auth-configuration>`)
		write(t, filepath.Join(dir, "cookies.txt"), "b.example\tid=1\n")
		write(t, filepath.Join(dir, "others.txt"), "b.example\tid=2\n")
		o, err := read(t, dir).Options()
		if err != nil {
			t.Fatal(err)
		}
		o.Crawl.HTTP.Guard.AllowPrivate = true
		ct, err := httpproto.ParseConnectTo("::" + addr)
		if err != nil {
			t.Fatal(err)
		}
		o.Crawl.HTTP.ConnectTo = []httpproto.ConnectTo{ct}
		client, err := httpproto.New(o.Crawl.HTTP)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		all := ""
		for _, url := range []string{"http://a.example/", "http://a.example:8080/", "http://b.example/", "http://sub.b.example/"} {
			r, err := client.Fetch(t.Context(), protocol.Request{URL: url})
			if err != nil {
				t.Fatal(err)
			}
			all += string(r.Content.Body) + "\n"
		}
		return all
	}
	const none, me, you = `"" ""`, `"Basic bWU6d29yZA==" ""`, `"Basic eW91OndvcmQ=" ""`
	with := []string{"plugin.includes", "protocol-httpclient|urlfilter-regex|urlnormalizer-basic|parse-html"}
	for _, tt := range []struct {
		sets []string
		want []string
	}{
		{nil, []string{none, none, `"" "id=1"`, none}},
		{with, []string{me, none, `"" "id=1"`, none}},
		{append(with, "http.auth.file", "other.xml"), []string{you, none, `"" "id=1"`, none}},
		{[]string{"http.enable.cookie.header", "false"}, []string{none, none, none, none}},
		{[]string{"http.agent.host.cookie.file", "others.txt"}, []string{none, none, `"" "id=2"`, none}},
	} {
		if got, want := run(tt.sets...), strings.Join(tt.want, "\n")+"\n"; got != want {
			t.Errorf("%q:\n%swant\n%s", tt.sets, got, want)
		}
	}
}

// A note says where a property was set.
func TestBadSecretsAndNetworks(t *testing.T) {
	for _, tt := range []struct{ name, value, file, want string }{
		{"http.auth.file", "auth.xml", "<auth-configuration>\n<credentials username='me' password='word'><default/></credentials></auth-configuration>", "auth.xml:2: <default> would send"},
		{"http.auth.file", "missing.xml", "", "missing.xml"},
		{"http.agent.host.cookie.file", "c.txt", "a.example\tb=c\n\nno tab\n", "c.txt:3: a line needs a host, a tab and a cookie"},
		{"http.agent.host.cookie.file", "missing.txt", "", "missing.txt"},
		{"http.filter.ipaddress.include", "10.0.0.0/33", "", `"10.0.0.0/33" is neither an address nor a network`},
		{"http.filter.ipaddress.exclude", "somewhere", "", `"somewhere" is neither an address nor a network`},
		{"http.filter.ipaddress.exclude", "fe80::1%eth0", "", `is neither an address nor a network`},
	} {
		dir := conf(t, "http.agent.name", "testbot", tt.name, tt.value, "plugin.includes", "protocol-httpclient|urlfilter-regex|urlnormalizer-basic|parse-html")
		if tt.file != "" {
			write(t, filepath.Join(dir, tt.value), tt.file)
		}
		_, err := read(t, dir).Options()
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.name) {
			t.Errorf("%s=%s: %v, want %s", tt.name, tt.value, err, tt.want)
		}
	}
	// Without the plugin that reads it the file says nothing.
	o, err := read(t, conf(t, "http.agent.name", "testbot", "http.auth.file", "missing.xml")).Options()
	if err != nil || len(o.Notes) != 1 || !strings.Contains(o.Notes[0].Text, "protocol-httpclient") {
		t.Errorf("%+v, %v", o.Notes, err)
	}
}

func TestNetworks(t *testing.T) {
	c := nutchconf.New(t.TempDir())
	c.Set("http.agent.name", "testbot")
	c.Set("urlfilter.regex.rules", "+.")
	c.Set("urlnormalizer.regex.rules", "<regex-normalize/>")
	c.Set("http.filter.ipaddress.include", " 192.0.2.7 , 2001:db8::/33,198.51.100.9/24 ")
	c.Set("http.filter.ipaddress.exclude", "localhost,SiteLocal")
	o, err := c.Options()
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(o.Crawl.HTTP.Guard.Only, o.Crawl.HTTP.Guard.Deny)
	if want := "[192.0.2.7/32 2001:db8::/33 198.51.100.0/24] [127.0.0.0/8 ::1/128 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fec0::/10 fc00::/7]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
