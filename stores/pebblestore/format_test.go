package pebblestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/hostdb"
)

func TestOpenRefuses(t *testing.T) {
	write := func(name, text string) func(dir string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644) }
	}
	for _, tt := range []struct {
		name  string
		make  func(dir string) error
		want  error
		about string
	}{
		{"a foreign file", write("thesis.tex", "x"), ErrNotStore, "thesis.tex"},
		{"a foreign FORMAT", write(formatName, "tar 1.30\n"), ErrNotStore, formatName},
		{"a database without a mark", func(dir string) error { return os.Mkdir(filepath.Join(dir, databaseName), 0o755) }, ErrNotStore, databaseName},
		{"a later version", write(formatName, fmt.Sprintf("%s%d\n", formatMagic, formatVersion+1)), ErrVersion, fmt.Sprint(formatVersion + 1)},
		{"a version before the first", write(formatName, formatMagic+"0\n"), ErrVersion, "0"},
		{"a damaged version", write(formatName, formatMagic+"x\n"), ErrDamaged, formatName},
		{"a mark without a database", write(formatName, formatMagic+"1\n"), ErrDamaged, "exist"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := tt.make(dir); err != nil {
				t.Fatal(err)
			}
			before := list(t, dir)
			_, err := Open(dir, Options{})
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), tt.about) {
				t.Errorf("Open: %v; want one that is %v and names %s", err, tt.want, tt.about)
			}
			if after := list(t, dir); errors.Is(tt.want, ErrNotStore) && after != before {
				t.Errorf("a foreign directory held %q and holds %q", before, after)
			}
			// And again: a refusal is not forgotten.
			if _, err := Open(dir, Options{}); !errors.Is(err, tt.want) {
				t.Errorf("second Open: %v", err)
			}
		})
	}
}

func list(t *testing.T, dir string) string {
	var names []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, _ fs.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

// A store of version 1 is one of this version once it was opened, with all that it
// held.
func TestOldVersionIsUpgraded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	mark := filepath.Join(dir, formatName)
	put := func(h hostdb.Host) {
		t.Helper()
		db, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Hosts().Update(t.Context(), h.Name, func(*hostdb.Host) (*hostdb.Host, error) { return &h, nil }); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(mark); err != nil || string(text) != fmt.Sprintf("%s%d\n", formatMagic, formatVersion) {
			t.Errorf("the mark is %q, %v", text, err)
		}
	}
	robots := []hostdb.Robots{{Origin: "http://a.example", Status: 200, Body: []byte{}, Fetched: millis(5), Expires: millis(6)}}
	put(hostdb.Host{Name: "a.example", NextFetch: millis(1), Robots: robots})
	if err := os.WriteFile(mark, []byte(formatMagic+"1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	put(hostdb.Host{Name: "b.example", Homepage: "http://b.example/"})
	db, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, want := range []hostdb.Host{{Name: "a.example", NextFetch: millis(1), Robots: robots}, {Name: "b.example", Homepage: "http://b.example/"}} {
		if h, err := db.Hosts().Get(t.Context(), want.Name); err != nil || !reflect.DeepEqual(h, want) {
			t.Errorf("there is %+v, %v; want %+v", h, err, want)
		}
	}
}

func TestOpenMakesOnlyTheLastElement(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if _, err := Open(dir, Options{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir) {
		t.Errorf("Open below a missing directory: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file, Options{}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("Open of a file: %v", err)
	}
}

func TestOpenChecksOptions(t *testing.T) {
	for _, o := range []Options{{CacheSize: -1}, {MemTableSize: -1}, {Compression: 99}} {
		dir := filepath.Join(t.TempDir(), "store")
		if _, err := Open(dir, o); err == nil {
			t.Errorf("Open with %+v succeeded", o)
		}
	}
}
