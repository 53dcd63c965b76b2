package main_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

func TestStagesByHandGiveWhatCrawlGives(t *testing.T) {
	t.Parallel()
	byCrawl := serve(t, &webtest.Web{Hosts: 2, PagesPerHost: 30, Calm: true})
	ok(t, byCrawl.crawl(append([]string{"-topN", "10"}, byCrawl.web.Seeds()...)...)...)

	byHand := serve(t, &webtest.Web{Hosts: 2, PagesPerHost: 30, Calm: true})
	seeds := write(t, "seeds.txt", "# where to begin\n\n"+strings.Join(byHand.web.Seeds(), "\n")+"\n")
	ok(t, "inject", "-d", byHand.dir, "-now", frozen, "-seeds", seeds)
	rounds := 0
	for ; rounds < 100; rounds++ {
		r := recrawl(t, "generate", "-d", byHand.dir, "-now", frozen, "-topN", "10")
		if r.code != 0 {
			t.Fatalf("generate: exit %d: %s", r.code, r.err)
		}
		name := strings.TrimSuffix(r.out, "\n")
		if name == "" {
			if !strings.Contains(r.err, "nothing is due; next at 2026-0") {
				t.Errorf("generate that finds nothing says %q", r.err)
			}
			break
		}
		if rounds%2 == 0 {
			ok(t, byHand.args("fetch", name)...)
		} else { // the newest is meant
			ok(t, byHand.args("fetch", "-no-parse")...)
			ok(t, "parse", "-d", byHand.dir, "-agent", "testbot", "-now", frozen)
		}
		ok(t, "update", "-d", byHand.dir, "-now", frozen, name)
		if out := ok(t, "update", "-d", byHand.dir, "-now", frozen); !strings.Contains(out, "was already applied") {
			t.Errorf("the second update says %q", out)
		}
		ok(t, "invert", "-d", byHand.dir, "-now", frozen)
	}
	if rounds < 6 {
		t.Errorf("%d rounds of 10 pages for 60 pages", rounds)
	}
	same(t, "by hand", dump(t, byHand.dir), dump(t, byCrawl.dir))
	// And crawl finds nothing left to do.
	if out := ok(t, byHand.crawl()...); !strings.HasPrefix(out, "0 rounds, 0 visits") {
		t.Errorf("crawl after the last stage says %q", out)
	}
}

func TestRoundsEnd(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 2, PagesPerHost: 40, Calm: true})
	r := object(t, ok(t, s.crawl(append([]string{"-json", "-rounds", "2"}, s.web.Seeds()...)...)...))
	if r["rounds"] != 2.0 || r["finished"] != true {
		t.Errorf("-rounds 2: %v", r)
	}
	if n := r["visits"].(float64); n <= 2 || n >= 80 {
		t.Errorf("two rounds made %v visits", n)
	}
	// Without a bound it ends when nothing is due, and says when something is.
	r = object(t, ok(t, s.crawl("-json", "-rounds", "0")...))
	if due, _ := r["next_due"].(string); !strings.HasPrefix(due, "2026-02-04T08:00:00") {
		t.Errorf("next due %q, want 30 days later", due)
	}
	st := object(t, ok(t, "readdb", "-d", s.dir, "-stats", "-json", "-now", frozen))
	if st["total"] != 80.0 || st["due"] != 0.0 || st["leased"] != 0.0 {
		t.Errorf("all done, yet %v", st)
	}
	if n := s.web.Count(s.web.Seeds()[0]); n != 1 {
		t.Errorf("a seed was requested %d times", n)
	}
}

func TestRoundTimeBoundsARound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		time string
		most float64 // visits to a host in a round
	}{{"5ms", 5}, {"0", 20}, {"1h", 20}} {
		s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 20, Calm: true})
		args := s.crawl(append([]string{"-json", "-round-time", test.time}, s.web.Seeds()...)...)
		args[slices.Index(args, "-delay")+1] = "1ms"
		r := object(t, ok(t, args...))
		visits, rounds := r["visits"].(float64), r["rounds"].(float64)
		if visits != 20 || visits > rounds*test.most || test.most == 20 && rounds > 4 {
			t.Errorf("%s: %v visits in %v rounds", test.time, visits, rounds)
		}
	}
}

