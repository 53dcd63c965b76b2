package main_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol/webtest"
)

// A crawl takes what -url-rules lets in, and rules that are made later drop what was
// taken before.
func TestURLRules(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 3, PagesPerHost: 6, Calm: true})
	hosts := func() string {
		var names []string
		for line := range strings.Lines(ok(t, "readdb", "-d", s.dir, "-dump", "-format", "text")) {
			if url, is := strings.CutPrefix(line, "URL: http://"); is {
				if name, _, _ := strings.Cut(url, "/"); len(names) == 0 || names[len(names)-1] != name {
					names = append(names, name)
				}
			}
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	two := write(t, "two.txt", "+^http://"+s.web.Host(0)+"/\n+^http://"+s.web.Host(1)+"/\n")
	r := recrawl(t, s.crawl(append([]string{"-url-rules", two}, s.web.Seeds()...)...)...)
	both := []string{s.web.Host(0), s.web.Host(1)}
	slices.Sort(both)
	if got, want := hosts(), strings.Join(both, " "); got != want {
		t.Errorf("a crawl by rules for %s has records of %s\n%+v", want, got, r)
	}
	one := write(t, "one.txt", "# no more\n-^http://"+s.web.Host(0)+"/\n+.\n")
	if out := ok(t, "inject", "-d", s.dir, "-url-rules", one, "-filter-normalize-all"); !strings.HasPrefix(out, "of 12 records 6 filtered") {
		t.Errorf("inject without a seed says %q", out)
	}
	if got := hosts(); got != s.web.Host(1) {
		t.Errorf("rules without %s leave records of %s", s.web.Host(0), got)
	}
	if out := object(t, ok(t, "inject", "-d", s.dir, "-url-rules", one, "-filter-normalize-all", "-json")); out["records"] != 6.0 || out["filtered"] != 0.0 {
		t.Errorf("inject -json without a seed says %v", out)
	}
	// Documents that were indexed before get a deletion.
	if out := ok(t, "index", "-d", s.dir); strings.Count(out, `"deleted":true`) != 6 || strings.Count(out, "\n") != 12 {
		t.Errorf("index after it:\n%s", out)
	}
	if out := ok(t, "index", "-d", s.dir, "-filter", "-url-rules", one); strings.Contains(out, s.web.Host(0)) {
		t.Errorf("index -filter tells of what the rules leave out:\n%s", out)
	}
	if out := ok(t, "check", "filter", "-url-rules", one, "http://"+s.web.Host(0)+"/"); !strings.HasPrefix(out, "-") || !strings.Contains(out, "one.txt:2: ") {
		t.Errorf("check filter names no rule: %q", out)
	}
	if out := ok(t, "explain", "-d", s.dir, "-url-rules", one, "http://"+s.web.Host(0)+"/"); !strings.Contains(out, "rejected by regex filter") {
		t.Errorf("explain says %q", out)
	}
}

func TestInvalidURLRules(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "crawl")
	for file, want := range map[string]string{
		filepath.Join(t.TempDir(), "nowhere"):  "-url-rules: urlfilter: stat",
		write(t, "empty.txt", "# nothing\n"):   "empty.txt: no rules",
		write(t, "bad.txt", "+a\n+(\n"):        "bad.txt:2: ",
		write(t, "bare.txt", "http://a.test/"): "bare.txt:1: ",
	} {
		for _, args := range [][]string{{"inject", "-d", dir, "http://a.example/"}, {"check", "filter", "http://a.example/"}} {
			r := recrawl(t, append(args, "-url-rules", file)...)
			if r.code != 2 || !strings.Contains(r.err, want) {
				t.Errorf("%q with %s: %+v, want %q", args, file, r, want)
			}
		}
	}
	if r := recrawl(t, "inject", "-d", dir, "-filter-normalize-all"); r.code != 1 || !strings.Contains(r.err, "there is no crawl") {
		t.Errorf("nothing to filter: %+v", r)
	}
}

func TestKeepSegments(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 30, Calm: true})
	ok(t, s.crawl(append([]string{"-topN", "5", "-keep-segments", "2"}, s.web.Seeds()...)...)...)
	if out := ok(t, "readseg", "-d", s.dir); strings.Count(out, "\n") != 2 {
		t.Errorf("-keep-segments 2 leaves:\n%s", out)
	}
	ok(t, "verify", "-d", s.dir)
	if r := recrawl(t, s.crawl("-keep-segments", "-1")...); r.code != 2 || !strings.Contains(r.err, "-keep-segments: -1 is negative") {
		t.Errorf("-keep-segments -1: %+v", r)
	}
}
