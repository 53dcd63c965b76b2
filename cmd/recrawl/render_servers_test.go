//go:build servers

package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestCrawlRendersPages crawls a site whose first page has its links only with scripts.
func TestCrawlRendersPages(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	page := func(path, kind, body string) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, body)
		})
	}
	page("/{$}", "text/html", `<!doctype html><title>Shop</title><div id="root"></div><script src="/app.js"></script>`)
	page("/app.js", "text/javascript", `fetch("/api").then(r => r.json()).then(all => {
		document.getElementById("root").innerHTML = all.map(n => "<a href='/item/" + n + "'>Item " + n + "</a>").join(" ")})`)
	page("/api", "application/json", `[1, 2, 3]`)
	var robots atomic.Int64
	mux.HandleFunc("/robots.txt", func(w http.ResponseWriter, r *http.Request) { robots.Add(1) })
	page("/item/{n}", "text/html", `<title>Item</title><p>An item.`)
	s := httptest.NewServer(mux)
	defer s.Close()
	for mode, want := range map[string]int{"auto": 4, "always": 4, "never": 1} {
		dir := t.TempDir()
		ok(t, "crawl", "-d", dir, "-agent", "testbot", "-delay", "0", "-allow-private", "-render", mode, s.URL+"/")
		documents := ok(t, "index", "-d", dir)
		if got := strings.Count(documents, "\n"); got != want || (want > 1) != strings.Contains(documents, "Item 3") {
			t.Errorf("%s: %d documents, want %d\n%s", mode, got, want, documents)
		}
		if n := robots.Swap(0); n != 1 {
			t.Errorf("%s: %d requests for robots.txt", mode, n)
		}
	}
}

func TestRenderFlagsAreChecked(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-render", "sometimes"}, {"-render-url", "("}, {"-render", "auto", "-chrome", "/nowhere"}} {
		r := recrawl(t, append([]string{"crawl", "-d", t.TempDir(), "-agent", "testbot", "-allow-private", "http://127.0.0.1:1/"}, args...)...)
		if r.code != 2 || !strings.Contains(r.err, "recrawl: "+args[0]) {
			t.Errorf("%q: exit %d: %s", args, r.code, r.err)
		}
	}
}
