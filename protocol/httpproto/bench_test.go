package httpproto_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// BenchmarkFetch30KB visits a page of 30 KB over one connection, compared with a bare
// transport.
func BenchmarkFetch30KB(b *testing.B) {
	text := []byte(strings.Repeat("The quick brown fox jumps over the lazy dog. <p>", 30<<10/48))
	packed := encode(b, "gzip", text)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/gzip" && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(packed)
			return
		}
		w.Write(text)
	}))
	defer s.Close()
	for _, path := range []string{"/plain", "/gzip"} {
		b.Run("transport"+path, func(b *testing.B) {
			rt := &http.Transport{}
			defer rt.CloseIdleConnections()
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				req, err := http.NewRequestWithContext(context.Background(), "GET", s.URL+path, nil)
				if err != nil {
					b.Fatal(err)
				}
				resp, err := rt.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || !bytes.Equal(body, text) {
					b.Fatal(err, len(body))
				}
			}
		})
		b.Run("httpproto"+path, func(b *testing.B) {
			c := newClient(b, httpproto.Options{})
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				r, err := c.Fetch(context.Background(), protocol.Request{URL: s.URL + path})
				if err != nil || !bytes.Equal(r.Content.Body, text) {
					b.Fatal(err, r.Outcome)
				}
			}
		})
	}
}
