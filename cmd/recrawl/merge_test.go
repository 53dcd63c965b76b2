package main_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// crawlWith makes a crawl of records and links.
func crawlWith(t *testing.T, records []crawldb.Datum, links ...linkdb.Entry) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "crawl")
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(records, func(a, b crawldb.Datum) int { return crawldb.Compare(a.URL, b.URL) })
	var urls []string
	for _, d := range records {
		urls = append(urls, d.URL)
	}
	err = db.Crawl().Update(t.Context(), crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &records[i], nil }})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Links().Merge(t.Context(), links, 0); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// statusOf returns the status of each page of a crawl.
func statusOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	m := map[string]string{}
	for url, r := range records(t, dir) {
		m[url] = r.Status
	}
	return m
}

func pageOf(url, signature string, status crawldb.Status, days int) crawldb.Datum {
	at := parsed(frozen).AddDate(0, 0, days)
	return crawldb.Datum{URL: url, Status: status, Signature: []byte(signature), LastFetch: at, FetchTime: at.AddDate(0, 0, 30), Interval: 30 * 24 * time.Hour}
}

func TestDedup(t *testing.T) {
	t.Parallel()
	make := func() string {
		return crawlWith(t, []crawldb.Datum{
			pageOf("http://a.example/", "s", crawldb.Fetched, 1), pageOf("https://a.example/", "s", crawldb.Fetched, 0),
			pageOf("http://b.example/", "s", crawldb.NotModified, 0), pageOf("http://c.example/", "t", crawldb.Duplicate, 0)})
	}
	for _, c := range []struct {
		args []string
		want map[string]string
		says string
	}{
		{nil, map[string]string{"http://a.example/": "db_fetched", "https://a.example/": "db_duplicate", "http://b.example/": "db_duplicate", "http://c.example/": "db_fetched"}, "4 pages, 1 contents shared by several: 2 marked as duplicates, 1 restored\n"},
		{[]string{"-group", "host", "-compareOrder", "httpsOverHttp,score"}, map[string]string{"http://a.example/": "db_duplicate", "https://a.example/": "db_fetched", "http://b.example/": "db_notmodified", "http://c.example/": "db_fetched"}, ""},
		{[]string{"-nutch-compat"}, map[string]string{"http://a.example/": "db_fetched", "https://a.example/": "db_duplicate", "http://b.example/": "db_duplicate", "http://c.example/": "db_duplicate"}, "3 pages"},
	} {
		dir := make()
		out := ok(t, append([]string{"dedup", "-d", dir}, c.args...)...)
		if got := statusOf(t, dir); !maps.Equal(got, c.want) || !strings.HasPrefix(out, c.says) {
			t.Errorf("dedup %q: %v, want %v; it says %q", c.args, got, c.want, out)
		}
		r := object(t, ok(t, append([]string{"dedup", "-json", "-d", dir}, c.args...)...))
		if r["duplicates"] != 0.0 || r["restored"] != 0.0 {
			t.Errorf("dedup %q again: %v", c.args, r)
		}
	}
}

func TestCrawlMarksDuplicates(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 5, Calm: true})
	ok(t, s.crawl(append([]string{"-dedup"}, s.web.Seeds()...)...)...)
	if got := statusOf(t, s.dir); len(got) != 5 {
		t.Errorf("%v", got)
	}
}

func TestMergeDBs(t *testing.T) {
	t.Parallel()
	link := func(to string, from ...string) linkdb.Entry {
		e := linkdb.Entry{URL: to}
		for _, f := range from {
			e.Inlinks = append(e.Inlinks, linkdb.Inlink{From: f, Anchor: "x"})
		}
		return e
	}
	one := crawlWith(t, []crawldb.Datum{pageOf("http://a.example/", "s", crawldb.Fetched, 0), pageOf("http://a.example/one", "s", crawldb.Gone, 0)}, link("http://a.example/", "http://x.example/"))
	two := crawlWith(t, []crawldb.Datum{pageOf("http://a.example/", "s", crawldb.RedirPerm, 1), pageOf("http://a.example/two.gif", "s", crawldb.Fetched, 0)}, link("http://a.example/", "http://y.example/"), link("http://a.example/two.gif", "http://y.example/"))
	dst := filepath.Join(t.TempDir(), "new")
	if out := ok(t, "mergedb", "-d", dst, one, two); out != "4 records of 3 pages were merged, 0 rejected, 0 purged\n" {
		t.Errorf("mergedb says %q", out)
	}
	want := map[string]string{"http://a.example/": "db_redir_perm", "http://a.example/one": "db_gone", "http://a.example/two.gif": "db_fetched"}
	if got := statusOf(t, dst); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	before := ok(t, "readdb", "-d", dst, "-dump", "-format", "json")
	ok(t, "mergedb", "-d", dst, two, one)
	same(t, "merging again", ok(t, "readdb", "-d", dst, "-dump", "-format", "json"), before)

	clean := filepath.Join(t.TempDir(), "clean")
	if r := object(t, ok(t, "mergedb", "-d", clean, "-json", "-filter", "-normalize", "-purge-gone", dst)); r["records"] != 3.0 || r["rejected"] != 1.0 || r["purged"] != 1.0 || r["pages"] != 1.0 {
		t.Errorf("%v", r)
	}

	if out := ok(t, "mergelinkdb", "-d", dst, one, two); out != "3 links were merged, 0 rejected\n" {
		t.Errorf("mergelinkdb says %q", out)
	}
	if got, want := ok(t, "readlinks", "-d", dst), "http://a.example/\thttp://x.example/\tx\nhttp://a.example/\thttp://y.example/\tx\nhttp://a.example/two.gif\thttp://y.example/\tx\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if out := ok(t, "mergelinkdb", "-d", clean, "-filter", "-max-inlinks", "1", dst); out != "2 links were merged, 1 rejected\n" {
		t.Errorf("mergelinkdb -filter says %q", out)
	}
	if got, want := ok(t, "readlinks", "-d", clean), "http://a.example/\thttp://x.example/\tx\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}

	// What cannot be merged is named, and makes nothing.
	none := filepath.Join(t.TempDir(), "none")
	missing := filepath.Join(t.TempDir(), "missing")
	if r := recrawl(t, "mergedb", "-d", none, one, missing); r.code != 1 || !strings.Contains(r.err, missing) {
		t.Errorf("exit %d, %q", r.code, r.err)
	}
	if r := recrawl(t, "mergedb", "-d", one, one); r.code != 2 || !strings.Contains(r.err, "named twice") {
		t.Errorf("exit %d, %q", r.code, r.err)
	}
	for _, dir := range []string{none, missing} {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s was made", dir)
		}
	}
}