func TestAddDaysLooksAgainAndAdapts(t *testing.T) {
	t.Parallel()
	var days atomic.Int64
	clock := func() time.Time { return parsed(frozen).AddDate(0, 0, int(days.Load())) }
	s := serve(t, &webtest.Web{Hosts: 2, PagesPerHost: 30, Calm: true, Now: clock})
	ok(t, s.crawl(s.web.Seeds()...)...)
	first := records(t, s.dir)
	days.Store(20)
	args := s.crawl("-adddays", "31", "-json")
	args[slices.Index(args, "-now")+1] = clock().Format(time.RFC3339)
	r := object(t, ok(t, args...))
	if r["visits"] != float64(len(first)) {
		t.Errorf("%v visits, want %d", r["visits"], len(first))
	}
	if n := r["outcomes"].(map[string]any)["not_modified"]; n == nil || n.(float64) < 5 {
		t.Errorf("outcomes %v: no 304", r["outcomes"])
	}
	changed, unchanged := 0, 0
	for url, d := range records(t, s.dir) {
		truth, _ := s.web.Page(url)
		before, after := first[url].Interval, d.Interval
		if truth.Changed.After(parsed(frozen)) {
			if changed++; d.Status != "db_fetched" || after >= before {
				t.Errorf("%s changed: %s, %d s after %d s", url, d.Status, after, before)
			}
		} else if unchanged++; d.Status != "db_notmodified" || after <= before {
			t.Errorf("%s did not change: %s, %d s after %d s", url, d.Status, after, before)
		}
	}
	if changed < 5 || unchanged < 5 {
		t.Fatalf("%d changed, %d did not: this tests nothing", changed, unchanged)
	}
}

type recordLine struct {
	URL      string `json:"url"`
	Status   string `json:"statusName"`
	Interval int64  `json:"retryIntervalSeconds"`
	Score    float64
}

func records(t *testing.T, dir string) map[string]recordLine {
	t.Helper()
	all := map[string]recordLine{}
	for line := range strings.Lines(ok(t, "readdb", "-d", dir, "-dump", "-format", "json")) {
		var r recordLine
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all[r.URL] = r
	}
	return all
}

func TestConnectToRefusesUnmappedHosts(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 3, Calm: true})
	args := s.crawl(s.web.Seeds()[0], "http://elsewhere.example/")
	args[slices.Index(args, "-connect-to")+1] = s.web.Host(0) + ":80:" + s.server.Addr
	if r := recrawl(t, args...); r.code != 1 || !strings.Contains(r.err, "the seed http://elsewhere.example/ was not requested") {
		t.Errorf("%+v", r)
	}
	visit := ok(t, "readseg", "-d", s.dir, "-part", "crawl_fetch", "-url", "http://elsewhere.example/")
	hosts := ok(t, "hosts", "-d", s.dir)
	if !strings.Contains(visit, "connect") {
		t.Errorf("the record of the visit does not tell the reason:\n%s\n%s", visit, hosts)
	}
	if all := records(t, s.dir); all[s.web.Seeds()[0]].Status != "db_fetched" || all["http://elsewhere.example/"].Status == "db_fetched" {
		t.Errorf("%v", all)
	}
}

func TestSeedFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "crawl")
	garbage := write(t, "seeds.txt", "http://good.example/\n# a comment\n\nnot a url\n  http://also.good.example/\tnutch.score=2\tcolour=red  \r\nftp://x.example/\nhttp://bad.example/\tnutch.score=abc\nhttp://[::1\n\x00\xff\xfe\nhttp://good.example\n")
	r := recrawl(t, "inject", "-d", dir, "-seeds", garbage)
	if r.code != 1 || r.out != "8 seeds: 2 new, 0 merged, 0 known, 1 duplicate, 0 filtered, 5 invalid\n" {
		t.Errorf("exit %d, %q", r.code, r.out)
	}
	for _, want := range []string{`seeds.txt:4: "not a url"`, `seeds.txt:6: "ftp://x.example/"`, `seeds.txt:7: "http://bad.example/"`, `seeds.txt:8: "http://[::1"`, `seeds.txt:9: "`, "5 of 8 seeds could not be used; the others were injected"} {
		if !strings.Contains(r.err, want) {
			t.Errorf("standard error does not say %q:\n%s", want, r.err)
		}
	}
	all := records(t, dir)
	if len(all) != 2 || all["http://also.good.example/"].Score != 2 || all["http://good.example/"].Score != 1 {
		t.Errorf("injected %v", all)
	}
	if out := ok(t, "readdb", "-d", dir, "-url", "HTTP://ALSO.good.example"); !strings.Contains(out, "\tcolour=red\n") {
		t.Errorf("the record is\n%s", out)
	}

	empty := write(t, "empty.txt", "# nothing\n\n")
	for _, tt := range []struct{ file, want string }{
		{empty, "it has no seeds"},
		{filepath.Join(t.TempDir(), "missing"), "missing: no such file or directory"},
		{t.TempDir(), "-seeds: no file in the directory "},
	} {
		for _, verb := range [][]string{{"inject", "-d", dir}, {"crawl", "-d", dir, "-agent", "testbot"}} {
			if r := recrawl(t, append(verb, "-seeds", tt.file)...); r.code != 1 || !strings.Contains(r.err, tt.want) {
				t.Errorf("%s -seeds %s: exit %d, %q, want 1 and %q", verb[0], tt.file, r.code, r.err, tt.want)
			}
		}
	}

	// crawl does its work although a seed is bad, and still says so at the end.
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 4, Calm: true})
	r = recrawl(t, s.crawl("-seeds", write(t, "seeds.txt", "nonsense\n"+s.web.Seeds()[0]+"\n"))...)
	if r.code != 1 || !strings.Contains(r.err, `seeds.txt:1: "nonsense"`) || !strings.Contains(r.out, "success       4") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	if len(records(t, s.dir)) != 4 {
		t.Error("not everything was crawled")
	}

	// An invalid URL among the arguments is named without a line.
	r = recrawl(t, "inject", "-d", dir, "http://", "http://third.example/")
	if r.code != 1 || !strings.Contains(r.err, `"http://"`) || strings.Contains(r.err, ":2:") || len(records(t, dir)) != 3 {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 2, PagesPerHost: 20, Calm: true})
	ok(t, s.crawl(s.web.Seeds()...)...)
	seed := s.web.Seeds()[0]
	d := func(args ...string) []string { return append([]string{args[0], "-d", s.dir}, args[1:]...) }
	name, _, _ := strings.Cut(ok(t, d("readseg")...), "\t")

	for _, args := range [][]string{
		d("readdb", "-stats", "-json"), d("readdb", "-url", seed, "-json"), d("readdb", "-top", "3", "-json"),
		d("readlinks", "-url", seed, "-json"), d("readseg", "-json"), d("hosts", "-json"), d("explain", "-json", seed), d("explain", "-json", "::"),
		d("generate", "-json", "-now", frozen), d("update", "-json"), d("invert", "-json"), d("inject", "-json", seed),
		s.args("fetch", "-json"), d("parse", "-json", "-agent", "testbot"), s.crawl("-json"),
		d("index", "-json", "-o", filepath.Join(t.TempDir(), "pages.jsonl")),
		d("readseg", "-json", "-part", "crawl_fetch", "-url", seed, name),
	} {
		object(t, ok(t, args...))
	}
	if r := object(t, ok(t, s.crawl("-json")...)); len(r["segments"].([]any)) != 0 {
		t.Errorf("nothing is due, but %v was crawled", r["segments"])
	}
	for _, args := range [][]string{d("readdb", "-dump", "-json"), d("readlinks", "-json"), d("index"), d("readseg", "-json", name)} {
		n := 0
		for line := range strings.Lines(ok(t, args...)) {
			object(t, line)
			n++
		}
		if n == 0 {
			t.Errorf("%q prints nothing", args)
		}
	}

	rows, err := csv.NewReader(strings.NewReader(ok(t, d("readdb", "-dump", "-format", "csv")...))).ReadAll()
	if err != nil || len(rows) != 41 || rows[0][0] != "Url" {
		t.Errorf("csv: %v, %d rows", err, len(rows))
	}
	if top := strings.Split(strings.TrimSpace(ok(t, d("readdb", "-top", "5")...)), "\n"); len(top) != 5 || !strings.Contains(top[0], "\thttp://") {
		t.Errorf("top: %q", top)
	}
	contain := func(args []string, wants ...string) {
		t.Helper()
		out := ok(t, args...)
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("%q does not say %q:\n%s", args, want, out)
			}
		}
	}
	contain(d("readdb", "-stats", "-now", frozen), "TOTAL urls:\t40\n", "due now:\t0\n", "status 2 (db_fetched):\t40\n", "retry 0:\t40\n", "avg fetch interval:\t30 days, 00:00:00\n", "host "+s.web.Host(0)+":\t20\t(fetched 20)\n")
	contain(d("readdb", "-url", seed), "URL: "+seed+"\n", "Status: 2 (db_fetched)\n", "Fetch time: 2026-02-04T08:00:00.000Z\n", "Retry interval: 2592000 seconds (30 days)\n")
	contain(d("readlinks", "-url", seed), seed+"\thttp://"+s.web.Host(0)+"/pages/")
	contain(d("readlinks", "-url", "http://nobody.example/"), "no inlinks")
	contain(d("readseg"), "\tcrawl_generate 2\tcrawl_fetch 2\tcontent 2\tparse_text 2\tparse_data 2\tcrawl_parse 2\n")
	contain(d("readseg", "-url", seed, "-part", "content"), name+" content "+seed, "<!DOCTYPE html>")
	contain(d("hosts"), s.web.Host(0)+"\tnext ", "\tfetched 20\t", "\trobots.txt http://"+s.web.Host(0)+"\tstatus 200\t")
	contain(d("explain", "-agent", "testbot", "-now", frozen, seed), "Not yet: the next visit is due at 2026-02-04T08:00:00Z.\n", "robots.txt   allows it", "lease        none\n", "URL: "+seed+"\n")
	contain(d("explain", "-now", "2026-03-01T00:00:00Z", seed), "Due: ")
	contain(d("explain", "-now", "2026-03-01T00:00:00Z", "-host-rules", write(t, "rules", "* closed\n"), seed), "Left alone: the rule for its host")
	contain(d("explain", "-agent", "testbot", "-now", frozen, "http://"+s.web.Host(0)+"/new"), "has not heard of it", "robots.txt   allows it", "record       none\n")
	contain(d("explain", "mailto:someone"), "Never fetched: it is not a URL to crawl")
	for _, args := range [][]string{d("readdb", "-url", "http://nobody.example/"), d("readseg", "20200101000000-000"), d("update", "nosuch"), d("readseg", "nosuch")} {
		if r := recrawl(t, args...); r.code != 1 || r.out != "" || r.err == "" {
			t.Errorf("%q: exit %d, %q, %q", args, r.code, r.out, r.err)
		}
	}
}

