package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol/webtest"
)

// TestReplayedCrawlIsTheCrawl archives a crawl while it fetches, and crawls the archive.
func TestReplayedCrawlIsTheCrawl(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 40})
	archive, again := filepath.Join(t.TempDir(), "archive"), filepath.Join(t.TempDir(), "again")
	ok(t, s.crawl("-warc", archive, s.web.Seeds()[0])...)
	ok(t, "crawl", "-d", again, "-agent", "testbot", "-now", frozen, "-replay", archive, s.web.Seeds()[0])
	same(t, "crawl of the archive", dump(t, again), dump(t, s.dir))

	// Without seeds, all that was captured is crawled.
	all := filepath.Join(t.TempDir(), "all")
	report := object(t, ok(t, "crawl", "-d", all, "-now", frozen, "-replay", archive, "-json", "-rounds", "1"))
	if visits := report["visits"].(float64); visits < 20 {
		t.Errorf("%v visits", visits)
	}
}

func TestWARCOfSegments(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 20})
	ok(t, s.crawl(s.web.Seeds()[0])...)
	out, packed := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "site.wacz")
	var written struct{ Files []string }
	if err := json.Unmarshal([]byte(ok(t, "warc", "-d", s.dir, "-o", out, "-cdxj", "-wacz", packed, "-json")), &written); err != nil {
		t.Fatal(err)
	}
	if len(written.Files) != 1 {
		t.Fatalf("%v", written)
	}
	for _, path := range []string{written.Files[0], written.Files[0] + ".cdxj", packed} {
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", path, err)
		}
	}
	again := filepath.Join(t.TempDir(), "again")
	ok(t, "crawl", "-d", again, "-agent", "testbot", "-now", frozen, "-replay", written.Files[0], s.web.Seeds()[0])
	if got, want := strings.Count(ok(t, "index", "-d", again), "\n"), strings.Count(ok(t, "index", "-d", s.dir), "\n"); got != want || want == 0 {
		t.Errorf("%d documents, want %d", got, want)
	}
}

func TestArchiveFlagsAreChecked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"warc", "-d", dir}, "-o OUTDIR is required"},
		{[]string{"warc", "-d", dir, "-o", dir, "-compression", "lz4"}, "-compression"},
		{[]string{"crawl", "-d", dir, "-replay", filepath.Join(dir, "none.warc")}, "-replay"},
		{[]string{"crawl", "-d", dir, "-replay", dir}, "no WARC file"},
	} {
		if r := recrawl(t, test.args...); r.code != 2 || !strings.Contains(r.err, test.want) {
			t.Errorf("%v: exit %d, %s", test.args, r.code, r.err)
		}
	}
}
