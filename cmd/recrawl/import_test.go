package main_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol/webtest"
)

// An imported crawl has the due times of the dump, and continues.
func TestImport(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 2, PagesPerHost: 20})
	ok(t, s.crawl(s.web.Seeds()...)...)
	dump := func(dir string) string { return ok(t, "readdb", "-d", dir, "-dump", "-format", "nutch") }
	was := dump(s.dir)
	pages := strings.Count(was, "\tVersion: 7\n")

	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	half := strings.Index(was[len(was)/2:], "\nhttp") + len(was)/2 + 1
	if _, err := z.Write([]byte(was[half:])); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"part-r-00000": was[:half], "part-r-00001.gz": packed.String(), "_SUCCESS": "", ".part-r-00000.crc": "crc\x00"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	moved := filepath.Join(t.TempDir(), "moved")
	for range 2 {
		r := object(t, ok(t, "import", "-d", moved, "-json", "-no-filter", dir))
		if r["records"] != float64(pages) || r["pages"] != float64(pages) || r["bad"] != 0.0 || r["rejected"] != 0.0 {
			t.Errorf("%d pages: %v", pages, r)
		}
		same(t, "the dump of what was imported", dump(moved), was)
	}
	ok(t, "verify", "-d", moved)
	if out := ok(t, append([]string{"crawl", "-adddays", "90"}, s.args("crawl", "-d", moved)[1:]...)...); !strings.HasPrefix(out, "1 rounds, ") {
		t.Errorf("a crawl of what was imported says %q", out)
	}
}

func TestImportOfInvalidDumps(t *testing.T) {
	t.Parallel()
	const record = "http://a.example/\tVersion: 7\nStatus: 2 (db_fetched)\nFetch time: Sat Jul 04 12:00:00 CEST 2026\nModified time: Thu Jan 01 01:00:00 CET 1970\n" +
		"Retries since fetch: 0\nRetry interval: 86400 seconds (1 days)\nScore: 1.0\nSignature: null\nMetadata: \n \n"
	dir := filepath.Join(t.TempDir(), "crawl")
	in := func(text string, args ...string) result {
		c := exec.Command(program, append([]string{"import", "-d", dir}, args...)...)
		c.Stdin = strings.NewReader(text)
		return finish(t, c)
	}
	if r := in(record, "-"); r.code != 1 || !strings.Contains(r.err, "standard input:1: the time zone CEST") || !strings.Contains(r.err, "no record in the dump") || strings.Count(r.err, "-zone Europe/Berlin") != 1 {
		t.Errorf("the zone of another machine: %+v", r)
	}
	if r := in(record+"http://b.example/\tVersion: 7\n", "-zone", "Europe/Berlin", "-"); r.code != 1 || !strings.HasPrefix(r.out, "1 records of 1 pages were imported, 0 rejected by the rules, 1 could not be used") {
		t.Errorf("a record that is cut short: %+v", r)
	}
	if out := ok(t, "readdb", "-d", dir, "-url", "http://a.example/"); !strings.Contains(out, "Fetch time: 2026-07-04T10:00:00") || !strings.Contains(out, "Last fetch: 2026-07-03T10:00:00") {
		t.Errorf("%s", out)
	}
	for _, test := range []struct {
		code int
		args []string
		want string
	}{
		{2, nil, "needs the files of a dump"},
		{2, []string{"-zone", "Nowhere/Land", "-"}, `unknown time zone "Nowhere/Land"`},
		{1, []string{filepath.Join(dir, "missing")}, "missing"},
		{1, []string{t.TempDir()}, "no file in the directory"},
		{1, []string{write(t, "dump.csv", "Url,Status code,Status name\n")}, "CSV"},
		{1, []string{write(t, "seeds.txt", "http://a.example/\n")}, "seeds.txt:1: not a record of a crawl db"},
	} {
		if r := in("", test.args...); r.code != test.code || !strings.Contains(r.err, test.want) {
			t.Errorf("%q: %+v, want %q", test.args, r, test.want)
		}
	}
}
