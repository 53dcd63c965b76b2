package main_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// A crawl is sound; one flipped bit makes it unsound, and verify names the place; what is
// salvaged is sound again.
func TestVerifyAndSalvage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "crawl")
	ok(t, "inject", "-d", dir, "-now", frozen, "http://a.example/", "http://b.example/")
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const seg = "20260105080000-000"
	writePart(t, db.Segments(), seg, crawldb.Datum{URL: "http://a.example/", Status: crawldb.Unfetched})
	writePart(t, db.Segments(), seg, page.Content{URL: "http://a.example/", Type: "text/html", Body: []byte(strings.Repeat("words ", 20))})
	writePart(t, db.Segments(), seg, segment.Visit{URL: "http://a.example/", Time: parsed(frozen)})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if out := ok(t, "verify", "-d", dir, "-now", frozen); !strings.HasSuffix(out, "\nsound\n") {
		t.Errorf("a sound crawl: %s", out)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "segments", "*", "content"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	text, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)-30] ^= 1
	if err := os.WriteFile(logs[0], text, 0o644); err != nil {
		t.Fatal(err)
	}
	r := recrawl(t, "verify", "-d", dir, "-now", frozen)
	if r.code != 1 || !strings.Contains(r.out, "/content at 12: ") || !strings.HasSuffix(r.out, "\n1 finding\n") || !strings.Contains(r.err, "salvage") {
		t.Errorf("a damaged crawl: %+v", r)
	}
	r = recrawl(t, "verify", "-d", dir, "-now", frozen, "-json")
	var f struct {
		File   string
		Offset int
	}
	if err := json.Unmarshal([]byte(strings.SplitN(r.out, "\n", 2)[0]), &f); err != nil || f.File != logs[0] || f.Offset != 12 || r.code != 1 {
		t.Errorf("a damaged crawl: %+v, %v", r, err)
	}

	// The list continues after the damage.
	r = recrawl(t, "readseg", "-d", dir, "-list")
	if r.code != 1 || !strings.Contains(r.out, "crawl_fetch 1") || !strings.Contains(r.err, "content") || strings.Count(r.err, "recrawl salvage rescues") != 1 {
		t.Errorf("readseg -list of a damaged crawl: %+v", r)
	}

	to := filepath.Join(t.TempDir(), "new")
	r = recrawl(t, "salvage", "-d", dir, to)
	if r.code != 3 || !strings.Contains(r.out, "lost: segment ") || !strings.Contains(r.out, "kept: 2 records") || !strings.HasSuffix(r.err, ": 2 losses\n") {
		t.Errorf("salvage: %+v", r)
	}
	if out := ok(t, "verify", "-d", to, "-now", frozen); !strings.HasSuffix(out, "\nsound\n") {
		t.Errorf("a salvaged crawl: %s", out)
	}
	if out := ok(t, "salvage", "-d", to, to+"-again"); !strings.HasSuffix(out, "nothing is lost; 0 leases ended\n") {
		t.Errorf("salvage of a sound crawl: %s", out)
	}
	if r := recrawl(t, "salvage", "-d", dir, to); r.code != 1 || !strings.Contains(r.err, "not empty") {
		t.Errorf("salvage into a crawl: %+v", r)
	}
	if r := recrawl(t, "salvage", "-d", to+"-2", to+"-3"); r.code != 1 || !strings.Contains(r.err, "there is no crawl in "+to+"-2") {
		t.Errorf("salvage of nothing: %+v", r)
	}
	if r := recrawl(t, "verify", "-d", to+"-2"); r.code != 1 || !strings.Contains(r.err, "there is no crawl in "+to+"-2") {
		t.Errorf("verify of nothing: %+v", r)
	}
}

// Damage in a fetch list that is no longer needed stops no verb and does no harm to the
// segment; verbs that open the crawl report it, and so does verify.
func TestDamagedListIsReported(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		spoil func(list string) error
	}{
		{"cut", func(list string) error { return os.Truncate(list, 20) }},
		{"removed", os.Remove},
		{"a dangling link", func(list string) error {
			return errors.Join(os.Remove(list), os.Symlink(filepath.Join(filepath.Dir(list), "gone"), list))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "crawl")
			ok(t, "inject", "-d", dir, "-now", frozen, "http://a.example/", "http://b.example/")
			db, err := pebblestore.Open(dir, pebblestore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			const seg = "20260105080000-000"
			writePart(t, db.Segments(), seg, crawldb.Datum{URL: "http://a.example/", Status: crawldb.Unfetched})
			writePart(t, db.Segments(), seg, page.Content{URL: "http://a.example/", Type: "text/html", Body: []byte("<p>words")})
			writePart(t, db.Segments(), seg, segment.Visit{URL: "http://a.example/", Time: parsed(frozen)})
			for _, job := range []string{"update/", "round/"} {
				if err := db.Crawl().Update(t.Context(), crawldb.Batch{Marks: crawldb.Mark(job+seg, "done")}); err != nil {
					t.Fatal(err)
				}
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if err := tt.spoil(filepath.Join(dir, "segments", seg, "crawl_generate")); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"status"}, {"explain", "http://a.example/"}, {"generate", "-topN", "1"}, {"inject", "http://c.example/"}, {"dedup"}} {
				r := recrawl(t, append([]string{args[0], "-d", dir, "-now", frozen}, args[1:]...)...)
				if r.code != 0 || strings.Count(r.err, "recrawl: left as it is: ") != 1 || !strings.Contains(r.err, seg) {
					t.Errorf("%s: %+v", args[0], r)
				}
			}
			if r := recrawl(t, "verify", "-d", dir, "-now", frozen); r.code != 1 || !strings.Contains(r.out, "segment "+seg+"/crawl_generate") {
				t.Errorf("verify: %+v", r)
			}
			for _, part := range []string{"content", "crawl_fetch"} {
				if _, err := os.Stat(filepath.Join(dir, "segments", seg, part)); err != nil {
					t.Error(err)
				}
			}
			to := filepath.Join(t.TempDir(), "new")
			if r := recrawl(t, "salvage", "-d", dir, to); r.code != 3 || !strings.Contains(r.out, "lost: segment "+seg) || !strings.Contains(r.out, "crawl_generate") {
				t.Errorf("salvage: %+v", r)
			}
			if r := recrawl(t, "status", "-d", to, "-now", frozen); r.code != 0 || r.err != "" {
				t.Errorf("the salvaged crawl: %+v", r)
			}
		})
	}
}
