package main_test

import (
	"context"
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

var rewrite = flag.Bool("update", false, "rewrite the golden files")

// sampleCrawl makes a crawl of one record of each kind, and a segment.
func sampleCrawl(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "crawl")
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := parsed(frozen)
	month := 30 * 24 * time.Hour
	records := []crawldb.Datum{
		{URL: "http://a.example/", Status: crawldb.Fetched, FetchTime: at.Add(month), LastFetch: at, Modified: at.Add(-time.Hour), Interval: month, Score: 1.5, Priority: 1.5,
			Signature: []byte{0xd4, 0x1d, 0x8c}, Meta: crawldb.MetaOf("_pst_", "success(1), lastModified=0", "_rs_", "120", "Content-Type", "text/html", "nutch.protocol.code", "200")},
		{URL: "http://a.example/\"quoted\", and | more", Status: crawldb.NotModified, FetchTime: at.Add(month), Interval: month, Score: 0.25, Priority: 0.25,
			Meta: crawldb.MetaOf("_rs_", "80", "Content-Type", "text/plain", "nutch.protocol.code", "304", "note", "a,\"b\"")},
		{URL: "http://a.example/gone", Status: crawldb.Gone, FetchTime: at.Add(45 * 24 * time.Hour), Interval: month * 3 / 2, Retries: 3, Score: 1e-5, Meta: crawldb.MetaOf("nutch.protocol.code", "404")},
		{URL: "http://b.a.example/", Status: crawldb.RedirPerm, FetchTime: at.Add(month), Interval: month, Score: 0, Meta: crawldb.MetaOf("_pst_", "moved(12), lastModified=0: https://b.a.example/")},
		{URL: "https://b.a.example/", Status: crawldb.Unfetched, FetchTime: at.Add(-72 * time.Hour), Interval: month, Score: 0.05, Retries: 1},
		{URL: "http://www.z.co.uk:8080/x?y#z", Status: crawldb.Unfetched, FetchTime: at, Interval: time.Hour + time.Second, Score: 2, Meta: crawldb.MetaOf("schedule.fixed", "3601"), LeasedUntil: at.Add(time.Hour), LeasedBy: "20260105080000-000"},
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
	const seg = "20260105080000-000"
	writePart(t, db.Segments(), seg, records[0])
	writePart(t, db.Segments(), seg,
		segment.Visit{URL: "http://a.example/", Time: at, Outcome: protocol.Outcome{Code: protocol.Success, Status: 200}},
		segment.Visit{URL: "http://b.a.example/", Time: at.Add(90 * time.Second), Outcome: protocol.Outcome{Code: protocol.MovedPerm, Status: 301}})
	writePart(t, db.Segments(), seg,
		page.Content{URL: "http://a.example/", Type: "text/html", Body: []byte("caf\xe9")},
		page.Content{URL: "http://b.a.example/", Type: "text/html; charset=ISO-8859-2", Body: []byte("\xb3")},
		page.Content{URL: "http://c.example/", Body: []byte("\xb3")})
	writePart(t, db.Segments(), seg, segment.Data{URL: "http://a.example/", Parsed: page.Parsed{Title: "cafe", Charset: "windows-1252"}})
	writePart(t, db.Segments(), "20260105090000-000", records[1], records[2])
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func writePart[T segment.Record](t *testing.T, s segment.Store, name string, records ...T) {
	t.Helper()
	ctx := context.Background()
	w, err := segment.NewWriter[T](ctx, s, name, 0)
	if err == nil {
		err = w.Append(ctx, records)
	}
	if err == nil {
		err = w.Commit(ctx)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What the readers print is in testdata/readers, a file for each command line.
func TestReaders(t *testing.T) {
	t.Parallel()
	dir := sampleCrawl(t)
	top := write(t, "top.tsv", "# scores\n\nA.example\t2.5\nnobody.example\t1\n")
	ok(t, "updatehostdb", "-d", dir, "-now", frozen, "-tophosts", top)
	for name, line := range map[string]string{
		"stats":            "readdb -stats",
		"stats-sort":       "readdb -stats -sort -quantiles 0.5,0.25,0.5",
		"stats-nutch":      "readdb -stats -format nutch",
		"stats-nutch-sort": "readdb -stats -sort -format nutch",
		"stats-json":       "readdb -stats -json",
		"dump":             "readdb -dump",
		"dump-csv":         "readdb -dump -format csv",
		"dump-json":        "readdb -dump -format json",
		"dump-nutch":       "readdb -dump -format nutch",
		"url-nutch":        "readdb -format nutch -url http://a.example/",
		"topn":             "readdb -topN 3 -min 0.2",
		"topn-nutch":       "readdb -top 100 -format nutch",
		"hosts":            "hosts",
		"hosts-json":       "hosts -json",
		"hosts-nutch":      "hosts -format nutch",
		"hosts-get":        "hosts -get A.EXAMPLE -format nutch",
		"hosts-homepages":  "hosts -dumpHomepages",
		"hosts-hostnames":  "hosts -dumpHostnames",
		"hosts-expr":       "readhostdb -expr numRecords>1 -dumpHostnames",
		"domainstats":      "domainstats domain",
		"domainstats-json": "domainstats -json suffix",
		"protocolstats":    "protocolstats",
		"crawlcomplete":    "crawlcomplete",
		"completion-json":  "crawlcomplete -mode domain -json",
		"list":             "readseg -list",
		"list-one":         "readseg -list 20260105090000-000",
		"list-nutch":       "readseg -list -format nutch",
		"list-json":        "readseg -json",
		"dump-seg":         "readseg -dump -nogenerate -nofetch -noparsedata -recode -json",
		"get-seg":          "readseg -get http://a.example/ -nogenerate",
	} {
		reads(t, dir, name, line)
	}
}

// reads compares what a command line prints with a file of testdata/readers.
func reads(t *testing.T, dir, name, line string) {
	t.Helper()
	args := strings.Fields(line)
	args = append([]string{args[0], "-d", dir, "-now", frozen}, args[1:]...)
	got := ok(t, args...)
	file := filepath.Join("testdata", "readers", name)
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("recrawl %s prints\n%s\nwant, by %s, %v:\n%s", line, got, file, err, want)
	}
}

func TestDumpFilters(t *testing.T) {
	t.Parallel()
	dir := sampleCrawl(t)
	urls := func(args ...string) string {
		t.Helper()
		rows, err := csv.NewReader(strings.NewReader(ok(t, append([]string{"readdb", "-d", dir, "-dump", "-format", "csv"}, args...)...))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, r := range rows[1:] {
			all = append(all, r[0])
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	const (
		gone     = "http://a.example/gone"
		unported = "https://b.a.example/"
	)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-status", "db_gone"}, gone},
		{[]string{"-status", "GONE"}, gone},
		{[]string{"-retry", "1"}, gone + " " + unported},
		{[]string{"-retry", "3"}, gone},
		{[]string{"-regex", "https://.*"}, unported},
		{[]string{"-regex", "https://"}, ""},
		{[]string{"-regex", "x|http://a.example/gone"}, gone},
		{[]string{"-expr", `retries > 0 && status == "db_unfetched"`}, unported},
		{[]string{"-expr", `Content_Type =~ "text/h.*"`}, "http://a.example/"},
		{[]string{"-retry", "1", "-status", "gone", "-regex", ".*gone", "-expr", "score < 1"}, gone},
		{[]string{"-sample", "0"}, ""},
	} {
		if got := urls(tt.args...); got != tt.want {
			t.Errorf("readdb -dump %q has %q, want %q", tt.args, got, tt.want)
		}
	}
	all := urls()
	if got := urls("-sample", "1"); got != all {
		t.Errorf("a sample of 1 has %q", got)
	}
	half := urls("-sample", "0.5")
	if again := urls("-sample", "0.5"); half != again {
		t.Errorf("a sample has %q, and then %q", half, again)
	}
	for u := range strings.FieldsSeq(half) {
		if !strings.Contains(all, u) {
			t.Errorf("a sample has %q", u)
		}
	}
	r := recrawl(t, "readdb", "-d", dir, "-dump", "-expr", "score + 1")
	if r.code == 0 && (r.out != "" || !strings.Contains(r.err, "neither true nor false")) {
		t.Errorf("an expression that is no condition: %+v", r)
	}
	for _, args := range [][]string{{"hosts", "-get", "nobody.example"}, {"readseg", "-list", "20250105080000-000"}, {"readdb", "-url", "http://nobody.example/", "-format", "nutch"}} {
		if r := recrawl(t, append([]string{args[0], "-d", dir}, args[1:]...)...); r.code != 1 || r.out != "" {
			t.Errorf("%q: exit %d, want 1: %s", args, r.code, r.out)
		}
	}
	for _, args := range [][]string{{"readseg", "-list", "-dump"}, {"readseg", "-list", "-nofetch"}, {"readseg", "-dump", "-format", "nutch"}, {"readseg", "-format", "xml"}} {
		if r := recrawl(t, append([]string{args[0], "-d", dir}, args[1:]...)...); r.code != 2 {
			t.Errorf("%q: exit %d, want 2: %s%s", args, r.code, r.out, r.err)
		}
	}
}

// A sample is about as large as it is asked to be.
func TestSampleIsFair(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "crawl")
	var seeds strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&seeds, "http://h%d.example/%d\n", i%50, i)
	}
	ok(t, "inject", "-d", dir, "-seeds", write(t, "seeds.txt", seeds.String()))
	for _, share := range []float64{.1, .5, .9} {
		n := strings.Count(ok(t, "readdb", "-d", dir, "-dump", "-json", "-sample", fmt.Sprint(share)), "\n")
		if float64(n) < 1000*share-60 || float64(n) > 1000*share+60 {
			t.Errorf("a sample of %v has %d records of 1000", share, n)
		}
	}
}

// The statistics of a crawl are those of its crawl db.
func TestUpdateHostDB(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 3, PagesPerHost: 10, Calm: true})
	ok(t, s.crawl(s.web.Seeds()...)...)
	before := ok(t, "hosts", "-d", s.dir)
	r := object(t, ok(t, "updatehostdb", "-d", s.dir, "-now", frozen, "-json"))
	if r["records"] != 30.0 || r["hosts"] != 3.0 || r["checked"] != 0.0 {
		t.Errorf("report is %v", r)
	}
	for _, h := range object(t, ok(t, "hosts", "-d", s.dir, "-json"))["hosts"].([]any) {
		pages := h.(map[string]any)["pages"].(map[string]any)
		if pages["fetched"] != 10.0 || pages["unfetched"] != 0.0 {
			t.Errorf("pages are %v", pages)
		}
	}
	for line := range strings.Lines(before) {
		if !strings.Contains(ok(t, "hosts", "-d", s.dir), line) {
			t.Errorf("the statistics changed %q", line)
		}
	}
	if out := ok(t, "updatehostdb", "-d", s.dir, "-urlLimit", "11"); !strings.Contains(out, "left out: 0 hosts by the rules, 3 by the limit") {
		t.Errorf("with a limit: %s", out)
	}
}

