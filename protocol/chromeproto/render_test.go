//go:build servers

package chromeproto_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/chromeproto"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// newProtocol returns a protocol that renders all pages, and may connect to loopback.
func newProtocol(t testing.TB, o chromeproto.Options) *chromeproto.Protocol {
	t.Helper()
	if o.Client == nil {
		c, err := httpproto.New(httpproto.Options{Agent: "testbot", Guard: httpproto.Guard{AllowPrivate: true}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		o.Client = c
	}
	o.NoSandbox = os.Geteuid() == 0
	p, err := chromeproto.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func get(t testing.TB, p protocol.Protocol, url string) protocol.Response {
	t.Helper()
	r, err := p.Fetch(context.Background(), protocol.Request{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestScriptsMakeTheContent(t *testing.T) {
	mux := http.NewServeMux()
	page := func(path, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
			w.Header().Set("Etag", `"1"`)
			fmt.Fprint(w, body)
		})
	}
	page("/app", `<!DOCTYPE html><title>t</title><div id=app></div><script src=/app.js></script>`)
	mux.HandleFunc("/app.js", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `setTimeout(async () => { const r = await (await fetch('/data')).json(); document.getElementById('app').innerHTML = '<a href="/next">' + r.text + '</a>'}, 2000)`)
	})
	mux.HandleFunc("/data", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"text": %q}`, "hello "+r.UserAgent())
	})
	for name, s := range map[string]*httptest.Server{"http": httptest.NewServer(mux), "https": httptest.NewTLSServer(mux)} {
		defer s.Close()
		t.Run(name, func(t *testing.T) {
			c, err := httpproto.New(httpproto.Options{Agent: "testbot", Guard: httpproto.Guard{AllowPrivate: true}, InsecureSkipVerify: true})
			if err != nil {
				t.Fatal(err)
			}
			p := newProtocol(t, chromeproto.Options{Client: c, Mode: chromeproto.Always, OnPage: func(r chromeproto.Report) { t.Logf("%+v", r) }})
			t0 := time.Now()
			for range 3 {
				r := get(t, p, s.URL+"/app")
				t.Log(time.Since(t0))
				t0 = time.Now()
				if !strings.Contains(string(r.Content.Body), `<a href="/next">hello testbot</a>`) || r.ETag != `"1"` {
					t.Errorf("%v %q %s", r.Outcome, r.ETag, r.Content.Body)
				}
			}
		})
	}
}
