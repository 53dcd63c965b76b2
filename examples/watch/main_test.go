package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

func TestWatchReportsPricesAndTexts(t *testing.T) {
	price, text, n := "34.90", "A kettle is a pot with a lid, a spout and a handle, in which water is boiled.", 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		switch r.URL.Path {
		case "/kettle":
			fmt.Fprintf(w, "<title>Kettle</title><p>Visitor %d<p class=price>€ %s", n, price)
		case "/about":
			fmt.Fprintf(w, "<title>About kettles</title><nav>Menu %d</nav><main><h1>About kettles</h1><p>%s</p></main>", n, text)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	dir := t.TempDir()
	rules := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(rules, []byte("rules: [{url: '*/kettle', fields: {price: {css: .price, as: number}}}]"), 0o666); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		change func()
		want   string
	}{
		{func() {}, "new /about\nnew /kettle\n  price: 34.90\n"},
		{func() {}, ""},
		{func() { price = "29.90" }, "changed /kettle\n  price: 29.90\n"},
		{func() { text += " It whistles, if it is a good one, when the water boils." }, "changed /about\n"},
	} {
		step.change()
		var out strings.Builder
		err := watch(t.Context(), &out, rules, dir, recrawl.Options{
			Agent: "example", Now: func() time.Time { return now }, HTTP: httpproto.Options{Guard: httpproto.Guard{AllowPrivate: true}},
			Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}, Threads: 1},
		}, server.URL+"/kettle", server.URL+"/about")
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(strings.ReplaceAll(out.String(), server.URL, ""), "\n")
		if got := strings.Join(lines, ""); got != step.want && got != "new /kettle\n  price: 34.90\nnew /about\n" {
			t.Errorf("got %q, want %q", got, step.want)
		}
		now = now.AddDate(1, 0, 0)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.md"))
	all := ""
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all += string(b)
	}
	if !strings.Contains(all, "# About kettles\n\n<"+server.URL+"/about>\n\nA kettle is a pot") || !strings.Contains(all, "It whistles") || strings.Contains(all, "Menu") {
		t.Error(all)
	}
}
