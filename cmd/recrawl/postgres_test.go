//go:build servers

package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/stores/pgstore/pgtest"
)

// serveInto is serve for a crawl in a database.
func serveInto(t *testing.T, dsn string, w *webtest.Web) *site {
	t.Helper()
	s := serve(t, w)
	s.dir = dsn
	return s
}

// A crawl in PostgreSQL gives what a crawl in a directory gives, also if its process is killed
// again and again.
func TestCrawlInPostgresGivesWhatDirectoryGives(t *testing.T) {
	server := pgtest.Start(t, "fsync = off")
	web := func() *webtest.Web { return &webtest.Web{Hosts: 3, PagesPerHost: 40, Calm: true} }
	inDir := serve(t, web())
	ok(t, inDir.crawl(append([]string{"-topN", "20"}, inDir.web.Seeds()...)...)...)
	want := dump(t, inDir.dir)

	undisturbed := serveInto(t, pgtest.DSNAt(server.Address(), "undisturbed"), web())
	ok(t, undisturbed.crawl(append([]string{"-topN", "20"}, undisturbed.web.Seeds()...)...)...)
	same(t, "in PostgreSQL", dump(t, undisturbed.dir), want)
	if out := ok(t, undisturbed.crawl()...); !strings.HasPrefix(out, "0 rounds, 0 visits") {
		t.Errorf("crawl after the last round says %q", out)
	}

	killed := serveInto(t, pgtest.DSNAt(server.Address(), "killed"), web())
	args := killed.crawl(append([]string{"-topN", "20"}, killed.web.Seeds()...)...)
	for _, after := range []time.Duration{400 * time.Millisecond, 6 * time.Second} { // the second waits for the lease of the first
		c := exec.Command(program, args...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(after)
		c.Process.Kill()
		c.Wait()
	}
	ok(t, args...)
	same(t, "after kills", dump(t, killed.dir), want)
}

// Pages of a crawl in a database are served beside a crawl that is running there, and change it when none is.
func TestServePostgres(t *testing.T) {
	server := pgtest.Start(t, "fsync = off")
	s := serveInto(t, pgtest.DSNAt(server.Address(), "served"), &webtest.Web{Hosts: 1, PagesPerHost: 40, Calm: true, Latency: 20 * time.Millisecond})
	seed := s.web.Seeds()[0]
	ok(t, "inject", "-d", s.dir, seed)
	pages, stop := serveCrawl(t, "-d", s.dir, "-allow", "add_seeds")
	defer stop()
	var list struct {
		URLs []struct{ URL, Status string }
	}
	count := func() int {
		if status := pages.do("GET", "urls?status=fetched", "", &list); status != 200 {
			t.Errorf("%d", status)
		}
		return len(list.URLs)
	}
	if n := count(); n != 0 {
		t.Errorf("%d pages before the crawl", n)
	}
	c, out, errs := start(t, s.crawl("-topN", "10")...)
	until(t, "pages of the running crawl", func() bool { return count() > 0 })
	if r := wait(t, c, out, errs); r.code != 0 || count() < 40 {
		t.Errorf("%+v, %d pages", r, len(list.URLs))
	}
	if status := pages.do("POST", "seeds", "urls="+url.QueryEscape(seed+"more"), nil); status != 200 {
		t.Errorf("add a seed: %d", status)
	}
	if pages.do("GET", "urls?status=unfetched", "", &list); len(list.URLs) != 1 {
		t.Errorf("%+v", list)
	}
	ok(t, s.crawl("-rounds", "1")...)
}

// What a verb cannot do with a database, and a crawl that is in use, are errors that say so.
func TestVerbsThatNeedDirectoryRefusePostgres(t *testing.T) {
	server := pgtest.Start(t, "fsync = off")
	dsn := strings.Replace(pgtest.DSNAt(server.Address(), "verbs"), "recrawl@", "recrawl:secret@", 1)
	rules := writeRules(t)
	for _, test := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"readdb", "-d", dsn, "-stats"}, 1, "no such crawl"},
		{[]string{"inject", "-d", dsn, "http://site.example/"}, 0, ""},
		{[]string{"verify", "-d", dsn}, 2, "works on the files"},
		{[]string{"salvage", "-d", dsn, t.TempDir() + "/new"}, 2, "works on the files"},
		{[]string{"backup", "-d", dsn, t.TempDir() + "/new"}, 2, "works on the files"},
		{[]string{"compact", "-d", dsn}, 2, "works on the files"},
		{[]string{"changes", "-d", dsn, "-consumer", "a", "-follow"}, 2, "-follow works on a crawl in a directory"},
		{[]string{"changes", "-d", dsn, "-consumer", "a"}, 0, ""},
		{[]string{"readdb", "-d", "mysql://host/db", "-stats"}, 2, "mysql://"},
		{[]string{"readdb", "-d", "postgres://recrawl:secret@127.0.0.1:1/none", "-stats"}, 1, "127.0.0.1"},
		{[]string{"readdb", "-d", dsn, "-stats"}, 0, ""},
		{[]string{"status", "-d", dsn}, 0, ""},
		{[]string{"crawl", "-d", dsn, "-agent", "b", "-allow-private", "-connect-to", "::127.0.0.1:9", "-delay", "0", "-rounds", "1", "-schedule", "learned", "-fields", rules}, 0, ""},
		{[]string{"crawl", "-d", dsn, "-agent", "b", "-allow-private", "-connect-to", "::127.0.0.1:9", "-delay", "0", "-rounds", "1", "-budget", "100", "-signature", "field=price"}, 0, "keeps -schedule learned -budget 100"},
		{[]string{"config", "-d", dsn}, 0, ""},
		{[]string{"config", "-json", "-d", dsn}, 0, ""},
		{[]string{"mergedb", "-d", t.TempDir() + "/dir", dsn}, 0, ""},
	} {
		r := recrawl(t, test.args...)
		if strings.Contains(r.out+r.err, "secret") {
			t.Errorf("recrawl %s shows the password", strings.Join(test.args, " "))
		}
		if r.code != test.code || !strings.Contains(r.err, test.text) {
			t.Errorf("recrawl %s: exit %d, want %d with %q\n%s", strings.Join(test.args, " "), r.code, test.code, test.text, r.err)
		}
	}
}

