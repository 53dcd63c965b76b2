package s3store_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/s3store"
)

// Segments are kept in a bucket. The other stores of a crawl are those of another engine.
func Example() {
	ctx := context.Background()
	server, stop := startServer()
	defer stop()

	segments, err := s3store.Open(ctx, s3store.Options{
		Endpoint: server, Region: "us-east-1", Bucket: "crawls", Prefix: "news",
		Credentials: credentials.NewStaticV4("key", "secret", ""),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer segments.Close()

	w, err := segments.Append(ctx, "20260102030405-000", segment.FetchPart, 0)
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Append(ctx, []byte("a block")); err != nil {
		log.Fatal(err)
	}
	if err := w.Commit(ctx); err != nil {
		log.Fatal(err)
	}
	info, err := segments.Stat(ctx, "20260102030405-000", segment.FetchPart)
	fmt.Println(info.Blocks, info.Committed, err)
	// Output: 1 true <nil>
}

// startServer starts a server with an empty bucket.
func startServer() (url string, stop func()) {
	backend := s3mem.New()
	if err := backend.CreateBucket("crawls"); err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	return server.URL, server.Close
}