func TestReadlinks(t *testing.T) {
	t.Parallel()
	in := []linkdb.Inlink{{From: "http://x.example/", Anchor: "an x"}, {From: "http://y.example/"}}
	dir := crawlWith(t, nil, linkdb.Entry{URL: "http://a.example/", Inlinks: in}, linkdb.Entry{URL: "http://a.example/docs", Inlinks: in[:1]})
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-regex", `http://a\.example/d.*`}, "http://a.example/docs\thttp://x.example/\tan x\n"},
		{[]string{"-regex", `a\.example`}, ""}, // the whole URL has to match
		{[]string{"-regex", `.*/|nothing`}, "http://a.example/\thttp://x.example/\tan x\nhttp://a.example/\thttp://y.example/\t\n"},
		{[]string{"-format", "json", "-regex", ".*docs"}, `{"url":"http://a.example/docs","inlinks":[{"from":"http://x.example/","anchor":"an x"}]}` + "\n"},
		{[]string{"-format", "nutch"}, "http://a.example/\tInlinks:\n fromUrl: http://x.example/ anchor: an x metadata: \n fromUrl: http://y.example/ anchor:  metadata: \n\nhttp://a.example/docs\tInlinks:\n fromUrl: http://x.example/ anchor: an x metadata: \n\n"},
		{[]string{"-format", "nutch", "-url", "http://a.example/docs"}, "fromUrl: http://x.example/ anchor: an x metadata: \n"},
		{[]string{"-format", "nutch", "-url", "http://b.example/"}, " - no link information.\n"},
		{[]string{"-url", "http://b.example/"}, "http://b.example/\tno inlinks\n"},
		{[]string{"-format", "graph"}, "http://x.example/\thttp://a.example/\nhttp://y.example/\thttp://a.example/\nhttp://x.example/\thttp://a.example/docs\n"},
		{[]string{"-format", "graph", "-url", "http://b.example/"}, ""},
	} {
		if got := ok(t, append([]string{"readlinks", "-d", dir}, c.args...)...); got != c.want {
			t.Errorf("readlinks %q: %q, want %q", c.args, got, c.want)
		}
	}
	graph := write(t, "links.tsv", ok(t, "readlinks", "-d", dir, "-format", "graph"))
	if out := ok(t, "scoring", "simulate", "-graph", graph); !strings.HasPrefix(out, "4 pages, 3 links;") {
		t.Errorf("scoring simulate reads %q", out)
	}
}

func TestMergeSegs(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 2, PagesPerHost: 20, Calm: true})
	ok(t, s.crawl(append([]string{"-topN", "10"}, s.web.Seeds()...)...)...)
	documents := func() string {
		lines := slices.Sorted(strings.Lines(ok(t, "index", "-d", s.dir)))
		return regexp.MustCompile(`"segment":"[^"]*"`).ReplaceAllString(strings.Join(lines, ""), "")
	}
	before := documents()
	r := object(t, ok(t, "mergesegs", "-d", s.dir, "-json", "-now", "2026-01-06T08:00:00Z", "-slice", "25", "-remove"))
	if r["urls"] != 40.0 || r["visits"] != 40.0 || fmt.Sprint(r["segments"]) != "[20260106080000-000 20260106080000-001]" {
		t.Errorf("%v", r)
	}
	same(t, "the index after a merge", documents(), before)
	if out := ok(t, s.crawl()...); !strings.HasPrefix(out, "0 rounds, 0 visits") {
		t.Errorf("crawl takes merged segments up: %q", out)
	}
	if out := ok(t, "update", "-d", s.dir, "20260106080000-000"); !strings.Contains(out, "was already applied") {
		t.Errorf("an update of a merged segment says %q", out)
	}
	if r := recrawl(t, "mergesegs", "-d", s.dir, "missing"); r.code != 1 || !strings.Contains(r.err, `no segment "missing"`) {
		t.Errorf("exit %d, %q", r.code, r.err)
	}
	// One that is not updated yet is not merged, and not by default either.
	ok(t, "inject", "-d", s.dir, "-now", frozen, s.web.Seeds()[0]+"nowhere")
	name := strings.TrimSpace(ok(t, "generate", "-d", s.dir, "-now", frozen))
	if r := recrawl(t, "mergesegs", "-d", s.dir, name); r.code != 1 || !strings.Contains(r.err, name) {
		t.Errorf("exit %d, %q", r.code, r.err)
	}
	if out := ok(t, "mergesegs", "-d", s.dir, "-now", "2026-01-07T08:00:00Z"); out != "20260107080000-000\n" {
		t.Errorf("%q", out)
	}
}

