package main_test

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol/webtest"
)

// docs/json.md has every name that the verbs print, in the section of the verb, and no other.
func TestJSONIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]map[string]bool{}
	quoted := regexp.MustCompile("`([a-zA-Z_0-9]+)`")
	verb := ""
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			verb = strings.TrimSpace(name)
			documented[verb] = map[string]bool{}
		}
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			if verb != "" {
				documented[verb][m[1]] = true
			}
		}
	}

	s := serve(t, &webtest.Web{Hosts: 2, PagesPerHost: 20, Calm: true, Sitemaps: true})
	first := ok(t, s.crawl(append([]string{"-json", "-schedule", "learned", "-rounds", "3"}, s.web.Seeds()...)...)...)
	seed := s.web.Seeds()[0]
	top := t.TempDir()
	learned, sample := learnedCrawl(t), sampleCrawl(t)
	ok(t, "updatehostdb", "-d", sample, "-now", frozen)
	outputs := map[string][]string{"crawl": {first}}
	run := func(section, dir string, args ...string) {
		outputs[section] = append(outputs[section], ok(t, append([]string{args[0], "-d", dir, "-json"}, args[1:]...)...))
	}
	run("status", learned, "status", "-now", frozen, "-schedule", "learned", "-budget", "8")
	for _, dir := range []string{s.dir, sample} {
		run("readdb", dir, "readdb", "-stats", "-quantiles", "0.5")
		run("readdb", dir, "readdb", "-dump")
		run("readdb", dir, "readdb", "-top", "2")
		run("hosts", dir, "hosts")
		run("readseg", dir, "readseg")
		run("readseg", dir, "readseg", "-dump", "-nogenerate")
	}
	run("explain", s.dir, "explain", seed)
	run("explain", learned, "explain", "-now", frozen, "-schedule", "learned", "-budget", "8", "http://fast.example/0")
	run("explain", s.dir, "explain", "http://"+s.web.Host(0)+"/sitemap.xml")
	run("index", s.dir, "index")
	run("config", s.dir, "config")
	outputs["version"] = []string{ok(t, "version", "-json")}
	run("index", s.dir, "index", "-o", filepath.Join(top, "pages"))
	run("index", sample, "clean")
	run("index", sample, "clean", "-o", filepath.Join(top, "gone"))
	run("readlinks", s.dir, "readlinks")
	run("generate", s.dir, "generate", "-now", "2026-06-05T08:00:00Z")
	outputs["fetch"] = []string{ok(t, s.args("fetch", "-json")...)}
	run("fetch", s.dir, "parse")
	run("update", s.dir, "update")
	run("invert", s.dir, "invert")
	run("generate", s.dir, "generate", "-now", frozen)
	run("inject", s.dir, "inject", seed)
	run("dedup", s.dir, "dedup")
	run("mergesegs", s.dir, "mergesegs")
	run("mergedb", s.dir, "mergedb", sample)
	run("verify", s.dir, "verify")
	run("backup", s.dir, "backup", filepath.Join(top, "backup"))
	run("move", s.dir, "move", "-to", filepath.Join(top, "moved"))
	run("salvage", s.dir, "salvage", filepath.Join(top, "salvaged"))
	run("compact", s.dir, "compact")
	run("mergelinkdb", s.dir, "mergelinkdb", sample)
	run("updatehostdb", s.dir, "updatehostdb")
	run("domainstats", sample, "domainstats", "suffix")
	run("domainstats", sample, "protocolstats")
	run("domainstats", sample, "crawlcomplete")
	dumped := filepath.Join(top, "dump")
	if err := os.WriteFile(dumped, []byte(ok(t, "readdb", "-d", sample, "-dump", "-format", "nutch")), 0o600); err != nil {
		t.Fatal(err)
	}
	run("import", filepath.Join(top, "imported"), "import", dumped)
	outputs["sitemap"] = []string{ok(t, s.args("sitemap", "-json", s.web.Host(0))...), ok(t, s.args("sitemap", "-json", "-list", "http://"+s.web.Host(0)+"/sitemap.xml")...)}
	net := func(what ...string) string {
		return ok(t, append([]string{"check", what[0], "-json", "-agent", "testbot", "-connect-to", s.server.ConnectTo()}, what[1:]...)...)
	}
	outputs["check"] = []string{ok(t, "check", "filter", "-json", seed), ok(t, "check", "normalize", "-json", seed+"#x"), ok(t, "check", "schedule", "-json", seed),
		ok(t, "check", "conf", "-json", "-all"), ok(t, "check", "conf", "-json", "-conf", filepath.Join("testdata", "conf")), net("parse", "-dumpText", seed), net("robots", seed),
		ok(t, "check", "extract", "-json", "-tables", "-base", seed, filepath.Join("testdata", "kettle.html"))}

	// byName reports whether the keys of an object are outcomes, hosts, statuses and the like.
	byName := func(section, name string) bool {
		switch name {
		case "host":
			return section == "readdb"
		case "pages":
			return section == "hosts"
		case "lastmod":
			return section == "sitemap"
		case "after":
			return section == "check"
		}
		return slices.Contains([]string{"outcomes", "metadata", "status", "retry", "host_status", "quantiles", "fields", "rejected", "failures", "parts", "deleted", "counts", "jsonld"}, name)
	}
	// elsewhere is the section that a part of an object is described in.
	elsewhere := func(section, name string) string {
		switch {
		case section == "explain":
			return cmp.Or(map[string]string{"record": "readdb", "host": "hosts", "visit": "readseg", "noisy": "status"}[name], section)
		case name == "freshness":
			return "status"
		case name == "redirects":
			return "crawl"
		}
		return section
	}
	printed := map[string]bool{}
	var check func(section, of string, v any)
	check = func(section, of string, v any) {
		switch v := v.(type) {
		case []any:
			for _, v := range v {
				check(section, of, v)
			}
		case map[string]any:
			for name, v := range v {
				if byName(section, of) {
					if of == "parts" || of == "lastmod" || of == "after" {
						check(section, "", v)
					}
					continue
				}
				printed[name] = true
				if !documented[section][name] {
					t.Errorf("docs/json.md, %s, says nothing about %q of %q", section, name, of)
				}
				check(elsewhere(section, name), name, v)
			}
		}
	}
	for section, all := range outputs {
		if documented[section] == nil {
			t.Errorf("docs/json.md has no section %q", section)
		}
		for _, out := range all {
			d := json.NewDecoder(strings.NewReader(out))
			for d.More() {
				var v map[string]any
				if err := d.Decode(&v); err != nil {
					t.Fatalf("%s: %v in %s", section, err, out)
				}
				noNulls(t, section, v)
				check(section, "", v)
			}
		}
	}
	// What nothing has printed here is a name in the source at least.
	source := sources(t, filepath.Join("..", "..")) + sources(t, filepath.Join("..", "..", "page", "diff")) + sources(t, filepath.Join("..", "..", "httpapi", "feed")) + sources(t, filepath.Join("internal", "verbs")) + sources(t, filepath.Join("internal", "render")) + sources(t, filepath.Join("..", "..", "index"))
	others := []string{"success", "not_modified", "failed", "freegen", "clean"} // outcomes and verbs
	for section, names := range documented {
		for name := range names {
			if !printed[name] && !strings.Contains(source, `"`+name+`"`) && !strings.Contains(source, `json:"`+name+`,`) && !slices.Contains(others, name) {
				t.Errorf("docs/json.md, %s: nothing prints %q", section, name)
			}
		}
	}
}

// sources returns the text of the Go files of a directory, without the tests.
func sources(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
