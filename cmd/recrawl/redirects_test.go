package main_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol/webtest"
)

// The readers show which redirect led where.
func TestRedirectsAreShown(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 120})
	var urls []string
	for u := range s.web.URLs() {
		if p, _ := s.web.Page(u); p.Location != "" {
			urls = append(urls, u)
		}
	}
	seeds := write(t, "seeds", strings.Join(urls, "\n"))
	args := []string{"-seeds", seeds, "-rounds", "1", "-redirects", "5"}
	out := ok(t, s.crawl(args...)...)
	if !strings.Contains(out, "\n  redirects     ") || !strings.Contains(out, " followed") {
		t.Error(out)
	}
	last := map[string]any{}
	for line := range strings.Lines(ok(t, "readseg", "-d", s.dir, "-part", "crawl_fetch", "-json")) {
		var r struct{ Record map[string]any }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			break // the table of segments comes first where there is no record
		}
		if hops, ok := r.Record["hops"].(float64); ok && (last["hops"] == nil || hops > last["hops"].(float64)) {
			last = r.Record
		}
	}
	if last["hops"] != 4.0 {
		t.Fatalf("no chain of four: %v", last)
	}
	explain := func(url any) string {
		return ok(t, "explain", "-d", s.dir, "-agent", "testbot", "-now", frozen, fmt.Sprint(url))
	}
	if out := explain(last["url"]); !strings.Contains(out, fmt.Sprintf("\nlast visit   success (200); redirect 4 in a row, from %s\n", last["via"])) {
		t.Error(out)
	}
	if out := explain(last["via"]); !strings.Contains(out, fmt.Sprintf(") to %s; redirect 3 in a row, from ", last["url"])) {
		t.Error(out)
	}
	if m := object(t, ok(t, "explain", "-json", "-d", s.dir, "-agent", "testbot", "-now", frozen, fmt.Sprint(last["via"]))); m["visit"].(map[string]any)["location"] != last["url"] {
		t.Error(m)
	}
	// A flag says more than the configuration, zero included.
	conf := filepath.Dir(write(t, "nutch-site.xml", `<configuration><property><name>plugin.includes</name><value>protocol-http|parse-html</value></property><property><name>http.redirect.max</name><value>3</value></property><property><name>fetcher.parse</name><value>true</value></property></configuration>`))
	for _, c := range []struct {
		args []string
		want bool
	}{{[]string{"-conf", conf}, true}, {[]string{"-conf", conf, "-redirects", "0"}, false}, {nil, false}} {
		d := t.TempDir()
		args := append(s.args("crawl", "-seeds", seeds, "-rounds", "1", "-json"), c.args...)
		args[2] = d
		m := object(t, ok(t, args...))
		if n := m["redirects"].(map[string]any)["followed"]; (n != 0.0) != c.want {
			t.Errorf("%v: %v followed", c.args, n)
		}
	}
}