func TestIndexSwitchesAndClean(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 5, Calm: true})
	missing := s.web.Seeds()[0] + "missing"
	ok(t, s.crawl(append(s.web.Seeds(), missing)...)...)
	deleted := func(args ...string) (urls []string, documents int) {
		for line := range strings.Lines(ok(t, append(args, "-d", s.dir)...)) {
			var d struct {
				URL     string
				Deleted bool
				Boost   float64
				Binary  []byte `json:"binary_content"`
			}
			if err := json.Unmarshal([]byte(line), &d); err != nil {
				t.Fatal(err)
			}
			if d.Deleted {
				urls = append(urls, d.URL)
			} else if documents++; d.Boost <= 0 || slices.Contains(args, "-addBinaryContent") != (len(d.Binary) > 0) {
				t.Errorf("%q: %s", args, line)
			}
		}
		return urls, documents
	}
	if urls, n := deleted("index", "-addBinaryContent"); !slices.Equal(urls, []string{missing}) || n != 5 {
		t.Errorf("index: %q, %d documents", urls, n)
	}
	for _, args := range [][]string{{"-deleteGone=false"}, {"-nutch-compat"}} {
		if urls, n := deleted(append([]string{"index"}, args...)...); len(urls) != 0 || n != 5 {
			t.Errorf("index %q: %q, %d documents", args, urls, n)
		}
	}
	if urls, _ := deleted("index", "-nutch-compat", "-deleteGone"); !slices.Equal(urls, []string{missing}) {
		t.Errorf("index -nutch-compat -deleteGone: %q", urls)
	}
	if r := recrawl(t, "index", "-d", s.dir, "20000101000000-000"); r.code != 1 || !strings.Contains(r.err, "20000101000000-000") {
		t.Errorf("a segment that is not there: exit %d, %q", r.code, r.err)
	}
	if urls, n := deleted("clean"); !slices.Equal(urls, []string{missing}) || n != 0 {
		t.Errorf("clean: %q, %d documents", urls, n)
	}
	file := filepath.Join(t.TempDir(), "deletions.jsonl")
	if r := object(t, ok(t, "clean", "-d", s.dir, "-o", file, "-json")); r["total"] != 1.0 || fmt.Sprint(r["deleted"]) != "map[db_gone:1]" {
		t.Errorf("%v", r)
	}
	if raw, err := os.ReadFile(file); err != nil || string(raw) != fmt.Sprintf("{\"url\":%q,\"deleted\":true}\n", missing) {
		t.Errorf("%q, %v", raw, err)
	}
}

func TestInvertFlags(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 2, PagesPerHost: 10, Calm: true})
	ok(t, "inject", "-d", s.dir, "-now", frozen, s.web.Seeds()[0])
	ok(t, "generate", "-d", s.dir, "-now", frozen)
	ok(t, s.args("fetch")...)
	internal := object(t, ok(t, "invert", "-d", s.dir, "-json", "-ignore-internal"))
	compat := object(t, ok(t, "invert", "-d", s.dir, "-json", "-nutch-compat"))
	if internal["internal"] == 0.0 || internal["internal"] != compat["internal"] {
		t.Errorf("%v, %v", internal, compat)
	}
	all := object(t, ok(t, "invert", "-d", s.dir, "-json", "-nutch-compat", "-ignore-internal=false", "-max-anchor", "1", "-filter", "-normalize"))
	if all["internal"] != 0.0 || all["anchors_cut"] == 0.0 || all["inlinks"] == 0.0 {
		t.Errorf("%v", all)
	}
	// With a configuration rules apply unless they are switched off.
	conf := confOf(t, "", "-/pages/\n+.\n")
	for args, rejects := range map[string]bool{"": true, "-corrected": false, "-corrected -filter": true, "-noFilter -noNormalize": false, "-filter=false": false} {
		r := object(t, ok(t, append([]string{"invert", "-d", s.dir, "-json", "-conf", conf, "-ignore-internal=false"}, strings.Fields(args)...)...))
		if (r["rejected"] != 0.0) != rejects {
			t.Errorf("invert -conf %s: %v", args, r)
		}
	}
}
