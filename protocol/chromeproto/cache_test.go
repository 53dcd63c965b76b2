package chromeproto

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// roundTripper answers requests with a handler.
type roundTripper struct{ http.Handler }

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	return w.Result(), nil
}

func TestCacheKeepsWhatServersAllow(t *testing.T) {
	for header, want := range map[string]bool{
		"Cache-Control: max-age=60":                              true,
		"Cache-Control: public, max-age=31536000, immutable":     true,
		"Cache-Control: max-age=0, s-maxage=60":                  true,
		"Cache-Control: s-maxage=0, max-age=60":                  false,
		"Cache-Control: private, max-age=60":                     false,
		"Cache-Control: no-store":                                false,
		"Cache-Control: no-cache, max-age=60":                    false,
		"Cache-Control: max-age=soon":                            false,
		"Cache-Control: max-age=60\nSet-Cookie: a=1":             false,
		"Cache-Control: max-age=60\nVary: Accept-Encoding":       true,
		"Cache-Control: max-age=60\nVary: Cookie":                false,
		"Cache-Control: max-age=60\nAge: 61":                     false,
		"Etag: \"1\"":                                            false,
		"Cache-Control: max-age=60\nX-Status: 404":               false,
		"Cache-Control: max-age=60\nX-Method: POST":              false,
		"Cache-Control: max-age=60\nX-Request: Range: bytes=0-1": false,
		"Cache-Control: max-age=60\nX-Request: Authorization: x": false,
		"Cache-Control: max-age=60\nX-Request: Origin: http://x": true,
	} {
		requests := 0
		method, status, request := "GET", 200, ""
		c := newCache(roundTripper{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			for line := range strings.SplitSeq(header, "\n") {
				name, value, _ := strings.Cut(line, ": ")
				w.Header().Set(name, value)
			}
			w.WriteHeader(status)
			fmt.Fprint(w, "body")
		})}, 1<<20)
		for line := range strings.SplitSeq(header, "\n") {
			switch name, value, _ := strings.Cut(line, ": "); name {
			case "X-Status":
				status = 404
			case "X-Method":
				method = value
			case "X-Request":
				request = value
			}
		}
		for range 2 {
			req := httptest.NewRequest(method, "http://site.example/a.js", nil)
			if name, value, ok := strings.Cut(request, ": "); ok {
				req.Header.Set(name, value)
			}
			if got := read(t, c, req); got != "body" {
				t.Errorf("%q: %q", header, got)
			}
		}
		if kept := requests == 1; kept != want {
			t.Errorf("%q: kept %v, want %v", header, kept, want)
		}
	}
}

func read(t *testing.T, c *cache, req *http.Request) string {
	t.Helper()
	resp, err := c.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestCacheIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		c := newCache(roundTripper{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			w.Header().Set("Cache-Control", "max-age=60")
			w.Write(make([]byte, 100<<10))
		})}, 1<<20)
		get := func(n int) { read(t, c, httptest.NewRequest("GET", fmt.Sprintf("http://site.example/%d", n), nil)) }
		for n := range 50 {
			get(n)
			get(0)
		}
		if c.size > c.limit || len(c.entries) != c.recent.Len() || len(c.entries) < 5 {
			t.Errorf("%d bytes in %d entries", c.size, len(c.entries))
		}
		if requests != 50 {
			t.Errorf("%d requests: the one that is used most was forgotten", requests)
		}
		time.Sleep(time.Minute)
		if get(0); requests != 51 {
			t.Error("an old answer was used")
		}
	})
}
