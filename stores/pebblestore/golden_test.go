package pebblestore_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/stores/pebblestore"
)

var update = flag.Bool("update", false, "make the golden directory of this version, if there is none")

// dump is all that a store holds.
func dump(t *testing.T, dir string) string {
	t.Helper()
	db, err := pebblestore.Open(dir, quick())
	if err != nil {
		t.Fatal(err)
	}
	tables, err := readAll(t.Context(), db)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		fmt.Fprintf(&b, "%s\n%s\n", name, tables[name])
	}
	return b.String()
}

// goldenSize is how many records a golden directory has.
const goldenSize = 60

// Every version is read from a directory that it has written, and what is written now
// equals the golden directory of this version, row by row: a change to an encoding needs
// a new version, and a directory for it made with -update.
func TestGolden(t *testing.T) {
	current := filepath.Join("testdata", fmt.Sprintf("v%d", pebblestore.FormatVersion))
	if _, err := os.Stat(current); errors.Is(err, fs.ErrNotExist) && *update {
		if err := soundStore(t, current, goldenSize).Close(); err != nil {
			t.Fatal(err)
		}
	}
	for v := 2; v <= pebblestore.FormatVersion; v++ {
		golden := filepath.Join("testdata", fmt.Sprintf("v%d", v))
		dir := filepath.Join(t.TempDir(), "store")
		if err := os.CopyFS(dir, os.DirFS(golden)); err != nil {
			t.Fatal(err)
		}
		// What keeps the directory may not keep one that is empty.
		if err := os.MkdirAll(filepath.Join(dir, "segments"), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(golden + ".txt"); errors.Is(err, fs.ErrNotExist) && *update {
			if err := os.WriteFile(golden+".txt", []byte(dump(t, dir)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		// As it is, and once it is one of this version.
		for _, how := range []string{"as it is", "upgraded"} {
			if got := dump(t, dir); got != string(want) {
				t.Errorf("version %d, %s, reads as\n%.500s\nand not as\n%.500s", v, how, got, want)
			}
			if v > 2 { // whose records say nothing of a status
				for _, f := range findings(t, dir) {
					t.Errorf("version %d, %s: %v", v, how, f)
				}
			}
			db, err := pebblestore.Open(dir, pebblestore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	rows := func(db *pebblestore.DB) string {
		text, err := db.Rows()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if got, want := rows(soundOpen(t)), rows(openSound(t, current)); got != want {
		t.Errorf("what is written is not what version %d has in %s:\n%.2000s\n%.2000s", pebblestore.FormatVersion, current, got, want)
	}
}

func soundOpen(t *testing.T) *pebblestore.DB {
	t.Helper()
	db := soundStore(t, filepath.Join(t.TempDir(), "store"), goldenSize)
	t.Cleanup(func() { db.Close() })
	return db
}
