package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
)

// newProxy starts a proxy that makes tunnels (CONNECT), and counts them.
func newProxy(t *testing.T, tunnels *atomic.Int64) string {
	t.Helper()
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "want CONNECT", http.StatusMethodNotAllowed)
			return
		}
		server, err := net.Dial("tcp", r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer server.Close()
		w.WriteHeader(http.StatusOK)
		client, in, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer client.Close()
		tunnels.Add(1)
		go io.Copy(server, in)
		io.Copy(client, server)
	}))
	t.Cleanup(p.Close)
	return p.URL
}

func TestLoginThroughProxy(t *testing.T) {
	var strangers atomic.Int64 // logins that another origin got
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, _, given := r.BasicAuth(); given {
			strangers.Add(1)
		}
	}))
	defer other.Close()
	intranet := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ann" || password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.URL.Path == "/away" {
			http.Redirect(w, r, other.URL, http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<title>%s</title><a href="/page">page</a> <a href="/away">other</a>`, r.URL.Path)
	}))
	defer intranet.Close()
	var tunnels atomic.Int64
	proxy := newProxy(t, &tunnels)
	crawl := func(password string) string {
		t.Helper()
		var out strings.Builder
		o := recrawl.Options{Agent: "loginproxy", Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}}}
		if err := run(t.Context(), &out, intranet.URL+"/", "ann", password, proxy, o); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	got := crawl("secret")
	for _, want := range []string{"new " + intranet.URL + "/\n", "new " + intranet.URL + "/page\n", "moved " + intranet.URL + "/away\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	if tunnels.Load() == 0 || strangers.Load() > 0 {
		t.Errorf("%d connections came through the proxy; %d logins went to others", tunnels.Load(), strangers.Load())
	}
	if got := crawl("wrong"); strings.Contains(got, "new ") {
		t.Errorf("with a wrong password: %s", got)
	}
}
