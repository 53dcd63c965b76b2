package main_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

func TestCrawlReadsDocuments(t *testing.T) {
	t.Parallel()
	const docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(`<a href="/burrows.docx">burrows</a>`))
		case "/burrows.docx":
			w.Header().Set("Content-Type", docx)
			http.ServeFile(w, r, filepath.FromSlash("../../parse/documents/testdata/burrows.docx"))
		default:
			http.NotFound(w, r)
		}
	}))
	defer web.Close()
	dir := filepath.Join(t.TempDir(), "crawl")
	ok(t, "crawl", "-d", dir, "-agent", "testbot", "-allow-private", "-delay", "0", "-documents", web.URL+"/")
	out := ok(t, "index", "-d", dir)
	if !strings.Contains(out, `"title":"Burrows of the prairie"`) || !strings.Contains(out, "Gophers dig burrows & tunnels.") {
		t.Error(out)
	}
	if out := ok(t, "check", "parse", "-agent", "testbot", "-allow-private", "-documents", web.URL+"/burrows.docx"); !strings.Contains(out, "https://example.com/gophers") {
		t.Error(out)
	}
}
