package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol/webtest"
)

func TestConfigFileGivesFlags(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 12})
	if err := os.MkdirAll(s.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.dir, "recrawl.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("# of the test\nagent: testbot\ndelay: 0s\nconnect-to: [\"" + s.server.ConnectTo() + "\"]\nschedule: learned\nadddays: 3\nnow: " + frozen + "\ncrawl:\n  rounds: 1\n  topN: 4\n")
	if r := recrawl(t, "crawl", "-d", s.dir, s.web.Seeds()[0]); r.code != 0 || !strings.HasPrefix(r.out, "1 rounds, ") || !strings.Contains(r.err, "keeps -schedule learned") {
		t.Fatalf("a crawl with flags from a file: %+v", r)
	}
	if out := ok(t, "verify", "-d", s.dir); !strings.Contains(out, "\nsound\n") {
		t.Errorf("a crawl with a configuration file: %s", out)
	}
	from := func(args ...string) (all []string) {
		t.Helper()
		for line := range strings.Lines(ok(t, append([]string{"config"}, args...)...)) {
			if f := strings.Fields(line); f[len(f)-1] != "default" {
				f[len(f)-1] = filepath.Base(f[len(f)-1])
				all = append(all, strings.Join(f, " "))
			}
		}
		slices.Sort(all)
		return all
	}
	want := []string{"adddays 3 recrawl.yaml:6", "agent testbot recrawl.yaml:2", "connect-to " + s.server.ConnectTo() + " recrawl.yaml:4", "d " + s.dir + " flag", "delay 1s flag",
		"now " + frozen + " recrawl.yaml:7", "rounds 1 recrawl.yaml:9", "schedule learned recrawl.yaml:5", "topN 4 recrawl.yaml:10"}
	if got := from("-d", s.dir, "-delay", "1s"); !slices.Equal(got, want) {
		t.Errorf("config says\n%q\nwant\n%q", got, want)
	}
	// generate has neither rounds nor topN of its own section, and the crawl remembers its schedule.
	write("agent: testbot\n")
	if got, want := from("generate", "-d", s.dir), []string{"d " + s.dir + " flag", "schedule learned saved"}; !slices.Equal(got, want) {
		t.Errorf("config generate says %q, want %q", got, want)
	}
	other := filepath.Join(t.TempDir(), "other.yml")
	if err := os.WriteFile(other, []byte("topN: 7\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if got, want := from("generate", "-d", s.dir, "-config", other), []string{"config " + other + " flag", "d " + s.dir + " flag", "schedule learned saved", "topN 7 other.yml:1"}; !slices.Equal(got, want) {
		t.Errorf("config -config says %q, want %q", got, want)
	}
	if got := from("-d", s.dir, "-config", ""); slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "yaml") }) {
		t.Errorf("config without a file says %q", got)
	}
	// topN of another verb means something else.
	write("topN: 4\n")
	if r := recrawl(t, "readdb", "-d", s.dir); r.code != 2 || !strings.Contains(r.err, "needs one of -stats") {
		t.Errorf("readdb with topN in the file: %+v", r)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	ok(t, "backup", "-d", s.dir, copied)
	if text, err := os.ReadFile(filepath.Join(copied, "recrawl.yaml")); err != nil || string(text) != "topN: 4\n" {
		t.Errorf("the configuration in a backup is %q, %v", text, err)
	}
}

func TestInvalidConfigFilesNameTheLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"agent: x\nagnt: testbot\n": `:2: unknown key "agnt"; did you mean -agent?`,
		"user-agent: testbot\n":     `:1: unknown key "user-agent"; did you mean -agent?`,
		"url-rule: 3\n":             `:1: unknown key "url-rule"; did you mean -url-rules?`,
		"overwrite: true\n":         `:1: unknown key "overwrite"; if it is a flag of another verb, put it below the name of that verb`,
		"\ncrawl:\n  round: 3\n":    `:3: unknown key "round": crawl has no such flag; did you mean -rounds`,
		"crwal:\n  rounds: 3\n":     `:1: "crwal" is not a verb with a configuration; did you mean recrawl crawl?`,
		"threads: many\n":           `:1: threads: "many" is not a value of this flag`,
		"threads: [1, 2]\n":         `:1: threads takes one value`,
		"threads:\n":                `:1: threads has no value`,
		"threads: 3\nthreads: 4\n":  `:2: threads is set twice`,
		"delay: -1s\n":              "-delay: -1s is negative (set by ",
		"readdb:\n  agent: x\n":     `:2: agent has no effect here`,
		"config: x\n":               `:1: config has no effect here`,
		"- agent\n":                 `:1: want lines such as agent: mybot`,
		"agent: [\n":                "yaml: ",
		"agent: x\n---\nagent: y\n": "more than one document",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "recrawl.yaml"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		r := recrawl(t, "crawl", "-d", dir, "-agent", "testbot", "http://a.example/")
		if r.code != 2 || !strings.Contains(r.err, want) || !strings.Contains(r.err, filepath.Join(dir, "recrawl.yaml")) {
			t.Errorf("%q: exit %d, %s\nwant %s", text, r.code, r.err, want)
		}
	}
	if r := recrawl(t, "crawl", "-d", t.TempDir(), "-config", "missing.yaml", "-agent", "x", "http://a.example/"); r.code != 2 || !strings.Contains(r.err, "-config: open missing.yaml") {
		t.Errorf("a file that is missing: %+v", r)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	out := ok(t, "version")
	if !strings.HasPrefix(out, "recrawl ") || !strings.Contains(out, "\nstore format ") {
		t.Error(out)
	}
	if got := ok(t, "--version"); got != out {
		t.Errorf("--version says %q, version %q", got, out)
	}
	if v := object(t, ok(t, "version", "-json")); v["store_format"].(float64) < 10 || v["go"] == "" {
		t.Errorf("version -json: %v", v)
	}
}
