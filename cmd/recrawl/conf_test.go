package main_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol/webtest"
)

// smallWeb has one page that links to others, of which two are alike.
type smallWeb struct {
	mu     sync.Mutex
	agents map[string]bool
}

func (w *smallWeb) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.agents[r.UserAgent()] = true
	w.mu.Unlock()
	switch {
	case r.URL.Path == "/robots.txt":
		fmt.Fprint(rw, "User-agent: confbot\nDisallow: /private/\n")
		return
	case r.URL.Path == "/":
		rw.Header().Set("Content-Type", "text/html")
		fmt.Fprint(rw, `<title>Start</title>
<a href="/a">A</a> <a href="/bb">B</a> <a href="/c.gif">picture</a> <a href="/d?x=1">query</a> <a href="/e;jsessionid=0">session</a>
<a href="http://other.example/">elsewhere</a> <a href="/f//g#top">slashes</a> <a href="/private/p">private</a> <a href="/h">H</a> <a href="/i">I</a>`)
		return
	}
	rw.Header().Set("Content-Type", "text/html")
	text := r.URL.Path
	if text == "/bb" {
		text = "/a"
	}
	fmt.Fprintf(rw, "<title>Page</title> This is %s.", text)
}

func confSite(t *testing.T) (w *smallWeb, args func(verb string, more ...string) []string) {
	w = &smallWeb{agents: map[string]bool{}}
	server, err := webtest.Serve(w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	dir := filepath.Join(t.TempDir(), "crawl")
	return w, func(verb string, more ...string) []string {
		return append([]string{verb, "-d", dir, "-conf", "testdata/conf", "-connect-to", server.ConnectTo(), "-now", frozen}, more...)
	}
}

// Stage by stage a configuration of Nutch decides.
func TestNutchConfDecides(t *testing.T) {
	t.Parallel()
	web, args := confSite(t)
	record := func(path string) map[string]any {
		return object(t, ok(t, args("readdb", "-json", "-url", "http://site.example"+path)...))
	}
	r := recrawl(t, args("inject", "HTTP://site.example", "http://elsewhere.example/", "http://site.example/?query")...)
	if !strings.Contains(r.out, "3 seeds: 1 new") || !strings.Contains(r.out, "2 filtered") {
		t.Errorf("inject: %+v", r)
	}
	if !strings.Contains(r.err, "nutch-site.xml:53: fetcher.thread.fetch: unknown") || !strings.Contains(r.err, "1 properties are not honoured") {
		t.Errorf("nothing tells what has no effect: %s", r.err)
	}
	ok(t, args("generate")...)
	if out := ok(t, args("fetch")...); !strings.Contains(out, "0 parsed") {
		t.Errorf("fetch parses although fetcher.parse is false: %s", out)
	}
	if out := ok(t, args("parse")...); !strings.Contains(out, "1 parsed") {
		t.Errorf("parse: %s", out)
	}
	ok(t, args("update")...)
	ok(t, args("invert")...)
	if !web.agents["confbot/1.0 (https://confbot.example/)"] || len(web.agents) != 1 {
		t.Errorf("the web was asked by %v", web.agents)
	}
	found := ok(t, args("readdb", "-dump", "-format", "csv")...)
	for path, want := range map[string]bool{
		"/": true, "/a": true, "/bb": true, "/e": true, "/f/g": true, "/private/p": true, "/h": true,
		"/c.gif": false, "/d": false, "/e;jsessionid=0": false, "/i": false, // the seventh
	} {
		if got := strings.Contains(found, "http://site.example"+path+","); got != want {
			t.Errorf("%s is known: %v, want %v\n%s", path, got, want, found)
		}
	}
	if strings.Contains(found, "other.example") {
		t.Errorf("the domain filter has no effect:\n%s", found)
	}
	if d := record("/"); d["retryIntervalSeconds"] != 86400.0 || d["score"] != 1.0 || d["statusName"] != "db_fetched" {
		t.Errorf("the start page is %v", d)
	}
	if d := record("/a"); d["retryIntervalSeconds"] != 86400.0 || fmt.Sprint(d["score"]) != "0.16666667" {
		t.Errorf("a page it links to is %v", d)
	}

	// Five of the six, by generate.max.count; a flag goes before it.
	if out := ok(t, args("generate", "-json")...); object(t, out)["selected"] != 5.0 {
		t.Errorf("generate: %s", out)
	}
	if out := ok(t, args("generate", "-json", "-max-per-host", "0")...); object(t, out)["selected"] != 1.0 {
		t.Errorf("generate, the rest: %s", out)
	}
}

// A crawl does what Nutch's script does: it marks duplicates, too.
func TestConfRounds(t *testing.T) {
	t.Parallel()
	_, args := confSite(t)
	ok(t, args("crawl", "http://site.example/")...)
	st := object(t, ok(t, args("readdb", "-stats", "-json")...))
	if got := fmt.Sprint(st["status"]); !strings.Contains(got, "db_duplicate:1") || !strings.Contains(got, "db_gone:1") {
		t.Errorf("after all rounds: %v", got)
	}
	// Two days later nothing has changed: the adaptive schedule lengthens the
	// interval by 0.4.
	later := args("crawl")
	later[len(later)-1] = "2026-01-07T08:00:00Z"
	ok(t, later...)
	d := object(t, ok(t, args("readdb", "-json", "-url", "http://site.example/")...))
	if d["retryIntervalSeconds"] != 120960.0 || d["statusName"] != "db_notmodified" {
		t.Errorf("two days later: %v", d)
	}
}

func TestInvalidConf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	crawl := filepath.Join(dir, "crawl")
	if err := os.WriteFile(filepath.Join(dir, "nutch-site.xml"), []byte("<configuration>\n<property><name>fetcher.threads.fetch</name><value>ten</value></property>\n"+
		"<property><name>db.fetch.retry.max</name><value>x</value></property>\n</configuration>"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		code int
		args []string
		want string
	}{
		{1, []string{"-conf", filepath.Join(dir, "missing")}, "no nutch-site.xml in"},
		{1, []string{"-conf", dir}, `nutch-site.xml:2: fetcher.threads.fetch: "ten" is not a whole number`},
		{1, []string{"-conf", dir}, "\nrecrawl: nutchconf: "},
		{2, []string{"-conf", ""}, "-conf needs the name of a directory"},
		{2, []string{"-corrected"}, "-corrected works only with -conf"},
	} {
		r := recrawl(t, append([]string{"inject", "-d", crawl, "http://site.example/"}, tt.args...)...)
		if r.code != tt.code || !strings.Contains(r.err, tt.want) || r.out != "" {
			t.Errorf("recrawl inject %q: exit %d, want %d and %q:\n%s%s", tt.args, r.code, tt.code, tt.want, r.out, r.err)
		}
		for line := range strings.Lines(r.err) {
			if !strings.HasPrefix(line, "recrawl: ") {
				t.Errorf("%q does not say who is talking", line)
			}
		}
	}
	if _, err := os.Stat(crawl); err == nil {
		t.Error("a configuration that is none made a directory")
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	robots := write(t, "robots.txt", "User-agent: *\nDisallow: /private/\nCrawl-delay: 2\n")
	for _, tt := range []struct {
		args string
		want string
	}{
		{"filter http://a.example/logo.gif", "-http://a.example/logo.gif\t.gif\n"},
		{"filter http://a.example/", "+http://a.example/\n"},
		{"filter -conf testdata/conf http://site.example/?q", "-http://site.example/?q\ttestdata/conf/regex-urlfilter.txt:8: -[?*!@=]\n"},
		{"filter -conf testdata/conf http://other.example/", "-http://other.example/\tdomain filter of 1 entries (testdata/conf/domains.txt)\n"},
		{"filter -conf testdata/conf -normalize http://site.example/a/../b", "+http://site.example/b\ttestdata/conf/domains.txt:2: site.example; testdata/conf/regex-urlfilter.txt:14: +.\n"},
		{"filter -normalize ftp://a.example/", "-ftp://a.example/\tscheme is not crawled\n"},
		{"normalize HTTP://A.example:80/b/../c#d", "http://a.example/c\tscheme, host, port, path, fragment\n"},
		{"normalize http://a.example/", "http://a.example/\n"},
		{"normalize -conf testdata/conf -scope outlink http://a.example/?&b", "http://a.example/?b\ttestdata/conf/regex-normalize.xml:13: \\?& -> \"\\\\?\"\n"},
		{"normalize nothing", "\tno scheme\n"},
		{"robots -agent b -file " + robots + " http://a.example/private/ http://a.example/",
			"not allowed:\thttp://a.example/private/\tline 2: Disallow: /private/\tCrawl-delay: 2s\nallowed:\thttp://a.example/\tCrawl-delay: 2s\n"},
		{"schedule -now 2026-01-01T00:00:00Z -interval 2d http://a.example", "http://a.example/\n  schedule   adaptive\n  interval   2d\n" +
			"  changed    interval 38h24m0s   next 2026-01-02T14:24:00.000Z   in 38h24m0s\n" +
			"  unchanged  interval 2.80d      next 2026-01-03T19:12:00.000Z   in 2.80d\n" +
			"  unknown    interval 2d         next 2026-01-03T00:00:00.000Z   in 2d\n" +
			"  failed     interval 2d         next 2026-01-02T00:00:00.000Z   in 24h0m0s\n" +
			"  gone       interval 3d         next 2026-01-04T00:00:00.000Z   in 3d\n"},
		{"conf -conf testdata/conf", "testdata/conf/nutch-site.xml:48: http.useHttp11: not honoured: net/http speaks HTTP/1.1 and HTTP/2\n" +
			"testdata/conf/nutch-site.xml:53: fetcher.thread.fetch: unknown: Nutch has no such property; did you mean fetcher.threads.fetch?\n" +
			"testdata/conf/parse-plugins.xml parse.plugin.file: this file is not read: recrawl.Options.Parser picks the parser\n"},
	} {
		if out := ok(t, append([]string{"check"}, strings.Fields(tt.args)...)...); out != tt.want {
			t.Errorf("recrawl check %s:\n%swant\n%s", tt.args, out, tt.want)
		}
	}
	j := object(t, ok(t, "check", "filter", "-json", "http://a.example/logo.gif"))
	if j["accepted"] != false || j["rule"] != ".gif" {
		t.Errorf("check filter -json: %v", j)
	}
	if out := ok(t, "check", "conf", "-all"); strings.Count(out, "\n") < 300 || !strings.Contains(out, "\nfetcher.threads.fetch\tyes\tfetch.Options.Threads\n") {
		t.Errorf("check conf -all:\n%s", out)
	}
}

func TestCheckReadsLines(t *testing.T) {
	t.Parallel()
	c := exec.Command(program, "check", "filter")
	c.Stdin = strings.NewReader("http://a.example/\r\n\n  http://a.example/x.gif\nhttp://b.example/")
	if r := finish(t, c); r.code != 0 || r.out != "+http://a.example/\n-http://a.example/x.gif\t.gif\n+http://b.example/\n" {
		t.Errorf("%+v", r)
	}
	c = exec.Command(program, "check", "schedule")
	c.Stdin = strings.NewReader("nonsense\nhttp://a.example/\nhttp://[::1\n")
	if r := finish(t, c); r.code != 1 || strings.Count(r.err, "\n") != 3 || !strings.Contains(r.err, "2 of 3 URLs could not be checked") || !strings.HasPrefix(r.out, "http://a.example/\n") {
		t.Errorf("%+v", r)
	}
	for args, want := range map[string]string{
		"check": "check what?", "check this": `no "this" to check`, "check filter -scope mine x": `unknown scope "mine"`, "check filter": "needs URLs",
		"check conf": "needs -conf DIR", "check robots http://a.example/": "-agent NAME is required", "check parse http://a.example/": "-agent NAME is required",
		"check schedule -interval -1s http://a.example/": `"-1s" is not a time`, "check filter -bogus": "-bogus", "check schedule -now x http://a.example/": "-now",
	} {
		if r := recrawl(t, strings.Fields(args)...); r.code != 2 || !strings.Contains(r.err, want) || r.out != "" {
			t.Errorf("recrawl %s: %+v, want exit 2 and %q", args, r, want)
		}
	}
}

func TestCheckAsks(t *testing.T) {
	t.Parallel()
	web := &smallWeb{agents: map[string]bool{}}
	server, err := webtest.Serve(web)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	check := func(args ...string) result {
		return recrawl(t, append([]string{"check", args[0], "-conf", "testdata/conf", "-connect-to", server.ConnectTo()}, args[1:]...)...)
	}
	r := check("parse", "-dumpText", "http://site.example/")
	for _, want := range []string{"title:\tStart\n", "status:\t200\n", "outlinks:\t10\n", "\n  +http://site.example/a\tA\n",
		"\n  -http://site.example/c.gif\ttestdata/conf/regex-urlfilter.txt:5: -(?i)", "\n  -http://other.example/\tdomain filter", "\n  +http://site.example/f/g\tslashes\n", "elsewhere"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("check parse does not say %q:\n%s%s", want, r.out, r.err)
		}
	}
	if j := object(t, check("parse", "-json", "http://site.example/").out); j["title"] != "Start" || len(j["outlinks"].([]any)) != 10 {
		t.Errorf("check parse -json: %v", j)
	}
	if r := check("parse", "-forceAs", "text/x-unknown", "http://site.example/"); r.code != 1 || !strings.Contains(r.err, `unsupported content type "text/x-unknown"`) {
		t.Errorf("check parse -forceAs: %+v", r)
	}
	if r := check("parse", "-checkRobotsTxt", "http://site.example/private/p"); r.code != 1 || !strings.Contains(r.err, "line 2: Disallow: /private/") {
		t.Errorf("check parse -checkRobotsTxt: %+v", r)
	}
	if r := check("robots", "http://site.example/private/p", "http://site.example/"); r.out != "not allowed:\thttp://site.example/private/p\tline 2: Disallow: /private/\nallowed:\thttp://site.example/\n" {
		t.Errorf("check robots: %+v", r)
	}
	if len(web.agents) != 1 || !web.agents["confbot/1.0 (https://confbot.example/)"] {
		t.Errorf("the web was asked by %v", web.agents)
	}
}

func TestCheckHelp(t *testing.T) {
	t.Parallel()
	helps := map[string]string{"check": ok(t, "check", "--help")}
	for _, what := range []string{"filter", "normalize", "parse", "robots", "schedule", "conf"} {
		if !strings.Contains(helps["check"], "\n  "+what+" ") {
			t.Errorf("check --help does not say %s", what)
		}
		help := ok(t, "check", what, "--help")
		if !strings.Contains(help, "Usage: recrawl check "+what+" [flags]") || !strings.Contains(help, "\n  recrawl check "+what+" ") || !strings.Contains(help, "\n  -conf DIR ") {
			t.Errorf("check %s --help does not teach:\n%s", what, help)
		}
		helps["check "+what] = help
	}
	helps["crawl"] = ok(t, "crawl", "--help")
	if !strings.Contains(helps["crawl"], "\n  -conf DIR ") {
		t.Error("crawl --help does not show -conf")
	}
	for verb, text := range helps {
		for line := range strings.Lines(text) {
			if line = strings.TrimSuffix(line, "\n"); len(line) > 80 || strings.HasSuffix(line, " ") || strings.ContainsAny(line, "\t`{}") {
				t.Errorf("recrawl %s --help: %q is too long for a terminal, or not clean", verb, line)
			}
		}
	}
}

// confOf makes a configuration with these properties and rules.
func confOf(t *testing.T, properties, regexFilter string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"nutch-site.xml": `<configuration><property><name>plugin.includes</name><value>protocol-http|urlfilter-regex|parse-html|urlnormalizer-basic|scoring-opic</value></property>` +
			`<property><name>http.agent.name</name><value>testbot</value></property>` + properties + `</configuration>`,
		"regex-urlfilter.txt": regexFilter,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Nutch's freegen takes URLs as they come.
func TestConfFreegen(t *testing.T) {
	t.Parallel()
	conf := confOf(t, "", "-[?]\n+.\n")
	urls := write(t, "urls.txt", "http://a.example/?q\nhttp://a.example/x/../y\n")
	for args, want := range map[string][]string{
		"":                     {"http://a.example/?q", "http://a.example/x/../y"},
		"-normalize":           {"http://a.example/?q", "http://a.example/y"},
		"-filter":              {"http://a.example/x/../y"},
		"-corrected":           {"http://a.example/y"},
		"-corrected -noFilter": {"http://a.example/?q", "http://a.example/y"},
	} {
		dir := filepath.Join(t.TempDir(), "crawl")
		ok(t, append(append([]string{"freegen", "-d", dir, "-conf", conf}, strings.Fields(args)...), urls)...)
		got := ok(t, "readseg", "-d", dir, "-dump", "-json")
		for _, u := range want {
			if !strings.Contains(got, `"url":"`+u+`"`) {
				t.Errorf("freegen %s: %s is not there:\n%s", args, u, got)
			}
		}
		if n := strings.Count(got, "\n"); n != len(want) {
			t.Errorf("freegen %s: %d URLs, want %d\n%s", args, n, len(want), got)
		}
	}
}

// With db.update.purge.404 Nutch's inject, dedup and mergedb drop all that is gone,
// and with it so do we, unless a flag or -corrected says otherwise.
func TestConfPurges(t *testing.T) {
	t.Parallel()
	conf := confOf(t, `<property><name>db.update.purge.404</name><value>true</value></property>`, "+.\n")
	crawl := func() string {
		return crawlWith(t, []crawldb.Datum{pageOf("http://a.example/", "s", crawldb.Fetched, 0), pageOf("http://a.example/gone", "t", crawldb.Gone, 0)})
	}
	for args, purged := range map[string]bool{
		"inject http://a.example/":                   true,
		"inject -corrected http://a.example/":        false,
		"inject -purge-gone=false http://a.example/": false,
		"dedup":                         true,
		"dedup -corrected":              false,
		"mergedb SRC":                   true,
		"mergedb -purge-gone=false SRC": false,
	} {
		dir := crawl()
		fields := strings.Fields(strings.ReplaceAll(args, "SRC", dir))
		if strings.HasPrefix(args, "mergedb") {
			dir = filepath.Join(t.TempDir(), "new")
		}
		ok(t, append([]string{fields[0], "-d", dir, "-conf", conf}, fields[1:]...)...)
		if _, there := statusOf(t, dir)["http://a.example/gone"]; there == purged {
			t.Errorf("%s: the page is there: %v", args, there)
		}
	}
}
