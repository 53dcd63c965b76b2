package httpproto_test

import (
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol/httpproto"
)

func TestParseConnectTo(t *testing.T) {
	for s, want := range map[string]httpproto.ConnectTo{
		":::":                            {},
		"::127.0.0.1:8080":               {ToHost: "127.0.0.1", ToPort: 8080},
		"example.com:443:127.0.0.1:8443": {Host: "example.com", Port: 443, ToHost: "127.0.0.1", ToPort: 8443},
		"example.com::other.example:":    {Host: "example.com", ToHost: "other.example"},
		":80::8080":                      {Port: 80, ToPort: 8080},
		"[::1]:80:[2001:db8::1]:8080":    {Host: "::1", Port: 80, ToHost: "2001:db8::1", ToPort: 8080},
		"a_b.example.:65535:[::]:1":      {Host: "a_b.example.", Port: 65535, ToHost: "::", ToPort: 1},
	} {
		got, err := httpproto.ParseConnectTo(s)
		if err != nil || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", s, got, err, want)
		}
		if got.String() != s {
			t.Errorf("%q: String is %q", s, got)
		}
	}
	for _, s := range []string{
		"", "a", "a:1", "a:1:b", "a:1:b:2:3", "a:x:b:1", "a:1:b:0", "a:1:b:65536", "a:+1:b:1", "a:-1:b:1", "a b:1:b:2",
		"[::1:80:b:1", "[a]:80:b:1", "[1.2.3.4]:80:b:1", "[fe80::1%eth0]:80:b:1", "::1:80:b:1", "a/b:1:c:2", "u@a:1:c:2", "a\x00:1:b:2", "é:1:b:2",
	} {
		if e, err := httpproto.ParseConnectTo(s); err == nil {
			t.Errorf("%q: got %+v, want an error", s, e)
		} else if !strings.Contains(err.Error(), "connect-to") {
			t.Errorf("%q: error %q does not say what was parsed", s, err)
		}
	}
}

func FuzzParseConnectTo(f *testing.F) {
	for _, s := range []string{":::", "a:1:b:2", "[::1]:80:[::2]:81", "::127.0.0.1:1", "[", "]:", "a:1:[b]:2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := httpproto.ParseConnectTo(s)
		if err != nil {
			return
		}
		again, err := httpproto.ParseConnectTo(e.String())
		if err != nil || again != e {
			t.Errorf("%q: %+v is written %q and read %+v, %v", s, e, e, again, err)
		}
		if _, err := httpproto.New(httpproto.Options{Agent: "bot", ConnectTo: []httpproto.ConnectTo{e}}); err != nil {
			t.Errorf("%q: New: %v", s, err)
		}
	})
}
