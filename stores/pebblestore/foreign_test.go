package pebblestore_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// killedTwin is a copy of a closed store that was opened, changed and killed.
func killedTwin(t *testing.T, dir string) string {
	t.Helper()
	live, twin := filepath.Join(t.TempDir(), "live"), filepath.Join(t.TempDir(), "twin")
	if err := os.CopyFS(live, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	db := openToChange(t, live)
	err := db.Crawl().Update(t.Context(), crawldb.Batch{Marks: crawldb.Mark("whose", "the twin's")})
	if err := errors.Join(err, db.Crawl().Sync(t.Context()), db.CopyKilled(twin), db.Close()); err != nil {
		t.Fatal(err)
	}
	return twin
}

// checkDamage checks that a store is not opened, and that Verify names a file of it, and nothing else.
func checkDamage(t *testing.T, dir, file string) {
	t.Helper()
	if all := findings(t, dir); len(all) != 1 || all[0].File != file || all[0].Harmless {
		t.Errorf("verify finds %v; wrong is %s", all, file)
	}
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err == nil {
		db.Close()
	}
	var damage *crawldb.CorruptError
	if !errors.As(err, &damage) || damage.File != file {
		t.Errorf("opening it: %v; wrong is %s", err, file)
	}
}

// lost checks that the only loss of a salvage is a log, and that the rest is as it was.
func lostLog(t *testing.T, dir, file string, want map[string]string) {
	t.Helper()
	db, losses, _ := salvaged(t, dir)
	if len(losses) != 1 || losses[0].File != file || losses[0].What != "log" {
		t.Errorf("salvage loses %v; wrong is %s", losses, file)
	}
	if whose, err := db.Crawl().Mark(t.Context(), "whose"); whose != "" || err != nil {
		t.Errorf("a mark of another store was salvaged: %q, %v", whose, err)
	}
	got, err := readAll(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s is\n%.300s\nand was\n%.300s", name, got[name], want[name])
		}
	}
}

// A log that was put into a store after it was closed is not replayed.
func TestLogOfAnotherStore(t *testing.T) {
	dir := sound(t, 100, false)
	want, err := readAll(t.Context(), openSound(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	dir = sound(t, 100, false)
	twin := killedTwin(t, dir)
	added := ""
	for _, name := range files(t, twin) {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil || !strings.HasSuffix(name, ".log") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(twin, name))
		if err == nil {
			added = filepath.Join(dir, name)
			err = os.WriteFile(added, text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if added == "" {
		t.Fatal("the twin has no log of its own")
	}
	checkDamage(t, dir, added)
	lostLog(t, dir, added, want)
}

// Without its log a store that was killed lacks what it has acknowledged, and that is not
// taken for what was never written. Damage of a store that was closed is reported once.
func TestLogIsMissing(t *testing.T) {
	for _, killed := range []bool{false, true} {
		dir := sound(t, 100, killed)
		last := ""
		for _, name := range files(t, dir) {
			if strings.HasSuffix(name, ".log") {
				last = filepath.Join(dir, name)
			}
		}
		if err := os.Remove(last); err != nil {
			t.Fatal(err)
		}
		checkDamage(t, dir, last)
		lostLog(t, dir, last, nil)
	}
}

// A table in the place of one of the same size is found by the keys in it.
func TestTableOfAnotherStore(t *testing.T) {
	var dirs [2]string
	base := sound(t, 100, false)
	for i, name := range []string{"a", "b"} {
		dirs[i] = filepath.Join(t.TempDir(), name)
		if err := os.CopyFS(dirs[i], os.DirFS(base)); err != nil {
			t.Fatal(err)
		}
		db := openToChange(t, dirs[i])
		err := db.Crawl().Update(t.Context(), crawldb.Batch{Marks: crawldb.Mark("whose "+name, name)})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	tables := 0
	for _, name := range files(t, dirs[0]) {
		at := filepath.Join(dirs[0], name)
		own, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		other, err := os.ReadFile(filepath.Join(dirs[1], name))
		if err != nil || !strings.HasSuffix(name, ".sst") || len(own) != len(other) || bytes.Equal(own, other) {
			continue
		}
		tables++
		if err := os.WriteFile(at, other, 0o644); err != nil {
			t.Fatal(err)
		}
		if all := findings(t, dirs[0]); len(all) != 1 || all[0].File != at {
			t.Errorf("of %s: %v", name, all)
		}
		if err := os.WriteFile(at, own, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if tables == 0 {
		t.Error("no two tables have the same size")
	}
}

// What became due is moved by a deletion of all hours until then, which ends behind the last
// entry of its table: the table is its own for all that.
func TestTableWithDeletionOfRange(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	due := func(now time.Time) (n int) {
		for _, err := range crawldb.Due(t.Context(), db.Crawl(), crawldb.DueQuery{Now: now}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	due(now)
	err = db.Crawl().Update(t.Context(), crawldb.Batch{URLs: []string{"http://a.example/"}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) {
		return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: now.Add(5 * time.Hour)}, nil
	}})
	if err := errors.Join(err, db.Compact(t.Context())); err != nil {
		t.Fatal(err)
	}
	if n := due(now.Add(9 * time.Hour)); n != 1 {
		t.Fatalf("%d are due", n)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if all := findings(t, dir); len(all) > 0 {
		t.Errorf("found %v", all)
	}
}