func TestTroubleIsRecordedAndExplained(t *testing.T) {
	t.Parallel()
	s := serve(t, troubled(t))
	out := ok(t, s.crawl(s.web.Seeds()...)...)
	if !strings.Contains(out, "robots_denied") || !strings.Contains(out, "moved") {
		t.Errorf("crawl says\n%s", out)
	}
	all := records(t, s.dir)
	var denied, gone int
	for u := range s.web.URLs() {
		truth, _ := s.web.Page(u)
		switch d, known := all[u]; {
		case !known:
			t.Errorf("%s is not known", u)
		case truth.Disallowed:
			if denied++; d.Status != "db_gone" || s.web.Count(u) > 0 {
				t.Errorf("%s is forbidden: %s, requested %d times", u, d.Status, s.web.Count(u))
			}
			if out := ok(t, "explain", "-d", s.dir, "-agent", "testbot", "-now", frozen, u); !strings.Contains(out, "robots.txt   forbids it") {
				t.Errorf("explain says of a page that is forbidden\n%s", out)
			}
		case truth.Status == 404 || truth.Status == 410:
			if gone++; d.Status != "db_gone" {
				t.Errorf("%s is missing: %s", u, d.Status)
			}
		}
	}
	if denied == 0 || gone == 0 {
		t.Errorf("%d denied, %d gone: this tests nothing", denied, gone)
	}
}

// troubled finds a web with trouble, but without the trouble that takes minutes.
func troubled(t *testing.T) *webtest.Web {
seeds:
	for seed := range uint64(1000) {
		w := func() *webtest.Web {
			return &webtest.Web{Seed: seed, Hosts: 1, PagesPerHost: 60, Start: parsed(frozen).AddDate(-1, 0, 0), Now: func() time.Time { return parsed(frozen) }}
		}
		look, private := w(), false
		for u := range look.URLs() {
			truth, _ := look.Page(u)
			if truth.Status == 503 {
				continue seeds
			}
			private = private || truth.Disallowed
		}
		if private {
			return w()
		}
	}
	t.Fatal("there is no such web")
	return nil
}