// A crawl moves into PostgreSQL and back, killed on the way, and goes on there and here.
func TestCrawlMovesIntoPostgresAndBack(t *testing.T) {
	server := pgtest.Start(t, "fsync = off")
	web := func() *webtest.Web { return &webtest.Web{Hosts: 3, PagesPerHost: 40, Calm: true} }
	stays := serve(t, web())
	ok(t, stays.crawl(append([]string{"-topN", "40"}, stays.web.Seeds()...)...)...)
	want := dump(t, stays.dir)

	s := serve(t, web())
	ok(t, s.crawl(append([]string{"-topN", "40", "-rounds", "1"}, s.web.Seeds()...)...)...)
	dir, dsn, back := s.dir, pgtest.DSNAt(server.Address(), "moved"), t.TempDir()+"/back"
	c := exec.Command(program, "move", "-d", dir, "-to", dsn)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	c.Process.Kill()
	if c.Wait() != nil { // otherwise it was complete
		ok(t, "move", "-d", dir, "-to", dsn)
	}
	same(t, "in PostgreSQL", dump(t, dsn), dump(t, dir))
	s.dir = dsn
	ok(t, s.crawl("-topN", "40", "-rounds", "1")...)
	ok(t, "move", "-d", dsn, "-to", back)
	s.dir = back
	ok(t, s.crawl("-topN", "40")...)
	same(t, "after there and back", dump(t, back), want)
	ok(t, "verify", "-d", back)
}