// Limits and quantiles come from a configuration of Nutch, and flags go before it.
func TestReadersOfAConfiguration(t *testing.T) {
	t.Parallel()
	dir := sampleCrawl(t)
	conf := t.TempDir()
	site := "<configuration>\n<property><name>plugin.includes</name><value>protocol-http|scoring-opic</value></property>\n" +
		"<property><name>hostdb.url.limit</name><value>3</value></property>\n<property><name>db.stats.score.quantiles</name><value>.5</value></property>\n</configuration>\n"
	if err := os.WriteFile(filepath.Join(conf, "nutch-site.xml"), []byte(site), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		limit []string
		want  float64
	}{{nil, 2}, {[]string{"-urlLimit", "2"}, 1}} {
		if r := object(t, ok(t, append([]string{"updatehostdb", "-d", dir, "-conf", conf, "-json"}, tt.limit...)...)); r["below_limit"] != tt.want {
			t.Errorf("with %q: %v", tt.limit, r)
		}
	}
	for _, tt := range []struct {
		args []string
		want int
	}{{nil, 1}, {[]string{"-quantiles", "0.1,0.2"}, 2}} {
		if out := ok(t, append([]string{"readdb", "-d", dir, "-conf", conf, "-stats"}, tt.args...)...); strings.Count(out, "score quantile") != tt.want {
			t.Errorf("with %q:\n%s", tt.args, out)
		}
	}
}