func TestIndexReplacesItsFileAsAWhole(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 10, Calm: true})
	ok(t, s.crawl(s.web.Seeds()...)...)
	dir := t.TempDir()
	out := filepath.Join(dir, "pages.jsonl")
	if err := os.WriteFile(out, []byte("old\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if said := ok(t, "index", "-d", s.dir, "-o", out); !strings.HasPrefix(said, "10 documents, ") {
		t.Errorf("index says %q", said)
	}
	raw, err := os.ReadFile(out)
	if err != nil || string(raw) != ok(t, "index", "-d", s.dir) {
		t.Errorf("the file is not what index prints: %v\n%s", err, raw)
	}
	// Damage in a segment: the output file stays, and there is no temporary file.
	if err := damage(s.dir); err != nil {
		t.Fatal(err)
	}
	if r := recrawl(t, "index", "-d", s.dir, "-o", out); r.code != 1 || !strings.Contains(r.err, "damaged") {
		t.Errorf("index of a damaged segment: exit %d, %s", r.code, r.err)
	}
	if again, err := os.ReadFile(out); err != nil || string(again) != string(raw) {
		t.Errorf("an index that failed changed the file: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("an index that failed left %v, %v", entries, err)
	}
	for _, name := range []string{filepath.Join(dir, "no", "file"), dir} {
		if r := recrawl(t, "index", "-d", s.dir, "-o", name); r.code != 1 || !strings.HasPrefix(r.err, "recrawl: open "+name+": ") || strings.Count(r.err, "\n") != 1 {
			t.Errorf("exit %d, %q", r.code, r.err)
		}
	}
}

// damage flips a bit in the middle of the largest file of the segments.
func damage(dir string) error {
	var largest string
	var size int64
	err := filepath.Walk(filepath.Join(dir, "segments"), func(name string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() && strings.Contains(name, "parse_text") && info.Size() > size {
			largest, size = name, info.Size()
		}
		return err
	})
	if err != nil || largest == "" {
		return fmt.Errorf("no file to damage: %w", err)
	}
	raw, err := os.ReadFile(largest)
	if err != nil {
		return err
	}
	raw[len(raw)/2] ^= 1
	return os.WriteFile(largest, raw, 0o666)
}

func TestDirectoryInUseIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 50, Calm: true, Latency: 200 * time.Millisecond})
	c := exec.Command(program, s.crawl(s.web.Seeds()...)...)
	var out, errs strings.Builder
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the first request", func() bool { return s.web.Requests() > 0 })
	began := time.Now()
	for _, args := range [][]string{s.crawl(), {"readdb", "-d", s.dir, "-stats"}, {"inject", "-d", s.dir, "http://a.example/"}} {
		if r := recrawl(t, args...); r.code != 1 || !strings.Contains(r.err, "is in use") || !strings.Contains(r.err, s.dir) {
			t.Errorf("%s: exit %d, %q", args[0], r.code, r.err)
		}
	}
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("it took %v to say so", d)
	}
	c.Process.Kill()
	wait(t, c, &out, &errs)
	ok(t, "readdb", "-d", s.dir, "-stats") // the lock ended with the process
}

// Verbs that only read a crawl do not wait for each other.
func TestReadersShareACrawl(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "crawl")
	ok(t, "inject", "-d", dir, "http://a.example/")
	db, err := pebblestore.Open(dir, pebblestore.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, args := range [][]string{{"readdb", "-stats"}, {"status"}, {"explain", "http://a.example/"}, {"hosts"}, {"readlinks"}, {"index"}, {"verify"}} {
		r := recrawl(t, append([]string{args[0], "-d", dir}, args[1:]...)...)
		if r.code != 0 || r.err != "" {
			t.Errorf("%s: %+v", args[0], r)
		}
	}
	if r := recrawl(t, "mergedb", "-d", dir+"-merged", dir); r.code != 0 || r.err != "" {
		t.Errorf("mergedb: %+v", r)
	}
}

// A verb waits for one that is soon done.
func TestReaderWaitsForShortVerb(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "crawl")
	ok(t, "inject", "-d", dir, "http://a.example/")
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	type running struct {
		*exec.Cmd
		out, errs *output
	}
	all := map[string]running{}
	for _, args := range [][]string{{"status", "-d", dir}, {"verify", "-d", dir}, {"salvage", "-d", dir, dir + "-saved"}} {
		c := running{exec.Command(program, args...), new(output), new(output)}
		c.Stdout, c.Stderr = c.out, c.errs
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		all[args[0]] = c
	}
	for verb, c := range all {
		until(t, verb+" to say that it waits", func() bool { return strings.Contains(c.errs.String(), "; waiting for it to end") })
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for verb, c := range all {
		if r := wait(t, c.Cmd, c.out, c.errs); r.code != 0 || r.out == "" {
			t.Errorf("%s: %+v", verb, r)
		}
	}
}

// A verb that changes a crawl waits, too, such as for the status that a monitor asks for.
func TestCrawlWaitsForShortVerb(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 3, Calm: true})
	db, err := pebblestore.Open(s.dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, s.crawl(s.web.Seeds()...)...)
	out, errs := new(output), new(output)
	c.Stdout, c.Stderr = out, errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "it to say that it waits", func() bool { return strings.Contains(errs.String(), "; waiting for it to end") })
	if s.web.Requests() > 0 {
		t.Error("it is crawling")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if r := wait(t, c, out, errs); r.code != 0 || s.web.Requests() < 3 {
		t.Errorf("%+v", r)
	}
}

// until waits until something holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
