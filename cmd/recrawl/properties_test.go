package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/recrawl/recrawl/protocol/webtest"
)

// The table of Nutch's properties names flags that are there.
func TestPropertiesNameFlags(t *testing.T) {
	t.Parallel()
	helps := map[string]string{}
	has := func(verb, flag string) bool {
		if _, there := helps[verb]; !there {
			helps[verb] = ok(t, verb, "--help-all")
		}
		name, _, _ := strings.Cut(flag, " ")
		help := helps[verb] + " "
		return strings.Contains(help, "\n  "+name+" ") || strings.Contains(help, "\n  "+name+"\n")
	}
	seen := 0
	for line := range strings.Lines(ok(t, "check", "conf", "-all", "-json")) {
		var p struct{ Property, Flag string }
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatal(err)
		}
		for f := range strings.SplitSeq(p.Flag, ", ") {
			verb, flag, of := strings.Cut(f, " -")
			switch {
			case f == "":
				continue
			case strings.HasPrefix(f, "-"): // of several verbs
				verb, flag = "crawl", f
			case !of:
				t.Errorf("%s: %q is no flag of a verb", p.Property, f)
				continue
			default:
				flag = "-" + flag
			}
			if seen++; !has(verb, flag) {
				t.Errorf("%s: %s has no flag %s", p.Property, verb, flag)
			}
		}
	}
	if seen < 40 {
		t.Errorf("the table names %d flags only", seen)
	}
}

// Updates ask the filter for orphans about pages that were neither visited nor
// linked to.
func TestScoringOrphan(t *testing.T) {
	t.Parallel()
	var unlinked atomic.Bool
	server, err := webtest.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/robots.txt":
			http.NotFound(w, r)
			return
		case r.URL.Path == "/" && !unlinked.Load():
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<a href=/a>a</a>")
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "no link here")
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	dir := filepath.Join(t.TempDir(), "crawl")
	crawl := func(day string, more ...string) {
		t.Helper()
		ok(t, append([]string{"crawl", "-d", dir, "-agent", "testbot", "-delay", "0", "-connect-to", server.ConnectTo(), "-now", day + "T08:00:00Z"}, more...)...)
	}
	seeds := write(t, "seeds.txt", "http://site.example/\tnutch.fetchInterval=86400\n")
	crawl("2026-01-01", "-scoring", "opic,orphan", "-seeds", seeds)
	crawl("2026-02-01") // which keeps them
	unlinked.Store(true)
	for _, day := range []string{"2026-02-08", "2026-02-15", "2026-02-22", "2026-03-01", "2026-03-06"} {
		crawl(day) // not yet the turn of /a
	}
	d := object(t, ok(t, "readdb", "-d", dir, "-json", "-url", "http://site.example/a"))
	if d["statusName"] != "db_gone" {
		t.Errorf("a page to which no link led for 33 days is %v", d)
	}
}

func TestConfWithoutAgent(t *testing.T) {
	t.Parallel()
	dir := filepath.Dir(write(t, "nutch-site.xml", "<configuration><property><name>plugin.includes</name><value>protocol-http|parse-html</value></property></configuration>"))
	r := recrawl(t, "check", "robots", "-conf", dir, "http://site.example/")
	if r.code != 2 || !strings.Contains(r.err, "-agent NAME is required, or http.agent.name in the configuration") {
		t.Errorf("%+v", r)
	}
}
