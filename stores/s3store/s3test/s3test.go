// Package s3test runs an S3 server in the process of a test. It keeps everything in memory and
// checks no signatures; start with [Start].
package s3test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// Bucket is the name of the bucket of a server.
const Bucket = "crawls"

// Handler returns a server with an empty bucket.
func Handler(t testing.TB) http.Handler {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket(Bucket); err != nil {
		t.Fatal(err)
	}
	return gofakes3.New(backend, gofakes3.WithTimeSkewLimit(0)).Server()
}

// Start starts a server on loopback, which ends with the test, and returns its URL.
func Start(t testing.TB) string {
	t.Helper()
	server := httptest.NewServer(Handler(t))
	t.Cleanup(server.Close)
	return server.URL
}