// Two processes work on a divided crawl. One is killed and started again. Together they find what one
// process finds alone.
func TestTwoWorkersInPostgresGiveWhatOneGives(t *testing.T) {
	server := pgtest.Start(t, "fsync = off")
	web := func() *webtest.Web { return &webtest.Web{Hosts: 8, PagesPerHost: 25, Calm: true} }
	alone := serve(t, web())
	ok(t, alone.crawl(alone.web.Seeds()...)...)
	want := dump(t, alone.dir)

	s := serveInto(t, pgtest.DSNAt(server.Address(), "shared"), web())
	args := append([]string{"-groups", "4", "-hot-domain", "example.test", "-lease", "2s"}, s.web.Seeds()...)
	var workers []*exec.Cmd
	begin := func() *exec.Cmd {
		c := exec.Command(program, s.crawl(args...)...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	workers = append(workers, begin(), begin())
	time.Sleep(time.Second)
	workers[0].Process.Kill()
	workers[0].Wait()
	workers[0] = begin()
	for _, c := range workers {
		if err := c.Wait(); err != nil {
			t.Errorf("a worker: %v", err)
		}
	}
	// The names of segments have their group; importance depends on the order of the visits.
	differs := regexp.MustCompile(`"segment":"[^"]*"|"(score|priority|boost)":[0-9.e+-]+|"opic[a-z.]*":"[^"]*"`)
	same(t, "by two workers", differs.ReplaceAllString(dump(t, s.dir), ""), differs.ReplaceAllString(want, ""))
	if r := recrawl(t, "inject", "-d", s.dir, "http://site.example/"); r.code != 1 || !strings.Contains(r.err, "divided among groups") {
		t.Errorf("inject: exit %d, %s", r.code, r.err)
	}
	for _, args := range [][]string{{"status"}, {"readseg", "-list"}, {"hosts"}, {"explain", s.web.Seeds()[0]}} {
		ok(t, append(args, "-d", s.dir)...)
	}
}

// A worker extracts fields, compares pages, renders and reads documents as a crawl in a directory does.
func TestWorkerInPostgresReadsPagesAsInDirectory(t *testing.T) {
	server := pgtest.Start(t, "fsync = off")
	mux := http.NewServeMux()
	page := func(path, kind, body string) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, body)
		})
	}
	page("/kettle", "text/html", "<title>Shop</title><main><h1>Kettle</h1><p>A kettle of steel for water, with a filter at the spout.<p class=price>34.90 €</main>")
	page("/notes.md", "text/markdown", "# Notes of a crawler\n\nRead them.\n")
	page("/app", "text/html", `<title>App</title><div id="root"></div><script src="/app.js"></script>`)
	page("/app.js", "text/javascript", `document.getElementById("root").textContent = "Made by a script"`)
	s := httptest.NewServer(mux)
	defer s.Close()
	rules := writeRules(t)
	var documents []string
	for _, args := range [][]string{{"-d", t.TempDir()}, {"-d", pgtest.DSNAt(server.Address(), "extracted"), "-groups", "1"}} {
		ok(t, slices.Concat([]string{"crawl"}, args, []string{"-agent", "testbot", "-allow-private", "-delay", "0", "-documents", "-render", "auto", "-fields", rules, "-signature", "main", s.URL + "/kettle", s.URL + "/notes.md", s.URL + "/app"})...)
		lines := strings.Split(strings.TrimSpace(ok(t, "index", "-d", args[1])), "\n")
		slices.Sort(lines)
		documents = append(documents, regexp.MustCompile(`"(segment|fetched|boost|modified)":[^,]*,?`).ReplaceAllString(strings.Join(lines, "\n"), ""))
	}
	if documents[1] != documents[0] || !strings.Contains(documents[0], `"price":["34.90"]`) || !strings.Contains(documents[0], "Notes of a crawler") || !strings.Contains(documents[0], "Made by a script") {
		t.Errorf("a worker:\n%s\na crawl in a directory:\n%s", documents[1], documents[0])
	}
}
