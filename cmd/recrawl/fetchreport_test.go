package main_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol/webtest"
)

// fetch says what it left out and why.
func TestFetchReportsReasons(t *testing.T) {
	t.Parallel()
	server, err := webtest.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/robots.txt":
			http.NotFound(w, r)
		case strings.HasPrefix(r.Host, "down."):
			w.WriteHeader(500)
		default:
			time.Sleep(2 * time.Millisecond)
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<a href=%sa>a</a><a href=%sb>b</a>", r.URL.Path, r.URL.Path)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	dir := filepath.Join(t.TempDir(), "crawl")
	args := func(verb string, more ...string) []string {
		return append([]string{verb, "-d", dir, "-agent", "testbot", "-delay", "0", "-connect-to", server.ConnectTo(), "-now", "2026-01-01T08:00:00Z"}, more...)
	}
	ok(t, args("inject", "http://fine.example/", "http://down.example/1")...)
	ok(t, args("generate")...)
	out := ok(t, args("fetch", "-follow-depth", "2", "-follow-links", "1")...)
	for _, want := range []string{"2 visits were to pages beyond the list\n", "failures: status 1\n", "a visit took "} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	ok(t, args("update")...)
	ok(t, args("generate", "-now", "2026-03-01T08:00:00Z")...)
	j := object(t, ok(t, args("fetch", "-json", "-time-limit", "1h")...))
	if l, _ := j["latency_ms"].(map[string]any); j["crawl_delay"] != 0.0 || j["followed"] != 0.0 || j["timed_out"] != 0.0 || l["count"] == 0.0 || l["p50"] == nil {
		t.Errorf("%v", j)
	}
}
