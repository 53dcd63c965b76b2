package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// Where nothing can be written, as in a backup, what reads a crawl tells the same as
// elsewhere, also of one that was killed; what changes it says why it cannot.
func TestReadOnlyFileSystem(t *testing.T) {
	t.Parallel()
	const seg, dead, url = "20260105080000-000", "20260105090000-000", "http://a.example/"
	made := filepath.Join(t.TempDir(), "crawl")
	ok(t, "inject", "-d", made, "-now", frozen, url, "http://b.example/")
	db, err := pebblestore.Open(made, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	writePart(t, db.Segments(), seg, crawldb.Datum{URL: url, Status: crawldb.Unfetched})
	writePart(t, db.Segments(), seg, page.Content{URL: url, Type: "text/html", Body: []byte("<p>words")})
	writePart(t, db.Segments(), seg, segment.Visit{URL: url, Time: parsed(frozen)})
	w, err := db.Segments().Append(t.Context(), dead, "leases", 0) // a generate that was killed
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	top := t.TempDir()
	if err := exec.Command("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", top).Run(); err != nil {
		t.Logf("NO FILE SYSTEM CAN BE MOUNTED HERE (%v): one that is read-only is not tested", err)
		db.Close()
		return
	}
	t.Cleanup(func() {
		if err := exec.Command("umount", top).Run(); err != nil {
			t.Error(err)
		}
	})
	dir := filepath.Join(top, "crawl")
	if err := os.CopyFS(dir, os.DirFS(made)); err != nil { // as after kill -9
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-o", "remount,ro", top).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct{ verb, rest string }{{"status", ""}, {"readdb", "-stats"}, {"readdb", "-dump"}, {"readdb", "-url " + url}, {"explain", url}, {"hosts", ""}, {"readlinks", ""},
		{"readseg", "-dump " + seg}, {"domainstats", "host"}, {"protocolstats", ""}, {"crawlcomplete", ""}, {"check schedule", url}} {
		run := func(dir string) result {
			return recrawl(t, strings.Fields(c.verb+" -d "+dir+" -now "+frozen+" "+c.rest)...)
		}
		if got, want := run(dir), run(made); got.code != 0 || got.err != "" || got.out != want.out {
			t.Errorf("recrawl %s %s: exit %d, %q\n%s\nwhere it can be written:\n%s", c.verb, c.rest, got.code, got.err, got.out, want.out)
		}
	}
	for _, verb := range []string{"mergedb", "mergelinkdb"} { // they read it
		if r := recrawl(t, verb, "-d", filepath.Join(t.TempDir(), "merged"), "-now", frozen, dir); r.code != 0 || r.err != "" {
			t.Errorf("recrawl %s: exit %d, %q", verb, r.code, r.err)
		}
	}
	saved := filepath.Join(t.TempDir(), "saved")
	ok(t, "backup", "-d", dir, saved)
	if got, want := dump(t, saved), dump(t, dir); got != want || got == "" {
		t.Errorf("the backup has\n%s\nthe crawl\n%s", got, want)
	}
	for _, verb := range []string{"generate", "update", "dedup", "compact"} {
		if r := recrawl(t, verb, "-d", dir, "-now", frozen); r.code != 1 || !strings.Contains(r.err, "open "+dir) || !strings.Contains(r.err, "read-only file system") {
			t.Errorf("recrawl %s: exit %d, %q", verb, r.code, r.err)
		}
	}
}
