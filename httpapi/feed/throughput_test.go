package feed_test

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/recrawl/recrawl/httpapi/feed"
)

// BenchmarkWebhook posts small events to a receiver on loopback.
func BenchmarkWebhook(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer server.Close()
	s, err := feed.ParseSecrets([]byte(secret))
	if err != nil {
		b.Fatal(err)
	}
	w := &feed.Webhook{URL: server.URL, Secrets: s}
	data := []byte(`{"position":"1.0.0","kind":"changed","url":"http://a.example/"}`)
	messages := func(context.Context) iter.Seq2[feed.Message, error] {
		return func(yield func(feed.Message, error) bool) {
			for i := range b.N {
				if !yield(feed.Message{Position: strconv.Itoa(i), URL: "http://a.example/" + strconv.Itoa(i%1000), Kind: "changed", Time: time.Now(), Data: data}, nil) {
					return
				}
			}
		}
	}
	b.ResetTimer()
	if err := w.Deliver(b.Context(), "bench", messages, func(context.Context, string) error { return nil }); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
