package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestSeedsFromFilesAndStdin(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "seeds")
	for name, text := range map[string]string{"a.txt": "http://a.example/\n", "b.txt": "http://b.example/\tkey=value\n\nno url\n", "sub/c.txt": "http://c.example/\n"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	crawl := filepath.Join(t.TempDir(), "crawl")
	if r := recrawl(t, "inject", "-d", crawl, "-seeds", dir); r.code != 1 || !strings.Contains(r.err, "b.txt:3:") || !strings.HasPrefix(r.out, "3 seeds: 2 new") {
		t.Errorf("a directory: %+v", r)
	}
	if out := ok(t, "inject", "-d", crawl, "-seeds", filepath.Join(dir, "sub", "c.txt")); !strings.HasPrefix(out, "1 seeds: 1 new") {
		t.Errorf("a file: %s", out)
	}
	c := exec.Command(program, "inject", "-d", crawl, "-seeds", "-")
	c.Stdin = strings.NewReader("http://d.example/\n# no seed\nhttp://a.example/\n")
	if r := finish(t, c); r.code != 0 || !strings.HasPrefix(r.out, "2 seeds: 1 new, 0 merged, 1 known") {
		t.Errorf("standard input: %+v", r)
	}
	c = exec.Command(program, "inject", "-d", crawl, "-seeds", "-")
	if r := finish(t, c); r.code != 1 || !strings.Contains(r.err, "standard input: it has no seeds") {
		t.Errorf("nothing on standard input: %+v", r)
	}
	if r := recrawl(t, "inject", "-d", crawl, "-seeds", filepath.Join(dir, "nowhere")); r.code != 1 || !strings.Contains(r.err, "nowhere") {
		t.Errorf("a file that is not there: %+v", r)
	}
}

func TestSeedsWithoutRules(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                    "0 new, 0 merged, 0 known, 0 duplicate, 1 filtered",
		"-no-filter":          "1 new",
		"-noFilter -no-norm":  "1 new",
		"-noNormalize -v":     "1 filtered",
		"-no-filter -update":  "1 new",
		"-scoring depth=3":    "1 filtered",
		"-scoring opic,depth": "1 filtered",
	} {
		crawl := filepath.Join(t.TempDir(), "crawl")
		line := append([]string{"inject", "-d", crawl}, strings.Fields(args)...)
		if r := recrawl(t, append(line, "http://a.example/x.jpg")...); !strings.Contains(r.out, want) {
			t.Errorf("%s: %+v, want %q", args, r, want)
		}
	}
}

func TestScoringFilters(t *testing.T) {
	t.Parallel()
	crawl := filepath.Join(t.TempDir(), "crawl")
	for value, want := range map[string]string{
		"":              "-scoring needs the names of filters",
		"hits":          `unknown filter "hits"; choose from opic, pagerank, depth`,
		"opic,pagerank": "replaces the scores of opic and link",
		"pagerank=1":    `pagerank takes no value, not "1"`,
		"opic,,depth":   "-scoring needs the names of filters",
		"opic,opic":     "opic is named twice",
		"depth=deep":    "depth=deep is not a number of levels",
		"depth=0":       "depth=0 is not a number of levels",
		"opic=1":        `opic takes no value, not "1"`,
		"urlmeta":       "urlmeta needs the names",
		"urlmeta=a++b":  "urlmeta=a++b has an empty name",
		"scoring-depht": `unknown filter "depht"`,
	} {
		if r := recrawl(t, "inject", "-d", crawl, "-scoring", value, "http://a.example/"); r.code != 2 || !strings.Contains(r.err, want) {
			t.Errorf("%q: %+v, want %q", value, r, want)
		}
	}
	if _, err := os.Stat(crawl); err == nil {
		t.Error("a command line that is none made a directory")
	}
	seed := write(t, "seeds.txt", "http://a.example/\t_maxdepth_=2\ttopic=news\n")
	ok(t, "inject", "-d", crawl, "-scoring", "scoring-depth=5, urlmeta=topic", "-seeds", seed)
	if out := ok(t, "readdb", "-d", crawl, "-url", "http://a.example/"); !strings.Contains(out, "depth.depth") || !strings.Contains(out, "topic") {
		t.Errorf("%s", out)
	}
}

func TestRulesForAllRecords(t *testing.T) {
	t.Parallel()
	crawl := filepath.Join(t.TempDir(), "crawl")
	ok(t, "inject", "-d", crawl, "-no-filter", "-no-norm", "HTTP://A.example:80/x/../y", "http://b.example/z.jpg", "http://c.example/")
	out := ok(t, "inject", "-d", crawl, "-filterNormalizeAll", "http://a.example/y")
	if !strings.HasPrefix(out, "of 3 records 1 filtered, 0 invalid, 0 gone purged, 1 moved (0 merged)\n1 seeds: 0 new, 0 merged, 1 known") {
		t.Errorf("%s", out)
	}
	if r := recrawl(t, "readdb", "-d", crawl, "-url", "http://b.example/z.jpg"); r.code == 0 {
		t.Errorf("%+v", r)
	}
}

// Verbs name the seeds that are not requested. crawl ends with exit code 1; stages go on, since
// other stages follow.
func TestRefusedSeedsAreNamed(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "User-agent: *\nDisallow: /forbidden\n")
	}))
	t.Cleanup(site.Close)
	rules := write(t, "rules.txt", "-/new-rule\n+.\n")
	network := []string{"-agent", "testbot", "-delay", "0", "-now", frozen}
	allow := append([]string{"-allow-private", "-allow-port", strings.TrimPrefix(site.URL, "http://127.0.0.1:")}, network...)
	for _, c := range []struct {
		name, seed, reason string
		args               []string
	}{
		{"guard", site.URL + "/", "address: loopback", append(network, allow[1:3]...)},
		{"robots.txt", site.URL + "/forbidden", "robots.txt", allow},
		{"rules", site.URL + "/new-rule", "the rules reject it", append([]string{"-url-rules", rules}, allow...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "crawl")
			ok(t, "inject", "-d", dir, "-now", frozen, c.seed, site.URL+"/page")
			named := "recrawl: the seed " + c.seed + " was not requested: " + c.reason
			r := recrawl(t, append([]string{"crawl", "-d", dir}, c.args...)...)
			if r.code != 1 || !strings.Contains(r.err, named) {
				t.Errorf("crawl: exit %d: %s", r.code, r.err)
			}

			dir = filepath.Join(t.TempDir(), "stages")
			ok(t, "inject", "-d", dir, "-now", frozen, c.seed, site.URL+"/page")
			generate := []string{"generate", "-d", dir, "-now", frozen}
			if c.name == "rules" {
				generate, named = append(generate, "-url-rules", rules), "recrawl: the rules reject the seed "+c.seed
			}
			g := recrawl(t, generate...)
			f := recrawl(t, append([]string{"fetch", "-d", dir}, c.args...)...)
			if g.code != 0 || f.code != 0 || !strings.Contains(g.err+f.err, named) {
				t.Errorf("generate: exit %d: %s; fetch: exit %d: %s", g.code, g.err, f.code, f.err)
			}
		})
	}
}
